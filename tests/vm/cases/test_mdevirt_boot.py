"""The host boots: every recorded device is made again under its UUID, what comes late is waited for, and what cannot come
back keeps nobody waiting."""

from rig import A2, M60, domain_xml, until

NEEDS_PACKAGE = True
OWN_VM = True
SUITES = ("trixie", "bookworm")

CONFIG = f"""
[devices]
enabled_mdev_types = ["GRID M60-2Q", "GRID M60-4Q", "NVIDIA A2-4Q"]

[mdev."GRID M60-2Q"]
device_addresses = ["{M60[0]}"]
mdev_class = "CUSTOM_SMALL"

[mdev."GRID M60-4Q"]
device_addresses = ["{M60[1]}"]
mdev_class = "CUSTOM_LARGE"

[mdev."NVIDIA A2-4Q"]
mdev_class = "CUSTOM_A2"
"""

FLAVORS = ["CUSTOM_SMALL"] * 3 + ["CUSTOM_LARGE"] + ["CUSTOM_A2"] * 2


def claims(vm):
    return {instance["name"]: instance["claims"][0] for instance in vm.daemon.instances()}


def states(vm):
    return [claim["state"] for _, claim in sorted(claims(vm).items())]


def test_six_vms_one_type_gone_functions_late(vm):
    vm.daemon.fresh(CONFIG)
    vm.run("systemctl enable mdevirtd")
    for number, name in enumerate(FLAVORS):
        vm.daemon.spawn(domain_xml(f"vm-{number}"), f"resources:{name}=1")
    before = claims(vm)
    small, late = [before[f"vm-{n}"]["uuid"] for n in range(3)], [before[f"vm-{n}"]["uuid"] for n in (4, 5)]

    # After the next boot the driver has one type less, and nobody has enabled the functions yet.
    vm.write("/etc/default/simgpu", "VFS=0\nPARAMS=mode=mdev hide_types=M60-4Q\n")
    vm.reboot()
    vm.daemon.until_answers()
    until("the small ones to be back", lambda: set(vm.gpus.mdevs()) == set(small), timeout=300)
    until("the one without a type to be lost", lambda: states(vm)[3] == "lost", timeout=120)
    assert states(vm)[4:] == ["missing"] * 2, states(vm)
    findings = vm.run("mdevirtctl status")
    assert before["vm-3"]["uuid"] in findings and "M60-4Q" in findings, findings
    # Nothing waits for them.
    vm.daemon.ctl("start vm-0")
    assert vm.run("virsh domstate vm-0").strip() == "running"
    refused = vm.daemon.try_ctl("--json start vm-3")
    assert refused.code != 0 and "M60-4Q" in refused.err, refused

    vm.run(f"echo 8 > /sys/bus/pci/devices/{A2}/sriov_numvfs")
    until("the functions' ones to be back", lambda: set(vm.gpus.mdevs()) == set(small + late), timeout=300)
    until("the books to say so", lambda: "missing" not in states(vm), timeout=120)
    after = claims(vm)
    same = [name for name in before if (before[name]["uuid"], before[name]["parent"]) == (after[name]["uuid"], after[name]["parent"])]
    assert len(same) == 6 and states(vm)[3] == "lost", after
    for number in (1, 2, 4, 5):
        vm.daemon.ctl(f"start vm-{number}")
    assert len(vm.run("virsh list --name").split()) == 5


def test_started_again_by_libvirt(vm):
    """Plain libvirt autostart, and plain libvirt users, find the device defined."""
    vm.daemon.fresh(CONFIG)
    vm.run("systemctl enable mdevirtd")
    uuid = vm.daemon.spawn(domain_xml("web-01"), "resources:CUSTOM_SMALL=1")["devices"][0]["uuid"]
    vm.run("virsh autostart web-01")
    vm.write("/etc/default/simgpu", "VFS=8\nPARAMS=mode=mdev\n")
    vm.reboot()
    vm.daemon.until_answers()
    until("the guest to run", lambda: vm.run("virsh domstate web-01").strip() == "running", timeout=300)
    assert vm.gpus.mdevs() == [uuid]
    until("the books to say so", lambda: states(vm) == ["in-use"], timeout=120)
