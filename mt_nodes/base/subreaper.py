# SPDX-License-Identifier: Apache-2.0
"""Supervises a command and ends all its descendants: ``python subreaper.py PARENT_PID LIMITS PROGRAM ARGUMENT…``.

It runs between the suite and a stack. Whatever the stack starts, in any session, stays a descendant of this process,
because orphans are reparented to the nearest subreaper; when the stack ends, or the parent is gone for whatever reason,
all of them are ended. The exit code is that of the command, or ``LIMIT_REACHED``: ``LIMITS`` is empty, or a
:class:`~mt_nodes.base.process_limits.ProcessLimits` as JSON. Imports only the standard library and starts without
``site``, so that it is ready before the stack and costs a few milliseconds.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36
#: Grace period for the remains of a stack after SIGTERM; then they are killed.
GRACE_S = 2.0
CANNOT_START = 127
#: Exit code of a supervisor whose command reached a limit.
LIMIT_REACHED = 113
#: How often limits are looked at, and how often at least all processes are.
_WATCH_S, _COUNT_S = 0.1, 1.0
#: Of a user's processes and threads so many are left to each process of the limit. The kernel enforces that at once,
#: but not for root.
_TASKS_PER_PROCESS = 16
#: If memory runs out, the kernel kills the command rather than the suite.
_OOM_SCORE = "500"
_MB = 1_000_000


def processes() -> dict[int, tuple[int, str]]:
    """Return parent and state by id of process."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split(None, 2)[:2]
            except (OSError, ValueError):  # it has just ended
                continue
            found[int(entry.name)] = (int(parent), state)
    return found


def children_of(pid: int) -> list[int]:
    """Return the direct children of a process, without zombies."""
    return [child for child, (parent, state) in processes().items() if parent == pid and state != "Z"]


def descendants_of(pid: int, spare: frozenset[int] = frozenset()) -> list[int]:
    """Return the descendants of a process, except the children in ``spare`` and theirs; without zombies."""
    children: dict[int, list[int]] = {}
    for child, (parent, state) in processes().items():
        if state != "Z":
            children.setdefault(parent, []).append(child)
    found = [child for child in children.get(pid, ()) if child not in spare]
    for child in found:
        found += children.get(child, ())
    return found


def signal_all(pids: list[int], number: int) -> None:
    """Send a signal to processes; skips those that are gone."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def end_descendants(grace_s: float = GRACE_S, spare: frozenset[int] = frozenset()) -> None:
    """End every descendant of this process: SIGTERM, after the grace period SIGKILL, repeated until none is left.

    The children in ``spare`` and theirs stay. A stopped process is continued: it would not receive SIGTERM.
    """
    for number in (signal.SIGTERM, signal.SIGCONT):
        signal_all(descendants_of(os.getpid(), spare), number)
    until = time.monotonic() + grace_s
    while left := descendants_of(os.getpid(), spare):
        over_s = until - time.monotonic()
        if over_s <= 0:
            signal_all(left, signal.SIGKILL)
        # SIGCHLD announces the end of a child; an orphan of it may take a moment to be reparented.
        signal.sigtimedwait({signal.SIGCHLD}, min(0.05, max(over_s, 0.005)))


def reap() -> dict[int, int]:
    """Reap every child that has ended; return the status by process id."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if not pid:
            return ended
        ended[pid] = status


