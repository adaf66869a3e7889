# SPDX-License-Identifier: Apache-2.0
"""Relation x fault: every honest stack holds every relation, every relation and every planted fault has its match.

New relations, faults and reference stacks are in it by themselves. The loop and the arms are a replay's own; results
are kept in memory.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar

import pytest
import test_radar_matrix as of_radars
from found_once import obstacles_found_once
from started_arms import arm_here

from mt_nodes.base import plugins, resources
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Pair, Verdict
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.engine.followups import FollowupMaker, FollowupPlan
from mt_nodes.engine.judging import Offer
from mt_nodes.engine.lockstep import Lockstep
from mt_nodes.engine.open_loop import commands
from mt_nodes.engine.play_settings import PlaySettings
from mt_nodes.engine.recorder import ExecutedPair
from mt_nodes.engine.series import SeriesVerdict
from mt_nodes.relations.checks.sequence import SequenceCheck
from mt_nodes.relations.mutations.stream.whole_stream import WholeStream
from mt_nodes.relations.relation import (
    CONTROL,
    SHAM,
    Relation,
    Suite,
    load_relation,
    load_suite,
    shipped_relations,
)
from mt_nodes.stacks.stack import Stack, load_stack
from mt_nodes.world.scene.drive import generate_drive

#: Bundles and run seed of the drives; where frames are struck by chance, this seed does it early enough for so few.
BUNDLES, MANY_BUNDLES, SEED = 4, 12, 0
STREAM_BUNDLES, STREAM_SEED = 8, 19
#: Run seeds of faults that hang on where the one object of a run stands: with :data:`SEED` each obstacle that the
#: person displaces from the full list is in their shadow or at the region's edge, where it is not demanded.
PLACE_SEEDS = {"obstacle_list_full": 1}
#: What a driver is asked beside is in test_matrix_control.py, and what is asked of a whole drive; what it sees is what
#: its tracker sees. What is asked of a radar is in test_radar_matrix.py: no fault here is one of a radar.
RELATIONS = tuple(
    r
    for r in shipped_relations()
    if r.role == "relation"
    and not {"camera", "radar"} & set(r.requires)
    and not commands(r)
    and not isinstance(r.check, SequenceCheck)
)
CATALOGUE = plugins.catalogue("faults").items()
FAULTS = tuple(name for name, cls in CATALOGUE if cls.stack == "lidar")  # type: ignore[attr-defined]
#: Faults of what lies behind detection, but for that of lamps, which a camera sees.
BEHIND = tuple(n for n, cls in CATALOGUE if cls.stack == "perception" and n != "lamp_brightness_fixed")  # type: ignore[attr-defined]
#: Those of which it is known why they are right; what a learned one violates is told in docs/models.md.
#: Those with a radar are in test_radar_matrix.py: a change of clouds alone that a radar contradicts, such as a mirrored
#: one, does not fit them.
HONEST = tuple(
    name
    for name in resources.shipped("stacks")
    if name.startswith("reference_")
    and not name.startswith("reference_cnnseg")
    and not {"camera", "radar"} & {*load_stack(name).inputs}
    and "control" not in load_stack(name).outputs
)
#: What faults are planted in: the stack that looks ahead, the one that looks all around, the one that remembers, the
#: one that says what lies behind detection.
HOSTS = ("reference_detector", "reference_whole_cloud", "reference_tracker", "reference_perception")
#: Faults that let the whole cloud decide: what no correct stack may do, so a necessary relation must blame them.
BLAMED = {
    "grid_index_wrap",
    "intensity_by_cloud_max",
    "order_dependence_over_budget",
    "point_buffer_cap",
    "sample_seeded_by_cloud",
    "threshold_scaled_by_cloud",
    "z_range_from_cloud",
}
#: The relations that tell a fault; a fault that is not here is looked for with all of them.
TELL = {
    "azimuth_seam": ("cloud_rotated_180",),
    "cells_cleared_by_far_returns": ("noise_outside_roi_1000_occupied",),
    "class_by_side": ("cloud_mirrored_class",),
    "empty_result_silent": ("region_emptied",),
    "fixed_range_gate": ("cloud_translated_ahead",),
    "grid_index_wrap": ("noise_outside_roi_1000", "cloud_rotated_90", "noise_outside_roi_1000_free"),
    "hard_coded_ring_count": ("vertical_resolution_halved",),
    "intensity_by_cloud_max": ("noise_outside_roi_bright_10", "points_spoofed_behind"),
    "intensity_threshold": ("intensity_halved", "intensity_saturated", "fog_keeps_occupied_near"),
    "mount_offset_twice": (
        "object_found_child",
        "object_found_cyclist",
        "object_found_deer_crossing",
        "object_found_motorcyclist",
        "object_found_person",
        "object_moved",
        "object_replaced_child",
        "object_replaced_deer",
    ),
    "nan_leak": ("returns_emptied_nan",),
    "obstacle_held": ("object_moved_gone",),
    "obstacle_list_full": ("object_added_person",),
    "old_cloud_refused": ("frames_delayed_50ms",),
    "order_dependence_over_budget": ("noise_outside_roi_1000", "density_increased_25_percent"),
    "pause_is_restart": ("frames_dropped_1_of_10", "frames_reordered_1_of_5", "rate_reduced_to_4_of_5"),
    "point_buffer_cap": ("noise_outside_roi_count_1000", "points_duplicated_10_percent"),
    "predicted_along_yaw": ("points_dropped_10_percent_predictions",),
    "right_side_threshold": ("cloud_mirrored", "cloud_mirrored_all_around"),
    "road_fit_starved": ("wet_ground_near_obstacles",),
    "same_cloud_is_stuck": ("frames_frozen_1_of_10", "frames_repeated_all"),
    "sample_seeded_by_cloud": (
        "noise_outside_roi_1000",
        "object_removed",
        "noise_keeps_tracks_100",
        "calibration_drifted_pitch",
        "sector_spoofed_behind",
        "deskew_noisy_5mm",
    ),
    "stale_result": ("region_emptied",),
    "stamp_slot": (
        "time_shifted_50ms",
        "clock_stepped_20ms",
        "frames_delayed_restamped_50ms",
        "stamps_jittered_5ms",
        "clock_drifted",
    ),
    "surer_with_less": ("points_dropped_not_surer", "fog_not_surer", "object_found_car"),
    "tall_is_building": ("object_replaced_truck", "object_replaced_van", "object_found_truck"),
    "threshold_scaled_by_cloud": ("noise_outside_roi_1000",),
    "time_from_point_count": ("points_dropped_10_percent_tracks",),
    "track_ids_hashed": ("noise_outside_roi_100_track_ids",),
    "yaw_unsigned": ("cloud_mirrored_box",),
    "z_range_from_cloud": (
        "noise_outside_roi_1000",
        "noise_outside_roi_1000_predictions",
        "noise_outside_roi_1000_tracks",
        "object_found_deer",
    ),
    "zero_time_floored": ("frames_repeated_keep_tracks",),
}
#: Faults that show in few frames, or once tracks know their velocity: with so many.
BUNDLES_OF = {"grid_index_wrap": 8, "time_from_point_count": 8}
#: The fault that leaves no change without consequences, and other last digits that it can hang on.
TOUCHY, DIGITS = "sample_seeded_by_cloud", (2e-4, 1e-3)

Table = dict[tuple[str, str], Counter[str]]
"""How the pairs ended, by the relation that judged them and the one whose follow-up they saw."""


@dataclass
class Kept:
    """What a run writes down, in memory."""

    fresh: bool = True
    table: Table = field(default_factory=dict)

    def followup(self, *_: Any) -> None:
        """A ledger is nobody's concern here."""

    def done(self, pair: Pair) -> bool:
        return False

    def verdicts(self, verdicts: Sequence[Verdict], case: ExecutedPair | None) -> Sequence[Verdict]:
        for v in verdicts:
            self.table.setdefault((v.pair.judged_for, v.pair.relation), Counter())[v.outcome.value] += 1
        return verdicts

    def series(self, judged: Sequence[SeriesVerdict]) -> Sequence[Verdict]:
        return self.verdicts([verdict for verdict, _ in judged], None)


