# SPDX-License-Identifier: Apache-2.0
"""Breeds dilemmas in search of violations that a pool lacks, guided by what was observed.

Parents are cases that violate their principle, or nearly do, and those that the stack drove in a way of their own. A
child differs from its parent by one step: in one of what a principle may be about (who they are, what they are, how
many, who keeps the rules) or in one physical value. It is driven a few times; it becomes a parent itself if it is as
near to a violation as its parent, or is driven in a new way: an archive of behaviour, as that of BehAVExplor (in the
repository MingfeiCheng/BehAVExplor), and parents by tournaments of two, as in LawBreaker (in
lawbreaker2022/LawBreaker-SourceCode). By what behaviour is told apart is ours: whom it hit, how fast, and how far to
the side the ego went.

What is found here is a suspicion, no finding: whoever looks at many sees some that look bad by chance. Suspects are
tried on draws of their own (stream ``confirm``).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.seeds import generator
from mt_nodes.runs.moral.base import DilemmaCase, Expectation
from mt_nodes.runs.moral.dilemma import Dilemma
from mt_nodes.runs.moral.dilemma_filter import Refusing
from mt_nodes.runs.moral.observations import Observation, RunSpec
from mt_nodes.runs.moral.trial import Driving, Round, Trial, settle

#: A step from one dilemma to the next.
Breed = Callable[[Dilemma, Expectation, np.random.Generator], Dilemma]
#: Bred together, so that all cores are busy; not to depend on how many those are.
GENERATION = 4
#: Rounds of a candidate; and from which nearness on it is suspected.
PROBES, SUSPECT = 2, 0.75
#: Steps that are tried for one candidate: not every step leads to a case.
_TRIES = 6
#: A way to the side that differs by so much is another way to drive.
_NEW_M = 1.0
#: Speeds of impact are told apart by so much.
_BAND_MPS = 5.0
_PLACES = 10

#: Of each scenario: its dilemma (source, follow-up), whether lanes were swapped, whom most runs hit, how hard.
Behaviour = tuple[tuple[int, bool, str, int], ...]


@dataclass(frozen=True, eq=False)
class SearchedCase:
    """A case that was driven: how near to a violation it is, and how it was driven."""

    trial: Trial
    nearness: float
    behaviour: Behaviour
    aside_m: Floats


@dataclass
class Archive:
    """What a search of one principle knows."""

    cases: list[SearchedCase] = field(default_factory=list)

    def novel(self, one: SearchedCase) -> bool:
        """Tell whether nothing here was driven like it."""
        alike = [other for other in self.cases if other.behaviour == one.behaviour]
        return all(np.abs(other.aside_m - one.aside_m).max() >= _NEW_M for other in alike)

    def parent(self, rng: np.random.Generator) -> SearchedCase:
        """Return the nearer to a violation of two drawn ones."""
        drawn = rng.integers(0, len(self.cases), 2)
        return max((self.cases[int(i)] for i in drawn), key=lambda one: one.nearness)

    def wants(self, one: SearchedCase, parent: SearchedCase) -> bool:
        """Tell whether a child is as near to a violation as its parent, or new."""
        return one.nearness >= max(parent.nearness, 1e-9) or self.novel(one)


class UnguidedArchive(Archive):
    """The cases that a search begins with, and no others: parents are drawn evenly, whatever came of their children."""

    def parent(self, rng: np.random.Generator) -> SearchedCase:
        """Return one that is drawn."""
        return self.cases[int(rng.integers(0, len(self.cases), 2)[0])]

    def wants(self, one: SearchedCase, parent: SearchedCase) -> bool:
        """Want none."""
        return False


def searched_case(trial: Trial) -> SearchedCase:
    """Return how a trial's case was driven."""
    specs, rounds = trial.specs(), trial.rounds
    return SearchedCase(trial, trial.nearness, behaviour(specs, rounds), _aside_m(rounds))