class LimitWatch:
    """What a command and its descendants may take; see :class:`~mt_nodes.base.process_limits.ProcessLimits`."""

    def __init__(self, text: str) -> None:
        values = json.loads(text)
        self._processes, self._open_files = values["processes"], values["open_files"]
        self._niceness = values["niceness"]
        total_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _MB
        self._memory_mb = values["memory_mb"] or 0.9 * total_mb
        self._log_mb = values["log_mb"]
        self._priority = os.getpriority(os.PRIO_PROCESS, 0)
        self._log_began = os.fstat(1).st_size
        self._watch_s, self._count_s, self._counted_pid = 0.0, 0.0, 0

    def go_first(self) -> None:
        """Have this process run before those that it watches, where it may: thousands of them would keep it waiting."""
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, -20)

    def take_on(self) -> None:
        """Have this process, about to become the command, take on what the kernel enforces."""
        _lower(resource.RLIMIT_NOFILE, self._open_files)
        if os.getuid():
            _lower(resource.RLIMIT_NPROC, _tasks_of(os.getuid()) + _TASKS_PER_PROCESS * self._processes)
        os.setpriority(os.PRIO_PROCESS, 0, self._priority + self._niceness)
        if self._niceness:
            with suppress(OSError):  # of a kernel without groups by session; with them this is what counts
                Path("/proc/self/autogroup").write_text(str(self._niceness))
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)

    def enforce(self) -> None:
        """End this process and all descendants if a limit is exceeded; does nothing shortly after the last time."""
        now_s = time.monotonic()
        if now_s < self._watch_s:
            return
        self._watch_s = now_s + _WATCH_S
        if reached := self._reached():
            _kill_all()
            text = f"mt_nodes ended it: limits.{reached}; raise that in the stack file if it needs more"
            print(text, file=sys.stderr, flush=True)
            sys.exit(LIMIT_REACHED)

    def _reached(self) -> str | None:
        """Return which limit is exceeded, and by what."""
        log_mb = (os.fstat(1).st_size - self._log_began) / _MB
        if log_mb > self._log_mb:
            return f"log_mb: its log has {log_mb:.1f} MB, expected at most {self._log_mb:g}"
        if not self._is_time_to_count():
            return None
        found = descendants_of(os.getpid())
        if len(found) > self._processes:
            return f"processes: it has {len(found)} processes, expected at most {self._processes}"
        memory_mb = sum(map(_resident_mb, found))
        if memory_mb > self._memory_mb:  # memory that processes share was counted for each
            memory_mb = sum(map(_proportional_mb, found))
        if memory_mb > self._memory_mb:
            return f"memory_mb: it has {memory_mb:.0f} MB, expected at most {self._memory_mb:.0f}"
        return None

    def _is_time_to_count(self) -> bool:
        """Return whether a second is over, or a quarter of the limit's processes may have come since the last time."""
        last_pid = int(Path("/proc/loadavg").read_text().split()[-1])
        now_s = time.monotonic()
        if now_s < self._count_s and 0 <= last_pid - self._counted_pid < self._processes / 4:
            return False
        self._count_s, self._counted_pid = now_s + _COUNT_S, last_pid
        return True


def _lower(number: int, limit: int) -> None:
    soft, hard = (
        limit if value == resource.RLIM_INFINITY else min(limit, value) for value in resource.getrlimit(number)
    )
    resource.setrlimit(number, (soft, hard))


def _tasks_of(uid: int) -> int:
    """Return how many processes and threads a user has."""
    total = 0
    for pid in processes():
        try:
            if Path(f"/proc/{pid}").stat().st_uid == uid:
                total += len([*Path(f"/proc/{pid}/task").iterdir()])
        except OSError:  # it has just ended
            continue
    return total


def _resident_mb(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / _MB
    except (OSError, IndexError):  # it has just ended
        return 0.0


def _proportional_mb(pid: int) -> float:
    """Return the memory of a process, what it shares with others divided among them; all of it where nothing tells."""
    try:
        rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(row.split()[1]) for row in rows if row.startswith("Pss:")) * 1024 / _MB
    except (OSError, StopIteration):
        return _resident_mb(pid)


def _kill_all() -> None:
    """Kill every descendant, also where they multiply: who stands still makes no more of them."""
    while left := descendants_of(os.getpid()):
        stopped: set[int] = set()
        while more := set(left) - stopped:
            signal_all(list(more), signal.SIGSTOP)
            stopped |= more
            left = descendants_of(os.getpid())
        signal_all(left, signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, 0.01)
        reap()


def _start(argv: list[str], limits: LimitWatch | None) -> int:
    child = os.fork()
    if child:
        return child
    try:
        if limits is not None:
            limits.take_on()
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        os.execvp(argv[0], argv)
    except OSError as error:
        print(f"cannot start {argv[0]!r}: {error.strerror}", file=sys.stderr, flush=True)
    os._exit(CANNOT_START)


def _wait(parent: int, child: int, limits: LimitWatch | None) -> int | None:
    """Wait for the end of the child and return its status; None if the parent ends first."""
    signals = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}
    while os.getppid() == parent:
        # SIGINT and SIGTERM go to the whole group: the child handles them, this process only watches its parent.
        if limits is None:
            signal.sigwait(signals)
        else:
            signal.sigtimedwait(signals, _WATCH_S)
            limits.enforce()
        ended = reap()
        if child in ended:
            return ended[child]
    return None


def end_by_signal(number: int) -> int:
    """End this process by the signal that ended a child of it, without a second core dump.

    Returns:
        The exit code that a shell gives for such an end, if the process cannot end by that signal (process 1 of a
            container).
    """
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0)
    if number != signal.SIGKILL:  # Python ignores some others, such as SIGPIPE
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 + number


def _exit_code(status: int | None) -> int:
    if status is None:
        return 1
    return end_by_signal(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def main(parent: int, limits: str, argv: list[str]) -> None:
    """Run the command to its end, or to a limit."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT})
    # A shell that runs this in the background ignores SIGINT, and the command would inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    watched = LimitWatch(limits) if limits else None
    if watched is not None:
        watched.go_first()
    status = _wait(parent, _start(argv, watched), watched)
    end_descendants()
    sys.exit(_exit_code(status))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
