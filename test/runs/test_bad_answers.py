# SPDX-License-Identifier: Apache-2.0
"""Stacks that answer what nobody should: an outcome or ERROR on the pair, with its reason, and never a hang."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import snapshots
from bad_bags import bag, replay, scans

#: What a stack returns for a cloud: in ``points``, ``box`` (a good answer) and ``follow`` (whether it is a follow-up).
ANSWERS = {
    "a good one": "[box]",
    "nothing": "None",
    "no obstacle": "[]",
    "no obstacle, of no class": "Detections.none('base_link', None)",
    "no class": "Detections.make('base_link', None, [box[:3]], label=[''])",
    "NaN boxes": "[[float('nan')] * 7, box]",
    "NaN boxes in the follow-up": "[[float('nan')] * 7] if follow else [box]",
    "infinite boxes": "[[float('inf')] * 7]",
    "NaN scores": "[[*box, float('nan')]]",
    "negative sizes": "[[12, 3, 0, -4, -2, -1.5, 0]]",
    "boxes without a size": "[[12, 3, 0, 0, 0, 0, 0]]",
    "100,000 boxes": "np.tile([*box, 0.9], (100_000, 1)) + np.linspace(0, 0.09, 100_000)[:, None]",
    "30,000 boxes that are not sure": "np.vstack([np.tile([*box, 0.01], (30_000, 1)), [*box, 0.9]])",
    "far away": "[[1e300, 1e300, 0, 4, 2, 1, 0]]",
    "three columns": "[[1, 2, 3]]",
    "a text": "'hello'",
    "a number": "5",
    "texts": "[['a'] * 7]",
    "a control": "Control(None, speed_mps=1.0)",
    "another frame": "Detections.make('nowhere', None, [box[:3]])",
    "a class that is no number": "[[*box, 0.9, float('nan')]]",
    "an exception": "1 / 0",
    "an exit": "exit(3)",
    "too much memory": "np.empty((1 << 60, 7))",
    "scores in percent": "[[*box, 12.0 if follow else 87.0]]",
}
MODEL = """
import numpy as np
from mt_nodes.data.outputs import Control, Detections

box = [12.0, 3.0, 0.0, 4.0, 2.0, 1.5, 0.0]

def detect(points):
    follow = len(points) > 2000
    return {answer}
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield bag(tmp_path_factory.mktemp("small") / "bag", scans(2))


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_comes_to_an_outcome(small: Path, tmp_path: Path, name: str) -> None:
    module = f"answers_{list(ANSWERS).index(name)}"
    (tmp_path / f"{module}.py").write_text(textwrap.dedent(MODEL.format(answer=ANSWERS[name])))
    (tmp_path / "stack.yaml").write_text(f"callable: {module}:detect\npoints_frame: base_link\nstateless: true\n")
    ended = replay(tmp_path / "out", small, "--stack", tmp_path / "stack.yaml")
    assert "Traceback" not in ended.error and ended.reconciles(len(ended.lines)) and ended.lines
    if set(ended.outcomes) == {"HOLDS"}:
        assert name in ("a good one", "boxes without a size", "no class", "30,000 boxes that are not sure"), ended.told
    assert ended.code == (4 if ended.outcomes["ERROR"] else 3)
    assert snapshots.matches(f"answer: {name}", ended.told, tmp_path)


def test_no_snapshot_is_left_over() -> None:
    assert not snapshots.stale("answer", (f"answer: {name}" for name in ANSWERS))
