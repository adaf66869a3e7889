# SPDX-License-Identifier: Apache-2.0
"""Why pairs were not decided."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from mt_nodes.cli.outcome import print_summary
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.summary.summary import RelationInfo, summarise
from mt_nodes.engine.summary.undecided_reasons import MOST, UndecidedReasons, over_all


def line(bundle: int, outcome: str, reason: str = "", relation: str = "fog_10") -> dict[str, object]:
    pair = f"0/{bundle}/{relation}/0"
    return {"type": "verdict", "pair": pair, "outcome": outcome, "reason": reason, "lost": 0, "gained": 0}


def test_reasons_that_differ_in_numbers_only_are_one_and_the_order_of_pairs_is_nothing() -> None:
    reasons = ("12 ms behind", "7.5 ms behind", "fog_10 does not fit fog_20", "fog_10 does not fit fog_30")
    told = []
    for order in permutations(reasons):
        counted = UndecidedReasons()
        for reason in order:
            counted.take(Outcome.SKIPPED, reason)
        told.append(counted.plain())
    assert all(rows == told[0] for rows in told)
    assert told[0] == [
        {"outcome": "SKIPPED", "reason": "12 ms behind", "pairs": 2},
        {"outcome": "SKIPPED", "reason": "fog_10 does not fit fog_20", "pairs": 1},
        {"outcome": "SKIPPED", "reason": "fog_10 does not fit fog_30", "pairs": 1},
    ]


def test_a_summary_tells_the_most_frequent_reasons_of_each_relation() -> None:
    lines = [line(0, "HOLDS"), *(line(n, "SKIPPED", f"{n} ms behind") for n in (1, 2, 3)), line(4, "ERROR", "no box")]
    lines += [line(n, "INVALID", "abcdef"[n], "rain") for n in range(MOST + 2)]
    relations = summarise(lines, [RelationInfo("fog_10", "necessary"), RelationInfo("rain", "necessary")])["relations"]
    assert relations["fog_10"]["undecided"] == [
        {"outcome": "SKIPPED", "reason": "1 ms behind", "pairs": 3},
        {"outcome": "ERROR", "reason": "no box", "pairs": 1},
    ]
    assert [row["reason"] for row in relations["rain"]["undecided"]] == ["a", "b", "c"]
    assert over_all(relations.values())[:2] == ["3 SKIPPED, such as: 1 ms behind", "1 ERROR: no box"]
    decided = summarise(lines[:1], [RelationInfo("fog_10", "necessary")])["relations"]["fog_10"]
    assert "undecided" not in decided and over_all([decided]) == []


def test_the_terminal_tells_them_below_the_totals(capsys: pytest.CaptureFixture[str]) -> None:
    summary = summarise([line(n, "SKIPPED", f"{n} ms behind") for n in (1, 2)], [RelationInfo("fog_10", "necessary")])
    print_summary(summary, Path("out"))
    assert "2 pairs offered: 2 SKIPPED\n  2 SKIPPED, such as: 1 ms behind\n" in capsys.readouterr().out


def test_the_terminal_says_of_each_relation_that_decided_nothing_why(capsys: pytest.CaptureFixture[str]) -> None:
    why = {f"relation_{n}": f"reason {'abcdef'[n]}" for n in range(MOST + 2)}
    lines = [line(n, "NOT_APPLICABLE", reason, name) for name, reason in why.items() for n in (1, 2)]
    lines.append(line(1, "HOLDS", relation="some"))
    print_summary(summarise(lines, [RelationInfo(name, "expected") for name in (*why, "some")]), Path("out"))
    told = capsys.readouterr().out.splitlines()
    few = "INCONCLUSIVE: 0 frames decided, at least 20 needed; 2 NOT_APPLICABLE, such as:"
    assert all(f"{name}: {few} {reason}" in told for name, reason in why.items())
    assert "some: INCONCLUSIVE: 1 frame decided, at least 20 needed" in told


def test_the_terminal_says_of_each_relation_that_does_not_pass_why(capsys: pytest.CaptureFixture[str]) -> None:
    few, passes, fails = (RelationInfo(name, "necessary", demands_of_itself=True) for name in ("few", "clear", "worse"))
    lines = [line(n, "HOLDS", relation=name) for name, count in (("few", 3), ("clear", 20)) for n in range(count)]
    summary = summarise([*lines, line(0, "VIOLATED", relation="worse")], [few, passes, fails])
    print_summary(summary, Path("out"))
    told = capsys.readouterr().out.splitlines()
    assert "few: INCONCLUSIVE: 3 frames decided, at least 20 needed" in told
    assert any(row.startswith("worse: FAIL: necessary, one violated pair") for row in told)
    assert not any(row.startswith("clear: ") for row in told)
