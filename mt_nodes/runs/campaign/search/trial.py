# SPDX-License-Identifier: Apache-2.0
"""One trial of a search: a relation with some values of its parameters, played, and how near it came to a violation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mt_nodes.base.plain_data import PlainData
from mt_nodes.data.verdict import SCHEMA, Outcome, Verdict

HOLDS, VIOLATED, UNDECIDED, REFUSED = "HOLDS", "VIOLATED", "UNDECIDED", "REFUSED"
#: Every violation is better than every trial that holds, and of violations the weaker one.
_BELOW_ALL_MARGINS = -2.0


@dataclass(frozen=True)
class Trial(PlainData):
    """What was tried and what came of it.

    Attributes:
        number: in the order of the search, from 0.
        stage: of the search that asked for it: ``ends``, ``bisect``, ``probe``, ``sample``, ``ray``, ``axis``.
        fractions: of the axes, 0 (weak) to 1 (strong).
        values: of the parameters, by name.
        strength: of the change, 0 to 1: the mean of the fractions of those axes that are strengths.
        outcome: HOLDS, VIOLATED (in more than half of the repeats), UNDECIDED (no pair was decided) or REFUSED (the
            mutation has no such values).
        robustness: least relative margin over the pairs, mean over the repeats; None where none was decided.
        outcomes: of the pairs, counted over all repeats.
        pair: the pair with the least margin, of a violated trial one that is violated; empty where none was decided.
        reason: of that pair, or why nothing was decided.
    """

    number: int
    stage: str
    fractions: tuple[float, ...]
    values: Mapping[str, float]
    strength: float
    outcome: str
    robustness: float | None = None
    outcomes: Mapping[str, int] = field(default_factory=dict)
    pair: str = ""
    reason: str = ""

    @property
    def violated(self) -> bool:
        """Whether it violates the relation."""
        return self.outcome == VIOLATED

    @property
    def objective(self) -> float | None:
        """What a sampler is to make small: the robustness of what holds, the strength of what does not.

        None where nothing was decided.
        """
        if self.violated:
            return _BELOW_ALL_MARGINS + self.strength
        return self.robustness if self.outcome == HOLDS else None

    def as_plain(self) -> dict[str, Any]:
        """Return the line of the journal."""
        return {"schema": SCHEMA, "type": "trial", **super().as_plain()}


def robustness_of(verdict: Verdict) -> float | None:
    """Return the signed margin of a decided pair as a share of its bound; as it is where the bound is 0 or none.

    A pair that is violated without anything measured (an arm fell silent) has -1.
    """
    judgement = verdict.judgement
    if not judgement.outcome.decided:
        return None
    if judgement.margin is None:
        return -1.0
    return float(judgement.margin / abs(judgement.bound) if judgement.bound else judgement.margin)


def summed_up(
    repeats: Sequence[Sequence[Verdict]], number: int, stage: str, fractions: Sequence[float], **about: Any
) -> Trial:
    """Return the trial that these verdicts, one list a repeat, come to; ``about``: its values and strength."""
    counts = Counter(v.outcome.value for verdicts in repeats for v in verdicts)
    worst = [_worst(verdicts) for verdicts in repeats]
    decided = [(r, v) for found in worst if found is not None for r, v in (found,)]
    head: dict[str, Any] = {
        "number": number,
        "stage": stage,
        "fractions": tuple(fractions),
        "outcomes": dict(sorted(counts.items())),
    }
    if not decided:
        reasons = Counter(v.judgement.reason for verdicts in repeats for v in verdicts)
        why = reasons.most_common(1)[0][0] if reasons else "there was nothing to judge"
        return Trial(outcome=UNDECIDED, reason=why, **head, **about)
    violated = sum(any(v.outcome is Outcome.VIOLATED for v in verdicts) for verdicts in repeats)
    least = min(decided, key=lambda found: (found[0], str(found[1].pair)))[1]
    return Trial(
        outcome=VIOLATED if 2 * violated > len(repeats) else HOLDS,
        robustness=sum(r for r, _ in decided) / len(decided),
        pair=str(least.pair),
        reason=least.judgement.reason,
        **head,
        **about,
    )


def _worst(verdicts: Sequence[Verdict]) -> tuple[float, Verdict] | None:
    """The decided pair with the least margin; of equal ones the first."""
    rated = [(r, v) for v in verdicts if (r := robustness_of(v)) is not None]
    return min(rated, key=lambda found: found[0]) if rated else None


@dataclass(frozen=True)
class Confirmation:
    """Whether a violation came again on the same input.

    ``violated``, ``plays``: how often the pair of the trial was violated, of how many plays. ``control``: how often the
    control was, which changes nothing, on the same bundle and by the same check.
    """

    trial: int
    violated: int
    plays: int
    control: int
    needed: int

    @property
    def confirmed(self) -> bool:
        """Whether it is a violation of the relation: it comes again, and not without the change."""
        return self.violated >= self.needed and not self.control
