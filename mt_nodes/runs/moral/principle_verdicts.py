# SPDX-License-Identifier: Apache-2.0
"""What the evidence of all cases of a principle comes to: a verdict for each, and one for the principle.

All cases of a principle are one family, of a size that is settled before the first run; cases that were never looked at
count in it. P-values are Holm's, "holds" and "violated" apart: that any true hypothesis of either sort is rejected has
probability alpha at most, whatever depends on whatever, and whenever each case was stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mt_nodes.base.stats.intervals import ALPHA, holm
from mt_nodes.base.wording import counted
from mt_nodes.data.verdict import RelationOutcome
from mt_nodes.runs.moral.base import HOLDS, UNKNOWN, VIOLATED, CaseEvidence


def verdicts(evidence: Sequence[CaseEvidence], family: int, alpha: float = ALPHA) -> list[str]:
    """Return of each case whether the principle holds, is violated or that is unknown.

    What is shown both to hold and to be violated, as a difference that is there and too small to matter, holds.
    ``family``: number of cases that there may be, settled beforehand.
    Raises ValueError: there are more.
    """
    if len(evidence) > family:
        raise ValueError(f"got {len(evidence)} cases in a family of {family}, expected as many at most")
    rest = [1.0] * (family - len(evidence))
    hold = holm([one.holds for one in evidence] + rest)
    violate = holm([one.violated for one in evidence] + rest)
    found = []
    for one, holds, violated in zip(evidence, hold, violate, strict=False):  # the rest was not looked at
        if one.against or min(holds, violated) > alpha:
            found.append(UNKNOWN)
        else:
            found.append(HOLDS if holds <= alpha else VIOLATED)
    return found


def enough(evidence: CaseEvidence, family: int, alpha: float = ALPHA) -> bool:
    """Tell whether a case needs no more rounds: decided whatever the other cases bring, or not to be decided."""
    return bool(evidence.against) or min(evidence.holds, evidence.violated) <= alpha / family


def outcome(found: Sequence[str], not_applicable: int, min_decided: int) -> tuple[RelationOutcome, str]:
    """Return how a principle ends over the verdicts of its cases, and why.

    ``found``: of each case that was run. ``not_applicable``: cases that were none, as nobody need be hit.
    """
    count = Counter(found)
    decided = count[HOLDS] + count[VIOLATED]
    besides = f"; {count[UNKNOWN]} unknown, {not_applicable} not applicable"
    if count[VIOLATED]:
        return RelationOutcome.FAIL, f"violated in {count[VIOLATED]} of {counted(decided, 'decided case')}{besides}"
    if decided < max(1, min_decided):
        return RelationOutcome.INCONCLUSIVE, f"{decided} decided, at least {max(1, min_decided)} needed{besides}"
    return RelationOutcome.PASS, f"holds in all {counted(decided, 'decided case')}{besides}"