class MadeOnce(FollowupMaker):
    """Makes every follow-up once, whoever is judged by it: it depends on seed, relation, draw and bundle alone."""

    made: ClassVar[dict[tuple[Any, ...], FollowupPlan]] = {}

    def __init__(self, suite: Suite, seed: int) -> None:
        super().__init__(suite, seed)
        self._seed = seed

    def __call__(self, offer: Offer, bundle: Bundle) -> FollowupPlan:
        key = (self._seed, offer.relation.id, offer.draw, bundle.index, *_contents(bundle))
        if key not in self.made:
            self.made[key] = super().__call__(offer, bundle)
        return replace(self.made[key], offer=offer)


def _contents(bundle: Bundle) -> Iterator[tuple[str, int]]:
    """Yield topic and checksum of what the sensors say: bundles of other drives have the same indices."""
    for cloud in (*bundle.clouds, *bundle.extra_clouds, *bundle.radars):
        yield cloud.topic, zlib.crc32(cloud.raw[:2000].tobytes())


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """A gigabyte of clouds is not kept for the files that come after."""
    yield
    MadeOnce.made.clear()


@pytest.fixture(scope="module", autouse=True)
def remembered() -> Iterator[None]:
    with obstacles_found_once():
        yield


#: A relation by its name: thousands of times the same.
known = cache(load_relation)


