# SPDX-License-Identifier: Apache-2.0
"""Limits of a command and its descendants, as the supervisor of the command enforces them.

The kernel enforces those of a :class:`~mt_nodes.base.control_group.ControlGroup` at once. Without one it enforces what
can be limited by process or user, and the rest is looked at. Imports only the standard library.
"""

import json
import math
import os
import resource
import signal
import sys
import time
from contextlib import suppress

from mt_nodes.base.process_tree import descendants_of, read_file, reap, signal_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mt_nodes.base.control_group import ControlGroup

#: Exit code of a supervisor whose command reached a limit.
LIMIT_REACHED = 113
#: How often limits are looked at, and how often at least all processes are.
WATCH_S, _COUNT_S = 0.1, 1.0
#: So many processes and threads are allowed for each process of the limit: in a group, else to the user beside those
#: that there are. The kernel enforces that at once, but without a group not for root.
TASKS_PER_PROCESS = 16
#: If memory runs out, the kernel kills the command rather than the suite.
_OOM_SCORE = "500"
_MB = 1_000_000
#: Weight of a group that nobody has given one (CGROUP_WEIGHT_DFL), which is that of niceness 0.
DEFAULT_WEIGHT = 100
_LARGEST_NICENESS = 19


def memory_limit_mb(memory_mb: float) -> float:
    """Return a limit of memory in MB, nine tenths of the machine's for 0."""
    return memory_mb or 0.9 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _MB


def niceness_of(weight: int) -> int:
    """Return the niceness whose weight is nearest to that of a control group, -20 or higher.

    Each step of niceness divides the weight by 1.25 (``sched_prio_to_weight`` in the kernel's ``sched/core.c``).
    """
    return max(-20, round(math.log(DEFAULT_WEIGHT / weight, 1.25)))


def give_way(niceness: int) -> int:
    """Have this thread, and what it starts from now on, interrupt nobody; return its priority number.

    ``niceness``: added to the number. A session is weighed as a whole by kernels that group by session; that of others
    is left as it is.
    """
    number = min(_LARGEST_NICENESS, os.getpriority(os.PRIO_PROCESS, 0) + niceness)
    os.setpriority(os.PRIO_PROCESS, 0, number)
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    if os.getsid(0) == os.getpid():
        _weigh_session(number)
    return number


def _weigh_session(niceness: int) -> None:
    with suppress(OSError):  # of a kernel without groups by session; with them this is what counts
        _write("/proc/self/autogroup", str(niceness))


