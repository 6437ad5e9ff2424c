"""The power goes in the middle of a spawn: after the next boot the instance is whole or gone, and nothing is left over."""

from rig import domain_xml, until

NEEDS_PACKAGE = True
OWN_VM = True
SUITES = ("trixie", "bookworm")

CONFIG = '[devices]\nenabled_mdev_types = ["GRID M60-2Q"]\n'


def cut_in_spawn(vm, point, reached):
    vm.daemon.fresh(CONFIG, fail_points=f"{point}=pause")
    vm.run("systemctl enable -q mdevirtd && sync")  # what was installed is on the disk, as on any host that is in use
    vm.write("/root/web-01.xml", domain_xml("web-01"))
    vm.run("systemd-run -q mdevirtctl spawn /root/web-01.xml --flavor resources:VGPU=1")
    until(f"the spawn to come to {point}", lambda: reached(vm), timeout=180)
    vm.cut_power()
    vm.power_on()
    names = vm.daemon.until_whole()
    assert names in ([], ["web-01"]), names
    # And the host works as before.
    if names:
        vm.daemon.ctl("destroy web-01")
    vm.daemon.spawn(domain_xml("web-02"))
    assert vm.daemon.until_whole() == ["web-02"]
    vm.daemon.ctl("destroy web-02")
    assert vm.daemon.until_whole() == []


def test_cut_when_the_device_is_made(vm):
    cut_in_spawn(vm, "spawn.make_device.0.after_effect", lambda vm: vm.gpus.mdevs())


def test_cut_when_the_domain_runs(vm):
    cut_in_spawn(vm, "spawn.start_domain.after_effect", lambda vm: vm.run("virsh list --name").split())
