# SPDX-License-Identifier: Apache-2.0
"""What runs tried: cells of the ground, counts that agree with the journal, and how they are shown."""

from __future__ import annotations

import json
import math
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import NOISE as BY_HAND
from made_runs import in_process, made_run, sparse_drive, verdict

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.cli.main import main
from mt_nodes.data.polar_cells import BEARING_DEG, JUDGED_IN, RANGE_M, Polar, cells_in, counted_cells, polar_of
from mt_nodes.data.verdict import Judgement, Outcome, Pair, Verdict
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.results_dirs import results_of
from mt_nodes.report.coverage.coverage import AS_RECORDED, BEARINGS_DEG, CoverageCell, coverage, weather
from mt_nodes.report.coverage.coverage_view import coverage_html, rows

NOISE, FOG = "noise_outside_roi_1000", "fog_keeps_near_obstacles"
PLACES = st.tuples(st.floats(-200, 200), st.floats(-200, 200))


# --- cells -------------------------------------------------------------------------------------------------------


@given(PLACES)
def test_a_place_lies_in_its_cell(place: tuple[float, float]) -> None:
    ((near_m, rightmost_deg),) = polar_of([place]).tolist()
    x, y = place
    assert near_m <= math.hypot(x, y) < near_m + RANGE_M and near_m % RANGE_M == 0
    bearing = math.degrees(math.atan2(y, x))
    behind = bearing in (180.0, -180.0)
    assert rightmost_deg in BEARINGS_DEG
    assert (behind and rightmost_deg == -180) or rightmost_deg <= bearing < rightmost_deg + BEARING_DEG


@pytest.mark.parametrize(
    ("place", "cell"),
    [((5.0, 0.1), (0, 0)), ((5.0, -0.1), (0, -30)), ((0.0, 25.0), (20, 90)), ((-12.0, 0.0), (10, -180))],
)
def test_cells_by_hand(place: tuple[float, float], cell: tuple[int, int]) -> None:
    assert polar_of([place]).tolist() == [list(cell)]


@given(st.lists(st.tuples(PLACES, st.sampled_from(["car", "pedestrian"])), max_size=20))
def test_every_obstacle_is_counted_once(obstacles: list[tuple[tuple[float, float], str]]) -> None:
    counted = counted_cells([place for place, _ in obstacles], [label for _, label in obstacles])
    totals = {label: sum(row[2] for row in cells) for label, cells in counted.items()}
    assert totals == Counter(label for _, label in obstacles)
    json.dumps(counted)
    assert set(cells_in({JUDGED_IN: counted})) == {
        (label, Polar(*polar_of([place]).tolist()[0])) for place, label in obstacles
    }


def test_nothing_has_no_cells() -> None:
    assert counted_cells(np.zeros((0, 2)), []) == {} and cells_in({}) == []


# --- weather -----------------------------------------------------------------------------------------------------


def test_weather_of_mutations() -> None:
    assert weather(["fog"]) == "fog" and weather(["noise_outside_roi", "rain"]) == "rain"
    assert weather(["night", "fog"]) == "night + fog"
    assert weather(["points_dropped"]) == weather(["object_added", "somebodys_own"]) == AS_RECORDED
    joint = [name for name, cls in plugins.catalogue("mutations").items() if ".joint." in cls.__module__]
    assert len(joint) > 8 and all(weather([name]) == name for name in joint)


# --- journals by hand ----------------------------------------------------------------------------------------------


def told(bundle: int, outcome: Outcome, relation: str = "noise", draw: str = "0", **detail: Any) -> Verdict:
    margin = {Outcome.HOLDS: 0.0, Outcome.VIOLATED: -1.0}.get(outcome)
    return Verdict(Pair(0, bundle, relation, draw), bundle, Judgement(outcome, margin=margin, detail=detail))


def test_by_hand(tmp_path: Path) -> None:
    """Two cars ahead in one cell are one cell; who is lost makes the pair violated there and nowhere else."""
    seen = {"car": [[10, 0, 2]], "pedestrian": [[20, -30, 1]]}
    made_run(
        tmp_path / "run",
        [
            told(0, Outcome.HOLDS, judged_in=seen),
            told(1, Outcome.VIOLATED, judged_in=seen, lost_at=[[25.0, -3.0, "pedestrian"]], gained_at=[]),
            told(2, Outcome.VIOLATED, judged_in=seen),
            told(3, Outcome.HOLDS),
            told(4, Outcome.VIOLATED),
            told(5, Outcome.NOT_APPLICABLE),
            told(0, Outcome.VIOLATED, "identity", "0@noise", judged_in={"bus": [[0, 0, 1]]}),
        ],
        BY_HAND,
    )
    found = coverage([tmp_path / "run"])
    car, person = CoverageCell(10, 0, "car", AS_RECORDED), CoverageCell(20, -30, "pedestrian", AS_RECORDED)
    assert {cell: (c.tried, c.violated) for cell, c in found.cells.items()} == {car: (3, 1), person: (3, 2)}
    totals = found.weathers[AS_RECORDED]
    assert (totals.decided, totals.violated, totals.decided_nowhere, totals.violated_nowhere) == (5, 3, 2, 1)
    assert found.undecided == 1 and found.labels == ["car", "pedestrian"] and found.ranges_m == [0, 10, 20, 30]
    assert found.never == 2 * 4 * 12 - 2


