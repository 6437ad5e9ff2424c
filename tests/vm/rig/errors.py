"""What can go wrong in the rig itself or in a guest command."""


class RigError(Exception):
    """The rig cannot do its work: a missing program, a VM that does not come up."""


class Skip(Exception):
    """Raised by a case that does not apply here; the text says why."""


class DeadlinePassed(RigError):
    """A condition did not become true in time."""


class CommandFailed(RigError):
    """A guest command ended with a code other than 0, which is kept in `code` beside `out` and `err`."""

    def __init__(self, command, code, out, err):
        self.command, self.code, self.out, self.err = command, code, out, err
        super().__init__(f"exit {code}: {command}\n{_tail(out)}{_tail(err)}".rstrip())


def _tail(text, lines=15):
    kept = text.rstrip().splitlines()[-lines:]
    return "".join(f"    {line}\n" for line in kept)
