# SPDX-License-Identifier: Apache-2.0
"""Collects what both arms say over an episode or a segment, for checks that judge it as a whole."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from mt_nodes.base.errors import MtError, PluginError
from mt_nodes.base.plugins import name_errors
from mt_nodes.data.arm_series import ANSWER_MS, ArmSeries, SeriesWindow
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Control, Diagnostics
from mt_nodes.data.verdict import Judgement, Outcome, Verdict
from mt_nodes.engine.followups import FollowupPlan
from mt_nodes.engine.judging import Answer, AnswerStatus, Offer, failures, guarded, judge_for, unmet_condition
from mt_nodes.engine.processor_time import ProcessorTime
from mt_nodes.relations.checks.sequence import PairMeasure, SequenceCheck
from mt_nodes.relations.relation import Relation

#: What has another sign in a mirror.
_TURNING = ("steering_rad", "yaw_rate_radps")
FinalDiagnostics = tuple[Diagnostics | None, Diagnostics | None]
"""What source and follow-up arm told of errors after their last answers."""
NO_DIAGNOSTICS: FinalDiagnostics = (None, None)


class SeriesVerdict(NamedTuple):
    """The verdict of a series, and what it was judged by."""

    verdict: Verdict
    stretches: tuple[SeriesWindow, ...]


@dataclass(eq=False)
class _Arm:
    """Columns of one arm that grow."""

    reads: tuple[str, ...]
    offered: array[int] = field(default_factory=lambda: array("b"))
    answered: array[int] = field(default_factory=lambda: array("b"))
    errors: dict[str, int] | None = None

    def __post_init__(self) -> None:
        self.columns = {name: array("d") for name in self.reads}

    def add(self, answer: Answer, sign: float) -> None:
        row = len(self.offered)
        self.offered.append(answer.status in (AnswerStatus.ANSWERED, AnswerStatus.SILENT))
        self.answered.append(answer.status is AnswerStatus.ANSWERED)
        command = answer.output.control or Control(None)
        for name, column in self.columns.items():
            value = answer.output.answer_ms if name == ANSWER_MS else getattr(command, name)
            column.append(np.nan if value is None else value * (sign if name in _TURNING else 1.0))
        self.tell(answer.output.diagnostics, row)

    def tell(self, diagnostics: Diagnostics | None, row: int) -> None:
        if diagnostics is not None:
            self.errors = self.errors or {}
            for status in diagnostics.errors:
                self.errors.setdefault(status, row)

    def course(self, rows: slice) -> ArmSeries:
        begin, end, _ = rows.indices(len(self.offered))
        errors = self.errors and {name: at - begin for name, at in self.errors.items() if begin <= at < end}
        return ArmSeries(
            np.array(self.offered[rows], dtype=bool),
            np.array(self.answered[rows], dtype=bool),
            {name: np.array(column[rows]) for name, column in self.columns.items()},
            errors,
        )


class _Collected:
    """What one relation's check will be given of one offer."""

    def __init__(self, offer: Offer, judge: Relation, check: SequenceCheck, first: Bundle) -> None:
        self.offer, self.judge, self.check = offer, judge, check
        self.episode, self.first, self.stamp_ns = first.episode, first.index, first.stamp_ns
        #: Of which all of its bundles are, None: of more than one, or of one that begins here.
        self.scene = first.scene
        self.failed = self.broken = self.nothing = self.invented = ""
        self._stamps, self._changed = array("q"), array("b")
        self._arms = _Arm(check.reads), _Arm(check.reads)
        self._measured = {name: array("d") for name in check.measures}
        self._measure: PairMeasure | None = None
        self._cuts = [0]

    def cut(self) -> None:
        if len(self._stamps) > self._cuts[-1]:
            self._cuts.append(len(self._stamps))
            self._measure = None

    def add(self, bundle: Bundle, answers: tuple[Answer, Answer], effects: Effects | None) -> None:
        self._stamps.append(bundle.stamp_ns)
        if self._measured:
            for column, value in zip(self._measured.values(), self._values(bundle, answers, effects), strict=True):
                column.append(value)
        self._changed.append(effects is not None)
        mirrored = effects is not None and effects.mirrored
        for arm, answer, sign in zip(self._arms, answers, (-1.0 if mirrored else 1.0, 1.0), strict=True):
            arm.add(answer, sign)

    def _values(self, bundle: Bundle, answers: tuple[Answer, Answer], effects: Effects | None) -> Sequence[float]:
        if any(answer.status is not AnswerStatus.ANSWERED for answer in answers):
            return [np.nan] * len(self._measured)
        try:
            with name_errors(self.check, "measure"):
                self._measure = self._measure or self.check.measure()
                return self._measure(answers[0].output, answers[1].output, effects or Effects(), bundle)
        except MtError as error:
            self.failed = self.failed or f"bundle {bundle.index}: {error}"
            return [np.nan] * len(self._measured)

    def end(self, final_diagnostics: FinalDiagnostics) -> None:
        for arm, diagnostics in zip(self._arms, final_diagnostics, strict=True):
            arm.tell(diagnostics, max(0, len(self._stamps) - 1))

    def stretches(self) -> tuple[SeriesWindow, ...]:
        ends = [*self._cuts[1:], len(self._stamps)]
        rows = [slice(begin, end) for begin, end in zip(self._cuts, ends, strict=True) if end > begin]
        return tuple(
            SeriesWindow(
                np.array(self._stamps[part], dtype=np.int64),
                np.array(self._changed[part], dtype=bool),
                self._arms[0].course(part),
                self._arms[1].course(part),
                {name: np.array(column[part]) for name, column in self._measured.items()},
            )
            for part in rows
        )


