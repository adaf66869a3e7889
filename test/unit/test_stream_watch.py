# SPDX-License-Identifier: Apache-2.0
"""What is counted while a stream is watched: time and events by cell, what answers what, outcomes and exit codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from mt_nodes.base.errors import UsageError
from mt_nodes.data.ego.ego_motion import EgoMotion
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.data.outputs import Control, ImageBoxes, Output
from mt_nodes.engine.summary.watch_sums import CONDITION, ERROR, EVENT, watch_summary
from mt_nodes.engine.summary.watch_words import cell_words
from mt_nodes.relations.stream_checks.base import (
    Breach,
    StreamCheck,
    StreamFinding,
    StreamMemory,
    WatchedInstant,
    nothing_watched,
)
from mt_nodes.runs.live.settings import configured, watch_configured
from mt_nodes.runs.watch.answer_join import AnswerJoin
from mt_nodes.runs.watch.conditions_cells import ConditionCells, interval
from mt_nodes.runs.watch.stream_watch import EventGroups, StreamWatch
from mt_nodes.runs.watch.watch_request import bag_request, named_checks, watch_settings
from mt_nodes.stacks.stack import load_stack

PERIOD_NS = 100_000_000
SPEED = Output(control=Control(None, speed_mps=1.0))


@dataclass(frozen=True)
class Scripted(StreamCheck):
    """Says of each instant what a script says: ranges, and subjects in breach with their ranges."""

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("control",),)
    because: ClassVar[str] = "For tests."
    script: Any = None

    def begin(self) -> StreamMemory:
        return _ScriptMemory(self.script)


class _ScriptMemory(StreamMemory):
    def __init__(self, script: Any) -> None:
        self._script, self.number = script, 0

    def look(self, instant: WatchedInstant) -> StreamFinding:
        ranges, breached = self._script(instant.bundle.index)
        if ranges is None:
            return nothing_watched("nothing there")
        breaches = tuple(Breach(who, at, 1.0, 0.0, "m", f"{who} is wrong", 0) for who, at in breached)
        return StreamFinding(tuple(ranges), breaches)


def moving(index: int, speed_mps: float | None, episode_ns: int = 0) -> Bundle:
    velocity = None if speed_mps is None else np.array([speed_mps, 0.0, 0.0])
    motion = EgoMotion(np.eye(4), velocity, 0.0, "tf", "test")
    return Bundle(0, index, episode_ns + index * PERIOD_NS, motion=motion)


def watched(
    script: Any,
    frames: int,
    bundles: Any = lambda index: moving(index, 10.0),
    tolerated: float | None = None,
    **settings: Any,
) -> tuple[dict[str, Any], list[Any]]:
    """Watch a script; return the summary and the lines of the journal."""
    about = {"name": "scripted", "because": "For tests.", "tolerated_per_h": tolerated}
    lines: list[Any] = [{"type": CONDITION, "stack": "test", "min_frames": 20, "relations": [about]}]
    given = watch_settings(settings, "test")
    watch = StreamWatch({"scripted": Scripted(script)}, given, 2.0, lines.append)
    for index in range(frames):
        watch.take(WatchedInstant(bundles(index), SPEED))
    watch.record()
    return watch_summary(lines), lines


def cells_of(summary: dict[str, Any]) -> dict[str, tuple[float, int]]:
    """Cell in words -> seconds watched and events."""
    rows = summary["watched"]["scripted"]["cells"]
    return {cell_words(row["cell"]): (row["watched_s"], row["events"]) for row in rows}


# --- events


def test_breaches_of_one_subject_in_a_row_are_one_event() -> None:
    groups = EventGroups(1000)
    one = [Breach("a", 5.0, 1.0, 0.0, "m", "", 0)]
    begun = [groups.begun(at, one if at in (0, 500, 1500, 3000) else []) is not None for at in range(0, 3500, 500)]
    assert begun == [True, False, False, False, False, False, True]


def test_what_begins_in_one_frame_is_one_event_the_nearest() -> None:
    groups = EventGroups(1000)
    rows = [Breach(who, at, 1.0, 0.0, "m", "", 0) for who, at in (("a", 9.0), ("b", 4.0), ("c", None))]
    begun = groups.begun(0, rows)
    assert begun is not None and begun.subject == "b"
    assert groups.begun(100, rows) is None
    assert groups.begun(200, [*rows, replace_subject(rows[0], "d")]) is not None


def replace_subject(breach: Breach, subject: str) -> Breach:
    return breach._replace(subject=subject)


def test_a_blinking_track_over_ten_frames_is_one_violation() -> None:
    summary, lines = watched(lambda index: ([5.0], [("7", 5.0)] if 20 <= index < 30 else []), 60)
    found = summary["watched"]["scripted"]
    assert (found["events"], found["breached_frames"]) == (1, 10)
    assert [line["stamp_ns"] for line in lines if line["type"] == EVENT] == [20 * PERIOD_NS]


# --- cells


def test_time_counts_only_where_there_was_something_to_watch() -> None:
    summary, _ = watched(lambda index: ([5.0] if index % 2 else None, []), 41)
    found = summary["watched"]["scripted"]
    assert (found["frames"], found["watched_s"]) == (20, 2.0) and found["not_watched"] == {"nothing there": 21}


def test_cells_keep_apart_what_differs_and_what_is_unknown() -> None:
    def speed(index: int) -> Bundle:
        return moving(index, (0.0, 10.0, None)[index // 20])

    def script(index: int) -> Any:
        return [5.0, 15.0], [("a", 15.0)] if index == 30 else []

    cells = cells_of(watched(script, 60, speed, weather="rain")[0])
    assert cells["everywhere"] == (5.9, 1)
    assert cells["weather rain"] == (5.9, 1)
    assert cells["speed 0-0.5 m/s"] == (1.9, 0) and cells["speed 8.4-14 m/s"] == (2.0, 1)
    assert cells["range 0-10 m"] == (5.9, 0) and cells["range 10-20 m"] == (5.9, 1)
    # Light, road, and the speed of the last third are not known: cells of their own, never merged with known ones.
    assert cells["light unknown"] == cells["road unknown"] == (5.9, 1) and cells["speed unknown"] == (2.0, 0)
    assert cells["weather rain, light unknown, road unknown, speed 8.4-14 m/s, range 10-20 m"] == (2.0, 1)


@pytest.mark.parametrize(
    ("value", "name"), [(0.0, "0-10 m"), (10.0, "10-20 m"), (39.9, "20-40 m"), (40.0, "40 m or more")]
)
def test_borders_belong_to_the_interval_above(value: float, name: str) -> None:
    assert interval(value, (10.0, 20.0, 40.0), "m") == name


@pytest.mark.parametrize(("grey", "light"), [(10, "night"), (60, "dusk"), (120, "day")])
def test_light_is_measured_in_the_picture(grey: int, light: str) -> None:
    image = Image("/image", 0, "camera", np.full((48, 64, 3), grey, np.uint8), "bgr8")
    cells = ConditionCells(watch_settings({}, "test"))
    assert cells.of(Bundle(0, 0, 0, images=(image,)))[1] == light
    # Known still half a second later, without a picture; a second later it is not.
    assert cells.of(Bundle(0, 1, 500_000_000))[1] == light
    assert cells.of(Bundle(0, 2, 1_500_000_000))[1] == "unknown"
    assert ConditionCells(watch_settings({"light": "dawn"}, "test")).of(Bundle(0, 0, 0, images=(image,)))[1] == "dawn"


def test_stamps_that_go_back_begin_anew_and_add_no_time() -> None:
    laps = [moving(index % 20, 10.0) for index in range(60)]
    summary, lines = watched(lambda index: ([5.0], []), 60, lambda number: laps[number])
    assert summary["watched"]["scripted"]["watched_s"] == pytest.approx(3 * 1.9)
    assert lines[-1]["episode"] == 2 and summary["frames"] == 60


def test_an_unanswered_input_is_nothing_that_holds() -> None:
    lines: list[Any] = [
        {"type": CONDITION, "stack": "test", "min_frames": 1, "relations": [{"name": "scripted", "because": ""}]}
    ]
    watch = StreamWatch(
        {"scripted": Scripted(lambda index: ([5.0], []))}, watch_settings({}, "test"), 2.0, lines.append
    )
    for index in range(30):
        watch.take(WatchedInstant(moving(index, 1.0), Output()))
    watch.record()
    summary = watch_summary(lines)
    assert (summary["frames"], summary["unanswered"], summary["exit_code"]) == (30, 30, 3)


# --- outcomes


def never(index: int) -> Any:
    return [5.0], []


def once(index: int) -> Any:
    return [5.0], [("a", 5.0)] if index == 25 else []


@pytest.mark.parametrize(
    ("script", "frames", "tolerated", "outcome", "code"),
    [
        (never, 30, None, "PASS", 0),
        (never, 19, None, "INCONCLUSIVE", 3),
        (lambda index: (None, []), 30, None, "INCONCLUSIVE", 3),
        (never, 0, None, "INCONCLUSIVE", 3),
        (once, 30, None, "FAIL", 1),
        (once, 30, 10.0, "INCONCLUSIVE", 3),
        (never, 30, 10.0, "INCONCLUSIVE", 3),
        (never, 30, 1e6, "PASS", 0),
        (once, 30, 1e6, "PASS", 0),
        (lambda index: ([5.0], [(str(index), 5.0)]), 300, 100.0, "FAIL", 1),
    ],
)
def test_outcomes(script: Any, frames: int, tolerated: float | None, outcome: str, code: int) -> None:
    summary, _ = watched(script, frames, tolerated=tolerated)
    found = summary["watched"]["scripted"]
    assert (found["outcome"], summary["exit_code"]) == (outcome, code), found["why"]


def test_how_many_more_hours_would_decide() -> None:
    why = watched(never, 30, tolerated=10.0)[0]["watched"]["scripted"]["why"]
    hours, minutes, seconds = map(int, why.split()[0].split(":"))
    enough = watch_summary_of(seconds=3600.0 * hours + 60.0 * minutes + seconds + 10.0, tolerated=10.0)
    assert enough["outcome"] == "PASS"


def watch_summary_of(seconds: float, tolerated: float) -> dict[str, Any]:
    about = {"name": "scripted", "because": "", "tolerated_per_h": tolerated}
    row = {"cells": [[None] * 5 + [1000, round(seconds * 1e9), 0, 0]], "why": {}}
    tally = {"type": "tally", "frames": 1000, "unanswered": 0, "relations": {"scripted": row}}
    lines = [{"type": CONDITION, "stack": "", "min_frames": 20, "relations": [about]}, tally]
    return dict(watch_summary(lines)["watched"]["scripted"])


def test_a_check_that_raises_is_an_error_of_its_own() -> None:
    def broken(index: int) -> Any:
        if index == 10:
            raise RuntimeError("no")
        return [5.0], []

    summary, lines = watched(broken, 40)
    assert summary["exit_code"] == 4 and summary["watched"]["scripted"]["outcome"] == "ERROR"
    assert sum(line["type"] == ERROR for line in lines) == 1


def test_an_interrupted_run_says_so_first() -> None:
    _, lines = watched(once, 30)
    assert watch_summary(lines, interrupted=True)["exit_code"] == 130
    assert watch_summary(lines, infrastructure="gone")["exit_code"] == 4
    assert watch_summary(lines, usage="no transform")["exit_code"] == 2


# --- what answers what


def joined(steps: Sequence[tuple[str, Any, Any]], **how: Any) -> list[tuple[int, float | None]]:
    """Play inputs (``in``, stamp) and commands (``out``, stamp, speed); return stamps with the speeds that answer."""
    join = AnswerJoin(("control",), 1.0, **how)
    found: list[WatchedInstant] = []
    for kind, stamp, value in steps:
        if kind == "in":
            found += join.input(Bundle(0, 0, stamp))
        else:
            found += join.output("control", stamp, Control(stamp, speed_mps=value))
    found += join.rest()
    return [(each.stamp_ns, each.output.control.speed_mps if each.output.control else None) for each in found]


def test_outputs_answer_the_input_of_their_stamp_whatever_comes_first() -> None:
    steps = [("in", 0, None), ("out", 100, 2.0), ("in", 100, None), ("out", 0, 1.0), ("in", 200, None)]
    assert joined(steps) == [(0, 1.0), (100, 2.0), (200, None)]


def test_an_answer_that_does_not_come_holds_nothing_up_for_ever() -> None:
    steps = [("in", number * 10**9, None) for number in range(5)]
    assert joined(steps) == [(number * 10**9, None) for number in range(5)]


def test_outputs_without_stamps_answer_the_last_input() -> None:
    steps = [("in", 0, None), ("out", None, 1.0), ("in", 100, None), ("out", None, 2.0)]
    assert joined(steps) == [(0, 1.0), (100, 2.0)]
    stamped = [("in", 0, None), ("out", 7, 1.0), ("in", 100, None), ("out", 8, 2.0)]
    assert joined(stamped, by_arrival=True) == [(0, 1.0), (100, 2.0)]


def test_an_output_of_another_lap_answers_nothing() -> None:
    """The input of stamp 300 was lost in the first lap: what answered it is none to the same stamp of the second."""
    lap = [row for stamp in range(0, 1000, 100) for row in (("in", stamp, None), ("out", stamp, 1.0))]
    first = [row for row in lap if row[:2] != ("in", 300)]
    second = [(kind, stamp, 2.0) for kind, stamp, _ in lap]
    assert joined([*first, *second])[9:] == [(stamp, 2.0) for stamp in range(0, 1000, 100)]


def test_answers_on_their_way_when_a_bag_begins_again_are_taken() -> None:
    """With stamps from 9 s on, and 0 after them, nothing was given up for being seconds old."""
    late = [("in", 9_900_000_000, None), ("in", 0, None), ("out", 9_900_000_000, 1.0), ("out", 0, 2.0)]
    assert joined(late) == [(9_900_000_000, 1.0), (0, 2.0)]


def test_boxes_of_further_cameras_come_beside() -> None:
    join = AnswerJoin(("control", "/right/boxes"), 1.0)
    boxes = ImageBoxes.none("right", 0)
    assert not [*join.input(Bundle(0, 0, 0)), *join.output("control", 0, Control(0))]
    [instant] = join.output("/right/boxes", 0, boxes)
    assert instant.other_boxes == (boxes,) and instant.boxes == (boxes,)


# --- what is asked for


def test_checks_that_do_not_fit_are_left_out_unless_named() -> None:
    checks, left_out = named_checks(watch_settings({}, "test"), load_stack("reference_tracker"))
    assert set(checks) == {"tracks_do_not_blink", "boxes_agree_with_ego_motion"}
    assert left_out["cameras_agree"] == "needs boxes of the stack"
    named = watch_settings({"relations": [{"cameras_agree": {"for_s": 1}}]}, "test")
    with pytest.raises(UsageError, match="cameras_agree needs boxes of the stack"):
        named_checks(named, load_stack("reference_tracker"))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"relations": ["tracks_do_not_blnk"]}, "did you mean 'tracks_do_not_blink'"),
        ({"relations": [{"tracks_do_not_blink": {"gap": 1}}]}, "unknown parameter 'gap'"),
        ({"relations": ["speed_within_limit", "speed_within_limit"]}, "expected a name once"),
        ({"tolerated_per_h": {"speed_within_limit": 0.0}}, "expected a rate above 0"),
        ({"tolerated_per_h": {"cameras_agree": 1.0}}, "cameras_agree is not watched"),
        ({"range_edges_m": [20.0, 10.0]}, "expected rising numbers"),
        ({"wether": "rain"}, "did you mean 'weather'"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        named_checks(watch_settings(settings, "test"), load_stack("reference_driver"))


def test_one_configuration_serves_both_kinds_of_run(tmp_path: Path) -> None:
    file = tmp_path / "live.yaml"
    file.write_text("{stack: reference_driver, segments: {test_bundles: 5}, gap_s: 3, watch: {weather: snow}}")
    assert configured(file, {}).segments.test_bundles == 5
    request = watch_configured(file, {"watch.light": "night", "duration_s": 60.0})
    assert (request.watch.weather, request.watch.light, request.gap_s, request.duration_s) == ("snow", "night", 3, 60.0)
    assert bag_request(file, bags=("bag",), inprocess=True, relations=None, stack="x").watch.weather == "snow"
    file.write_text("{stack: reference_driver, watch: {wether: snow}}")
    with pytest.raises(UsageError, match="did you mean 'weather'"):
        configured(file, {})
