# SPDX-License-Identifier: Apache-2.0
"""A result is asserted to hold only if the whole run is PASS, and something was decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_runs import verdicts

from mt_nodes.api.result import Result
from mt_nodes.engine.summary.summary import RelationInfo, summarise


def passed(tmp_path: Path, **more: Any) -> Result:
    lines = [verdict.as_plain() for verdict in verdicts("noise")]
    summary = summarise(lines, [RelationInfo("noise", "necessary")])
    assert summary["exit_code"] == 0
    return Result(tmp_path, {**summary, **more})


def test_a_pass_holds(tmp_path: Path) -> None:
    passed(tmp_path).assert_holds()


@pytest.mark.parametrize("more", [*({"exit_code": code} for code in (1, 2, 3, 4, 5, 130)), {"relations": {}}], ids=str)
def test_relations_that_are_pass_are_not_enough(tmp_path: Path, more: dict[str, Any]) -> None:
    with pytest.raises(AssertionError, match="exit code"):
        passed(tmp_path, **more).assert_holds()


def test_a_pass_without_a_decided_pair_is_not_enough(tmp_path: Path) -> None:
    result = passed(tmp_path)
    result.summary["relations"]["noise"]["decided"] = 0
    (tmp_path / "result.jsonl").touch()
    with pytest.raises(AssertionError, match="noise: PASS"):
        result.assert_holds()
