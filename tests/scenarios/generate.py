#!/usr/bin/env python3
"""Writes a simulated host to stdout:  generate.py two-m60 | a2-16vf | mixed | big-384vf

The output is a file for libvirt's test driver (test:///ABSOLUTE/PATH) and for `mdevirtd --sim`. The three small ones are
committed beside this script; big-384vf (8 cards x 48 VFs x 23 types, 2 MB) is for load tests and made when needed.
"""
import sys

# id: (name, how many an empty card makes). Ids and names as the vendor's driver lists them.
M60 = {"nvidia-11": ("GRID M60-0B", 16), "nvidia-12": ("GRID M60-0Q", 16), "nvidia-13": ("GRID M60-1A", 8),
       "nvidia-14": ("GRID M60-1B", 8), "nvidia-15": ("GRID M60-1Q", 8), "nvidia-16": ("GRID M60-2A", 4),
       "nvidia-17": ("GRID M60-2B", 4), "nvidia-18": ("GRID M60-2Q", 4), "nvidia-19": ("GRID M60-4A", 2),
       "nvidia-20": ("GRID M60-4Q", 2), "nvidia-210": ("GRID M60-2B4", 4), "nvidia-21": ("GRID M60-8A", 1),
       "nvidia-22": ("GRID M60-8Q", 1), "nvidia-238": ("GRID M60-1B4", 8)}
A2 = {f"nvidia-{742 + i}": (f"NVIDIA A2-{n}", 1) for i, n in enumerate(
    ["1B", "2B", "1Q", "2Q", "4Q", "8Q", "16Q", "1A", "2A", "4A", "8A", "16A", "4C", "8C", "16C"])}
# A T4 that carries one slice of 2 GiB: the other sizes are gone.
T4 = {f"nvidia-{222 + i}": (f"GRID T4-{n}", 7 if n.startswith("2") else 0) for i, n in enumerate(
    ["1B", "2B", "2B4", "1A", "2A", "4A", "8A", "16A", "1Q", "2Q", "4Q", "8Q", "16Q"])}
GVTG = {"i915-GVTg_V5_4": (None, 1), "i915-GVTg_V5_8": (None, 2)}
# Composed for load: the real card has no mdev framework.
L40S = {f"nvidia-{1145 + i}": (f"NVIDIA L40S-{n}", 1) for i, n in enumerate(
    ["1B", "2B"] + [f"{n}{s}" for s in "QA" for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 48)] + ["4C"])}

COMPUTER = """  <device>
    <name>computer</name>
    <capability type='system'>
      <hardware>
        <vendor>Example</vendor>
        <uuid>e1ff9e0c-0f50-4a3e-8b6e-1d1a4b6a7c11</uuid>
      </hardware>
      <firmware/>
    </capability>
  </device>"""


def address(bus, fn, indent):
    return (f"{' ' * indent}<address domain='0x0000' bus='0x{bus:02x}' "
            f"slot='0x{fn >> 3:02x}' function='0x{fn & 7:x}'/>")


def types(offer):
    out = ["      <capability type='mdev_types'>"]
    for type_id, (name, available) in offer.items():
        out.append(f"        <type id='{type_id}'>")
        if name:
            out.append(f"          <name>{name}</name>")
        out += ["          <deviceAPI>vfio-pci</deviceAPI>",
                f"          <availableInstances>{available}</availableInstances>", "        </type>"]
    return out + ["      </capability>"]


def pci(bus, fn, product, vendor, nested, group, numa):
    """One PCI function; fn is slot * 8 + function."""
    slot, function = fn >> 3, fn & 7
    lines = ["  <device>", f"    <name>pci_0000_{bus:02x}_{slot:02x}_{function:x}</name>",
             "    <parent>computer</parent>", "    <capability type='pci'>", "      <class>0x030200</class>",
             "      <domain>0</domain>", f"      <bus>{bus}</bus>", f"      <slot>{slot}</slot>",
             f"      <function>{function}</function>", f"      <product id='{product[0]}'>{product[1]}</product>",
             f"      <vendor id='{vendor[0]}'>{vendor[1]}</vendor>", *nested,
             f"      <iommuGroup number='{group}'>", address(bus, fn, 8), "      </iommuGroup>",
             f"      <numa node='{numa}'/>", "    </capability>", "  </device>"]
    return "\n".join(lines)


