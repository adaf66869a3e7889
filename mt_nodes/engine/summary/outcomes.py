# SPDX-License-Identifier: Apache-2.0
"""How a relation ended, and what the process says to its caller: the rules, apart from the counting."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mt_nodes.base.errors import ExitCode
from mt_nodes.base.stats.intervals import ALPHA
from mt_nodes.base.wording import counted
from mt_nodes.data.verdict import Outcome, RelationOutcome

#: Why no test counts where pairs were chosen by what was found.
CHOSEN = "more was judged where violations were found, so no test counts; a replay without --explore decides"


@dataclass(frozen=True)
class PairTally:
    """Decided and violated pairs of one arm."""

    decided: int = 0
    violated: int = 0


@dataclass(frozen=True)
class RelationEvidence:
    """All that the outcome of a relation depends on.

    Attributes:
        kind, min_decided: as its file states them.
        frames: in which a pair was decided; draws of one frame are no further frames. unit: what one of them is.
        pairs, control, sham: tallies of the relation and of what its check said of control and sham.
        p_background: that the violations exceed those of control and sham, tested alone; None when nothing was paired.
        p: that they stand out, tested alone: from control and sham, and where a rate is tolerated from that, too.
        p_adjusted: the same, adjusted for the relations that are tested together.
        test, test_background, test_alone: how ``p_adjusted``, ``p_background`` and ``p`` were made, for people.
        more: how much more input like this would decide, for people; empty where none would.
        demands_of_itself: whether the check demands something that a stack's own flicker has no part in.
        tolerated_rate: share of violated pairs that an ``expected`` relation allows, None where it states none.
        upper: upper end of the 95 % interval of that share, None where nothing was decided.
        alpha: below this a p-value counts.
        biased: whether pairs were chosen by what others had come to, so that no rate and no test counts.
    """

    kind: str
    min_decided: int
    frames: int
    pairs: PairTally
    control: PairTally
    sham: PairTally
    p_background: float | None
    p: float | None
    p_adjusted: float | None
    test: str
    test_background: str = ""
    test_alone: str = ""
    more: str = ""
    demands_of_itself: bool = False
    tolerated_rate: float | None = None
    upper: float | None = None
    alpha: float = ALPHA
    unit: str = "frame"
    biased: bool = False

    @property
    def least(self) -> int:
        """So many frames have to be decided."""
        return max(1, self.min_decided)

    @property
    def noisy(self) -> bool:
        """Whether control or sham are violated."""
        return self.control.violated > 0 or self.sham.violated > 0

    @property
    def compared(self) -> bool:
        """Whether there is something that violations can be held against."""
        return self.control.decided + self.sham.decided > 0

    @property
    def seldom(self) -> bool:
        """Whether so few pairs are violated that more like these would show that the relation tolerates them."""
        rate = self.tolerated_rate
        return rate is not None and not self.noisy and self.pairs.violated <= rate * self.pairs.decided

    @property
    def tolerable(self) -> bool:
        """Whether the relation states how many violations it allows, and there are surely no more."""
        if self.tolerated_rate is None or self.upper is None or self.kind != "expected" or self.noisy or self.biased:
            return False
        return self.upper <= self.tolerated_rate

    def below(self, p: float | None) -> bool:
        """Whether a p-value counts."""
        return p is not None and p < self.alpha and not self.biased


def relation_outcome(e: RelationEvidence) -> tuple[RelationOutcome, str]:
    """Return the outcome of a relation and why: the first rule that applies (docs/verdicts.md has the table).

    Where pairs are violated, only a rate that the relation itself tolerates makes it PASS. Other relations of the run
    count in ``p_adjusted`` alone, so they move a relation between FAIL and INCONCLUSIVE and nowhere else. What the
    stack gained has no part in it.
    """
    violated, background = _violated(e.pairs.violated), _background(e)
    if e.noisy and e.biased:
        return RelationOutcome.UNSTABLE, f"{violated}, beside {background}; {CHOSEN}"
    if e.noisy and not e.below(e.p_background):
        tested = f"p = {_p(e.p_background)}, {e.test_background or e.test}"
        return RelationOutcome.UNSTABLE, f"{violated} {_do(e)} not exceed {background} ({tested})"
    if e.kind == "necessary" and e.pairs.violated and not e.noisy and (e.compared or e.demands_of_itself):
        clean = "control and sham clean" if e.compared else "which its check finds without control or sham"
        return RelationOutcome.FAIL, f"necessary, {violated}, {clean}"
    if e.frames < e.least:
        return RelationOutcome.INCONCLUSIVE, f"{counted(e.frames, e.unit)} decided, at least {e.least} needed"
    if not e.pairs.violated:
        return RelationOutcome.PASS, f"no violated pair in {e.pairs.decided} decided"
    if e.tolerable:
        return RelationOutcome.PASS, f"{violated}, {_p(e.upper)} of pairs at most, {e.tolerated_rate:g} tolerated"
    if e.biased:
        return RelationOutcome.INCONCLUSIVE, f"{violated} {_do(e)} not tell a rate: {CHOSEN}"
    tested = f"p = {_p(e.p)}, {e.test_alone}; adjusted p = {_p(e.p_adjusted)}, {e.test}"
    if e.test_alone in ("", e.test):
        tested = f"p = {_p(e.p)}, adjusted p = {_p(e.p_adjusted)}, {e.test}"
    if e.below(e.p) and e.below(e.p_adjusted):
        return RelationOutcome.FAIL, f"{violated} {_stand(e)} out from {background} ({tested})"
    return RelationOutcome.INCONCLUSIVE, f"{violated} {_why_undecided(e, background)} ({tested})"


def missing_input(e: RelationEvidence, outcome: RelationOutcome) -> str:
    """Return how much more input would decide a relation that is INCONCLUSIVE, empty where none would."""
    if outcome is not RelationOutcome.INCONCLUSIVE:
        return ""
    return counted(e.least - e.frames, f"more {e.unit}") if e.frames < e.least else e.more


def _background(e: RelationEvidence) -> str:
    """Return what violations are held against, for people."""
    arms = f"control {e.control.violated} of {e.control.decided}, sham {e.sham.violated} of {e.sham.decided}"
    rate = "" if e.tolerated_rate is None else f"the tolerated rate of {e.tolerated_rate:g}"
    return " and ".join(filter(None, [arms if e.compared or not rate else "", rate]))


def _why_undecided(e: RelationEvidence, background: str) -> str:
    """Return why violations neither fail a relation nor count as the stack's flicker, and what would decide."""
    more = f"; {e.more} like these would decide" if e.more else ""
    one = e.pairs.violated == 1
    if e.p is None:
        return (
            f"{'has' if one else 'have'} nothing to compare with: no control or sham pair was decided on the same "
            "frames, and the relation states no tolerated_rate"
        )
    if e.below(e.p):
        alone = "by itself" if one else "by themselves"
        return f"{_stand(e)} out from {background} {alone}, but not beside the other relations of the run{more}"
    if e.seldom:
        within = f"{'is' if one else 'are'} within the tolerated rate of {e.tolerated_rate:g}"
        return f"{within}, but of so little input the true rate could be as high as {_p(e.upper)}{more}"
    return f"{_do(e)} not stand out from {background}{more}"


