# SPDX-License-Identifier: Apache-2.0
"""When a requirement is supported, and the name of each gap."""

from __future__ import annotations

from typing import Any

import pytest

from mt_nodes.base.errors import ExitCode
from mt_nodes.runs.safety_case.assessment import GAP, SUPPORTED, VIOLATED, WAIVED, _in_run, _relation, _verdict
from mt_nodes.runs.safety_case.run_assessment import RunAssessment

ROW = {"id": "R1", "max_rate": 0.15, "frames": 22}
CLEAN = {
    **{"outcome": "PASS", "why": "clean", "decided": 25, "violated": 0, "frames": 25, "rate": 0.0, "waived": {}},
    **{"ci95": [0.0, 0.13], "ci95_method": "Wilson"},
}
MARK = {"reason": "x", "expires": "2999-01-01"}


def run(number: int = 1, **changes: Any) -> RunAssessment:
    return RunAssessment(str(number), number, "", 75, "", (), {"fog": {**CLEAN, **changes}}, (), ())


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({}, SUPPORTED, ""),
        ({"frames": 21}, GAP, "21 frames decided, 22 planned"),
        ({"ci95": [0.0, 0.151]}, GAP, "up to 0.151 of pairs may be violated (95 % confidence), 0.15 accepted"),
        ({"ci95": None}, GAP, "up to 1 of pairs"),
        ({"decided": 0, "frames": 0, "ci95": None, "outcome": "INCONCLUSIVE"}, GAP, "nothing was decided"),
        ({"outcome": "UNSTABLE", "why": "flicker"}, GAP, "UNSTABLE: flicker"),
        ({"outcome": "INCONCLUSIVE", "why": "few"}, GAP, "INCONCLUSIVE: few"),
        ({"outcome": "FAIL", "violated": 2}, VIOLATED, "VIOLATED in 2 of 25 pairs, and not waived"),
        ({"outcome": "FAIL", "violated": 2, "waived": {"R1": MARK}}, WAIVED, ""),
        ({"outcome": "FAIL", "violated": 2, "waived": {"R2": MARK}}, VIOLATED, "and not waived"),
        ({"outcome": "PASS", "waived": {"R1": MARK}, "frames": 3}, GAP, "3 frames decided"),
    ],
)
def test_a_relation_supports_a_requirement_only_if_all_is_there(changes: Any, status: str, words: str) -> None:
    got, gaps, _ = _in_run({**CLEAN, **changes}, ROW)
    assert got == status and words in "".join(gaps) and bool(gaps) == bool(words)


def test_it_must_have_been_run_and_seen_to_fail_and_the_worst_run_counts() -> None:
    assert _in_run(None, ROW)[0] == GAP
    assert _relation("fog", ROW, [], {"fog": "x"})["status"] == GAP
    assert _relation("fog", ROW, [run()], {"fog": "x"})["status"] == SUPPORTED
    blind = _relation("fog", ROW, [run()], {"rain": "x"})
    assert blind["status"] == GAP and "may be unable to fail" in blind["gaps"][0]
    runs = [run(1), run(2, frames=3), run(3, outcome="FAIL", violated=1), run(4)]
    worst = _relation("fog", ROW, runs, {"fog": "x"})
    assert worst["status"] == VIOLATED and worst["violated"] == 1 and len(worst["gaps"]) == 2


def test_the_exit_code_is_that_of_the_worst() -> None:
    def requirement(status: str) -> dict[str, Any]:
        return {"id": status, "status": status}

    gap = [{"about": "runs", "what": "x"}]
    good, bad, waived = requirement(SUPPORTED), requirement(VIOLATED), requirement(WAIVED)
    assert _verdict([good], [run()], [])[0] is ExitCode.PASS
    assert _verdict([good, waived], [run()], []) == (
        ExitCode.PASS,
        "1 requirement supported as planned, except violated and waived: waived",
    )
    assert _verdict([good], [run()], gap)[0] is ExitCode.FAIL
    assert _verdict([good, bad], [run(decided=0)], gap)[0] is ExitCode.FAIL
    for runs in ([], [run(decided=0)]):
        assert _verdict([good], runs, gap)[0] is ExitCode.UNDECIDED
