# SPDX-License-Identifier: Apache-2.0
"""How a relation ended, and what the process says to its caller: the rules, apart from the counting."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mt_nodes.errors import ExitCode
from mt_nodes.statistics import ALPHA
from mt_nodes.verdict import Outcome, RelationOutcome


@dataclass(frozen=True)
class Tally:
    """Decided and violated pairs of one arm."""

    decided: int = 0
    violated: int = 0


@dataclass(frozen=True)
class Evidence:
    """All that the outcome of a relation depends on.

    Attributes:
        pairs, control, sham: tallies of the relation and of what its check said of control and sham.
        p_violations: that the violations exceed those of control and sham, adjusted; None when nothing was paired.
        p_directions: that lost and gained differ, adjusted; None when nothing was decided.
        test: how the p-values were made, for people.
        alpha: below this a p-value counts.
    """

    kind: str
    min_decided: int
    pairs: Tally
    control: Tally
    sham: Tally
    p_violations: float | None
    p_directions: float | None
    test: str
    alpha: float = ALPHA


def relation_outcome(e: Evidence) -> tuple[RelationOutcome, str]:
    """Return the outcome of a relation and why: the first rule that applies.

    Adjusted p-values serve every rule, so that what rule 1 lets pass as standing out fails by rule 4.
    """
    stands_out = e.p_violations is not None and e.p_violations < e.alpha
    alike = e.p_directions is None or e.p_directions >= e.alpha
    noisy = e.control.violated > 0 or e.sham.violated > 0
    background = f"control {e.control.violated} of {e.control.decided}, sham {e.sham.violated} of {e.sham.decided}"
    tested = f"adjusted p = {_p(e.p_violations)}, {e.test}"
    violated = _violated(e.pairs.violated)
    if noisy and not stands_out:
        return RelationOutcome.UNSTABLE, f"{violated} do not exceed {background} ({tested})"
    if e.kind == "necessary" and e.pairs.violated and not noisy and e.control.decided + e.sham.decided:
        return RelationOutcome.FAIL, f"necessary, {violated}, control and sham clean"
    if e.pairs.decided < max(1, e.min_decided):
        return RelationOutcome.INCONCLUSIVE, f"{e.pairs.decided} decided, at least {max(1, e.min_decided)} needed"
    if e.pairs.violated and not e.control.decided + e.sham.decided:
        return RelationOutcome.INCONCLUSIVE, f"{violated}, but no control or sham pair was decided to compare with"
    if e.pairs.violated and stands_out:
        return RelationOutcome.FAIL, f"{violated} stand out from {background} ({tested})"
    if e.pairs.violated and alike:
        return RelationOutcome.UNSTABLE, f"{violated}, losses and gains alike (adjusted p = {_p(e.p_directions)})"
    if e.pairs.violated:
        return RelationOutcome.PASS, f"{violated} do not stand out from {background} ({tested})"
    return RelationOutcome.PASS, f"no violated pair in {e.pairs.decided} decided"


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
        (errors > 0, ExitCode.INFRASTRUCTURE, f"{errors} pairs ended in ERROR"),
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
