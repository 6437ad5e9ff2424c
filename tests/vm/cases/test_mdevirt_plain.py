"""Plain libvirt: `virsh start` of a domain that says in its metadata what it wants, and what becomes of it."""

from rig import domain_xml, until

NEEDS_PACKAGE = True
OWN_VM = True

UUID = "5b1a0000-0000-4000-8000-00000000000"
# The inner guests run under emulation in an emulated machine: a D-Bus call takes seconds here.
CONFIG = '[devices]\nenabled_mdev_types = ["GRID M60-2Q"]\n\n[hook]\nstart_budget_ms = 60000\n'
OTHER = "/etc/libvirt/hooks/qemu.d/10-other"


def wanting(name, mdevs=(), flavor="resources:VGPU=1"):
    wish = f"<metadata><m:vgpu xmlns:m='urn:mdevirt:domain:1' flavor='{flavor}'/></metadata>"
    return domain_xml(name, mdevs=mdevs).replace("<memory", f"{wish}\n  <memory", 1)


def defined(vm, name, mdevs=(), **more):
    vm.write(f"/root/{name}.xml", wanting(name, mdevs, **more))
    vm.run(f"virsh define /root/{name}.xml")


def states(vm):
    return {i["name"]: [c["state"] for c in i["claims"]] for i in vm.daemon.instances()}


def until_free(vm):
    until("the device to be given back", lambda: vm.gpus.mdevs() == [] and states(vm) == {}, timeout=120)


def test_defined_started_and_destroyed_beside_another_hook(vm):
    vm.daemon.fresh(CONFIG)
    vm.write(OTHER, '#!/bin/sh\ncat >/dev/null\necho "$1 $2" >>/root/other.log\n')
    vm.run(f"chmod +x {OTHER}; rm -f /root/other.log")
    defined(vm, "web-01", [f"{UUID}1"])
    vm.run("virsh start web-01")
    assert vm.gpus.mdevs() == [f"{UUID}1"]
    until("the books to follow", lambda: states(vm) == {"web-01": ["in-use"]}, timeout=60)
    assert "web-01 prepare" in vm.read("/root/other.log")
    # A device that our own VMs hold beside it, and is refused to a clone.
    defined(vm, "clone", [f"{UUID}1"])
    refused = vm.try_run("virsh start clone")
    assert refused.code != 0 and '"clone"' in refused.err and '"web-01"' in refused.err, refused
    vm.run("virsh destroy web-01")
    until_free(vm)
    vm.run("virsh start web-01")
    assert vm.gpus.mdevs() == [f"{UUID}1"]
    vm.run(f"virsh destroy web-01; rm {OTHER}")
    until_free(vm)


def test_metadata_alone_and_a_request_that_cannot_be_served(vm):
    vm.daemon.fresh(CONFIG)
    defined(vm, "web-01")
    vm.until("the device to be written into the definition", "virsh dumpxml web-01 | grep -q \"type='mdev'\"", timeout=60)
    vm.run("virsh start web-01")
    assert len(vm.gpus.mdevs()) == 1
    vm.run("virsh destroy web-01")
    until_free(vm)
    vm.daemon.ctl("domain request web-01 --flavor resources:VGPU=1,trait:CUSTOM_NOWHERE=required")
    refused = vm.try_run("virsh start web-01")
    assert refused.code != 0 and "CUSTOM_NOWHERE" in refused.err, refused
    assert vm.gpus.mdevs() == [] and vm.daemon.instances() == []


def test_a_dead_daemon_starts_nobody_and_kills_nobody(vm):
    vm.daemon.fresh(CONFIG)
    defined(vm, "web-01", [f"{UUID}1"])
    defined(vm, "web-02", [f"{UUID}2"])
    vm.run("virsh start web-01")
    vm.run("systemctl mask -q --runtime mdevirtd && systemctl stop mdevirtd")
    try:
        refused = vm.try_run("virsh start web-02")
        assert refused.code != 0 and "mdevirt" in refused.err, refused
        vm.run("systemctl restart libvirtd")  # its hook is told of every guest that runs
        assert vm.run("virsh domstate web-01").strip() == "running"
        vm.run("virsh destroy web-01")
        assert vm.gpus.mdevs() == [f"{UUID}1"], "nobody was there to take it away"
    finally:
        vm.run("systemctl unmask -q --runtime mdevirtd && systemctl start mdevirtd")
    until_free(vm)
    vm.run("virsh start web-02")
    assert vm.gpus.mdevs() == [f"{UUID}2"]


def test_a_guest_of_autostart_is_up_again_after_a_boot(vm):
    vm.daemon.fresh(CONFIG)
    vm.run("systemctl enable -q mdevirtd")
    for number in (1, 2):
        defined(vm, f"web-0{number}", [f"{UUID}{number}"])
        vm.run(f"virsh start web-0{number}")
    vm.run("virsh autostart web-01")
    vm.reboot()
    vm.daemon.until_answers()
    until("the guest to run", lambda: vm.run("virsh domstate web-01").strip() == "running", timeout=300)
    until("the books to follow", lambda: states(vm) == {"web-01": ["in-use"]}, timeout=120)
    assert vm.gpus.mdevs() == [f"{UUID}1"], "what was not to start holds nothing"

