# SPDX-License-Identifier: Apache-2.0
"""A violated pair of a live run made again of its evidence, and what is said where there is none."""

from __future__ import annotations

import dataclasses
import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_arms import FakeArm, Sent, answered
from live_simulation import PERIOD_S, Simulation, arriving, virtual_time

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build, plain
from mt_nodes.cli.main import main
from mt_nodes.data.cdr.wire import wires_of_bundle
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.data.transform_buffer import TransformBuffer
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.evidence import write_evidence
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.judging import Answer
from mt_nodes.engine.ledger import find_followup
from mt_nodes.engine.recorded_pair import RecordedPair
from mt_nodes.engine.recorder import Recorder
from mt_nodes.nodes.live_inputs import InstantReader
from mt_nodes.relations.relation import shipped_relations
from mt_nodes.runs.again.from_evidence import prove_from_evidence
from mt_nodes.runs.live.config import LiveConfig, Segments
from mt_nodes.runs.live.live_run import LiveRun
from mt_nodes.world.scene.drive import CLOUD_TOPIC, generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

NOISE = "noise_outside_roi_100"
#: One that looks back at former instants, and one whose source arm is given something else than the source.
OWN = {
    "frozen": {"mutate": [{"frames_frozen": {"every": 3, "burst": 2}}]},
    "milder": {"mutate": [{"points_dropped": {"share": 0.3}}], "baseline": [{"points_dropped": {"share": 0.1}}]},
}


@cache
def instants() -> tuple[Bundle, ...]:
    """Instants as taps make them: of bytes that came over topics."""
    made = generate_drive(20, 1, replace(hdl_64e(), azimuths=100))
    return tuple(
        InstantReader(TransformBuffer(bundle.transforms).at).read(0, wires_of_bundle(bundle)) for bundle in made
    )


def loses(sent: Sent) -> Answer:
    """See a car 10 m ahead in what came as it was, and nobody in anything else."""
    center_m = np.array([[10.0, 0.0, 0.8]])[: 0 if sent.changed else 1]
    size_m = np.full_like(center_m, 1.6)
    return answered(Output(detections=Detections.make("base_link", sent.bundle.stamp_ns, center_m, size_m)))


