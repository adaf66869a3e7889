# SPDX-License-Identifier: Apache-2.0
"""Relation x fault for stacks with a camera: the honest ones hold every relation, every planted fault is told.

New relations and faults are in it by themselves. The loop and the arms are a replay's own; results are kept in memory.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest
from found_once import people_found_once
from started_arms import arm_here

from mt_nodes.base import plugins
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Pair, Verdict
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.engine.lockstep import Lockstep
from mt_nodes.engine.play_settings import PlaySettings
from mt_nodes.engine.recorder import ExecutedPair
from mt_nodes.relations.mutations.stream.stamp_mutations import ClockDrifted
from mt_nodes.relations.mutations.stream.whole_stream import WholeStream
from mt_nodes.relations.relation import CONTROL, SHAMS, load_suite, sham_for, shipped_relations
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import CAMERA_INFO_TOPIC, CLOUD_TOPIC, IMAGE_TOPIC, generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

#: Frames of one drive, so far apart that they show other people; the road bends to the left.
FRAMES, BEND_1PM = (0, 12), 1.0 / 80.0
#: One is enough to find a fault; on that one the honest stack is seen to hold each day.
LAST, ALL = -1, 0
STACKS = {name: load_stack(name) for name in ("reference_camera", "reference_both")}
STACK = STACKS["reference_camera"]
USUAL = CameraSensor()
#: Without those of lost and late frames, which show in long streams only; a clock that is off shows in every instant.
RELATIONS = tuple(
    r.id
    for r in shipped_relations()
    if r.role == "relation"
    and "camera" in r.requires
    and incompatibility(r, STACK) is None
    and not any(isinstance(mutation, WholeStream) and not isinstance(mutation, ClockDrifted) for mutation in r.mutate)
)
#: Seeds of relations whose place the detector misses with seed 0, within what they tolerate; the next three it finds.
PLACE_SEEDS = {"object_seen_person": 1}
#: Relations of what camera and LiDAR say of one thing.
AGREED = tuple(r.id for r in shipped_relations() if r.check and {"detections", "boxes"} <= set(r.check.needs))
CATALOGUE = plugins.catalogue("faults").items()
FAULTS = tuple(name for name, cls in CATALOGUE if cls.stack == "camera")  # type: ignore[attr-defined]
FUSION_FAULTS = tuple(name for name, cls in CATALOGUE if cls.stack == "fusion")  # type: ignore[attr-defined]

#: The relations that tell a fault.
TELL = {
    "black_is_defect": (
        "image_rotated_little_lane",
        "image_sheared_little_boxes",
        "image_translated_little_boxes",
        "image_translated_little_lane",
        "impulse_noise_lane",
        "pixels_dead_boxes",
        "pixels_dead_steering",
        "image_blanked_not_faster",
    ),
    "blue_is_sky": ("white_balance_cold_boxes",),
    "bonnet_masked": ("person_close_stops",),
    "boxes_of_smaller_picture": ("object_seen_person",),
    "bright_is_clear": (
        "exposure_half_stop_up_keeps_speed",
        "lens_flare_not_faster",
        "sun_glare_camera_not_faster",
        "lens_frost_not_faster",
    ),
    "brightness_by_mean": (
        "brightness_raised_lane",
        "contrast_lowered_lane",
        "rain_camera_lane",
        "wet_road_camera_lane",
        "light_pulsed_lane",
    ),
    "busy_is_foliage": (
        "contrast_raised_boxes",
        "impulse_noise_boxes",
        "sensor_noise_boxes",
    ),
    "colours_swapped": ("white_balance_lamps_lane",),
    "compressed_picture_dropped": ("jpeg_quality_40_boxes", "jpeg_quality_50_lane", "image_pixelated_lane"),
    "flat_is_free": (
        "dust_camera_not_faster",
        "image_blanked_not_faster",
        "fog_camera_not_faster",
        "image_occluded_not_faster",
        "rain_camera_not_faster",
        "smoke_camera_not_faster",
        "snow_camera_not_faster",
    ),
    "foreign_camera_dropped": ("intrinsics_drifted_lane",),
    "grey_is_nobody": ("saturation_gone_boxes",),
    "heading_calibrated_away": ("image_translated_left_turns_left", "image_translated_right_turns_right"),
    "lane_plausible_on_one_side": ("image_mirrored_lane",),
    "left_columns_lost": ("image_mirrored_path", "image_mirrored_steering", "image_mirrored_boxes"),
    "noise_is_detail": ("night_not_faster",),
    "paint_above_fixed_brightness": (
        "dusk_lane",
        "vignetting_drifted_lane",
    ),
    "people_of_usual_brightness": ("brightness_lowered_boxes", "exposure_half_stop_up_boxes"),
    "picture_out_of_step": ("clock_drifted_camera",),
    "red_is_tail_light": ("red_light_not_faster",),
    "resolution_assumed": ("image_mirrored_steering",),
    "sight_not_asked": ("night_not_faster",),
    "soft_is_reflection": ("defocus_slight_boxes", "fog_camera_boxes_near", "image_scaled_little_boxes"),
    "stale_frame_buffer": ("image_mirrored_steering", "image_mirrored_boxes"),
    "unsharp_picture_dropped": (
        "defocus_slight_lane",
        "motion_blur_lane",
        "lens_film_lane",
        "lens_drifted_lane",
        "rolling_shutter_lane",
    ),
    "unusual_picture_dropped": (
        "exposure_one_stop_down_steering",
        "gamma_darker_lane",
        "low_sun_lane",
        "saturation_raised_steering",
        "speckle_lane",
    ),
    "white_must_be_white": ("white_balance_warm_lane",),
}
#: The relations that tell no fault but the touchiest one: what they add moves nothing that a stack of classical parts
#: could sensibly take for something else.
LEFT = {
    "crosswalk_painted_lane",
    "lens_dirt_steering",
    "lens_drops_not_faster",
    "light_beside_boxes",
    "object_ahead_not_faster",
    "sensor_noise_lane",
    "sign_beside_lane",
}
#: Of both sensors: faults that part what camera and LiDAR say, in any part of the stack.
PARTS = dict.fromkeys(("camera_mount_turned", "stale_frame_buffer"), AGREED)
#: A camera like the usual one that sees more to both sides: a picture larger than what a fault assumes of sizes.
WIDER = CameraSensor(width=768, field_of_view_deg=2.0 * math.degrees(math.atan(384.0 / USUAL.focal_px)))
#: The fault that leaves no change without consequences.
TOUCHY = "repeated_stamp_damaged"

Table = dict[tuple[str, str], Counter[str]]
"""How the pairs ended, by the relation that judged them and the one whose follow-up they saw."""


@dataclass
class Kept:
    """What a run writes down, in memory."""

    fresh: bool = True
    table: Table = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def followup(self, *_: Any) -> None:
        """A ledger is nobody's concern here."""

    def done(self, pair: Pair) -> bool:
        return False

    def series(self, judged: Sequence[tuple[Verdict, Any]]) -> Sequence[Verdict]:
        return self.verdicts([verdict for verdict, _ in judged], None)

    def verdicts(self, verdicts: Sequence[Verdict], case: ExecutedPair | None) -> Sequence[Verdict]:
        for v in verdicts:
            self.table.setdefault((v.pair.judged_for, v.pair.relation), Counter())[v.outcome.value] += 1
            self.reasons.append(f"{v.pair} {v.outcome.value} {v.judgement.reason}")
        return verdicts


