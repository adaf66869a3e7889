# SPDX-License-Identifier: Apache-2.0
"""Campaigns over topics: each worker with suites, stacks and ROS domains of its own, none of which outlives it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from campaign_runs import FAULT, RELATIONS, campaign_file, carried_out, drives, results_of, summary_of, verdict_lines

from mt_nodes.campaign.conducting import CELLS, ITEMS
from mt_nodes.campaign.store import FILE, Store
from mt_nodes.cli.main import main
from mt_nodes.processes import wait_until

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from mt_process import Mt

LIMIT_S = 240.0
ASKED: dict[str, Any] = {"relations": list(RELATIONS[1:])}


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return drives(tmp_path_factory.mktemp("drives"), 2, bundles=2)


# The detector's is what is killed below.
@pytest.mark.parametrize("stack", [pytest.param("reference_detector", marks=pytest.mark.long), "reference_tracker"])
def test_a_cell_over_topics_is_what_one_replay_leaves(bags: list[Path], tmp_path: Path, stack: str) -> None:
    """That replay is in process: what it comes to does not depend on the transport."""
    out = carried_out(tmp_path, bags, stacks=[stack], transport="ros", workers=2, **ASKED)
    words = ["--relations", RELATIONS[1], "--stack", stack, "--fault", FAULT, "--out", str(tmp_path / "one")]
    words += ["--transport", "inprocess"]
    assert main(["replay", *map(str, bags), *words]) in (1, 3)
    [cell] = (out / CELLS).iterdir()
    assert verdict_lines(cell) == verdict_lines(tmp_path / "one")
    assert len(verdict_lines(cell)) == 2 * 2 * 3


def test_a_stack_that_dies_is_tried_again_and_ends_as_infrastructure(bags: list[Path], tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    code = f"open({str(tries)!r}, 'a').write('x'); raise SystemExit(3)"
    said = yaml.safe_load((Path(__file__).parents[1] / "config" / "stacks" / "reference_detector.yaml").read_text())
    for key in ("callable", "params"):
        said.pop(key, None)
    (tmp_path / "dying.yaml").write_text(yaml.safe_dump({**said, "command": [sys.executable, "-c", code]}))
    out = carried_out(
        tmp_path, bags[:1], stacks=["dying.yaml"], transport="ros", mode="alternate", faults=[], retries=2
    )
    summary = summary_of(out)
    assert summary["items"] == {"done": 0, "failed": 1, "stopped": 0, "left": 0}
    assert summary["exit_code"] == 4
    assert "exit code 3" in summary["campaign"]["failed"][0]["trouble"]
    assert tries.read_text() == "xxx", "once, and twice again"


@pytest.fixture(scope="module")
def whole(bags: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed campaign, in process."""
    return carried_out(tmp_path_factory.mktemp("whole"), bags, **ASKED)


# A worker that is killed is replaced: `test_campaign_core.py` shows it in process.
@pytest.mark.parametrize("victim", ["leader", *(pytest.param(v, marks=pytest.mark.long) for v in ("worker", "all"))])
def test_a_campaign_killed_over_topics_goes_on(bags: list[Path], whole: Path, tmp_path: Path, victim: str) -> None:
    file = campaign_file(tmp_path, bags, transport="ros", retries=9, **ASKED)
    mt = Mt.start(tmp_path, str(file), "--out", "killed", command="campaign")
    wanted = random.Random(victim).randint(1, 5)
    assert wait_until(lambda: _lines(tmp_path / "killed") >= wanted, LIMIT_S)
    there = mt.processes()
    workers = [pid for pid, command in there.items() if "multiprocessing.spawn" in command]
    assert workers, "there is somebody to kill"
    for pid in {"leader": [mt.process.pid], "worker": workers, "all": list(there)}[victim]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    if victim != "worker":
        mt.process.wait(LIMIT_S)
        again = [sys.executable, "-m", "mt_nodes.cli.main", "campaign", "--resume", "killed"]
        subprocess.run(again, cwd=tmp_path, timeout=LIMIT_S, check=False, capture_output=True)
    assert mt.process.wait(LIMIT_S) is not None
    assert wait_until(lambda: not mt.processes(), LIMIT_S), f"left behind: {mt.processes()}"
    mine, its = results_of(tmp_path / "killed"), results_of(whole)
    assert {name: found[:3] for name, found in mine.items()} == {name: found[:3] for name, found in its.items()}
    with Store(tmp_path / "killed" / FILE) as store:
        assert store.standing().items == {"done": 2}


def _lines(out: Path) -> int:
    """How many lines the journals of a campaign's items have."""
    return sum(path.read_bytes().count(b"\n") for path in (out / ITEMS).glob("*/result.jsonl"))
