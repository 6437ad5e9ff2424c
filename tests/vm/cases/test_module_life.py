"""The rig itself: simgpu survives unbinding, rebinding and unloading with devices there."""

from rig import A2, M60

KERNEL_ONLY = True

UUIDS = [f"11fe0000-0000-4000-8000-{n:012d}" for n in range(4)]


def test_unbinding_takes_the_devices_along(vm):
    before = vm.gpus.available(M60[0])
    for uuid in UUIDS[:2]:
        vm.gpus.create(M60[0], "nvidia-18", uuid).check()
    vm.gpus.unbind(M60[0])
    assert vm.gpus.mdevs() == []
    assert vm.read(f"/sys/bus/pci/devices/{M60[0]}/vendor") == "0x1b36"
    vm.gpus.bind(M60[0])
    assert vm.gpus.available(M60[0]) == before


def test_unbinding_a_function_frees_its_slice(vm):
    first, second = vm.gpus.vfs()[:2]
    vm.gpus.create(first, "nvidia-748", UUIDS[0]).check()
    assert vm.gpus.offered(second) == {}
    vm.gpus.unbind(first)
    assert len(vm.gpus.offered(second)) == 15
    vm.gpus.bind(first)
    assert len(vm.gpus.offered(first)) == 15


def test_unbinding_a_card_takes_its_functions_along(vm):
    vm.gpus.create(vm.gpus.vfs()[0], "nvidia-746", UUIDS[0]).check()
    vm.gpus.unbind(A2)
    assert vm.gpus.parents() == M60
    vm.gpus.bind(A2)
    assert vm.read(f"/sys/bus/pci/devices/{A2}/sriov_numvfs") == "0"


def test_unloading_with_devices(vm):
    vm.gpus.create(M60[0], "nvidia-18", UUIDS[0]).check()
    vm.gpus.create(vm.gpus.vfs()[0], "nvidia-746", UUIDS[1]).check()
    vm.gpus.unload()
    assert vm.gpus.mdevs() == []
    vm.gpus.load(settle=False)
    assert len(vm.gpus.parents()) == 10


def test_many_creators_at_once(vm):
    """Whatever the order, as many succeed as fit, and all are given back."""
    types = f"/sys/bus/pci/devices/{M60[0]}/mdev_supported_types"
    attempt = f"echo $(cat /proc/sys/kernel/random/uuid) > {types}/nvidia-18/create"
    vm.run(f"for n in $(seq 12); do ({attempt}) 2>/dev/null & done; wait")
    assert len(vm.gpus.mdevs()) == 4
    vm.run("for mdev in /sys/bus/mdev/devices/*; do echo 1 > $mdev/remove & done; wait")
    assert vm.gpus.available(M60[0])["nvidia-15"] == 8


def test_unknown_model_is_refused(vm):
    vm.gpus.loaded = None
    refused = vm.try_run(f"simgpu-setup load models={M60[0]}=VOODOO2")
    assert refused.code != 0 and "not taken" in refused.err, refused
