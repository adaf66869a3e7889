# SPDX-License-Identifier: Apache-2.0
"""Judges pairs: the same code online, offline and in process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from mt_nodes.base.errors import PluginError
from mt_nodes.base.plugins import describe_failure, name_errors, refuse_return
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Wire
from mt_nodes.data.outputs import Detections, ImageBoxes, Output
from mt_nodes.data.verdict import Judgement, Outcome, Pair, Verdict
from mt_nodes.engine.label_comparison import with_truth
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.sequence import SequenceCheck
from mt_nodes.relations.relation import Relation, Suite


class AnswerStatus(str, Enum):
    """What became of the answer of one arm."""

    ANSWERED = "answered"
    SILENT = "silent"
    SKIPPED = "skipped"
    #: The input lacked what an answer needs: none will come.
    NO_ANSWER_EXPECTED = "unasked"
    #: The stack raised an exception at this input and goes on with the next one.
    FAILED = "failed"


@dataclass(frozen=True, eq=False)
class Answer:
    """What one arm said to one input; ``reason`` tells why it said nothing, ``wires`` are the messages as they came.

    What of it was taken for the answer only because it came when it did is named in ``by_arrival``. ``cpu_s``:
    processor time of the stack, 0 where that cannot be told of one answer.
    """

    status: AnswerStatus
    output: Output
    reason: str = ""
    wires: tuple[Wire, ...] = ()
    by_arrival: frozenset[str] = frozenset()
    cpu_s: float = 0.0

    @classmethod
    def nothing(cls, status: AnswerStatus, reason: str) -> Answer:
        """Return an answer without output."""
        return cls(status, Output(), reason)


@dataclass(frozen=True)
class Offer:
    """One follow-up to make of a bundle, and the relations whose checks judge it.

    For control and sham ``judges`` are all relations of the suite; otherwise it is the relation itself. ``draw``
    numbers the follow-ups that one relation makes of one bundle.
    """

    relation: Relation
    judges: tuple[Relation, ...]
    draw: int = 0

    def pairs(self, bundle: Bundle, sequences: bool = False) -> list[tuple[Pair, Relation]]:
        """Return the identity of every verdict that this offer owes of one bundle.

        Those who judge a sequence as a whole owe none, except of what could not be given to them (``sequences``).
        """
        judges = [j for j in self.judges if sequences or not isinstance(j.check, SequenceCheck)]
        return [(Pair(bundle.episode, bundle.index, self.relation.id, self._drawn(j)), j) for j in judges]

    @property
    def sequences(self) -> tuple[Relation, ...]:
        """The relations that judge a whole episode or segment."""
        return tuple(judge for judge in self.judges if isinstance(judge.check, SequenceCheck))

    def series_pair(self, episode: int, judge: Relation, first: int | None = None) -> Pair:
        """Return the identity of the verdict over a whole episode, or over a segment that began with a bundle."""
        return Pair(episode, first, self.relation.id, self._drawn(judge))

    def owed(self, bundle: Bundle) -> list[Pair]:
        """Return every pair that is not finished before this bundle was played."""
        return [
            *(pair for pair, _ in self.pairs(bundle)),
            *(self.series_pair(bundle.episode, judge) for judge in self.sequences),
        ]

    def _drawn(self, judge: Relation) -> str:
        return str(self.draw) if self.relation.role == "relation" else f"{self.draw}@{judge.id}"

    def followup_pair(self, bundle: Bundle) -> Pair:
        """Return the identity of the follow-up, as the ledger knows it."""
        return Pair(bundle.episode, bundle.index, self.relation.id, str(self.draw))


def offers(suite: Suite, draws: int = 1, only: Pair | None = None) -> tuple[Offer, ...]:
    """Return what is offered on every bundle: every relation ``draws`` times, control and sham first.

    ``only`` leaves nothing but the one that owes this pair.
    """
    everyone = suite.relations
    if only is not None:
        judges = tuple(r for r in everyone if r.id == only.judged_for)
        return tuple(Offer(r, judges, int(only.followup.draw)) for r in suite.all if r.id == only.relation)
    return tuple(Offer(r, (r,) if r.role == "relation" else everyone, draw) for draw in range(draws) for r in suite.all)


Knows = Callable[[Offer, Relation, Bundle], Mapping[str, Any]]
"""What is known of the scene of a bundle, for an offer that a relation judges."""


class Engine:
    """Turns two answers into verdicts.

    ``publishes_when_empty``: whether the stack says so when it sees nothing. ``knows``: what conditions are evaluated
    on beside what the bundle and the answer tell.
    """

    def __init__(self, publishes_when_empty: bool, knows: Knows = lambda *_: {}) -> None:
        self._publishes_when_empty, self._knows = publishes_when_empty, knows

    def judge(self, offer: Offer, source: Bundle, answers: tuple[Answer, Answer], effects: Effects) -> list[Verdict]:
        """Return one verdict for each pair of the offer, from the answers of the source and the follow-up arm."""

        def judgement(judge: Relation) -> Judgement:
            try:
                return self._judge(judge_for(offer, judge), self._known(offer, judge, source), answers, effects)
            except PluginError as error:
                return Judgement(Outcome.ERROR, reason=str(error))

        verdicts = [verdict_on(source, pair, judgement(judge)) for pair, judge in offer.pairs(source)]
        if source.truth is None or offer.relation.role != "relation" or effects.invented:
            return verdicts
        outputs = answers[0].output, answers[1].output
        return [with_truth(verdict, offer.relation, source, outputs, effects) for verdict in verdicts]

    def _known(self, offer: Offer, judge: Relation, source: Bundle) -> Bundle:
        """Return the bundle with what is known beforehand. Raises PluginError: finding that out failed."""
        try:
            facts = self._knows(offer, judge, source)
        except Exception as error:
            raise PluginError(f"the facts of bundle {source.index} failed: {type(error).__name__}: {error}") from error
        return replace(source, facts=facts) if facts else source

    def without_followup(
        self, offer: Offer, source: Bundle, outcome: Outcome, reason: str, sequences: bool = False
    ) -> list[Verdict]:
        """Return the verdicts of an offer whose follow-up was not (or not honestly) made or sent."""
        pairs = offer.pairs(source, sequences)
        return [verdict_on(source, pair, Judgement(outcome, reason=reason)) for pair, _ in pairs]

    def broken_off(self, offer: Offer, source: Bundle, reason: str) -> list[Verdict]:
        """Return the verdicts of an offer during which the stack came to its end: ERROR, of its series as well."""
        ended = Judgement(Outcome.ERROR, reason=reason)
        series = [Verdict(offer.series_pair(source.episode, j), source.stamp_ns, ended) for j in offer.sequences]
        return [*self.without_followup(offer, source, Outcome.ERROR, reason), *series]

    def _judge(self, judge: Relation, bundle: Bundle, answers: tuple[Answer, Answer], effects: Effects) -> Judgement:
        source, followup = answers
        if failed := failures(answers):
            return Judgement(Outcome.ERROR, reason=failed)
        if source.status is AnswerStatus.SILENT:
            both = followup.status is AnswerStatus.SILENT
            outcome = Outcome.UNPAIRED_BOTH if both else Outcome.UNPAIRED_SOURCE
            return Judgement(outcome, reason=f"source arm: {source.reason}")
        for answer in answers:
            if answer.status in (AnswerStatus.SKIPPED, AnswerStatus.NO_ANSWER_EXPECTED):
                return Judgement(Outcome.SKIPPED, reason=answer.reason)
        for name, answer in (("source", source), ("follow-up", followup)):
            if nonsense := _nonsense(answer.output):
                return Judgement(Outcome.ERROR, reason=f"the {name} output has {nonsense}")
        if effects.invented:
            return Judgement(Outcome.NOT_APPLICABLE, reason=effects.invented)
        if (unmet := unmet_condition(judge, bundle, source.output)) is not None:
            return Judgement(Outcome.NOT_APPLICABLE, reason=unmet)
        if followup.status is AnswerStatus.SILENT:
            return self._silent(judge, bundle, answers, effects)
        return checked(judge, bundle, source.output, followup.output, effects)

    def _silent(self, judge: Relation, bundle: Bundle, answers: tuple[Answer, Answer], effects: Effects) -> Judgement:
        """A follow-up arm that said nothing although its stack says so when it sees nothing has lost everything."""
        source, followup = answers
        if not self._publishes_when_empty:
            return Judgement(Outcome.UNPAIRED_FOLLOWUP, reason=f"follow-up arm: {followup.reason}")
        silent = f"the follow-up arm was silent while the source arm answered ({followup.reason})"
        check = judge.check
        if check is None or check.needs != ("detections",) or source.output.detections is None:
            return Judgement(Outcome.VIOLATED, reason=silent)
        nothing = Detections.none(source.output.detections.frame_id, None)
        judgement = checked(judge, bundle, source.output, Output(detections=nothing), effects)
        if judgement.outcome is Outcome.HOLDS and not check.silence_means_no_obstacles:
            return Judgement(Outcome.VIOLATED, reason=silent)
        if judgement.outcome is not Outcome.VIOLATED:
            return judgement
        fields = ("measured", "bound", "margin", "unit", "lost", "gained", "detail")
        return Judgement(Outcome.VIOLATED, reason=silent, **{name: getattr(judgement, name) for name in fields})


def verdict_on(source: Bundle, pair: Pair, judgement: Judgement) -> Verdict:
    """Return the verdict of a pair of one bundle, marked with the scene where that began earlier."""
    return Verdict(pair, source.stamp_ns, judgement, {} if source.scene is None else {"scene": source.scene})


def judge_for(offer: Offer, judge: Relation) -> Relation:
    """Return who judges an offer: control and sham are judged by what the relation's check asks of them."""
    if offer.relation.role == "relation" or judge.check is None:
        return judge
    with name_errors(judge.check, "background"):
        return replace(judge, check=judge.check.background)


