# SPDX-License-Identifier: Apache-2.0
"""``mt_nodes.judge``: what a relation says of two answers to one frame."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from mt_nodes.api.frames import Frame
from mt_nodes.api.mutate import ChangedFrame
from mt_nodes.api.verdict_places import AnyPlace, places_of, with_places
from mt_nodes.api.verdicts import NO_TRUTH
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.engine.judging import Answer, AnswerStatus, Engine, Offer
from mt_nodes.relations.checks.sequence import SequenceCheck
from mt_nodes.relations.relation import Relation, load_relation, of_stack
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.stack import Stack, load_stack


@dataclass(frozen=True)
class FrameVerdict:
    """What a relation says of two answers to one frame. It has no truth value: compare ``outcome``.

    Attributes:
        relation: its id.
        outcome: HOLDS, VIOLATED, NOT_APPLICABLE (nothing was demanded), ERROR, …
        reason: for people.
        lost, gained: objects that only the source or only the follow-up shows, as far as the check names places.
        judgement: all that the check says: what was measured, its bound, margin and unit.
    """

    relation: str
    outcome: Outcome
    reason: str
    lost: tuple[AnyPlace, ...]
    gained: tuple[AnyPlace, ...]
    judgement: Judgement

    def __bool__(self) -> NoReturn:
        raise TypeError(NO_TRUTH.format("FrameVerdict", 'such as verdict.outcome == "HOLDS"'))

    def __str__(self) -> str:
        return f"{self.relation}: {self.outcome.value}: {with_places(self.reason, self.lost, self.gained)}"


def judge(
    relation: str | os.PathLike[str],
    source: Any,
    followup: Any,
    frame: ChangedFrame,
    *,
    stack: str | os.PathLike[str] = "",
    settings: Mapping[str, Any] | None = None,
) -> FrameVerdict:
    """Judge the answers of a stack to a frame and to the changed frame.

    Args:
        relation: name or file of a relation.
        source: answer to ``frame.baseline or frame.source``: boxes (M, 7) ``x y z length width height yaw`` in metres
            and radians, or whatever a callable may return; None: there was no answer.
        followup: answer to ``frame``.
        frame: the changed frame; it knows what the change adds, removes, hides or moves, without which no answer can be
            judged.
        stack: name or file of the stack: its score thresholds, classes and conventions.
        settings: keys that a stack file would have, such as ``{"points_frame": "base_link"}``.

    Raises:
        UsageError: no such relation, one that does not judge single frames, or ``frame`` is no changed frame.
        InfrastructureError: an answer cannot be read.
    """
    if not isinstance(frame, ChangedFrame):
        got = "a frame that was not changed" if isinstance(frame, Frame) else f"{type(frame).__name__} {frame!r:.80}"
        raise UsageError(f"judge: frame: got {got}, expected the changed frame that mt_nodes.mutate returns")
    loaded = load_relation(os.fspath(relation))
    _refuse_others(loaded)
    judging = _stack(loaded, os.fspath(stack), settings or {}, frame.source)
    for_stack = of_stack(loaded, judging.traits)
    given = frame.baseline or frame.source
    answers = (_answer(source, judging, given), _answer(followup, judging, frame))
    engine = Engine(judging.publishes_when_empty)
    (verdict,) = engine.judge(Offer(for_stack, (for_stack,)), frame.source.bundle, answers, frame.effects)
    found = verdict.judgement
    return FrameVerdict(for_stack.id, found.outcome, found.reason, *places_of(found.detail), found)


def _refuse_others(relation: Relation) -> None:
    if relation.role != "relation":
        raise UsageError(f"'{relation.id}' is the {relation.role}, which the checks of other relations judge")
    if relation.loop:
        raise UsageError(f"'{relation.id}' judges drives in a closed loop; use `mt scenario`")
    if isinstance(relation.check, SequenceCheck):
        raise UsageError(f"'{relation.id}' judges whole drives, not single frames; use mt_nodes.replay")


def _stack(relation: Relation, name: str, settings: Mapping[str, Any], frame: Frame) -> Stack:
    """Return the stack whose answers are judged: the named one, or one that answers what the relation needs."""
    if name:
        return load_stack(name, settings)
    needs = relation.check.needs if relation.check else ()
    rows = {"callable": "your:stack", "inputs": dict.fromkeys(frame.sensors), "outputs": dict.fromkeys(needs)}
    return build(Stack, {"name": "judge", **rows, **settings}, "judge: settings")


def _answer(value: Any, stack: Stack, frame: Frame) -> Answer:
    """Return a value as an answer of the stack to a frame, with the checks of a hosted callable."""
    if value is None:
        return Answer.nothing(AnswerStatus.SILENT, "None was given")
    output = CallableHost(lambda data: value, stack, takes_stamp=False)(frame.lead, frame.bundle.transforms)
    return Answer(AnswerStatus.ANSWERED, output)
