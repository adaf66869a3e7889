# SPDX-License-Identifier: Apache-2.0
"""All pairs of a run in its report: what is packed for the script, and the page in a real browser."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from browser import Browser
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from made_runs import in_process, sparse_drive
from rosbags.highlevel import AnyReader

from mt_nodes.base.jsonl import read_result, seal, write_result
from mt_nodes.cli.demo_command import FAULT
from mt_nodes.cli.main import main
from mt_nodes.data.polar_cells import JUDGED_IN
from mt_nodes.data.verdict import Judgement, Outcome, Pair, Verdict
from mt_nodes.engine.journal import Journal
from mt_nodes.engine.pair_view import SHAPES, PairView, evidence_file, load_view
from mt_nodes.engine.summary.summary import RelationInfo, summarise
from mt_nodes.engine.worst import worst_row
from mt_nodes.report.csv_pairs import VerdictObstacle, obstacle_of, pair_rows
from mt_nodes.report.html import write_report
from mt_nodes.report.packed_pairs import packed_pairs
from mt_nodes.report.page_data import coded, packed
from mt_nodes.report.pair_views import MAX_POINTS, packed_view

RELATIONS = [RelationInfo(name, "expected", 20, "x") for name in ("noise", "fog", "steer")]
DTYPES = {
    **{"Uint8Array": np.uint8, "Uint16Array": np.uint16, "Uint32Array": np.uint32, "Int16Array": np.int16},
    **{"Int32Array": np.int32, "Float32Array": np.float32, "Float64Array": np.float64},
}


def unpacked(text: str) -> dict[str, Any]:
    """Read the layout as its description has it."""
    whole = zlib.decompress(base64.b64decode(text))
    start = 4 + int.from_bytes(whole[:4], "little")
    header: dict[str, Any] = json.loads(whole[4:start])
    assert start % 8 == 0 and all(at % 8 == 0 for *_, at in header["arrays"])
    told = {name: np.frombuffer(whole, DTYPES[kind], size, start + at) for name, kind, size, at in header["arrays"]}
    return {**header, **told}


# --- what is packed

ARRAYS = st.sampled_from(list(DTYPES.values())).flatmap(
    lambda dtype: arrays_of.arrays(dtype, st.integers(0, 9), elements=arrays_of.from_dtype(np.dtype(dtype)))
)


@given(st.dictionaries(st.text(max_size=3), st.text()), st.lists(ARRAYS, max_size=4))
def test_what_is_packed_is_read_back(header: dict[str, str], given_: list[Any]) -> None:
    header.pop("arrays", None)
    text = packed({"told": header}, {str(i): array for i, array in enumerate(given_)})
    assert re.fullmatch("[A-Za-z0-9+/=]*", text)
    told = unpacked(text)
    assert told["told"] == header
    for i, array in enumerate(given_):
        assert told[str(i)].dtype == array.dtype and told[str(i)].tobytes() == array.tobytes()


@given(st.lists(st.text(max_size=2)))
def test_values_go_by_number(values: list[str]) -> None:
    codes, texts = coded(values)
    assert [texts[code] for code in codes] == values and len(set(texts)) == len(texts)
    assert codes.dtype == np.uint8
    many, _ = coded(map(str, range(300)))
    assert many.dtype == np.uint16


@pytest.mark.parametrize(
    ("detail", "classes", "range_m"),
    [
        ({}, "", None),
        (
            {"lost_at": [[30.0, 40.0, "car"], [3.0, -4.0, "pedestrian"]], "gained_at": [[1, 0, "x"]]},
            "car;pedestrian",
            5.0,
        ),
        ({"lost_at": [], "gained_at": [[6.0, 8.0, "car"]]}, "car", 10.0),
        ({"changed_at": [[0.0, 2.0, "cyclist"]]}, "cyclist", 2.0),
        ({"lost_px": [[1, 2, 3, 4, "pedestrian"]]}, "pedestrian", None),
        ({"objects": [[9.0, True, "a"], [12.5, False, "b"]], "objects_by": {"unit": "m"}}, "b", 12.5),
        ({"objects": [[9.0, True, "a"]], "objects_by": {"unit": "px"}}, "a", None),
        ({"lost_at": [], JUDGED_IN: {"van": [[0, 0, 1]], "car": [[0, 0, 1]]}}, "car;van", None),
    ],
)
def test_whom_a_verdict_is_about(detail: dict[str, Any], classes: str, range_m: float | None) -> None:
    assert obstacle_of(detail) == VerdictObstacle(classes, range_m)


def arrays(**more: Any) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    box = np.array([[12.0, 4.0, 0.8, 4.2, 1.8, 1.5, 0.3]])
    source = rng.uniform(-20, 20, (4000, 3)).astype(np.float32)
    near, beyond = rng.uniform(-20, 20, (20, 3)).astype(np.float32), rng.uniform(40, 60, (50, 3)).astype(np.float32)
    followup = np.concatenate([source[1000:], near])
    clouds = {"source_xyz": source, "followup_xyz": followup, "added_xyz": np.concatenate([near[:5], beyond])}
    boxes = {"source_boxes": box, "source_labels": np.array(["car"]), "lost_at": box[:, :2]}
    region = {"region": np.array([[0.0, -10.0], [40.0, -10.0], [40.0, 10.0], [0.0, 10.0]])}
    return {**clouds, **boxes, **region, **more}


def test_points_are_told_apart_to_a_step() -> None:
    given_ = arrays()
    told = unpacked(packed_view(PairView.of(given_)))
    places = {n: told["origin_m"] + told["step_m"] * told[n].reshape(-1, 3) for n in ("kept", "removed", "added")}
    added = np.concatenate([given_["followup_xyz"][3000:], given_["added_xyz"][5:]])
    wanted = {"kept": given_["source_xyz"][1000:], "removed": given_["source_xyz"][:1000], "added": added}
    for name, cloud in wanted.items():
        found = places[name]
        assert len(found) == len(cloud) == told["counts"][name]
        off = np.abs(found[np.lexsort(found.T)] - cloud[np.lexsort(cloud.T)])
        assert told["step_m"] < 0.003 and np.median(off) < told["step_m"]
    assert told["left_out"] == 0 and told["source_boxes"] == pytest.approx(given_["source_boxes"][0])


def test_a_large_cloud_is_thinned_and_says_so() -> None:
    cloud = np.random.default_rng(1).uniform(-30, 30, (MAX_POINTS + 500, 3)).astype(np.float32)
    told = unpacked(packed_view(PairView.of(arrays(source_xyz=cloud, followup_xyz=cloud, added_xyz=np.empty((0, 3))))))
    assert len(told["kept"]) == 3 * MAX_POINTS
    assert told["left_out"] == told["counts"]["kept"] - MAX_POINTS > 450


# --- a run made by hand


def line(relation: str, bundle: int, outcome: Outcome, draw: str = "0", **more: Any) -> Verdict:
    given_ = {"measured": 3, "bound": 4, "margin": 0 if outcome is Outcome.HOLDS else -1, "unit": "m", **more}
    return Verdict(Pair(0, bundle, relation, draw), 10**17, Judgement(outcome, **given_))


def made_verdicts() -> list[Verdict]:
    holds, violated = Outcome.HOLDS, Outcome.VIOLATED
    rows = [line(name, b, holds) for name in ("noise", "fog") for b in range(60)]
    rows += [line("identity", b, holds, f"0@{r.id}") for r in RELATIONS for b in range(60)]
    for b, place in ((60, (6.0, 8.0)), (61, (30.0, 40.0))):
        lost: dict[str, Any] = {
            "lost": b - 59,
            "reason": f"lost <b>car</b> at {place[0]}",
            "detail": {"lost_at": [[*place, "car"]]},
        }
        rows.append(line("noise", b, violated, **lost))
    rows.append(line("fog", 60, violated, detail={"gained_at": [[3.0, 4.0, "pedestrian"]]}, gained=1))
    for b in range(5):
        said: dict[str, Any] = {
            "detail": {"commanded": [0.1 * b, 0.1 * b + 0.01]},
            "measured": 0.01,
            "bound": 0.02,
            "unit": "rad",
        }
        rows.append(line("steer", b, holds, **said))
    rows.append(line("steer", 5, violated, measured=0.3, detail={"commanded": [0.5, 0.8]}, unit="rad", margin=-0.28))
    rows.append(line("steer", 6, Outcome.NOT_APPLICABLE, measured=None, bound=None, margin=None, reason="stands"))
    rows.append(Verdict(Pair(0, None, "steer"), 0, Judgement(violated, 1, 0, -1, "m", "all along")))
    return rows


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with pictures of its worst pairs: clouds, cameras, a sequence."""
    run = tmp_path_factory.mktemp("report") / "a run"
    rows = made_verdicts()
    with Journal(run / "result.jsonl") as journal:
        journal.condition({"seed": 7, "bags": ["drive"], "stack": "reference_detector"})
        for row in rows:
            journal.verdict(row)
    write_result(run / "summary.json", summarise((row.as_plain() for row in rows), RELATIONS))
    (run / "evidence").mkdir()
    for bundle, more in ((60, {}), (61, picture())):
        np.savez(evidence_file(run, Pair(0, bundle, "noise")), **arrays(**more))
    (run / "evidence" / "0_60_noise_0.mcap").write_bytes(b"")
    head = "stretch,stamp_ns,changed,source_answered,followup_answered,source_speed_mps,followup_speed_mps\n"
    table = "".join(f"{b // 5},{10**9 * b},1,1,1,{b},{b + 0.5 if b != 3 else ''}\n" for b in range(10))
    (run / "evidence" / "0_-_steer_0.csv").write_text(head + table)
    write_report(run)
    return run


