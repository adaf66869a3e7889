# SPDX-License-Identifier: Apache-2.0
"""One pair of a finished run once more: proof, judgement, and what is said when something is not as it was."""

from __future__ import annotations

import dataclasses
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import about_the_stream, carry_out, in_process, sparse_drive
from rosbags.highlevel import AnyReader

from mt_nodes.base.jsonl import read_result, write_result
from mt_nodes.cli.main import main
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.ledger import find_followup
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.engine.recorded_pair import RecordedPair
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.relation import Suite, load_suite
from mt_nodes.runs.again.reproduce import prove
from mt_nodes.runs.replay.execute import Run

pytestmark = pytest.mark.usefixtures("stacks_here")

NAME = "noise_outside_roi_1000"
BUNDLES = 3


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sparse_drive(tmp_path_factory.mktemp("bag") / "drive", BUNDLES)


@pytest.fixture(scope="module")
def done(bag: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stateless stack with a fault."""
    return in_process(bag, tmp_path_factory.mktemp("done") / "run", NAME, faults=("grid_index_wrap",)).out


@pytest.fixture(scope="module")
def remembering(bag: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stack that remembers, with the same fault."""
    asked = {"faults": ("grid_index_wrap",), "stack": "reference_tracker"}
    return in_process(bag, tmp_path_factory.mktemp("remembering") / "run", NAME, **asked).out


@pytest.fixture
def copy(done: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(done, tmp_path / "copy", ignore=shutil.ignore_patterns("reproduced")))


def lines(run: Path) -> dict[str, dict[str, Any]]:
    return {line["pair"]: line for line in read_journal(run / "result.jsonl") if line["type"] == "verdict"}


def violated(run: Path) -> list[str]:
    return [pair for pair, line in lines(run).items() if line["outcome"] == "VIOLATED"]


def reproduce(capsys: pytest.CaptureFixture[str], run: Path, pair: str, *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["reproduce", str(run), pair, "--json", *words])
    out = capsys.readouterr().out
    return code, json.loads(out) if out else {}


def edit_run(run: Path, **changes: Any) -> None:
    about = read_result(run / "run.json")
    for section, values in changes.items():
        about[section] |= values
    write_result(run / "run.json", about)


def test_a_violated_pair_comes_again(done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = violated(done)[-1]
    code, told = reproduce(capsys, done, pair)
    assert code == 0 and told["same_followup"] and told["differs"] == [] and told["changed"] == []
    assert told["expected"] == told["from_draws"] == told["from_seed"]
    assert told["expected"] == find_followup(done, Pair.parse(pair))["sha256"]
    out = Path(told["results"])
    assert out == done / "reproduced" / pair.replace("/", "_")
    assert lines(out) == {pair: lines(done)[pair]}
    assert {p.suffix for p in (out / "evidence").iterdir()} == {".mcap", ".npz"}
    assert find_followup(out, Pair.parse(pair)) == find_followup(done, Pair.parse(pair))
    code, told = reproduce(capsys, done, pair)
    assert code == 0 and Path(told["results"]).name == out.name + "_2"


@pytest.mark.parametrize("pair", [f"0/1/identity/0@{NAME}", f"0/2/points_permuted/0@{NAME}"])
def test_control_and_sham_come_again_and_leave_evidence(
    done: Path, pair: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = reproduce(capsys, done, pair, "--out", str(tmp_path / "out"))
    assert (code, told["now"]["outcome"]) == (0, "HOLDS")
    (mcap,) = (tmp_path / "out" / "evidence").glob("*.mcap")
    with AnyReader([mcap]) as reader:
        topics = {c.topic for c in reader.connections}
    said = {f"/mt/{arm}/perception/obstacles" for arm in ("source", "followup")}
    assert said <= topics


def test_a_stack_that_remembers_is_given_what_came_before(
    remembering: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = f"0/{BUNDLES - 1}/{NAME}/0"
    code, told = reproduce(capsys, remembering, pair, "--out", str(tmp_path / "out"))
    assert code == 0 and told["differs"] == []
    before = {name: line for name, line in lines(remembering).items() if f"/{NAME}/" in name}
    assert lines(tmp_path / "out") == before and len(before) == BUNDLES
    assert len(list((tmp_path / "out" / "evidence").glob("*.mcap"))) == 1


def test_everything_is_printed(done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = violated(done)[0]
    assert main(["reproduce", str(done), pair, "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    sha256 = find_followup(done, Pair.parse(pair))["sha256"]
    assert out.count(sha256) == 3 and "the judgement is the same as in the run" in out
    assert lines(done)[pair]["reason"] in out and str(tmp_path / "out") in out


def test_another_seed_is_not_the_same(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit_run(copy, request={"seed": 5})
    code, told = reproduce(capsys, copy, violated(copy)[0])
    assert code == 1 and not told["same_followup"] and "results" not in told
    assert told["from_draws"] == told["expected"] != told["from_seed"]


def test_other_draws_are_not_the_same(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = violated(copy)[0]
    file = copy / find_followup(copy, Pair.parse(pair))["arrays"]
    with np.load(file) as arrays:
        changed = {name: arrays[name].copy() for name in arrays.files}
    floats = next(a for a in changed.values() if a.dtype.kind == "f" and a.size)
    floats += 0.5
    np.savez(file, **changed)
    assert main(["reproduce", str(copy), pair]) == 1
    out = capsys.readouterr().out
    assert "DIFFERS" in out and "is not the same bit for bit" in out and not (copy / "reproduced").exists()
    assert find_followup(copy, Pair.parse(pair))["sha256"] in out


def test_another_bag_is_not_the_same(copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], bag: Path) -> None:
    pair = violated(copy)[0]
    other = sparse_drive(tmp_path / "other", BUNDLES, seed=2)
    assert reproduce(capsys, copy, pair, "--bag", str(other))[0] == 1
    moved = Path(shutil.copytree(bag, tmp_path / "moved"))
    assert reproduce(capsys, copy, pair, "--bag", str(moved))[0] == 0


def test_a_bag_with_other_stamps_is_told(copy: Path, tmp_path: Path) -> None:
    finished = RecordedPair.find(copy, violated(copy)[0])
    late = dataclasses.replace(finished, verdict=dataclasses.replace(finished.verdict, stamp_ns=1))
    proof = prove(Run.make(finished.request(), copy), late)
    assert "it is another bag or was changed" in proof.why[0]


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ("0/0/noise", "expected EPISODE/BUNDLE/RELATION/DRAW"),
        ("0/99/identity/0", "no verdict of pair '0/99/identity/0'"),
        ("0/1/identity/0", f"its follow-up was judged as 0/1/identity/0@{NAME}"),
    ],
)
def test_unknown_pairs_are_usage_errors(done: Path, pair: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", str(done), pair]) == 2
    assert says in capsys.readouterr().err


def test_what_is_missing_is_named(copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = violated(copy)[0]
    assert main(["reproduce", str(tmp_path), pair]) == 2
    assert "run.json" in capsys.readouterr().err
    edit_run(copy, request={"bags": ["nowhere"]})
    assert main(["reproduce", str(copy), pair]) == 2
    assert "the run's bag nowhere is not there; say where it is now with --bag" in capsys.readouterr().err
    shutil.rmtree(copy / "draws")
    assert main(["reproduce", str(copy), pair, "--bag", "nowhere"]) == 2


def test_lost_draws_are_not_the_same(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(copy / "draws")
    code, told = reproduce(capsys, copy, violated(copy)[0])
    assert code == 1 and told["from_draws"] is None and told["from_seed"] == told["expected"]


def test_it_works_from_another_directory(
    bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(bag.parent)
    run = in_process(Path(bag.name), tmp_path / "run", NAME, limit=1).out
    monkeypatch.chdir(tmp_path)
    assert reproduce(capsys, run, f"0/0/{NAME}/0")[0] == 0


def test_a_changed_world_is_told(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit_run(copy, versions={"numpy": "0.1"}, machine={"cpu": "abacus"}, request={"pace": "realtime"})
    about = read_result(copy / "run.json")
    about["relations"][-1]["because"] = "x"
    write_result(copy / "run.json", about)
    assert main(["reproduce", str(copy), violated(copy)[0]]) == 0
    err = capsys.readouterr().err
    for piece in (
        "numpy: 0.1 in the run",
        "CPU type: abacus",
        "pace: realtime",
        f"relation {NAME} has been edited: because\n",
    ):
        assert f"mt: warning: differs from the run: {piece}" in err
    assert "stack" not in err


def test_another_judgement_is_told(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit_run(copy, request={"faults": []})
    code, told = reproduce(capsys, copy, violated(copy)[0])
    assert code == 3 and told["same_followup"] and "outcome" in told["differs"]
    assert (told["recorded"]["outcome"], told["now"]["outcome"]) == ("VIOLATED", "HOLDS")
    assert any("stack reference_detector has been edited: params (it was" in note for note in told["changed"])


@pytest.mark.parametrize("stack", ["reference_tracker", pytest.param("reference_detector", marks=pytest.mark.long)])
def test_a_stream_comes_again_frame_by_frame(stack: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bag = sparse_drive(tmp_path / "drive", 4)
    run = in_process(bag, tmp_path / "run", *about_the_stream(tmp_path), stack=stack).out
    for pair, line in lines(run).items():
        if "/0@" in pair or not (pair.startswith("0/3/") or pair == "0/1/frames_dropped/0"):
            continue
        code, told = reproduce(capsys, run, pair)
        assert (code, told["differs"], told["same_followup"]) == (0, [], True)
        assert told["now"]["outcome"] == line["outcome"]
        again = lines(Path(told["results"]))
        assert again == {name: lines(run)[name] for name in again}, "what is played before it ends as in the run"
    assert lines(run)["0/1/frames_dropped/0"]["outcome"] == "SKIPPED"


@dataclass(frozen=True)
class Drifts(Mutation):
    """Moves the cloud by what the first bundle of the drive has decided."""

    sensors = ("lidar",)

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> float:
        return float(rng.normal() + bundle.index)

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        return {"shift_m": state}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        cloud = bundle.cloud()
        points = cloud.points.copy()
        points["x"] += np.float32(draw["shift_m"])
        moved = dataclasses.replace(cloud, points=points)
        return Followup(((0, dataclasses.replace(bundle, clouds=(moved,))),))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        return None


def test_what_the_first_bundle_decided_counts_for_later_ones(bag: Path, tmp_path: Path) -> None:
    plain = load_suite((NAME,))
    suite = Suite((dataclasses.replace(plain.relations[0], mutate=(Drifts(),)),), plain.control, plain.sham)
    request = ReplayRequest((str(bag),), (NAME,), transport="inprocess")
    run = dataclasses.replace(Run.create(request, str(tmp_path / "run")), suite=suite)
    carry_out(run)
    finished = RecordedPair.find(run.out, f"0/2/{NAME}/0")
    again = dataclasses.replace(Run.make(finished.request(), tmp_path), suite=suite)
    assert prove(again, finished).same
