"""The life of a VM with a slice on the real libvirt and QEMU: resize, suspend, rescue, devices that come and go."""

from rig import A2, M60, domain_xml, until

NEEDS_PACKAGE = True
SUITES = ("trixie", "bookworm")

CONFIG = """
[devices]
enabled_mdev_types = ["GRID M60-2Q", "NVIDIA A2-4Q"]

[mdev."GRID M60-2Q"]
mdev_class = "CUSTOM_M60"

[mdev."NVIDIA A2-4Q"]
mdev_class = "CUSTOM_A2"
"""

PORTS = "<controller type='pci' index='0' model='pcie-root'/>" + "<controller type='pci' model='pcie-root-port'/>" * 3


def claims(vm, name="web-01"):
    return vm.daemon.json(f"instance show {name}")["claims"]


def live_mdevs(vm, name="web-01", options=""):
    xml = vm.run(f"virsh dumpxml {options} {name}")
    return [uuid for uuid in vm.gpus.mdevs() if f"uuid='{uuid}'" in xml]


def spawned(vm, xml=None, flavor="resources:CUSTOM_M60=1", **more):
    vm.daemon.fresh(CONFIG, **more)
    return vm.daemon.spawn(xml or domain_xml("web-01"), flavor)["devices"][0]["uuid"]


def test_resize_to_another_card_reverted_and_confirmed(vm):
    old = spawned(vm)
    before = vm.run("virsh dumpxml --inactive web-01")
    vm.daemon.ctl("resize web-01 --flavor resources:CUSTOM_A2=1")
    (new,) = live_mdevs(vm)
    assert new != old and sorted(vm.gpus.mdevs()) == sorted([old, new])
    assert {c["uuid"]: c["role"] for c in claims(vm)} == {old: "outgoing", new: "primary"}

    vm.daemon.ctl("revert web-01")
    assert live_mdevs(vm) == [old] == vm.gpus.mdevs()
    assert vm.run("virsh dumpxml --inactive web-01") == before

    vm.daemon.ctl("resize web-01 --flavor resources:CUSTOM_A2=1")
    vm.daemon.ctl("confirm web-01")
    assert len(vm.gpus.mdevs()) == 1 and live_mdevs(vm) == vm.gpus.mdevs() != [old]
    assert [c["parent"] in vm.gpus.vfs(A2) for c in claims(vm)] == [True]
    vm.daemon.ctl("destroy web-01")
    assert vm.gpus.mdevs() == [] and vm.daemon.instances() == []


def test_resize_to_nothing_and_back_to_something(vm):
    spawned(vm)
    vm.daemon.ctl("resize web-01 --flavor ''")
    vm.daemon.ctl("confirm web-01")
    assert vm.gpus.mdevs() == [] and claims(vm) == []
    assert vm.run("virsh domstate web-01").strip() == "running"
    assert "hostdev" not in vm.run("virsh dumpxml web-01")
    vm.daemon.ctl("resize web-01 --flavor resources:CUSTOM_M60=1")
    vm.daemon.ctl("confirm web-01")
    assert live_mdevs(vm) == vm.gpus.mdevs() and len(vm.gpus.mdevs()) == 1


def test_suspend_keeps_a_device_that_can_be_saved(vm):
    # The operator's own template gives the device an alias, by which the domain allows it to migrate.
    uuid = spawned(vm, domain_xml("web-01", migratable=True), hostdev_extra="<alias name='ua-mdev0'/>")
    vm.daemon.ctl("suspend web-01")
    assert vm.run("virsh domstate web-01").strip() == "shut off"
    assert "yes" in vm.run("virsh dominfo web-01 | grep 'Managed save'")
    assert [(c["uuid"], c["state"]) for c in claims(vm)] == [(uuid, "parked")]
    assert vm.gpus.mdevs() == [uuid]
    vm.daemon.ctl("resume web-01")
    assert vm.run("virsh domstate web-01").strip() == "running"
    assert live_mdevs(vm) == [uuid]
    assert [c["state"] for c in claims(vm)] == ["in-use"]


