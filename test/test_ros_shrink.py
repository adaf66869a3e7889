# SPDX-License-Identifier: Apache-2.0
"""``mt shrink`` and ``mt replay --failures`` over topics, with a real stack in each arm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recordings import bundles

from mt_nodes.bags import write_bundles
from mt_nodes.cli.main import main
from mt_nodes.journal import read_journal
from mt_nodes.shrinking.reduction import Reduction

STACK = """
import numpy as np
from mt_nodes.outputs import Detections

class Third:
    def __init__(self, in_a_row):
        self.short, self.in_a_row = 0, in_a_row
    def __call__(self, points):
        self.short = self.short + 1 if len(points) <= 90 else 0
        count = int(self.short < self.in_a_row)
        return Detections.make("base_link", None, np.tile([10.0, 0.0, 0.0], (count, 1)), np.ones((count, 3)))
"""


# The second starts two stacks anew for each of some fifty plays.
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
    words = ["drive", "--stack", "third.yaml", "--relations", "dropped.yaml", "--failures"]
    main(["replay", *words, "--out", "inprocess", "--transport", "inprocess"])
    assert main(["replay", *words, "--out", "ros"]) in (1, 3)
    lines = [[*read_journal(tmp_path / out / "result.jsonl")][1:] for out in ("inprocess", "ros")]
    assert sorted(map(str, lines[0])) == sorted(map(str, lines[1]))
    assert lines[1][0]["pair"] == "0/0/dropped/0", "what failed in the first run is judged first in the second"

    pair, results = "0/3/dropped/0", []
    assert capsys.readouterr().out
    for transport in ("ros", "inprocess"):
        assert main(["shrink", "ros", pair, "--transport", transport, "--out", f"s-{transport}", "--json"]) == 0
        results.append(json.loads(capsys.readouterr().out))
    assert results[0]["before_after"] == results[1]["before_after"]
    assert results[0]["steps"] == results[1]["steps"] and results[0]["complete"]
    left = Reduction.load(tmp_path / "s-ros" / "reduction.npz")
    assert left.end - left.first == (in_a_row if in_a_row > 1 else 4)
    after = results[0]["before_after"]["points removed"]["after"]
    assert after == "10"
    assert main(["reproduce", "s-ros", pair, "--transport", "inprocess"]) == 0
