# SPDX-License-Identifier: Apache-2.0
"""Control groups limit a command where this process may divide its own; elsewhere it says why it may not.

Tests marked ``in_groups`` need that; they are skipped elsewhere. docs/security.md says where they ran.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mt_nodes.base.control_group import ControlGroup, Delegation, delegation, find_delegation
from mt_nodes.base.limit_watch import niceness_of
from mt_nodes.base.process_limits import ProcessLimits
from mt_nodes.base.processes import Child, Process, wait_until
from mt_nodes.runs.doctor import check_limits

HERE = delegation()
in_groups = pytest.mark.skipif(HERE.directory is None, reason=f"no control group to divide: {HERE.why}")
LIMIT_S = 60.0


def start(tmp_path: Path, code: str, limits: ProcessLimits, name: str = "log") -> Child:
    """Start Python code under limits."""
    argv = (sys.executable, "-I", "-S", "-c", code)
    return Child(Process("it", argv, os.environ, tmp_path / name, limits))


def ended(child: Child) -> tuple[int | None, str]:
    """Wait for its end; return exit code and log."""
    assert wait_until(lambda: child.code is not None, LIMIT_S)
    code = child.code
    child.stop(1.0)
    return code, child.process.log.read_text()


def group_of(child: Child) -> ControlGroup:
    """Return its control group."""
    assert child._group is not None
    return child._group


@in_groups
def test_the_kernel_refuses_more_threads_at_once(tmp_path: Path) -> None:
    """Also for root; 400 are asked for, 10 x 16 allowed."""
    code = "import threading, time\nfor _ in range(400): threading.Thread(target=time.sleep, args=(60,)).start()"
    code_, log = ended(child := start(tmp_path, code, ProcessLimits(processes=10)))
    assert code_ == 113
    assert "limits.processes: the kernel refused it more than 160 processes and threads" in log
    assert not group_of(child).directory.exists()


@in_groups
def test_the_kernel_kills_what_takes_too_much_memory(tmp_path: Path) -> None:
    """All of it, and at once."""
    child = start(tmp_path, "x = b'1' * 300_000_000; import time; time.sleep(60)", ProcessLimits(memory_mb=100))
    code, log = ended(child)
    assert code == 113
    assert "limits.memory_mb: the kernel killed it for more MB, expected at most 100" in log


def test_the_group_of_a_run_that_yields_to_others_weighs_least_where_it_cannot_be_idle(tmp_path: Path) -> None:
    below = Delegation(tmp_path, ("cpu", "memory", "pids"))
    weights = [ControlGroup.create(below, 9, 9.0, 300, idle).directory / "cpu.weight" for idle in (False, True)]
    assert [path.read_text() for path in weights] == ["300", "1"]


#: Burns processor time on one core for two seconds after a given one; prints how much each of its processes got.
BURN = """import os, time
os.sched_setaffinity(0, [{core}])
for _ in range({forks}): os.fork()
time.sleep({begin} - time.monotonic())
before = time.process_time()
while time.monotonic() < {begin} + 2.0: pass
os.write(1, f"{{time.process_time() - before}}\\n".encode())
"""


@in_groups
@pytest.mark.skipif("cpu" not in HERE.controllers, reason="the controller of processor time is not delegated")
def test_processor_time_is_shared_by_weight_whatever_the_number_of_processes(tmp_path: Path) -> None:
    """Niceness cannot do that: it is each process's own. Four processes of weight 100 against one of 400."""
    begin, core = time.monotonic() + 8.0, min(os.sched_getaffinity(0))
    children = [
        start(tmp_path, BURN.format(core=core, forks=forks, begin=begin), ProcessLimits(cpu_weight=weight), str(weight))
        for forks, weight in ((2, 100), (0, 400))
    ]
    light_s, heavy_s = (sum(map(float, ended(child)[1].split())) for child in children)
    assert 2.5 < heavy_s / light_s < 6.0


@in_groups
def test_nothing_is_left_of_a_group_whose_supervisor_is_killed(tmp_path: Path) -> None:
    """The suite removes it then; who comes next removes what a killed suite has left."""
    child = start(tmp_path, "import time; time.sleep(60)", ProcessLimits())
    directory = group_of(child).directory
    assert wait_until(lambda: bool((directory / "cgroup.procs").read_text()), LIMIT_S)
    os.kill(child.pid, signal.SIGKILL)
    child.stop(5.0)
    assert not directory.exists()
    left = directory.with_name("mt_nodes-99999999-0")
    left.mkdir()
    ended(start(tmp_path, "", ProcessLimits()))
    assert not left.exists()