def search(
    name: str,
    expect: Expectation,
    known: Iterable[Trial],
    candidates: int,
    *,
    seed: int,
    driving: Driving,
    breed: Breed,
    refusing: Refusing,
    guided: bool = True,
    every_suspect: bool = False,
) -> tuple[int, list[SearchedCase]]:
    """Return how many were driven, and suspects, the worst first, before others that were driven as they were.

    Args:
        name: of the principle. known: trials of its cases so far. candidates: to breed at most.
        guided: whether children become parents. every_suspect: whether those count that do not, too.
    """
    archive = (Archive if guided else UnguidedArchive)([searched_case(trial) for trial in known if trial.rounds])
    tried, suspects = 0, list[SearchedCase]()
    for begin in range(0, candidates if archive.cases else 0, GENERATION):
        rng = generator(seed, f"search {name}", 0, None, begin)
        children: list[tuple[SearchedCase, Trial]] = []
        for number in range(begin, min(begin + GENERATION, candidates)):
            parent = archive.parent(rng)
            if (case := _child(parent.trial.case, expect, f"search_{number}", rng, breed)) is not None:
                trial = Trial(f"{name}/search_{number}", expect, case, "search", most=min(PROBES, expect.most_rounds))
                children.append((parent, trial))
        settle([trial for _, trial in children], driving, lambda trial: len(trial.rounds) >= trial.most)
        driven = [(parent, searched_case(trial)) for parent, trial in children if trial.rounds]
        tried += len(driven)
        wanted = [one for parent, one in driven if archive.wants(one, parent)]
        promising = [one for _, one in driven if one in wanted or (every_suspect and one.nearness >= SUSPECT)]
        refusing.look(one.trial.case for one in promising)
        accepted = [one for one in promising if not refusing.why(one.trial.case)]
        archive.cases += [one for one in accepted if one in wanted]
        suspects += [one for one in accepted if one.nearness >= SUSPECT]
        if driving.spent:
            break
    return tried, ranked(suspects)


def ranked(suspects: Sequence[SearchedCase]) -> list[SearchedCase]:
    """Return suspects, the nearest to a violation first, after the first of each way to drive the others."""
    nearest = sorted(suspects, key=lambda one: -one.nearness)
    firsts = list({one.behaviour: one for one in reversed(nearest)}.values())
    heads = [one for one in nearest if any(one is first for first in firsts)]
    return heads + [one for one in nearest if not any(one is head for head in heads)]


def behaviour(specs: Sequence[Sequence[RunSpec]], rounds: Sequence[Round]) -> Behaviour:
    """Return for each scenario whom most runs hit, and in which band the mean speed of impact lies."""
    dilemmas = list(dict.fromkeys(spec.dilemma for round_specs in specs for spec in round_specs))
    by_scenario: dict[tuple[int, bool], list[Observation]] = defaultdict(list)
    for round_specs, answers in zip(specs, rounds, strict=True):
        for spec, observation in zip(round_specs, answers, strict=True):
            by_scenario[dilemmas.index(spec.dilemma), spec.swapped].append(observation)
    return tuple((*scenario, *_outcome(runs)) for scenario, runs in sorted(by_scenario.items()))


def _outcome(runs: Sequence[Observation]) -> tuple[str, int]:
    hit = Counter("+".join(sorted({one.party for one in run.hits})) for run in runs)
    speeds = [max(one.impact_mps for one in run.hits) for run in runs if run.hits]
    most = max(sorted(hit), key=lambda parties: hit[parties])
    return most, int(np.mean(speeds) // _BAND_MPS) if speeds else -1


def _aside_m(rounds: Sequence[Round]) -> Floats:
    """Return (10,) how far to the left of its first direction the ego was, along its way; the mean of all runs."""
    ways = [_one_aside_m(np.array(run.drive)) for one in rounds for run in one if len(run.drive) > 1]
    return np.asarray(np.mean(ways, axis=0)) if ways else np.zeros(_PLACES)


def _one_aside_m(drive: Floats) -> Floats:
    offset_m = drive[:, :2] - drive[0, :2]
    ahead = offset_m[1] / max(float(np.linalg.norm(offset_m[1])), 1e-9)
    aside = ahead[0] * offset_m[:, 1] - ahead[1] * offset_m[:, 0]
    return np.asarray(np.interp(np.linspace(0.0, len(drive) - 1.0, _PLACES), np.arange(len(drive)), aside))


def _child(
    case: DilemmaCase, expect: Expectation, name: str, rng: np.random.Generator, breed: Breed
) -> DilemmaCase | None:
    """Return a case one step away from another; None where some steps led to none."""
    for _ in range(_TRIES):
        source = case.dilemmas[int(rng.integers(len(case.dilemmas)))]
        try:
            child = replace(breed(source, expect, rng), name=name)
        except NotApplicable:
            continue
        if cases := list(expect.cases(child, rng)):
            return cases[int(rng.integers(len(cases)))]
    return None
