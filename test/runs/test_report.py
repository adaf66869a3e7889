# SPDX-License-Identifier: Apache-2.0
"""What is written after a run: junit.xml, pairs.csv, report.html and its pictures."""

from __future__ import annotations

import base64
import csv
import hashlib
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.base.errors import InfrastructureError, MtError
from mt_nodes.base.jsonl import read_result, write_result
from mt_nodes.data.outputs import Detections
from mt_nodes.data.rotations import rectangle_corners
from mt_nodes.data.verdict import Judgement, Outcome, Pair, Verdict
from mt_nodes.engine.journal import Journal
from mt_nodes.engine.pair_view import PairView, evidence_file, load_view
from mt_nodes.engine.summary.summary import RelationInfo, summarise
from mt_nodes.engine.worst import PICTURED
from mt_nodes.relations.checks.obstacles import describe
from mt_nodes.report import birdseye
from mt_nodes.report import picture_colours as colours
from mt_nodes.report.csv_pairs import COLUMNS, pair_rows, write_pairs_csv
from mt_nodes.report.html import LISTED, write_report
from mt_nodes.report.junit import write_junit
from mt_nodes.report.svg_parts import ticks

NOISE = RelationInfo("noise", "necessary", 20, "Noise outside must not matter.", ("REQ-7",))
FOG = RelationInfo("fog", "expected", 20, "Light fog must not hide <obstacles>.")
FETCHING = ("src", "href", "srcset", "data", "poster", "action")
REGION = np.array([[0.0, -10.0], [40.0, -10.0], [40.0, 10.0], [0.0, 10.0]])


def verdict(relation: str, bundle: int | None, lost: int = 0, draw: str = "0", reason: str = "") -> Verdict:
    outcome = Outcome.VIOLATED if lost else Outcome.HOLDS
    judgement = Judgement(outcome, 7 - lost, 7, -lost, "obstacles", reason, lost, 0, {"counts": {"all": [7, 7 - lost]}})
    return Verdict(Pair(0, bundle, relation, draw), 10**17, judgement)


def verdicts(relation: str, violated: dict[int, int], count: int = 26) -> list[Verdict]:
    rows = [verdict(relation, b, violated.get(b, 0), reason="lost car" if b in violated else "") for b in range(count)]
    for background in ("identity", "points_permuted"):
        rows += [verdict(background, b, draw=f"0@{relation}") for b in range(count)]
    return rows


def summary_of(rows: list[Verdict], *relations: RelationInfo, **given_: Any) -> dict[str, Any]:
    return summarise((v.as_plain() for v in rows), relations, **given_)


def write_run(path: Path, rows: list[Verdict], *relations: RelationInfo, **given_: Any) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    with Journal(path / "result.jsonl") as journal:
        journal.condition({"seed": 7, "mode": "twin", "bags": ["<drive>"], "stack": "reference_detector"})
        for row in rows:
            journal.verdict(row)
    write_result(path / "summary.json", summary_of(rows, *relations, **given_))
    write_result(path / "run.json", {"versions": {"numpy": "2.0"}, "machine": None})
    return path


def arrays(**more: Any) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    boxes = np.array([[12, 4, 0.8, 4.2, 1.8, 1.5, 0.3], [23, -2, 0.9, 0.6, 0.6, 1.7, 0.0]])
    given_ = {
        "source_xyz": rng.uniform(-20, 20, (500, 3)).astype(np.float32),
        "followup_xyz": rng.uniform(-20, 20, (520, 3)).astype(np.float32),
        "added_xyz": rng.uniform(-20, 20, (20, 3)).astype(np.float32),
        "source_boxes": boxes,
        "followup_boxes": boxes[:1],
        "source_labels": np.array(["car", "pedestrian"]),
        "followup_labels": np.array(["car"]),
        "lost_at": boxes[1:, :2],
        "gained_at": np.empty((0, 2)),
        "region": REGION,
    }
    return {**given_, **more}


