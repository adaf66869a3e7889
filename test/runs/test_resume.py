# SPDX-License-Identifier: Apache-2.0
"""A run that was cut off goes on, and comes to what an undisturbed one comes to."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_arms import BUNDLES, FakeArm, FakeRecorder, answered, pairs_owed, relation, run, seen, suite
from made_runs import about_the_stream, carry_out, in_process, sparse_drive

from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import LineFile, read_result
from mt_nodes.cli.main import main
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Pair
from mt_nodes.engine import recorder
from mt_nodes.engine.evidence import evidence_name
from mt_nodes.engine.journal import read_journal
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.runs.replay.replay_run import Run

STACKS: dict[str, dict[str, Any]] = {
    "detector": {"stack": "reference_detector", "faults": ("grid_index_wrap",)},
    "two_draws": {"stack": "reference_detector", "draws": 2},
    "tracker": {"stack": "reference_tracker", "mode": "twin"},
    "two_pass": {"stack": "reference_tracker", "mode": "two_pass"},
}
RELATIONS = ("noise_outside_roi_10", "noise_outside_roi_1000")
BUNDLES_OF_A_DRIVE = 4


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sparse_drive(tmp_path_factory.mktemp("drive") / "street", BUNDLES_OF_A_DRIVE)


@pytest.fixture(scope="module", params=STACKS)
def undisturbed(request: Any, bag: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / request.param
    in_process(bag, out, *RELATIONS, **STACKS[request.param])
    return out


def cut(whole: Path, torn: Path, at: random.Random) -> None:
    """Leave of a run what a kill leaves: a journal that ends anywhere, a ledger that is no shorter, some evidence."""
    shutil.copytree(whole, torn)
    for made_at_the_end in ("summary.json", "pairs.csv", "junit.xml", "report.html"):
        (torn / made_at_the_end).unlink(missing_ok=True)
    journal = (whole / "result.jsonl").read_bytes()
    end = at.randrange(len(journal))
    (torn / "result.jsonl").write_bytes(journal[:end])
    whole_lines = [json.loads(line) for line in journal[:end].splitlines(keepends=True) if line.endswith(b"\n")]
    judged = [line["pair"] for line in whole_lines if line["type"] == "verdict"]
    ledger = (whole / "ledger.jsonl").read_bytes()
    lines = ledger.splitlines(keepends=True)
    needed = {pair.partition("@")[0] for pair in judged}
    least = max((i + 1 for i, line in enumerate(lines) if json.loads(line)["pair"] in needed), default=0)
    start = sum(map(len, lines[:least]))
    (torn / "ledger.jsonl").write_bytes(ledger[: at.randint(start, len(ledger))])
    for evidence in (torn / "evidence").glob("*.mcap"):
        if at.random() < 0.5:
            evidence.unlink()
            if at.random() < 0.5:  # the view is written before the evidence
                evidence.with_suffix(".npz").unlink(missing_ok=True)


def lines(run_directory: Path, name: str) -> list[str]:
    return sorted((run_directory / name).read_text().splitlines())


def left(run_directory: Path) -> list[str]:
    return sorted(
        str(p.relative_to(run_directory)) for d in ("evidence", "draws") for p in (run_directory / d).iterdir()
    )


def test_evidence_is_written_after_its_view(bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bool] = []
    write = recorder.write_evidence
    monkeypatch.setattr(
        recorder,
        "write_evidence",
        lambda path, *rest: (written.append(path.with_suffix(".npz").exists()), write(path, *rest)),
    )
    in_process(bag, tmp_path / "run", *RELATIONS, **STACKS["detector"])
    assert written and all(written), "a run that is killed between the two and resumed would never have the view"


def test_of_each_relation_the_first_pairs_keep_their_evidence_also_after_a_kill(bag: Path, tmp_path: Path) -> None:
    whole, torn, all_kept = tmp_path / "whole", tmp_path / "torn", tmp_path / "all"
    in_process(bag, all_kept, *RELATIONS, **STACKS["detector"])
    in_process(bag, whole, *RELATIONS, most_evidence=1, **STACKS["detector"])
    assert lines(whole, "result.jsonl") == lines(all_kept, "result.jsonl"), "verdicts do not depend on it"
    violated = [
        Pair.parse(row["pair"]) for row in read_journal(whole / "result.jsonl") if row.get("outcome") == "VIOLATED"
    ]
    first = {pair.relation: evidence_name(pair) for pair in reversed(violated)}
    assert len(violated) > len(first) > 0
    assert {path.name for path in (whole / "evidence").glob("*.mcap")} == set(first.values())
    cut(whole, torn, random.Random(1))
    carry_out(Run.resume(torn))
    assert left(torn) == left(whole) and lines(torn, "result.jsonl") == lines(whole, "result.jsonl")


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 3))])
def test_a_run_cut_off_anywhere_comes_to_the_same(undisturbed: Path, tmp_path: Path, seed: int) -> None:
    torn = tmp_path / "torn"
    cut(undisturbed, torn, random.Random(seed))
    carry_out(Run.resume(torn))
    for name in ("result.jsonl", "ledger.jsonl"):
        assert lines(torn, name) == lines(undisturbed, name)
    summaries = [read_result(d / "summary.json") for d in (torn, undisturbed)]
    for summary in summaries:
        del summary["latency_ms"], summary["work_s"], summary["cpu_s"]  # those of what was still to do
    assert summaries[0] == summaries[1]
    assert left(torn) == left(undisturbed), "evidence that was still on its way is made, too"
    assert len(read_result(torn / "run.json")["resumed"]) == 1


@pytest.mark.parametrize(
    "stack", ["tracker", *(pytest.param(s, marks=pytest.mark.long) for s in ("detector", "two_pass"))]
)
def test_a_stream_goes_on_with_the_frames_that_it_looks_back_on(bag: Path, tmp_path: Path, stack: str) -> None:
    whole, asked = tmp_path / "whole", STACKS[stack]
    in_process(bag, whole, *about_the_stream(tmp_path), **asked)
    assert {"SKIPPED"} < set(read_result(whole / "summary.json")["outcomes"])
    for seed in range(2):
        torn = tmp_path / f"torn_{seed}"
        cut(whole, torn, random.Random(seed))
        carry_out(Run.resume(torn))
        for name in ("result.jsonl", "ledger.jsonl"):
            assert lines(torn, name) == lines(whole, name)


def test_there_is_evidence_to_lose(undisturbed: Path) -> None:
    if "grid_index_wrap" in (undisturbed / "run.json").read_text():
        assert list((undisturbed / "evidence").iterdir())


def test_a_whole_run_has_nothing_to_go_on_with(undisturbed: Path, tmp_path: Path) -> None:
    again = shutil.copytree(undisturbed, tmp_path / "again")
    before = (again / "result.jsonl").read_bytes(), (again / "ledger.jsonl").read_bytes()
    carry_out(Run.resume(again))
    assert ((again / "result.jsonl").read_bytes(), (again / "ledger.jsonl").read_bytes()) == before


# --- what is fed again, and what is not


@dataclass(frozen=True)
class Since(Mutation):
    """Its draws tell with which bundle the episode began."""

    sensors = ("lidar",)

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> int:
        return bundle.index

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        return {"began": int(state)}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        return Followup(((0, bundle.with_clouds(bundle.clouds)),))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        return None


def resumed(done: Sequence[str], **traits: Any) -> tuple[FakeRecorder, FakeArm]:
    recorder, source = FakeRecorder(done), FakeArm("source", lambda sent: answered(seen(1)))
    followup = FakeArm("followup", lambda sent: answered(seen(1))) if traits.get("mode", "twin") == "twin" else None
    run(suite(relation("a", Since()), relation("b", Since())), source, followup, recorder=recorder, **traits)
    return recorder, source


OWED = pairs_owed("ab", len(BUNDLES))


def of_bundles(*numbers: int) -> list[str]:
    return [pair for pair in OWED if int(pair.split("/")[1]) in numbers]


def test_of_a_stateless_stack_only_bundles_that_owe_something_are_fed_again() -> None:
    recorder, source = resumed([*of_bundles(0, 1), "0/2/identity/0@a", "0/2/identity/0@b"])
    assert [sent.bundle.index for sent in source.sent] == [2, 3]
    assert set(recorder.lines) == set(of_bundles(2, 3)) - {"0/2/identity/0@a", "0/2/identity/0@b"}
    assert [pair for pair, _ in recorder.followups[:3]] == ["0/2/points_permuted/0", "0/2/a/0", "0/2/b/0"]


def test_what_persists_over_an_episode_begins_where_it_began_at_first() -> None:
    recorder, _ = resumed(of_bundles(0, 1))
    drawn = [derived.draws[0]["began"] for pair, derived in recorder.followups if "/a/" in pair]
    assert drawn == [0, 0]


@pytest.mark.parametrize("mode", ["twin", "two_pass"])
def test_of_a_stack_that_remembers_the_unfinished_passes_are_fed_again_from_their_beginning(mode: str) -> None:
    control_and_sham = [pair for pair in OWED if "/a/" not in pair and "/b/" not in pair]
    recorder, source = resumed([*control_and_sham, "0/0/a/0", "0/1/a/0"], mode=mode, stateless=False)
    assert set(recorder.lines) == {"0/2/a/0", "0/3/a/0", *(f"0/{i}/b/0" for i in range(4))}
    passes = 2 if mode == "twin" else 3
    assert [sent.bundle.index for sent in source.sent] == [0, 1, 2, 3] * passes


# --- what cannot go on


def test_another_bag_under_the_same_name_is_found_out(tmp_path: Path) -> None:
    bag, out = sparse_drive(tmp_path / "bag", 2), tmp_path / "run"
    in_process(bag, out, "noise_outside_roi_10")
    condition = (out / "result.jsonl").read_text().splitlines(keepends=True)[0]
    (out / "result.jsonl").write_text(condition)
    shutil.rmtree(bag)
    sparse_drive(bag, 2, seed=2)
    carry_out(Run.resume(out))
    summary = read_result(out / "summary.json")
    assert summary["exit_code"] == 4
    assert "resume with the same bag, versions and CPU type" in summary["infrastructure"]


def test_a_changed_relation_or_stack_is_told(bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mine = {"id": "mine", "kind": "necessary", "because": "x", "check": "obstacles_kept"}
    stack = {"callable": "mt_nodes.stacks.reference.detector:Detector", "points_frame": "base_link", "stateless": True}

    def write(points: int, deadline_s: float) -> None:
        relation_file = {**mine, "mutate": [{"noise_outside_roi": {"points": points}}]}
        Path("mine.yaml").write_text(json.dumps(relation_file))
        Path("stack.yaml").write_text(json.dumps({**stack, "deadline_s": deadline_s}))

    write(5, 1.0)
    in_process(bag, tmp_path / "run", "mine.yaml", stack="stack.yaml", limit=1)
    write(6, 2.0)
    with pytest.raises(UsageError, match="changed since: relation 'mine', stack 'stack'; start anew"):
        Run.resume(tmp_path / "run")


def test_two_cannot_write_at_once(tmp_path: Path) -> None:
    file = LineFile(tmp_path / "result.jsonl")
    file.append({"a": 1})
    with pytest.raises(UsageError, match="another run is writing to it"):
        LineFile(tmp_path / "result.jsonl")
    file.close()
    LineFile(tmp_path / "result.jsonl").close()
    assert (tmp_path / "result.jsonl").read_text().count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--resume", "run", "bag"], "--resume run: got BAG, too; the run goes on as run/run.json says"),
        (["--resume", "run", "--seed", "3", "--out", "x"], "got --seed, --out, too"),
        (["--resume", "nowhere"], "run.json: there is no such file"),
        ([], "got no bag; type `mt replay BAG`, or `mt replay --resume DIR`"),
    ],
)
def test_what_cannot_be_resumed_is_told(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["replay", *words]) == 2
    assert said in capsys.readouterr().err


# --- what was judged can be read before the run goes on


def test_a_killed_run_can_be_reported_on(undisturbed: Path, tmp_path: Path, capsys: Any) -> None:
    torn = tmp_path / "torn"
    cut(undisturbed, torn, random.Random(1))
    judged = len([line for line in read_journal(torn / "result.jsonl") if line["type"] == "verdict"])
    assert main(["report", str(torn)]) == 0
    summary = read_result(torn / "summary.json")
    assert summary["offered"] == sum(summary["outcomes"].values()) == judged
    assert summary["exit_code"] == 4 and "mt replay --resume" in summary["infrastructure"]
    assert list(summary["relations"]) == list(RELATIONS)
    assert (torn / "report.html").stat().st_size and (torn / "pairs.csv").read_text().count("\n") == judged + 1
    carry_out(Run.resume(torn))
    assert read_result(torn / "summary.json")["exit_code"] != 4


def test_of_a_run_that_is_resumed_no_old_summary_is_left(undisturbed: Path, tmp_path: Path) -> None:
    again = shutil.copytree(undisturbed, tmp_path / "again")
    Run.resume(again)
    assert not (again / "summary.json").exists()
