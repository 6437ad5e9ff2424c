"""A running guest of ours moves between two hosts by `mdevirtctl migrate --live`: whoever is killed on the way, it runs in one
place, with one device."""

from rig import M60, domain_xml, until

NEEDS_PACKAGE = True
PAIR = True

# The inner guests run under emulation in an emulated machine: a D-Bus call takes seconds here.
CONFIG = '[devices]\nenabled_mdev_types = ["GRID M60-2Q"]\n\n[policy]\nlive_deadline_sec = 20\n\n[hook]\nstart_budget_ms = 60000\n'
TRAITS = '[trait.CUSTOM_GOLD]\ntype = "GRID M60-2Q"\n'
NAMES = ["web-01", "web-02", "web-03"]


def fresh(one, two, config_two=CONFIG, **more):
    # QEMU migrates a device without dirty tracking only if told so, by the device's alias.
    for vm, config in (one, CONFIG), (two, config_two):
        vm.daemon.fresh(config, hostdev_extra="<alias name='ua-mdev0'/>", **more)


def spawned(vm, name="web-01"):
    (device,) = vm.daemon.spawn(domain_xml(name, migratable=True))["devices"]
    return device


def migrate(name, there):
    return f"migrate {name} --to root@{there.hostname} --live"


def in_background(vm, command):
    """A command that nobody waits for."""
    vm.run("systemctl reset-failed migrate 2>/dev/null || true")
    vm.run(f"systemd-run -q --unit=migrate mdevirtctl --timeout 90 {command}")


# What a migration is held by, and how libvirt shows the guest then: it works while its memory is sent, and stands still while its
# device's state is.
WORKING = ("size_hold", "running")
STANDING = ("save_hold", "paused")


def begin(vm, there, held=STANDING):
    """A migration whose command nobody waits for, up to where it is held."""
    hold, state = held
    vm.gpus.set(**{hold: 1})
    in_background(vm, migrate("web-01", there))
    until("the migration to be held", lambda: vm.gpus.parameter("held") != "0", timeout=180)
    assert vm.run("virsh domstate web-01").strip() == state


def go_on(vm):
    vm.gpus.set(save_hold=0, size_hold=0)


def running(vm):
    return sorted(vm.run("virsh list --name").split())


def books(vm):
    return {i["name"]: [(c["role"], c["state"]) for c in i["claims"]] for i in vm.daemon.instances()}


def until_lives_on(vm, other, names=("web-01",)):
    """The guests run here, each with one device that the books have; there is nothing of them on the other host."""
    mine = {name: [("primary", "in-use")] for name in names}
    until("the other host to have nothing of them", lambda: books(other) == {} and other.gpus.mdevs() == [], timeout=240)
    until("this host to have them for its own", lambda: books(vm) == mine, timeout=120)
    assert vm.daemon.until_whole() == sorted(names) == running(vm)
    assert other.daemon.until_whole() == []
    for instance in vm.daemon.instances():
        (claim,) = instance["claims"]
        live, definition = vm.run(f"virsh dumpxml {instance['name']}"), vm.run(f"virsh dumpxml --inactive {instance['name']}")
        assert f"uuid='{claim['uuid']}'" in live and f"uuid='{claim['uuid']}'" in definition
    assert vm.run("virsh domstate web-01").strip() == "running"


def test_there_and_back_between_driver_versions(one, two):
    two.gpus.load(vfs=8, mode="mdev", id_offset=1000)
    fresh(one, two)
    device = spawned(one)
    said = one.daemon.ctl(migrate("web-01", two))
    assert "live migration done of instance web-01 on root@host-2" in said, said
    until_lives_on(two, one)
    ((claim,),) = [i["claims"] for i in two.daemon.instances()]
    assert claim["mdev_type"] == "nvidia-1018" and claim["parent"] in M60 and claim["uuid"] != device["uuid"], claim
    before = two.run("virsh migrate-getmaxdowntime web-01")
    two.daemon.ctl(f"{migrate('web-01', one)} --downtime 5000 --bandwidth 500")
    until_lives_on(one, two)
    assert one.run("virsh migrate-getmaxdowntime web-01") == before


