"""The virtual-machine rig: boots a Debian guest with simulated GPUs and runs test cases in it.

A case imports what it needs from here; README.md shows how one is written.
"""

from rig.domain import domain_xml, mdev_xml
from rig.errors import CommandFailed, DeadlinePassed, RigError, Skip
from rig.gpus import A2, M60, Gpus, node_name
from rig.pair import SHARED
from rig.vm import Vm
from rig.wait import until

__all__ = [
    "A2",
    "CommandFailed",
    "DeadlinePassed",
    "Gpus",
    "M60",
    "RigError",
    "SHARED",
    "Skip",
    "Vm",
    "domain_xml",
    "mdev_xml",
    "node_name",
    "until",
]
