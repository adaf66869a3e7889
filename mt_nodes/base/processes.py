# SPDX-License-Identifier: Apache-2.0
"""Child processes: each in a group of its own, ended as a group, never outliving us; and signals to end."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mt_nodes.base import subreaper
from mt_nodes.base.errors import StackError, UsageError
from mt_nodes.base.process_clock import own_time_s
from mt_nodes.base.subreaper import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, children_of, descendants_of, signal_all

TAIL_LINES, TAIL_BYTES = 15, 65536
KILL_EVERY_S = 0.05
#: Isolated, so that nothing of the stack's environment changes what it does.
_KEEPER = (sys.executable, "-I", "-S", str(Path(subreaper.__file__)))
_LIBC = ctypes.CDLL(None)


@dataclass(frozen=True)
class Process:
    """A command to run: program and arguments, the whole environment, and where its output goes."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    log: Path


class Child:
    """A running :class:`Process` and its descendants, below a keeper that ends them all even if we cannot."""

    def __init__(self, process: Process, kept: Sequence[int] = ()) -> None:
        """Start it; it inherits the descriptors ``kept``.

        Raises:
            UsageError: the program does not exist or cannot be executed.
        """
        self.process = process
        self._asked = False
        _check_program(process)
        process.log.parent.mkdir(parents=True, exist_ok=True)
        with process.log.open("ab") as log:
            self._offset = log.tell()
            self._popen = subprocess.Popen(
                [*_KEEPER, str(os.getpid()), *process.argv],
                env=dict(process.env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=kept,
            )

    @property
    def pid(self) -> int:
        """Process id of the keeper; also the id of the group."""
        return self._popen.pid

    @property
    def code(self) -> int | None:
        """Its exit code (negative: the signal that ended it); None while it runs."""
        return self._popen.poll()

    def check(self) -> None:
        """Raise when the process has ended by itself.

        Raises:
            StackError: with the exit code and the tail of its log.
        """
        code = self.code
        if code is not None:
            raise StackError(f"{self.process.name} {how_it_ended(code)}; {self.tail()}")

    def stopped(self) -> list[int]:
        """Return the processes of the command that stand still because somebody sent SIGSTOP, or debugs them."""
        return [pid for pid in descendants_of(self.pid) if is_stopped(pid)]

    def tail(self) -> str:
        """Return the last lines of what this child wrote, and where the rest is."""
        return tail_of(self.process.log, self._offset)

    def ask_to_end(self) -> None:
        """Send the whole group SIGINT, once; :meth:`stop` is to follow."""
        if not self._asked:
            self._asked = True
            self._signal(signal.SIGINT)

    def stop(self, timeout_s: float) -> None:
        """End it with all its descendants: SIGINT, then SIGTERM, then SIGKILL, each given ``timeout_s``."""
        self.ask_to_end()
        if not self._ended(timeout_s):
            self._signal(signal.SIGTERM)
            if not self._ended(timeout_s):
                self._kill()
        self._popen.wait()

    def _kill(self) -> None:
        """Kill descendants until none is left, and then the keeper, should somebody stop it time and again."""
        while not self._ended(0.0):
            signal_all(descendants_of(self.pid) or [self.pid], signal.SIGKILL)
            self._ended(KILL_EVERY_S)

    def _signal(self, number: int) -> None:
        try:
            for each in (number, signal.SIGCONT):  # who stands still hears nothing
                os.killpg(self.pid, each)
        except ProcessLookupError:
            return

    def _ended(self, timeout_s: float) -> bool:
        try:
            self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Put SIGINT and SIGTERM off to the end of the block.

    Python drops an exception raised while it forks, and one raised between the start of a child and the moment that it
    is known leaves the child behind. Does nothing outside the main thread, where no handler runs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda number, frame: came.append(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)


def wait_until(ready: Callable[[], bool], timeout_s: float, every_s: float = 0.02) -> bool:
    """Ask ``ready()`` again and again until it says yes (True) or time is up (False).

    For states that announce themselves to nobody, such as the ROS graph.
    """
    until = own_time_s() + timeout_s
    while not ready():
        if own_time_s() >= until:
            return False
        time.sleep(every_s)
    return True


def filled(command: Sequence[str], values: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Fill ``{name}`` in a command; an argument that is a placeholder alone may become several or none."""
    argv: list[str] = []
    for part in command:
        if part.startswith("{") and part[1:-1] in values:
            argv.extend(values[part[1:-1]])
            continue
        text = part
        for name, words in values.items():
            text = text.replace(f"{{{name}}}", " ".join(words))
        argv.append(text)
    return tuple(argv)


def _check_program(process: Process) -> None:
    """Refuse what cannot be started, before anything is."""
    program = process.argv[0]
    if shutil.which(program, path=process.env.get("PATH", os.defpath)) is None:
        why = "is not executable" if Path(program).is_file() else "there is no such program"
        raise UsageError(f"{process.name}: cannot start {program!r}: {why}; name one by its path, or put it on PATH")


def tail_of(path: Path, offset: int = 0) -> str:
    """Return the last lines of a log behind an offset, and where the rest is."""
    with path.open("rb") as log:
        log.seek(max(offset, log.seek(0, os.SEEK_END) - TAIL_BYTES))
        lines = log.read().decode(errors="replace").splitlines()[-TAIL_LINES:]
    said = "\n".join(f"    | {line}" for line in lines)
    return f"its log {path} ends:\n{said}" if lines else f"it wrote nothing to {path}"


def how_it_ended(code: int) -> str:
    """Say it in words: exit code, or (negative) the signal."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"  # a real-time signal has no name


def is_stopped(pid: int) -> bool:
    """Whether a process stands still: by SIGSTOP, or under a debugger (Linux)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    except OSError:
        return False


@contextlib.contextmanager
def nobody_left_behind() -> Iterator[None]:
    """At the end of the block, end what was started in it: orphans come to this process and are ended, too.

    A keeper ends what came of its stack; this is for when keepers were killed or stopped themselves.
    """
    _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    before = frozenset(children_of(os.getpid()))
    try:
        yield
    finally:
        # A keeper that lives takes up to its own grace.
        subreaper.end_descendants(2 * subreaper.GRACE_S, before)


def die_with_parent() -> None:
    """Have this process sent SIGTERM when the one that started it ends, however that ends (Linux)."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Flag:
    """False until it is set.

    Not ``threading.Event``, whose ``set`` takes a lock: a second signal that comes while the first is being handled
    would wait for that lock in the very thread that holds it, for ever.
    """

    def __init__(self) -> None:
        self._set = False

    def set(self, *_: object) -> None:
        """Set it; may be a signal's handler."""
        self._set = True

    def is_set(self) -> bool:
        """Whether it was."""
        return self._set


def flag_of_signals() -> Flag:
    """Return a flag that SIGINT and SIGTERM set from now on; to be called in the main thread."""
    ended = Flag()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ended.set)
    return ended
