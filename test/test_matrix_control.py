# SPDX-License-Identifier: Apache-2.0
"""Relation x fault for commands: the honest driver holds every relation, each tells a planted fault of its own.

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
from test_matrix import Kept as KeptPairs
from test_matrix import MadeOnce, Table, clean, forgotten, of_the_stream, violated

from mt_nodes import plugins
from mt_nodes.arms import CallableArm
from mt_nodes.frames import Bundle
from mt_nodes.lockstep import Lockstep
from mt_nodes.open_loop import commands
from mt_nodes.relations import load_suite, shipped_relations
from mt_nodes.runs import unfit
from mt_nodes.scene.drive import CLOUD_TOPIC, generate_drive
from mt_nodes.scene.lidar import hdl_64e
from mt_nodes.stacks import load_stack

__all__ = ["forgotten"]

STACK = load_stack("reference_driver")
RELATIONS = tuple(r.id for r in shipped_relations() if r.role == "relation" and commands(r) and unfit(r, STACK) is None)
FAULTS = tuple(name for name, cls in plugins.catalogue("faults").items() if cls.stack == "driver")  # type: ignore[attr-defined]
#: Bundles of each drive, by its seed: long enough for slow faults, shorter than what is judged after the arms agreed.
DRIVES = {1: 12, 2: 8}
#: The relations that tell a fault.
TELL = {
    "brakes_for_constant_bearing": ("rider_beside_keeps_current",),
    "brakes_on_or_off": ("person_ahead_jerk",),
    "closer_on_the_left": ("cloud_mirrored_steering", "cloud_mirrored_path"),
    "clouds_counted": ("frames_repeated_keep_current", "rate_reduced_keeps_current"),
    "distance_by_returns": ("density_halved_keeps_current", "person_ahead_of_half_density"),
    "evidence_by_returns": ("person_ahead_brake_onset", "person_ahead_reaction_time", "person_ahead_slows_down"),
    "integrator_not_reset": ("clock_stepped_30s_steering",),
    "intensity_threshold": ("fog_not_faster",),
    "nearest_return_ahead": ("stray_returns_ahead_keep_current",),
    "nearest_return_beside": ("noise_beside_lane_keeps_current",),
}
#: Half as many points as the usual LiDAR's, and a fault of the driver's eyes, so strong that it takes whom it follows.
PARAMS: dict[str, dict[str, Any]] = {"distance_by_returns": {"at_10m": 85.0}, "intensity_threshold": {"weakest": 40.0}}


class Kept(KeptPairs):
    """Keeps verdicts over sequences with the others."""

    def series(self, judged: Sequence[Any]) -> None:
        self.verdicts([verdict for verdict, _ in judged], None)


@cache
def drive(seed: int) -> tuple[Bundle, ...]:
    return tuple(generate_drive(DRIVES[seed], seed, replace(hdl_64e(), azimuths=900)))


def judged(names: Sequence[str], fault: str = "", seed: int = 1) -> Table:
    """Judge the driver, perhaps with a fault in it, by some relations, control and sham."""
    streams = tuple(name for name in names if of_the_stream(name))
    others = tuple(name for name in names if name not in streams)
    return {**_played(others, fault, seed, "twin"), **_played(streams, fault, seed, "two_pass")}


def _played(names: Sequence[str], fault: str, seed: int, mode: str) -> Table:
    if not names:
        return {}
    made = replace(STACK, params={"faults": [{fault: PARAMS.get(fault, {})}]} if fault else {})
    source = CallableArm("source", made, frozenset({CLOUD_TOPIC}))
    followup = CallableArm("followup", made, frozenset({CLOUD_TOPIC})) if mode == "twin" else source
    kept, suite, drawn_by = Kept(), load_suite(names), 100 + seed
    loop = Lockstep(
        suite,
        drawn_by,
        kept,  # type: ignore[arg-type]
        mode=mode,
        stateless=False,
        publishes_when_empty=True,
        prepare=MadeOnce(suite, drawn_by),
    )
    loop.run([lambda: iter(drive(seed))], source, followup)
    assert {name for name, _ in kept.table} == set(names)
    return kept.table


@pytest.mark.parametrize("seed", DRIVES)
def test_the_honest_driver_holds_every_relation(seed: int) -> None:
    table = judged(RELATIONS, seed=seed)
    assert clean(table), {key: dict(ended) for key, ended in table.items()}
    for (name, offered), ended in table.items():
        assert set(ended) <= {"HOLDS", "NOT_APPLICABLE", "SKIPPED"}, (name, offered, ended)
        assert ended["HOLDS"] > 0 or name != offered, (name, ended)


@pytest.mark.parametrize("fault", TELL)
def test_a_planted_fault_is_told(fault: str) -> None:
    table = judged(TELL[fault], fault)
    assert clean(table), {key: dict(ended) for key, ended in table.items()}
    assert violated(table) == set(TELL[fault]), {key: dict(ended) for key, ended in table.items()}
    assert not sum(table.values(), Counter()).keys() & {"ERROR", "INVALID"}


def test_every_relation_tells_a_fault_and_every_fault_is_told() -> None:
    assert sorted(name for names in TELL.values() for name in names) == sorted(RELATIONS)
    assert set(FAULTS) == set(TELL) - {"intensity_threshold"}
    assert len(FAULTS) >= 9 and len(RELATIONS) >= 15
