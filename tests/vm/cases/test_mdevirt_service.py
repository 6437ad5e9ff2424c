"""The installed service: its unit, who may do what, configuration reload."""

from rig import M60, domain_xml

NEEDS_PACKAGE = True

CONFIG = '[devices]\nenabled_mdev_types = ["GRID M60-2Q"]\n'


def test_unit_is_active_with_watchdog_and_journal(vm):
    vm.daemon.fresh(CONFIG)
    shown = vm.run("systemctl show mdevirtd -p ActiveState,Type,WatchdogUSec,StatusText")
    assert "ActiveState=active" in shown and "Type=notify" in shown and "WatchdogUSec=3min" in shown, shown
    assert "StatusText=serving" in shown, shown
    vm.daemon.spawn(domain_xml("web-01"))
    entry = vm.run("journalctl -u mdevirtd -o verbose -n 50")
    assert "INSTANCE=" in entry and "operation done" in entry, entry


def test_others_read_and_do_not_change(vm):
    vm.daemon.fresh(CONFIG)
    vm.run("id tenant || useradd -m tenant; gpasswd -d tenant mdevirt || true")
    seen = vm.run("runuser -u tenant -- mdevirtctl --json inventory")
    assert M60[0] in seen
    vm.write("/tmp/d.xml", domain_xml("web-01"))
    refused = vm.try_run("runuser -u tenant -- mdevirtctl spawn /tmp/d.xml --flavor resources:VGPU=1")
    assert refused.code == 7 and "org.mdevirt1.manage" in refused.err, refused
    assert vm.try_run("runuser -u tenant -- mdevirtctl reload").code == 7
    assert vm.daemon.instances() == [] and vm.gpus.mdevs() == []

    vm.run("gpasswd -a tenant mdevirt")
    vm.run("runuser -u tenant -- mdevirtctl spawn /tmp/d.xml --flavor resources:VGPU=1")
    assert [instance["name"] for instance in vm.daemon.instances()] == ["web-01"]


def test_bad_configuration_leaves_the_running_one(vm):
    vm.daemon.fresh(CONFIG)
    before = vm.daemon.inventory()
    vm.write("/etc/mdevirt/mdevirt.toml", CONFIG + '[mdev."GRID M60-2Q"]\nmdev_class = "T4_2q"\n')
    refused = vm.try_run("mdevirtctl reload")
    assert refused.code == 2 and "T4_2q" in refused.err, refused
    assert vm.try_run("systemctl reload mdevirtd").code != 0
    assert vm.daemon.inventory() == before
    vm.write("/etc/mdevirt/mdevirt.toml", CONFIG.replace("2Q", "4Q"))
    vm.run("systemctl reload mdevirtd")
    assert {record["type_name"] for record in vm.daemon.inventory().values()} == {"GRID M60-4Q"}


def test_starting_on_a_bad_configuration_ends(vm):
    vm.daemon.fresh("[devices\n", start=False)
    assert vm.try_run("systemctl start mdevirtd", timeout=300).code != 0
    shown = vm.run("systemctl show mdevirtd -p ActiveState,ExecMainStatus")
    assert "ActiveState=failed" in shown and "ExecMainStatus=2" in shown, shown


def test_bad_domains_change_nothing(vm):
    vm.daemon.fresh(CONFIG)
    for xml in ("", "<domain", "<!DOCTYPE x><domain/>", "<domain>" * 1000, domain_xml("x")[:-20]):
        refused = vm.daemon.try_ctl("--json spawn - --flavor resources:VGPU=1", stdin=xml)
        assert refused.code == 2 and '"InvalidDomainXml"' in refused.err, refused
    assert vm.daemon.instances() == [] and vm.gpus.mdevs() == []
