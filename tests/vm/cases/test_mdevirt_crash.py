"""The daemon dies, or libvirtd does, in the middle of an operation: afterwards it is whole or gone."""

import threading

from rig import domain_xml, until

NEEDS_PACKAGE = True

CONFIG = '[devices]\nenabled_mdev_types = ["GRID M60-2Q"]\n'


def running_jobs(vm):
    return vm.daemon.json("status")["jobs_running"]


def settle(vm):
    """Waits until the daemon has settled what it found; then instances, running domains and devices."""
    vm.daemon.until_answers()
    until("all jobs to end", lambda: running_jobs(vm) == 0, timeout=180)
    return vm.daemon.instances(), vm.run("virsh list --name").split(), vm.gpus.mdevs()


def assert_whole_or_gone(vm):
    instances, domains, mdevs = settle(vm)
    held = [claim["uuid"] for instance in instances for claim in instance["claims"]]
    assert held == mdevs and len(held) <= 1, (instances, mdevs)
    assert domains == [instance["name"] for instance in instances], (instances, domains)
    assert all(claim["state"] == "in-use" for instance in instances for claim in instance["claims"]), instances
    return bool(instances)


def die_in_spawn(vm, point):
    vm.daemon.fresh(CONFIG, fail_points=f"{point}=abort")
    before = vm.daemon.pid()
    lost = vm.daemon.try_ctl("spawn - --flavor resources:VGPU=1", stdin=domain_xml("web-01"))
    assert lost.code == 8, lost
    until("another daemon", lambda: vm.daemon.pid() not in (0, before), timeout=120)
    if assert_whole_or_gone(vm):
        vm.daemon.ctl("destroy web-01")
    assert settle(vm) == ([], [], [])


def test_dies_after_the_device_is_made(vm):
    die_in_spawn(vm, "spawn.make_device.0.after_effect")


def test_dies_after_the_domain_is_defined(vm):
    die_in_spawn(vm, "spawn.define_domain.after_effect")


def test_dies_after_the_domain_is_started(vm):
    die_in_spawn(vm, "spawn.start_domain.after_effect")


def test_dies_in_the_middle_of_a_destroy(vm):
    vm.daemon.fresh(CONFIG, fail_points="destroy.remove_device.0.after_effect=abort")
    vm.daemon.spawn(domain_xml("web-01"))
    before = vm.daemon.pid()
    lost = vm.daemon.try_ctl("destroy web-01")
    assert lost.code == 8, lost
    until("another daemon", lambda: vm.daemon.pid() not in (0, before), timeout=120)
    assert settle(vm) == ([], [], [])


def test_libvirtd_dies_in_the_middle_of_a_spawn(vm):
    vm.daemon.fresh(CONFIG)
    vm.gpus.set(create_delay_ms=4000)
    results = []
    command = "spawn - --flavor resources:VGPU=1"
    spawn = threading.Thread(target=lambda: results.append(vm.daemon.try_ctl(command, stdin=domain_xml("web-01"))))
    spawn.start()
    vm.until("mdevctl at work", "pgrep -x mdevctl", timeout=60)
    vm.run("systemctl kill -s KILL libvirtd")
    spawn.join(timeout=700)
    assert results, "the spawn did not end"
    whole = assert_whole_or_gone(vm)
    assert whole == (results[0].code == 0), results[0]
    assert_events_flow(vm)


def test_libvirtd_restarts_while_idle(vm):
    vm.daemon.fresh(CONFIG)
    vm.run("systemctl restart libvirtd")
    assert_events_flow(vm)


def assert_events_flow(vm):
    """What happens to a domain behind the daemon's back is in the books soon."""
    vm.gpus.set(create_delay_ms=0)
    vm.daemon.spawn(domain_xml("web-02"))
    vm.run("virsh destroy web-02")

    def parked():
        states = {i["name"]: i["claims"][0]["state"] for i in vm.daemon.instances()}
        return states["web-02"] == "parked"

    until("the books to follow", parked, timeout=60)
    vm.daemon.ctl("destroy web-02")
