# SPDX-License-Identifier: Apache-2.0
"""Rates of valid follow-ups and of violations: AutoMT's tables VIII and IX, with intervals and tests.

The paper divides violations of valid cases by all cases; the rate per valid case is given beside it, because invalid
cases cannot be violated and so limit the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.stats.cluster_sums import Unit, sums_of
from mt_nodes.base.stats.exceedance import sign_flip_p
from mt_nodes.base.stats.intervals import holm, proportion_interval
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.rules.validation import FACTORS, Validation

NOT_RUN = "not run"


@dataclass(frozen=True)
class RatedCase:
    """The result of one case. ``unit``: the source: drive and bundle. ``judgements``: by stack."""

    unit: Unit
    validation: Validation
    judgements: Mapping[str, Judgement]

    def violated(self, stack: str) -> bool:
        """Whether it is valid and a stack violates its relation."""
        judgement = self.judgements.get(stack)
        return bool(self.validation.valid) and judgement is not None and judgement.outcome is Outcome.VIOLATED


@dataclass(frozen=True)
class Rate:
    """A share of cases.

    ``hits``, ``trials``: counts. ``low``, ``high``: 95 % interval; method: of the interval; None and empty without
    trials. ``unclear``: number of unknown cases; they do not count as hits.
    """

    hits: int
    trials: int
    low: float | None
    high: float | None
    method: str
    unclear: int = 0

    @property
    def share(self) -> float | None:
        """Hits of trials, None without trials."""
        return self.hits / self.trials if self.trials else None

    def as_plain(self) -> dict[str, Any]:
        """Return it in the form of JSON."""
        return {"share": self.share, **vars(self)}


def rate(cases: Sequence[RatedCase], hit: Callable[[RatedCase], bool | None]) -> Rate:
    """Return how many of some cases are hits; ``None``: unknown."""
    counts: dict[Unit, tuple[int, int]] = {}
    unclear = 0
    for case in cases:
        found = hit(case)
        unclear += found is None
        hits, trials = counts.get(case.unit, (0, 0))
        counts[case.unit] = (hits + bool(found), trials + 1)
    hits, trials = (sum(pair[i] for pair in counts.values()) for i in (0, 1))
    interval = proportion_interval(counts)
    low, high, method = interval if interval is not None else (None, None, "")
    return Rate(hits, trials, low, high, method, unclear)


def validation_rates(cases: Sequence[RatedCase]) -> dict[str, Rate]:
    """Return the share of valid cases as ``overall``, and that of each factor."""
    rates = {"overall": rate(cases, lambda case: case.validation.valid)}
    for name in FACTORS:
        rates[name] = rate(cases, lambda case, name=name: getattr(case.validation, name).holds)  # type: ignore[misc]
    return rates


def violation_rates(cases: Sequence[RatedCase], stack: str) -> dict[str, Rate]:
    """Return a stack's violations ``per_case``, of all, as in the paper, and ``per_valid``, of valid cases."""
    valid = [case for case in cases if case.validation.valid]
    return {
        "per_case": rate(cases, lambda case: case.violated(stack)),
        "per_valid": rate(valid, lambda case: case.violated(stack)),
    }


def difference_p(
    ours: Sequence[RatedCase], others: Sequence[RatedCase], hit: Callable[[RatedCase], bool | None]
) -> float | None:
    """Return the two-sided p-value against "both methods hit equally often", on their common sources.

    Each source is compared with itself; neighbouring frames count as one (:mod:`mt_nodes.base.stats.cluster_sums`).
    None without a common source. If a method was run on a source several times, equal numbers of both count.
    """
    first, second = (_by_unit(cases, hit) for cases in (ours, others))
    differences = {
        unit: sum(first[unit][:n]) - sum(second[unit][:n])
        for unit in first
        if (n := min(len(first[unit]), len(second.get(unit, ()))))
    }
    return sign_flip_p(sums_of(differences).finest.sums[:, 0], two_sided=True) if differences else None


def validation_table(methods: Mapping[str, Sequence[RatedCase] | None], ours: str = "automt") -> dict[str, Any]:
    """Return the paper's table VIII: by method the share of valid cases and of each factor, and tests against ours.

    ``methods``: cases by method; None: not run.
    """
    tests = _tests(methods, ours, {"": lambda case: case.validation.valid})
    return {
        method: NOT_RUN
        if cases is None
        else {**{name: one.as_plain() for name, one in validation_rates(cases).items()}, **tests.get((method, ""), {})}
        for method, cases in methods.items()
    }


def violation_table(
    methods: Mapping[str, Sequence[RatedCase] | None], stacks: Sequence[str], ours: str = "automt"
) -> dict[str, Any]:
    """Return the paper's table IX: violation rates by method and stack, and tests against ours.

    p-values are corrected for all comparisons of the table (Holm).
    """
    tests = _tests(methods, ours, {stack: lambda case, stack=stack: case.violated(stack) for stack in stacks})  # type: ignore[misc]
    return {
        method: NOT_RUN
        if cases is None
        else {
            stack: {
                **{name: one.as_plain() for name, one in violation_rates(cases, stack).items()},
                **tests.get((method, stack), {}),
            }
            for stack in stacks
        }
        for method, cases in methods.items()
    }


def _tests(
    methods: Mapping[str, Sequence[RatedCase] | None], ours: str, hits: Mapping[str, Callable[[RatedCase], bool | None]]
) -> dict[tuple[str, str], dict[str, float]]:
    """Return p-values of other methods against ours, plain and corrected, by method and quantity."""
    own = methods.get(ours) or ()
    others = {name: cases for name, cases in methods.items() if name != ours and cases}
    found = {
        (name, quantity): difference_p(own, cases, hit)
        for name, cases in others.items()
        for quantity, hit in hits.items()
    }
    known = {key: p for key, p in found.items() if p is not None}
    adjusted = holm(list(known.values()))
    return {key: {"p": p, "p_adjusted": q} for (key, p), q in zip(known.items(), adjusted, strict=True)}


def _by_unit(cases: Sequence[RatedCase], hit: Callable[[RatedCase], bool | None]) -> dict[Unit, list[bool]]:
    found: dict[Unit, list[bool]] = {}
    for case in cases:
        found.setdefault(case.unit, []).append(bool(hit(case)))
    return found
