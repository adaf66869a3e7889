# SPDX-License-Identifier: Apache-2.0
"""Limits for all processes of a run together: control groups where they may be made, niceness and affinity always.

A process that is started later inherits them. Cores are held by affinity, which each process may change for itself, and
by a control group where there may be one, out of which it does not get. Control groups of both versions are used as the
kernel's documentation has them (``admin-guide/cgroup-v1``, ``admin-guide/cgroup-v2.rst``); where none may be made, what
is missing is told.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from mt_nodes.base.errors import UsageError
from mt_nodes.base.limit_watch import give_way
from mt_nodes.base.safety_settings import Caps, LiveCaps

Result = TypeVar("Result")
_LOOK_EVERY_S = 0.5
_PERIOD_US = 100_000
_MB = 1_000_000
#: Of what of the suite is not idle: a tenth of a core that others want whole, so that the run can still be stopped.
SUITE_NICENESS = 10


@dataclass(frozen=True)
class HeldLimits:
    """How each limit that was asked for is held, by name of its setting; or why it is not."""

    how: Mapping[str, str]
    lacking: Mapping[str, str]


@dataclass(frozen=True)
class _Limit:
    """One limit of a control group: texts by file, for each version; those without a text are as in the group above."""

    setting: str
    controller: str
    first: Mapping[str, str]
    second: Mapping[str, str]
    without: str = ""


@contextmanager
def capped(caps: Caps, proc: Path = Path("/proc/self")) -> Iterator[HeldLimits]:
    """Limit this process and all that it starts meanwhile; the groups go when the block ends.

    ``proc``: where the kernel tells of this process. Raises UsageError: a core is named that there is not.
    """
    how: dict[str, str] = {}
    lacking: dict[str, str] = {}
    with ExitStack() as ending:
        if caps.cores:
            how["cores"] = _keep_to(caps.cores, ending)
        if caps.niceness:
            how["niceness"] = f"{os.nice(caps.niceness)}"
        for limit in _limits(caps):
            try:
                how.setdefault(limit.setting, _grouped(limit, proc, ending))
            except OSError as error:
                lacking[limit.setting] = f"{limit.without}no control group for it ({error.strerror or error})"
        yield HeldLimits(how, lacking)


def _keep_to(cores: tuple[int, ...], ending: ExitStack) -> str:
    before = os.sched_getaffinity(0)
    if unknown := sorted(set(cores) - before):
        raise UsageError(f"caps.cores: got {unknown[0]}, expected some of {', '.join(map(str, sorted(before)))}")
    os.sched_setaffinity(0, cores)
    ending.callback(os.sched_setaffinity, 0, before)
    return f"cores {', '.join(map(str, sorted(cores)))}"


@contextmanager
def yielding(caps: LiveCaps, proc: Path = Path("/proc/self")) -> Iterator[HeldLimits]:
    """Limit this process as :func:`capped` does, and have it give way to a live stack if that is wanted.

    What it starts inherits that, but instances (:attr:`ProcessLimits.policy`) and what :func:`in_idle_thread` does.
    """
    with capped(caps, proc) as held:
        how, lacking = dict(held.how), dict(held.lacking)
        if caps.policy == "idle" and (refused := in_idle_thread(_refusal, lambda: False)):
            lacking["policy"] = refused
        elif caps.policy == "idle":
            how["policy"] = f"SCHED_IDLE; control and report SCHED_BATCH, niceness {give_way(SUITE_NICENESS)}"
            if own := _own_share(proc):
                lacking["policy"] = f"only beside what is in {own} too; give that group cpu.idle or a small weight"
        yield HeldLimits(how, lacking)


def in_idle_thread(work: Callable[[], Result], ending: Callable[[], bool]) -> Result:
    """Do something in a thread that runs, as all threads that it starts, only where a core has nothing else to do.

    An interruption of this thread is one of that. The thread lasts until all is done: processes that it starts would
    be ended with it (``PR_SET_PDEATHSIG``). This thread keeps its priority, which an idle one cannot have again without
    CAP_SYS_NICE; with it, all threads do as soon as the work is ``ending``.
    """
    with ThreadPoolExecutor(1, "idle", _become_idle) as pool:
        number, future = pool.submit(threading.get_ident).result(), pool.submit(work)
        interrupted = False
        while not future.done():
            try:
                wait([future], _LOOK_EVERY_S)
                if interrupted or ending():
                    _hurry()
            except KeyboardInterrupt:
                interrupted = True
                kind = ctypes.py_object(KeyboardInterrupt)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(number), kind)
        return future.result()


def _become_idle() -> None:
    with suppress(PermissionError):  # where calls are filtered (systemd's SystemCallFilter); `yielding` tells it
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def _refusal() -> str:
    """Say why this thread is not idle; empty if it is."""
    return "" if os.sched_getscheduler(0) == os.SCHED_IDLE else "the system refuses SCHED_IDLE (sched_setscheduler)"


def _hurry() -> None:
    with suppress(PermissionError):
        for task in Path("/proc/self/task").iterdir():
            with suppress(ProcessLookupError):  # a thread that has just ended
                if os.sched_getscheduler(int(task.name)) == os.SCHED_IDLE:
                    os.sched_setscheduler(int(task.name), os.SCHED_BATCH, os.sched_param(0))


def _own_share(proc: Path) -> str:
    """Return the group that gets a share of the time of its own, whose processes give way to one another only."""
    try:
        home = _home("cpu", proc)
    except OSError:
        return ""
    in_root = dict(_groups(proc)).get("cpu") == "/"
    return "" if in_root or not any((home / name).exists() for name in ("cpu.weight", "cpu.shares")) else str(home)


def _limits(caps: Caps) -> Iterator[_Limit]:
    if caps.cpu_share:
        quota = str(round(caps.cpu_share * _PERIOD_US))
        yield _Limit("cpu_share", "cpu", {"cpu.cfs_quota_us": quota}, {"cpu.max": f"{quota} {_PERIOD_US}"})
    if caps.memory_mb:
        size = str(round(caps.memory_mb * _MB))
        yield _Limit("memory_mb", "memory", {"memory.limit_in_bytes": size}, {"memory.max": size})
    if caps.cores:
        cores = {"cpuset.cpus": ",".join(map(str, caps.cores))}
        yield _Limit("cores", "cpuset", {"cpuset.mems": "", **cores}, cores, "by affinity only, which can be changed: ")


def _grouped(limit: _Limit, proc: Path, ending: ExitStack) -> str:
    """Make a control group with one limit, move this process into it, and say which.

    Raises OSError: it cannot be made, or has no such limit.
    """
    home = _home(limit.controller, proc)
    # Of the second version a group with processes has no limited groups in it, so ours is made beside that.
    second = (home / "cgroup.controllers").exists()
    group = (home.parent if second else home) / f"mt_nodes_{os.getpid()}"
    group.mkdir(exist_ok=True)
    ending.callback(_remove, group)
    for name, text in (limit.second if second else limit.first).items():
        (group / name).write_text(text or (home / name).read_text(encoding="ascii"), encoding="ascii")
    (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    ending.callback(_move_back, home)
    return str(group)


def _home(controller: str, proc: Path) -> Path:
    """Return the group of this process that a controller belongs to. Raises OSError: there is none."""
    groups = dict(_groups(proc))
    mounts = dict(_mounts(proc))
    for key in (controller, ""):  # of the second version all controllers are in one tree
        if key in groups and key in mounts:
            home = mounts[key] / groups[key].lstrip("/")
            if key or controller in (home / "cgroup.controllers").read_text(encoding="ascii").split():
                return home
    raise OSError(f"the kernel has no controller '{controller}' mounted")


def _groups(proc: Path) -> Iterator[tuple[str, str]]:
    for line in (proc / "cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(","):
            yield name, path


def _mounts(proc: Path) -> Iterator[tuple[str, Path]]:
    for line in (proc / "mountinfo").read_text(encoding="utf-8").splitlines():
        where, _, about = line.partition(" - ")
        kind, _, options = about.split(" ", 2)
        if kind == "cgroup2":
            yield "", Path(where.split()[4])
        elif kind == "cgroup":
            for name in options.split(","):
                yield name, Path(where.split()[4])


def _move_back(home: Path) -> None:
    with suppress(OSError):
        (home / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")


def _remove(group: Path) -> None:
    """Remove a group that nobody is in any more; one that still has processes stays, and holds them.

    Stacks have groups below it, and this process may have moved aside for them: see mt_nodes.base.control_group.
    """
    for directory, _, _ in os.walk(group, topdown=False):
        with suppress(OSError):
            Path(directory).rmdir()
