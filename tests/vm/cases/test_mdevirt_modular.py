"""libvirt's daemons of one driver each in the place of libvirtd: the daemon, the hook and plain virsh work as with libvirtd."""

from rig import domain_xml, until

NEEDS_PACKAGE = True
OWN_VM = True

UUID = "60d00000-0000-4000-8000-000000000001"
CONFIG = '[devices]\nenabled_mdev_types = ["GRID M60-2Q"]\n\n[hook]\nstart_budget_ms = 60000\n'
OTHER_HOOK = "/etc/libvirt/hooks/qemu.d/10-other"


def modular(vm):
    """Clients ask each daemon by itself, and there is no libvirtd."""
    vm.write("/etc/libvirt/libvirt.conf", 'uri_default = "qemu:///system"\nremote_mode = "direct"\n')
    vm.run("systemctl start virtqemud")  # which ends libvirtd
    # A second hook beside ours.
    vm.write(OTHER_HOOK, '#!/bin/sh\ncat > /dev/null\necho "$@" >> /run/other-hook\n')
    vm.run(f"chmod +x {OTHER_HOOK}; systemctl restart virtqemud")


def test_spawned_and_plain_guests_and_a_daemon_that_dies(vm):
    modular(vm)
    vm.daemon.fresh(CONFIG)
    assert vm.daemon.json("status")["connected"]
    (device,) = vm.daemon.spawn(domain_xml("web-01"))["devices"]
    assert vm.gpus.mdevs() == [device["uuid"]] and vm.run("virsh list --name").split() == ["web-01"]

    wish = "<metadata><m:vgpu xmlns:m='urn:mdevirt:domain:1' flavor='resources:VGPU=1'/></metadata>"
    vm.write("/root/d.xml", domain_xml("plain", mdevs=[UUID]).replace("<memory", f"{wish}\n  <memory", 1))
    vm.run("virsh define /root/d.xml && virsh start plain")
    assert sorted(vm.gpus.mdevs()) == sorted([device["uuid"], UUID])

    clone = domain_xml("clone", mdevs=[UUID], uuid="60d00000-0000-4000-8000-000000000002")
    vm.write("/root/c.xml", clone)
    refused = vm.try_run("virsh create /root/c.xml")
    assert refused.code != 0 and '"clone"' in refused.err and '"plain"' in refused.err, refused

    vm.run("virsh destroy plain")
    until("its device to go back", lambda: vm.gpus.mdevs() == [device["uuid"]], timeout=120)
    told = vm.run("cat /run/other-hook")
    assert "plain prepare begin -" in told and "web-01 start begin -" in told, told

    vm.run("systemctl kill -s KILL virtqemud virtnodedevd; systemctl reset-failed virtqemud virtnodedevd; systemctl start virtqemud")
    until("the daemon to be connected again", lambda: vm.daemon.json("status")["connected"], timeout=120)
    vm.run("virsh undefine plain")
    vm.daemon.spawn(domain_xml("web-02"))
    assert vm.daemon.until_whole() == ["web-01", "web-02"]
    vm.daemon.ctl("destroy web-01")
    vm.daemon.ctl("destroy web-02")
    assert vm.daemon.until_whole() == [] and vm.gpus.mdevs() == []