def picture() -> dict[str, Any]:
    """Left a dark, right a bright picture, and a box in the second."""
    shades = {"source_image": 30, "followup_image": 220}
    jpegs = {
        name: cv2.imencode(".jpg", np.full((60, 100, 3), shade, np.uint8))[1].ravel() for name, shade in shades.items()
    }
    return {
        **jpegs,
        "followup_px": np.array([[10.0, 10.0, 40.0, 40.0]]),
        "source_px": np.array([[60.0, 10.0, 90.0, 40.0]]),
    }


def test_columns_hold_what_the_rows_hold(made: Path) -> None:
    rows = pair_rows(row.as_plain() for row in made_verdicts())
    violated = sorted((row for row in rows if row.outcome == "VIOLATED"), key=worst_row)
    told = unpacked(packed_pairs(made, rows, violated))
    assert told["count"] == len(rows) and len(violated) == 5
    for i, row in enumerate(rows):
        for name in ("relation", "draw", "judged_for", "outcome", "unit", "reason", "object_class"):
            assert told["texts"][name][told[name][i]] == getattr(row, name)
        for name in ("measured", "bound", "margin", "range_m"):
            value = getattr(row, name)
            assert np.isnan(told[name][i]) if value is None else told[name][i] == value
        assert (told["episode"][i], told["lost"][i], told["gained"][i]) == (row.episode, row.lost, row.gained)
        assert told["bundle"][i] == (-1 if row.bundle is None else row.bundle)
        assert told["arms"][told["arm"][i]] == ("control" if "@" in row.draw else "relation")
        assert told["worst"][i] == (violated.index(row) if row in violated else -1)
        assert told["evidence"][i] == (row.pair == "0/60/noise/0")
        said = (told["source"][i], told["followup"][i])
        assert np.isnan(said).all() if row.commanded is None else said == row.commanded


