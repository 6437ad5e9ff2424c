"""The rig itself: a card with SR-IOV in mdev mode behaves as an A2 does. No libvirt in between."""

from rig import A2

KERNEL_ONLY = True

UUIDS = [f"a2000000-0000-4000-8000-{n:012d}" for n in range(20)]
FOUR_GIB = ["nvidia-746", "nvidia-751", "nvidia-754"]


def test_card_offers_nothing_itself(vm):
    assert not vm.exists(f"/sys/bus/pci/devices/{A2}/mdev_supported_types")
    assert vm.read(f"/sys/bus/pci/devices/{A2}/sriov_numvfs") == "8"


def test_free_functions_offer_one_of_each(vm):
    for vf in vm.gpus.vfs():
        assert vm.gpus.available(vf) == {f"nvidia-{n}": 1 for n in range(742, 757)}, vf


def test_types_are_those_of_the_vendor(vm):
    types = vm.gpus.types(vm.gpus.vfs()[0])
    assert types["nvidia-746"] == {
        "name": "NVIDIA A2-4Q",
        "description": "num_heads=4, frl_config=60, framebuffer=4096M, max_resolution=7680x4320, max_instance=4",
        "device_api": "vfio-pci",
        "available_instances": "1",
    }
    assert types["nvidia-754"]["name"] == "NVIDIA A2-4C"


def test_taken_function_offers_nothing_others_its_size(vm):
    first, second = vm.gpus.vfs()[:2]
    vm.gpus.create(first, "nvidia-746", UUIDS[0]).check()
    assert vm.gpus.offered(first) == {}
    assert vm.gpus.offered(second) == dict.fromkeys(FOUR_GIB, 1)
    assert "No space left" in vm.gpus.create(first, "nvidia-746", UUIDS[1]).err
    assert "Invalid argument" in vm.gpus.create(second, "nvidia-744", UUIDS[1]).err
    vm.gpus.create(second, "nvidia-751", UUIDS[1]).check()


def test_framebuffer_limits_the_card(vm):
    functions = vm.gpus.vfs()
    for vf, uuid in zip(functions[:4], UUIDS, strict=False):
        vm.gpus.create(vf, "nvidia-746", uuid).check()
    for vf in functions:
        assert vm.gpus.offered(vf) == {}, vf
    assert "No space left" in vm.gpus.create(functions[4], "nvidia-746", UUIDS[4]).err
    vm.gpus.remove(UUIDS[2]).check()
    assert vm.gpus.offered(functions[7]) == dict.fromkeys(FOUR_GIB, 1)


def test_functions_can_be_fewer_than_slices(vm):
    for vf, uuid in zip(vm.gpus.vfs(), UUIDS, strict=False):
        vm.gpus.create(vf, "nvidia-744", uuid).check()
    assert len(vm.gpus.mdevs()) == 8


def test_functions_bind_by_themselves(vm):
    vm.gpus.set_vfs(3)
    assert len(vm.gpus.vfs()) == 3
    for vf in vm.gpus.vfs():
        assert vm.gpus.offered(vf)["nvidia-748"] == 1
        assert vm.read(f"/sys/bus/pci/devices/{vf}/device") == "0x25b6"


def test_sixteen_functions_are_possible(vm):
    vm.gpus.load(settle=False, vfs=16)
    functions = vm.gpus.vfs()
    assert len(functions) == 16 and functions[-1] == "0000:01:02.0", functions
    for vf, uuid in zip(functions, UUIDS, strict=False):
        vm.gpus.create(vf, "nvidia-744", uuid).check()
