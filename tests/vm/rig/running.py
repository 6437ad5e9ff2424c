"""Running cases."""

import functools
import queue
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from rig.errors import RigError, Skip
from rig.houses import GUESTS, houses


@dataclass
class Tally:
    """What came of the tests so far."""

    passed: int = 0
    skipped: int = 0
    failed: list = field(default_factory=list)
    guests: list = field(default_factory=list)
    stopped: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def summary(self):
        """The last line of a run."""
        return f"{self.passed} passed, {len(self.failed)} failed, {self.skipped} skipped"


def run_all(files, images, logs, after=lambda vm: None):
    """Runs case files in GUESTS guests beside each other, on the image of their release; a guest takes the next file when it is
    done with one, and a pair is as many as there may be. `after` is called with each guest before its end."""
    tally = Tally()
    plan = houses(files)
    for two in (False, True):
        pool = ThreadPoolExecutor(1 if two else GUESTS)
        runs = [pool.submit(_run_in, house, images, logs, tally, after) for house in plan if house.pair == two]
        try:
            for run in runs:
                run.result()
        except BaseException:
            # Told to stop: without their guests the others come to their end by themselves.
            tally.stopped = True
            pool.shutdown(wait=False, cancel_futures=True)
            for vm in list(tally.guests):
                vm.qemu.end()
            raise
    return tally


def _run_in(house, images, logs, tally, after):
    left = []
    try:
        if tally.stopped or house.files.empty():
            return  # the other guest was quicker
        with house.open(images[house.suite], logs) as vms:
            tally.guests += vms
            for vm in vms:
                print(f"guest {vm.name} ({house.suite}) up after {vm.boot_seconds:.0f} s", flush=True)
            while not (tally.stopped or house.files.empty()):
                try:
                    file = house.files.get_nowait()
                except queue.Empty:
                    break
                left = [(file, name, test) for name, test in file.tests]
                while left:
                    file, name, test = left.pop(0)
                    _run_one(name, functools.partial(_run_test, test, file, vms), vms, tally)
                    for vm in vms:
                        vm.qemu.check_alive()
            for vm in vms:
                _run_one(f"{vm.name}.kernel_log@{house.suite}", functools.partial(_check_kernel_log, vm), [vm], tally)
                after(vm)
    except RigError as error:
        # Without a guest, all that was still to run in it has failed; what nobody has taken, the other guest takes.
        print(f"rig: {error}", flush=True)
        tally.failed += [name for _, name, _ in left] or [f"guest {house.number}"]


def _check_kernel_log(vm):
    """simgpu is our own kernel code: whatever the tests did to it, the kernel must not have complained."""
    found = vm.run("dmesg | grep -E 'BUG:|WARNING:|Oops|Call Trace|general protection|blocked for more' || true")
    assert not found, found


def _run_one(name, call, vms, tally):
    began = time.monotonic()
    outcome, why = _outcome(call)
    said = f"{outcome}  {name}  {time.monotonic() - began:.1f} s"
    if why:
        said += "\n      " + why.strip().replace("\n", "\n      ")
    with tally.lock:
        print(said, flush=True)
        if outcome == "PASS":
            tally.passed += 1
        elif outcome == "SKIP":
            tally.skipped += 1
        else:
            tally.failed.append(name)
    if outcome == "FAIL":
        for vm in vms:
            _keep_logs(vm, f"{name}.{vm.name}")


def _run_test(test, file, vms):
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda vm: _prepare(vm, file), vms))
    test(*vms)


def _prepare(vm, file):
    if vm.gpus.loaded != file.gpus:
        vm.clean(kernel_only=True)  # a domain of the last test may hold the module
        vm.gpus.load(settle=False, **file.gpus)
    vm.clean(file.kernel_only)
    if file.needs_package:
        vm.install_package()


def _outcome(call):
    try:
        call()
    except Skip as skip:
        return "SKIP", str(skip)
    except Exception as error:  # whatever a test does wrong is its failure, and the others still run
        return "FAIL", _explain(error)
    return "PASS", ""


def _explain(error):
    frames = traceback.extract_tb(error.__traceback__)
    case = [frame for frame in frames if "/cases/test_" in frame.filename]
    places = [f"{frame.filename.rsplit('/', 1)[1]}:{frame.lineno}: {frame.line}" for frame in case]
    return "\n".join([*places, f"{type(error).__name__}: {error}"])


def _keep_logs(vm, name):
    try:
        vm.save_logs(name)
    except RigError as error:
        print(f"      (no guest log: {error})", flush=True)
