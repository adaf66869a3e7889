# SPDX-License-Identifier: Apache-2.0
"""The argument of a case for safety, its drawing, and its page: nothing is hidden, overlaps, or is taken for markup."""

from __future__ import annotations

from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import yaml
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.report.safety_argument import argument_yaml, safety_argument
from mt_nodes.report.safety_argument_svg import _Box, _place, _room, argument_svg
from mt_nodes.report.safety_page import safety_page
from mt_nodes.report.safety_sections import standards

WAIVED = {"reason": "ticket 42", "expires": "2999-01-01", "requirement": ["R1"], "pairs": []}


def relation(name: str, status: str = "supported", seen: bool = True, decided: int = 25) -> dict[str, Any]:
    gaps = [] if status == "supported" else ["a gap"]
    return {
        **{"id": name, "status": status, "gaps": gaps, "because": "of <b>", "outcome": "PASS", "decided": decided},
        **{"violated": 0, "frames": decided, "ci95": [0.0, 0.13] if decided else None, "why": "x"},
        **{"seen_failing": "with a fault" if seen else "", **({"waived": WAIVED} if status == "waived" else {})},
    }


def requirement(name: str, *relations: dict[str, Any], status: str = "supported", hazard: str = "H") -> dict[str, Any]:
    text = "Must <script>alert(1)</script> & not fail, whatever happens to whomever it may concern " * 3
    row = {"id": name, "text": text, "hazard": hazard, "max_rate": 0.15, "frames": 22}
    return {**row, "relations": list(relations), "status": status, "gaps": []}


def found(*requirements: dict[str, Any], code: int = 0, **more: Any) -> dict[str, Any]:
    plan = {"made": "2026-01-01T00:00:00+00:00", "seed": 1, "drives": {"count": 1, "sha256": ["ab"]}, "pairs": 75}
    return {
        **{
            "as_of": "2026-01-02",
            "exit_code": code,
            "exit_why": "fine",
            "requirements": list(requirements),
            "gaps": [],
        },
        "plan": {**plan, "sha256": "cd" * 32, "code": {"version": "1", "sha256": "ef" * 32}},
        **{"stack": {"name": "s", "version": "1", "sha256": "01" * 32}, "runs": [], "waivers": [], "coverage": {}},
        **{"sensitivity": {"relations": {}, "notes": []}, **more},
    }


CASES = st.lists(
    st.builds(
        lambda relations, hazard: requirement("R", *relations, hazard=hazard),
        st.lists(
            st.builds(
                relation,
                st.just("noise_outside_roi_1000"),
                st.sampled_from(["supported", "gap", "waived", "violated"]),
                st.booleans(),
                st.sampled_from([0, 25]),
            ),
            max_size=4,
        ),
        st.sampled_from(["", "A", "B"]),
    ),
    min_size=1,
    max_size=5,
)


@given(CASES)
def test_an_argument_is_a_tree_whose_boxes_do_not_overlap(requirements: list[dict[str, Any]]) -> None:
    elements = safety_argument(found(*requirements))
    children = [one for e in elements.values() for key in ("supportedBy", "inContextOf") for one in e.get(key, ())]
    assert sorted([*children, "G1"]) == sorted(elements), "each but the top hangs on one other"
    assert yaml.safe_load(argument_yaml(elements)) == elements
    boxes: dict[str, _Box] = {}
    _place(elements, "G1", _room(elements, "G1") / 2, 0.0, boxes)
    for one, other in combinations(boxes.values(), 2):
        beside = abs(one.x - other.x) >= (one.wide + other.wide) / 2
        assert beside or one.y + one.high <= other.y or other.y + other.high <= one.y
    assert min(box.x - box.wide / 2 for box in boxes.values()) >= 0.0


def test_what_is_missing_is_marked() -> None:
    bare = requirement("R2", status="gap", hazard="")
    blind = requirement("R1", relation("fog", "gap", seen=False), relation("rain", "waived"), status="gap")
    elements = safety_argument(found(blind, bare, code=1))
    texts = {element["text"]: element for element in elements.values()}
    assert elements["G1"]["status"] == "gap"
    assert next(e for text, e in texts.items() if text.startswith("R2"))["undeveloped"]
    assert texts["fog can fail: no planted fault was seen to violate it"]["undeveloped"]
    assert texts["Waived until 2999-01-01: ticket 42"]["status"] == "waived"
    assert texts["Requirements for which no hazard is stated"]["status"] == "gap"
    assert (
        elements["Sn1"]["text"].startswith("0 runs: 0 of 25 violated, at most 13.0 %")
        and "status" not in elements["Sn1"]
    )


def test_texts_of_others_are_no_markup() -> None:
    case = found(requirement("<i>R1", relation("a<b")), gaps=[{"about": "<u>", "what": "<script>"}], code=1)
    drawing, page = argument_svg(safety_argument(case)), safety_page(case)
    ElementTree.fromstring(drawing)
    for text in (drawing, page):
        assert "<script" not in text and "<i>" not in text and "<u>" not in text and "a<b" not in text
    assert "default-src 'none'" in page and "&lt;script&gt;" in page


def test_each_section_names_what_the_bundle_never_gives() -> None:
    sections = [row for one in standards(found(requirement("R1", relation("fog")))) for row in one["sections"]]
    assert len(sections) > 20 and all(row["lacks"].strip() for row in sections)
    iso = [row["clause"] for row in standards(found(requirement("R1")))[0]["sections"]]
    assert iso == [str(number) for number in range(5, 14)]
    facts = {fact.text: fact.good for row in sections for fact in row["facts"]}
    assert not facts["no coverage of range, bearing and class is known"]
