# SPDX-License-Identifier: Apache-2.0
"""Which cases of a run people are shown: drawn at random among those violated, those that hold, and hidden checks."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import read_result, write_result
from mt_nodes.data.verdict import Outcome, Pair
from mt_nodes.engine.journal import read_journal

FOLDER, FILE = "review", "sample.json"
#: Strata, and how many of ten cases are of each: control and sham are hidden checks of the raters.
VIOLATED, HOLDS, CHECK = "violated", "holds", "check"
_OF_TEN = {VIOLATED: 4, HOLDS: 4, CHECK: 2}
#: For each case wanted so many are tried at most: some cannot be shown.
_TRIES = 3


@dataclass(frozen=True)
class SampledCase:
    """One case: an id that tells nothing, the pair, its stratum, and the reason why its relation should hold."""

    id: str
    pair: str
    stratum: str
    because: str

    @property
    def relation(self) -> str:
        """The relation whose check judged it."""
        return Pair.parse(self.pair).judged_for


@dataclass(frozen=True)
class Sample:
    """The cases of a review; drawn once, then kept, so that raters at different times see the same.

    Attributes:
        review: id of the review. seed: of the draw. asked: how many cases were asked for.
        raters: how many ratings a case is to have.
        sizes: decided pairs of the run by stratum.
        cases: that can be shown. left_out: pair -> why it could not be.
    """

    review: str
    seed: int
    asked: int
    raters: int
    sizes: Mapping[str, int]
    cases: tuple[SampledCase, ...]
    left_out: Mapping[str, str]

    def save(self, directory: Path) -> None:
        """Write ``sample.json``."""
        write_result(directory / FILE, asdict(self))

    @classmethod
    def load(cls, directory: Path) -> Sample | None:
        """Read what :meth:`save` wrote, None where there is none. Raises InfrastructureError: it is damaged."""
        path = directory / FILE
        if not path.exists():
            return None
        data = read_result(path, "expected the sample of a review")
        return cls(**{**data, "cases": tuple(SampledCase(**case) for case in data["cases"])})


def draw(
    results_dir: Path,
    becauses: Mapping[str, str],
    counts: Mapping[str, int],
    show: Callable[[SampledCase], str],
    seed: int = 0,
    raters: int = 3,
) -> Sample:
    """Draw cases, at random in each stratum; one that cannot be shown makes way for the next.

    Raises UsageError: nothing was decided, or nothing can be shown.

    Args:
        results_dir: of a finished run.
        becauses: why each relation should hold.
        counts: see :func:`shares`.
        show: makes what is shown of a case; says why it cannot, "" when it can.
        seed: of the draw. raters: how many ratings a case is to have.
    """
    strata = by_stratum(read_journal(results_dir / "result.jsonl"))
    if not any(strata.values()):
        raise UsageError(f"{results_dir}: no pair was decided, there is nothing to rate")
    cases: list[SampledCase] = []
    left_out: dict[str, str] = {}
    lacking = 0
    for name, pairs in strata.items():
        # Where fewer are violated than are wanted, more are shown that hold.
        count = counts[name] + (lacking if name == HOLDS else 0)
        order = random.Random(f"{seed}/{name}").sample(pairs, min(len(pairs), _TRIES * count))
        found = list(_shown(name, order, count, becauses, show, left_out))
        lacking = count - len(found)
        cases += found
    if not cases:
        raise UsageError(f"{results_dir}: no case can be shown: {next(iter(left_out.values()))}")
    sizes = {name: len(pairs) for name, pairs in strata.items()}
    return Sample(secrets.token_hex(8), seed, sum(counts.values()), raters, sizes, _mixed(cases), left_out)


def shares(cases: int) -> dict[str, int]:
    """Return how many of so many cases are of each stratum, at least one of each.

    Raises UsageError: they are fewer than strata.
    """
    if cases < len(_OF_TEN):
        raise UsageError(
            f"--cases: got {cases}, expected {len(_OF_TEN)} or more: violated, holding, and a hidden check"
        )
    found = {name: max(1, cases * of_ten // 10) for name, of_ten in _OF_TEN.items()}
    found[HOLDS] += cases - sum(found.values())
    return found


def by_stratum(lines: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the decided pairs of a journal by stratum, sorted."""
    found: dict[str, list[Pair]] = {name: [] for name in _OF_TEN}
    for line in lines:
        if line["type"] != "verdict" or not Outcome(line["outcome"]).decided:
            continue
        pair = Pair.parse(line["pair"])
        own = VIOLATED if line["outcome"] == Outcome.VIOLATED.value else HOLDS
        found[CHECK if "@" in pair.draw else own].append(pair)
    return {name: list(map(str, sorted(pairs, key=_place))) for name, pairs in found.items()}


def _shown(
    name: str,
    order: Sequence[str],
    count: int,
    becauses: Mapping[str, str],
    show: Callable[[SampledCase], str],
    left_out: dict[str, str],
) -> Iterator[SampledCase]:
    for pair in order:
        if count == 0:
            return
        case = SampledCase(secrets.token_hex(8), pair, name, becauses.get(Pair.parse(pair).judged_for, ""))
        if why := show(case):
            left_out[pair] = why
        else:
            count -= 1
            yield case


def _mixed(cases: Iterable[SampledCase]) -> tuple[SampledCase, ...]:
    """Sort by the ids, which tell nothing: the order of strata would."""
    return tuple(sorted(cases, key=lambda case: case.id))


def _place(pair: Pair) -> tuple[int, int, str, str]:
    return pair.episode, -1 if pair.bundle is None else pair.bundle, pair.relation, pair.draw
