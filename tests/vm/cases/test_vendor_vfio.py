"""The rig itself: virtual functions of the framework vendor-vfio, by themselves and with libvirt and QEMU."""

from rig import A2, M60, domain_xml, node_name

GPUS = {"mode": "vfio", "vfs": 8}

_PCI = "/sys/bus/pci/devices"


def test_free_function_lists_all_types(vm):
    vf = vm.gpus.vfs()[0]
    creatable = vm.gpus.creatable(vf)
    assert sorted(creatable) == list(range(742, 757))
    assert creatable[746] == "NVIDIA A2-4Q"
    assert vm.gpus.current(vf) == 0
    assert vm.read(f"{_PCI}/{vf}/nvidia/creatable_vgpu_types").splitlines()[5] == "746   : NVIDIA A2-4Q"


def test_files_without_a_type(vm):
    directory = f"{_PCI}/{vm.gpus.vfs()[0]}/nvidia"
    for name in ("gpu_instance_id", "placement_id"):
        assert "No such device or address" in vm.try_run(f"cat {directory}/{name}").err, name
    assert vm.run(f"cd {directory} && stat -c '%n %a' *").split("\n")[:2] == [
        "creatable_vgpu_types 444",
        "current_vgpu_type 644",
    ]


def test_only_functions_have_the_directory(vm):
    assert not vm.exists(f"{_PCI}/{A2}/nvidia")
    for vf in vm.gpus.vfs():
        assert not vm.exists(f"{_PCI}/{vf}/mdev_supported_types")
    assert vm.gpus.parents() == M60  # cards without SR-IOV stay with mdev


def test_list_shrinks_to_the_size(vm):
    first, second = vm.gpus.vfs()[:2]
    vm.gpus.set_current(first, 746).check()
    assert vm.gpus.current(first) == 746
    assert vm.gpus.creatable(first) == {}
    assert vm.gpus.creatable(second) == {746: "NVIDIA A2-4Q", 751: "NVIDIA A2-4A", 754: "NVIDIA A2-4C"}
    assert "Invalid argument" in vm.gpus.set_current(second, 744).err


def test_full_card_refuses(vm):
    functions = vm.gpus.vfs()
    for vf in functions[:4]:
        vm.gpus.set_current(vf, 746).check()
    assert vm.gpus.creatable(functions[4]) == {}
    assert "No space left on device" in vm.gpus.set_current(functions[4], 746).err


def test_set_function_must_be_cleared_first(vm):
    vf = vm.gpus.vfs()[0]
    assert "Operation not permitted" in vm.gpus.set_current(vf, 0).err
    vm.gpus.set_current(vf, 746).check()
    assert "Operation not permitted" in vm.gpus.set_current(vf, 746).err
    assert "Operation not permitted" in vm.gpus.set_current(vf, 744).err
    vm.gpus.set_current(vf, 0).check()
    assert len(vm.gpus.creatable(vf)) == 15


def test_bad_writes(vm):
    vf = vm.gpus.vfs()[0]
    for text in ("nvidia-746", "-1", "''", "9999", "0x2ea"):
        assert "Invalid argument" in vm.gpus.set_current(vf, text).err, text
    assert vm.gpus.current(vf) == 0


def test_domain_runs_with_a_function(vm):
    vf = vm.gpus.vfs()[1]
    vm.gpus.set_current(vf, 746).check()
    vm.write("/root/d.xml", domain_xml("inner", vfs=[vf]))
    vm.run("virsh create /root/d.xml")
    assert vm.run("virsh domstate inner").strip() == "running"
    assert "Device or resource busy" in vm.gpus.set_current(vf, 0).err
    vm.run("virsh destroy inner")
    vm.gpus.set_current(vf, 0).check()


def test_domain_needs_a_type(vm):
    vm.write("/root/d.xml", domain_xml("inner", vfs=vm.gpus.vfs()[:1]))
    refused = vm.try_run("virsh create /root/d.xml")
    assert refused.code != 0 and "No such device" in refused.err, refused


def test_another_card_model(vm):
    vm.gpus.load(mode="vfio", vfs=2, models=f"{A2}=L40S")
    first, second = vm.gpus.vfs()
    assert len(vm.gpus.creatable(first)) == 23
    vm.gpus.set_current(first, 1150).check()
    assert vm.gpus.creatable(second) == {1150: "NVIDIA L40S-4Q", 1160: "NVIDIA L40S-4A"}
    assert "product id='0x26b9'" in vm.run(f"virsh nodedev-dumpxml {node_name(first)}")
