# SPDX-License-Identifier: Apache-2.0
"""What campaigns and other finished runs leave in the database of failing cases, and what plays that again."""

from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from campaign_runs import here
from made_runs import no_pages
from recordings import bundles

from mt_nodes.base.jsonl import write_result
from mt_nodes.cli.main import main
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.verdict import Outcome, Pair
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.ledger import find_followup
from mt_nodes.relations.mutations.lidar.drawn_returns import PointsDropped
from mt_nodes.runs.campaign.failures import FailureCase, Failures
from mt_nodes.runs.replay.replay_run import Run

#: Clouds of a drive, and those of them that the stack can be made to fail in.
POINTS, COUNT, FAILING = 100, 4, 2
STACK = '''
from mt_nodes.data.outputs import Control, Detections, Diagnostics, Output
import numpy as np

class Odd:
    """Loses its obstacle, and says that something is wrong, when points are missing in certain clouds."""
    def __init__(self, least):
        self.least = least
    def __call__(self, points, stamp_ns):
        lost = len(points) < self.least and stamp_ns // 100_000_000 % 100 in (1, 3)
        seen = Detections.make("base_link", None, np.tile([10.0, 0.0, 0.0], (1 - lost, 1)), np.ones((1 - lost, 3)))
        return Output(seen, diagnostics=Diagnostics({"lidar": "points are missing"} if lost else {}))
'''
OUTPUTS: dict[str, Any] = {"detections": {}, "diagnostics": {}}


def stack(place: Path, least: int, stateless: bool = True) -> None:
    told = {"name": "odd", "callable": "odd_again:Odd", "params": {"least": least}, "outputs": OUTPUTS}
    (place / "odd.yaml").write_text(json.dumps({**told, "stateless": stateless}))


def relation(place: Path, name: str, check: Any) -> None:
    head = {"id": name, "kind": "expected", "because": "for tests", "min_decided": 1, "check": check}
    (place / f"{name}.yaml").write_text(json.dumps({**head, "mutate": [{"points_dropped": {"share": 0.3}}]}))


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with a campaign over two drives, with two seeds and two settings, whose failures were kept."""
    place = tmp_path_factory.mktemp("campaign")
    for number in range(2):
        write_bundles(place / "drives" / f"d{number}", bundles(COUNT, points=POINTS + number))
    (place / "odd_again.py").write_text(STACK)
    stack(place, POINTS - 15)
    relation(place, "dropped", "obstacles_kept")
    asked = {"id": "dropped.yaml", "set": {"points_dropped.share": [0.05, 0.3]}}
    more = {"stacks": ["odd.yaml"], "relations": [asked], "seeds": [0, 4], "transport": "inprocess"}
    (place / "night.yaml").write_text(yaml.safe_dump({"bags": ["drives/*"], **more}))
    with pytest.MonkeyPatch.context() as patch, no_pages():
        patch.chdir(place)
        patch.setattr("mt_nodes.runs.campaign.conductor.pool_of", here)
        assert main(["campaign", "night.yaml", "--out", "night", "--failures"]) == 3  # half of too few pairs
    yield place


@pytest.fixture
def place(campaign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of work with a database, and a stack file of its own."""
    shutil.copy(campaign / "mt_failures.sqlite", tmp_path)
    shutil.copy(campaign / "odd_again.py", tmp_path)
    stack(tmp_path, POINTS - 15)
    monkeypatch.chdir(tmp_path)
    with no_pages():
        yield tmp_path


def kept() -> list[FailureCase]:
    with Failures(Path("mt_failures.sqlite")) as failures:
        return failures.cases()


def again(*words: str, out: str = "again") -> tuple[int, dict[str, Any]]:
    """Play the stored cases; return the exit code, and what became of them."""
    code = main(["replay", "--failures", "--stack", "odd.yaml", "--transport", "inprocess", "--out", out, *words])
    return code, json.loads((Path(out) / "failures.json").read_text())


