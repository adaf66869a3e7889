# SPDX-License-Identifier: Apache-2.0
"""How the command line ends a suite process."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.jsonl import write_result
from mt_nodes.base.processes import Process, wait_until
from mt_nodes.base.suite_client import in_suite

#: A suite that loses the first signal, as one that is importing may, and says that it is there.
DEAF_AT_FIRST = """
import json, os, signal, sys
came = []
def heard(number, frame):
    came.append(number)
    if len(came) > 1:
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, heard)
out = int(sys.argv[sys.argv.index("--events") + 1])
os.write(out, b'{"ready": true}\\n')
try:
    while True:
        signal.pause()
except KeyboardInterrupt:
    os.write(out, json.dumps({"end": 130, "error": "interrupted"}).encode() + b"\\n")
"""


def test_a_signal_that_the_suite_lost_is_handed_on_again(tmp_path: Path) -> None:
    process = Process("suite", (sys.executable, "-c", DEAF_AT_FIRST), dict(os.environ), tmp_path / "console.log")
    ready = []

    def show(event: object) -> None:
        ready.append(event)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as ended:
        in_suite(process, 30.0, show, "go on")
    assert ready == [{"ready": True}]
    assert "killed" not in str(ended.value)


def test_a_suite_that_ends_with_0_and_said_nothing_has_no_summary(tmp_path: Path) -> None:
    """Not even where one of an earlier part of the run lies there; all suites, of whatever kind of run, are run so."""
    write_result(tmp_path / "summary.json", {"exit_code": 0})
    argv = (sys.executable, "-c", "import ctypes; ctypes.CDLL(None)._exit(0)")
    process = Process("suite", argv, dict(os.environ), tmp_path / "console.log")
    with pytest.raises(InfrastructureError, match="the suite process ended with exit code 0"):
        in_suite(process, 30.0, lambda event: None, "go on")


#: Starts a suite while it holds a lock.
HOLDER = """
import fcntl, os, sys
from pathlib import Path
from mt_nodes.base.processes import Process
from mt_nodes.base.suite_client import in_suite
held = open(sys.argv[1], "ab")
fcntl.flock(held, fcntl.LOCK_EX)
argv = (sys.executable, "-c", sys.argv[2], sys.argv[3])
process = Process("suite", argv, dict(os.environ), Path(sys.argv[1] + ".log"))
in_suite(process, 30.0, lambda event: None, "go on", [held.fileno()])
"""
#: A suite that ends when it is told to, and not with its starter.
SLOW_TO_END = """
import os, sys, time
open(sys.argv[1], "w").write(str(os.getpid()))
while os.path.exists(sys.argv[1]):
    time.sleep(0.01)
"""


def test_a_lock_is_held_until_the_suite_has_ended_though_its_starter_was_killed(tmp_path: Path) -> None:
    lock, there = tmp_path / "lock", tmp_path / "there"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(lock), SLOW_TO_END, str(there)])
    try:
        assert wait_until(lambda: there.exists() and there.read_text() != "", 150.0)
        holder.kill()
        holder.wait()
        assert not locked(lock), "the suite is still there"
    finally:
        there.unlink(missing_ok=True)
    assert wait_until(lambda: locked(lock), 150.0)


def locked(path: Path) -> bool:
    """Whether a file can be locked."""
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_a_suite_whose_starter_has_ended_before_it_was_there_does_nothing(tmp_path: Path) -> None:
    """Killed while the suite was importing, who started it cannot be known by its end any more."""
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "mt_nodes.nodes.suite", "--run", str(tmp_path / "no_run"), "--events", str(writing)]
    told = subprocess.run(words, pass_fds=[writing], timeout=200, check=False, capture_output=True)
    os.close(writing)
    assert told.returncode == 130, "a directory without a run is not even looked at (2)"


def test_every_kind_of_run_over_topics_is_carried_out_by_the_one_suite() -> None:
    from mt_nodes.nodes.suite import KINDS
    from mt_nodes.runs.campaign.search.search_run import SearchRun
    from mt_nodes.runs.loop.scenario_run import ScenarioRun
    from mt_nodes.runs.moral.moral_run import MoralRun
    from mt_nodes.runs.replay.replay_run import Run

    kinds: tuple[Any, ...] = (Run, ScenarioRun, MoralRun, SearchRun)
    assert set(KINDS) == {kind.KEY for kind in kinds}
