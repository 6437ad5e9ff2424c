"""The rig itself: the state of a vGPU can be saved and loaded, by the same way as in a live migration."""

from rig import M60, domain_xml

UUID = "519a0000-0000-4000-8000-000000000001"
SAVED = "/var/lib/libvirt/qemu/save/rig.save"


def save_domain(vm):
    vm.gpus.create(M60[0], "nvidia-18", UUID).check()
    vm.write("/root/d.xml", domain_xml("inner", mdevs=[UUID], migratable=True))
    vm.run("virsh create /root/d.xml")
    vm.run(f"virsh save inner {SAVED}")


def test_save_and_restore(vm):
    save_domain(vm)
    vm.run(f"virsh restore {SAVED}")
    assert vm.run("virsh domstate inner").strip() == "running"


def test_state_of_another_type_is_refused(vm):
    save_domain(vm)
    vm.gpus.remove(UUID).check()
    vm.gpus.create(M60[0], "nvidia-15", UUID).check()
    refused = vm.try_run(f"virsh restore {SAVED}")
    assert refused.code != 0, refused
    assert "not one of M60-1Q" in vm.run("dmesg | tail -n 20")


def test_without_migratable_qemu_refuses(vm):
    vm.gpus.create(M60[0], "nvidia-18", UUID).check()
    vm.write("/root/d.xml", domain_xml("inner", mdevs=[UUID]))
    vm.run("virsh create /root/d.xml")
    refused = vm.try_run(f"virsh save inner {SAVED}")
    assert refused.code != 0 and "dirty tracking" in refused.err, refused