@pytest.fixture(scope="module", autouse=True)
def remembered() -> Iterator[None]:
    with people_found_once():
        yield


@cache
def drive(camera: CameraSensor) -> tuple[Bundle, ...]:
    frames = FRAMES if camera == USUAL else FRAMES[:1]
    lidar = replace(hdl_64e(), azimuths=900)
    return tuple(generate_drive(frames[-1] + 1, lidar=lidar, camera=camera, bend_1pm=BEND_1PM, only=frames))


@cache
def judged(
    names: tuple[str, ...],
    fault: str = "",
    camera: CameraSensor = USUAL,
    name: str = STACK.name,
    seed: int = 0,
    first: int = LAST,
) -> Kept:
    """Judge a stack, perhaps with a fault in it, by some relations, control and sham, from a frame on."""
    stack = STACKS[name]
    made = replace(stack, params={"faults": [fault]} if fault else {})
    roles = {"lidar": CLOUD_TOPIC, "camera": IMAGE_TOPIC, "camera_info": CAMERA_INFO_TOPIC}
    arm = arm_here("source", made, {roles[role]: topics[0] for role, topics in stack.topics.items()})
    kept = Kept()
    suite = load_suite(names, sham_for(stack.inputs))
    loop = Lockstep(
        PlaySettings(
            suite,
            seed,
            mode="twin",
            stateless=True,
            publishes_when_empty=True,
        ),
        kept,  # type: ignore[arg-type]
    )
    loop.run([lambda: iter(drive(camera)[first:])], arm, arm)
    return kept


