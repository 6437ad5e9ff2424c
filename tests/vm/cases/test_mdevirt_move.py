"""Cold migration and evacuation between two hosts on one wire."""

from rig import SHARED, domain_xml, until

NEEDS_PACKAGE = True
PAIR = True
SUITES = ("trixie", "bookworm")

CONFIG = '[devices]\nenabled_mdev_types = ["GRID M60-2Q"]\n'
THERE = "root@host-2"


def prepared(one, two, points_one="", points_two=""):
    """Both daemons with empty books, and a VM on the source; its device."""
    for vm, points in (one, points_one), (two, points_two):
        vm.daemon.fresh(CONFIG, fail_points=points)
        vm.run("systemctl enable -q mdevirtd && sync")
    (device,) = one.daemon.spawn(domain_xml("web-01", disk=SHARED))["devices"]
    return device


def running(vm):
    return vm.run("virsh list --name").split()


def assert_lives_on(vm, other):
    """The VM runs here with one device, and there is nothing of it on the other host."""
    assert vm.daemon.until_whole() == ["web-01"] == running(vm)
    ((claim,),) = [instance["claims"] for instance in vm.daemon.instances()]
    xml = vm.run("virsh dumpxml web-01")
    assert (claim["role"], claim["state"]) == ("primary", "in-use") and f"uuid='{claim['uuid']}'" in xml, claim
    assert SHARED in xml
    assert other.daemon.until_whole() == [] and other.gpus.mdevs() == []
    return claim


def test_migrated_reverted_and_confirmed(one, two):
    """Between driver versions that number the types differently."""
    two.gpus.load(vfs=8, mode="mdev", id_offset=1000)
    device = prepared(one, two)
    one.daemon.ctl(f"migrate web-01 --to {THERE}")
    assert (running(one), running(two)) == ([], ["web-01"])
    assert one.gpus.mdevs() == [device["uuid"]] != two.gpus.mdevs(), "both sides keep theirs until it is decided"

    one.daemon.ctl("revert web-01")
    assert assert_lives_on(one, two)["uuid"] == device["uuid"]

    one.daemon.ctl(f"migrate web-01 --to {THERE}")
    one.daemon.ctl("confirm web-01")
    there = assert_lives_on(two, one)
    assert there["type_name"] == device["type_name"] and there["mdev_type"] != device["mdev_type"]

    # And back, driven from where it is.
    two.daemon.ctl("migrate web-01 --to root@host-1 --confirm")
    assert_lives_on(one, two)


def begin(vm):
    """A migration whose command nobody waits for."""
    vm.run(f"systemd-run -q --unit=migrate mdevirtctl migrate web-01 --to {THERE}")


def test_power_of_the_source_is_cut(one, two):
    device = prepared(one, two, points_one="migrate-begin.record.before_effect=pause")
    begin(one)
    until("the guest to be off", lambda: not running(one), timeout=180)
    one.cut_power()
    one.power_on()
    assert one.daemon.until_whole() == ["web-01"] and one.gpus.mdevs() == [device["uuid"]]
    assert two.daemon.until_whole() == []
    one.daemon.ctl(f"migrate web-01 --to {THERE} --confirm")
    assert two.daemon.until_whole() == ["web-01"] and one.daemon.until_whole() == []
    if not running(two):
        two.daemon.ctl("start web-01")
    assert_lives_on(two, one)


def test_power_of_the_target_is_cut(one, two):
    prepared(one, two, points_two="migrate-finish.start_domain.before_effect=pause")
    begin(one)
    until("the domain to be defined there", lambda: two.run("virsh list --all --name").split(), timeout=300)
    two.cut_power()
    one.run("systemctl kill -s KILL migrate")
    two.power_on()
    two.daemon.until_idle()
    # The same command goes on.
    one.daemon.ctl(f"migrate web-01 --to {THERE} --confirm")
    assert_lives_on(two, one)


def test_evacuated_from_a_dead_host_that_comes_back(one, two):
    prepared(one, two)
    document = one.daemon.ctl("instance export web-01")
    one.cut_power()
    two.daemon.ctl("evacuate -", stdin=document)
    assert running(two) == ["web-01"]
    one.power_on()
    one.daemon.until_idle()
    two.daemon.ctl("--host root@host-1 instance forget web-01")
    assert_lives_on(two, one)