def sees(sent: Sent) -> Answer:
    return loses(dataclasses.replace(sent, changed=frozenset()))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a live run leaves whose second instance sees nobody in follow-ups."""
    made = tmp_path_factory.mktemp("live")
    for name, mutated in OWN.items():
        head = {"id": name, "kind": "expected", "because": "x", "check": "obstacles_kept"}
        (made / f"{name}.yaml").write_text(json.dumps({**head, **mutated}))
    relations = (NOISE, *(str(made / f"{name}.yaml") for name in OWN))
    segments = Segments(settle_bundles=1, test_bundles=3)
    run = LiveRun.create(LiveConfig(live_domain=3, mode="twin", relations=relations), str(made / "run"))
    with virtual_time() as time, Recorder(run, lambda line: None) as recorder:
        arms = FakeArm("source", sees, 0.03), FakeArm("followup", loses, 0.03)
        playing = Simulation(
            *(time, run.suite, arms, recorder),  # type: ignore[arg-type]
            publishes_when_empty=True,
            config={"mode": "twin", "segments": segments},
        )
        playing.play(arriving(instants(), 0.0, PERIOD_S))
        recorder.finish()
    return run.out


@pytest.fixture
def copy(done: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(done, tmp_path / "copy"))


def pairs(run: Path, relation: str, outcome: str) -> list[str]:
    lines = [line for line in read_journal(run / "result.jsonl") if line["type"] == "verdict"]
    return [line["pair"] for line in lines if (line["relation"], line["outcome"]) == (relation, outcome)]


def reproduce(capsys: pytest.CaptureFixture[str], run: Path, pair: str) -> tuple[int, dict[str, Any]]:
    code = main(["reproduce", str(run), pair, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_violated_pair_comes_again_of_its_evidence(done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    violated = pairs(done, NOISE, "VIOLATED")
    assert len(violated) == 3
    for pair in violated:
        code, told = reproduce(capsys, done, pair)
        assert code == told["exit_code"] == 0 and told["same_followup"] and told["changed"] == told["why"] == []
        assert told["from_draws"] == told["expected"] == find_followup(done, Pair.parse(pair))["sha256"]
        assert "from_seed" not in told and told["recorded"]["pair"] == pair
    assert main(["reproduce", str(done), violated[0]]) == 0
    out = capsys.readouterr().out
    assert out.count(told["expected"]) == 0 and "from the seed" not in out and "DIFFERS" not in out
    assert "in the run: VIOLATED" in out and f"evidence {done / 'evidence'}" in out
    assert not (done / "reproduced").exists(), "the stack was not asked again"


def test_another_source_is_not_the_same(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = pairs(copy, NOISE, "VIOLATED")[0]
    finished = RecordedPair.find(copy, pair)
    last = instants()[-1]
    write_evidence(finished.evidence, finished.pair, last, last, {})
    code, told = reproduce(capsys, copy, pair)
    assert code == 1 and told["from_draws"] != told["expected"]
    assert f"the source has the stamp {last.stamp_ns}, had {finished.verdict.stamp_ns}" in told["why"][0]
    assert main(["reproduce", str(copy), pair]) == 1
    assert "DIFFERS" in capsys.readouterr().out


def test_other_draws_and_lost_draws_are_not_the_same(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = pairs(copy, NOISE, "VIOLATED")[0]
    file = copy / find_followup(copy, Pair.parse(pair))["arrays"]
    with np.load(file) as arrays:
        changed = {name: arrays[name] + 0.5 if arrays[name].dtype.kind == "f" else arrays[name] for name in arrays}
    np.savez(file, **changed)
    code, told = reproduce(capsys, copy, pair)
    assert code == 1 and told["from_draws"] not in (None, told["expected"])
    file.unlink()
    code, told = reproduce(capsys, copy, pair)
    assert code == 1 and told["from_draws"] is None and "cannot read the draws" in told["why"][0]


def test_what_nothing_was_kept_of_is_refused_with_the_reason(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held, violated = pairs(copy, "identity", "HOLDS")[0], pairs(copy, NOISE, "VIOLATED")[0]
    whole = replace(RecordedPair.find(copy, violated), pair=Pair(0, None, NOISE))
    with pytest.raises(UsageError, match=r"stands for a whole sequence, of which only what both arms said is kept"):
        prove_from_evidence(whole)
    RecordedPair.find(copy, violated).evidence.unlink()
    for pair, why in {
        held: "it ended as HOLDS, and evidence is kept of violated pairs alone",
        violated: "whose input is gone, and so is its evidence: expected",
        pairs(copy, "frozen", "VIOLATED")[0]: "frames_frozen looks back at earlier instants, too",
        pairs(copy, "milder", "VIOLATED")[0]: "the source arm was given a baseline",
    }.items():
        assert main(["reproduce", str(copy), pair]) == 2
        assert why in capsys.readouterr().err


def test_damaged_evidence_is_told(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = pairs(copy, NOISE, "VIOLATED")[0]
    file = RecordedPair.find(copy, pair).evidence
    other = replace(instants()[0], clouds=(), wires=())
    write_evidence(file, Pair.parse(pair), other, other, {})
    assert main(["reproduce", str(copy), pair]) == 4
    assert f"{file}: holds no /mt/source{CLOUD_TOPIC}" in capsys.readouterr().err
    file.write_bytes(b"no MCAP")
    assert main(["reproduce", str(copy), pair]) == 4
    assert str(file) in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--bag", "b"), ("--transport", "ros"), ("--out", "o")])
def test_what_is_for_replays_is_refused(words: tuple[str, str], done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", str(done), pairs(done, NOISE, "VIOLATED")[0], *words]) == 2
    assert f"leave {words[0]} out" in capsys.readouterr().err


def test_the_ledger_holds_all_that_a_mutation_is_made_of() -> None:
    for relation in shipped_relations():
        for mutation in (*relation.mutate, *relation.baseline):
            assert build(type(mutation), json.loads(json.dumps(plain(mutation))), relation.id) == mutation


def test_a_pair_that_the_stack_keeps_is_blamed_on_nobody(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The instant of the evidence goes to two instances of the real stack, which loses nobody."""
    assert main(["blame", str(copy), pairs(copy, NOISE, "VIOLATED")[0], "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert not told["located"] and not told["nodes"] and told["why"].startswith("not reproduced"), told
    assert {topic["state"] for topic in told["graph"]["topics"]} <= {"elsewhere", "same"}