# --- in a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        opened.ask("Network.enable")
        # A picture of a part is taken from a larger window: the page must not become wider by that.
        opened.ask("Emulation.setScrollbarsHidden", hidden=True)
        yield opened


def until(page: Browser, true: str) -> None:
    """Wait as many frames as it takes."""
    page.value(
        "new Promise((done, fail) => { const begun = performance.now(), look = () => "
        f"({true}) ? done(1) : performance.now() - begun > 60000 ? fail(Error({json.dumps(true)}))"
        " : requestAnimationFrame(look); look(); })"
    )


def opened(page: Browser, run: Path, pair: str = "") -> Browser:
    page.open("about:blank")
    page.open((run / "report.html").as_uri() + (pair and f"#pair={pair}"))
    until(page, "document.documentElement.dataset.pairs")
    if pair:
        until(page, f"document.querySelector('#opened').dataset.ready === '{pair}'")
    return page


@pytest.fixture
def page(browser: Browser, made: Path) -> Browser:
    return opened(browser, made)


def complaints(page: Browser) -> list[str]:
    """What is worse than a driver's advice on how to draw quickly."""
    return [told for told in page.troubles if not ('"rendering"' in told and '"warning"' in told)]


def chosen(page: Browser, name: str, value: str, event: str = "change") -> list[str]:
    """Set a filter; return the pairs that are shown then."""
    page.value(
        f"(() => {{ const it = document.querySelector('#explorer [name={name}]'); it.value = '{value}';"
        f" it.dispatchEvent(new Event('{event}')); }})()"
    )
    return listed(page)


