"""The rig itself: libvirt lists the parents, makes mdevs, and QEMU runs with them."""

import re

from rig import A2, M60, domain_xml, mdev_xml, node_name

UUID = "11b00000-0000-4000-8000-000000000001"


def node_device_available(vm, parent):
    """{type: availableInstances} as the node device's XML says."""
    xml = vm.run(f"virsh nodedev-dumpxml {node_name(parent)}")
    pairs = re.findall(r"<type id='([^']*)'>.*?<availableInstances>(\d+)<", xml, re.DOTALL)
    return {type_id: int(count) for type_id, count in pairs}


def create(vm, parent, type_id, uuid=UUID):
    """Makes an mdev by nodedev-create; the node device's name."""
    vm.write("/root/mdev.xml", mdev_xml(node_name(parent), type_id, uuid))
    said = vm.run("virsh nodedev-create /root/mdev.xml")
    return re.search(r"mdev_\w+", said).group()


def run_and_give_back(vm, parent, type_id):
    before = vm.gpus.available(parent)
    device = create(vm, parent, type_id)
    assert vm.gpus.available(parent) != before
    vm.write("/root/d.xml", domain_xml("inner", mdevs=[UUID]))
    vm.run("virsh create /root/d.xml")
    assert vm.run("virsh domstate inner").strip() == "running"
    vm.run("virsh destroy inner")
    vm.run(f"virsh nodedev-destroy {device}")
    assert vm.gpus.available(parent) == before


def test_parents_are_listed(vm):
    vm.gpus.settle()
    expected = sorted(node_name(address) for address in [*M60, *vm.gpus.vfs()])
    assert vm.gpus.libvirt_parents() == expected


def test_node_device_shows_types_and_counts(vm):
    for parent in (M60[0], vm.gpus.vfs()[0]):
        assert node_device_available(vm, parent) == vm.gpus.available(parent)
    vm.gpus.create(M60[0], "nvidia-18", UUID).check()
    assert node_device_available(vm, M60[0]) == vm.gpus.available(M60[0])


def test_node_device_shows_identity_and_functions(vm):
    xml = vm.run(f"virsh nodedev-dumpxml {node_name(A2)}")
    assert "<vendor id='0x10de'" in xml and "<product id='0x25b6'" in xml, xml
    assert "mdev_types" not in xml
    assert xml.count("<address domain") == 8, xml
    xml = vm.run(f"virsh nodedev-dumpxml {node_name(vm.gpus.vfs()[0])}")
    assert "phys_function" in xml and "<name>nvidia</name>" in xml, xml


def test_domain_on_a_classic_card(vm):
    run_and_give_back(vm, M60[0], "nvidia-18")


def test_domain_on_a_virtual_function(vm):
    run_and_give_back(vm, vm.gpus.vfs()[2], "nvidia-746")


def test_device_in_use_is_not_destroyed(vm):
    device = create(vm, M60[0], "nvidia-18")
    vm.write("/root/d.xml", domain_xml("inner", mdevs=[UUID]))
    vm.run("virsh create /root/d.xml")
    refused = vm.try_run(f"virsh nodedev-destroy {device}")
    assert refused.code != 0 and "in use" in refused.err, refused
    assert vm.gpus.mdevs() == [UUID]


def test_refused_create_is_an_error(vm):
    create(vm, M60[0], "nvidia-18")
    vm.write("/root/mdev.xml", mdev_xml(node_name(M60[0]), "nvidia-15", UUID[:-1] + "2"))
    refused = vm.try_run("virsh nodedev-create /root/mdev.xml")
    assert refused.code != 0 and "No available instances" in refused.err, refused
    assert vm.gpus.mdevs() == [UUID]


def test_defined_device_starts_and_stops(vm):
    vm.write("/root/mdev.xml", mdev_xml(node_name(M60[1]), "nvidia-20", UUID))
    vm.run("virsh nodedev-define /root/mdev.xml")
    assert vm.gpus.mdevs() == []
    device = vm.until("the definition", "virsh -q nodedev-list --cap mdev --inactive | grep mdev_").strip()
    vm.run(f"virsh nodedev-start {device}")
    assert vm.gpus.mdevs() == [UUID]
    vm.run(f"virsh nodedev-destroy {device} && virsh nodedev-undefine {device}")
    assert vm.gpus.mdevs() == []