def save_evidence(path: Path, pair: Pair) -> None:
    file = evidence_file(path, pair)
    file.parent.mkdir(exist_ok=True)
    np.savez(file, **arrays())


def fetched(attrs: list[tuple[str, str | None]]) -> list[str]:
    """What an element makes a browser fetch, or leads to; not what is on the page itself."""
    return [v or "" for k, v in attrs if k in FETCHING and not str(v).startswith("#")]


class Page(HTMLParser):
    """Collects what a browser would fetch, and the pieces that tests look at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.commands: list[str] = []
        self.text = ""
        self.open: list[str] = []
        self._in_command = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += fetched(attrs)
        self._in_command = tag == "code" and ("class", "command") in attrs
        if tag not in ("meta", "img", "br", "wbr", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += fetched(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self._in_command = False

    def handle_data(self, data: str) -> None:
        self.text += f" {data}"
        if self._in_command:
            self.commands.append(data)


# --- junit.xml


def junit_of(tmp_path: Path, summary: dict[str, Any]) -> ET.Element:
    write_junit(tmp_path / "junit.xml", summary)
    return ET.parse(tmp_path / "junit.xml").getroot()


def test_junit_has_one_case_a_relation_with_its_requirement(tmp_path: Path) -> None:
    rows = verdicts("noise", {3: 1}) + verdicts("fog", {})
    suite = junit_of(tmp_path, summary_of(rows, NOISE, FOG))
    assert [c.get("name") for c in suite] == ["noise", "fog"]
    failure = suite.find("testcase[@name='noise']/failure")
    assert failure is not None and failure.get("type") == "FAIL"
    assert "one violated pair" in str(failure.get("message"))
    assert suite.find("testcase[@name='fog']/failure") is None
    requirement = suite.find("testcase[@name='noise']/properties/property")
    assert requirement is not None and requirement.get("value") == "REQ-7"
    assert [suite.get(k) for k in ("tests", "failures", "errors", "skipped")] == ["2", "1", "0", "0"]


@pytest.mark.parametrize(
    ("given_", "rows", "relations", "expected"),
    [
        ({}, verdicts("noise", {}), [NOISE], []),
        ({}, verdicts("noise", {}, count=5), [NOISE], [("failure", "INCONCLUSIVE")]),
        ({}, verdicts("fog", {2: 1}), [FOG], [("failure", "INCONCLUSIVE")]),
        ({}, [], [], [("error", "exit code 3")]),
        ({"interrupted": True}, verdicts("noise", {}), [NOISE], [("error", "exit code 130")]),
        ({"usage": "no such bag"}, verdicts("noise", {}), [NOISE], [("error", "exit code 2")]),
        ({"isolation": "domain 7 is in use"}, verdicts("noise", {}), [NOISE], [("error", "exit code 5")]),
        ({"infrastructure": "stack died"}, verdicts("noise", {}), [NOISE], [("error", "exit code 4")]),
    ],
)
def test_junit_is_green_exactly_when_the_exit_code_is(
    tmp_path: Path, given_: dict[str, Any], rows: list[Verdict], relations: list[RelationInfo], expected: Any
) -> None:
    summary = summary_of(rows, *relations, **given_)
    suite = junit_of(tmp_path, summary)
    found = [(e.tag, e.get("type")) for e in suite.iter() if e.tag in ("failure", "error", "skipped")]
    assert found == expected
    assert (summary["exit_code"] == 0) == (not found)


def test_junit_keeps_error_and_failure_apart_and_shows_both(tmp_path: Path) -> None:
    broken = Verdict(Pair(0, 30, "identity", "0@noise"), 0, Judgement(Outcome.ERROR, reason="boom"))
    suite = junit_of(tmp_path, summary_of([*verdicts("noise", {3: 1}), broken], NOISE))
    case = suite.find("testcase")
    assert case is not None and [e.tag for e in case if e.tag in ("error", "failure")] == ["error", "failure"]
    assert (suite.get("errors"), suite.get("failures")) == ("1", "1")


@given(st.text())
def test_junit_survives_any_log_text(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    suite = junit_of(tmp_path_factory.mktemp("junit"), summary_of([], infrastructure=text))
    error = suite.find("testcase/error")
    assert error is not None and str(error.get("message")).startswith("infrastructure: ")


# --- pairs.csv


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_pairs_csv_has_one_row_a_pair_sorted_whatever_the_order(tmp_path: Path) -> None:
    rows = [v.as_plain() for v in verdicts("noise", {10: 2})]
    write_pairs_csv(tmp_path / "a.csv", pair_rows([{"type": "condition"}, *rows]))
    write_pairs_csv(tmp_path / "b.csv", pair_rows(reversed(rows)))
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    table = read_csv(tmp_path / "a.csv")
    assert len(table) == len(rows) and tuple(table[0]) == COLUMNS
    assert [int(r["bundle"]) for r in table] == sorted(int(r["bundle"]) for r in table)
    lost = next(r for r in table if r["pair"] == "0/10/noise/0")
    picked = [lost[k] for k in ("episode", "bundle", "relation", "draw", "outcome", "measured", "margin", "lost")]
    assert picked == ["0", "10", "noise", "0", "VIOLATED", "5", "-2", "2"]
    assert next(r for r in table if r["relation"] == "identity")["judged_for"] == "noise"


def test_pairs_csv_leaves_empty_what_was_not_measured_and_quotes_reasons(tmp_path: Path) -> None:
    odd = Verdict(Pair(1, None, "noise"), 0, Judgement(Outcome.SKIPPED, reason='said "no",\nthen left'))
    write_pairs_csv(tmp_path / "p.csv", pair_rows([odd.as_plain(), verdict("noise", 3).as_plain()]))
    row = read_csv(tmp_path / "p.csv")[1]
    assert [row[k] for k in ("bundle", "measured", "bound", "margin")] == [""] * 4
    assert row["reason"] == 'said "no",\nthen left'


# --- report.html


def test_report_is_one_self_contained_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a run", [*verdicts("noise", {3: 1, 17: 2}), *verdicts("fog", {})], NOISE, FOG)
    for bundle in (3, 17):
        save_evidence(run, Pair(0, bundle, "noise"))
    text = write_report(run).read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    assert len(page.links) == 4 and all(link.startswith("data:image/svg+xml;base64,") for link in page.links)
    assert not re.search(r"url\(|@import|https?://", text)
    (script,) = re.findall(r'<script data-part="1">(.*?)</script>', text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert (
        text.count("<script") == 1
        and f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'\"" in text
    )
    begins = [text.index(part) for part in ("<h1>", "<img ", 'class="next"', '<h2 id="relations">', "<table")]
    assert begins == sorted(begins), "the sentence, the picture, what to type, the relations, and then tables"
    assert page.text.index("Relations") < page.text.index("More violations") < page.text.index("Violation rates")
    assert page.text.index("lost 2, gained 0") < page.text.index("lost 1, gained 0")


def test_report_shows_rates_counts_background_and_settings(tmp_path: Path) -> None:
    run = write_run(
        tmp_path / "run", verdicts("noise", {3: 1}), NOISE, latency_ms={"mutator": {"p50": 3.1, "p99": 4.2}}
    )
    text = " ".join(Page(write_report(run).read_text(encoding="utf-8")).text.split())
    for piece in (
        "Exit code 1 : FAIL: noise. 78 pairs offered",
        "✗ FAIL noise necessary · requirement REQ-7",
        "relation 1 / 26 26 (1) 3.8 % 0.7 to 18.9 %",
        "control 0 / 26 26 (1) 0.0 % 0.0 to 12.9 %",
        "relation 1 / 0 of 26 1 / 0 p = 1",
        "p50 (ms) p99 (ms) mutator 3.1 4.2",
        "all 77 1 78",
        "stack reference_detector · mode twin · bags <drive> · seed 7",
        "versions.numpy 2.0",
    ):
        assert piece in text


def test_report_escapes_what_users_wrote(tmp_path: Path) -> None:
    rows = [*verdicts("fog", {}), verdict("fog", 40, 1, reason="<script>alert(1)</script>")]
    text = write_report(write_run(tmp_path / "run", rows, FOG)).read_text(encoding="utf-8")
    assert "<script>" not in text and "&lt;script&gt;" in text and "&lt;obstacles&gt;" in text


def test_every_violated_pair_has_its_command(tmp_path: Path) -> None:
    rows = [*verdicts("noise", {3: 1, 4: 1}), verdict("identity", 30, 1, draw="0@noise", reason="flicker")]
    run = write_run(tmp_path / "a run", rows, NOISE)
    page = Page(write_report(run).read_text(encoding="utf-8"))
    commands = [shlex.split(c) for c in page.commands]
    assert all(c[:3] == ["mt", "reproduce", str(run)] for c in commands)
    listed = [c[3] for c in commands]
    assert listed == ["0/3/noise/0", "0/4/noise/0"] * 2 + ["0/30/identity/0@noise"]
    assert "(control)" in page.text


def test_missing_and_damaged_evidence_are_said_and_cost_nothing_else(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", verdicts("noise", {3: 1, 4: 1, 5: 1}), NOISE)
    save_evidence(run, Pair(0, 5, "noise"))
    evidence_file(run, Pair(0, 4, "noise")).write_bytes(b"PK\x03\x04 torn")
    page = Page(write_report(run).read_text(encoding="utf-8"))
    assert len(page.links) == 2
    assert "No picture: evidence/0_3_noise_0.npz is missing" in page.text
    assert re.search(r"No picture: .*0_4_noise_0\.npz: cannot be read", page.text)


def test_long_lists_are_cut_and_say_so(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", verdicts("noise", dict.fromkeys(range(250), 1), count=250), NOISE)
    page = Page(write_report(run).read_text(encoding="utf-8"))
    assert len(page.commands) == PICTURED + LISTED
    assert "The worst 200 of 250" in page.text


def test_report_of_a_run_that_judged_nothing(tmp_path: Path) -> None:
    text = Page(write_report(write_run(tmp_path / "run", [])).read_text(encoding="utf-8")).text
    assert "Exit code 3" in text and "No relation was offered" in text
    text = Page(write_report(write_run(tmp_path / "two", [], NOISE)).read_text(encoding="utf-8")).text
    assert "INCONCLUSIVE" in text and "not measured" in text


def undecided(relation: str, bundle: int, reason: str, draw: str = "0") -> Verdict:
    judgement = Judgement(Outcome.NOT_APPLICABLE, None, None, None, "m", reason)
    return Verdict(Pair(0, bundle, relation, draw), 10**17, judgement)


def test_why_pairs_were_not_decided_is_said_of_each_relation(tmp_path: Path) -> None:
    rows = [undecided("noise", b, f"no free ground: {b} of 64 places") for b in range(3)]
    rows += [undecided("noise", 3, "no camera"), undecided("identity", 0, "of control", "0@noise")]
    same = RelationInfo("identity", "necessary", 20, "A relation that is the control of others, too.")
    run = write_run(tmp_path / "run", rows, NOISE, same)
    text = re.sub(r"\s+", " ", Page(write_report(run).read_text("utf-8")).text)
    assert (
        "NOT_APPLICABLE: 3 pairs, for example: no free ground: 0 of 64 places NOT_APPLICABLE: 1 pair: no camera" in text
    )
    assert "of control" not in text


def test_what_the_labels_of_a_data_set_say_is_in_the_row_of_the_relation(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", verdicts("noise", {3: 1}), NOISE)
    share = {
        "wrong": 1,
        "compared": 1,
        "rate": 1.0,
        "ci95": [0.2, 1.0],
        "ci95_method": "Wilson",
        "not_comparable": {},
        "unlabelled": 0,
    }
    summary = read_result(run / "summary.json")
    summary["relations"]["noise"]["ground_truth"] = {"precision": share, "blind_spot": {**share, "ci95": None}}
    write_result(run / "summary.json", summary)
    text = " ".join(Page(write_report(run).read_text()).text.split())
    assert "By the labels, the follow-up is really wrong in 1 of 1 violated pairs (20.0 … 100.0 %); both are" in text


def test_report_needs_journal_and_summary_but_not_run_json(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", verdicts("noise", {}), NOISE)
    (run / "run.json").unlink()
    write_report(run)
    (run / "summary.json").write_text("{torn")
    with pytest.raises(InfrastructureError, match=r"summary\.json: cannot be read"):
        write_report(run)
    with pytest.raises(MtError, match=r"expected a results directory"):
        write_report(tmp_path)


def test_report_of_the_same_run_is_the_same_file(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", verdicts("noise", {3: 1}), NOISE)
    save_evidence(run, Pair(0, 3, "noise"))
    first = write_report(run).read_bytes()
    assert write_report(run).read_bytes() == first


def test_an_arm_that_said_nothing_to_measure_is_shown_among_others(tmp_path: Path) -> None:
    """A silent arm is violated without a margin; it must not keep the report from being sorted."""
    silent = Verdict(Pair(0, 30, "noise", "0"), 10**17, Judgement(Outcome.VIOLATED, reason="silent"))
    missed = Verdict(Pair(0, 29, "noise", "0"), 10**17, Judgement(Outcome.VIOLATED, 1, 0, -1, "m", "too far"))
    run = write_run(tmp_path / "run", [*verdicts("noise", {}), missed, silent], NOISE)
    commands = [shlex.split(c)[3] for c in Page(write_report(run).read_text(encoding="utf-8")).commands]
    assert commands == ["0/30/noise/0", "0/29/noise/0"] * 2


# --- bird's-eye views


def svg_of(uri: str) -> str:
    return base64.b64decode(uri.split(",", 1)[1]).decode()


def test_pictures_show_boxes_marks_and_zones_in_their_colours() -> None:
    view = PairView.of(arrays(gained_at=np.array([[30.0, 3.0]]), keep=REGION * 0.9))
    source, followup = (svg_of(uri).lower() for uri in birdseye.draw(view))
    for svg, own, other in ((source, colours.BLUE, colours.ORANGE), (followup, colours.ORANGE, colours.BLUE)):
        assert own.lower() in svg and other.lower() not in svg
        assert colours.VERMILLION.lower() in svg and colours.GREEN.lower() in svg
        assert "<image" in svg


def test_footprints_turn_with_yaw() -> None:
    box = np.array([[10.0, 2.0, 0.0, 4.0, 2.0, 1.5, np.pi / 2]])
    (footprint,) = rectangle_corners(box[:, :2], box[:, 3:5], box[:, 6])
    x, y = footprint.T
    assert (x.min(), x.max()) == pytest.approx((9.0, 11.0))
    assert (y.min(), y.max()) == pytest.approx((0.0, 4.0))


def test_window_is_around_the_region_and_what_differs() -> None:
    view = PairView.of(arrays(lost_at=np.array([[60.0, 0.0]])))
    assert view.window == (-6.0, 66.0, -16.0, 16.0)
    assert PairView.of({}).window == (-40.0, 40.0, -40.0, 40.0)


def test_a_picture_of_nothing_can_be_drawn() -> None:
    assert all("<svg" in svg_of(uri) for uri in birdseye.draw(PairView.of({})))


def test_what_is_not_finite_is_left_out_of_a_picture_and_names_are_texts() -> None:
    boxes = arrays()["source_boxes"].copy()
    boxes[0, 0] = np.nan
    cloud = np.array([[1.0, 2.0, 0.0], [np.nan, np.nan, np.nan], [np.inf, 0.0, 0.0]], dtype=np.float32)
    labels = np.array(["<b>&", "</text>"])
    view = PairView.of(arrays(source_xyz=cloud, source_boxes=boxes, source_labels=labels))
    for uri in birdseye.draw(view):
        svg = re.sub('base64,[^"]*', "", svg_of(uri))
        ET.fromstring(svg)
        assert "nan" not in svg and "inf" not in svg and "<b>" not in svg


def test_the_points_of_a_picture_are_where_they_are() -> None:
    """One point at each corner of a square, one of them added; ahead is to the right, left is up."""
    region = np.array([[0.0, -20.0], [40.0, -20.0], [40.0, 20.0], [0.0, 20.0]])
    cloud = np.array([[10.0, 10.0, 0.0], [30.0, 10.0, 0.0], [10.0, -10.0, 0.0]])
    view = PairView.of(
        {"region": region, "source_xyz": cloud, "followup_xyz": cloud, "added_xyz": np.array([[30.0, -10.0, 0.0]])}
    )
    x0, x1, y0, y1 = view.window
    for uri, added in zip(birdseye.draw(view), (False, True), strict=True):
        (image,) = re.findall(r'href="data:image/png;base64,([^"]+)"', svg_of(uri))
        pixels = cv2.imdecode(np.frombuffer(base64.b64decode(image), np.uint8), cv2.IMREAD_UNCHANGED)
        high, wide, _ = pixels.shape
        rows, columns = np.nonzero(pixels[..., 3])
        at = {
            (round(x0 + (x1 - x0) * c / wide), round(y1 - (y1 - y0) * r / high))
            for r, c in zip(rows, columns, strict=True)
        }
        assert at == {(10, 10), (30, 10), (10, -10), *([(30, -10)] if added else [])}
        pink = {tuple(pixel) for pixel in pixels[..., :3][pixels[..., 3] == 255].tolist()}
        assert ((0xA7, 0x79, 0xCC) in pink) == added


def test_round_numbers_lie_between_the_ends() -> None:
    assert ticks(0.0, 40.0, 8) == [0.0, 10.0, 20.0, 30.0, 40.0] and ticks(-6.0, 46.0, 8) == [0, 10, 20, 30, 40]
    assert ticks(0.001, 0.0042, 5) == [0.001, 0.002, 0.003, 0.004]
    assert ticks(3.0, 3.0, 5) == [3.0] and ticks(np.nan, 1.0, 5) == [] and ticks(-0.4, 0.4, 3) == [0.0]


def test_nothing_is_at_minus_zero() -> None:
    one = Detections.make("base_link", None, [[20.0, -0.04, 0.0]], [[4.0, 2.0, 1.5]], [0.0], ["car"])
    assert describe(one, np.array([True])) == "car at (20.0, 0.0) m"


def test_wrong_shapes_are_refused_with_the_file_and_the_array(tmp_path: Path) -> None:
    path = tmp_path / "e.npz"
    np.savez(path, **arrays(source_boxes=np.zeros((3, 6))))
    with pytest.raises(InfrastructureError, match=r"e\.npz.*source_boxes: got shape \(3, 6\), expected \(N, 7\)"):
        load_view(path)


def test_few_added_points_near_by_are_in_the_window_and_many_or_far_ones_are_not() -> None:
    region = np.array([[0.0, -10.0], [40.0, -10.0], [40.0, 10.0], [0.0, 10.0]])
    near, far = np.array([[30.0, 19.0, 1.0]]), np.array([[30.0, 90.0, 1.0]])
    for added, y_most in ((near, 25.0), (far, 16.0), (np.repeat(near, 11, axis=0), 16.0)):
        assert PairView.of({"region": region, "added_xyz": added}).window == (-6.0, 46.0, -16.0, y_most)
