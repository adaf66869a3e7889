# SPDX-License-Identifier: Apache-2.0
"""Reference stacks with tracks, predicted paths, free space, lanes and traffic lights: honest, and with faults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from found_once import obstacles_found_once

from mt_nodes.base import plugins
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.engine.followups import FollowupPlan
from mt_nodes.engine.judging import Answer, AnswerStatus, Offer
from mt_nodes.engine.series import Series
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.relation import load_relation
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.message_adapter import adapter_for
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive

FRAMES = 8
LIDAR = (
    "noise_outside_roi_1000_tracks",
    "noise_outside_roi_100_track_ids",
    "points_dropped_10_percent_tracks",
    "noise_outside_roi_1000_predictions",
    "points_dropped_10_percent_predictions",
    "noise_outside_roi_1000_occupied",
    "noise_outside_roi_1000_free",
    "fog_keeps_occupied_near",
)
CAMERA = (
    "jpeg_quality_50_lane_lines",
    "brightness_raised_lane_lines",
    "rain_camera_lane_lines",
    "image_mirrored_lane_lines",
    "exposure_one_stop_down_signals",
    "jpeg_quality_40_signals",
    "rain_camera_signals",
    "light_found_red",
    "light_found_green",
)
#: Every relation and a fault that it finds. The faults of detector and camera stack reach what lies behind them.
FOUND = (
    ("noise_outside_roi_1000_tracks", "z_range_from_cloud"),
    ("noise_outside_roi_100_track_ids", "track_ids_hashed"),
    ("points_dropped_10_percent_tracks", "time_from_point_count"),
    ("noise_outside_roi_1000_predictions", "z_range_from_cloud"),
    ("points_dropped_10_percent_predictions", "predicted_along_yaw"),
    ("noise_outside_roi_1000_occupied", "cells_cleared_by_far_returns"),
    ("noise_outside_roi_1000_free", "grid_index_wrap"),
    ("fog_keeps_occupied_near", "intensity_threshold"),
    ("jpeg_quality_50_lane_lines", "compressed_picture_dropped"),
    ("brightness_raised_lane_lines", "brightness_by_mean"),
    ("rain_camera_lane_lines", "paint_above_fixed_brightness"),
    ("image_mirrored_lane_lines", "left_columns_lost"),
    ("exposure_one_stop_down_signals", "lamp_brightness_fixed"),
    ("jpeg_quality_40_signals", "compressed_picture_dropped"),
    ("rain_camera_signals", "unsharp_picture_dropped"),
    ("light_found_red", "colours_swapped"),
    ("light_found_green", "colours_swapped"),
)
STACK = {**dict.fromkeys(LIDAR, "reference_perception"), **dict.fromkeys(CAMERA, "reference_road_camera")}


@pytest.fixture(scope="module", autouse=True)
def remembered() -> Iterator[None]:
    with obstacles_found_once():
        yield


@cache
def drive(camera: bool) -> tuple[Bundle, ...]:
    """A few frames in a row; with a camera one a second."""
    if camera:
        return tuple(generate_drive(21, 1, camera=CameraSensor(), bend_1pm=1 / 80, only=range(0, 21, 10)))
    return tuple(generate_drive(FRAMES, 1))


@cache
def followups(name: str) -> tuple[tuple[Bundle, Bundle, Effects], ...]:
    """What source and follow-up arm are given by a relation, and the effects."""
    relation = load_relation(name)
    pipeline = MutationPipeline(relation.mutate, 0, relation.id, relation.baseline)
    rows = []
    for bundle in drive(name in CAMERA):
        try:
            made = pipeline.derive(pipeline.meet(bundle))
        except NotApplicable:
            continue
        given = bundle if made.baseline is None else made.baseline.followup.first
        rows.append((given, made.followup.first, made.effects))
    return tuple(rows)


@cache
def unchanged(stack: str, camera: bool, indices: tuple[int, ...], fault: str) -> list[Output]:
    """What a stack says to bundles of the drive, by their indices: most relations' source arm is asked the same."""
    chosen = [bundle for bundle in drive(camera) if bundle.index in indices]
    return answers(stack, chosen, fault)


