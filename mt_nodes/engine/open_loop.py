# SPDX-License-Identifier: Apache-2.0
"""Commands of a stack that remembers are judged for a while after both arms agreed: recorded input obeys none of them.

A command does not change what is played next. What integrates its own commands (a speed controller, a filter over the
steering) goes on from what it believes it has done, so that two arms which were once told apart drift further apart
whatever they are given. What is judged is therefore the reaction; then both arms get the source until they agree.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from mt_nodes.base.errors import PluginError
from mt_nodes.base.plugins import name_errors
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Judgement, Outcome, Verdict
from mt_nodes.engine.judging import Answer, AnswerStatus, Offer, checked
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.sequence import SequenceCheck
from mt_nodes.relations.checks.steering_checks import KeepsCurrent
from mt_nodes.relations.relation import Relation

#: Parts of an output that a stack goes by itself, in a closed loop.
COMMANDS = frozenset({"control", "path"})
#: So many inputs in a row must be answered alike before the arms are said to agree.
AGREE = 5
_SAME = Effects()


def commands(judge: Relation) -> bool:
    """Tell whether a relation's check reads what the stack commands."""
    return judge.check is not None and bool(COMMANDS & set(judge.check.needs))


def agree(judge: Relation, bundle: Bundle, answers: tuple[Answer, Answer]) -> bool:
    """Tell whether two answers to one input are the same, as far as a relation and commands go.

    That is what the relation asks of control (a check over a sequence its ``agreement``), and that the commands are
    alike in both directions: where the follow-up may not be faster, it is not to be slower from the start either.
    """
    if any(answer.status is not AnswerStatus.ANSWERED for answer in answers):
        return False
    source, followup = (answer.output for answer in answers)
    try:
        relations = [replace(judge, check=check) for check in _sameness(judge)]
    except PluginError:  # of which every pair tells
        return False
    outcomes = [checked(one, bundle, source, followup, _SAME).outcome for one in relations]
    return Outcome.HOLDS in outcomes and set(outcomes) <= {Outcome.HOLDS, Outcome.NOT_APPLICABLE}


def _sameness(judge: Relation) -> list[Check]:
    assert judge.check is not None
    alike: list[Check] = [KeepsCurrent()] if "control" in judge.check.needs else []
    with name_errors(judge.check, "background"):
        own = judge.check.agreement if isinstance(judge.check, SequenceCheck) else judge.check.background
    return alike if own is None else [own, *alike]


@dataclass
class _Loop:
    """When one relation judges: from the instant ``since_ns`` on, None while the arms have not agreed yet.

    ``stretch``: the case that the last instant was of.
    """

    judge: Relation
    horizon_s: float
    fresh: bool = True
    agreed: int = 0
    since_ns: int | None = None
    stretch: int | None = None

    def settles(self, stamp_ns: int, stretch: int | None) -> bool:
        ends, self.stretch = stretch != self.stretch, stretch
        if self.fresh:
            self.fresh, self.since_ns = False, stamp_ns
        elif self.since_ns is not None and (ends or not 0 <= stamp_ns - self.since_ns <= self.horizon_s * 1e9):
            self.agreed, self.since_ns = 0, None
        return self.since_ns is None

    def rests(self, agreed: bool) -> None:
        """Nothing is offered: arms that were told apart may agree again, those that were not agree."""
        if self.since_ns is not None:
            self.agreed, self.since_ns = 0, None
        if not self.fresh:
            self.note_agreement(agreed)

    def note_agreement(self, agreed: bool) -> None:
        self.agreed = self.agreed + 1 if agreed else 0
        # The next instant is the first that is judged.
        self.fresh = self.agreed >= AGREE


class OpenLoop:
    """Says for one offer, instant by instant, who judges and who waits until the arms agree.

    ``offer``: what is offered; its episode begins with both arms fresh, which therefore agree. ``remembers``: whether
    the stack does; otherwise every instant is judged.
    """

    def __init__(self, offer: Offer, remembers: bool) -> None:
        judges = [judge for judge in offer.judges if remembers and commands(judge)]
        self._loops = [_Loop(judge, judge.check.open_loop_s) for judge in judges if judge.check]
        #: Whether the follow-up arm gets the source meanwhile: control and sham change nothing that matters.
        self.substitutes = offer.relation.role == "relation" and bool(self._loops)

    def settling(self, bundle: Bundle, stretch: int | None = None) -> frozenset[str]:
        """Return the ids of the relations that do not judge this instant; ask once for each, in order.

        ``stretch``: the case that it is of, by its first bundle: each begins with arms that agree.
        """
        return frozenset(loop.judge.id for loop in self._loops if loop.settles(bundle.stamp_ns, stretch))

    def note_answers(self, bundle: Bundle, answers: tuple[Answer, Answer], settling: Collection[str]) -> None:
        """Take in what both arms said to an instant at which these relations were settling."""
        for loop in self._loops:
            if loop.judge.id in settling and loop.since_ns is None:
                loop.note_agreement(agree(loop.judge, bundle, answers))

    def rests(self, bundle: Bundle, answers: Sequence[Answer]) -> None:
        """Take in what source and follow-up arm said to an instant between cases, which both are given as it is."""
        source, followup = answers
        for loop in self._loops:
            loop.rests(agree(loop.judge, bundle, (source, followup)))


def settling_reason(judge: Relation) -> str:
    """Say why an instant is not judged."""
    horizon_s = judge.check.open_loop_s if judge.check else 0.0
    return (
        f"settling: {horizon_s:g} s of commands are judged after the arms agreed on {AGREE} inputs in a row, for "
        "recorded input obeys no command and the arms drift apart"
    )


def settled(offer: Offer, verdicts: Sequence[Verdict], settling: Collection[str]) -> list[Verdict]:
    """Return the verdicts, SETTLING in place of those of relations that do not judge this instant."""
    reasons = {judge.id: settling_reason(judge) for judge in offer.judges if judge.id in settling}
    return [
        replace(v, judgement=Judgement(Outcome.SETTLING, reason=reasons[v.pair.judged_for]))
        if v.pair.judged_for in reasons
        else v
        for v in verdicts
    ]
