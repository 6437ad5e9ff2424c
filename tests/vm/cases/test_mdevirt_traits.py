"""A trait stays with its type while the driver under it changes."""

from rig import M60, domain_xml, until

NEEDS_PACKAGE = True

CONFIG = '[devices]\nenabled_mdev_types = ["GRID M60-2Q"]\n'
TRAITS = '[trait.CUSTOM_GOLD]\ntype = "GRID M60-2Q"\n'
GOLD = "resources:VGPU=1,trait:CUSTOM_GOLD=required"


def rebind(vm, cards, **parameters):
    """The cards come back under a driver with these parameters, as after an update of it."""
    for card in cards:
        vm.gpus.unbind(card)
    vm.gpus.set(**parameters)
    for card in cards:
        vm.gpus.bind(card)
    vm.gpus.settle()


def test_renumbered_while_a_vm_holds_a_slice(vm):
    vm.daemon.fresh(CONFIG, traits=TRAITS)
    held = vm.daemon.spawn(domain_xml("vm-a"), GOLD)["devices"][0]
    (other,) = [card for card in M60 if card != held["parent"]]
    lock = vm.daemon.json("trait lock")
    assert lock["revision"] == 1 and lock["traits"] == 1 and lock["left_out"] == [], lock

    rebind(vm, [other], id_offset=1000)

    def followed():
        return {(local["parent"], local["id"]) for local in vm.daemon.trait("CUSTOM_GOLD")["local_types"]}

    moved = {(held["parent"], "nvidia-18"), (other, "nvidia-1018")}
    until("the daemon to follow the new ids", lambda: followed() == moved, timeout=180)
    fresh = vm.daemon.spawn(domain_xml("vm-b"), GOLD)["devices"][0]
    assert (fresh["parent"], fresh["mdev_type"], fresh["type_name"]) == (other, "nvidia-1018", "GRID M60-2Q"), fresh
    assert sorted(vm.gpus.mdevs()) == sorted([held["uuid"], fresh["uuid"]])
    assert vm.run("virsh domstate vm-a").strip() == "running"
    assert held["uuid"] in vm.run("virsh dumpxml vm-a")
    gold = vm.daemon.trait("CUSTOM_GOLD")
    assert gold["state"] == "ok" and gold["locked"], gold
    told = [(line["parent"], line["kind"], line["was"], line["now"]) for line in gold["history"]]
    assert told == [(other, "renumbered", "nvidia-18", "nvidia-1018")], told
    assert vm.daemon.json("trait check")["agree"]


def test_renamed_is_quarantined_until_accepted(vm):
    vm.daemon.fresh(CONFIG, traits=TRAITS)
    vm.daemon.ctl("trait lock")
    rebind(vm, M60, brand="GRID NG")
    until("the daemon to see the drift", lambda: vm.daemon.trait("CUSTOM_GOLD")["state"] == "drift", timeout=180)

    refused = vm.daemon.try_ctl(f"--json spawn - --flavor {GOLD}", stdin=domain_xml("vm-a"))
    assert refused.code == 5 and '"TraitDrift"' in refused.err, refused
    assert "GRID NG M60-2Q" in refused.err and vm.gpus.mdevs() == [], refused
    for record in vm.daemon.inventory().values():
        assert record["reserved"] == record["total"] > 0, record
    assert vm.daemon.try_ctl("trait check").code == 5
    assert vm.daemon.try_ctl("doctor").code == 1
    assert "trait accept CUSTOM_GOLD" in vm.daemon.ctl("status")
    logged = vm.run("journalctl -u mdevirtd -o cat | grep -c 'drift: the local type' || true")
    # One line for the trait and one for the enabled type, on each of the two cards.
    assert int(logged) == 4, logged

    vm.daemon.ctl("trait accept CUSTOM_GOLD --reason 'the new driver calls it so'")
    gold = vm.daemon.trait("CUSTOM_GOLD")
    assert gold["state"] == "ok" and gold["type_name"] == "GRID NG M60-2Q", gold
    assert gold["history"][-1]["reason"] == "the new driver calls it so", gold
    device = vm.daemon.spawn(domain_xml("vm-a"), GOLD)["devices"][0]
    assert device["type_name"] == "GRID NG M60-2Q" and vm.gpus.mdevs() == [device["uuid"]]
    assert vm.daemon.json("trait check")["agree"]
    assert vm.daemon.json("trait check")["lock"]["revision"] == 2
