"""Finding cases.

A case file is cases/test_THEME.py; each function test_*(vm) in it is one test. The file may set
  GPUS = {"mode": "vfio", "vfs": 4}   arguments of vm.gpus.load for all its tests (default rig.gpus.DEFAULT)
  KERNEL_ONLY = True                  its tests do without libvirt and need not wait until that has caught up
  NEEDS_PACKAGE = True                the project's package is installed first; such files run after the others
  OWN_VM = True                       the file gets a guest of its own, for what cannot be undone
  PAIR = True                         its tests are test_*(one, two): two guests on one wire, the same for all such files
  SUITES = ("trixie", "bookworm")     Debian releases that it runs on (default trixie); `test_x.suites` for those of one test
"""

import importlib.util
import re
from dataclasses import dataclass

from rig import gpus, host


@dataclass
class CaseFile:
    """One file of cases/ on one Debian release, with those of its tests that were asked for."""

    suite: str
    tests: list
    gpus: dict
    kernel_only: bool
    needs_package: bool
    own_vm: bool
    pair: bool


def find(text):
    """Case files with a test whose `theme.test@suite` has the pattern `text` in it: what needs less comes first."""
    paths = sorted((host.HERE / "cases").glob("test_*.py"))
    wanted = [file for path in paths for file in _load(path, text) if file.tests]
    return sorted(wanted, key=lambda file: (file.pair, file.own_vm, file.needs_package, not file.kernel_only))


def _load(path, text):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for suite in getattr(module, "SUITES", ("trixie",)):
        tests = [
            (f"{path.stem.removeprefix('test_')}.{name.removeprefix('test_')}@{suite}", function)
            for name, function in vars(module).items()
            if name.startswith("test_") and callable(function) and suite in getattr(function, "suites", (suite,))
        ]
        yield CaseFile(
            suite,
            [test for test in tests if re.search(text, test[0])],
            getattr(module, "GPUS", gpus.DEFAULT),
            getattr(module, "KERNEL_ONLY", False),
            getattr(module, "NEEDS_PACKAGE", False),
            getattr(module, "OWN_VM", False),
            getattr(module, "PAIR", False),
        )