def listed(page: Browser) -> list[str]:
    told: list[str] = page.value("[...document.querySelectorAll('.all-pairs td.pair')].map(cell => cell.textContent)")
    return told


def clicked(page: Browser, name: str) -> None:
    page.value(f"document.querySelector({json.dumps(name)}).click()")


COUNT = "document.querySelector('#explorer .count').textContent"
WORST = ["0/61/noise/0", "0/60/noise/0"]


def test_the_worst_come_first_a_page_at_a_time(page: Browser) -> None:
    assert listed(page)[:2] == WORST and len(listed(page)) == 50
    total = len(made_verdicts())
    assert page.value(COUNT) == f"{total} of {total} pairs"
    first = listed(page)
    clicked(page, ".pager .on")
    assert not set(first) & set(listed(page))
    clicked(page, ".pager .last")
    assert len(listed(page)) == total % 50 and page.value("document.querySelector('.pager .on').disabled")
    assert page.value("document.querySelector('[data-no-script]').hidden")


def test_filters_search_and_order(page: Browser) -> None:
    assert len(chosen(page, "outcome", "VIOLATED")) == 5
    assert chosen(page, "judged_for", "noise") == WORST
    assert chosen(page, "far", "20", "input") == ["0/60/noise/0"]
    clicked(page, "#explorer [type=reset]")
    assert len(listed(page)) == 50
    assert chosen(page, "object_class", "pedestrian") == ["0/60/fog/0"]
    clicked(page, "#explorer [type=reset]")
    assert chosen(page, "words", "LOST 30.0", "input") == ["0/61/noise/0"]
    assert chosen(page, "words", "/60/ noise", "input") == ["0/60/noise/0"]
    assert chosen(page, "words", "of nobody", "input") == []
    clicked(page, "#explorer [type=reset]")
    chosen(page, "arm", "1")
    assert page.value(COUNT).startswith("180 of ")
    clicked(page, "#explorer [type=reset]")
    heads = "[data-by=range_m] button"
    clicked(page, heads)
    assert listed(page)[:3] == ["0/60/fog/0", "0/60/noise/0", "0/61/noise/0"]
    clicked(page, heads)
    assert listed(page)[:3] == ["0/61/noise/0", "0/60/noise/0", "0/60/fog/0"]
    assert page.value("document.querySelector('[data-by=range_m]').getAttribute('aria-sort')") == "descending"
    assert complaints(page) == []


def test_a_link_opens_its_pair(page: Browser, made: Path) -> None:
    opened(page, made, "0/60/noise/0")
    shown = " ".join(page.value("document.querySelector('#opened').innerText").split())
    assert "noise, episode 0, frame 60" in shown and "lost <b>car</b> at 6.0" in shown
    assert "measured 3 m bound 4 m margin -1 m lost / gained 1 / 0 class car range 10 m" in shown
    assert f"mt reproduce '{made}' 0/60/noise/0" in shown
    link = "document.querySelector('#opened a[download]')"
    assert page.value(f"{link}.getAttribute('href')") == "evidence/0_60_noise_0.mcap"
    assert page.value("document.querySelector('#opened').getBoundingClientRect().top") == pytest.approx(0, abs=20)
    assert page.value("document.activeElement.closest('#opened') !== null")
    clicked(page, "#opened .after")
    until(page, "document.querySelector('#opened').dataset.ready === '0/-/steer/0'")
    assert page.value("location.hash") == "#pair=0/-/steer/0"
    clicked(page, "#opened .close")
    assert page.value("document.querySelector('#opened').hidden && location.hash === ''")
    page.value("location.hash = '#pair=7/7/nobody/0'")
    until(page, "!document.querySelector('#opened').hidden")
    assert "has no pair '7/7/nobody/0'" in page.value("document.querySelector('#opened').textContent")
    assert complaints(page) == []


