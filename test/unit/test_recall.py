# SPDX-License-Identifier: Apache-2.0
"""Recall of added objects: who is counted where, and what the summary and the report say of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import made_run

from mt_nodes.base.stats.intervals import wilson_interval
from mt_nodes.data.verdict import Judgement, Outcome, Pair, Verdict
from mt_nodes.engine.summary.recall import Recall, about_objects
from mt_nodes.engine.summary.summary import RelationInfo
from mt_nodes.report.html import write_report

BY = {"name": "range", "unit": "m", "bin": 10.0}
SEEN = RelationInfo("person_found", "expected")
PLAIN = RelationInfo("plain", "expected")


def pairs(*objects: list[Any]) -> list[tuple[tuple[int, int], dict[str, Any]]]:
    """One object a frame, each frame of a drive of its own block."""
    return [((0, i), {"objects": [row], "objects_by": BY}) for i, row in enumerate(objects)]


def recall(pairs: Iterable[tuple[tuple[int, int], dict[str, Any]]]) -> dict[str, Any] | None:
    found = Recall()
    for unit, detail in pairs:
        found.take(unit, detail)
    return found.plain()


def verdict(bundle: int, *objects: list[Any], draw: str = "0", relation: str = "person_found") -> Verdict:
    missing = sum(not found for _, found, _ in objects)
    outcome = Outcome.VIOLATED if missing else Outcome.HOLDS
    detail = {"objects": [*objects], "objects_by": BY} if objects else {}
    judged = Judgement(outcome, len(objects) - missing, len(objects), -missing, "objects", lost=missing, detail=detail)
    return Verdict(Pair(0, bundle, relation, draw), 10**17, judged)


def test_objects_are_counted_in_the_bin_that_begins_at_its_limit() -> None:
    found = recall(pairs([9.999, True, "car"], [10.0, True, "car"], [19.9, False, "car"], [35.0, True, "car"]))
    assert found and found["by"] == BY and list(found["classes"]) == ["car"]
    car = found["classes"]["car"]
    assert (car["found"], car["objects"], car["rate"]) == (3, 4, 0.75)
    assert [(b["from"], b["to"], b["found"], b["objects"]) for b in car["bins"]] == [
        (0.0, 10.0, 1, 1), (10.0, 20.0, 1, 2), (30.0, 40.0, 1, 1)]  # fmt: skip
    assert car["bins"][1]["ci95"] == pytest.approx(wilson_interval(1, 2), abs=1e-4)
    assert car["ci95"] == pytest.approx(wilson_interval(3, 4), abs=1e-4) and "4 frames" in car["ci95_method"]


def test_several_classes_are_told_apart_and_together() -> None:
    found = recall(pairs([5.0, True, "pedestrian"], [6.0, False, "cyclist"], [7.0, False, "cyclist"]))
    assert found and list(found["classes"]) == ["all", "cyclist", "pedestrian"]
    assert [(c["found"], c["objects"]) for c in found["classes"].values()] == [(1, 3), (0, 2), (1, 1)]


def test_frames_of_one_block_are_no_independent_trials() -> None:
    """Each block of ten frames finds all or nothing: sixty frames say no more than six."""
    rows = [((0, i), {"objects": [[5.0, i // 10 % 2 == 0, "car"]], "objects_by": BY}) for i in range(60)]
    found = recall(rows)
    assert found is not None
    low, high = found["classes"]["car"]["ci95"]
    naive = wilson_interval(30, 60)
    assert naive and high - low > 1.5 * (naive[1] - naive[0])
    assert "blocks of 10 frames" in found["classes"]["car"]["ci95_method"]


@given(st.lists(st.tuples(st.floats(0.0, 200.0), st.booleans(), st.sampled_from("abc")), min_size=1, max_size=30))
def test_nothing_is_lost_between_bins_and_classes(objects: list[tuple[float, bool, str]]) -> None:
    found = recall([((0, 0), {"objects": objects, "objects_by": BY})])
    assert found is not None
    for label, of in found["classes"].items():
        own = [hit for _, hit, name in objects if label in ("all", name)]
        assert (of["found"], of["objects"]) == (sum(own), len(own))
        assert sum(b["objects"] for b in of["bins"]) == len(own) and sum(b["found"] for b in of["bins"]) == sum(own)
        assert all(b["ci95"][0] <= b["rate"] <= b["ci95"][1] for b in of["bins"])


def test_what_does_not_say_what_objects_go_by_has_no_recall() -> None:
    assert about_objects({"objects": [[40.0, True, "car"]]}) == {} == about_objects({"counts": {}})
    assert recall([((0, 0), {}), ((0, 1), {})]) is None


def test_summary_and_report_tell_recall_of_the_relation_alone(tmp_path: Any) -> None:
    rows = [verdict(i, [float(i), i < 15, "pedestrian"]) for i in range(24)]
    rows += [verdict(i, [5.0, False, "pedestrian"], draw="0@person_found", relation="identity") for i in range(24)]
    rows += [verdict(i, relation="plain") for i in range(24)]
    run = made_run(tmp_path / "run", rows, SEEN, PLAIN)
    page = write_report(run).read_text(encoding="utf-8")
    section = page[page.index("Recall of added objects") : page.index("Outcomes of all pairs")]
    for told in ("class pedestrian, by range", "15 / 24", "62.5 %", "0 to 10 m", "10 / 10", "10 to 20 m", "5 / 10"):
        assert told in section, told
    assert "all classes" not in section and "plain" not in section
    assert section.count("<svg") == 4


def test_a_run_without_objects_has_no_such_section(tmp_path: Any) -> None:
    run = made_run(tmp_path / "run", [verdict(i, relation="plain") for i in range(3)], PLAIN)
    assert "Recall of added objects" not in write_report(run).read_text(encoding="utf-8")
