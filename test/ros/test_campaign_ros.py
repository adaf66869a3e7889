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
from campaign_runs import (
    FAULT,
    RELATIONS,
    campaign_file,
    carried_out,
    drives,
    planned,
    results_of,
    summary_of,
    verdict_lines,
)
from made_runs import no_pages

from mt_nodes.base.processes import wait_until
from mt_nodes.base.suite_client import in_suite
from mt_nodes.cli.main import main
from mt_nodes.engine.plan import ReplayRequest, suite_process, suite_stop_s
from mt_nodes.runs.campaign.campaign_store import FILE, CampaignStore
from mt_nodes.runs.campaign.conductor import CELLS, ITEMS, conduct
from mt_nodes.runs.campaign.file import Campaign
from mt_nodes.runs.campaign.local_pool import LocalPool
from mt_nodes.runs.replay.replay_run import Run

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from mt_process import Mt

#: Longest wait for one thing: an item over topics is some five processes that import a lot. On two cores that twenty
#: processes wanted, two items took 230 s; so a test that waits several times has a limit of its own.
LIMIT_S = 240.0
ASKED: dict[str, Any] = {"relations": list(RELATIONS[1:])}


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return drives(tmp_path_factory.mktemp("drives"), 2, bundles=2)


@pytest.fixture(scope="module")
def replayed(bags: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a replay of one drive over topics leaves; it makes no report."""
    asked = ReplayRequest((str(bags[0]),), RELATIONS[1:], transport="ros", faults=(FAULT,), report=False)
    run = Run.create(asked, str(tmp_path_factory.mktemp("replayed") / "one"))
    summary = in_suite(suite_process(run.out, os.environ), suite_stop_s(run.stack), lambda event: None, "")
    assert summary["exit_code"] in (1, 3)
    return run.out


def left_by(results: Path) -> tuple[list[str], list[str], set[str]]:
    """Return the lines of journal and ledger, sorted, and the names of evidence and draws."""
    ledger = sorted((results / "ledger.jsonl").read_text().splitlines())
    kept = {path.name for kind in ("evidence/*.mcap", "draws/*.npz") for path in results.glob(kind)}
    return verdict_lines(results), ledger, kept


def test_a_campaign_over_topics_leaves_what_a_replay_over_topics_leaves(
    bags: list[Path], replayed: Path, tmp_path: Path
) -> None:
    with no_pages():
        [cell] = (carried_out(tmp_path, bags[:1], transport="ros", **ASKED) / CELLS).iterdir()
    assert left_by(cell) == left_by(replayed)
    assert len(verdict_lines(cell)) == 2 * 3 and left_by(cell)[2], "there is something to compare"


@pytest.mark.long  # in process: test_campaign_core.py
def test_a_worker_killed_over_topics_changes_nothing(bags: list[Path], replayed: Path, tmp_path: Path) -> None:
    """As soon as its suite has begun the journal: stacks are starting, or answering."""
    conducted = planned(tmp_path, bags[:1], transport="ros", retries=9, **ASKED)
    pools: list[LocalPool] = []
    killed: list[int] = []

    def start(campaign: Campaign, out: Path) -> LocalPool:
        pools.append(LocalPool(1, out / ITEMS))
        return pools[0]

    def kill_one() -> bool:
        if not killed and _lines(conducted.out):
            killed.extend(pools[0].pids)
            os.kill(killed[0], signal.SIGKILL)
        return False

    with no_pages():
        summary = conduct(conducted, kill_one, start=start)
    assert killed and summary["items"] == {"done": 1, "failed": 0, "stopped": 0, "left": 0}
    [cell] = (conducted.out / CELLS).iterdir()
    assert left_by(cell) == left_by(replayed)


# A cell is what a replay over topics leaves (above), and that is what one in process leaves (test_replay.py).
@pytest.mark.long
@pytest.mark.parametrize("stack", ["reference_detector", "reference_tracker"])
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
    said = yaml.safe_load((Path(__file__).parents[2] / "config" / "stacks" / "reference_detector.yaml").read_text())
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


# A worker that is killed is replaced: shown above, and in process in `test_campaign_core.py`.
@pytest.mark.long  # in process: test_campaign_core.py; of a replay over topics: test_replay.py
@pytest.mark.timeout(3 * LIMIT_S)
@pytest.mark.parametrize("victim", ["leader", "worker", "all"])
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
    with CampaignStore(tmp_path / "killed" / FILE) as store:
        assert store.standing().items == {"done": 2}


def _lines(out: Path) -> int:
    """How many lines the journals of a campaign's items have."""
    return sum(path.read_bytes().count(b"\n") for path in (out / ITEMS).glob("*/result.jsonl"))
