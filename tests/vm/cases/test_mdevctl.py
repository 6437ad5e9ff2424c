"""The rig itself: mdevctl sees the cards and works on them."""

from rig import M60

UUID = "bd000000-0000-4000-8000-000000000001"


def test_types_are_listed_with_descriptions(vm):
    listed = vm.run_json("mdevctl types --dumpjson")
    parents = {parent: types for entry in listed for parent, types in entry.items()}
    assert set(parents) == {*M60, *vm.gpus.vfs()}
    types = {type_id: shown for entry in parents[M60[0]] for type_id, shown in entry.items()}
    assert types["nvidia-18"]["name"] == "GRID M60-2Q", types["nvidia-18"]
    assert types["nvidia-18"]["available_instances"] == 4
    assert types["nvidia-18"]["description"].startswith("num_heads=4, frl_config=60, framebuffer=2048M")


def test_define_start_stop(vm):
    vm.run(f"mdevctl define --uuid {UUID} --parent {M60[0]} --type nvidia-18")
    assert vm.gpus.mdevs() == []
    vm.run(f"mdevctl start --uuid {UUID}")
    assert vm.gpus.mdevs() == [UUID]
    assert f"{UUID} {M60[0]} nvidia-18 manual (defined)" in vm.run("mdevctl list")
    vm.run(f"mdevctl stop --uuid {UUID} && mdevctl undefine --uuid {UUID}")
    assert vm.gpus.mdevs() == []


def test_start_of_an_unavailable_type(vm):
    vm.run(f"mdevctl start --uuid {UUID} --parent {M60[0]} --type nvidia-18")
    refused = vm.try_run(f"mdevctl start --uuid {UUID[:-1]}2 --parent {M60[0]} --type nvidia-15")
    assert refused.code != 0 and "No available instances" in refused.err, refused


def test_autostart_of_a_parents_devices(vm):
    """What mdevctl's udev rule runs when a driver comes. The rule itself fails on Debian 13, where it names
    /usr/sbin/mdevctl and the package has /usr/bin/mdevctl; so nothing starts by itself there."""
    vm.run(f"mdevctl define --auto --uuid {UUID} --parent {M60[0]} --type nvidia-18")
    vm.run(f"mdevctl start-parent-mdevs {M60[0]}")
    assert vm.gpus.mdevs() == [UUID]
