"""XML that cases hand to libvirt."""

import re

_DOMAIN = """<domain type='qemu'{namespace}>
  <name>{name}</name>
  {uuid}
  <memory unit='MiB'>{memory_mib}</memory>
  <vcpu>1</vcpu>
  <os><type arch='x86_64' machine='q35'>hvm</type>{kernel}</os>
  <devices>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
{disk}{hostdevs}  </devices>
{override}</domain>
"""

_MDEV_HOSTDEV = """    <hostdev mode='subsystem' type='mdev' model='vfio-pci'>
      <source><address uuid='{uuid}'/></source>
      <alias name='ua-mdev{number}'/>
    </hostdev>
"""

_VF_HOSTDEV = """    <hostdev mode='subsystem' type='pci' managed='no'>
      <source><address domain='0x{0}' bus='0x{1}' slot='0x{2}' function='0x{3}'/></source>
    </hostdev>
"""

_DISK = """    <disk type='block' device='disk'>
      <driver name='qemu' type='raw' cache='none'/>
      <source dev='{disk}'/>
      <target dev='vda' bus='virtio'/>
    </disk>
"""

_NAMESPACE = " xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'"

# QEMU migrates a VFIO device without dirty tracking only if told so, device by device.
_MIGRATABLE = """    <qemu:device alias='ua-mdev{number}'>
      <qemu:frontend><qemu:property name='enable-migration' type='string' value='on'/></qemu:frontend>
    </qemu:device>
"""

_MDEV = """<device>
  <parent>{parent}</parent>
  <capability type='mdev'>
    <type id='{type_id}'/>
    <uuid>{uuid}</uuid>
  </capability>
</device>
"""


_KERNEL = "<kernel>{kernel}</kernel><initrd>{initrd}</initrd>"


def domain_xml(name, mdevs=(), vfs=(), uuid="", memory_mib=48, migratable=False, disk="", kernel=()):
    """A domain that runs under TCG and does nothing, with mdevs by UUID, VFs by address and, if wanted, a block device.

    `kernel`, with its initrd, makes it work and have memory to send.
    """
    hostdevs = "".join(_MDEV_HOSTDEV.format(uuid=mdev, number=number) for number, mdev in enumerate(mdevs))
    hostdevs += "".join(_VF_HOSTDEV.format(*re.split("[:.]", vf)) for vf in vfs)
    # One that is not named yet comes from a spawn, which writes no alias by itself.
    count = max(len(mdevs), 1) if migratable else 0
    override = "".join(_MIGRATABLE.format(number=number) for number in range(count))
    return _DOMAIN.format(
        name=name,
        namespace=_NAMESPACE if override else "",
        uuid=f"<uuid>{uuid}</uuid>" if uuid else "",
        memory_mib=memory_mib,
        kernel=_KERNEL.format(kernel=kernel[0], initrd=kernel[1]) if kernel else "",
        disk=_DISK.format(disk=disk) if disk else "",
        hostdevs=hostdevs,
        override=f"  <qemu:override>\n{override}  </qemu:override>\n" if override else "",
    )


def mdev_xml(parent, type_id, uuid):
    """An mdev for nodedev-create and nodedev-define; `parent` is a node device name."""
    return _MDEV.format(parent=parent, type_id=type_id, uuid=uuid)
