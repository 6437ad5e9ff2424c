"""What the rig needs and keeps on the host."""

import fcntl
import os
import shutil
import subprocess
import time
from pathlib import Path

from rig.errors import RigError

HERE = Path(__file__).resolve().parent.parent
TARGET = HERE.parent.parent / "target"
CACHE = TARGET / "vm"
KEPT_LOGS = 10

_PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
}


def check_prerequisites():
    """Raises RigError naming all that is missing. A rig that cannot run is a failure, never a skip."""
    path = os.environ.get("PATH", "") + os.pathsep + "/usr/sbin" + os.pathsep + "/sbin"
    os.environ["PATH"] = path
    missing = {package for program, package in _PROGRAMS.items() if not shutil.which(program)}
    if missing:
        raise RigError("missing on this host; install: apt-get install " + " ".join(sorted(missing)))


def build_image(suite):
    """The directory of the VM image of a Debian release, made now if the cache has none for this recipe."""
    environment = os.environ | {"RIG_SUITE": suite}
    done = subprocess.run([HERE / "image.sh"], stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode:
        raise RigError(f"image.sh failed with code {done.returncode}")
    return Path(done.stdout.strip())


def only_run():
    """Holds back a second run on this machine until the first is over. Keep the returned file open."""
    CACHE.mkdir(parents=True, exist_ok=True)
    lock = open(CACHE / "run.lock", "w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("another run uses the rig, waiting for its end", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def log_directory():
    """A fresh directory for the logs of this run; `latest` beside it points here, old ones are dropped."""
    logs = CACHE / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    old = sorted(path for path in logs.iterdir() if path.is_dir() and not path.is_symlink())
    for path in old[: max(0, len(old) - KEPT_LOGS + 1)]:
        shutil.rmtree(path)
    fresh = logs / time.strftime("%Y%m%d-%H%M%S")
    fresh.mkdir(exist_ok=True)
    latest = logs / "latest"
    latest.unlink(missing_ok=True)
    latest.symlink_to(fresh.name)
    return fresh


def package():
    """The Debian package of this project, the newest of target/deb."""
    found = sorted((TARGET / "deb").glob("mdevirt_*.deb"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise RigError("no target/deb/mdevirt_*.deb; run: make deb")
    return found[-1]
