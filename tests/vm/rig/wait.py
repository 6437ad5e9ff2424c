"""Waiting on conditions. Nothing in the rig sleeps for a fixed time and hopes."""

import time

from rig.errors import DeadlinePassed


def until(what, condition, timeout=60, every=0.3):
    """Calls `condition` until it returns something true, and returns that.

    A condition that raises AssertionError is not true yet; at the deadline its text becomes part of the error.
    """
    deadline = time.monotonic() + timeout
    while True:
        last = ""
        try:
            value = condition()
            if value:
                return value
            last = f"last value {value!r}"
        except AssertionError as error:
            last = str(error)
        if time.monotonic() >= deadline:
            raise DeadlinePassed(f"{what}: not within {timeout} s ({last})")
        time.sleep(every)
