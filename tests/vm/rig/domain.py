"""XML that cases hand to libvirt."""

import re

_DOMAIN = """<domain type='qemu'>
  <name>{name}</name>
  {uuid}
  <memory unit='MiB'>{memory_mib}</memory>
  <vcpu>1</vcpu>
  <os><type arch='x86_64' machine='q35'>hvm</type></os>
  <devices>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
{hostdevs}  </devices>
</domain>
"""

_MDEV_HOSTDEV = """    <hostdev mode='subsystem' type='mdev' model='vfio-pci'>
      <source><address uuid='{uuid}'/></source>
    </hostdev>
"""

_VF_HOSTDEV = """    <hostdev mode='subsystem' type='pci' managed='no'>
      <source><address domain='0x{0}' bus='0x{1}' slot='0x{2}' function='0x{3}'/></source>
    </hostdev>
"""

_MDEV = """<device>
  <parent>{parent}</parent>
  <capability type='mdev'>
    <type id='{type_id}'/>
    <uuid>{uuid}</uuid>
  </capability>
</device>
"""


def domain_xml(name, mdevs=(), vfs=(), uuid="", memory_mib=48):
    """A domain without disks that runs under TCG and does nothing, with mdevs by UUID and VFs by address."""
    hostdevs = "".join(_MDEV_HOSTDEV.format(uuid=mdev) for mdev in mdevs)
    hostdevs += "".join(_VF_HOSTDEV.format(*re.split("[:.]", vf)) for vf in vfs)
    tag = f"<uuid>{uuid}</uuid>" if uuid else ""
    return _DOMAIN.format(name=name, uuid=tag, memory_mib=memory_mib, hostdevs=hostdevs)


def mdev_xml(parent, type_id, uuid):
    """An mdev for nodedev-create and nodedev-define; `parent` is a node device name."""
    return _MDEV.format(parent=parent, type_id=type_id, uuid=uuid)