def answers(stack: str, bundles: Sequence[Bundle], fault: str = "") -> list[Output]:
    """What a stack says to bundles in turn."""
    own = load_stack(stack)
    host = CallableHost.make(with_faults(own, (fault,) if fault else ()))
    topics = [topic for names in own.topics.values() for topic in names]
    given = [{m.topic: m for m in bundle.messages if m.topic in topics} for bundle in bundles]
    return [
        host(row if own.joins else row[own.leading_topic], bundle.transforms)
        for row, bundle in zip(given, bundles, strict=True)
    ]


def judgements(name: str, fault: str = "") -> list[Judgement]:
    check: Any = load_relation(name).check
    rows = followups(name)
    given, followups_given = ([row[arm] for row in rows] for arm in (0, 1))
    if all(one in drive(name in CAMERA) for one in given):
        source = unchanged(STACK[name], name in CAMERA, tuple(one.index for one in given), fault)
    else:  # prepared for the relation
        source = answers(STACK[name], given, fault)
    followup = answers(STACK[name], followups_given, fault)
    return [
        check.judge(before, after, effects, given)
        for before, after, (given, _, effects) in zip(source, followup, rows, strict=True)
    ]


@pytest.mark.parametrize("name", STACK)
def test_an_honest_stack_holds_the_relation_and_says_something(name: str) -> None:
    outcomes = [judgement.outcome for judgement in judgements(name)]
    assert Outcome.HOLDS in outcomes
    assert set(outcomes) <= {Outcome.HOLDS, Outcome.NOT_APPLICABLE}


@pytest.mark.parametrize(("name", "fault"), FOUND)
def test_a_planted_fault_violates_the_relation(name: str, fault: str) -> None:
    assert Outcome.VIOLATED in [judgement.outcome for judgement in judgements(name, fault)]


def test_an_id_that_is_switched_in_the_course_of_a_drive_is_found() -> None:
    relation = load_relation("noise_outside_roi_100_ids_over_time")
    pipeline, bundles = (
        MutationPipeline(relation.mutate, 0, relation.id),
        tuple(generate_drive(20, 1)),
    )
    followups = [pipeline.derive(bundle) for bundle in bundles]
    for fault, outcome in (("", Outcome.HOLDS), ("grid_index_wrap", Outcome.VIOLATED)):
        series, offer = Series(), Offer(relation, (relation,))
        source = answers("reference_perception", bundles, fault)
        followup = answers("reference_perception", [made.followup.first for made in followups], fault)
        for bundle, made, *said in zip(bundles, followups, source, followup, strict=True):
            before, after = (Answer(AnswerStatus.ANSWERED, output) for output in said)
            series.add(FollowupPlan(offer, made), bundle, (before, after))
        ((verdict, _),) = series.end()
        assert verdict.outcome is outcome, verdict.judgement.reason


def test_every_relation_and_every_fault_behind_detection_has_its_match() -> None:
    assert {relation for relation, _ in FOUND} == set(STACK)
    faults = {name for name, cls in plugins.catalogue("faults").items() if cls.stack == "perception"}  # type: ignore[attr-defined]
    assert faults <= {fault for _, fault in FOUND}


def test_what_a_stack_says_is_the_same_after_its_default_messages() -> None:
    """Over topics as in process: nothing that a check reads is lost on the way."""
    for name, camera in (("reference_perception", False), ("reference_road_camera", True)):
        stack = load_stack(name)
        (said,) = answers(name, drive(camera)[:1]) if camera else answers(name, drive(camera)[:5])[-1:]
        for role, row in stack.outputs.items():
            adapter, part = adapter_for(role, row.type), getattr(said, role)
            assert len(part) > 0 or role == "signals"
            again = Output(**{role: adapter.decode(adapter.encode(part))})
            before = Output(**{role: part})
            assert plain(getattr(again, role)) == plain(getattr(before, role))


def plain(part: Any) -> Any:
    """The numbers and texts of an output."""
    if isinstance(part, (tuple, list)):
        return [plain(row) for row in part]
    if isinstance(part, np.ndarray):
        return np.nan_to_num(part, nan=-999.0).round(9).tolist() if part.dtype.kind == "f" else part.tolist()
    return {name: plain(value) for name, value in vars(part).items()} if hasattr(part, "__dict__") else part