def test_runs_add_up_and_a_campaign_is_all_its_cells(tmp_path: Path) -> None:
    for name in ("a", "b"):
        made_run(
            tmp_path / "campaign" / "cells" / name, [told(0, Outcome.HOLDS, judged_in={"car": [[10, 0, 1]]})], BY_HAND
        )
    found = coverage([tmp_path / "campaign"])
    assert [count.tried for count in found.cells.values()] == [2]
    assert [path.name for path in results_of(tmp_path / "campaign")] == ["a", "b"]
    made_run(tmp_path / "search" / "confirmed", [verdict("noise", 0, False)], BY_HAND)
    assert results_of(tmp_path / "search") == [tmp_path / "search" / "confirmed"]
    with pytest.raises(UsageError, match=r"no result\.jsonl"):
        coverage([tmp_path])


# --- runs --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("run")
    bag = sparse_drive(place / "drive", 3, columns=1800)  # they nearly fill the buffer
    return in_process(bag, place / "out", NOISE, FOG, faults=("point_buffer_cap",)).out


def lines_of(run: Path) -> list[dict[str, Any]]:
    verdicts = (line for line in read_journal(run / "result.jsonl") if line["type"] == "verdict")
    return [line for line in verdicts if "@" not in line["pair"]]


def test_counts_agree_with_the_journal(run: Path) -> None:
    found, lines = coverage([run]), lines_of(run)
    decided = [line for line in lines if line["outcome"] in ("HOLDS", "VIOLATED")]
    assert sum(t.decided for t in found.weathers.values()) == len(decided) > 0
    assert sum(t.violated for t in found.weathers.values()) == sum(d["outcome"] == "VIOLATED" for d in decided) > 0
    assert found.undecided == len(lines) - len(decided)
    fog = [line for line in decided if line["relation"] == FOG]
    assert set(found.weathers) == {"fog", AS_RECORDED} and found.weathers["fog"].decided == len(fog)
    # Every pair that tells a place is in as many cells as it tells.
    told = sum(len(rows) for line in decided for rows in line["detail"][JUDGED_IN].values())
    assert sum(count.tried for count in found.cells.values()) == told
    lost = [(line, row) for line in decided for row in line["detail"]["lost_at"]]
    blamed = {(str(line["pair"]), row[2], *polar_of([row[:2]]).tolist()[0]) for line, row in lost}
    gained = [row for line in decided if line["outcome"] == "VIOLATED" for row in line["detail"]["gained_at"]]
    assert not gained and sum(count.violated for count in found.cells.values()) == len(blamed) > 0


def test_as_many_obstacles_as_were_demanded_are_placed(run: Path) -> None:
    for line in lines_of(run):
        if line["outcome"] in ("HOLDS", "VIOLATED"):
            placed = sum(row[2] for rows in line["detail"][JUDGED_IN].values() for row in rows)
            assert placed == line["bound"]


def test_added_objects_are_placed_where_the_check_tells_nobody(tmp_path: Path) -> None:
    bag = sparse_drive(tmp_path / "drive", 2)
    out = in_process(bag, tmp_path / "out", "person_ahead_slows_down", stack="reference_driver").out
    found = coverage([out])
    assert sum(totals.decided for totals in found.weathers.values()) > 0
    assert {cell.label for cell in found.cells} >= {"pedestrian"}
    assert all(cell.bearing_deg in (-30, 0) for cell in found.cells if cell.label == "pedestrian")


class Cells(HTMLParser):
    """Collects the cells of all tables."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[tuple[str, str]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta",):
            self.open.append(tag)
        if tag == "td":
            self.cells.append((dict(attrs).get("class") or "", ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells[-1] = (self.cells[-1][0], data)


def test_the_map_shows_every_cell_once(run: Path) -> None:
    found, page = coverage([run]), Cells()
    page.feed(coverage_html(found))
    assert not page.open
    assert len(page.cells) == len(found.labels) * len(found.weathers) * len(found.ranges_m) * len(BEARINGS_DEG)
    assert sum(kind == "never" for kind, _ in page.cells) == found.never
    shown = Counter(text for kind, text in page.cells if kind != "never")
    assert shown == Counter(f"{c.violated}/{c.tried}" for c in found.cells.values())
    assert sum(int(row[-1]) for row in rows(found)) == found.never


def test_names_of_classes_are_escaped(tmp_path: Path) -> None:
    made_run(tmp_path / "run", [told(0, Outcome.HOLDS, judged_in={"<b>": [[0, 0, 1]]})], BY_HAND)
    assert "&lt;b&gt;" in (page := coverage_html(coverage([tmp_path / "run"]))) and "<b>" not in page


def test_on_the_command_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["coverage", str(run), "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "pedestrian" in printed and "fog" in printed and "never tried" in printed
    written = json.loads((tmp_path / "out" / "coverage.json").read_text())
    assert main(["report", "--coverage", str(run), "--out", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == written == coverage([run]).as_plain()
    assert "<h1>Coverage</h1>" in (tmp_path / "out" / "coverage.html").read_text()
    assert main(["coverage", str(tmp_path)]) == 2
    made_run(tmp_path / "nothing", [told(0, Outcome.NOT_APPLICABLE)], BY_HAND)
    assert main(["coverage", str(tmp_path / "nothing")]) == 3
    capsys.readouterr()
    assert main(["report", str(run), str(run)]) == 2 == main(["report", "--coverage", str(run), "--pair", "0/1/x/0"])
    several, beside = capsys.readouterr().err.splitlines()
    assert "need --coverage" in several and "takes no --waivers" in beside
