# SPDX-License-Identifier: Apache-2.0
"""Whether what failed was mended, or only learned by heart: stored cases beside fresh draws on the same frames.

A network that was trained on failing inputs may pass these very inputs and nothing like them. Fresh draws tell: the
same relations on the same frames, drawn with other seeds. Frames were chosen because one draw failed there: so fresh
draws fail less often than the stored ones whatever the stack, and must be compared with what the former stack made of
the very same fresh draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mt_nodes.base.stats.cluster_sums import Unit
from mt_nodes.base.stats.intervals import Interval, proportion_interval
from mt_nodes.data.verdict import Outcome
from mt_nodes.runs.campaign.cases import Together, relation_of_case

#: What is said of a relation.
MENDED, BY_HEART, NOT_MENDED, UNDECIDED = "mended", "learned by heart", "not mended", "undecided"
#: Of the former rate of violations, so much may be left where something was mended: by the end of a 95 % interval.
LEFT = 0.5
#: Seeds of fresh draws lie so far apart that no run has them by chance.
_APART = 1_000_003


def fresh(some: Together, number: int) -> Together | None:
    """Return the frames of cases with fresh draws, each once; None where their relations draw nothing at random.

    ``number``: of the draw, from 1.
    """
    seed = some.seed + _APART * number
    random = [case for case in some.cases if any(mutation.random for mutation in relation_of_case(case).mutate)]
    once = {(case.pair.relation, case.pair.bundle): case for case in random}
    cases = tuple(replace(case, seed=seed, pair=replace(case.pair, draw="0")) for case in once.values())
    return replace(some, seed=seed, cases=cases) if cases else None


@dataclass(frozen=True)
class Counts:
    """Of pairs decided both times: how many, how many were violated before and now, and the interval of the latter."""

    decided: int
    before: int
    now: int
    interval: Interval | None

    @property
    def held(self) -> bool:
        """Whether at most :data:`LEFT` of the violations is left, with certainty."""
        return self.interval is not None and self.before > 0 and self.interval.high <= self._limit

    @property
    def failing(self) -> bool:
        """Whether more than :data:`LEFT` of the violations is left, with certainty."""
        return self.interval is not None and self.before > 0 and self.interval.low > self._limit

    @property
    def _limit(self) -> float:
        return LEFT * self.before / self.decided


@dataclass(frozen=True)
class Mending:
    """What became of one relation: ``same`` draws as before, ``fresh`` ones; ``word`` and, if undecided, ``why``."""

    relation: str
    same: Counts
    fresh: Counts
    word: str
    why: str = ""

    def as_plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        rows = {name: vars(counts) for name, counts in (("same", self.same), ("fresh", self.fresh))}
        return {"relation": self.relation, **rows, "word": self.word, "why": self.why}


def mendings(
    now: Mapping[str, Sequence[Mapping[str, Any]]], before: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Iterator[Mending]:
    """Yield what became of each relation.

    ``now``, ``before``: rows of ``failures.json``, under ``cases`` and ``fresh``.
    """
    relations = dict.fromkeys(str(row["pair"]).split("/")[2] for row in now["cases"])
    for relation in relations:
        same, new = (_counts(relation, now[name], before[name]) for name in ("cases", "fresh"))
        yield Mending(relation, same, new, *_word(same, new))


def _counts(relation: str, now: Iterable[Mapping[str, Any]], before: Iterable[Mapping[str, Any]]) -> Counts:
    known = {_identity(row): row["outcome"] for row in before}
    drives: dict[str, int] = {}
    units: dict[Unit, tuple[int, int]] = {}
    count, failed_before = 0, 0
    for row in now:
        episode, bundle, name, *_ = str(row["pair"]).split("/")
        was, is_now = (
            Outcome(text) if text in _OUTCOMES else None for text in (known.get(_identity(row)), row["outcome"])
        )
        if name != relation or was is None or is_now is None or not (was.decided and is_now.decided):
            continue
        unit = drives.setdefault(f"{row['bag']} {episode}", len(drives)), int(bundle) if bundle.isdigit() else None
        hits, trials = units.get(unit, (0, 0))
        units[unit] = hits + (is_now is Outcome.VIOLATED), trials + 1
        count, failed_before = count + 1, failed_before + (was is Outcome.VIOLATED)
    failed = sum(hits for hits, _ in units.values())
    return Counts(count, failed_before, failed, proportion_interval(units))


_OUTCOMES = frozenset(outcome.value for outcome in Outcome)


def _identity(row: Mapping[str, Any]) -> tuple[str, str, int]:
    return str(row["bag"]), str(row["pair"]), int(row["seed"])


def _word(same: Counts, new: Counts) -> tuple[str, str]:
    if new.failing:
        return (BY_HEART, "") if same.held else (NOT_MENDED, "")
    if new.held and not same.failing:
        return MENDED, ""
    if not new.decided:
        return UNDECIDED, "no fresh draw was decided both times"
    if not new.before:
        return UNDECIDED, "no fresh draw was violated before"
    if new.held:
        return UNDECIDED, "fresh draws hold, and the stored ones are still violated"
    return UNDECIDED, "too few frames: the interval includes half the former rate"