def picture_of(page: Browser, name: str) -> bytes:
    """What of the page is seen of an element, once what was asked for is drawn."""
    page.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    box = page.value(
        f"(r => ({{ x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height }}))"
        f"(document.querySelector('{name}').getBoundingClientRect())"
    )
    shot = page.ask("Page.captureScreenshot", clip={**box, "scale": 0.5}, captureBeyondViewport=True)
    return base64.b64decode(shot["data"])


def pixels_of(png: bytes) -> Any:
    return cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)


#: A browser without WebGL, as far as a page can tell.
NO_WEBGL = """
const all = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
  return kind === "webgl" ? null : all.call(this, kind, ...more);
};
"""


@pytest.mark.parametrize("drawn", ["webgl", "plain"])
def test_a_cloud_turns(page: Browser, made: Path, drawn: str) -> None:
    before = page.ask("Page.addScriptToEvaluateOnNewDocument", source=NO_WEBGL if drawn == "plain" else "")
    try:
        opened(page, made, "0/60/noise/0")
    finally:
        page.ask("Page.removeScriptToEvaluateOnNewDocument", identifier=before["identifier"])
    if drawn == "webgl" and not page.value("document.createElement('canvas').getContext('webgl') !== null"):
        pytest.skip("the browser has no WebGL, not even in software")
    assert page.value("document.querySelector('#opened canvas').dataset.drawn") == drawn
    seen = []
    for key in ("0", "ArrowLeft", "+"):
        page.value("document.querySelector('#opened canvas').focus()")
        page.press(key)
        seen.append(picture_of(page, "#opened canvas"))
    assert len(np.unique(pixels_of(seen[0]).reshape(-1, 3), axis=0)) > 20, "points, boxes and region in their colours"
    clicked(page, "#opened input[value=beside]")
    seen.append(picture_of(page, "#opened canvas"))
    assert len(set(seen)) == 4
    clicked(page, "#opened input[value=both]")
    page.press("0")
    again = picture_of(page, "#opened canvas")
    assert cv2.absdiff(pixels_of(again), pixels_of(seen[0])).mean() < 0.1
    legend = page.value("document.querySelector('#opened .swatches').innerText")
    assert "in both (3,000)" in legend and "source only (1,000)" in legend and "follow-up only (70)" in legend
    assert complaints(page) == []


