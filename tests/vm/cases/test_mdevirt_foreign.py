"""Devices that somebody else made before the daemon came: counted, shown, untouched."""

from rig import M60, domain_xml

NEEDS_PACKAGE = True

CONFIG = '[devices]\nenabled_mdev_types = ["GRID M60-2Q"]\n'

ACTIVE = "f0000000-0000-4000-8000-000000000001"
DEFINED = "f0000000-0000-4000-8000-000000000002"


def foreign(vm):
    return {mdev["uuid"]: mdev for mdev in vm.daemon.json("status")["foreign"]}


def assert_untouched(vm):
    assert ACTIVE in vm.gpus.mdevs() and DEFINED not in vm.gpus.mdevs()
    assert vm.exists(f"/etc/mdevctl.d/{M60[0]}/{ACTIVE}") and vm.exists(f"/etc/mdevctl.d/{M60[0]}/{DEFINED}")
    found = foreign(vm)
    assert found[ACTIVE]["active"] and found[ACTIVE]["usage"] == "in no domain", found
    assert not found[DEFINED]["active"], found


def test_foreign_devices_are_counted_and_left_alone(vm):
    vm.run(f"mdevctl define -u {ACTIVE} -p {M60[0]} -t nvidia-18 && mdevctl start -u {ACTIVE}")
    vm.run(f"mdevctl define -u {DEFINED} -p {M60[0]} -t nvidia-18")
    vm.gpus.settle()
    vm.daemon.fresh(CONFIG)
    assert_untouched(vm)
    record = vm.daemon.inventory()[M60[0]]
    assert (record["total"], record["reserved"], record["foreign"]) == (4, 1, 1), record

    for number in range(7):
        vm.daemon.spawn(domain_xml(f"vm-{number}"))
    refused = vm.daemon.try_ctl("spawn - --flavor resources:VGPU=1", stdin=domain_xml("vm-7"))
    assert refused.code == 3, refused
    assert_untouched(vm)
    vm.run("systemctl restart mdevirtd")
    assert_untouched(vm)
    for number in range(7):
        vm.daemon.ctl(f"destroy vm-{number}")
    assert_untouched(vm)
    assert vm.gpus.mdevs() == [ACTIVE]
