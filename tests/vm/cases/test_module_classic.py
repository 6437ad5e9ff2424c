"""The rig itself: a card without SR-IOV behaves as a Tesla M60 does. No libvirt in between."""

from rig import M60

KERNEL_ONLY = True

UUIDS = [f"6d600000-0000-4000-8000-{n:012d}" for n in range(20)]


def test_types_are_those_of_the_vendor(vm):
    types = vm.gpus.types(M60[0])
    assert len(types) == 14, sorted(types)
    assert types["nvidia-18"] == {
        "name": "GRID M60-2Q",
        "description": "num_heads=4, frl_config=60, framebuffer=2048M, max_resolution=5120x2880, max_instance=4",
        "device_api": "vfio-pci",
        "available_instances": "4",
    }


def test_free_card_offers_max_instance_of_each_type(vm):
    available = vm.gpus.available(M60[0])
    for type_id, shown in vm.gpus.types(M60[0]).items():
        assert shown["description"].endswith(f"max_instance={available[type_id]}"), (type_id, shown)


def test_first_slice_leaves_types_of_its_size(vm):
    vm.gpus.create(M60[0], "nvidia-18", UUIDS[0]).check()
    same_size = ["nvidia-16", "nvidia-17", "nvidia-18", "nvidia-210"]
    assert vm.gpus.offered(M60[0]) == dict.fromkeys(same_size, 3)
    refused = vm.gpus.create(M60[0], "nvidia-15", UUIDS[1])
    assert "Invalid argument" in refused.err, refused
    vm.gpus.create(M60[0], "nvidia-16", UUIDS[1]).check()
    assert vm.gpus.available(M60[0])["nvidia-18"] == 2


def test_cards_are_separate(vm):
    before = vm.gpus.available(M60[1])
    vm.gpus.create(M60[0], "nvidia-22", UUIDS[0]).check()
    assert vm.gpus.available(M60[1]) == before
    assert vm.gpus.offered(M60[0]) == {}


def test_full_card_refuses(vm):
    for uuid in UUIDS[:4]:
        vm.gpus.create(M60[0], "nvidia-18", uuid).check()
    refused = vm.gpus.create(M60[0], "nvidia-18", UUIDS[4])
    assert "No space left on device" in refused.err, refused
    assert vm.gpus.mdevs() == UUIDS[:4]


def test_last_remove_frees_the_size(vm):
    before = vm.gpus.available(M60[0])
    for uuid in UUIDS[:2]:
        vm.gpus.create(M60[0], "nvidia-18", uuid).check()
    vm.gpus.remove(UUIDS[0]).check()
    assert "nvidia-15" not in vm.gpus.offered(M60[0])
    vm.gpus.remove(UUIDS[1]).check()
    assert vm.gpus.available(M60[0]) == before


def test_sysfs_shows_the_identity_of_the_card(vm):
    device = f"/sys/bus/pci/devices/{M60[0]}"
    assert [vm.read(f"{device}/{name}") for name in ("vendor", "device", "class")] == ["0x10de", "0x13f2", "0x030000"]