def test_three_at_once(one, two):
    fresh(one, two)
    for name in NAMES:
        spawned(one, name)
    one.run(" & ".join(f"mdevirtctl --timeout 600 {migrate(name, two)}" for name in NAMES) + " & wait", timeout=700)
    until_lives_on(two, one, NAMES)


def test_what_does_not_fit_is_refused_before_anything_is_touched(one, two):
    """No such type, an older lock, no room."""
    two.gpus.load(vfs=8, mode="mdev", hide_types="M60-2Q")
    fresh(one, two, traits=TRAITS)
    device = spawned(one)

    def refused(code, words):
        answer = one.daemon.try_ctl(migrate("web-01", two))
        assert answer.code == code and words in answer.err, answer
        assert running(one) == ["web-01"] and one.gpus.mdevs() == [device["uuid"]]
        assert running(two) == [] and books(two).keys() <= {"other"}

    refused(5, "GRID M60-2Q")
    two.gpus.load(vfs=8, mode="mdev")
    one.daemon.ctl("trait lock")
    refused(5, "the lock of traits there is revision 1")
    two.daemon.ctl("trait lock")
    only = f'\n[mdev."GRID M60-2Q"]\ndevice_addresses = ["{M60[0]}"]\nmax_instances = 1\n'
    two.daemon.fresh(CONFIG + only, traits=TRAITS)
    two.daemon.ctl("trait lock")
    two.daemon.ctl("claim create --instance 6b2f4c1e-8a57-4c55-9d3c-0e1f2a3b4c5d --name other --flavor resources:VGPU=1")
    refused(3, "max_instances")
    two.daemon.ctl("claim release other")


def test_daemons_and_command_killed_on_the_way(one, two):
    """libvirt goes on by itself; whoever comes back finds out."""
    fresh(one, two)
    spawned(one)
    begin(one, two)
    one.run("systemctl kill -s KILL migrate; systemctl kill -s KILL mdevirtd")
    go_on(one)
    until_lives_on(two, one)

    begin(two, one)
    one.run("systemctl kill -s KILL mdevirtd")
    go_on(two)
    until_lives_on(one, two)


def test_broken_off_by_a_dead_libvirtd_and_a_cut_wire(one, two):
    """The guest goes on where it was, and the target keeps nothing for it."""
    fresh(one, two)
    device = spawned(one)
    wire = two.run("ip -o -4 addr show to 10.77.0.0/24").split()[1]

    def stays():
        go_on(one)
        until_lives_on(one, two)
        assert one.gpus.mdevs() == [device["uuid"]]
        one.run("systemctl kill -s KILL migrate || true")

    begin(one, two, WORKING)
    two.run("systemctl kill -s KILL libvirtd")
    until("libvirt to have ended what was half there", lambda: two.try_run("virsh list --all --name").out.strip() == "", timeout=120)
    stays()

    begin(one, two, WORKING)
    two.run(f"ip link set {wire} down")
    go_on(one)
    until("libvirt to have noticed", lambda: "None" in one.run("virsh domjobinfo web-01"), timeout=180)
    two.run(f"ip link set {wire} up")
    stays()


def test_reverted_on_the_way(one, two):
    """A guest with much to send, and little room on the wire; the command says how far it is."""
    fresh(one, two)
    kernel, initrd = one.run("ls /boot/vmlinuz-* /boot/initrd.img-*").split()[::-1]
    one.daemon.spawn(domain_xml("web-01", migratable=True, memory_mib=256, kernel=(kernel, initrd)))
    (device,) = one.gpus.mdevs()
    before = one.run("virsh migrate-getmaxdowntime web-01")
    in_background(one, f"{migrate('web-01', two)} --bandwidth 1 --downtime 5000")

    def sending():
        steps = [job["step"] for job in one.daemon.json("job list") if job["op"] == "live-commit"]
        return [step for step in steps if "MiB sent" in step and " 0 MiB sent" not in step]

    until("a part of it to be sent", sending, timeout=180)
    one.daemon.ctl("revert web-01")
    until_lives_on(one, two)
    assert one.gpus.mdevs() == [device]
    assert one.run("virsh migrate-getmaxdowntime web-01") == before != "Maximum downtime: 5000"
