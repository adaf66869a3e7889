# SPDX-License-Identifier: Apache-2.0
"""Relation x fault for the camera stack: the honest one holds every relation, every planted fault is told.

New relations and faults are in it by themselves. The loop and the arms are a replay's own; results are kept in memory.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest

from mt_nodes import plugins
from mt_nodes.arms import CallableArm
from mt_nodes.frames import Bundle
from mt_nodes.lockstep import Lockstep
from mt_nodes.mutations.stream.whole_stream import WholeStream
from mt_nodes.relations import CONTROL, SHAMS, load_relation, load_suite, sham_for, shipped_relations
from mt_nodes.results import Case
from mt_nodes.runs import unfit
from mt_nodes.scene.camera_rendering import CameraSensor
from mt_nodes.scene.drive import CAMERA_INFO_TOPIC, IMAGE_TOPIC, generate_drive
from mt_nodes.scene.lidar import hdl_64e
from mt_nodes.stacks import load_stack
from mt_nodes.verdict import Pair, Verdict

#: Frames of one drive, so far apart that they show other people; the road bends to the left.
FRAMES, BEND_1PM = (0, 12), 1.0 / 80.0
STACK = load_stack("reference_camera")
USUAL = CameraSensor()
RELATIONS = tuple(
    r.id
    for r in shipped_relations()
    if r.role == "relation"
    and "camera" in r.requires
    and unfit(r, STACK) is None
    and not any(isinstance(mutation, WholeStream) for mutation in r.mutate)
)
FAULTS = tuple(name for name, cls in plugins.catalogue("faults").items() if cls.stack == "camera")  # type: ignore[attr-defined]

#: The relations that tell a fault.
TELL = {
    "brightness_by_mean": ("brightness_raised_lane",),
    "colours_swapped": ("white_balance_lamps_lane",),
    "left_columns_lost": ("image_mirrored_steering", "image_mirrored_boxes"),
    "resolution_assumed": ("image_mirrored_steering",),
    "stale_frame_buffer": ("image_mirrored_steering", "image_mirrored_boxes"),
}
#: A camera like the usual one that sees more to both sides: a picture larger than what a fault assumes of sizes.
WIDER = CameraSensor(width=768, field_of_view_deg=2.0 * math.degrees(math.atan(384.0 / USUAL.focal_px)))
#: Expected relations that the honest stack does not hold on all frames, and why; on one of them it must.
MISSED = {
    "rain_camera_not_faster": "streaks hide the rider ahead from the people detector, and then nobody is in the way",
}
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

    def verdicts(self, verdicts: Sequence[Verdict], case: Case | None) -> Sequence[Verdict]:
        for v in verdicts:
            self.table.setdefault((v.pair.judged_for, v.pair.relation), Counter())[v.outcome.value] += 1
            self.reasons.append(f"{v.pair} {v.outcome.value} {v.judgement.reason}")
        return verdicts


@cache
def drive(camera: CameraSensor) -> tuple[Bundle, ...]:
    frames = FRAMES if camera == USUAL else FRAMES[:1]
    made = generate_drive(frames[-1] + 1, lidar=replace(hdl_64e(), azimuths=450), camera=camera, bend_1pm=BEND_1PM)
    return tuple(bundle for bundle in made if bundle.index in frames)


@cache
def judged(names: tuple[str, ...], fault: str = "", camera: CameraSensor = USUAL) -> Kept:
    """Judge the stack, perhaps with a fault in it, by some relations, control and sham."""
    made = replace(STACK, params={"faults": [fault]} if fault else {})
    topics = {IMAGE_TOPIC: STACK.topics["camera"][0], CAMERA_INFO_TOPIC: STACK.topics["camera_info"][0]}
    arm = CallableArm("source", made, topics)
    kept = Kept()
    suite = load_suite(names, sham_for(STACK.inputs))
    loop = Lockstep(
        suite,
        0,
        kept,  # type: ignore[arg-type]
        mode="twin",
        stateless=True,
        publishes_when_empty=True,
    )
    # One frame is enough to find a fault; what the honest stack holds, it must hold on all.
    loop.run([lambda: iter(drive(camera)[-1 if fault else 0 :])], arm, arm)
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


def test_the_honest_stack_holds_every_relation() -> None:
    kept = judged(RELATIONS)
    assert clean(kept), kept.reasons
    for name in RELATIONS:
        ended, reasons = kept.table[name, name], [reason for reason in kept.reasons if f"/{name}/" in reason]
        assert set(ended) <= {"HOLDS", "NOT_APPLICABLE", *(["VIOLATED"] if name in MISSED else [])}, reasons
        assert ended["HOLDS"] > 0, reasons


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != TOUCHY])
def test_a_planted_fault_is_told(fault: str) -> None:
    kept = judged(TELL[fault], fault, WIDER if fault == "resolution_assumed" else USUAL)
    assert clean(kept), kept.reasons
    assert violated(kept.table) == set(TELL[fault]), kept.reasons


def test_every_relation_can_be_violated() -> None:
    """What tells no other fault is violated by the touchiest one."""
    left = set(RELATIONS) - {name for names in TELL.values() for name in names}
    kept = judged(tuple(sorted(left)), TOUCHY)
    assert clean(kept), kept.reasons
    assert violated(kept.table) == left, left - violated(kept.table)


def test_what_is_named_here_is_there() -> None:
    assert {*TELL, TOUCHY} == set(FAULTS) and {name for names in TELL.values() for name in names} <= set(RELATIONS)
    assert all(load_relation(name).kind == "expected" for name in MISSED)
    assert len(FAULTS) >= 6 and len(RELATIONS) >= 28
