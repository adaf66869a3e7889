# SPDX-License-Identifier: Apache-2.0
"""A replay that chooses its pairs judges as many as asked for, as any replay would, and the same when resumed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from made_runs import carry_out, in_process, sparse_drive
from test_resume import cut, left, lines

from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import read_result
from mt_nodes.cli.main import main
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.relations.relation import load_relation
from mt_nodes.runs.replay.explored_frames import ExploredFrames
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.stacks.stack import load_stack

pytestmark = pytest.mark.usefixtures("stacks_here")

FRAMES, PAIRS = 6, 30
NOISE, STACK = load_relation("noise_outside_roi_10"), load_stack("reference_detector")
RELATIONS = ("noise_outside_roi_10", "noise_outside_roi_1000", "points_dropped_10_percent")
FAULTY: dict[str, Any] = {"stack": "reference_detector", "faults": ("grid_index_wrap",), "explore": PAIRS}


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sparse_drive(tmp_path_factory.mktemp("drive") / "street", FRAMES, columns=450)


@pytest.fixture(scope="module")
def explored(bag: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "explored"
    in_process(bag, out, *RELATIONS, **FAULTY)
    return out


def judged(out: Path) -> dict[str, dict[str, Any]]:
    return {line["pair"]: line for line in read_journal(out / "result.jsonl") if line["type"] == "verdict"}


def of_relations(out: Path) -> dict[str, dict[str, Any]]:
    return {pair: line for pair, line in judged(out).items() if "@" not in pair}


def test_so_many_pairs_are_judged_and_control_and_sham_on_each_frame(explored: Path) -> None:
    summary = read_result(explored / "summary.json")
    assert len(of_relations(explored)) == PAIRS == summary["explored"]["pairs"]
    assert len(judged(explored)) == PAIRS + 2 * FRAMES * len(RELATIONS) == summary["offered"]
    assert read_result(explored / "run.json")["pairs"] == summary["offered"]


def test_more_is_judged_where_violations_are_found(explored: Path) -> None:
    counts = {name: sum(f"/{name}/" in pair for pair in of_relations(explored)) for name in RELATIONS}
    assert min(counts.values()) >= 1 and counts["noise_outside_roi_1000"] > counts["points_dropped_10_percent"], counts
    summary = read_result(explored / "summary.json")
    assert {kind["relation"] for kind in summary["explored"]["kinds"]} >= {"noise_outside_roi_1000"}
    assert summary["relations"]["noise_outside_roi_1000"]["outcome"] == "FAIL" and summary["exit_code"] == 1


def test_each_verdict_is_that_of_a_replay_of_everything(explored: Path, bag: Path, tmp_path: Path) -> None:
    asked = {name: value for name, value in FAULTY.items() if name != "explore"}
    in_process(bag, tmp_path / "all", *RELATIONS, draws=4, **asked)
    everything = judged(tmp_path / "all")
    common = [pair for pair in judged(explored) if pair in everything]
    assert len(common) > 2 * FRAMES * len(RELATIONS) and any(pair.endswith("/1") for pair in common)
    assert all(judged(explored)[pair] == everything[pair] for pair in common)


@pytest.mark.parametrize("seed", [3, 5])  # before the first chosen pair, and after most
def test_cut_off_anywhere_it_comes_to_the_same(explored: Path, tmp_path: Path, seed: int) -> None:
    torn = tmp_path / "torn"
    cut(explored, torn, random.Random(seed))
    carry_out(Run.resume(torn))
    for name in ("result.jsonl", "ledger.jsonl"):
        assert lines(torn, name) == lines(explored, name)
    assert left(torn) == left(explored)


def test_a_pair_of_it_is_reproduced(explored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    violated = next(pair for pair, line in of_relations(explored).items() if line["outcome"] == "VIOLATED")
    assert main(["reproduce", str(explored), violated]) == 0, capsys.readouterr().err


def test_every_followup_of_it_is_verified(explored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(explored)]) == 0, capsys.readouterr().out
    assert f"follow-ups: {PAIRS + 2 * FRAMES} checked" in capsys.readouterr().out


def test_the_command_prints_kinds_and_the_report_shows_them(
    bag: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--relations", ",".join(RELATIONS), "--fault", "grid_index_wrap", "--transport", "inprocess"]
    out = tmp_path / "run"
    assert main(["replay", str(bag), *words, "--explore", "8", "--explore-by", "chance", "--out", str(out)]) in (1, 3)
    printed = capsys.readouterr().out
    found = read_result(out / "summary.json")["explored"]
    assert found["by"] == "chance" and "8 pairs chosen by chance" in " ".join(printed.split())
    page = (out / "report.html").read_text()
    assert found["kinds"] and "Kinds found" in page and all(kind["first"] in page for kind in found["kinds"])


def test_frames_are_spread_over_long_drives_by_the_seed() -> None:
    requests = [ReplayRequest(("a", "b"), explore=1000, seed=seed) for seed in (1, 1, 2)]
    drawn = [ExploredFrames.of(request, STACK, [NOISE], {0: 3000, 1: 1000}).frames for request in requests]
    assert drawn[0] == drawn[1] != drawn[2]
    assert sum(map(len, drawn[0].values())) == 100 and min(map(len, drawn[0].values())) > 10
    assert sorted(ExploredFrames.of(requests[0], STACK, [NOISE], {0: 5}).frames[0]) == [0, 1, 2, 3, 4]


def test_what_draws_nothing_at_random_gives_no_second_pair_of_a_frame(bag: Path, tmp_path: Path) -> None:
    in_process(bag, tmp_path / "run", "cloud_mirrored", stack="reference_detector", explore=50)
    assert len(of_relations(tmp_path / "run")) == FRAMES
    assert (
        read_result(tmp_path / "run" / "run.json")["pairs"] == read_result(tmp_path / "run" / "summary.json")["offered"]
    )


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"stack": "reference_tracker"}, "must be stateless"),
        ({"draws": 3}, "--draws 3"),
        ({"explore_by": "luck"}, "expected new_kinds or chance"),
    ],
)
def test_what_cannot_be_explored_is_refused(bag: Path, tmp_path: Path, asked: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        in_process(bag, tmp_path / "run", *RELATIONS, **{"explore": 5, **asked})
    assert not (tmp_path / "run").exists()


def test_what_judges_whole_drives_is_refused_by_name_and_left_out_of_patterns(bag: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="judges whole drives"):
        in_process(bag, tmp_path / "named", "stray_points_output_rate", stack="reference_detector", explore=5)
    request = ReplayRequest((str(bag),), ("*points_*",), transport="inprocess", explore=5)
    run = Run.make(request, tmp_path / "pattern")
    assert "stray_points_output_rate" in run.left_out
