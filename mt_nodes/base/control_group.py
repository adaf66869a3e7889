# SPDX-License-Identifier: Apache-2.0
"""Control groups (cgroup v2): limits that the kernel enforces on a command and all its descendants together.

Interface files as in "Control Group v2" of the kernel's documentation. Groups are made below that of this process,
where that is ours to divide: systemd has delegated it (``user.delegate``, "Control Group APIs and Delegation"), or
there is no systemd and it is writable. A group with processes of its own cannot have limited groups below it, so the
processes in it move to a group beside them, once. Imports only the standard library: the supervisor uses it, too.
"""

import itertools
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

#: What is needed, and what else is used where it is there; without it, niceness stands for the weight.
REQUIRED, OPTIONAL = ("memory", "pids"), ("cpu",)
DELEGATE = "systemd-run --user --scope -p Delegate=yes mt …"
_SYSTEMD = Path("/run/systemd/system")
_OWN, _SUITE = "mt_nodes-", "mt_nodes-suite"
_MB = 1_000_000
#: How long killed processes may take to be gone.
_REMOVE_S = 2.0
_numbers = itertools.count()


@dataclass(frozen=True)
class Delegation:
    """A group that is ours to divide.

    ``directory``: its directory; None if there is none. ``controllers``: those that groups below it can have.
    """

    directory: Path | None = None
    controllers: tuple[str, ...] = ()
    why: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        if self.directory is None:
            return f"resource limits of each process and a watch; no cgroup v2: {self.why}"
        return f"cgroup v2 below {self.directory}: {', '.join(self.controllers)}"


def find_delegation(proc: Path = Path("/proc/self"), systemd: Path = _SYSTEMD) -> Delegation:
    """Return the group that this process may divide; changes nothing.

    ``proc``: directory of the process in ``/proc``. ``systemd``: exists where systemd manages the groups.
    """
    try:
        directory = _own_directory(proc)
        available = (directory / "cgroup.controllers").read_text().split()
    except (OSError, ValueError) as error:
        return Delegation(why=str(error))
    if missing := [name for name in REQUIRED if name not in available]:
        return Delegation(why=f"{directory} lacks {' and '.join(missing)}, which may be bound to cgroup v1")
    # As root, access() says yes to every file, but not where the file system is read-only.
    if not all(os.access(directory / name, os.W_OK) for name in ("", "cgroup.procs", "cgroup.subtree_control")):
        return Delegation(why=f"{directory} is not writable", remedy=DELEGATE)
    if systemd.is_dir() and not _delegated(directory):
        return Delegation(why=f"systemd has not delegated {directory}", remedy=DELEGATE)
    return Delegation(directory, tuple(name for name in (*OPTIONAL, *REQUIRED) if name in available))


@cache
def delegation() -> Delegation:
    """Return the group that this process may divide, ready for groups below it."""
    found = find_delegation()
    if found.directory is not None:
        try:
            _make_ready(found.directory, found.controllers)
        except OSError as error:
            return Delegation(why=f"{found.directory} cannot be divided: {error.strerror}")
    return found