def test_a_slider_uncovers_the_follow_up(page: Browser, made: Path) -> None:
    opened(page, made, "0/61/noise/0")
    until(page, "[...document.querySelectorAll('.stage img')].every(image => image.complete && image.naturalWidth)")
    until(page, "document.querySelectorAll('.stage svg rect').length === 2")

    def shades(value: int) -> tuple[float, float]:
        page.value(
            "(() => { const it = document.querySelector('#opened .slider input');"
            f" it.value = {value}; it.dispatchEvent(new Event('input')); }})()"
        )
        grey = pixels_of(picture_of(page, "#opened .stage")).mean(axis=2)
        wide = grey.shape[1]
        return float(np.median(grey[:, : wide // 4])), float(np.median(grey[:, -wide // 4 :]))

    assert shades(50) == pytest.approx((30, 220), abs=8)
    assert shades(0) == pytest.approx((220, 220), abs=8) and shades(100) == pytest.approx((30, 30), abs=8)
    clicked(page, "#opened .views > label input")
    assert page.value("getComputedStyle(document.querySelector('.stage .over')).display") == "none"
    assert complaints(page) == []


def test_commands_are_read_off_over_time(page: Browser, made: Path) -> None:
    opened(page, made, "0/5/steer/0")
    assert "0.5 expected, 0.8 in the follow-up" in page.value("document.querySelector('#opened dl').innerText")
    titles = page.value("[...document.querySelectorAll('.chart figcaption')].map(c => c.textContent)")
    assert [title.split(")")[0] for title in titles] == ["commanded (rad", "measured (rad"]
    read = "document.querySelector('.chart output').textContent"
    until(page, f"{read} !== ''")
    assert page.value(read) == "frame 5: source, as expected 0.5, follow-up 0.8"
    page.value("document.querySelector('.chart').focus()")
    page.press("ArrowLeft")
    assert page.value(read) == "frame 4: source, as expected 0.4, follow-up 0.41"
    opened(page, made, "0/-/steer/0")
    until(page, f"{read} !== ''")
    page.value("document.querySelector('.chart').focus()")
    for _ in range(3):
        page.press("ArrowRight")
    assert page.value(read) == "time (s) 3: source 3, follow-up none"
    assert page.value("document.querySelectorAll('.chart .band').length") == 1 and complaints(page) == []


def test_nothing_is_fetched_but_the_page(page: Browser, made: Path) -> None:
    opened(page, made, "0/61/noise/0")
    page.value("0")
    asked = [e["params"]["request"]["url"] for e in page.events if e.get("method") == "Network.requestWillBeSent"]
    assert asked and all(url.startswith(("data:", (made / "report.html").as_uri())) for url in asked)


def test_without_a_script_the_worst_are_there_and_a_phone_shows_all(page: Browser, made: Path) -> None:
    fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    try:
        page.ask("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
        opened(page, made, "0/60/noise/0")
        assert page.value(fits)
        page.ask("Emulation.setScriptExecutionDisabled", value=True)
        page.open("about:blank")
        page.open((made / "report.html").as_uri() + "#pair=0/61/noise/0")
        assert page.value(fits) and page.value("document.querySelector('#explorer').hidden")
        assert not page.value("document.querySelector('[data-no-script]').hidden")
        assert page.value("document.querySelector(':target').dataset.pair") == "0/61/noise/0"
    finally:
        page.ask("Emulation.setScriptExecutionDisabled", value=False)
        page.ask("Emulation.setDeviceMetricsOverride", width=1200, height=900, deviceScaleFactor=1, mobile=False)


# --- evidence


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with violated pairs of an obstacle detector whose buffer noise fills."""
    base = tmp_path_factory.mktemp("judged")
    in_process(sparse_drive(base / "bag", 2), base / "out", "noise_outside_roi_1000", faults=(FAULT,))
    return base / "out"


def violated_pair(run: Path) -> Pair:
    (first, *_) = sorted((run / "evidence").glob("*.npz"))
    episode, bundle, rest = first.stem.split("_", 2)
    relation, draw = rest.rsplit("_", 1)
    return Pair(int(episode), int(bundle), relation, draw)


def test_a_picture_from_evidence_is_the_one_that_the_run_took(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, pair = Path(shutil.copytree(judged, tmp_path / "run")), violated_pair(judged)
    evidence_file(run, pair).unlink()
    assert main(["report", str(run), "--pair", str(pair)]) == 0
    was, now = load_view(evidence_file(judged, pair)), load_view(evidence_file(run, pair))
    for name in set(SHAPES) - {"added_xyz"}:  # who was added is seen by what the source has not
        before, after = getattr(was, name), getattr(now, name)
        assert before.shape == after.shape, name
        assert (before == after).all() if before.dtype.kind in "US" else np.allclose(before, after), name
    assert len(now.source_boxes) and len(now.region) and len(now.lost_at)
    assert main(["report", str(run), "--pair", "0/0/identity/7"]) == 2
    assert "pair '0/0/identity/7' cannot be shown, it has no evidence" in capsys.readouterr().err


def test_evidence_says_of_every_topic_what_it_holds(judged: Path) -> None:
    """Foxglove and ``ros2 bag play`` know no more than the file says."""
    path = evidence_file(judged, violated_pair(judged)).with_suffix(".mcap")
    whole = path.read_bytes()
    assert (
        whole.startswith(b"\x89MCAP0\r\n")
        and whole.endswith(b"\x89MCAP0\r\n")
        and b"\x04\x00\x00\x00ros2" in whole[:32]
    )
    with AnyReader([path]) as reader:
        assert len(reader.connections) == len({c.topic for c in reader.connections}) > 4
        for connection, _, data in reader.messages():
            assert connection.msgdef.data, connection.topic
            assert reader.deserialize(data, connection.msgtype) is not None
        assert sum(c.msgcount for c in reader.connections) == reader.message_count


# --- a long run


def long_journal(run: Path, pairs: int) -> int:
    """Write the journal of ten relations in a hundred thousand pairs, one in thirty violated; return how many."""
    names, rng = [f"relation_{i}" for i in range(10)], np.random.default_rng(0)
    places = rng.uniform(2, 40, (pairs, 2)).round(3).tolist()
    strikes = (rng.random(pairs) < 0.1).tolist()
    head = {"schema": 1, "type": "condition", "seed": 0, "bags": [f"drive_{e}" for e in range(10)], "relations": names}
    lines = [seal(head)]
    for frame in range(pairs // (3 * len(names))):
        for name in names:
            for relation, draw in ((name, "0"), ("identity", f"0@{name}"), ("points_permuted", f"0@{name}")):
                lost, (x, y) = int(relation == name and strikes[len(lines)]), places[len(lines)]
                line = {"schema": 1, "type": "verdict", "pair": f"{frame % 10}/{frame // 10}/{relation}/{draw}"}
                line |= {"relation": relation, "stamp_ns": 10**18 + frame, "outcome": ["HOLDS", "VIOLATED"][lost]}
                line |= {
                    "measured": 7 - lost,
                    "bound": 7,
                    "margin": -lost,
                    "unit": "obstacles",
                    "lost": lost,
                    "gained": 0,
                }
                line |= {"reason": f"lost car at ({x}, {y}) m" * lost}
                line["detail"] = {"counts": {"all": [7, 7 - lost]}, "lost_at": [[x, y, "car"]] * lost}
                body = json.dumps(line)
                lines.append(f'{body[:-1]}, "crc32": "{zlib.crc32(body.encode()):08x}"}}')
    run.mkdir()
    (run / "result.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines) - 1


def test_a_hundred_thousand_pairs_are_reported_and_shown_quickly(tmp_path: Path, browser: Browser) -> None:
    run = tmp_path / "run"
    written = long_journal(run, 100_000)
    infos = [
        {"id": f"relation_{i}", "kind": "expected", "min_decided": 20, "because": "", "requirement": []}
        for i in range(10)
    ]
    write_result(run / "run.json", {"request": {}, "relations": infos, "directory": str(tmp_path)})
    # Summed up from the journal, too, as at the end of a run; one thread, so that its seconds of a processor are those
    # that it takes when nothing else runs. What the browser takes is the least of a few times: others may use this
    # machine.
    told = subprocess.run(
        [sys.executable, "-c", _REPORT, str(run)], capture_output=True, text=True, check=True, timeout=200
    )
    seconds, bytes_of_memory = map(float, told.stdout.split()[-2:])
    assert seconds < 20.0 and bytes_of_memory < 1 << 30
    assert (run / "report.html").stat().st_size < 5 << 20 and read_result(run / "summary.json")["offered"] == written
    assert min(opening_s(browser, run) for _ in range(3)) < 5.0
    assert browser.value(COUNT) == f"{written:,} of {written:,} pairs"
    took = "(() => { const begun = performance.now(); const it = document.querySelector('#explorer [name=words]');"
    took += " it.value = 'car 12.5'; it.dispatchEvent(new Event('input')); return performance.now() - begun; })()"
    assert min(browser.value(took) for _ in range(3)) < 1000.0 and 0 < len(listed(browser)) <= 50


def opening_s(browser: Browser, run: Path) -> float:
    begun_s = time.monotonic()
    opened(browser, run)
    return time.monotonic() - begun_s


_REPORT = """
import resource, sys
from mt_nodes.cli.main import main
assert main(["report", sys.argv[1]]) == 0
used = resource.getrusage(resource.RUSAGE_SELF)
# Not ru_maxrss: that begins with what the process had that started this one.
(peak,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM:")]
print(used.ru_utime + used.ru_stime, int(peak.split()[1]) * 1024)
"""
