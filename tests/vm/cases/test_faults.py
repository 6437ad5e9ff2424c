"""The rig itself: each fault parameter of simgpu does what it says."""

import time

from rig import A2, M60, until

KERNEL_ONLY = True

UUIDS = [f"fa000000-0000-4000-8000-{n:012d}" for n in range(4)]


def timed(call):
    """Seconds that a call took."""
    began = time.monotonic()
    call()
    return time.monotonic() - began


def test_next_creates_fail(vm):
    before = vm.gpus.available(M60[0])
    vm.gpus.set(fail_creates=2)
    for uuid in UUIDS[:2]:
        assert "Input/output error" in vm.gpus.create(M60[0], "nvidia-18", uuid).err
    assert vm.gpus.available(M60[0]) == before
    assert vm.gpus.parameter("fail_creates") == "0"
    vm.gpus.create(M60[0], "nvidia-18", UUIDS[2]).check()


def test_failure_can_be_another_error(vm):
    vm.gpus.set(fail_errno=28, fail_creates=1)
    assert "No space left on device" in vm.gpus.create(M60[0], "nvidia-18", UUIDS[0]).err


def test_create_and_remove_take_their_time(vm):
    vm.gpus.set(create_delay_ms=3000, remove_delay_ms=4000)
    assert timed(lambda: vm.gpus.create(M60[0], "nvidia-18", UUIDS[0]).check()) >= 3
    assert timed(lambda: vm.gpus.remove(UUIDS[0]).check()) >= 4


def test_parents_appear_late(vm):
    vm.gpus.set(register_delay_ms=5000)
    vm.gpus.unbind(M60[0])
    vm.gpus.bind(M60[0])
    assert M60[0] not in vm.gpus.parents()
    until("the parent", lambda: M60[0] in vm.gpus.parents(), timeout=30)


def test_unbound_while_still_to_appear(vm):
    vm.gpus.set(register_delay_ms=600000)
    vm.gpus.unbind(M60[0])
    vm.gpus.bind(M60[0])
    vm.gpus.unbind(M60[0])
    assert vm.gpus.parents() == sorted([M60[1], *vm.gpus.vfs()])


def test_driver_update_renumbers(vm):
    vm.gpus.load(settle=False, id_offset=100)
    assert vm.gpus.types(M60[0])["nvidia-118"]["name"] == "GRID M60-2Q"
    assert vm.gpus.types(vm.gpus.vfs()[0])["nvidia-846"]["name"] == "NVIDIA A2-4Q"


def test_driver_update_gives_an_id_to_another_type(vm):
    vm.gpus.load(settle=False, id_offset=1)
    assert vm.gpus.types(vm.gpus.vfs()[0])["nvidia-746"]["name"] == "NVIDIA A2-2Q"


def test_driver_update_changes_the_brand(vm):
    vm.gpus.load(settle=False, brand="NVIDIA")
    shown = vm.gpus.types(M60[0])["nvidia-18"]
    assert shown["name"] == "NVIDIA M60-2Q"
    assert "framebuffer=2048M" in shown["description"]


def test_rebinding_is_an_update_of_one_card(vm):
    vm.gpus.set(id_offset=1000)
    vm.gpus.unbind(M60[1])
    vm.gpus.bind(M60[1])
    assert "nvidia-1018" in vm.gpus.types(M60[1])
    assert "nvidia-18" in vm.gpus.types(M60[0])


def test_types_can_be_withdrawn(vm):
    vm.gpus.load(settle=False, hide_types="M60-2Q,A2-4Q")
    assert "nvidia-18" not in vm.gpus.types(M60[0])
    assert "nvidia-746" not in vm.gpus.types(vm.gpus.vfs()[0])
    assert len(vm.gpus.types(M60[0])) == 13


def test_driver_name_is_the_prefix(vm):
    vm.gpus.load(settle=False, driver_name="vfio-pci-test")
    assert "vfio-pci-test-18" in vm.gpus.types(M60[0])


def test_faults_work_on_vendor_vfio(vm):
    vm.gpus.load(settle=False, mode="vfio", vfs=2, id_offset=5, models=f"{A2}=A2")
    vf = vm.gpus.vfs()[0]
    assert vm.gpus.creatable(vf)[751] == "NVIDIA A2-4Q"
    vm.gpus.set(fail_creates=1)
    assert "Input/output error" in vm.gpus.set_current(vf, 751).err
    vm.gpus.set_current(vf, 751).check()