class Series:
    """The series of a run that goes on: :meth:`add` what is heard, :meth:`end` when an episode or a segment does.

    Of each instant numbers are kept: 8 bytes for each that a check reads, of each arm, and 13 more.
    ``whole``: whether a series is an episode; otherwise it is a segment, named by its first bundle. ``cpu``: takes in
    what judging takes.
    """

    def __init__(self, whole: bool = True, cpu: ProcessorTime | None = None) -> None:
        self._whole, self._cpu = whole, cpu or ProcessorTime()
        self._collected: dict[tuple[str, int, str], _Collected] = {}

    def add(self, prepared: FollowupPlan, bundle: Bundle, answers: tuple[Answer, Answer]) -> None:
        """Take an instant in: what was sent, the bundle of the source, and the answers of both arms.

        What comes after an instant at which the arms were settling is another stretch. With what a model invented, a
        series ends. A series in which a follow-up was not what it should be is INVALID; one in which a plugin or a call
        of the stack failed is an ERROR.
        """
        offer, outcome = prepared.offer, prepared.outcome
        sent = outcome is None and answers[1].status in (AnswerStatus.ANSWERED, AnswerStatus.SILENT)
        effects = prepared.derived.effects if sent and prepared.derived else None
        for judge in offer.sequences:
            collected = self._of(offer, judge, bundle)
            if bundle.scene != collected.scene:
                collected.scene = None
            if outcome is Outcome.INVALID:
                collected.broken = collected.broken or f"bundle {bundle.index}: {prepared.reason}"
            unmet, failed = _unmet(judge, bundle, answers[0])
            if failed := failures(answers) or (prepared.reason if outcome is Outcome.ERROR else failed):
                collected.failed = collected.failed or f"bundle {bundle.index}: {failed}"
            collected.invented = collected.invented or (effects.invented if effects else "")
            collected.nothing = unmet or collected.invented or prepared.reason or collected.nothing
            if judge.id in prepared.settling:
                collected.cut()
            elif not (unmet or collected.invented):
                collected.add(bundle, answers, effects)

    def end(self, final_diagnostics: FinalDiagnostics = NO_DIAGNOSTICS) -> list[SeriesVerdict]:
        """Judge every series and begin anew; ``final_diagnostics`` count as told with the last answers."""
        for collected in self._collected.values():
            collected.end(final_diagnostics)
        verdicts = [self._metered_verdict(collected) for collected in self._collected.values()]
        self._collected = {}
        return verdicts

    def _of(self, offer: Offer, judge: Relation, bundle: Bundle) -> _Collected:
        key = (offer.relation.id, offer.draw, judge.id)
        if key not in self._collected:
            failed = ""
            try:
                check = judge_for(offer, judge).check
            except PluginError as error:
                check, failed = judge.check, str(error)
            assert isinstance(check, SequenceCheck), "the background of a check over a sequence is one, too"
            self._collected[key] = _Collected(offer, judge, check, bundle)
            self._collected[key].failed = failed
        return self._collected[key]

    def _metered_verdict(self, collected: _Collected) -> SeriesVerdict:
        with self._cpu.spent_on(collected.offer.relation.id):
            return self._verdict(collected)

    def _verdict(self, collected: _Collected) -> SeriesVerdict:
        stretches, first = collected.stretches(), None if self._whole else collected.first
        pair = collected.offer.series_pair(collected.episode, collected.judge, first)
        marks = {} if self._whole or collected.scene is None else {"scene": collected.scene}
        return SeriesVerdict(Verdict(pair, collected.stamp_ns, _judgement(collected, stretches), marks), stretches)


def _unmet(judge: Relation, bundle: Bundle, source: Answer) -> tuple[str, str]:
    """Return why an instant is not the relation's, and which condition failed; each is empty otherwise.

    Nothing is known of a silent arm.
    """
    if source.status is not AnswerStatus.ANSWERED:
        return "", ""
    try:
        return unmet_condition(judge, bundle, source.output) or "", ""
    except PluginError as error:
        return "", str(error)


def _judgement(collected: _Collected, stretches: Sequence[SeriesWindow]) -> Judgement:
    if collected.failed:
        return Judgement(Outcome.ERROR, reason=collected.failed)
    if collected.broken:
        return Judgement(Outcome.INVALID, reason=collected.broken)
    if not any(stretch.changed.any() for stretch in stretches):
        return Judgement(Outcome.NOT_APPLICABLE, reason=collected.nothing or "no follow-up was made")
    return worst([_checked(collected.check, stretch) for stretch in stretches])


def _checked(check: SequenceCheck, stretch: SeriesWindow) -> Judgement:
    if not stretch.source.answered.any():
        return Judgement(Outcome.UNPAIRED_SOURCE, reason="the source arm answered nothing")
    return guarded(check, "judge_series", lambda: check.judge_series(stretch))


def worst(judgements: Sequence[Judgement]) -> Judgement:
    """Return the judgement of all stretches together: an error, else the worst that was decided, else the first."""
    decided = [j for j in judgements if j.outcome.decided]
    errors = [j for j in judgements if j.outcome is Outcome.ERROR]
    if errors or not decided:
        return (errors or list(judgements))[0]
    lowest = min(decided, key=lambda j: -np.inf if j.margin is None else j.margin)
    if len(judgements) == 1:
        return lowest
    return replace(lowest, detail={**lowest.detail, "stretches": len(judgements), "decided": len(decided)})