def verdicts(results: Path) -> list[dict[str, Any]]:
    return [line for line in read_journal(results / "result.jsonl") if line["type"] == "verdict"]


def violated(cell: Path) -> set[str]:
    return {line["pair"] for line in verdicts(cell) if line["outcome"] == "VIOLATED"}


def test_a_campaign_leaves_each_of_its_violated_pairs_once(
    campaign: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = sorted((campaign / "night" / "cells").iterdir())
    wanted = {(int(cell.name[-1]), pair) for cell in cells for pair in violated(cell)}
    assert len(wanted) == 2 * 2 * FAILING and {pair.partition("/")[0] for _, pair in wanted} == {"0", "1"}
    before = kept()
    assert {(case.seed, str(case.pair)) for case in before} == wanted and len(before) == len(wanted)
    assert {Path(case.bag).name: case.bag_sha256 for case in before}.keys() == {"d0", "d1"}
    assert main(["failures", "add", str(campaign / "night"), *map(str, cells)]) == 0
    assert f"0 new cases stored in mt_failures.sqlite, {len(wanted)} known before" in capsys.readouterr().out
    assert [case.key for case in kept()] == [case.key for case in before]
    (place / "mt_failures.sqlite").unlink()
    assert main(["failures", "add", str(cells[0]), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"new": 2 * FAILING, "known": 0}
    assert {case.key for case in kept()} == {case.key for case in before if case.seed == 0}


def test_they_are_played_again_as_they_were_and_nothing_else_is(campaign: Path, place: Path) -> None:
    code, told = again()
    assert code == told["exit_code"] == 1 and len(told["cases"]) == len(kept())
    assert {row["outcome"] for row in told["cases"]} == {Outcome.VIOLATED.value}
    results = {(row["seed"], Path(row["results"])) for row in told["cases"]}
    assert len(results) == 2 * 2, "one replay for each drive and seed"
    for seed, directory in results:
        cell = campaign / "night" / "cells" / f"odd-seed{seed}"
        lines, before = verdicts(directory), {line["pair"]: line for line in verdicts(cell)}
        own = [line for line in lines if "@" not in line["pair"]]
        assert {line["pair"] for line in own} <= violated(cell) and len(own) == FAILING
        assert all(line == before[line["pair"]] for line in lines)
        assert len(lines) == 3 * FAILING == Run.load(directory).pairs_to_come, "with their control and sham"
        (pair, *_) = (Pair.parse(line["pair"]) for line in own)
        assert find_followup(directory, pair)["sha256"] == find_followup(cell, pair)["sha256"]


def test_what_was_mended_holds_and_what_is_not_there_is_told(
    campaign: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack(place, 0)
    code, told = again("--json")
    assert code == 0 and {row["outcome"] for row in told["cases"]} == {Outcome.HOLDS.value}
    assert {case.held for case in kept()} == {1}
    capsys.readouterr()
    moved = {case.bag for case in kept() if case.bag.endswith("d1")}
    with Failures(Path("mt_failures.sqlite")) as failures:
        failures.failed([FailureCase(**{**vars(case), "bag": "nowhere/d1"}) for case in kept() if case.bag in moved])
    code, told = again(out="second")
    assert code == 2 and [row["outcome"] for row in told["cases"]].count("not played") == 2 * FAILING
    assert "nowhere/d1: the bag is not there any more" in capsys.readouterr().out
    assert again("--fault", "none_such", out="third")[1]["cases"] == []


def test_a_bag_with_another_content_is_another_bag(place: Path, tmp_path: Path) -> None:
    write_bundles(tmp_path / "d0", bundles(COUNT, points=POINTS + 5))
    with Failures(Path("mt_failures.sqlite")) as failures:
        cases = [FailureCase(**{**vars(case), "bag": str(tmp_path / "d0")}) for case in failures.cases()]
        failures.failed([case for case in cases if case.pair.episode == 0 and case.seed == 0])
    rows = again()[1]["cases"]
    assert {row["why"] for row in rows if row["outcome"] == "not played"} == {
        f"{tmp_path / 'd0'}: the bag has another content than when the case failed"
    }


@pytest.mark.parametrize("keep", [False, True])
def test_a_case_expires_with_the_code_of_its_mutation(
    place: Path, keep: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read, count, changed = Path.read_bytes, len(kept()), Path(inspect.getfile(PointsDropped)).name
    monkeypatch.setattr(Path, "read_bytes", lambda self: read(self) + b"#" * (self.name == changed))
    code, told = again(*(["--keep-expired"] if keep else []))
    assert code == 3 and told["cases"] == [] and "8 cases expired" in capsys.readouterr().out
    assert len(kept()) == (count if keep else 0)


def test_a_case_whose_plugin_is_gone_has_expired(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (case, *_) = kept()
    words = case.relation.replace("points_dropped", "points_of_yore")
    with Failures(Path("mt_failures.sqlite")) as failures:
        failures.failed([FailureCase(**{**vars(case), "relation": words})])
    again()
    assert "1 case expired" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["replay", "--failures", "--seed", "3"], "leave --seed out"),
        (["replay", "--failures", "--pace", "realtime"], "leave --pace out"),
        (["replay", "--failures", "--failures-file", "nowhere.sqlite"], "`mt replay failures add DIR` makes it"),
        (["failures", "add"], "expected results directories of runs"),
        (["failures", "add", "nowhere"], "no result.jsonl"),
        (["failures", "add", "made_again"], "give the run that it is of"),
        (["failures", "add", "beside"], "holds no replay of bags"),
        (["campaign", "night.yaml", "--failures-file", "x"], "--failures-file goes with --failures"),
    ],
)
def test_what_does_not_go_is_told(place: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    requests: dict[str, Any] = {
        "made_again": {"bags": ["x"], "only": "0/0/dropped/0"},
        "beside": {"config": "live.yaml"},
    }
    for name, request in requests.items():
        (place / name).mkdir()
        (place / name / "result.jsonl").touch()
        write_result(place / name / "run.json", {"request": request, "relations": [], "stack": "odd"})
    assert main(words) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("stateless", [True, False])
def test_a_pair_that_stands_for_an_episode_is_kept_and_judged_first(place: Path, stateless: bool) -> None:
    (place / "mt_failures.sqlite").unlink()
    write_bundles(place / "drive", bundles(COUNT, points=POINTS))
    relation(place, "healthy", "no_new_errors")
    relation(place, "dropped", "obstacles_kept")
    stack(place, POINTS, stateless)
    usual = ["replay", "drive", "--stack", "odd.yaml", "--transport", "inprocess", "--failures"]
    usual += ["--relations", "dropped.yaml,healthy.yaml"]
    assert main([*usual, "--out", "one"]) == 3, "too few pairs for an answer"
    whole = "0/-/healthy/0"
    assert whole in [str(case.pair) for case in kept()]
    with Failures(Path("mt_failures.sqlite")) as failures:
        failures.forget(case.key for case in kept() if str(case.pair) != whole)
    assert main([*usual, "--out", "two"]) == 3
    before, after = verdicts(place / "one"), verdicts(place / "two")
    assert [line["pair"] for line in after].index(whole) == 0 < [line["pair"] for line in before].index(whole)
    assert sorted(map(str, after)) == sorted(map(str, before))
    with Failures(Path("mt_failures.sqlite")) as failures:
        failures.forget(case.key for case in kept() if str(case.pair) != whole)
    code, told = again()
    assert code == 1 and [row["pair"] for row in told["cases"]] == [whole]
    played = {line["pair"]: line for line in verdicts(Path(told["cases"][0]["results"]))}
    assert played[whole] == next(line for line in before if line["pair"] == whole)