# QEMU 7.2 speaks the first VFIO migration protocol, which the kernel has not had since 5.18: nothing can be saved there.
test_suspend_keeps_a_device_that_can_be_saved.suites = ("trixie",)


def test_a_guest_that_does_not_let_go_is_not_suspended(vm):
    """Nothing runs in the guest, so nothing answers the request to release the device."""
    uuid = spawned(vm)
    refused = vm.daemon.try_ctl("--json suspend web-01")
    assert refused.code == 4 and '"DeviceInUse"' in refused.err, refused
    assert vm.run("virsh domstate web-01").strip() == "running"
    assert live_mdevs(vm) == [uuid] and [c["state"] for c in claims(vm)] == ["in-use"]


def test_attach_to_a_running_guest_and_detach_from_a_stopped_one(vm):
    xml = domain_xml("web-01").replace("<controller type='usb'", f"{PORTS}<controller type='usb'")
    first = spawned(vm, xml)
    vm.daemon.ctl("attach web-01 --flavor resources:CUSTOM_A2=1")
    (second,) = [uuid for uuid in vm.gpus.mdevs() if uuid != first]
    assert sorted(live_mdevs(vm)) == sorted([first, second]) == sorted(live_mdevs(vm, options="--inactive"))
    assert {c["state"] for c in claims(vm)} == {"in-use"}
    vm.daemon.ctl("stop web-01")
    vm.daemon.ctl(f"detach web-01 {second}")
    assert vm.gpus.mdevs() == [first] and live_mdevs(vm, options="--inactive") == [first]
    vm.daemon.ctl("start web-01")
    assert live_mdevs(vm) == [first]


def test_rescue_and_rebuild_keep_the_device(vm):
    uuid = spawned(vm)
    before = vm.run("virsh dumpxml --inactive web-01")
    same = vm.run("virsh domuuid web-01").strip()
    other = domain_xml("web-01", uuid=same, memory_mib=64)
    vm.daemon.ctl("rescue web-01 -", stdin=other)
    assert "65536</memory>" in vm.run("virsh dumpxml web-01") and live_mdevs(vm) == [uuid]
    vm.daemon.ctl("unrescue web-01")
    assert vm.run("virsh dumpxml --inactive web-01") == before and live_mdevs(vm) == [uuid]
    vm.daemon.ctl("rebuild web-01 -", stdin=other)
    assert "65536</memory>" in vm.run("virsh dumpxml web-01") and live_mdevs(vm) == [uuid]
    assert vm.gpus.mdevs() == [uuid] and [c["state"] for c in claims(vm)] == ["in-use"]


def test_a_lost_device_is_made_again_by_a_reboot(vm):
    uuid = spawned(vm, flavor="resources1:CUSTOM_M60=1")
    vm.run("virsh destroy web-01")
    vm.gpus.remove(uuid).check()
    # The daemon itself makes it again, too; until that has ended it asks for patience.
    until("the reboot", lambda: vm.daemon.try_ctl("reboot web-01").code == 0, timeout=180)
    assert vm.gpus.mdevs() == [uuid] and live_mdevs(vm) == [uuid]
    assert [c["parent"] in M60 for c in claims(vm)] == [True]


def test_the_cap_of_a_type_holds_beside_another_type(vm):
    capped = CONFIG.replace('mdev_class = "CUSTOM_M60"', 'mdev_class = "CUSTOM_M60"\nmax_instances = 1')
    vm.daemon.fresh(capped)
    records = vm.daemon.inventory().values()
    assert sum(r["total"] for r in records if r["resource_class"] == "CUSTOM_M60") == 1, records
    vm.daemon.spawn(domain_xml("web-01"), "resources1:CUSTOM_M60=1,resources2:CUSTOM_A2=1")
    refused = vm.daemon.try_ctl("--json spawn - --flavor resources:CUSTOM_M60=1", stdin=domain_xml("web-02"))
    assert refused.code == 3 and '"NoCapacity"' in refused.err, refused
    vm.daemon.spawn(domain_xml("web-02"), "resources:CUSTOM_A2=1")
    assert len(vm.gpus.mdevs()) == 3 and vm.daemon.until_whole() == ["web-01", "web-02"]