NVIDIA = ("0x10de", "NVIDIA Corporation")
INTEL = ("0x8086", "Intel Corporation")


def card(bus, product, offer, group, numa, vendor=NVIDIA, fn=0):
    return pci(bus, fn, product, vendor, types(offer), group, numa)


def sriov_card(bus, product, offer, vf_count, group, numa):
    """A physical function and its VFs, which begin at function 4 as on the real cards."""
    vfs = range(4, 4 + vf_count)
    down = [f"      <capability type='virt_functions' maxCount='{vf_count}'>",
            *(address(bus, fn, 8) for fn in vfs), "      </capability>"]
    up = ["      <capability type='phys_function'>", address(bus, 0, 8), "      </capability>"]
    return "\n".join([pci(bus, 0, product, NVIDIA, down, group, numa)]
                     + [pci(bus, fn, product, NVIDIA, up + types(offer), group + fn, numa) for fn in vfs])


def mdev(uuid, parent, type_id, group):
    name = f"mdev_{uuid}_{parent}".replace("-", "_").replace(":", "_").replace(".", "_")
    node = "pci_" + parent.replace(":", "_").replace(".", "_")
    return f"""  <device>
    <name>{name}</name>
    <parent>{node}</parent>
    <capability type='mdev'>
      <type id='{type_id}'/>
      <uuid>{uuid}</uuid>
      <iommuGroup number='{group}'/>
    </capability>
  </device>"""


def domain(name, uuid, running, mdev_uuid=None):
    state = "" if running else "\n    <test:runstate>5</test:runstate>"
    hostdev = "" if mdev_uuid is None else f"""
      <hostdev mode='subsystem' type='mdev' managed='no' model='vfio-pci'>
        <source>
          <address uuid='{mdev_uuid}'/>
        </source>
      </hostdev>"""
    return f"""  <domain type='kvm' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>
    <name>{name}</name>
    <uuid>{uuid}</uuid>
    <memory unit='MiB'>1024</memory>
    <vcpu>1</vcpu>
    <os>
      <type arch='x86_64' machine='q35'>hvm</type>
    </os>
    <devices>{hostdev}
    </devices>{state}
  </domain>"""


TESLA_M60 = ("0x13f2", "GM204GL [Tesla M60]")
FOREIGN = "3d1f0a52-6c0b-4f0e-9a53-0d5c2f5b7e10"


def m60(bus, group, numa):
    return card(bus, TESLA_M60, M60, group, numa)


def a2(vf_count, group):
    return sriov_card(0x08, ("0x25b6", "GA107GL [A2 / A16]"), A2, vf_count, group, 0)


HOSTS = {
    "two-m60": lambda: [m60(0x84, 46, 1), m60(0x85, 47, 1)],
    "a2-16vf": lambda: [a2(16, 20)],
    "mixed": lambda: [
        card(0x00, ("0x3ea0", "UHD Graphics 620"), GVTG, 1, 0, INTEL, fn=0x10),
        a2(4, 20),
        card(0x3b, ("0x1eb8", "TU104GL [Tesla T4]"), T4, 33, 0),
        m60(0x84, 46, 1),
        mdev(FOREIGN, "0000:3b:00.0", "nvidia-231", 60),
        domain("lab-handmade", "7b9c1f62-52f3-4d0d-9a4e-3f6f0f8a1c01", True, FOREIGN),
        domain("batch-01", "7b9c1f62-52f3-4d0d-9a4e-3f6f0f8a1c02", False)],
    "big-384vf": lambda: [sriov_card(0x10 + 4 * n, ("0x26b9", "AD102GL [L40S]"), L40S, 48, 100 + 64 * n, n % 2)
                          for n in range(8)],
}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in HOSTS:
        sys.exit(__doc__)
    print("\n".join(["<node>", COMPUTER, *HOSTS[sys.argv[1]](), "</node>"]))
