"""Commands in the guest, over one ssh connection that all of them share: a handshake under TCG costs seconds."""

import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rig.errors import CommandFailed, RigError
from rig.wait import until


@dataclass(frozen=True)
class Result:
    """How a guest command ended."""

    command: str
    code: int
    out: str
    err: str

    def check(self):
        """The result itself if the code is 0, else CommandFailed."""
        if self.code:
            raise CommandFailed(self.command, self.code, self.out, self.err)
        return self


class Ssh:
    """A shared connection to root of the guest behind a port of 127.0.0.1."""

    def __init__(self, port, key):
        self._port = port
        self._key = key
        # Not in target/: the path of a Unix socket has to be short.
        self._directory = tempfile.TemporaryDirectory(prefix="rig-ssh-")
        self._socket = Path(self._directory.name) / "s"
        self._master = None

    def command(self, *words):
        """The ssh command line with the options of this connection."""
        return [
            "ssh", "-q", "-p", str(self._port), "-i", str(self._key), "-S", str(self._socket),
            "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "GlobalKnownHostsFile=/dev/null",
            "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "ConnectTimeout=60", "-F", "none",
            *words,
        ]  # fmt: skip

    def answers(self):
        """Whether sshd is there. QEMU accepts connections long before the guest does, so only the greeting counts."""
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=5) as probe:
                return probe.recv(4) == b"SSH-"
        except OSError:
            return False

    def connect(self):
        """Opens the shared connection."""
        self.disconnect()
        self._master = subprocess.Popen(
            self.command("-M", "-N", "root@127.0.0.1"), stdin=subprocess.DEVNULL, start_new_session=True
        )
        until("ssh connection", self._connected, timeout=90)

    def _connected(self):
        if self._master.poll() is not None:
            raise RigError(f"ssh ended with code {self._master.returncode}")
        check = self.command("-O", "check", "root@127.0.0.1")
        return subprocess.run(check, stderr=subprocess.DEVNULL).returncode == 0

    def disconnect(self):
        """Closes the shared connection, if it is open."""
        if self._master and self._master.poll() is None:
            self._master.terminate()
            try:
                self._master.wait(timeout=10)
            except subprocess.TimeoutExpired:
                # It waits for the end of a session, which the guest may have taken with it.
                self._master.kill()
                self._master.wait()
        self._master = None

    def run(self, command, timeout, stdin=b""):
        """Runs a line of shell. The exit code 255 of ssh itself is a RigError: the guest is gone."""
        words = self.command("root@127.0.0.1", command)
        try:
            done = subprocess.run(words, input=stdin, capture_output=True, timeout=timeout, start_new_session=True)
        except subprocess.TimeoutExpired as late:
            said = (late.stdout or b"") + (late.stderr or b"")
            raise RigError(f"no end within {timeout} s: {command}\n{said.decode(errors='replace')[-800:]}") from None
        if done.returncode == 255 and not done.stdout and self._master.poll() is not None:
            raise RigError(f"connection lost: {command}")
        return Result(command, done.returncode, _text(done.stdout), _text(done.stderr))

    def close(self):
        """Ends the connection and removes its directory."""
        self.disconnect()
        self._directory.cleanup()


def _text(raw):
    return raw.decode(errors="replace")
