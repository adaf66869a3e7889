# SPDX-License-Identifier: Apache-2.0
"""In which order the cases of a principle are taken from a pool."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

from mt_nodes.base.seeds import generator
from mt_nodes.runs.moral.base import DilemmaCase
from mt_nodes.runs.moral.dilemma import Dilemma
from mt_nodes.runs.moral.principle import Principle

NamedCase = tuple[str, DilemmaCase]


def cases_in_turn(
    principle: Principle, published: Sequence[Dilemma], pool: Sequence[Dilemma], seed: int
) -> Iterator[NamedCase]:
    """Yield cases: one of each dilemma in turn, those of published ones first, the others in an order drawn."""
    rng = generator(seed, f"dilemmas of {principle.id}", 0, None, 0)
    rest = [dilemma for dilemma in pool if dilemma.name not in {one.name for one in published}]
    order = [*published, *(rest[i] for i in rng.permutation(len(rest)))]
    turns = deque(_cases_of(principle, dilemma, dilemma in published, seed) for dilemma in order)
    while turns:
        cases = turns.popleft()
        for named in islice(cases, 1):
            yield named
            turns.append(cases)


def _cases_of(principle: Principle, dilemma: Dilemma, in_order: bool, seed: int) -> Iterator[NamedCase]:
    """Yield the cases of a dilemma with their names, in an order drawn unless they are to be as they come."""
    rng = generator(seed, f"cases of {principle.id}", 0, None, dilemma.name)
    cases = list(principle.expect.cases(dilemma, rng))
    head = f"{principle.id}/{dilemma.name}"
    named = [(f"{head}.{i}" if case.followup else head, case) for i, case in enumerate(cases)]
    yield from named if in_order else (named[i] for i in rng.permutation(len(named)))
