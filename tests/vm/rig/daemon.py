"""mdevirtd in the guest, as the package runs it: under its systemd unit, on the system bus, with its own books."""

import json
import shlex

from rig.wait import until

CONFIG = "/etc/mdevirt/mdevirt.toml"
TRAITS = "/etc/mdevirt/traits.toml"
LOCK = "/etc/mdevirt/traits.lock"
TEMPLATE = "xml-templates/hostdev-mdev.xml"
DROP_IN = "/run/systemd/system/mdevirtd.service.d/rig.conf"


class Daemon:
    """The daemon of a guest that has the package."""

    def __init__(self, vm):
        self.vm = vm
        self._armed = ""

    def fresh(self, config, fail_points="", start=True, traits="", hostdev_extra=""):
        """Starts it with empty books on this configuration, traits.toml and no lock; `fail_points` as in MDEVIRT_FAILPOINTS.
        `hostdev_extra` comes into each `<hostdev>` that it writes."""
        self.vm.run("systemctl stop mdevirtd; systemctl reset-failed mdevirtd || true; rm -rf /var/lib/mdevirt/*")
        self.vm.run(f"cd /etc/mdevirt && rm -rf {TEMPLATE}")
        if hostdev_extra:
            edit = f"s|</hostdev>|{hostdev_extra}</hostdev>|"
            self.vm.run(f'cd /etc/mdevirt && mkdir -p xml-templates && sed "{edit}" /usr/share/mdevirt/{TEMPLATE} > {TEMPLATE}')
        self.arm(fail_points)
        self.vm.write(CONFIG, config)
        self.vm.run(f"rm -f {LOCK}; cat > {TRAITS}", stdin=traits)
        if start:
            self.vm.run("systemctl start mdevirtd", timeout=300)

    def arm(self, fail_points):
        """Fail points for the next start; an empty text disarms."""
        if fail_points == self._armed:
            return  # to have systemd read its units again takes seconds
        if fail_points:
            self.vm.run(f"mkdir -p {DROP_IN.rsplit('/', 1)[0]}")
            self.vm.write(DROP_IN, f"[Service]\nEnvironment=MDEVIRT_FAILPOINTS={fail_points}\n")
        else:
            self.vm.run(f"rm -f {DROP_IN}")
        self.vm.run("systemctl daemon-reload")
        self._armed = fail_points

    def booted(self):
        """Drop-ins of the runtime are gone after a boot."""
        self._armed = ""

    def pid(self):
        """Process id of the running daemon, 0 if there is none."""
        return int(self.vm.run("systemctl show -P MainPID mdevirtd"))

    def try_ctl(self, command, stdin=""):
        """A line of mdevirtctl; the result has code, out, err."""
        # Several inner QEMUs starting at once take minutes on a busy machine.
        return self.vm.try_run(f"mdevirtctl --timeout 600 {command}", timeout=700, stdin=stdin)

    def ctl(self, command, stdin=""):
        """The output of a line of mdevirtctl that must succeed."""
        return self.try_ctl(command, stdin).check().out

    def json(self, command, stdin=""):
        """What a line of mdevirtctl prints with --json."""
        return json.loads(self.ctl(f"--json {command}", stdin))

    def spawn(self, xml, flavor="resources:VGPU=1"):
        """Spawns a domain; the result of `spawn --json`."""
        return self.json(f"spawn - --flavor {shlex.quote(flavor)}", stdin=xml)

    def instances(self):
        """`instance list --json`."""
        return self.json("instance list")

    def inventory(self):
        """`inventory --json` by parent."""
        return {record["parent"]: record for record in self.json("inventory")}

    def trait(self, name):
        """One line of `trait list --json`."""
        (found,) = [one for one in self.json("trait list") if one["name"] == name]
        return found

    def until_answers(self):
        """Waits until the daemon of the moment answers."""
        until("mdevirtd to answer", lambda: self.try_ctl("status").code == 0, timeout=180)

    def until_idle(self):
        """Waits until it answers and has no job under way: what it found at its start is settled then."""
        self.until_answers()
        until("all jobs to end", lambda: self.json("status")["jobs_running"] == 0, timeout=300)

    def until_whole(self):
        """Waits until it is idle; then books, devices and domains must agree. Returns the names of the instances."""
        self.until_idle()
        instances = self.instances()
        claims = [claim for instance in instances for claim in instance["claims"]]
        names = sorted(instance["name"] for instance in instances)
        running = sorted({i["name"] for i in instances for c in i["claims"] if c["state"] == "in-use"})
        assert sorted(claim["uuid"] for claim in claims) == self.vm.gpus.mdevs(), instances
        assert sorted(self.vm.run("virsh list --all --name").split()) == names, instances
        assert sorted(self.vm.run("virsh list --name").split()) == running, instances
        assert {claim["state"] for claim in claims} <= {"in-use", "parked", "ready"}, instances
        return names
