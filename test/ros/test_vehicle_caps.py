# SPDX-License-Identifier: Apache-2.0
"""Limits hold for everything of ours; what the system does not allow is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mt_nodes.base.process_limits import ProcessLimits
from mt_nodes.base.processes import Child, Process, wait_until
from mt_nodes.base.safety_settings import Caps
from mt_nodes.engine.plan import ArmPlan
from mt_nodes.nodes.live_safety import LiveSafety
from mt_nodes.runs.live.config import live_config
from mt_nodes.runs.vehicle.caps import capped


def inside(caps: str, then: str, first: str = "") -> dict[str, Any]:
    """Run a block in a process of its own, the leader of its session: niceness cannot be taken back."""
    code = (
        "import json, os, subprocess, sys, time\n"
        "from mt_nodes.base.errors import MtError\n"
        "from mt_nodes.runs.vehicle.caps import capped, yielding\n"
        "from mt_nodes.base.safety_settings import Caps, LiveCaps\n"
        f"{first}with {'yielding' if 'Live' in caps else 'capped'}({caps}) as held:\n    {then}\n"
        "    print(json.dumps({'how': held.how, 'lacking': held.lacking, 'found': found}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=150, start_new_session=True
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_cores_and_niceness_are_inherited_by_what_is_started() -> None:
    core = min(os.sched_getaffinity(0))
    code = "import os, json; print(json.dumps([sorted(os.sched_getaffinity(0)), os.nice(0)]))"
    then = f"found = json.loads(subprocess.check_output([sys.executable, '-c', {code!r}]))"
    got = inside(f"Caps(cores=({core},), niceness=7)", then)
    assert got["found"] == [[core], os.nice(0) + 7]
    assert got["how"] == {"cores": f"cores {core}", "niceness": str(os.nice(0) + 7)}


SCHEDULING = "import os, json; print(json.dumps([os.sched_getscheduler(0), os.nice(0)]))"


def test_beside_a_live_stack_the_suite_and_what_it_starts_interrupt_nobody() -> None:
    then = (
        f"found = [json.loads(subprocess.check_output([sys.executable, '-c', {SCHEDULING!r}]))]\n"
        "    found += [os.sched_getscheduler(int(task)) for task in sorted(os.listdir('/proc/self/task'), key=int)]\n"
        "    found.append(open('/proc/self/autogroup').read() if os.path.exists('/proc/self/autogroup') else '')"
    )
    before = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    got = inside("LiveCaps()", then, before)
    child, ours, other, group = got["found"]
    assert child == [os.SCHED_BATCH, os.nice(0) + 10]
    assert got["how"] == {"policy": f"SCHED_IDLE; control and report SCHED_BATCH, niceness {os.nice(0) + 10}"}
    assert (ours, other) == (os.SCHED_BATCH, os.SCHED_OTHER), "who hears `mt live stop` was there before"
    assert not group or group.endswith(f"nice {os.nice(0) + 10}\n"), "it leads a session of its own"
    plain = inside(
        "LiveCaps(policy='normal')", f"found = subprocess.check_output([sys.executable, '-c', {SCHEDULING!r}]).decode()"
    )
    assert json.loads(plain["found"]) == [os.SCHED_OTHER, os.nice(0)] and not plain["how"]


def test_where_the_system_refuses_that_it_is_told_and_the_run_goes_on() -> None:
    refuse = "def refuse(*_):\n    raise PermissionError(1, 'no')\nos.sched_setscheduler = refuse\n"
    then = "from mt_nodes.runs.vehicle.caps import in_idle_thread\n    found = in_idle_thread(lambda: 7, lambda: True)"
    got = inside("LiveCaps()", then, refuse)
    assert got == {
        "how": {},
        "lacking": {"policy": "the system refuses SCHED_IDLE (sched_setscheduler)"},
        "found": 7,
    }


@pytest.mark.alone  # beside other tests no core may be idle for long
def test_what_is_done_where_a_core_is_idle_is_interrupted_with_who_waits_for_it() -> None:
    code = """
import os, signal, subprocess, sys, threading, time
from mt_nodes.runs.vehicle.caps import in_idle_thread
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has everybody below ignore it
def work():
    try:
        policies = [os.sched_getscheduler(0)]
        threading.Thread(target=lambda: policies.append(os.sched_getscheduler(0))).start()
        print(policies, subprocess.check_output([sys.executable, "-c", "import os; print(os.sched_getscheduler(0))"]))
        sys.stdout.flush()
        while True:
            time.sleep(0.01)
    finally:
        print("put away")
try:
    in_idle_thread(work, lambda: False)
except KeyboardInterrupt:
    print("interrupted", os.sched_getscheduler(0))
print(in_idle_thread(lambda: 7, lambda: False))
try:
    in_idle_thread(lambda: 1 / 0, lambda: False)
except ZeroDivisionError:
    print("raised")
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "[5, 5] b'5\\n'\n", "SCHED_IDLE is 5"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60.0)[0].split("\n") == ["put away", "interrupted 0", "7", "raised", ""]


