"""Finding and running cases.

A case file is cases/test_THEME.py; each function test_*(vm) in it is one test. The file may set
  GPUS = {"mode": "vfio", "vfs": 4}   arguments of vm.gpus.load for all its tests (default rig.gpus.DEFAULT)
  KERNEL_ONLY = True                  its tests do without libvirt and need not wait until that has caught up
  NEEDS_PACKAGE = True                the project's package is installed first; such files run after the others
  OWN_VM = True                       the file gets a guest of its own, for what cannot be undone
"""

import concurrent.futures
import functools
import importlib.util
import queue
import re
import threading
import time
import traceback
from dataclasses import dataclass, field

from rig import gpus, host
from rig.errors import RigError, Skip
from rig.vm import Vm

# As many as the machine has cores for: a guest that emulates another is busy with one of them most of the time.
GUESTS = 2


@dataclass
class CaseFile:
    """One file of cases/ with those of its tests that were asked for."""

    theme: str
    tests: list
    gpus: dict
    kernel_only: bool
    needs_package: bool
    own_vm: bool


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


def find(text):
    """Case files with a test whose `theme.test` has the pattern `text` in it: what needs less comes first."""
    files = [_load(path, text) for path in sorted((host.HERE / "cases").glob("test_*.py"))]
    wanted = [file for file in files if file.tests]
    return sorted(wanted, key=lambda file: (file.own_vm, file.needs_package, not file.kernel_only))


def _load(path, text):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    theme = path.stem.removeprefix("test_")
    tests = [
        (f"{theme}.{name.removeprefix('test_')}", function)
        for name, function in vars(module).items()
        if name.startswith("test_") and callable(function)
    ]
    return CaseFile(
        theme,
        [test for test in tests if re.search(text, test[0])],
        getattr(module, "GPUS", gpus.DEFAULT),
        getattr(module, "KERNEL_ONLY", False),
        getattr(module, "NEEDS_PACKAGE", False),
        getattr(module, "OWN_VM", False),
    )


def run_all(files, image, logs, after=lambda vm: None):
    """Runs case files in GUESTS guests beside each other; each takes the next file when it is done with one. A file that wants
    a guest of its own gets it. `after` is called with each guest before its end."""
    tally = Tally()
    shared = queue.SimpleQueue()
    for file in files:
        if not file.own_vm:
            shared.put(file)
    lone = [[file] for file in files if file.own_vm]
    guests = [shared] * min(GUESTS, shared.qsize()) + [_queue_of(group) for group in lone]
    pool = concurrent.futures.ThreadPoolExecutor(GUESTS)
    runs = [
        pool.submit(_run_in_fresh_vm, source, number, image, logs, tally, after)
        for number, source in enumerate(guests, 1)
    ]
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


def _queue_of(files):
    source = queue.SimpleQueue()
    for file in files:
        source.put(file)
    return source


def _run_in_fresh_vm(source, number, image, logs, tally, after):
    left = []
    try:
        with Vm(image, logs, number) as vm:
            tally.guests.append(vm)
            print(f"guest {number} up after {vm.boot_seconds:.0f} s", flush=True)
            while not (tally.stopped or source.empty()):
                try:
                    file = source.get_nowait()
                except queue.Empty:
                    break  # the other guest was quicker
                left = [(file, name, test) for name, test in file.tests]
                while left:
                    vm.qemu.check_alive()
                    file, name, test = left.pop(0)
                    _run_one(name, functools.partial(_run_test, test, file, vm), vm, tally)
            _run_one(f"guest{number}.kernel_log", lambda: _check_kernel_log(vm), vm, tally)
            after(vm)
    except RigError as error:
        # Without a guest, all that was still to run in it has failed; what nobody has taken, the other guest takes.
        print(f"rig: {error}", flush=True)
        tally.failed += [name for _, name, _ in left] or [f"guest{number}"]


def _check_kernel_log(vm):
    """simgpu is our own kernel code: whatever the tests did to it, the kernel must not have complained."""
    found = vm.run("dmesg | grep -E 'BUG:|WARNING:|Oops|Call Trace|general protection|blocked for more' || true")
    assert not found, found


def _run_one(name, call, vm, tally):
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
        _keep_logs(vm, name)


def _run_test(test, file, vm):
    if vm.gpus.loaded != file.gpus:
        vm.clean(kernel_only=True)  # a domain of the last test may hold the module
        vm.gpus.load(settle=False, **file.gpus)
    vm.clean(file.kernel_only)
    if file.needs_package:
        vm.install_package()
    test(vm)


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
