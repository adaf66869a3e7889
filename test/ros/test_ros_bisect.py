# SPDX-License-Identifier: Apache-2.0
"""``mt bisect`` over topics: each play has instances of the stack that were started for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_runs import no_pages
from planted_histories import few_points, history

from mt_nodes.cli.main import main

COUNTS = """

def counted(points):
    with open("starts.txt", "a") as file:
        file.write("x" if not globals().get("begun") else "")
    globals()["begun"] = True
    return perceive(points)
"""


def test_a_step_starts_the_stack_anew_for_each_play(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    limit = few_points(tmp_path / "drive")
    history(tmp_path / "repo", 1, 0, limit)
    monkeypatch.chdir(tmp_path / "repo")
    with Path("perception.py").open("a") as file:
        file.write(COUNTS)
    stack = ["--stack", "stack.yaml", "--set", "callable=perception:counted"]
    words = ["--relations", "noise_outside_roi_1000", "--transport", "inprocess", "--out", str(tmp_path / "run")]
    with no_pages():
        assert main(["replay", str(tmp_path / "drive"), *stack, *words]) == 1
    Path("starts.txt").unlink()
    capsys.readouterr()
    sure = ["--bad-rate", "0.9", "--error", "0.05", "--json", "--transport", "ros"]
    assert main(["bisect", "step", "--failures", str(tmp_path / "run"), *stack, *sure]) == 1
    test: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert test["state"] == "bad" and test["tally"]["violated"] == 2
    assert Path("starts.txt").read_text() == "xxxx"  # two plays of two arms
    wrong = ["--set", "callable=perception:nothing"]
    assert main(["bisect", "step", "--failures", str(tmp_path / "run"), *stack[:2], *wrong, *sure]) == 125
    assert "nothing" in json.loads(capsys.readouterr().out)["why"]