def unmet_condition(judge: Relation, bundle: Bundle, source: Output) -> str | None:
    """Return why a relation does not apply to a source output; None if all its conditions are met.

    Raises PluginError: a condition failed.
    """
    for condition in judge.given:
        with name_errors(condition, "unmet"):
            unmet = condition.unmet(bundle, source)
        refuse_return(condition, "unmet", unmet, str, type(None))
        if unmet is not None:
            return unmet
    return None


def failures(answers: Iterable[Answer]) -> str:
    """Say at which answers the stack raised an exception; empty: at none."""
    return "; ".join(dict.fromkeys(a.reason for a in answers if a.status is AnswerStatus.FAILED))


#: Scores of 16 bits may be a little above 1.
_ROUNDING = 0.01


def _nonsense(output: Output) -> str | None:
    """Say what of an answer means nothing: no condition may pass over it as if it had not been said."""
    predicted = None if output.predictions is None else output.predictions.objects
    objects_of = (output.detections, output.tracks, predicted)
    for objects, what in (*((part, "obstacles") for part in objects_of), (output.boxes, "boxes")):
        if objects is not None and (bad := int((~objects.finite).sum())):
            return f"{bad} of {len(objects)} {what} with numbers that are not finite" + _or_order(objects)
        # Of percent, or of logits, nothing would ever be below the threshold from which on it answers.
        if objects is not None and (most := objects.score.max(initial=0.0)) > 1.0 + _ROUNDING:
            return f"{what} with a score of up to {most:g}, expected 0 to 1"
    if output.control is not None and (endless := output.control.endless):
        return f"a command without a finite {', '.join(endless)}"
    if output.path is not None and (bad := int((~np.isfinite(output.path.pose[:, :2]).all(axis=1)).sum())):
        return f"{bad} of {len(output.path.pose)} places of its path with numbers that are not finite"
    return _perception_nonsense(output)


