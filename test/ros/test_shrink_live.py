# SPDX-License-Identifier: Apache-2.0
"""``mt shrink`` of pairs of `mt live`: the one instant that evidence holds, and what is said where it is too little."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_arms import FakeArm, Sent, answered
from live_simulation import PERIOD_S, Simulation, arriving, virtual_time
from made_runs import no_pages
from recordings import bundles

from mt_nodes.base.jsonl import read_result, write_result
from mt_nodes.cli.main import main
from mt_nodes.data.cdr.wire import wires_of_bundle
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.data.transform_buffer import TransformBuffer
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.judging import Answer
from mt_nodes.engine.ledger import find_followup
from mt_nodes.engine.recorded_pair import RecordedPair
from mt_nodes.engine.recorder import Recorder
from mt_nodes.nodes.live_inputs import InstantReader
from mt_nodes.runs.live.config import LiveConfig, Segments
from mt_nodes.runs.live.live_run import LiveRun

POINTS, NEEDED = 600, 5
INPUTS = {"inputs": {"lidar": "/points"}}
STACK = """
import numpy as np
from mt_nodes.data.outputs import Detections

class Many:
    '''Loses its obstacle when fewer points come than these.'''
    def __init__(self, least):
        self.least = least
    def __call__(self, points):
        count = int(len(points) >= self.least)
        return Detections.make("base_link", None, np.tile([10.0, 0.0, 0.0], (count, 1)), np.ones((count, 3)))
"""


def says(sent: Sent) -> Answer:
    """What a stack of that file says."""
    count = int(len(sent.bundle.clouds[0]) > POINTS - NEEDED)
    center_m = np.tile([10.0, 0.0, 0.0], (count, 1))
    seen = Detections.make("base_link", sent.bundle.stamp_ns, center_m, np.ones((count, 3)))
    return answered(Output(detections=seen))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a live run leaves beside a stack that loses its obstacle with five points."""
    made = tmp_path_factory.mktemp("shrink_live")
    (made / "live_many.py").write_text(STACK)
    told = {"name": "many", "callable": "live_many:Many", "params": {"least": POINTS - NEEDED + 1}}
    for name, stateless in (("many", True), ("remembers", False)):
        (made / f"{name}.yaml").write_text(
            json.dumps({**told, **INPUTS, "name": name, "stateless": stateless, "outputs": {"detections": {}}})
        )
    head = {"kind": "expected", "because": "for tests", "min_decided": 1, "check": "obstacles_kept"}
    mutated = {"dropped": [{"points_dropped": {"share": 0.2}}], "frozen": [{"frames_frozen": {"every": 3, "burst": 2}}]}
    for name, steps in mutated.items():
        (made / f"{name}.yaml").write_text(json.dumps({"id": name, **head, "mutate": steps}))
    config = LiveConfig(
        live_domain=3,
        mode="twin",
        stack=str(made / "many.yaml"),
        relations=(str(made / "dropped.yaml"),),
        segments=Segments(settle_bundles=1, test_bundles=3),
    )
    run = LiveRun.create(config, str(made / "run"))
    read = InstantReader(TransformBuffer(bundles(1)[0].transforms).at).read
    clouds = [replace(bundle, images=(), camera_infos=()) for bundle in bundles(12, points=POINTS)]
    instants = [read(0, wires_of_bundle(bundle)) for bundle in clouds]
    with virtual_time() as time, Recorder(run, lambda line: None) as recorder, no_pages():
        arms = FakeArm("source", says, 0.03), FakeArm("followup", says, 0.03)
        playing = Simulation(
            *(time, run.suite, arms, recorder),  # type: ignore[arg-type]
            publishes_when_empty=True,
            config={"mode": "twin", "segments": config.segments},
        )
        playing.play(arriving(tuple(instants), 0.0, PERIOD_S))
        recorder.finish()
    return run.out


@pytest.fixture(autouse=True)
def pages() -> Iterator[None]:
    with no_pages():
        yield


@pytest.fixture
def copy(done: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(done, tmp_path / "copy", ignore=shutil.ignore_patterns("shrunk")))


def violated(run: Path) -> str:
    lines = [line for line in read_journal(run / "result.jsonl") if line["type"] == "verdict"]
    return next(line["pair"] for line in lines if (line["relation"], line["outcome"]) == ("dropped", "VIOLATED"))


def as_run(run: Path, **asked: Any) -> Path:
    """Have a run say that something else was asked of it."""
    record = read_result(run / "run.json")
    record["request"] |= asked
    write_result(run / "run.json", record)
    return run


def test_the_instant_of_evidence_is_played_and_made_small(done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = violated(done)
    assert Pair.parse(pair).bundle, "not the first of the drive: its number is in its draws"
    assert main(["shrink", str(done), pair, "--transport", "inprocess", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["complete"] and told["deterministic_so_far"]
    assert told["before_after"]["points removed"] == {"before": "120", "after": str(NEEDED)}
    out = Path(told["results"])
    assert out.is_relative_to(done / "shrunk")
    lines = [line for line in read_journal(out / "result.jsonl") if line["type"] == "verdict"]
    assert [(line["pair"], line["outcome"]) for line in lines] == [(pair, "VIOLATED")]
    assert main(["reproduce", str(out), pair, "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["same_followup"] and again["from_seed"] == again["expected"] and again["differs"] == []


def test_what_is_played_is_the_follow_up_of_the_live_run(done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = violated(done)
    words = ["--transport", "inprocess", "--plays", "5", "--json"]
    assert main(["shrink", str(done), pair, *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["first"] == {"failed": 5, "plays": 5} and not told["complete"]
    out = Path(told["results"])
    assert find_followup(out, Pair.parse(pair))["sha256"] == find_followup(done, Pair.parse(pair))["sha256"]


def test_what_evidence_is_not_enough_for_is_refused_with_the_way_out(
    copy: Path, done: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = violated(copy)
    stack = json.loads((done.parent / "many.yaml").read_text())
    there = {"start": "external", "domain": {"source": 40, "followup": 41}, "nodes": ["/many"]}
    file = copy / "external.yaml"
    file.write_text(json.dumps({k: v for k, v in {**stack, **there}.items() if k not in ("callable", "params")}))
    for other, why in (("remembers", "remembers, and of what it was given before nothing is kept"), (file, "external")):
        name = str(other if isinstance(other, Path) else done.parent / f"{other}.yaml")
        assert main(["shrink", str(as_run(copy, stack=name)), pair, "--transport", "inprocess", "--trust"]) == 2
        said = capsys.readouterr().err
        assert why in said and "ros2 bag record" in said and "mt replay" in said
    as_run(copy, stack=str(done.parent / "many.yaml"))
    assert main(["shrink", str(copy), pair, "--bag", "b"]) == 2 and "leave --bag out" in capsys.readouterr().err
    assert main(["shrink", str(as_run(copy, seed=9)), pair, "--transport", "inprocess", "--trust"]) == 2
    assert "cannot be made again bit for bit" in capsys.readouterr().err
    RecordedPair.find(copy, pair).evidence.unlink()
    assert main(["shrink", str(copy), pair]) == 2 and "so is its evidence" in capsys.readouterr().err
    assert not (copy / "shrunk").exists()
