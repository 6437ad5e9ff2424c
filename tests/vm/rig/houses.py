"""Which guests there are, and what runs in them."""

import contextlib
import queue
from dataclasses import dataclass

from rig.pair import pair
from rig.vm import Vm

# As many as the machine has cores for: a guest that emulates another is busy with one of them most of the time.
GUESTS = 2


@dataclass
class House:
    """One guest, or a pair, and the case files that run in it."""

    number: int
    suite: str
    pair: bool
    files: queue.SimpleQueue

    def open(self, image, logs):
        """A context with the list of its guests, up."""
        return pair(image, logs, self.number) if self.pair else _alone(image, logs, self.number)


@contextlib.contextmanager
def _alone(image, logs, number):
    with Vm(image, logs, number) as vm:
        yield [vm]


def houses(files):
    """Which guests there are: GUESTS that share the files of their release, those with files of their own, and a pair for each
    release."""
    shared, pairs = {}, {}
    for file in files:
        if not file.own_vm:
            (pairs if file.pair else shared).setdefault(file.suite, []).append(file)
    plan = []
    for suite, group in shared.items():
        source = _queue_of(group)
        plan += [(suite, False, source)] * min(GUESTS, len(group))
    plan += [(file.suite, False, _queue_of([file])) for file in files if file.own_vm]
    plan += [(suite, True, _queue_of(group)) for suite, group in pairs.items()]
    # A pair takes two numbers.
    return [House(2 * at + 1, suite, two, source) for at, (suite, two, source) in enumerate(plan)]


def _queue_of(files):
    source = queue.SimpleQueue()
    for file in files:
        source.put(file)
    return source
