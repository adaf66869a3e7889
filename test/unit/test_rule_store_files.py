# SPDX-License-Identifier: Apache-2.0
"""Relations as CSV, YAML and Gherkin: there and back, and what is wrong with a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_rules import entry, some

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.rules.ontology import load_ontology
from mt_nodes.rules.statement import ON_ROAD, ON_ROADSIDE, Statement
from mt_nodes.rules.store_entry import Entry
from mt_nodes.rules.store_files import COLUMNS, PAPER_COLUMNS, Reader, write

ONTOLOGY = load_ontology()
READER = Reader(ONTOLOGY, region="germany")
PAPER = ",".join(PAPER_COLUMNS)
ROW = "1,a text,any road,adds red light on the roadside,slow down,3"


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    element = ONTOLOGY.elements[draw(st.sampled_from(sorted(ONTOLOGY.elements)))]
    said = Statement(
        draw(st.sampled_from(sorted(ONTOLOGY.roads))),
        element.verb,
        element.name,
        draw(st.sampled_from(sorted(ONTOLOGY.behaviours))),
        draw(st.sampled_from(("", ON_ROAD, ON_ROADSIDE))),
        draw(st.sampled_from(("", "moving", "speed_kmh > 50 and not dark", "ego_heading == 'left'"))),
        tuple(draw(st.lists(st.sampled_from(("DE-1", "CA-2", "x")), unique=True))),
    )
    names = st.text("abc, \"';\n#é", max_size=6).map(str.strip)
    return Entry(said, "r" + draw(names), "o" + draw(names), draw(names), draw(names), 0, draw(st.integers(0, 9)))


@settings(max_examples=15)
@given(rows=st.lists(entries(), min_size=1, max_size=4), suffix=st.sampled_from((".csv", ".yaml")))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[Entry], suffix: str) -> None:
    path = tmp_path_factory.getbasetemp() / f"relations{suffix}"
    write(rows, path)
    assert READER.read(path) == rows


def test_gherkin_holds_the_statements(tmp_path: Path) -> None:
    write(some(), tmp_path / "some.feature")
    assert READER.read(tmp_path / "some.feature") == [replace(one, region="germany", origin="manual") for one in some()]


def test_csv_has_the_papers_columns_first_and_they_will_do(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write([replace(entry("red_light", "intersection", "", "DE-26"), index=5, executions=2)], path)
    head, row = path.read_text().splitlines()
    assert head == ",".join(COLUMNS)
    assert row.startswith(
        '5,"Given the ego-vehicle approaches to intersection, when mt adds red light on the road, then'
    )
    assert ",intersection,adds red light on the road,slow down,2," in row
    path.write_text(f"{PAPER}\n{ROW}\n")
    (found,) = READER.read(path)
    assert found.statement == Statement("any_road", "adds", "red_light", "slow_down", ON_ROADSIDE)
    assert (found.region, found.origin, found.executions, found.index) == ("germany", "manual", 3, 0)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.csv", "", r"no column 'Road Type'"),
        ("a.csv", f"{PAPER}\n", "got no relation"),
        ("a.csv", f"{PAPER}\n{ROW},7\n", r"a\.csv:2: got another number of values"),
        ("a.csv", f"{PAPER}\n{ROW}\n1,x\n", r"a\.csv:3: got another number of values"),
        ("a.csv", f"{PAPER}\n{ROW.replace('red light', 'unicorn')}\n", r"a\.csv:2: no element 'unicorn'"),
        ("a.csv", f"{PAPER}\n{ROW.replace('adds', 'eats')}\n", r"a\.csv:2: Manipulation: got 'eats"),
        ("a.csv", f"{PAPER}\n{ROW.replace(',3', ',-3')}\n", r"Execution Count: got '-3'"),
        ("a.csv", f'{PAPER}\n1,"a text\n', r"not valid CSV"),
        ("a.yaml", "- 3\n", r"a\.yaml\[1\]: got 3, expected a mapping"),
        ("a.yaml", "- {road: any_road, element: deer}\n", r"a\.yaml\[1\]: missing behaviour"),
        ("a.yaml", "- {road: any_road, element: deer, behaviour: stop, rulez: []}\n", "did you mean 'rules'"),
        (
            "a.yaml",
            "- {road: any_road, element: deer, behaviour: stop, executions: -1}\n",
            "expected a list and a count",
        ),
        ("a.yaml", "- {road: any_road, element: deer, behaviour: stop, condition: 'speed >'}\n", "condition"),
        ("a.txt", "x", r"got '\.txt', expected \.csv, "),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(tmp_path: Path, name: str, text: str, why: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=why):
        READER.read(tmp_path / name)


def test_huge_and_missing_files_are_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "huge.csv").write_bytes(b"x" * 4_000_001)
    with pytest.raises(UsageError, match=r"4\.0 MB"):
        READER.read(tmp_path / "huge.csv")
    with pytest.raises(UsageError, match="cannot be read"):
        READER.read(tmp_path / "none.yaml")


def test_where_nothing_can_be_written_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="cannot"):
        write(some(), tmp_path / "none" / "a.csv")
    with pytest.raises(UsageError, match=r"got '\.xml'"):
        write(some(), tmp_path / "a.xml")
