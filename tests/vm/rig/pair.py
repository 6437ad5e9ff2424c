"""Two guests on one wire that share the storage of their domains."""

import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor

from rig.qemu import free_port
from rig.vm import Vm

# The guests know each other by these names, see guest/etc/hosts; the wire's addresses hang on the MAC addresses.
NAMES = ["host-1", "host-2"]

# The block device that both have: a LUN of a storage network, to libvirt.
SHARED = "/dev/disk/by-id/virtio-shared"
SHARED_MIB = 64


@contextlib.contextmanager
def pair(image, logs, number):
    """Both guests, up; they end with the block. `number` is that of the first one, the second has the next."""
    storage = logs / f"shared{number}.raw"
    with open(storage, "wb") as file:
        file.truncate(SHARED_MIB << 20)
    ports = [free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)]
    vms = []
    try:
        for place, name in enumerate(NAMES):
            extra = _wire(place, ports) + _storage(storage)
            vms.append(Vm(image, logs, number + place, hostname=name, extra=extra))
        with ThreadPoolExecutor() as pool:
            list(pool.map(Vm.wait_first_boot, vms))
        yield vms
    finally:
        for vm in vms:
            vm.end()
        storage.unlink()


def _wire(place, ports):
    # Datagrams: no side has to be there first, and one may come back.
    here, there = ports[place], ports[1 - place]
    return [
        "-netdev", f"socket,id=wire,udp=127.0.0.1:{there},localaddr=127.0.0.1:{here}",
        "-device", f"virtio-net-pci,netdev=wire,mac=52:54:00:77:00:0{place + 1}",
    ]  # fmt: skip


def _storage(path):
    # Two QEMUs write it, which the locks of the file would forbid.
    return [
        "-drive", f"file={path},if=none,id=shared,format=raw,file.locking=off",
        "-device", "virtio-blk-pci,drive=shared,serial=shared,share-rw=on",
    ]  # fmt: skip
