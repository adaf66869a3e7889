# SPDX-License-Identifier: Apache-2.0
"""Drives in the report: what is read back, where everybody is in the picture, what plays it; and in words."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from browser import Browser
from hypothesis import given
from hypothesis import strategies as st
from made_drives import box, crossing, made_run, pedestrian, setting, with_faults

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.cli.main import main
from mt_nodes.data.verdict import Judgement, Outcome, Pair, Verdict
from mt_nodes.engine.journal import Journal
from mt_nodes.engine.recorded_drives import RecordedDrives, episode_lines, load_recorded_drives
from mt_nodes.engine.run_record import write_record
from mt_nodes.relations.world_changes.base import Setting, WorldEffects
from mt_nodes.relations.world_changes.scenario_carry import Carry
from mt_nodes.report.episode_svg import from_above, path, plots, seconds
from mt_nodes.report.episode_view import PLOTTED, DrawnBody, EpisodeView, packed
from mt_nodes.report.episode_words import in_words
from mt_nodes.report.html import ALL, write_report
from mt_nodes.report.scripts import script_of
from mt_nodes.runs.loop.episode_conductor import execute, in_process_arms
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.drive.driven import ScenarioTrace
from mt_nodes.world.drive.scenario import Actor, Person, Pose
from mt_nodes.world.drive.signals import colour_at
from mt_nodes.world.drive.trace import Collision, Trace
from mt_nodes.world.drive.trace_file import save_trace

CHILD, MIRRORED, MOVED = "adult_becomes_child_collisions", "world_mirrored_same_trace", "world_moved_same_trace"
VIOLATED = Pair(0, None, CHILD)
WALKER = replace(crossing(50.0), person=Person(age_years=30.0, skin_tone=3), size_m=(0.5, 0.6, 1.8))
LIGHTS = {"walk": (("red", 4.0), ("yellow", 1.5), ("green", 2.0))}
SCENE = setting(WALKER, duration_s=7.0, obstacles=(box(30.0, 6.0),), signals=LIGHTS)
# Beside the middle of its lane the ego has to steer.
ASIDE = replace(SCENE.scenario.ego, start=replace(SCENE.scenario.ego.start, y_m=0.5))
SCENE = replace(SCENE, scenario=replace(SCENE.scenario, ego=ASIDE))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a planner that takes children for litter."""
    out = tmp_path_factory.mktemp("drives") / "run"
    stack = with_faults(load_stack("reference_planner"), "low_is_litter")
    run = made_run(out, [SCENE], (CHILD, MIRRORED, MOVED), stack)
    write_record(run.out, run.request, run.suite.all, run.stack, {})
    execute(run, lambda ending: in_process_arms(run, ending), lambda line: None, lambda verdicts: None)
    return out


@pytest.fixture
def own(whole: Path, tmp_path: Path) -> Path:
    """The same run, to be damaged."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


def kept_of(run: Path, relation: str) -> RecordedDrives:
    pair = Pair(0, None, relation)
    return load_recorded_drives(run, episode_lines(run, [pair])[pair])


def driven(scene: Setting, ego: Any, *hits: Collision) -> ScenarioTrace:
    """A drive without a world: the ego's numbers as given, all others standing."""
    rows: Any = np.asarray(ego)
    actors = scene.scenario.actors
    stand = np.array([(a.start.x_m, a.start.y_m, a.start.yaw_rad, 0.0) for a in actors]).reshape(-1, 4)
    trace = Trace(
        "made",
        np.asarray(0.1 * np.arange(len(rows)), dtype=np.float64),
        rows,
        np.repeat(stand[None], len(rows), axis=0),
        tuple(actor.name for actor in actors),
        np.zeros((len(rows), 3)),
        np.ones(len(rows), dtype=bool),
        hits,
        "time",
    )
    return ScenarioTrace(trace, scene.scenario)


def straight(rows: int, mps: float = 10.0, steering: float = 0.0) -> Any:
    """An ego that goes east from where the scenario has it."""
    time_s = 0.1 * np.arange(rows)
    still = np.zeros(rows)
    return np.column_stack([20.0 + mps * time_s, still, still, still + mps, still, still + steering])


