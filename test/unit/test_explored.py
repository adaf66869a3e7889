# SPDX-License-Identifier: Apache-2.0
"""What a run found that chose its pairs, and that no rate of it counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from made_runs import FOG, NOISE, verdict, verdicts

from mt_nodes.data.verdict import Verdict
from mt_nodes.engine.summary.explored import explored_words, kind_words
from mt_nodes.engine.summary.summary import RelationInfo, summarise

CONDITION = {"type": "condition", "explore": 60, "explore_by": "new_kinds"}
EXPECTED = replace(FOG, kind="expected")


def summary(rows: Iterable[Verdict], *relations: RelationInfo, **condition: Any) -> dict[str, Any]:
    return summarise([{**CONDITION, **condition}, *(row.as_plain() for row in rows)], relations)


def apart(rows: Iterable[Verdict]) -> list[Verdict]:
    """Ten seconds from frame to frame, so that each is a scene of its own."""
    return [replace(row, stamp_ns=10**17 + 10**10 * (row.pair.bundle or 0)) for row in rows]


def seen(bundle: int, violated: bool, **detail: Any) -> Verdict:
    row = verdict("fog", bundle, violated)
    return replace(row, judgement=replace(row.judgement, detail=detail))


def test_kinds_are_told_by_relation_change_and_class() -> None:
    rows = [
        seen(0, False, judged_in={"car": [[10, 0, 2]]}, gained_at=[[5.0, 0.0, "cone"]]),
        seen(1, True, lost_at=[[15.0, 1.0, "car"], [25.0, 1.0, "car"]]),
        seen(2, True, lost_at=[[15.0, 1.0, "car"]], gained_at=[[5.0, 0.0, "cone"]]),
        seen(3, True),
    ]
    found = summary(rows, EXPECTED)["explored"]
    told = [(kind["change"], kind["label"], kind["pairs"], kind["cells"], kind["at"]) for kind in found["kinds"]]
    assert told == [("lost", "car", 2, 2, 2), ("gained", "cone", 1, 1, 3), ("", "", 1, 0, 4)]
    assert found["pairs"] == 4 and found["cells"] == 1
    assert [kind_words(kind) for kind in found["kinds"]] == [
        "car lost in 2 cells",
        "cone gained in 1 cell",
        "no obstacle named",
    ]
    assert explored_words(found).endswith("3 kinds of violation found, the last new one at pair 4")


def test_control_and_sham_show_no_kinds() -> None:
    rows = [verdict("identity", 0, True, "0@fog"), verdict("points_permuted", 0, True, "0@fog")]
    found = summary(rows, EXPECTED)["explored"]
    assert (found["pairs"], found["kinds"]) == (0, [])
    assert "no proof" in explored_words(found)


def test_a_run_that_judges_everything_says_nothing_of_kinds() -> None:
    assert "explored" not in summarise([row.as_plain() for row in verdicts("fog", {1})], [EXPECTED])


@pytest.mark.parametrize("tolerated", [None, 0.5])
def test_no_rate_fails_or_passes_a_relation_whose_pairs_were_chosen(tolerated: float | None) -> None:
    rows, relation = apart(verdicts("fog", range(0, 600, 5), 600)), replace(EXPECTED, tolerated_rate=tolerated)
    everything = summary(rows, relation, explore_by="")["relations"]["fog"]
    assert everything["outcome"] == ("FAIL" if tolerated is None else "PASS")
    by_chance = summary(rows, relation, explore_by="chance")["relations"]["fog"]
    assert by_chance["outcome"] == everything["outcome"], "pairs of chance are like those of the drives"
    chosen = summary(rows, relation)["relations"]["fog"]
    assert chosen["outcome"] == "INCONCLUSIVE" and "a replay without --explore decides" in chosen["why"]
    assert (chosen["p"], chosen["p_adjusted"], chosen["ci95"]) == (None, None, None) and "more" not in chosen


def test_one_violation_of_a_necessary_relation_fails_all_the_same() -> None:
    found: Mapping[str, Any] = summary(verdicts("noise", {3}), NOISE)
    assert found["relations"]["noise"]["outcome"] == "FAIL" and found["exit_code"] == 1


def test_what_control_or_sham_violate_is_unstable_whatever_the_pairs_come_to() -> None:
    rows = apart([*verdicts("noise", range(25)), verdict("identity", 99, True, "0@noise")])
    assert summary(rows, NOISE, explore_by="")["relations"]["noise"]["outcome"] == "FAIL"
    chosen = summary(rows, NOISE)["relations"]["noise"]
    assert chosen["outcome"] == "UNSTABLE" and "no test counts" in chosen["why"]