class LimitWatch:
    """What a command and its descendants may take; see :class:`~mt_nodes.base.process_limits.ProcessLimits`."""

    def __init__(self, text: str) -> None:
        values = json.loads(text)
        self._processes, self._open_files = values["processes"], values["open_files"]
        self._weight = DEFAULT_WEIGHT if values["weighed"] else values["cpu_weight"]
        self._idle = values["policy"] == "idle"
        self._niceness = values["niceness"] + niceness_of(1 if self._idle else self._weight)
        self._memory_mb, self._log_mb = memory_limit_mb(values["memory_mb"]), values["log_mb"]
        self._group = _group_at(values["group"]) if values["group"] else None
        self._priority = os.getpriority(os.PRIO_PROCESS, 0)
        self._log_began = os.fstat(1).st_size
        self._watch_s, self._count_s, self._counted_pid = 0.0, 0.0, 0

    def go_first(self) -> None:
        """Have this process run before those that it watches, where it may: thousands of them would keep it waiting."""
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, -20)

    def take_on(self) -> None:
        """Have this process, about to become the command, take on what the kernel enforces."""
        if self._group is not None:
            self._group.join()
        _lower(resource.RLIMIT_NOFILE, self._open_files)
        if os.getuid() and self._group is None:
            _lower(resource.RLIMIT_NPROC, _tasks_of(os.getuid()) + TASKS_PER_PROCESS * self._processes)
        self._be_nice()
        with suppress(OSError):
            _write("/proc/self/oom_score_adj", _OOM_SCORE)

    def _be_nice(self) -> None:
        """Take on the niceness, and a policy that lets others go first where the weight is below theirs."""
        with suppress(PermissionError):  # only root may weigh more than others
            os.setpriority(os.PRIO_PROCESS, 0, min(_LARGEST_NICENESS, self._priority + self._niceness))
        if self._idle or self._weight < DEFAULT_WEIGHT:
            # Idle weighs less than any niceness; batch does not interrupt others when it wakes up.
            idle = self._idle or niceness_of(self._weight) > _LARGEST_NICENESS
            with suppress(PermissionError):
                os.sched_setscheduler(0, os.SCHED_IDLE if idle else os.SCHED_BATCH, os.sched_param(0))
        if self._niceness:
            _weigh_session(min(_LARGEST_NICENESS, self._niceness))

    def end(self) -> None:
        """Look a last time after the end of the command: a limit of its group may have ended it."""
        self._watch_s = self._count_s = 0.0
        self.enforce()

    def release(self) -> None:
        """Remove the group, when no descendant is left."""
        if self._group is not None:
            self._group.remove()

    def enforce(self) -> None:
        """End this process and all descendants if a limit is exceeded; does nothing shortly after the last time."""
        now_s = time.monotonic()
        if now_s < self._watch_s:
            return
        self._watch_s = now_s + WATCH_S
        if reached := self._reached():
            if self._group is not None:
                self._group.kill()
            _kill_all()
            self.release()
            text = f"mt_nodes ended it: limits.{reached}; raise that in the stack file if it needs more"
            print(text, file=sys.stderr, flush=True)
            sys.exit(LIMIT_REACHED)

    def _reached(self) -> str | None:
        """Return which limit is exceeded, and by what."""
        log_mb = (os.fstat(1).st_size - self._log_began) / _MB
        if log_mb > self._log_mb:
            return f"log_mb: its log has {log_mb:.1f} MB, expected at most {self._log_mb:g}"
        if self._group is not None and (reached := self._group.reached()):
            return reached
        if not self._is_time_to_count():
            return None
        found = descendants_of(os.getpid())
        if len(found) > self._processes:
            return f"processes: it has {len(found)} processes, expected at most {self._processes}"
        memory_mb = 0.0 if self._group is not None else sum(map(_resident_mb, found))
        if memory_mb > self._memory_mb:  # memory that processes share was counted for each
            memory_mb = sum(map(_proportional_mb, found))
        if memory_mb > self._memory_mb:
            return f"memory_mb: it has {memory_mb:.0f} MB, expected at most {self._memory_mb:.0f}"
        return None

    def _is_time_to_count(self) -> bool:
        """Return whether a second is over, or a quarter of the limit's processes may have come since the last time."""
        last_pid = int(read_file("/proc/loadavg").split()[-1])
        now_s = time.monotonic()
        if now_s < self._count_s and 0 <= last_pid - self._counted_pid < self._processes / 4:
            return False
        self._count_s, self._counted_pid = now_s + _COUNT_S, last_pid
        return True


def _group_at(directory: str) -> "ControlGroup":
    from pathlib import Path

    from mt_nodes.base.control_group import ControlGroup  # most machines give us none to divide

    return ControlGroup(Path(directory))


def _write(path: str, text: str) -> None:
    number = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(number, text.encode())
    finally:
        os.close(number)


def _lower(number: int, limit: int) -> None:
    soft, hard = (
        limit if value == resource.RLIM_INFINITY else min(limit, value) for value in resource.getrlimit(number)
    )
    resource.setrlimit(number, (soft, hard))


def _tasks_of(uid: int) -> int:
    """Return how many processes and threads a user has."""
    total = 0
    with os.scandir("/proc") as entries:
        for entry in entries:
            with suppress(OSError):  # it has just ended
                if entry.name.isdigit() and entry.stat().st_uid == uid:
                    with os.scandir(f"{entry.path}/task") as tasks:
                        total += sum(1 for _ in tasks)
    return total


def _resident_mb(pid: int) -> float:
    try:
        return int(read_file(f"/proc/{pid}/statm").split()[1]) * os.sysconf("SC_PAGE_SIZE") / _MB
    except (OSError, IndexError):  # it has just ended
        return 0.0


def _proportional_mb(pid: int) -> float:
    """Return the memory of a process, what it shares with others divided among them; all of it where nothing tells."""
    try:
        rows = read_file(f"/proc/{pid}/smaps_rollup").splitlines()
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