def pair_of(scene: Setting, *drives: ScenarioTrace, **effects: Any) -> RecordedDrives:
    before, after = drives
    return RecordedDrives(
        (scene, replace(scene, scenario=after.scenario)), (before, after), WorldEffects(**effects), ()
    )


# --- what is read back


def test_both_worlds_are_made_again_from_the_ledger(whole: Path) -> None:
    kept = kept_of(whole, CHILD)
    assert kept.settings[0].scenario == SCENE.scenario
    (walker,) = kept.settings[1].scenario.actors
    assert walker.kind == "child" and walker.person == WALKER.person
    assert kept.changes[0][0] == "actor_kind_changed" and kept.effects.changed == ("crosser",)
    moved = kept_of(whole, MOVED)
    (line,) = episode_lines(whole, [Pair(0, None, MOVED, "0@whoever")]).values()
    assert moved.effects.as_plain() == line["effects"]
    start = moved.settings[1].scenario.ego.start
    assert moved.drives[1].trace.ego[0, :3] == pytest.approx((start.x_m, start.y_m, start.yaw_rad))
    assert len(episode_lines(whole)) == 5


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda run, trace: trace.unlink(), "No such file"),
        (lambda run, trace: trace.write_bytes(b"PK\x03\x04 torn"), "cannot be read"),
        (lambda run, trace: save_trace(trace, driven(setting(), straight(5)).trace), r"got actors \(\), expected"),
        (lambda run, trace: save_trace(trace, driven(SCENE, straight(0).reshape(0, 6)).trace), "before its first"),
    ],
)
def test_what_cannot_be_told_is_said_and_costs_nothing_else(own: Path, damage: Any, told: str) -> None:
    damage(own, own / "episodes" / f"0.{CHILD}.0.npz")
    with pytest.raises(InfrastructureError, match=told):
        kept_of(own, CHILD)
    page = write_report(own, [f"0/-/{MIRRORED}/0"]).read_text("utf-8")
    assert page.count("No drive to show: ") == 1 and page.count('<svg class="top"') == 1


def test_a_change_that_is_gone_is_named(whole: Path) -> None:
    pair = Pair(0, None, MOVED)
    line = episode_lines(whole, [pair])[pair]
    with pytest.raises(InfrastructureError, match="no scenario_change 'world_turned'"):
        load_recorded_drives(whole, {**line, "changes": [{"name": "world_turned", "params": {}}]})