@pytest.mark.alone  # beside other tests no core may be idle for long
@pytest.mark.skipif(os.getuid() != 0, reason="only root may leave SCHED_IDLE")
def test_what_is_ending_hurries_where_it_may() -> None:
    code = """
import os, time
from mt_nodes.runs.vehicle.caps import in_idle_thread
def work():
    while os.sched_getscheduler(0) == os.SCHED_IDLE:
        time.sleep(0.01)
    return os.sched_getscheduler(0)
print(in_idle_thread(work, lambda: True))
"""
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60.0).stdout == b"3\n"


@pytest.mark.alone  # beside other tests no core may be idle for long
@pytest.mark.parametrize("weight", [100, 50])
def test_an_idle_process_runs_only_where_others_leave_a_core_whatever_its_weight(weight: int, tmp_path: Path) -> None:
    limits = ProcessLimits(policy="idle", cpu_weight=weight)
    child = Child(Process("it", (sys.executable, "-c", SCHEDULING), os.environ, tmp_path / "log", limits))
    assert wait_until(lambda: child.code is not None, 60.0)
    assert json.loads((tmp_path / "log").read_text()) == [os.SCHED_IDLE, 19]


def test_instances_of_a_live_run_are_idle_unless_it_says_otherwise(tmp_path: Path) -> None:
    process = Process("it", ("true",), os.environ, tmp_path / "log", ProcessLimits(processes=7))
    for given, policy in (
        ({}, "idle"),
        ({"caps": {"niceness": 3}}, "idle"),
        ({"caps": {"policy": "normal"}}, "normal"),
    ):
        safety = LiveSafety.__new__(LiveSafety)
        safety._config = live_config(given, "test")
        made = safety.process(process, ArmPlan("followup", 9), 9, {}, ())
        assert made is not None and made.limits == ProcessLimits(processes=7, policy=policy)


def test_a_core_that_there_is_not_is_refused() -> None:
    with pytest.raises(Exception, match=r"caps\.cores: got 4096, expected some of"), capped(Caps(cores=(4096,))):
        pass


def group_above(controller: str) -> Path | None:
    """Return where a group for this process would be made: as the kernel tells it, not the code under test."""
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    own = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
    for row in mounts:
        kind, options, place = row[row.index("-") + 1], row[-1].split(","), Path(row[4])
        if kind == "cgroup" and controller in options:
            paths = [path for names, path in own.items() if controller in names.split(",")]
            return place / paths[0].lstrip("/") if paths else None
        if kind == "cgroup2" and "" in own:
            home = place / own[""].lstrip("/")
            active = home.parent / "cgroup.subtree_control"
            if home != place and active.exists() and controller in active.read_text().split():
                return home.parent
    return None


def refused(controller: str) -> str:
    """Make a group and remove it again; say why that cannot be done, empty if it can."""
    above = group_above(controller)
    if above is None:
        return f"the kernel has no controller '{controller}' for this process"
    try:
        (above / f"mt_test_{os.getpid()}").mkdir()
        (above / f"mt_test_{os.getpid()}").rmdir()
    except OSError as error:
        return f"no group may be made in {above}: {error.strerror}"
    return ""


WHY_NOT = {controller: refused(controller) for controller in ("cpu", "memory", "cpuset")}
needs_groups = pytest.mark.skipif(any(WHY_NOT.values()), reason="; ".join(filter(None, WHY_NOT.values())))


@needs_groups
def test_where_the_system_allows_groups_nothing_is_lacking() -> None:
    core = min(os.sched_getaffinity(0))
    got = inside(f"Caps(cores=({core},), cpu_share=4.0, memory_mb=8000.0, niceness=0)", "found = 0")
    assert got["lacking"] == {} and set(got["how"]) == {"cores", "cpu_share", "memory_mb"}


@needs_groups
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core: there is no other to be kept from")
def test_who_asks_for_more_cores_than_the_group_has_does_not_get_them() -> None:
    core = min(os.sched_getaffinity(0))
    code = "import os; os.sched_setaffinity(0, range(os.cpu_count())); print(sorted(os.sched_getaffinity(0)))"
    then = f"found = json.loads(subprocess.check_output([sys.executable, '-c', {code!r}]))"
    assert inside(f"Caps(cores=({core},), niceness=0)", then)["found"] == [core]


def test_cores_that_are_kept_to_by_affinity_alone_are_told(tmp_path: Path) -> None:
    core = min(before := os.sched_getaffinity(0))
    with capped(Caps(cores=(core,), niceness=0), told(tmp_path, "", "")) as held:
        assert held.how == {"cores": f"cores {core}"} and os.sched_getaffinity(0) == {core}
        assert held.lacking["cores"].startswith("by affinity only, which can be changed: no control group")
    assert os.sched_getaffinity(0) == before