def violated(table: Table) -> set[str]:
    return {name for (name, offered), ended in table.items() if name == offered and ended["VIOLATED"]}


def background(kept: Kept) -> dict[str, int]:
    """How often pairs of control and sham ended so."""
    rows = (ended for (_, offered), ended in kept.table.items() if offered in (CONTROL, *SHAMS))
    return dict(sum(rows, Counter()))


def clean(kept: Kept) -> bool:
    """Whether control and sham hold, and had something to hold."""
    ended = background(kept)
    return set(ended) <= {"HOLDS", "NOT_APPLICABLE"} and ended["HOLDS"] > 0


@pytest.mark.parametrize("first", [LAST, pytest.param(ALL, marks=pytest.mark.long)], ids=["last", "all"])
@pytest.mark.parametrize(("stack", "relations"), [*zip(STACKS, (RELATIONS, AGREED), strict=True)], ids=STACKS)
def test_the_honest_stack_holds_every_relation(stack: str, relations: tuple[str, ...], first: int) -> None:
    for seed in {PLACE_SEEDS.get(name, 0) for name in relations}:
        chosen = tuple(name for name in relations if PLACE_SEEDS.get(name, 0) == seed)
        kept = judged(chosen, name=stack, seed=seed, first=first)
        assert clean(kept), kept.reasons
        for name in chosen:
            ended, reasons = kept.table[name, name], [reason for reason in kept.reasons if f"/{name}/" in reason]
            assert set(ended) <= {"HOLDS", "NOT_APPLICABLE"} and ended["HOLDS"] > 0, reasons


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != TOUCHY])
def test_a_planted_fault_is_told(fault: str) -> None:
    kept = judged(TELL[fault], fault, WIDER if fault == "resolution_assumed" else USUAL)
    assert clean(kept), kept.reasons
    assert violated(kept.table) == set(TELL[fault]), kept.reasons


@pytest.mark.parametrize("fault", PARTS)
def test_a_fault_that_parts_the_sensors_is_told(fault: str) -> None:
    kept = judged(PARTS[fault], fault, name="reference_both")
    assert set(background(kept)) <= {"HOLDS", "NOT_APPLICABLE"}, "what never agreed leaves nothing to hold"
    assert violated(kept.table) == set(PARTS[fault]), kept.reasons


def test_every_relation_can_be_violated() -> None:
    """What tells no other fault is violated by the touchiest one."""
    assert set(RELATIONS) - {name for names in TELL.values() for name in names} == LEFT
    kept = judged(tuple(sorted(LEFT)), TOUCHY)
    assert clean(kept), kept.reasons
    assert violated(kept.table) == LEFT, LEFT - violated(kept.table)


def test_what_is_named_here_is_there() -> None:
    assert {*TELL, TOUCHY} == set(FAULTS) and {name for names in TELL.values() for name in names} <= set(RELATIONS)
    assert set(FUSION_FAULTS) <= set(PARTS) <= {*FUSION_FAULTS, *FAULTS}
    assert {name for names in PARTS.values() for name in names} == set(AGREED)
    assert len(FAULTS) >= 25 and len(RELATIONS) >= 58 and len(AGREED) >= 1