def _perception_nonsense(output: Output) -> str | None:
    for part in (output.predictions, output.free_space):
        if part is not None and part.broken:
            return part.broken
    if output.lanes is not None and (bad := int((~np.isfinite(output.lanes.point_m).all(axis=1)).sum())):
        return f"{bad} of {len(output.lanes)} places of its lanes with numbers that are not finite"
    if output.signals is None:
        return None
    if bad := int((~np.isfinite(output.signals.score)).sum()):
        return f"{bad} of {len(output.signals)} traffic lights with a score that is not finite"
    if (most := output.signals.score.max(initial=0.0)) > 1.0 + _ROUNDING:
        return f"traffic lights with a score of up to {most:g}, expected 0 to 1"
    return None


def _or_order(objects: Detections | ImageBoxes) -> str:
    return ", or edges in the wrong order" if isinstance(objects, ImageBoxes) else ""


def checked(judge: Relation, bundle: Bundle, source: Output, followup: Output, effects: Effects) -> Judgement:
    """Return what a relation's check says of two outputs; a part that it needs and misses is an ERROR."""
    check = judge.check
    if check is None:
        raise ValueError(f"relation '{judge.id}' has no check and cannot judge")
    for name, output in (("source", source), ("follow-up", followup)):
        missing = [need for need in check.needs if getattr(output, need) is None]
        if missing:
            return Judgement(Outcome.ERROR, reason=f"the {name} arm's answer has no {', '.join(missing)}")
    return guarded(check, "judge", lambda: check.judge(source, followup, effects, bundle))


def guarded(check: Check, method: str, judge: Callable[[], Judgement]) -> Judgement:
    """Return what a method of a check says; a user's check that fails must not end the run: its pair tells of it."""
    try:
        judgement = judge()
        refuse_return(check, method, judgement, Judgement)
    except PluginError as error:
        return Judgement(Outcome.ERROR, reason=str(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return Judgement(Outcome.ERROR, reason=str(PluginError(describe_failure(check, method, error))))
    return judgement
