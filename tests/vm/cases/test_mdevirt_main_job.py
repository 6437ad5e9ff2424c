"""The main job: a domain gets its slice, runs with it in the inner QEMU, and gives it back."""

import concurrent.futures

from rig import A2, M60, domain_xml

NEEDS_PACKAGE = True

CONFIG = """
[devices]
enabled_mdev_types = ["GRID M60-2Q", "NVIDIA A2-4Q"]

[mdev."GRID M60-2Q"]
mdev_class = "CUSTOM_M60"

[mdev."NVIDIA A2-4Q"]
mdev_class = "CUSTOM_A2"
traits = ["CUSTOM_SILVER"]
"""


def spawn_and_destroy(vm, flavor, parents, type_id):
    vm.daemon.fresh(CONFIG)
    result = vm.daemon.spawn(domain_xml("web-01"), flavor)
    (device,) = result["devices"]
    uuid, parent = device["uuid"], device["parent"]
    assert device["state"] == "in-use" and device["mdev_type"] == type_id, device
    assert parent in parents
    assert vm.run("virsh domstate web-01").strip() == "running"
    sysfs = f"/sys/bus/mdev/devices/{uuid}"
    assert vm.run(f"basename $(readlink -f {sysfs}/mdev_type)").strip() == type_id
    assert f"/{parent}/" in vm.run(f"readlink -f {sysfs}")
    live = vm.run("virsh dumpxml web-01")
    assert f"<address uuid='{uuid}'/>" in live and "model='vfio-pci'" in live, live
    (instance,) = vm.daemon.instances()
    assert [claim["uuid"] for claim in instance["claims"]] == [uuid]

    vm.daemon.ctl("destroy web-01")
    assert vm.run("virsh list --all --name").strip() == ""
    assert vm.gpus.mdevs() == []
    assert vm.daemon.instances() == []
    assert vm.run("virsh -q nodedev-list --cap mdev --all").strip() == ""
    assert all(record["used"] == 0 for record in vm.daemon.inventory().values())


def test_spawn_and_destroy_on_a_classic_card(vm):
    spawn_and_destroy(vm, "resources:CUSTOM_M60=1", M60, "nvidia-18")


def test_spawn_and_destroy_on_a_virtual_function(vm):
    spawn_and_destroy(vm, "resources:CUSTOM_A2=1,trait:CUSTOM_SILVER=required", vm.gpus.vfs(), "nvidia-746")


def test_card_is_bound_to_the_size_and_full_after_four(vm):
    vm.daemon.fresh(CONFIG)
    vfs = vm.gpus.vfs()
    assert sum(record["total"] for parent, record in vm.daemon.inventory().items() if parent in vfs) == 4
    first = vm.daemon.spawn(domain_xml("vm-0"), "resources:CUSTOM_A2=1")["devices"][0]["parent"]
    devices = {device["address"]: device for device in vm.daemon.json("device list")}
    for vf in vfs:
        open_types = {t["framebuffer_mib"] for t in devices[vf]["types"] if t["available_instances"] > 0}
        assert open_types == (set() if vf == first else {4096}), (vf, open_types)
    totals = [r for parent, r in vm.daemon.inventory().items() if parent in vfs]
    assert sum(r["total"] for r in totals) == 4 and sum(r["used"] for r in totals) == 1, totals
    for number in range(1, 4):
        vm.daemon.spawn(domain_xml(f"vm-{number}"), "resources:CUSTOM_A2=1")
    refused = vm.daemon.try_ctl("--json spawn - --flavor resources:CUSTOM_A2=1", stdin=domain_xml("vm-4"))
    assert refused.code == 3 and '"NoCapacity"' in refused.err, refused
    for parent in [*vfs, *M60]:
        assert parent in refused.err, f"no reason for {parent}: {refused.err}"
    assert len(vm.gpus.mdevs()) == 4 and A2 in refused.err
    assert vm.run("virsh list --name").split() == [f"vm-{number}" for number in range(4)]


def test_eight_at_once(vm):
    vm.daemon.fresh(CONFIG)
    flavors = ["resources:CUSTOM_M60=1"] * 4 + ["resources:CUSTOM_A2=1"] * 4

    def spawn(number):
        return vm.daemon.spawn(domain_xml(f"vm-{number}"), flavors[number])["devices"][0]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        devices = list(pool.map(spawn, range(8)))
    assert len({device["uuid"] for device in devices}) == 8
    assert sorted(vm.gpus.mdevs()) == sorted(device["uuid"] for device in devices)
    assert len(vm.daemon.instances()) == 8
    assert len(vm.run("virsh list --name").split()) == 8
    for number in range(8):
        vm.daemon.ctl(f"destroy vm-{number}")
    assert vm.gpus.mdevs() == [] and vm.daemon.instances() == []


def test_stop_and_start_keep_the_device(vm):
    vm.daemon.fresh(CONFIG)
    uuid = vm.daemon.spawn(domain_xml("web-01"), "resources:CUSTOM_M60=1")["devices"][0]["uuid"]
    vm.daemon.ctl("stop web-01")
    assert vm.run("virsh domstate web-01").strip() == "shut off"
    assert vm.gpus.mdevs() == [uuid]
    vm.daemon.ctl("start web-01")
    assert vm.run("virsh domstate web-01").strip() == "running"
    (instance,) = vm.daemon.instances()
    assert [(c["uuid"], c["state"]) for c in instance["claims"]] == [(uuid, "in-use")]
