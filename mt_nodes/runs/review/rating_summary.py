# SPDX-License-Identifier: Apache-2.0
"""What raters said, summed up: their agreement, verdicts against their majority, and what is worth a second look."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, median
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.stats.cluster_sums import Unit
from mt_nodes.base.stats.intervals import proportion_interval, wilson_interval
from mt_nodes.base.stats.rater_agreement import RESAMPLES, fleiss_kappa, kappa_interval
from mt_nodes.engine.waivers import Waiver
from mt_nodes.runs.review.ratings import REALISTIC, SCHEMA, WRONG, Rating
from mt_nodes.runs.review.sample import CHECK, HOLDS, VIOLATED, Sample, SampledCase

#: Above it a follow-up counts as realistic.
NEUTRAL = 3
#: How long a waiver that is proposed lasts.
WAIVED_DAYS = 90
_ENDS = (2.5, 97.5)
ByCase = Mapping[str, Sequence[Rating]]


def summarise(sample: Sample, ratings: Iterable[Rating], today: datetime.date | None = None) -> dict[str, Any]:
    """Return what ``review.json`` holds.

    ``sample``: cases that were shown. ``ratings``: the last of each rater for each case. ``today``: from which proposed
    waivers count, that of this machine's clock when None.
    """
    known = {case.id: case for case in sample.cases}
    by_case: dict[str, list[Rating]] = {one: [] for one in known}
    for rating in ratings:
        if rating.case in known:
            by_case[rating.case].append(rating)
    majorities = {one: majority(given) for one, given in by_case.items()}
    own = [case for case in sample.cases if case.stratum != CHECK]
    return {
        "schema": SCHEMA,
        "review": sample.review,
        "cases": dict(Counter(case.stratum for case in sample.cases)),
        "raters": sorted({rating.rater for given in by_case.values() for rating in given}),
        "ratings": sum(map(len, by_case.values())),
        "complete": sum(len(given) >= sample.raters for given in by_case.values()),
        "realistic": _realistic([by_case[case.id] for case in own]),
        "wrong": _agreement([[r.wrong for r in by_case[case.id]] for case in own], WRONG),
        "confusion": confusion(own, majorities, sample.sizes),
        "checks": _checks(sample.cases, majorities),
        "relations": _relations(own, by_case),
        "triage": _triage(own, by_case, majorities, today or datetime.date.today()),
        "left_out": dict(sample.left_out),
    }


def majority(ratings: Sequence[Rating]) -> str | None:
    """Return whether most of those who could tell call the reaction wrong, ``yes`` or ``no``; None of a tie or none."""
    yes, no = (sum(rating.wrong == answer for rating in ratings) for answer in WRONG)
    return None if yes == no else WRONG[int(no > yes)]


def confusion(
    cases: Sequence[SampledCase], majorities: Mapping[str, str | None], sizes: Mapping[str, int]
) -> dict[str, Any]:
    """Return verdicts against people's majorities; positive is VIOLATED, true what people call wrong.

    ``precision`` and ``recall`` are of the cases that were shown, with Wilson's intervals. Those were drawn by verdict,
    and so not as they come: ``recall_in_run`` weighs them by how many of each the run has, with the interval that
    Jeffreys' priors of both shares give (Brown, Cai and DasGupta, Statist. Sci. 16, 2001): none missed of two cases is
    no certainty, as drawing these anew would have it.
    """
    found = Counter((case.stratum, majorities[case.id]) for case in cases)
    tp, fp = (found[VIOLATED, answer] for answer in WRONG)
    fn, tn = (found[HOLDS, answer] for answer in WRONG)
    decided = tp + fp + fn + tn
    return {
        **{"tp": tp, "fp": fp, "fn": fn, "tn": tn, "undecided": len(cases) - decided},
        "agreement": (tp + tn) / decided if decided else None,
        "precision": _share(tp, tp + fp),
        "recall": _share(tp, tp + fn),
        "recall_in_run": _recall_in_run((tp, fp), (fn, tn), sizes),
    }


def _share(hits: int, trials: int) -> dict[str, Any] | None:
    interval = wilson_interval(hits, trials)
    return interval and {"hits": hits, "of": trials, "rate": hits / trials, "ci95": list(interval)}


def _recall_in_run(
    violated: tuple[int, int], holding: tuple[int, int], sizes: Mapping[str, int]
) -> dict[str, Any] | None:
    """Return the recall over the run from (wrong, right) of each verdict; None where it cannot be told."""
    n_violated, n_holding = sum(violated), sum(holding)
    if not (n_violated and n_holding) or not (violated[0] or holding[0]):
        return None
    rng = np.random.default_rng(0)
    caught = sizes[VIOLATED] * np.array([violated[0] / n_violated, *_jeffreys(rng, violated)])
    missed = sizes[HOLDS] * np.array([holding[0] / n_holding, *_jeffreys(rng, holding)])
    rates = caught / (caught + missed)
    low, high = np.percentile(rates[1:], _ENDS)
    return {"rate": float(rates[0]), "ci95": [float(min(low, rates[0])), float(max(high, rates[0]))]}


def _jeffreys(rng: np.random.Generator, counts: tuple[int, int]) -> Floats:
    """Draw shares of hits, of which (hits, others) were seen, from their distribution by Jeffreys' prior."""
    hits, others = counts
    return rng.beta(hits + 0.5, others + 0.5, RESAMPLES)