def test_a_violated_pair_that_nobody_drove_has_a_note(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (own / "ledger.jsonl").read_text().splitlines(keepends=True)
    (own / "ledger.jsonl").write_text("".join(line for line in lines if CHILD not in line))
    assert "No drive to show: nothing was driven" in write_report(own).read_text("utf-8")
    assert main(["show", str(own), str(VIOLATED)]) == 2
    assert f"pair '{VIOLATED}' drove nothing" in capsys.readouterr().err


# --- where everybody is


@pytest.mark.parametrize("relation", [MIRRORED, MOVED])
def test_a_carried_source_lies_where_its_followup_is(whole: Path, relation: str) -> None:
    view = EpisodeView.of(kept_of(whole, relation))
    source, followup = view.egos
    assert source.rows[0] == pytest.approx((0.0, 0.0, 0.0), abs=1e-9)
    assert np.abs(source.rows - followup.rows).max() < 0.02
    assert [body.arms for body in view.bodies] == [(0, 1), (0, 1)]
    assert all(view.programmes[light.name] for light in view.road.signals)
    steering = view.plotted[1]
    assert np.abs(steering[0]).max() > 0.1 and np.abs(steering[0] - steering[1]).max() < 0.01


def test_who_differs_is_there_twice_and_who_does_not_once(whole: Path) -> None:
    view = EpisodeView.of(kept_of(whole, CHILD))
    assert {(body.name, body.look, body.arms) for body in view.bodies} == {
        ("crosser, adult", "person", (0,)),
        ("crosser, child", "person", (1,)),
        ("carton, box", "thing", (0, 1)),
    }
    assert [hit.arm for hit in view.hits] == [1]
    # By the time of the contact the front of the ego is there.
    hit = view.hits[0]
    ahead = view.egos[1].rows[-1, 0] + SCENE.scenario.ego.vehicle.front_m
    assert ahead - 0.5 < hit.x_m < ahead + 1.5 and abs(hit.y_m) < 1.5


def test_who_is_alike_goes_on_as_in_the_longer_drive() -> None:
    scene = setting(pedestrian())
    for rows in ((5, 9), (9, 5)):
        view = EpisodeView.of(pair_of(scene, *(driven(scene, straight(n)) for n in rows)))
        (body,) = view.bodies
        assert len(body.rows) == 9 and body.arms[-1] == rows.index(9) and not body.moves
    for other in (setting(pedestrian(59.9)), setting(pedestrian(size_m=(0.9, 0.9, 1.8)))):
        view = EpisodeView.of(pair_of(scene, driven(scene, straight(5)), driven(other, straight(5))))
        assert sorted(body.arms for body in view.bodies) == [(0,), (1,)]


def test_the_window_holds_the_ways_and_who_is_near() -> None:
    scene = setting(pedestrian(60.0, 30.0), Actor("cow", "cow", Pose(300.0, 0.0)))
    x0, y0, x1, y1 = EpisodeView.of(pair_of(scene, *[driven(scene, straight(51))] * 2)).window
    assert (x0, y0) == pytest.approx((-10.0, -10.0)) and 60.0 < x1 < 70.0 and 30.0 < y1 < 35.0
    still = EpisodeView.of(pair_of(setting(), *[driven(setting(), straight(3, 0.0))] * 2)).window
    assert still == pytest.approx((-20.0, -10.0, 20.0, 10.0))
    far = EpisodeView.of(pair_of(setting(), *[driven(setting(), straight(101))] * 2)).window
    assert far == pytest.approx((-10.0, -24.0, 110.0, 24.0))


@given(st.lists(st.floats(-1e4, 1e4), max_size=40))
def test_sums_of_sums_of_what_is_packed_are_the_values(values: list[float]) -> None:
    back = np.cumsum(np.cumsum(packed(values, 0.01)))
    assert np.array_equal(back, np.round(np.array(values) / 0.01).astype(int))


def test_what_the_script_is_told_is_the_trace() -> None:
    scene = setting(pedestrian())
    hit = Collision(0.82, "walker", "adult", 30.0, 0.2, "front", 10.0, 9.5)
    ego = np.column_stack([straight(9)[:, :2], np.linspace(3.0, 3.4, 9), straight(9)[:, 3:]])
    data = EpisodeView.of(pair_of(scene, driven(scene, ego), driven(scene, straight(5), hit))).script_data()
    assert data["end"] == 820 and data["hits"] == [[1, 820]]
    source, followup, walker = data["bodies"]
    assert walker is None and (source["a"], followup["a"]) == (0, 1)
    assert np.cumsum(np.cumsum(source["x"])).tolist() == [0, 100, 200, 300, 400, 500, 600, 700, 800]
    # Through half a turn without a jump, clockwise as pictures count.
    assert np.cumsum(np.cumsum(source["r"])) == pytest.approx(-np.degrees(ego[:, 2]) * 10.0, abs=0.51)
    assert np.cumsum(np.cumsum(data["arms"][1]["n"][0])).tolist() == [1000] * 5
    assert len(data["lights"]) == len(scene.road.signals)


# --- what is drawn


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def of_class(svg: ET.Element, name: str) -> list[ET.Element]:
    return [e for e in svg.iter() if name in e.get("class", "").split()]


def test_the_view_from_above_shows_all_there_is(whole: Path) -> None:
    view = EpisodeView.of(kept_of(whole, CHILD))
    svg = parsed(from_above(view))
    x0, y0, x1, y1 = view.window
    assert [int(v) for v in svg.get("viewBox", "").split()] == pytest.approx(
        [100 * x0, -100 * y1, 100 * (x1 - x0), 100 * (y1 - y0)], abs=0.51
    )
    for layer in ("surface", "paint", "kerb", "house"):
        assert len(of_class(svg, layer)) == 1
    colours = {str(light.findtext("title")).partition(":")[0]: light.get("class") for light in of_class(svg, "light")}
    assert colours == {n: f"light {colour_at(p, view.end_s)}" for n, p in view.programmes.items()}
    assert [e.get("data-body") for e in of_class(svg, "body")] == ["2", "3", "4", "0", "1"]
    assert [e.findtext("title") for e in of_class(svg, "followup") if "person" in e.get("class", "")][-1:] == [
        "crosser, child (follow-up only)"
    ]
    (hit,) = of_class(svg, "hit")
    assert hit.findtext("text") == f"follow-up: {view.hits[0].collision.closing_mps:.1f} m/s, crosser"
    assert len(of_class(svg, "ghost")) >= 10 and "nan" not in from_above(view).lower()


def test_bodies_stand_where_they_end_and_look_ahead() -> None:
    scene = setting(pedestrian(40.0, 2.0))
    ego = np.column_stack([straight(11)[:, :2], np.linspace(0.0, 0.5, 11), straight(11)[:, 3:]])
    svg = parsed(from_above(EpisodeView.of(pair_of(scene, driven(scene, ego), driven(scene, straight(5))))))
    source, followup = of_class(svg, "ego")[-2:]
    assert source.get("transform") == "translate(1000 0) rotate(-28.6)"
    assert followup.get("transform") == "translate(400 0) rotate(0.0)"
    # The outline of the ego from its rear axle, and the angle that points to its front.
    assert str(source.get("d")).startswith("M380 92l0 -184 -490 0 0 184zM233 92l147 -92 -147 -92")
    (walker,) = of_class(svg, "person")
    assert walker.get("transform") == "translate(4000 -200) rotate(0.0)"


def test_paths_are_in_whole_centimetres_downwards() -> None:
    assert path([(1.0, 2.0), (1.0, 2.004), (3.5, -1.0)]) == "M100 -200l250 300z"
    assert path([(0.0, 0.0)], closed=False) == "M0 0"


def curve(svg: str, arm: str) -> Any:
    (line,) = [e for e in of_class(parsed(svg), arm) if "curve" in str(e.get("class"))]
    begin, _, steps = str(line.get("d"))[1:].partition("l")
    rows = [begin.split(), *np.array(steps.split(), dtype=int).reshape(-1, 2).tolist()]
    return np.cumsum(np.array(rows, dtype=int), axis=0)


def test_plots_show_both_egos_over_time() -> None:
    scene, ego = setting(), straight(21)
    ego[:, 3] = np.linspace(10.0, 4.0, 21)
    hit = Collision(1.0, "walker", "adult", 30.0, 0.2, "front", 10.0, 9.5)
    view = EpisodeView.of(pair_of(scene, driven(scene, ego), driven(scene, straight(11, 10.0, -0.05), hit)))
    speed, steering, acceleration = plots(view)
    assert [plot.title for plot in plots(view)] == [title for title, *_ in PLOTTED]
    assert (speed.low, speed.high) == ("0.0", "10.6") and (acceleration.low, acceleration.high) == ("-0.5", "0.5")
    high_px = 400.0 / 10.6
    source = curve(speed.svg, "source")
    assert source[0] == pytest.approx((0, 0.6 * high_px), abs=1) and source[-1, 0] == 2000
    assert source[-1, 1] == pytest.approx(6.6 * high_px, abs=1)
    assert curve(speed.svg, "followup")[-1, 0] == 1000
    low = float(steering.low)
    assert low == pytest.approx(np.degrees(-0.05) * 1.06, abs=0.06) and float(steering.high) == 0.0
    (struck,) = of_class(parsed(speed.svg), "struck")
    assert struck.get("d") == "M1000 0V400"
    assert seconds(view) == [(0.0, 0), (50.0, 1), (100.0, 2)]


def test_a_mirrored_source_is_plotted_as_it_is_expected() -> None:
    scene = setting()
    drives = driven(scene, straight(5, steering=0.1)), driven(scene, straight(5, steering=-0.1))
    view = EpisodeView.of(pair_of(scene, *drives, carried=Carry.mirror(scene.scenario.ego.start)))
    assert np.array_equal(*view.plotted[1]) and view.plotted[1][0][0] == pytest.approx(np.degrees(-0.1))


def test_a_drive_of_one_instant_can_be_shown() -> None:
    scene = setting()
    kept = pair_of(scene, driven(scene, straight(1)), driven(scene, straight(1)))
    view = EpisodeView.of(kept)
    assert view.script_data()["bodies"] == [None, None] and seconds(view) == []
    assert "nan" not in (from_above(view) + "".join(plot.svg for plot in plots(view))).lower()
    assert in_words(kept)[1].startswith("source: ended by time after 0.0 s and 0.0 m; 10.0 to 10.0 m/s; no collision")


def test_names_of_users_are_text() -> None:
    name = '</title><b a="1">&'
    scene = setting(pedestrian(30.0, name=name))
    hit = Collision(0.3, name, "adult", 30.0, 0.2, "front", 10.0, 9.5)
    view = EpisodeView.of(pair_of(scene, driven(scene, straight(9)), driven(scene, straight(9), hit)))
    titles = [e.text for e in parsed(from_above(view)).iter("title")]
    assert f"{name}, adult" in titles


# --- the page


class Page(HTMLParser):
    """Sorts the scripts of a page, and collects what it would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.data: list[Any] = []
        self.links: list[str] = []
        self.policy, self._kind = "", ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        fetched = [str(value) for key, value in attrs if key in ("src", "href", "data", "action")]
        self.links += [link for link in fetched if not link.startswith("#")]
        self._kind = (told.get("type") or "code") if tag == "script" else ""
        self.policy = str(told["content"]) if told.get("http-equiv") else self.policy

    def handle_data(self, data: str) -> None:
        if self._kind == "code":
            self.scripts.append(data)
        elif self._kind:
            self.data.append(json.loads(data))
        self._kind = ""


def test_violated_drives_are_shown_without_being_asked(whole: Path) -> None:
    text = write_report(whole).read_text("utf-8")
    page = Page(text)
    evidence = f"evidence/{str(VIOLATED).replace('/', '_')}.mcap"
    assert page.links == [evidence] and (whole / evidence).is_file()
    assert not re.search(r"url\(|@import|https?://", text)
    assert len(page.data) == 1 and len(page.scripts) == 2
    plays, pairs = (base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in page.scripts)
    assert (
        page.policy.endswith(f"script-src 'sha256-{plays}' 'sha256-{pairs}'")
        and page.scripts[0] == script_of("episode.js").text
    )
    assert "measured 1 collisions, bound 0" in text and f"0/-/{CHILD}/0" in text
    assert text.count('class="controls" hidden') == 1 and "more violated drives" not in text
    assert "No picture" not in text


def test_what_to_type_drives_the_same_again(whole: Path, own: Path) -> None:
    text = html.unescape(write_report(whole).read_text("utf-8"))
    assert text.count(f"mt reproduce {whole} {VIOLATED}<") == 2 and "mt scenario made" not in text
    moved = own.rename(own.with_name("my run"))
    assert f"mt reproduce '{moved}' {VIOLATED}<" in html.unescape(write_report(moved).read_text("utf-8"))


def test_others_are_shown_when_asked_for(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = f"0/-/{MOVED}/0"
    assert main(["report", str(whole), "--drive", wanted, "--drive", str(VIOLATED)]) == 0
    assert len(Page((whole / "report.html").read_text("utf-8")).data) == 2
    assert main(["report", str(whole), "--drive", "7/-/nobody/0"]) == 2
    assert "no verdict of pair '7/-/nobody/0'" in capsys.readouterr().err


def test_all_are_those_that_were_judged(own: Path) -> None:
    nothing = Judgement(Outcome.NOT_APPLICABLE, reason="nobody there")
    with Journal(own / "result.jsonl") as journal:
        journal.verdict(Verdict(Pair(1, None, CHILD), 0, nothing))
    text = write_report(own, [ALL]).read_text("utf-8")
    assert len(Page(text).data) == 9 and "No drive to show" not in text and "mt scenario made" not in text
    assert text.count("mt reproduce") == 10


def test_of_many_the_worst_are_shown_and_the_rest_is_counted(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mt_nodes.report.episodes.SHOWN", 0)
    text = write_report(whole).read_text("utf-8")
    assert Page(text).data == [] and len(Page(text).scripts) == 1 and script_of("episode.js").text not in text
    assert "1 more violated drives" in write_report(whole, [f"0/-/{MOVED}/0"]).read_text("utf-8")


def test_one_drive_of_each_relation_is_open_the_worst_above_all_and_nothing_is_an_obstacle(whole: Path) -> None:
    text = write_report(whole, [ALL]).read_text("utf-8")
    begins = [text.index(part) for part in ("<h1>", '<svg class="top"', 'class="next"', 'id="relations"', "<table")]
    assert begins == sorted(begins) and text.count('class="episode front"') == 1
    folded = re.findall(r'<details class="drive fold"( open)?><summary><h3>(\w+),', text)
    unfolded = [relation for is_open, relation in folded if is_open]
    assert len(folded) == 8 and len(unfolded) == len(set(unfolded)) and CHILD not in unfolded
    words = re.sub(r"<(script|style|template|svg)\b.*?</\1>", "", text, flags=re.DOTALL)
    assert "obstacles" not in words and "lost / gained" not in words


def test_the_same_run_makes_the_same_page(whole: Path) -> None:
    assert write_report(whole, [ALL]).read_bytes() == write_report(whole, [ALL]).read_bytes()


# --- in a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, whole: Path) -> Browser:
    browser.open(write_report(whole).as_uri())
    browser.value("document.querySelector('.episode').focus()")
    return browser


def transform(page: Browser, number: int) -> list[float]:
    told = page.value(f"document.querySelector('[data-body=\"{number}\"]').getAttribute('transform')")
    return [float(v) for v in re.findall(r"-?[\d.]+", told)]


def moved_to(page: Browser, time_s: float) -> None:
    slider = "const s = document.querySelector('.when'); s.value = %g; s.dispatchEvent(new Event('input'))"
    page.value(f"(() => {{ {slider % (1000 * time_s)} }})()")


def test_the_slider_takes_everybody_to_where_they_were(page: Browser, whole: Path) -> None:
    view = EpisodeView.of(kept_of(whole, CHILD))
    moved_to(page, 2.06)
    bodies: list[DrawnBody] = [*view.egos, *view.bodies]
    for number, body in enumerate(bodies):
        x, y, yaw = body.rows[-1] if not body.moves else 0.4 * body.rows[20] + 0.6 * body.rows[21]
        assert transform(page, number) == pytest.approx([100 * x, -100 * y, -np.degrees(yaw)], abs=1.1)
    assert page.value("document.querySelector('.clock').textContent") == "2.1 s"
    speed = page.value("document.querySelector('[data-now=\"1 0\"]').textContent")
    assert float(speed) == pytest.approx(view.plotted[0][1][20:22] @ (0.4, 0.6), abs=0.06)
    shown = "getComputedStyle(document.querySelector('.hit')).display"
    assert page.value(shown) == "none"
    moved_to(page, view.hits[0].collision.time_s + 0.02)
    assert page.value(shown) != "none" and page.troubles == []


def test_lights_shine_as_they_did(page: Browser, whole: Path) -> None:
    view = EpisodeView.of(kept_of(whole, CHILD))
    shining = "[...document.querySelectorAll('.light')].map(light => light.getAttribute('class'))"
    for time_s in (1.0, 5.55, 5.0, 3.99):
        moved_to(page, time_s)
        colours = [colour_at(view.programmes[light.name], time_s) for light in view.road.signals]
        assert page.value(shining) == [f"light {colour}" for colour in colours]
    assert view.end_s > 5.55


def test_it_plays_and_is_led_by_keys(page: Browser) -> None:
    clock = "Number(document.querySelector('.when').value)"
    page.press("ArrowRight")
    page.press("ArrowRight")
    assert page.value(clock) == 200
    page.press("ArrowLeft")
    assert page.value(clock) == 100
    for _ in range(2):
        page.press("+")
    assert page.value("document.querySelector('.speed').value") == "4"
    page.press(" ")
    # As many frames as it takes, but no sleep.
    later = "new Promise(done => { const look = () => %s > 600 ? done(true) : requestAnimationFrame(look); look(); })"
    assert page.value(later % clock)
    assert page.value("document.querySelector('.play').getAttribute('aria-label')") == "Pause"
    for pausing in (" ", "ArrowLeft"):
        page.press(pausing)
        assert page.value("document.querySelector('.play').getAttribute('aria-label')") == "Play"
        page.press(" ")
    page.press("End")
    end = page.value("Number(document.querySelector('.when').max)")
    assert end - 10 <= page.value(clock) <= end
    near = page.value("document.querySelector('.top').getAttribute('viewBox')")
    page.press("v")
    assert page.value("document.querySelector('.top').getAttribute('viewBox')") != near
    page.press("Home")
    assert page.value(clock) == 0 and page.troubles == []


def test_a_drive_that_cannot_be_shown_keeps_no_other_from_playing(browser: Browser, own: Path) -> None:
    (own / "episodes" / f"0.{CHILD}.0.npz").unlink()
    browser.open(write_report(own, [ALL]).as_uri())
    moved_to(browser, 1.0)
    assert browser.value("document.querySelectorAll('.controls:not([hidden])').length") == 8
    assert transform(browser, 0)[0] > 500.0 and browser.troubles == []


def test_it_is_legible_on_a_phone_and_without_a_script(browser: Browser, whole: Path) -> None:
    url = write_report(whole).as_uri()
    try:
        browser.ask("Emulation.setScriptExecutionDisabled", value=True)
        browser.ask("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
        browser.open(url)
        size = (
            "(() => { const r = document.querySelector('%s').getBoundingClientRect(); return [r.width, r.height]; })()"
        )
        wide, high = browser.value(size % ".top")
        assert wide > 600 and high > 150
        assert browser.value(size % ".controls") == [0, 0]
        assert browser.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert browser.value(size % ".plot")[0] > 250
    finally:
        browser.ask("Emulation.setScriptExecutionDisabled", value=False)
        browser.ask("Emulation.setDeviceMetricsOverride", width=1200, height=900, deviceScaleFactor=1, mobile=False)


# --- in words


def test_words_tell_both_drives(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(whole), str(VIOLATED)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    kept = kept_of(whole, CHILD)
    hit = kept.drives[1].trace.collisions[0]
    assert f"pair {VIOLATED}: VIOLATED measured 1 collisions, bound 0 the source hits nobody" in told
    assert "change of the world: actor_kind_changed (changed crosser)" in told
    assert f"hit crosser (child) with its front at {hit.time_s:.2f} s, {hit.closing_mps:.1f} m/s, fatal" in told
    again = f"mt reproduce {whole} {VIOLATED}"
    assert told.endswith(again)
    assert main(["show", str(whole), str(VIOLATED), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["drives"], said["command"]) == (in_words(kept), again)


def test_words_measure_what_they_say() -> None:
    scene = setting(pedestrian(20.0, 5.0))
    slow = straight(11, 8.0)
    slow[3, 4] = -2.5
    hit = Collision(1.02, "walker", "adult", 40.0, 0.1, "left", 9.0, 4.25, 0.014)
    before, after = driven(scene, straight(11)), driven(scene, slow, hit)
    silent = replace(after.trace, answered=np.arange(11) > 1)
    names = tuple(f"cow_{i}" for i in range(7))
    kept = replace(
        pair_of(scene, before, ScenarioTrace(silent, after.scenario), added=names), changes=(("herd", {"by_m": 1 / 3}),)
    )
    world, source, followup, apart = in_words(kept)
    assert world == (
        "scenario made on the map straight; change of the world: herd (by_m 0.3333) "
        "(added cow_0, cow_1, cow_2, cow_3, cow_4 and 2 more)"
    )
    # Ego: 3.8 m before its rear axle, 0.925 m to each side; at 30 m, whoever is 20 m ahead of the start at 40 m.
    assert source.startswith(
        "source: ended by time after 1.0 s and 10.0 m; 10.0 to 10.0 m/s; no collision, nearest walker at"
    )
    assert followup == (
        "follow-up: ended by time after 1.0 s and 8.0 m; 8.0 to 8.0 m/s, braked by at most 2.5 m/s² (at 0.3 s), 2 of "
        "11 instants without a command; hit walker (adult) with its left at 1.02 s, 4.2 m/s, fatal 1 %"
    )
    assert apart == "at most 2.00 m apart (at 1.0 s)"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["7/-/nobody/0"], "no verdict of pair"),
        ([str(VIOLATED), "--frame", "3"], "--frame needs a bag"),
        ([str(VIOLATED), "--bag", "my_bag"], "got --bag and PAIR, expected one of them"),
        (["17"], "got pair '17'"),
    ],
)
def test_what_show_is_not_for_is_refused(
    whole: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert main(["show", str(whole), *words]) == UsageError("").exit_code
    assert told in capsys.readouterr().err
