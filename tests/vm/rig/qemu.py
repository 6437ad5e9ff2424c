"""One QEMU process."""

import ctypes
import signal
import socket
import subprocess

from rig.errors import RigError

MEMORY_MIB = 2048
PR_SET_PDEATHSIG = 1

# The guest's GPUs-to-be, at addresses that cases may rely on (rig.gpus has the same ones).
#   0000:00:10.0, 0000:00:11.0  two devices without SR-IOV
#   0000:01:00.0                an NVMe controller with 16 virtual functions: QEMU's only SR-IOV device of that kind
CARDS = [
    "-device", "pci-testdev,addr=10.0",
    "-device", "pci-testdev,addr=11.0",
    "-device", "pcie-root-port,id=rp1,slot=1,addr=12.0",
    "-device", "nvme-subsys,id=subsys",
    "-device", "nvme,serial=rig,subsys=subsys,bus=rp1,sriov_max_vfs=16,sriov_vq_flexible=32,"
               "sriov_vi_flexible=16,max_ioqpairs=34,msix_qsize=34",
]  # fmt: skip


def free_port(kind=socket.SOCK_STREAM):
    """A port of 127.0.0.1 that nobody has at the moment."""
    with socket.socket(type=kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_disk(image, disk):
    """A disk that starts as a copy of the image and outlives the QEMU that writes it."""
    backing = f"backing_file={image / 'vm.img'},backing_fmt=raw"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-o", backing, str(disk)], check=True)


def _die_with_parent():
    # Should the runner be killed, its VM must not stay behind.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Qemu:
    """A running VM of `image` (see image.sh) on `disk`. `serial_log` receives its console."""

    def __init__(self, image, disk, serial_log, uuid, hostname="rig", extra=()):
        self.port = free_port()
        self.log = serial_log
        self._errors = open(serial_log.with_suffix(".qemu.log"), "a", encoding="utf-8")
        self._process = subprocess.Popen(
            self._command(image, disk, uuid, hostname) + list(extra),
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C is for the runner, which then ends QEMU in order
            preexec_fn=_die_with_parent,
        )

    def _command(self, image, disk, uuid, hostname):
        # /dev/kvm may exist and still not work; TCG works everywhere and is what the deadlines are made for.
        # Wide vector instructions are slower under emulation than what they replace: with "max" all takes a fifth longer.
        return [
            "qemu-system-x86_64", "-nodefaults", "-display", "none",
            "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "qemu64", "-smp", "2", "-m", str(MEMORY_MIB),
            "-uuid", uuid,
            "-kernel", str(image / "vmlinuz"), "-initrd", str(image / "initrd"),
            "-append", "root=/dev/vda rw console=ttyS0 quiet mitigations=off transparent_hugepage=never tsc=reliable systemd.ssh_auto=no "
            f"systemd.hostname={hostname}",
            # The TSC is the emulator's one clock; a kernel that doubts it reads an emulated timer for each look at the time.
            # Unsafe is what the host may lose; should QEMU alone be killed, what the guest has flushed is in the file.
            "-drive", f"file={disk},if=none,id=root,format=qcow2,cache=unsafe",
            "-device", "virtio-blk-pci,drive=root",
            "-netdev", f"user,id=user,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-:22",
            "-device", "virtio-net-pci,netdev=user,mac=52:54:00:12:34:56",
            "-chardev", f"file,id=console,path={self.log},append=on", "-serial", "chardev:console",
            *CARDS,
        ]  # fmt: skip

    @property
    def pid(self):
        """Process id, for messages."""
        return self._process.pid

    def check_alive(self):
        """Raises RigError with QEMU's own words if it has ended."""
        if self._process.poll() is not None:
            self._errors.flush()
            said = self.log.with_suffix(".qemu.log").read_text(encoding="utf-8", errors="replace")
            raise RigError(f"QEMU ended with code {self._process.returncode}: {said.strip()[-800:]}")

    def cut(self):
        """The power is cut: nothing is written, nobody is told."""
        self._process.kill()
        self._process.wait()
        self._errors.close()

    def end(self):
        """Ends the process and waits for it. Harmless if it has ended."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._errors.close()