@dataclass(frozen=True)
class ControlGroup:
    """A group for one command, by its directory."""

    directory: Path

    @classmethod
    def create(
        cls, below: Delegation, tasks: int, memory_mb: float, cpu_weight: int, idle: bool = False
    ) -> "ControlGroup":
        """Make one for a command that is about to start; remove those of processes that are gone.

        Raises OSError: it cannot be made.
        ``tasks``: processes and threads at a time. ``memory_mb``: memory in MB, with the file cache that cannot be
        written back, without swap. ``cpu_weight``: share of processor time beside other groups, theirs being 100.
        ``idle``: only what others leave, whatever the weight.
        """
        assert below.directory is not None
        _remove_stale(below.directory)
        group = cls(below.directory / f"{_OWN}{os.getpid()}-{next(_numbers)}")
        group.directory.mkdir()
        values = {"pids.max": tasks, "memory.max": int(memory_mb * _MB), "memory.oom.group": 1, "memory.swap.max": 0}
        if "cpu" in below.controllers and idle and (group.directory / "cpu.idle").exists():  # since Linux 5.15
            values["cpu.idle"] = 1
        elif "cpu" in below.controllers:
            values["cpu.weight"] = 1 if idle else cpu_weight
        for name, value in values.items():
            if name != "memory.swap.max" or (group.directory / name).exists():  # not in kernels without swap
                (group.directory / name).write_text(str(value))
        return group

    @property
    def weighed(self) -> bool:
        """Whether it has a weight of its own for processor time."""
        return (self.directory / "cpu.weight").exists()

    def join(self) -> None:
        """Move this process into the group: all that it starts belongs to it."""
        (self.directory / "cgroup.procs").write_text("0")

    def reached(self) -> str:
        """Return which limit its processes have reached; empty if none."""
        if self._events("memory.events", "oom_kill"):
            limit_mb = int((self.directory / "memory.max").read_text()) / _MB
            return f"memory_mb: the kernel killed it for more MB, expected at most {limit_mb:.0f}"
        if self._events("pids.events", "max"):
            tasks = (self.directory / "pids.max").read_text().strip()
            return f"processes: the kernel refused it more than {tasks} processes and threads"
        return ""

    def kill(self) -> None:
        """Kill all its processes at once, also where they multiply (Linux 5.14; does nothing before)."""
        with suppress(OSError):
            (self.directory / "cgroup.kill").write_text("1")

    def remove(self) -> None:
        """Kill what is left in it, and remove it and the groups that its processes made; it may be gone already."""
        self.kill()
        until_s = time.monotonic() + _REMOVE_S
        while self.directory.exists() and time.monotonic() < until_s:
            for directory, _, _ in os.walk(self.directory, topdown=False):
                with suppress(OSError):  # what was killed is not gone yet, or others remove it, too
                    Path(directory).rmdir()
            time.sleep(0.01)

    def _events(self, name: str, key: str) -> int:
        rows = (self.directory / name).read_text().splitlines()
        return next((int(row.split()[1]) for row in rows if row.split()[0] == key), 0)


def _own_directory(proc: Path) -> Path:
    """Return the directory of the group of a process, of the one around it if it was moved here for our sake."""
    mounts = [row.split(" - ") for row in (proc / "mountinfo").read_text().splitlines()]
    roots = [about.split()[3:5] for about, system in mounts if system.split()[0] == "cgroup2"]
    if not roots:
        raise ValueError("its file system is not mounted")
    path = next((r[3:] for r in (proc / "cgroup").read_text().splitlines() if r.startswith("0::")), "")
    for root, point in roots:
        if path.startswith(root) and ".." not in path:
            directory = Path(point) / os.path.relpath(path, root)
            return directory.parent if directory.name == _SUITE else directory
    raise ValueError(f"{path or 'the group of this process'} lies outside of what is mounted")


def _delegated(directory: Path) -> bool:
    """Whether systemd leaves the groups below a directory to others."""
    for name in ("user.delegate", "trusted.delegate"):
        with suppress(OSError):
            if os.getxattr(directory, name) == b"1":
                return True
    return False


def _make_ready(directory: Path, controllers: tuple[str, ...]) -> None:
    """Give the groups below a directory their controllers; processes in it, except in the root group, move aside."""
    enabled = (directory / "cgroup.subtree_control").read_text().split()
    if set(controllers) <= set(enabled):
        return
    if (directory / "cgroup.type").exists():
        suite = directory / _SUITE
        suite.mkdir(exist_ok=True)
        while pids := (directory / "cgroup.procs").read_text().split():
            for pid in pids:
                with suppress(ProcessLookupError):  # it has just ended
                    (suite / "cgroup.procs").write_text(pid)
    (directory / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))


def _remove_stale(directory: Path) -> None:
    for left in directory.glob(f"{_OWN}[0-9]*-[0-9]*"):
        if not Path(f"/proc/{left.name.removeprefix(_OWN).partition('-')[0]}").exists():
            ControlGroup(left).remove()
