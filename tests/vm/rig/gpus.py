"""The simulated GPUs of a guest."""

# Addresses given by rig.qemu.
M60 = ["0000:00:10.0", "0000:00:11.0"]
A2 = "0000:01:00.0"

DEFAULT = {"mode": "mdev", "vfs": 8}

_PCI = "/sys/bus/pci/devices"
_PARAMETERS = "/sys/module/simgpu/parameters"


class Gpus:
    """Loads simgpu and reads what it shows. Addresses are PCI addresses, types are ids such as `nvidia-18`."""

    def __init__(self, vm):
        self._vm = vm
        self.loaded = dict(DEFAULT)  # what simgpu-setup.service does at boot

    def load(self, vfs=8, settle=True, **parameters):
        """Loads the module afresh and, unless `settle` is off, waits until libvirt has followed."""
        words = " ".join(f"{name}={value}" for name, value in parameters.items())
        self.loaded = None
        self._vm.run(f"simgpu-setup load --vfs {vfs} {words}")
        self.loaded = {"vfs": vfs, **parameters}
        if settle:
            self.settle()

    def unload(self):
        """Removes the module."""
        self.loaded = None
        self._vm.run("simgpu-setup unload")

    def unbind(self, address):
        """Takes a function from its driver. The module is loaded afresh before the next test."""
        self.loaded = None
        self._vm.run(f"echo {address} > {_PCI}/{address}/driver/unbind")

    def bind(self, address):
        """Gives a function back to its driver."""
        self._vm.run(f"echo {address} > /sys/bus/pci/drivers_probe")

    def set_vfs(self, count, pf=A2):
        """Changes the number of virtual functions. The module is loaded afresh before the next test."""
        self.loaded = None
        self._vm.run(f"cd {_PCI}/{pf} && echo 0 > sriov_numvfs && echo {count} > sriov_numvfs")

    def settle(self):
        """Waits until libvirt has worked off all device events up to now."""
        self._vm.run("libvirt-barrier", timeout=400)

    def set(self, **faults):
        """Writes module parameters, as fail_creates=2."""
        for name, value in faults.items():
            self._vm.write(f"{_PARAMETERS}/{name}", str(value))

    def parameter(self, name):
        """The text of a module parameter."""
        return self._vm.read(f"{_PARAMETERS}/{name}")

    def vfs(self, pf=A2):
        """Addresses of a card's virtual functions, in order."""
        return self._vm.run(
            f"for n in $(seq 0 $(($(cat {_PCI}/{pf}/sriov_numvfs) - 1))); do "
            f"basename $(readlink -f {_PCI}/{pf}/virtfn$n); done"
        ).split()

    def parents(self):
        """Addresses of all mdev parents."""
        return sorted(self._vm.run("ls /sys/class/mdev_bus 2>/dev/null || true").split())

    def node_names(self):
        """The parents as libvirt names them."""
        return sorted(node_name(address) for address in self.parents())

    def libvirt_parents(self):
        """Names of libvirt's node devices with types."""
        return sorted(self._vm.run("virsh nodedev-list --cap mdev_types").split())

    def types(self, parent):
        """All types of a parent: {id: {"name", "description", "device_api", "available_instances"}}."""
        base = f"{_PCI}/{parent}/mdev_supported_types"
        found = {}
        for line in self._vm.run(f"cd {base} && grep -r . --include='[nda]*' .").splitlines():
            path, value = line.split(":", 1)
            _, type_id, attribute = path.split("/", 2)
            found.setdefault(type_id, {})[attribute] = value
        return found

    def available(self, parent):
        """{type id: available_instances} of a parent."""
        return {type_id: int(shown["available_instances"]) for type_id, shown in self.types(parent).items()}

    def offered(self, parent):
        """Like `available`, without the types at 0."""
        return {type_id: count for type_id, count in self.available(parent).items() if count}

    def create(self, parent, type_id, uuid):
        """Makes an mdev through sysfs. The result has the shell's code and the error's text."""
        return self._vm.try_run(f"echo {uuid} > {_PCI}/{parent}/mdev_supported_types/{type_id}/create")

    def remove(self, uuid):
        """Removes an mdev through sysfs."""
        return self._vm.try_run(f"echo 1 > /sys/bus/mdev/devices/{uuid}/remove")

    def mdevs(self):
        """UUIDs of all mdevs that exist."""
        return sorted(self._vm.run("ls /sys/bus/mdev/devices").split())

    def creatable(self, vf):
        """{id: name} of a virtual function of the framework vendor-vfio."""
        lines = self._vm.read(f"{_PCI}/{vf}/nvidia/creatable_vgpu_types").splitlines()
        assert lines[0] == "ID    : vGPU Name", lines
        return {int(line.split(":")[0]): line.split(":")[1].strip() for line in lines[1:]}

    def current(self, vf):
        """The type id that a virtual function is set to, 0 for none."""
        return int(self._vm.read(f"{_PCI}/{vf}/nvidia/current_vgpu_type"))

    def set_current(self, vf, type_id):
        """Writes current_vgpu_type. The result has the shell's code and the error's text."""
        return self._vm.try_run(f"echo {type_id} > {_PCI}/{vf}/nvidia/current_vgpu_type")


def node_name(address):
    """libvirt's name of a PCI device."""
    return "pci_" + address.replace(":", "_").replace(".", "_")
