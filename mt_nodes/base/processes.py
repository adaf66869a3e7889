# SPDX-License-Identifier: Apache-2.0
"""Child processes, each in a process group of its own that ends with its parent; and flags set by signals."""

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
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.base.process_limits import ProcessLimits
from mt_nodes.base.process_tree import children_of, descendants_of, read_file, signal_all
from mt_nodes.base.subreaper import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG

TAIL_LINES, TAIL_BYTES = 15, 65536
KILL_EVERY_S = 0.05
_SUPERVISE = """import sys
sys.path.append(sys.argv[1])
from mt_nodes.base.subreaper import main
main(int(sys.argv[2]), *sys.argv[3:])"""
#: Isolated mode, so that the stack's environment does not change the supervisor.
_SUPERVISOR = (sys.executable, "-I", "-S", "-c", _SUPERVISE, str(Path(__file__).parents[2]))
_LIBC = ctypes.CDLL(None)


@dataclass(frozen=True)
class Process:
    """A command to run: program and arguments, the whole environment, the log file, and what it may take at most."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    log: Path
    limits: ProcessLimits | None = None


class Child:
    """A running :class:`Process` and its descendants, below a supervisor that ends them all even if we cannot."""

    def __init__(self, process: Process, inherited: Sequence[int] = ()) -> None:
        """Start the process; it inherits the descriptors ``inherited``.

        Raises UsageError: the program does not exist or cannot be executed. InfrastructureError: no control group can
        be made, though it should be possible here.
        """
        self.process = process
        self._interrupted = False
        _check_program(process)
        process.log.parent.mkdir(parents=True, exist_ok=True)
        self._group = process.limits.control_group() if process.limits else None
        limits = process.limits.as_json(self._group) if process.limits else ""
        with process.log.open("ab") as log:
            self._offset = log.tell()
            self._popen = subprocess.Popen(
                [*_SUPERVISOR, str(os.getpid()), limits, *process.argv],
                env=dict(process.env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=inherited,
            )

    @property
    def pid(self) -> int:
        """Process id of the supervisor; also the id of the process group."""
        return self._popen.pid

    @property
    def code(self) -> int | None:
        """Exit code (negative: the signal that ended it); None while it runs."""
        return self._popen.poll()

    def check(self) -> None:
        """Raise if the process has ended by itself. Raises StackError: with the exit code and the tail of its log."""
        code = self.code
        if code is not None:
            raise StackError(f"{self.process.name} {how_it_ended(code)}; {self.tail()}")

    def stopped(self) -> list[int]:
        """Return the processes of the command that are stopped (SIGSTOP) or under a debugger."""
        return [pid for pid in descendants_of(self.pid) if is_stopped(pid)]

    def tail(self) -> str:
        """Return the last lines of this child's output, and the path of the log."""
        return tail_of(self.process.log, self._offset)

    def ask_to_end(self) -> None:
        """Send SIGINT to the whole group, once; :meth:`stop` must follow."""
        if not self._interrupted:
            self._interrupted = True
            self._signal(signal.SIGINT)

    def stop(self, timeout_s: float) -> None:
        """End the child with all its descendants: SIGINT, then SIGTERM, then SIGKILL, each after ``timeout_s``."""
        self.ask_to_end()
        if not self._ended(timeout_s):
            self._signal(signal.SIGTERM)
            if not self._ended(timeout_s):
                self._kill()
        self._popen.wait()
        if self._group is not None:  # where its supervisor was killed
            self._group.remove()

    def _kill(self) -> None:
        """Kill all descendants, then the supervisor; repeats in case one of them is stopped again and again."""
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
    """Postpone SIGINT and SIGTERM to the end of the block.

    Python drops an exception raised while it forks, and an exception between the start of a child and the assignment of
    its handle leaves the child behind. Does nothing outside the main thread, where no handler runs.
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


@contextlib.contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt in the block at SIGTERM, where nobody handles that: what is begun is brought to an end.

    Does nothing outside the main thread, where no handler runs.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def wait_until(ready: Callable[[], bool], timeout_s: float, every_s: float = 0.02) -> bool:
    """Poll ``ready()`` until it returns True or the timeout is over (False).

    For states without notification, such as the ROS graph.
    """
    until = process_time_s() + timeout_s
    while not ready():
        if process_time_s() >= until:
            return False
        time.sleep(every_s)
    return True


def filled(command: Sequence[str], values: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Fill ``{name}`` in a command; an argument that is nothing but a placeholder may become several or none."""
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
    """Refuse a program that cannot be started, before anything starts."""
    program = process.argv[0]
    if shutil.which(program, path=process.env.get("PATH", os.defpath)) is None:
        why = "is not executable" if Path(program).is_file() else "there is no such program"
        raise UsageError(f"{process.name}: cannot start {program!r}: {why}; name one by its path, or put it on PATH")


def tail_of(path: Path, offset: int = 0) -> str:
    """Return the last lines of a log after an offset, and the path of the log."""
    with path.open("rb") as log:
        log.seek(max(offset, log.seek(0, os.SEEK_END) - TAIL_BYTES))
        lines = log.read().decode(errors="replace").splitlines()[-TAIL_LINES:]
    quoted = "\n".join(f"    | {line}" for line in lines)
    return f"its log {path} ends:\n{quoted}" if lines else f"it wrote nothing to {path}"


def how_it_ended(code: int) -> str:
    """Describe an exit code, or (negative) a signal."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"  # a real-time signal has no name


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped, by SIGSTOP or under a debugger (Linux)."""
    try:
        return read_file(f"/proc/{pid}/stat").rpartition(")")[2].split()[0] in "Tt"
    except OSError:
        return False


@contextlib.contextmanager
def nobody_left_behind() -> Iterator[None]:
    """End all processes that started in the block and still run at its end, orphans included.

    A supervisor ends the descendants of its stack; this covers supervisors that were killed or stopped themselves.
    """
    _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    before = frozenset(children_of(os.getpid()))
    try:
        yield
    finally:
        # A live supervisor takes up to its own grace period.
        subreaper.end_descendants(2 * subreaper.GRACE_S, before)


def die_with_parent() -> None:
    """Send SIGTERM to this process when its parent ends, by whatever cause (Linux)."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Flag:
    """A flag that a signal handler may set; it must be polled.

    Not ``threading.Event``, whose ``set`` takes a lock: a second signal during the handler of the first would wait for
    ever for the lock that its own thread holds.
    """

    def __init__(self) -> None:
        self._set = False

    def set(self, *_: object) -> None:
        """Set the flag; may be used as a signal handler."""
        self._set = True

    def is_set(self) -> bool:
        """Whether the flag is set."""
        return self._set


def flag_of_signals() -> Flag:
    """Return a flag that SIGINT and SIGTERM set from now on; call it in the main thread."""
    ended = Flag()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ended.set)
    return ended
