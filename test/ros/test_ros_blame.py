# SPDX-License-Identifier: Apache-2.0
"""``mt blame`` over topics: five nodes, and the one that the fault was planted in is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_runs import no_pages, sparse_drive

from mt_nodes.cli.main import main
from mt_nodes.engine.journal import read_journal

RELATION = Path(__file__).parents[2] / "examples" / "blame" / "clumps_same_command.yaml"


def test_the_node_with_the_fault_is_named_and_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stateless form of the stack, so that it is started once in each arm."""
    monkeypatch.chdir(tmp_path)
    sparse_drive(tmp_path / "drive", 2)
    stack = ["--stack", "reference_pipeline", "--set", "stateless=true", "--set", "params.remembers=false"]
    fault = ["--fault", "brakes_for_anybody_near:within_m=100"]
    words = ["drive", *stack, *fault, "--relations", str(RELATION), "--transport", "inprocess", "--out", "run"]
    with no_pages():
        assert main(["replay", *words]) == 1
    pair = next(line["pair"] for line in read_journal(Path("run/result.jsonl")) if line.get("outcome") == "VIOLATED")
    held = next(line["pair"] for line in read_journal(Path("run/result.jsonl")) if line.get("outcome") == "HOLDS")
    for wrong, why in (
        (["blame", "run", held], "ended as HOLDS"),
        (["blame", "run", pair, "--repeats", "9"], "2 to 8"),
    ):
        assert main(wrong) == 2 and why in capsys.readouterr().err
    assert main(["blame", "run", pair, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert result["nodes"] == ["/control"] and result["located"], result
    by_topic = {row["topic"]: row for row in result["graph"]["topics"]}
    assert by_topic["/control/command"]["state"] == "differs" and by_topic["/planning/path"]["state"] == "same"
    assert by_topic["/perception/points_above_ground"]["state"] == "elsewhere"
    assert by_topic["/control/command"]["p"] < 0.01 and result["violated"] == 6
    assert {node["name"] for node in result["graph"]["nodes"]} == {"/filter", "/cluster", "/track", "/plan", "/control"}
    assert (
        'id="blame"' in Path("run/report.html").read_text()
        and "in the node /control" in Path("run/report.html").read_text()
    )
