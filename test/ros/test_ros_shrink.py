# SPDX-License-Identifier: Apache-2.0
"""``mt shrink`` and ``mt replay --failures`` over topics, with a real stack in each arm."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from made_drives import made_run, setting
from made_runs import no_pages
from recordings import bundles

from mt_nodes.cli.main import main
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.reduction.reduction import Reduction
from mt_nodes.engine.run_record import write_record
from mt_nodes.runs.loop.episode_conductor import execute, in_process_arms
from mt_nodes.stacks.stack import load_stack

STACK = """
import numpy as np
from mt_nodes.data.outputs import Detections

class Third:
    def __init__(self, in_a_row):
        self.short, self.in_a_row = 0, in_a_row
    def __call__(self, points):
        self.short = self.short + 1 if len(points) <= 90 else 0
        count = int(self.short < self.in_a_row)
        return Detections.make("base_link", None, np.tile([10.0, 0.0, 0.0], (count, 1)), np.ones((count, 3)))
"""


# The first has one instance of the stack for both arms. The second starts two anew for each of some fifty plays.
@pytest.mark.parametrize("in_a_row", [1, pytest.param(2, marks=pytest.mark.long)])
def test_over_topics_it_comes_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], in_a_row: int
) -> None:
    """Ten points must be lost: at once, or of two clouds in a row by a stack that remembers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    write_bundles(tmp_path / "drive", bundles(4, points=100))
    (tmp_path / "ros_shrink_stack.py").write_text(STACK)
    told = {"name": "third", "callable": "ros_shrink_stack:Third", "params": {"in_a_row": in_a_row}}
    (tmp_path / "third.yaml").write_text(
        json.dumps({**told, "stateless": in_a_row == 1, "outputs": {"detections": {}}, "ready_timeout_s": 60})
    )
    head = {"id": "dropped", "kind": "expected", "because": "for tests", "min_decided": 1, "check": "obstacles_kept"}
    (tmp_path / "dropped.yaml").write_text(json.dumps({**head, "mutate": [{"points_dropped": {"share": 0.2}}]}))
    mode = "alternate" if in_a_row == 1 else "twin"
    words = ["drive", "--stack", "third.yaml", "--relations", "dropped.yaml", "--mode", mode, "--failures"]
    with no_pages():
        main(["replay", *words, "--out", "inprocess", "--transport", "inprocess"])
    assert main(["replay", *words, "--out", "ros"]) in (1, 3)
    lines = [[*read_journal(tmp_path / out / "result.jsonl")][1:] for out in ("inprocess", "ros")]
    assert sorted(map(str, lines[0])) == sorted(map(str, lines[1]))
    assert lines[1][0]["pair"] == "0/0/dropped/0", "what failed in the first run is judged first in the second"

    pair, results = "0/3/dropped/0", []
    assert capsys.readouterr().out
    for transport in ("ros", "inprocess"):
        with no_pages():
            assert main(["shrink", "ros", pair, "--transport", transport, "--out", f"s-{transport}", "--json"]) == 0
        results.append(json.loads(capsys.readouterr().out))
    assert results[0]["before_after"] == results[1]["before_after"]
    assert results[0]["steps"] == results[1]["steps"] and results[0]["complete"]
    left = Reduction.load(tmp_path / "s-ros" / "reduction.npz")
    assert left.end - left.first == (in_a_row if in_a_row > 1 else 4)
    after = results[0]["before_after"]["points removed"]["after"]
    assert after == "10"
    with no_pages():
        assert main(["reproduce", "s-ros", pair, "--transport", "inprocess"]) == 0


DRIVER = """
import numpy as np
from mt_nodes.data.outputs import Control, Output

class Shy:
    def __call__(self, objects):
        brakes = (np.abs(objects.center_m[:, 1]) > 6.0).sum() >= 3
        return Output(control=Control(None, yaw_rate_radps=0.0, speed_mps=0.0 if brakes else 10.0))
"""


def test_a_pair_of_drives_is_driven_over_topics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "ros_shy_driver.py").write_text(DRIVER)
    told = {"name": "shy", "callable": "ros_shy_driver:Shy", "inputs": "objects", "outputs": {"control": None}}
    (tmp_path / "shy.yaml").write_text(json.dumps({**told, "stateless": True, "ready_timeout_s": 60}))
    head = {"id": "crowd", "kind": "expected", "because": "for tests", "min_decided": 1}
    change = {"scenario": [{"object_added_far": {"count": 6}}], "check": {"same_trace": {"tolerance_m": 0.3}}}
    (tmp_path / "crowd.yaml").write_text(json.dumps({**head, **change}))
    stack = str(tmp_path / "shy.yaml")
    run = made_run(tmp_path / "run", [setting(duration_s=1.0)], [str(tmp_path / "crowd.yaml")], load_stack(stack))
    run = replace(run, request=replace(run.request, stack=stack))
    write_record(run.out, run.request, run.suite.all, run.stack, {})
    with no_pages():
        execute(run, lambda ending: in_process_arms(run, ending), lambda line: None, lambda verdicts: None)
    results, words = [], ["--confirm", "1/1", "--plays", "12", "--json"]
    for transport in ("ros", "inprocess"):
        with no_pages():
            out = str(tmp_path / transport)
            assert main(["shrink", str(run.out), "0/-/crowd/0", "--transport", transport, "--out", out, *words]) == 0
        results.append(json.loads(capsys.readouterr().out))
    assert results[0]["before_after"] == results[1]["before_after"] and results[0]["steps"] == results[1]["steps"]
    assert results[0]["before_after"]["object_added_far.count"] == {"before": "6", "after": "3"}
