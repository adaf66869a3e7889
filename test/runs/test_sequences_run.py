# SPDX-License-Identifier: Apache-2.0
"""Whole runs with checks over a sequence: evidence, report, noise floor, going on after a kill, one more time."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from bad_bags import bag as written
from bad_bags import fields, message
from made_runs import carry_out, in_process
from recordings import bundles

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.jsonl import read_result, write_result
from mt_nodes.cli.main import main
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.ledger import find_followups
from mt_nodes.engine.recorder import Recorder
from mt_nodes.engine.summary.noise_floor import Numbers, PairMeasure, floor_of
from mt_nodes.relations.relation import load_relation
from mt_nodes.report.run_files import remake
from mt_nodes.report.series_view import draw_series, read_series
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.stacks.stack import load_stack

COUNT = 30
STACK = '''
from mt_nodes.data.outputs import Control, Diagnostics, Output

class Slow:
    """Follows the number of points with a speed that remembers; says so when points are missing."""
    def __init__(self, share=0.1):
        self.speed, self.share = 5.0, share
    def __call__(self, points):
        self.speed += self.share * (len(points) / 20.0 - self.speed)
        errors = {} if len(points) == 100 else {"lidar": "points are missing"}
        return Output(control=Control(0, 0.0, self.speed), diagnostics=Diagnostics(errors))
'''


def made_stack(directory: Path, stateless: bool) -> str:
    (directory / "sequence_stack.py").write_text(STACK)
    said: dict[str, Any] = {"control": {}, "diagnostics": {}}
    told = {"name": "slow", "callable": "sequence_stack:Slow", "stateless": stateless, "outputs": said}
    path = directory / "stack.yaml"
    # Who forgets follows at once.
    path.write_text(json.dumps({**told, "params": {"share": 1.0} if stateless else {}}))
    return str(path)


def made_relation(directory: Path, name: str, check: Any, **rest: Any) -> str:
    head = {"id": name, "kind": "expected", "because": "x", "mutate": [{"points_dropped": {"share": 0.3}}]}
    path = directory / f"{name}.yaml"
    path.write_text(json.dumps({**head, "check": check, "min_decided": 1, **rest}))
    return str(path)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sequences")
    write_bundles(directory / "drive", bundles(COUNT, points=100))
    return directory


@pytest.fixture(scope="module")
def relations(place: Path) -> list[str]:
    return [
        made_relation(place, "throughout", "keeps_current_throughout"),
        made_relation(place, "alive", "still_answers"),
        made_relation(place, "healthy", "no_new_errors"),
        made_relation(place, "speed", {"speed_within": {"tolerance_mps": 2.0}}),
    ]


@pytest.fixture(scope="module", params=[True, False], ids=["forgets", "remembers"])
def done(request: Any, place: Path, relations: list[str]) -> Path:
    name = f"run_{request.param}"
    stack = made_stack(place, request.param)
    return in_process(place / "drive", place / name, *relations, stack=stack).out


def lines(run: Path) -> dict[str, dict[str, Any]]:
    return {line["pair"]: line for line in read_journal(run / "result.jsonl") if line["type"] == "verdict"}


def summary(run: Path) -> dict[str, Any]:
    made: dict[str, Any] = read_result(run / "summary.json")
    return made


def test_every_episode_owes_one_line_a_relation_and_the_totals_reconcile(done: Path) -> None:
    told = lines(done)
    whole = {name: line for name, line in told.items() if Pair.parse(name).bundle is None}
    assert set(whole) == {
        f"0/-/{who}"
        for name in ("throughout", "alive", "healthy")
        for who in (f"{name}/0", f"identity/0@{name}", f"points_permuted/0@{name}")
    }
    assert summary(done)["offered"] == len(told) == Run.load(done).pairs_to_come == 9 + 3 * COUNT
    assert {name: whole[f"0/-/{name}/0"]["outcome"] for name in ("throughout", "alive", "healthy")} == {
        "throughout": "VIOLATED",
        "alive": "HOLDS",
        "healthy": "VIOLATED",
    }
    assert whole["0/-/healthy/0"]["detail"]["errors"] == ["lidar"]
    assert all(line["outcome"] == "HOLDS" for name, line in whole.items() if "@" in name)


def test_a_violated_sequence_leaves_what_both_arms_said(done: Path) -> None:
    told = lines(done)["0/-/throughout/0"]
    assert not (done / "evidence" / "0_-_alive_0.csv").exists()
    with (done / "evidence" / "0_-_throughout_0.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    off = [abs(float(r["source_speed_mps"]) - float(r["followup_speed_mps"])) for r in rows]
    assert max(off) / 0.5 == pytest.approx(told["measured"])
    assert {r["changed"] for r in rows} == {"1"}
    settling = sum(line["outcome"] == "SETTLING" for name, line in lines(done).items() if "/speed/" in name)
    assert len(rows) == COUNT - settling


def test_the_report_draws_it_and_tells_the_floor_of(done: Path, tmp_path: Path) -> None:
    page = (done / "report.html").read_text()
    assert page.count('alt="Outputs of both arms over the whole sequence') == 2
    assert "Noise floor" in page and "evidence/0_-_throughout_0.csv" in page
    floor = summary(done)["relations"]["speed"]["measured"]
    assert floor["unit"] == "m/s" and floor["bound"] == 2.0
    assert floor["control"]["max"] == floor["sham"]["max"] == 0.0 < floor["relation"]["p50"] <= floor["relation"]["max"]
    assert "measured" not in summary(done)["relations"]["alive"], "inputs in a row are counted, not measured"
    broken = Path(shutil.copytree(done, tmp_path / "copy"))
    (broken / "evidence" / "0_-_throughout_0.csv").write_text("stretch,stamp_ns\n0,soon\n")
    remake(broken)
    assert "cannot be read as the table of a sequence" in (broken / "report.html").read_text()
    with pytest.raises(InfrastructureError, match="cannot be read as the table"):
        draw_series(read_series(broken / "evidence" / "0_-_throughout_0.csv"))


def test_a_run_that_was_cut_off_comes_to_the_same(done: Path, tmp_path: Path) -> None:
    undisturbed = lines(done)
    torn = Path(shutil.copytree(done, tmp_path / "torn"))
    journal = torn / "result.jsonl"
    kept = [text for text in journal.read_text().splitlines(keepends=True) if "/-/" not in text]
    journal.write_text("".join(kept[:-5]))
    (torn / "evidence" / "0_-_healthy_0.csv").unlink()
    carry_out(Run.resume(torn))
    assert lines(torn) == undisturbed and len(list(read_journal(journal))) == len(undisturbed) + 1
    assert (torn / "evidence" / "0_-_healthy_0.csv").exists()


def test_a_finished_run_owes_nothing_more(done: Path, tmp_path: Path) -> None:
    whole = Path(shutil.copytree(done, tmp_path / "whole"))
    with Recorder(Run.resume(whole), lambda line: None) as recorder:
        assert all(recorder.done(Pair.parse(name)) for name in lines(whole))


def test_evidence_that_was_lost_is_made_again(done: Path, tmp_path: Path) -> None:
    torn = Path(shutil.copytree(done, tmp_path / "torn"))
    (torn / "evidence" / "0_-_throughout_0.csv").unlink()
    carry_out(Run.resume(torn))
    assert (torn / "evidence" / "0_-_throughout_0.csv").exists() and lines(torn) == lines(done)


def reproduced(
    run: Path, pair: str, out: Path, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, dict[str, Any]]:
    code = main(["reproduce", str(run), pair, "--json", "--transport", "inprocess", "--out", str(out), *words])
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, told


@pytest.mark.parametrize("pair", ["0/-/throughout/0", "0/-/identity/0@throughout"])
def test_a_sequence_comes_again(done: Path, pair: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = reproduced(done, pair, tmp_path / "again", capsys)
    assert (code, told["same_followup"], told["differs"]) == (0, True, [])
    assert (tmp_path / "again" / "evidence" / f"{pair.replace('/', '_')}.csv").exists()


def test_a_sequence_of_other_draws_is_not_the_same(
    done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path(shutil.copytree(done, tmp_path / "copy"))
    about = read_result(copy / "run.json")
    about["request"]["seed"] = 9
    write_result(copy / "run.json", about)
    code, told = reproduced(copy, "0/-/throughout/0", tmp_path / "again", capsys, "--trust")
    assert code == 1 and told["from_draws"] == told["expected"] != told["from_seed"]
    main(["reproduce", str(done), "0/-/throughout/0", "--transport", "inprocess", "--out", str(tmp_path / "told")])
    assert "the whole episode from stamp" in capsys.readouterr().out
    with pytest.raises(UsageError, match="no follow-up of the episode of '3/-/throughout/0'"):
        find_followups(done, Pair.parse("3/-/throughout/0"))


def test_a_frame_that_cannot_be_read_is_told_beside_the_sequence(relations: list[str], tmp_path: Path) -> None:
    rows = [message(i) for i in range(5)]
    rows[2] = message(2, fields=fields(("x", 0, 7)))
    run = in_process(written(tmp_path / "bag", rows), tmp_path / "run", relations[1], stack=made_stack(tmp_path, True))
    told = lines(run.out)
    assert told["0/2/alive/0"]["outcome"] == "ERROR" and told["0/-/alive/0"]["outcome"] == "HOLDS"
    assert summary(run.out)["exit_code"] == 4


def test_a_stack_that_tells_no_diagnostics_is_refused(relations: list[str], tmp_path: Path) -> None:
    stack = load_stack(made_stack(tmp_path, True))
    healthy = load_relation(relations[2])
    assert incompatibility(healthy, stack) is None and stack.answers == ("control",)
    assert "judges diagnostics; stack 'reference_detector' says no such" in str(
        incompatibility(healthy, load_stack("reference_detector"))
    )
    for wrong, says in (
        ({"answer": ["diagnostics"]}, "diagnostics answer no input"),
        ({"outputs": {"diagnostics": {}}}, "diagnostics answer no input"),
        (
            {"callable": "", "command": ["x"], "outputs": {"control": {}, "diagnostics": {"fields": {"a": "b"}}}},
            "got fields",
        ),
    ):
        (tmp_path / "wrong.yaml").write_text(json.dumps({**json.loads((tmp_path / "stack.yaml").read_text()), **wrong}))
        with pytest.raises(UsageError, match=says):
            load_stack(str(tmp_path / "wrong.yaml"))


def test_a_violation_above_the_floor_missed_its_bound_by_more_than_any_of_control_and_sham() -> None:
    def measured(*values: float, unit: str = "m/s") -> Numbers:
        numbers = Numbers()
        for v in values:
            numbers.take(PairMeasure(v, 0.5, 0.5 - v, unit))
        return numbers

    floor = floor_of(measured(0.1, 0.6, 0.8), measured(0.2, 0.7), measured(0.1))
    assert floor is not None and (floor["violated"], floor["above"]) == (2, 1)
    assert floor["control"] == {"n": 2, "p50": 0.45, "p95": 0.675, "max": 0.7}
    assert floor_of(measured(), measured(0.2), measured()) is None
    bare = floor_of(measured(0.6), measured(), measured(0.1, unit="rad"))
    assert bare is not None and (bare["above"], bare["sham"]["n"]) == (1, 0)