@in_groups
def test_a_group_with_processes_is_divided_once_they_have_moved(tmp_path: Path) -> None:
    """As under ``systemd-run --scope``: the group of ``mt`` itself; twice, because a suite process follows."""
    assert HERE.directory is not None
    around = HERE.directory / f"test-{os.getpid()}"
    around.mkdir()
    code = f"""import os, subprocess, sys
sys.path.append({str(Path.cwd())!r})
from mt_nodes.base.control_group import delegation
print(delegation(), open("/proc/self/cgroup").read().split("0::")[1].strip(), flush=True)
sys.argv[1] and subprocess.run([sys.executable, *sys.orig_argv[1:-1], ""], check=True)"""
    command = f'echo 0 > {around}/cgroup.procs && exec "$0" -c "$1" again'
    try:
        done = subprocess.run(
            ["sh", "-c", command, sys.executable, code], capture_output=True, text=True, timeout=LIMIT_S, check=True
        )
    finally:
        ControlGroup(around).remove()
    first, second = done.stdout.splitlines()
    assert first == second
    assert first.startswith(f"cgroup v2 below {around}: ") and first.endswith(f"{around.name}/mt_nodes-suite")


class Tree:
    """Files that a process sees of its control group: not the kernel's, only read."""

    def __init__(self, path: Path) -> None:
        self.proc, self.systemd = path / "proc", path / "systemd"
        self.group = path / "fs" / "a"
        for folder in (self.proc, self.group):
            folder.mkdir(parents=True)
        for name in ("cgroup.procs", "cgroup.subtree_control"):
            (self.group / name).touch()
        (self.group / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
        (self.proc / "cgroup").write_text("4:memory:/old\n0::/a\n")
        (self.proc / "mountinfo").write_text(
            f"24 30 0:22 / /proc rw - proc proc rw\n35 24 0:30 / {path / 'fs'} rw shared:9 - cgroup2 cgroup2 rw\n"
        )

    def found(self) -> Delegation:
        return find_delegation(self.proc, self.systemd)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A group that is ours."""
    return Tree(tmp_path)


def test_a_writable_group_without_systemd_is_ours(tree: Tree) -> None:
    """Processor time is used where it is there."""
    assert tree.found() == Delegation(tree.group, ("cpu", "memory", "pids"))
    (tree.group / "cgroup.controllers").write_text("memory pids\n")
    assert tree.found().controllers == ("memory", "pids")
    assert check_limits(tree.found()).level == "ok"


def test_the_group_of_a_suite_is_that_around_it(tree: Tree) -> None:
    """A process that was moved aside finds the same group again."""
    (tree.proc / "cgroup").write_text("0::/a/mt_nodes-suite\n")
    assert tree.found().directory == tree.group


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("proc/mountinfo", "24 30 0:22 / /proc rw - proc proc rw\n", "its file system is not mounted"),
        ("proc/cgroup", "0::/../b\n", "/../b lies outside of what is mounted"),
        ("fs/a/cgroup.controllers", "hugetlb\n", "lacks memory and pids, which may be bound to cgroup v1"),
        ("systemd/x", "", "systemd has not delegated"),
    ],
)
def test_a_group_that_is_not_ours_says_why(tree: Tree, tmp_path: Path, file: str, text: str, why: str) -> None:
    """And the record says it, too."""
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    found = tree.found()
    assert found.directory is None and why in found.why
    assert str(found).startswith("resource limits of each process and a watch; no cgroup v2: ")
    assert check_limits(found).level == "info"
    assert ("systemd-run" in check_limits(found).fix) == ("systemd" in why)


@pytest.mark.parametrize(("weight", "niceness"), [(100, 0), (80, 1), (10, 10), (2, 18), (1, 21), (1000, -10)])
def test_niceness_stands_for_the_weight(weight: int, niceness: int) -> None:
    """The kernel's table: 1024 for niceness 0, 15 for 19, 9548 for -10; weight 100 is 1024."""
    assert niceness_of(weight) == niceness


@pytest.fixture
def told(tmp_path: Path) -> Iterator[list[str]]:
    """What a command of weight 1 without a group says of its scheduling."""
    code = "import os; print(os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0))"
    limits = dataclasses.replace(ProcessLimits(), cpu_weight=1)
    yield ended(start(tmp_path, code, limits))[1].split()


@pytest.mark.alone  # beside other tests no core may be idle for long
@pytest.mark.skipif(HERE.directory is not None, reason="groups have weights of their own here")
def test_without_a_group_little_weight_lets_others_go_first(told: list[str]) -> None:
    """SCHED_IDLE is 5, and the largest niceness 19."""
    assert told == ["5", "19"]