def _do(e: RelationEvidence) -> str:
    return "does" if e.pairs.violated == 1 else "do"


def _stand(e: RelationEvidence) -> str:
    return "stands" if e.pairs.violated == 1 else "stand"


def exit_code(
    outcomes: Mapping[str, int],
    relations: Mapping[str, RelationOutcome],
    *,
    infrastructure: str | None = None,
    interrupted: bool = False,
    isolation: str | None = None,
    waived: Collection[str] = (),
) -> tuple[ExitCode, str]:
    """Return what the process says to its caller, the first that applies, and why; a ``waived`` FAIL does not count."""
    errors = outcomes.get(Outcome.ERROR.value, 0)
    counting = {name: outcome for name, outcome in relations.items() if name not in waived}
    failed = [name for name, outcome in counting.items() if outcome is RelationOutcome.FAIL]
    undecided = [name for name, outcome in counting.items() if outcome is not RelationOutcome.PASS]
    cases: tuple[tuple[bool, ExitCode, str], ...] = (
        (interrupted, ExitCode.INTERRUPTED, "interrupted"),
        (isolation is not None, ExitCode.ISOLATION, f"refused: {isolation}"),
        (infrastructure is not None, ExitCode.INFRASTRUCTURE, f"infrastructure: {infrastructure}"),
        (errors > 0, ExitCode.INFRASTRUCTURE, f"{counted(errors, 'pair')} ended in ERROR"),
        (bool(failed), ExitCode.FAIL, f"FAIL: {', '.join(failed)}"),
        (not relations, ExitCode.UNDECIDED, "no relation was offered, so nothing was decided"),
        (bool(undecided), ExitCode.UNDECIDED, f"inconclusive or unstable: {', '.join(undecided)}"),
    )
    for applies, code, why in cases:
        if applies:
            return code, why
    if waived:
        return ExitCode.PASS, f"all relations PASS, except FAIL (waived): {', '.join(waived)}"
    return ExitCode.PASS, "all relations PASS"


def _violated(count: int) -> str:
    return "one violated pair" if count == 1 else f"{count} violated pairs"


def _p(value: float | None) -> str:
    return "none" if value is None else f"{value:.2g}"
