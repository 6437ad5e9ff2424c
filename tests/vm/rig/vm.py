"""A booted guest, as the cases see it."""

import json
import shlex
import subprocess
import time

from rig import host
from rig.daemon import Daemon
from rig.errors import DeadlinePassed, RigError
from rig.gpus import Gpus
from rig.qemu import Qemu, make_disk
from rig.ssh import Ssh
from rig.wait import until

# Only a failure waits as long as this, and a machine under load may need it.
BOOT_TIMEOUT = 600
# A guest that nothing was done to yet: under emulation one in some hundreds hangs before its first program runs.
FIRST_BOOT_TIMEOUT = 240
COMMAND_TIMEOUT = 240


class Vm:
    """One guest. Use it as a context manager: QEMU ends with the block, whatever happens in it.

    `number` tells guests of one run apart (UUID, log names); `hostname` and `extra`, further QEMU arguments, are for guests
    that know each other.
    """

    def __init__(self, image, logs, number=1, hostname="rig", extra=()):
        self.image = image
        self.logs = logs
        self.name = f"vm{number}"
        self.hostname = hostname
        self._uuid = f"52544d45-0000-4000-8000-{number:012d}"  # libvirt takes it for the host's identity
        self._extra = list(extra)
        self._disk = logs / f"{self.name}.qcow2"
        make_disk(image, self._disk)
        self._power_on()
        self.daemon = Daemon(self)
        self.has_package = False

    def _power_on(self):
        self._started = time.monotonic()
        log = self.logs / f"{self.name}.serial.log"
        self.qemu = Qemu(self.image, self._disk, log, self._uuid, self.hostname, self._extra)
        self.ssh = Ssh(self.qemu.port, self.image / "id_rig")
        self.gpus = Gpus(self)

    def __enter__(self):
        try:
            self.wait_first_boot()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        """Ends ssh and QEMU."""
        self.ssh.close()
        self.qemu.end()
        self._disk.unlink(missing_ok=True)

    def cut_power(self):
        """Takes the guest's power away, whatever it is at."""
        self.qemu.cut()
        self.ssh.close()

    def power_on(self):
        """Starts the guest again after `cut_power`, and waits until it is up."""
        self._power_on()
        self.wait_boot()

    def wait_first_boot(self):
        """Waits until the guest is up for the first time. One that hangs, with nothing of ours in it but simgpu, is started once
        more, and its console is shown."""
        try:
            self.wait_boot(FIRST_BOOT_TIMEOUT)
        except DeadlinePassed as hung:
            console = (self.logs / f"{self.name}.serial.log").read_text(errors="replace")
            print(f"rig: {self.name}: {hung}; started once more, its console was:\n{console[-2000:]}", flush=True)
            self.cut_power()
            self.power_on()

    def wait_boot(self, timeout=BOOT_TIMEOUT):
        """Waits until the guest is up; returns the seconds since the start of QEMU."""
        until("sshd of the guest", self._sshd_answers, timeout=timeout, every=0.5)
        self.ssh.connect()
        state = self.try_run("systemctl is-system-running --wait", timeout=BOOT_TIMEOUT).out.strip()
        if state != "running":
            failed = self.run("systemctl --failed --no-legend --plain")
            raise RigError(f"the guest is {state}:\n{failed}")
        self.boot_seconds = time.monotonic() - self._started
        self.daemon.booted()

    def _sshd_answers(self):
        self.qemu.check_alive()
        return self.ssh.answers()

    def reboot(self):
        """Reboots the guest, keeping its disk, and waits until it is up again."""
        before = self.run("cat /proc/sys/kernel/random/boot_id")
        self._started = time.monotonic()
        self.run("systemctl reboot --no-block")
        self.ssh.disconnect()
        until("another boot", lambda: self._boot_id() not in ("", before), timeout=BOOT_TIMEOUT, every=2)
        self.wait_boot()

    def _boot_id(self):
        self.qemu.check_alive()
        if not self.ssh.answers():
            return ""
        try:
            self.ssh.connect()
            return self.try_run("cat /proc/sys/kernel/random/boot_id", timeout=30).out
        except RigError:
            return ""  # the old system on its way down

    # --- commands and files

    def try_run(self, command, timeout=COMMAND_TIMEOUT, stdin=""):
        """Runs a line of shell as root; the result has code, out, err."""
        self.qemu.check_alive()
        return self.ssh.run(command, timeout, stdin.encode())

    def run(self, command, timeout=COMMAND_TIMEOUT, stdin=""):
        """The standard output of a line of shell that must succeed."""
        return self.try_run(command, timeout, stdin).check().out

    def run_json(self, command, timeout=COMMAND_TIMEOUT):
        """The JSON that a command prints."""
        return json.loads(self.run(command, timeout))

    def read(self, path):
        """A file's text without the newline at its end."""
        return self.run(f"cat {shlex.quote(str(path))}").rstrip("\n")

    def write(self, path, text):
        """Writes a file, in one write: sysfs wants that."""
        self.run(f"cat > {shlex.quote(str(path))}", stdin=text)

    def exists(self, path):
        """Whether a path is there."""
        return self.try_run(f"test -e {shlex.quote(str(path))}").code == 0

    def copy_in(self, local, remote):
        """Copies a file of the host into the guest."""
        self.qemu.check_alive()
        with open(local, "rb") as source:
            self.ssh.run(f"cat > {shlex.quote(str(remote))}", COMMAND_TIMEOUT, source.read()).check()

    def until(self, what, command, timeout=60):
        """Waits until a line of shell succeeds, and returns its output."""

        def succeeded():
            result = self.try_run(command)
            return result if result.code == 0 else None

        return until(what, succeeded, timeout=timeout).out

    # --- larger steps

    def install_package(self):
        """Installs the project's own package, once per guest."""
        if self.has_package:
            return
        package = host.package()
        self.copy_in(package, "/root/mdevirt.deb")
        self.run("DEBIAN_FRONTEND=noninteractive dpkg -i /root/mdevirt.deb", timeout=300)
        self.has_package = True

    def clean(self, kernel_only=False):
        """Back to no domains, no mdevs, no faults, and libvirt up to date, unless the next test does without it."""
        self.run("rig-clean" + (" --kernel-only" if kernel_only else ""), timeout=400)

    def shell(self):
        """An interactive shell in the guest."""
        subprocess.run(self.ssh.command("-t", "root@127.0.0.1"), check=False)

    def save_logs(self, name):
        """Writes journal and kernel log of the guest beside the serial log."""
        text = self.try_run("journalctl -b --no-pager -n 400; echo; dmesg | tail -n 100").out
        (self.logs / f"{name}.log").write_text(text, encoding="utf-8")