def _agreement(given: Sequence[Sequence[Any]], answers: Sequence[Any]) -> dict[str, Any]:
    """Return kappa over the cases and how often each answer was given; who could not tell has no part in kappa."""
    counts = np.array([[votes.count(answer) for answer in answers] for votes in map(list, given)], dtype=np.int64)
    counts = counts.reshape(-1, len(answers))
    interval = kappa_interval(counts)
    return {
        "kappa": fleiss_kappa(counts),
        "ci95": interval and list(interval),
        "answers": {str(answer): int(n) for answer, n in zip(answers, counts.sum(axis=0), strict=True)},
        "cannot_tell": sum(vote is None for row in given for vote in row),
        "cases_with_two": int((counts.sum(axis=1) >= 2).sum()),
    }


def _realistic(given: Sequence[Sequence[Rating]]) -> dict[str, Any]:
    return {**_agreement([[r.realistic for r in row] for row in given], REALISTIC), **_points(given)}


def _points(given: Sequence[Sequence[Rating]]) -> dict[str, Any]:
    """Return mean, median and the share above neutral; its interval goes by cases, whose ratings are alike."""
    points_by_case = [[r.realistic for r in row if r.realistic is not None] for row in given]
    every = [points for row in points_by_case for points in row]
    if not every:
        return {"mean": None, "median": None, "share": None, "share_ci95": None}
    units: dict[Unit, tuple[int, int]] = {
        (at, None): (sum(p > NEUTRAL for p in row), len(row)) for at, row in enumerate(points_by_case) if row
    }
    interval = proportion_interval(units)
    return {
        "mean": mean(every),
        "median": median(every),
        "share": sum(points > NEUTRAL for points in every) / len(every),
        "share_ci95": interval and [interval.low, interval.high],
    }


def _checks(cases: Sequence[SampledCase], majorities: Mapping[str, str | None]) -> dict[str, int]:
    """Return what people made of the hidden checks, whose follow-ups nobody should call wrongly answered for them."""
    counts = Counter(majorities[case.id] for case in cases if case.stratum == CHECK)
    return {"wrong": counts["yes"], "right": counts["no"], "undecided": counts[None]}


def _relations(cases: Sequence[SampledCase], by_case: ByCase) -> dict[str, Any]:
    found: dict[str, list[Sequence[Rating]]] = {}
    for case in cases:
        found.setdefault(case.relation, []).append(by_case[case.id])
    return {
        name: {"cases": len(given), "ratings": sum(map(len, given)), **_points(given)}
        for name, given in sorted(found.items())
    }


def _triage(
    cases: Sequence[SampledCase], by_case: ByCase, majorities: Mapping[str, str | None], today: datetime.date
) -> dict[str, Any]:
    strata = {"false_alarms": (VIOLATED, "no"), "misses": (HOLDS, "yes")}
    triage: dict[str, Any] = {
        name: [_case_votes(case, by_case[case.id]) for case in cases if (case.stratum, majorities[case.id]) == which]
        for name, which in strata.items()
    }
    triage["unrealistic"] = [_case_votes(case, by_case[case.id]) for case in cases if _unrealistic(by_case[case.id])]
    expires = today + datetime.timedelta(days=WAIVED_DAYS)
    waivers = [
        Waiver(
            row["relation"],
            f"{row['right']} of {row['right'] + row['wrong']} people call it right",
            expires,
            row["pair"],
        )
        for row in triage["false_alarms"]
    ]
    triage["waivers"] = [{k: v for k, v in waiver.as_plain().items() if v} for waiver in waivers]
    return triage


def _unrealistic(ratings: Sequence[Rating]) -> bool:
    points = [r.realistic for r in ratings if r.realistic is not None]
    return bool(points) and median(points) < NEUTRAL


def _case_votes(case: SampledCase, ratings: Sequence[Rating]) -> dict[str, Any]:
    points = [r.realistic for r in ratings if r.realistic is not None]
    return {
        "pair": case.pair,
        "relation": case.relation,
        "wrong": sum(r.wrong == "yes" for r in ratings),
        "right": sum(r.wrong == "no" for r in ratings),
        "realistic": median(points) if points else None,
        "comments": [r.comment for r in ratings if r.comment],
    }
