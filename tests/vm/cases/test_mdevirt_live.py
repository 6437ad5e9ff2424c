"""A running guest moves between two hosts by plain `virsh migrate`: it gets the same type there, or stays where it is."""

from rig import M60, domain_xml, until

NEEDS_PACKAGE = True
PAIR = True

UUID = "5b1b0000-0000-4000-8000-00000000000"
# The inner guests run under emulation in an emulated machine: a D-Bus call takes seconds here.
CONFIG = '[devices]\nenabled_mdev_types = ["GRID M60-2Q"]\n\n[hook]\nstart_budget_ms = 60000\n'
TRAITS = '[trait.CUSTOM_GOLD]\ntype = "GRID M60-2Q"\n'


def wanting(name, uuid):
    wish = "<metadata><m:vgpu xmlns:m='urn:mdevirt:domain:1' flavor='resources:VGPU=1'/></metadata>"
    return domain_xml(name, mdevs=[uuid], migratable=True).replace("<memory", f"{wish}\n  <memory", 1)


def started(vm, *numbers):
    for number in numbers:
        vm.write("/root/d.xml", wanting(f"web-0{number}", f"{UUID}{number}"))
        vm.run("virsh define /root/d.xml")
        vm.run(f"virsh start web-0{number}")
    for number in numbers:
        can_move(vm, f"web-0{number}")


def can_move(vm, name):
    vm.until("the metadata to say what the guest has", f"virsh dumpxml {name} | grep -q 'held=.*{vm.hostname}'", timeout=120)


def migrate(name, there):
    return f"virsh migrate --live --persistent --undefinesource {name} qemu+ssh://root@{there.hostname}/system"


def books(vm):
    return {i["name"]: [(c["uuid"], c["state"]) for c in i["claims"]] for i in vm.daemon.instances()}


def until_lives_on(vm, other, names):
    """The guests run here, each with one device that the books have; there is nothing of them on the other host."""
    until("the source to give back", lambda: other.gpus.mdevs() == [] and books(other) == {}, timeout=180)
    until("the target to follow", lambda: [s for h in books(vm).values() for _, s in h] == ["in-use"] * len(names), timeout=60)
    assert sorted(vm.run("virsh list --name").split()) == sorted(names)
    assert sorted(uuid for held in books(vm).values() for uuid, _ in held) == vm.gpus.mdevs()
    for name, held in books(vm).items():
        assert f"uuid='{held[0][0]}'" in vm.run(f"virsh dumpxml {name}")


def fresh(one, two, **more):
    for vm in (one, two):
        vm.daemon.fresh(CONFIG, **more)


def test_there_and_back_between_driver_versions(one, two):
    two.gpus.load(vfs=8, mode="mdev", id_offset=1000)
    fresh(one, two)
    started(one, 1)
    one.run(migrate("web-01", two))
    until_lives_on(two, one, ["web-01"])
    ((claim,),) = [i["claims"] for i in two.daemon.instances()]
    assert claim["mdev_type"] == "nvidia-1018" and claim["parent"] in M60, claim
    can_move(two, "web-01")
    two.run(migrate("web-01", one))
    until_lives_on(one, two, ["web-01"])


def test_three_at_once(one, two):
    fresh(one, two)
    started(one, 1, 2, 3)
    names = ["web-01", "web-02", "web-03"]
    one.run(" & ".join(migrate(name, two) for name in names) + " & wait")
    until_lives_on(two, one, names)


def test_what_does_not_fit_is_refused_before_anything_is_touched(one, two):
    """No such type, an older lock, no room: virsh says which."""
    two.gpus.load(vfs=8, mode="mdev", hide_types="M60-2Q")
    fresh(one, two, traits=TRAITS)
    started(one, 1)

    def refused(words):
        answer = one.try_run(migrate("web-01", two))
        assert answer.code != 0 and words in answer.err, answer
        assert one.run("virsh domstate web-01").strip() == "running" and one.gpus.mdevs() == [f"{UUID}1"]
        assert books(two).keys() <= {"other"} and two.run("virsh list --all --name").split() == []

    refused("GRID M60-2Q")
    two.gpus.load(vfs=8, mode="mdev")
    two.daemon.ctl("trait lock")
    refused("the lock of traits there is none")
    only = f'\n[mdev."GRID M60-2Q"]\ndevice_addresses = ["{M60[0]}"]\nmax_instances = 1\n'
    two.daemon.fresh(CONFIG + only, traits=TRAITS)
    two.daemon.ctl("claim create --instance 6b2f4c1e-8a57-4c55-9d3c-0e1f2a3b4c5d --name other --flavor resources:VGPU=1")
    refused("max_instances")
    two.daemon.ctl("claim release other")


def test_interrupted(one, two):
    """Whoever began it is gone: the guest goes on where it was, and the target gives back what it has made."""
    fresh(one, two)
    started(one, 1)
    one.gpus.set(size_hold=1)
    one.run(f"systemd-run -q --unit=virsh {migrate('web-01', two)}")
    until("the migration to be held", lambda: one.gpus.parameter("held") != "0", timeout=180)
    one.run("systemctl kill -s KILL virsh")
    one.gpus.set(size_hold=0)
    until_lives_on(one, two, ["web-01"])
    assert one.run("virsh domstate web-01").strip() == "running" and one.gpus.mdevs() == [f"{UUID}1"]
