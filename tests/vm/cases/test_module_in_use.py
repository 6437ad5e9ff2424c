"""The rig itself: what a domain has open cannot be taken away, and nothing breaks when one tries."""

from rig import M60, domain_xml, until

UUID = "105e0000-0000-4000-8000-000000000001"


def start_domain(vm):
    vm.gpus.create(M60[0], "nvidia-18", UUID).check()
    vm.write("/root/d.xml", domain_xml("inner", mdevs=[UUID]))
    vm.run("virsh create /root/d.xml")


def test_unloading_in_use_is_refused(vm):
    start_domain(vm)
    refused = vm.try_run("rmmod simgpu")
    assert "in use" in refused.err, refused
    assert vm.gpus.mdevs() == [UUID]


def test_remove_waits_for_the_user(vm):
    """The mdev leaves its bus at once, but its slice is free only when the domain has closed it."""
    start_domain(vm)
    vm.run(f"systemd-run --unit rig-remove sh -c 'echo 1 > /sys/bus/mdev/devices/{UUID}/remove'")
    pid = vm.run("systemctl show --property MainPID --value rig-remove").strip()
    vm.until("the remove to wait", f"grep vfio_unregister_group_dev /proc/{pid}/stack")
    assert vm.gpus.mdevs() == []
    assert vm.gpus.available(M60[0])["nvidia-18"] == 3
    vm.run("virsh destroy inner")
    until("the slice", lambda: vm.gpus.available(M60[0])["nvidia-18"] == 4)