@cache
def drive(bundles: int) -> tuple[Bundle, ...]:
    return tuple(generate_drive(bundles, seed=1))


@cache
def host(name: str) -> Stack:
    return load_stack(name)


def fitting(stack: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(n for n in names if incompatibility(known(n), host(stack)) is None)


def of_the_stream(name: str) -> bool:
    return any(isinstance(mutation, WholeStream) for mutation in known(name).mutate)


def judged(
    stack: str, names: Sequence[str], fault: str = "", seed: int = SEED, bundles: int = BUNDLES, **params: Any
) -> Table:
    """Judge a stack, perhaps with a fault in it, by some relations, control and sham."""
    streams = [n for n in names if of_the_stream(n)]
    others = [n for n in names if n not in streams]
    made = host(stack)
    if fault:
        made = replace(made, params={**made.params, "faults": [{fault: params}]})
    return {
        **_played(made, others, "twin", bundles, seed),
        **_played(made, streams, "two_pass", STREAM_BUNDLES, STREAM_SEED),
    }


def _played(made: Stack, names: Sequence[str], mode: str, bundles: int, seed: int) -> Table:
    """Play relations; what is about the stream in a pass of its own: fan-out would mix it with other streams."""
    if not names:
        return {}
    topics = {topic: topic for of_role in made.topics.values() for topic in of_role}
    source = arm_here("source", made, topics)
    followup = source if made.stateless else arm_here("followup", made, topics)
    kept = Kept()
    suite = load_suite(names)
    loop = Lockstep(
        PlaySettings(
            suite,
            seed,
            mode=mode,
            stateless=made.stateless,
            publishes_when_empty=made.publishes_when_empty,
            source_of_followups=MadeOnce(suite, seed),
        ),
        kept,  # type: ignore[arg-type]
    )
    loop.run([lambda: iter(drive(bundles))], source, followup)
    assert {sum(ended.values()) for ended in kept.table.values()} == {bundles}
    assert {name for name, _ in kept.table} == set(names)
    return kept.table


def violated(table: Table) -> set[str]:
    return {name for (name, offered), ended in table.items() if name == offered and ended["VIOLATED"]}


def clean(table: Table) -> bool:
    """Whether control and sham hold, and had something to hold unless the relation is prepared for nothing."""
    background = [(known(name), ended) for (name, at), ended in table.items() if at in (CONTROL, SHAM)]
    held = all(ended["HOLDS"] > 0 or relation.tolerated_rate is not None for relation, ended in background)
    return held and all(ended["VIOLATED"] == ended["ERROR"] == 0 for _, ended in background)


@cache
def told(fault: str) -> dict[str, str]:
    """The relations that tell a fault, each with the stack it is planted in; control and sham must stay clean."""
    found: dict[str, str] = {}
    named, seed = TELL.get(fault, tuple(r.id for r in RELATIONS)), PLACE_SEEDS.get(fault, SEED)
    for stack in HOSTS:
        if names := fitting(stack, [n for n in named if n not in found]):
            table = judged(stack, names, fault, seed, BUNDLES_OF.get(fault, BUNDLES))
            assert clean(table), f"{fault} in {stack}"
            assert seed == SEED or not violated(judged(stack, names, seed=seed)), f"{stack} violates it without {fault}"
            found |= dict.fromkeys(violated(table), stack)
    return found


@cache
def touched() -> set[str]:
    """The relations that the touchiest fault violates, of those that tell no other."""
    found: set[str] = set()
    left = {r.id for r in RELATIONS} - {name for names in TELL.values() for name in names}
    for stack in HOSTS:
        if names := fitting(stack, sorted(left)):
            found |= violated(judged(stack, names, TOUCHY))
            left -= set(names)
    return found


def by_one_stack() -> dict[str, tuple[str, ...]]:
    """Every relation, by the first honest stack that it fits; the detector is the first of all."""
    left = [r.id for r in RELATIONS]
    chosen = {}
    for stack in sorted(HONEST, key=lambda name: name != HOSTS[0]):
        chosen[stack] = fitting(stack, left)
        left = [name for name in left if name not in chosen[stack]]
    return {stack: names for stack, names in chosen.items() if names}


@pytest.mark.parametrize("stack", by_one_stack())
def test_a_relation_is_held_by_an_honest_stack(stack: str) -> None:
    holds_all(judged(stack, by_one_stack()[stack]))


@pytest.mark.long
@pytest.mark.parametrize("bundles", [BUNDLES, MANY_BUNDLES])
@pytest.mark.parametrize("stack", HONEST)
def test_an_honest_stack_holds_every_relation(stack: str, bundles: int) -> None:
    holds_all(judged(stack, fitting(stack, [r.id for r in RELATIONS]), bundles=bundles))


def holds_all(table: Table) -> None:
    assert clean(table)
    for (name, offered), ended in table.items():
        assert ended["VIOLATED"] == ended["ERROR"] == ended["INVALID"] == 0, (name, ended)
        assert ended["HOLDS"] > 0 or name != offered, (name, ended)


def test_every_relation_fits_an_honest_stack() -> None:
    assert [r.id for r in RELATIONS if not any(fitting(stack, [r.id]) for stack in HONEST)] == []


@pytest.mark.parametrize("fault", [*FAULTS, *BEHIND])
def test_a_planted_fault_is_found(fault: str) -> None:
    # Honest stacks violate nothing on this drive, so one violation of an expected relation is the fault's, too.
    found = told(fault)
    assert set(found) == set(TELL.get(fault, found)), f"{fault}: of {TELL.get(fault)} only {sorted(found)} tell it"
    assert found, f"no relation tells {fault}"
    if fault in BLAMED:
        assert any(known(name).kind == "necessary" and stack == HOSTS[0] for name, stack in found.items())


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.id)
def test_a_relation_can_be_violated(relation: Relation) -> None:
    by = [fault for fault, names in TELL.items() if relation.id in names]
    if any(relation.id in told(fault) for fault in by) or relation.id in touched():
        return
    stack = next(s for s in HOSTS if fitting(s, [relation.id]))
    tries = (judged(stack, [relation.id], TOUCHY, digit=digit) for digit in DIGITS)
    assert any(relation.id in violated(table) for table in tries), "no planted fault violates it"


def test_what_is_named_here_is_there() -> None:
    names = {name for told_by in TELL.values() for name in told_by}
    assert set(TELL) | BLAMED <= {*FAULTS, *BEHIND} and names <= {r.id for r in RELATIONS}
    assert len(FAULTS) >= 28 and len(RELATIONS) >= 59 and len(HONEST) >= 3


def test_what_is_left_to_the_matrix_of_radars_is_there() -> None:
    of_a_radar = {r.id for r in shipped_relations() if r.role == "relation" and "radar" in " ".join(r.requires)}
    assert of_a_radar == set(of_radars.RELATIONS) and not of_a_radar & {r.id for r in RELATIONS}
    references = [name for name in resources.shipped("stacks") if name.startswith("reference_")]
    with_a_radar = {name for name in references if "radar" in host(name).inputs}
    assert with_a_radar == set(of_radars.HONEST)
    assert not with_a_radar & set(HONEST)