@needs_groups
@pytest.mark.alone
def test_time_of_all_processes_together_is_limited() -> None:
    burn = "import time; u = time.monotonic() + 0.8\nwhile time.monotonic() < u: pass\nprint(time.process_time())"
    then = (
        f"ran = [subprocess.Popen([sys.executable, '-c', {burn!r}], stdout=subprocess.PIPE) for _ in range(2)]\n"
        "    found = sum(float(one.communicate()[0]) for one in ran)"
    )
    assert inside("Caps(cpu_share=0.5, niceness=0)", then)["found"] < 0.5 * 0.8 * 1.6


@needs_groups
def test_who_takes_more_memory_than_allowed_is_ended_and_nobody_else() -> None:
    grab = "b = bytearray(400_000_000); b[::4096] = bytes(len(b[::4096])); print(1)"
    then = f"found = subprocess.run([sys.executable, '-c', {grab!r}]).returncode"
    assert inside("Caps(memory_mb=200.0, niceness=0)", then)["found"] == -9
    assert (
        inside("Caps(memory_mb=800.0, niceness=0)", then.replace(").returncode", ", stdout=-3).returncode"))["found"]
        == 0
    )


@needs_groups
def test_groups_are_gone_when_the_block_ends() -> None:
    with capped(Caps(cpu_share=1.0, memory_mb=8000.0, niceness=0)) as held:
        groups = [Path(how) for how in held.how.values()]
        assert len(groups) == 2
        assert all(str(os.getpid()) in (group / "cgroup.procs").read_text().split() for group in groups)
    assert not any(group.exists() for group in groups)


def told(place: Path, cgroup: str, mountinfo: str) -> Path:
    (place / "proc").mkdir()
    (place / "proc" / "cgroup").write_text(cgroup)
    (place / "proc" / "mountinfo").write_text(mountinfo)
    return place / "proc"


def test_of_the_second_version_the_group_is_made_beside_that_of_this_process(tmp_path: Path) -> None:
    home = tmp_path / "tree" / "user.slice" / "terminal.scope"
    home.mkdir(parents=True)
    (home / "cgroup.controllers").write_text("cpu memory\n")
    proc = told(tmp_path, "0::/user.slice/terminal.scope\n", f"1 2 0:1 / {tmp_path}/tree rw - cgroup2 cgroup2 rw\n")
    with capped(Caps(cpu_share=1.5, memory_mb=100.0, niceness=0), proc) as held:
        group = home.parent / f"mt_nodes_{os.getpid()}"
        assert held.how == {"cpu_share": str(group), "memory_mb": str(group)} and not held.lacking
        assert (group / "cpu.max").read_text() == "150000 100000"
        assert (group / "memory.max").read_text() == "100000000"
        assert (group / "cgroup.procs").read_text() == str(os.getpid())
    assert (home / "cgroup.procs").read_text() == str(os.getpid())


@pytest.mark.parametrize(
    ("cgroup", "mount"),
    [("", ""), ("0::/\n", ""), ("4:memory:/\n", "1 2 0:1 / {place} rw - cgroup cgroup rw,memory\n")],
)
def test_a_limit_that_cannot_be_held_is_told_and_not_passed_over(cgroup: str, mount: str, tmp_path: Path) -> None:
    proc = told(tmp_path, cgroup, mount.format(place=tmp_path))
    with capped(Caps(cpu_share=1.0, niceness=0), proc) as held:
        assert not held.how
        assert "no control group for it (the kernel has no controller 'cpu' mounted)" in held.lacking["cpu_share"]


@pytest.mark.parametrize(
    ("cgroup", "mount", "weighed", "told_so"),
    [
        ("0::/system.slice/mt.service\n", "cgroup2 cgroup2 rw", True, True),
        ("0::/system.slice/mt.service\n", "cgroup2 cgroup2 rw", False, False),
        ("3:cpu,cpuacct:/system.slice/mt.service\n", "cgroup cgroup rw,cpu,cpuacct", True, True),
        ("3:cpu,cpuacct:/\n", "cgroup cgroup rw,cpu,cpuacct", True, False),
    ],
)
def test_a_share_of_its_own_is_told_because_others_do_not_go_first_then(
    cgroup: str, mount: str, weighed: bool, told_so: bool, tmp_path: Path
) -> None:
    home = tmp_path / "tree" / cgroup.strip().rpartition(":")[2].lstrip("/")
    home.mkdir(parents=True)
    (home / "cgroup.controllers").write_text("cpu memory\n")
    if weighed:
        (home / ("cpu.weight" if "cgroup2" in mount else "cpu.shares")).touch()
    proc = told(tmp_path, cgroup, f"1 2 0:1 / {tmp_path}/tree rw - {mount}\n")
    got = inside(f"LiveCaps(), __import__('pathlib').Path({str(proc)!r})", "found = 0")
    assert set(got["how"]) == {"policy"}
    assert got["lacking"] == (
        {"policy": f"only beside what is in {home} too; give that group cpu.idle or a small weight"} if told_so else {}
    )
