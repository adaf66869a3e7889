# SPDX-License-Identifier: Apache-2.0
"""Relation x fault for commands, and for how a stack runs: the honest driver holds every relation, each tells a fault.

New relations of commands and new faults of the driver are in it by themselves. The loop and the arms are a replay's
own; results are kept in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from started_arms import arm_here
from test_matrix import HONEST, Kept, MadeOnce, Table, clean, forgotten, of_the_stream, remembered, violated

from mt_nodes.base import plugins
from mt_nodes.data.messages import Bundle
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.engine.lockstep import Lockstep
from mt_nodes.engine.open_loop import commands
from mt_nodes.engine.play_settings import PlaySettings
from mt_nodes.relations.checks.answer_checks import LatencyNotWorse
from mt_nodes.relations.checks.obstacles import ObstacleComparison
from mt_nodes.relations.checks.sequence import SequenceCheck
from mt_nodes.relations.checks.speed_checks import AccelerationWithin
from mt_nodes.relations.relation import load_suite, shipped_relations
from mt_nodes.stacks.stack import Stack, load_stack
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e
from mt_nodes.world.scene.radar_model import front_radar

__all__ = ["forgotten", "remembered"]

STACK = load_stack("reference_driver")
#: The same driver, which tells its acceleration, too.
TELLING = load_stack("reference_driver_ackermann")
FITTING = tuple(r for r in shipped_relations() if r.role == "relation" and incompatibility(r, STACK) is None)
#: Relations of how a stack runs, whatever it says, but for that of the time, which is the machine's, too.
SYSTEM = tuple(
    r.id
    for r in FITTING
    if isinstance(r.check, SequenceCheck) and not isinstance(r.check, ObstacleComparison) and not commands(r)
)
TIMED = tuple(r.id for r in FITTING if isinstance(r.check, LatencyNotWorse))
RELATIONS = tuple(r.id for r in FITTING if (commands(r) or r.id in SYSTEM) and r.id not in TIMED)
FAULTS = tuple(name for name, cls in plugins.catalogue("faults").items() if cls.stack == "driver")  # type: ignore[attr-defined]
#: Relations of a number that only the second of them tells.
ACCELERATION = tuple(r.id for r in FITTING if isinstance(r.check, AccelerationWithin))
#: Bundles of each drive, by its seed: long enough for slow faults, shorter than what is judged after the arms agreed.
DRIVES = {1: 12, 2: 8}
#: What takes longer, and for how many bundles: it is played by itself.
LONG = {"person_near_stops": 17}
#: The relations that tell a fault.
TELL = {
    "brakes_for_constant_bearing": ("rider_beside_keeps_current", "rider_beside_acceleration"),
    "brakes_for_comfort_only": ("person_near_stops",),
    "brakes_on_or_off": ("person_ahead_jerk",),
    "closer_on_the_left": ("cloud_mirrored_steering", "cloud_mirrored_path"),
    "closing_speed_by_cloud": ("person_approached_brakes",),
    "clouds_counted": ("frames_repeated_keep_current", "rate_reduced_keeps_current"),
    "density_of_every_pair": ("stray_points_answer_time",),
    "distance_by_returns": ("density_halved_keeps_current", "person_ahead_of_half_density"),
    "evidence_by_returns": ("person_ahead_brake_onset", "person_ahead_reaction_time", "person_ahead_slows_down"),
    "every_other_when_busy": ("stray_points_output_rate",),
    "integrator_not_reset": ("clock_stepped_30s_steering",),
    "intensity_threshold": ("fog_not_faster",),
    "large_cloud_is_error": ("stray_points_no_new_errors",),
    "left_taken_for_free": ("person_at_left_edge_turns_right",),
    "nearest_return_ahead": ("stray_returns_ahead_keep_current",),
    "nearest_return_beside": ("noise_beside_lane_keeps_current",),
    "room_averaged_too_long": ("cloud_translated_aside_turns_left",),
    "scene_in_queue": ("person_ahead_half_rate_reaction",),
    "silent_after_burst": ("frames_repeated_output_rate",),
    "thin_cloud_not_answered": ("returns_lost_still_answers",),
}
#: A shorter test, half as many points as the usual LiDAR's, and a fault of the driver's eyes, so strong that it takes
#: whom it follows.
PARAMS: dict[str, dict[str, Any]] = {
    "density_of_every_pair": {"one_of": 30},
    "distance_by_returns": {"at_10m": 85.0},
    "intensity_threshold": {"weakest": 40.0},
}


@cache
def drive(seed: int, radar: bool = False) -> tuple[Bundle, ...]:
    long = max(DRIVES[seed], *LONG.values())
    lidar = replace(hdl_64e(), azimuths=900)
    return tuple(generate_drive(long, seed, lidar, radar=front_radar() if radar else None))


def planted(fault: str, stack: Stack = STACK) -> Stack:
    return replace(stack, params={**stack.params, "faults": [{fault: PARAMS.get(fault, {})}] if fault else []})


def judged(names: Sequence[str], fault: str = "", seed: int = 1) -> Table:
    """Judge the driver, perhaps with a fault in it, by some relations, control and sham."""
    streams, table = [name for name in names if of_the_stream(name)], {}
    for name in (name for name in names if name in LONG):
        table |= _played(planted(fault), [name], drive(seed)[: LONG[name]], seed)
    accelerations = [name for name in names if name in ACCELERATION]
    table |= _played(planted(fault, TELLING), accelerations, drive(seed)[: DRIVES[seed]], seed)
    others = [name for name in names if name not in (*streams, *LONG, *accelerations)]
    table |= _played(planted(fault), others, drive(seed)[: DRIVES[seed]], seed)
    return table | _played(planted(fault), streams, drive(seed)[: DRIVES[seed]], seed, "two_pass")


def _played(made: Stack, names: Sequence[str], bundles: Sequence[Bundle], seed: int = 1, mode: str = "twin") -> Table:
    if not names:
        return {}
    topics = {topic: topic for of_role in made.topics.values() for topic in of_role}
    source = arm_here("source", made, topics)
    followup = arm_here("followup", made, topics) if mode == "twin" else source
    kept, suite, drawn_by = Kept(), load_suite(names), 100 + seed
    loop = Lockstep(
        PlaySettings(
            suite,
            drawn_by,
            mode=mode,
            stateless=made.stateless,
            publishes_when_empty=True,
            source_of_followups=MadeOnce(suite, drawn_by),
        ),
        kept,  # type: ignore[arg-type]
    )
    loop.run([lambda: iter(bundles)], source, followup)
    assert {name for name, _ in kept.table} == set(names)
    return kept.table


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_the_honest_driver_holds_every_relation(seed: int) -> None:
    table = judged(RELATIONS, seed=seed)
    assert clean(table), {key: dict(ended) for key, ended in table.items()}
    for (name, offered), ended in table.items():
        assert set(ended) <= {"HOLDS", "NOT_APPLICABLE", "SKIPPED"}, (name, offered, ended)
        assert ended["HOLDS"] > 0 or name != offered, (name, ended)


@pytest.mark.parametrize(
    "stack",
    [
        *(pytest.param(name, marks=() if name == "reference_tracker" else pytest.mark.long) for name in HONEST),
        "reference_fused",
    ],
)
def test_other_honest_stacks_run_on_whatever_they_are_given(stack: str) -> None:
    made = load_stack(stack)
    names = [r.id for r in FITTING if r.id in SYSTEM and r.id not in TIMED and incompatibility(r, made) is None]
    streams = [name for name in names if of_the_stream(name)]
    others = [name for name in names if name not in streams]
    radar = "radar" in made.topics
    given, seed = drive(2, radar)[:6], 12 if radar else 2  # follow-ups are made once a seed, and of one drive
    table = _played(made, others, given, seed) | _played(made, streams, given, seed, "two_pass")
    assert clean(table) and len(names) >= 3
    assert all(set(ended) == {"HOLDS"} for ended in table.values()), table


def test_an_answer_takes_long_where_time_goes_with_the_square_of_the_points() -> None:
    (name,), fault = TIMED, "density_of_every_pair"
    short = tuple(generate_drive(20, 3, replace(hdl_64e(), azimuths=150)))
    honest, faulty = (_played(planted(f), [name], short, seed=3) for f in ("", fault))
    assert clean(honest) and not violated(honest) and honest[name, name]["HOLDS"] == 1
    assert clean(faulty) and violated(faulty) == set(TELL[fault])


@pytest.mark.parametrize("fault", sorted(set(TELL) - {"density_of_every_pair"}))
def test_a_planted_fault_is_told(fault: str) -> None:
    table = judged(TELL[fault], fault)
    assert clean(table), {key: dict(ended) for key, ended in table.items()}
    assert violated(table) == set(TELL[fault]), {key: dict(ended) for key, ended in table.items()}
    assert not sum(table.values(), Counter()).keys() & {"ERROR", "INVALID"}


def test_every_relation_tells_a_fault_and_every_fault_is_told() -> None:
    assert sorted(name for names in TELL.values() for name in names) == sorted((*RELATIONS, *TIMED))
    assert set(FAULTS) == set(TELL) - {"intensity_threshold"}
    assert len(FAULTS) >= 19 and len(RELATIONS) >= 25 and len(SYSTEM) >= 5 and ACCELERATION
