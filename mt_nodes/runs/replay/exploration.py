# SPDX-License-Identifier: Apache-2.0
"""Plays the pairs of a replay that chooses them: each where most new kinds of violations are expected, or by chance."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mt_nodes.base.plugins import name_of
from mt_nodes.base.seeds import generator
from mt_nodes.base.stats.discovery import Discovery
from mt_nodes.data.messages import Bundle, Episode
from mt_nodes.data.verdict import Pair, Verdict
from mt_nodes.engine.arm import Arm
from mt_nodes.engine.first_pairs import FirstPairs
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.judging import Offer
from mt_nodes.engine.lockstep import Lockstep
from mt_nodes.engine.plan import CHANCE
from mt_nodes.engine.recorder import ExecutedPair, Progress, Recorder
from mt_nodes.engine.summary.explored import judged_cells, kinds_of, violated_cells
from mt_nodes.relations.pipeline import DerivedFollowup
from mt_nodes.relations.relation import Relation
from mt_nodes.report.coverage.coverage import weather
from mt_nodes.runs.replay.explored_frames import ExploredFrames, draws_of
from mt_nodes.runs.replay.replay_bench import PlayResult, ReplayBench
from mt_nodes.runs.replay.replay_run import Run

#: So many pairs an arm must be to be had, or drives are not told apart.
PAIRS_PER_ARM = 20
#: What a cell of the domain in which nothing was decided yet, or nothing violated, is worth beside a new kind.
CELL_WORTH = 0.1
Frame = tuple[int, int]


@dataclass(frozen=True, eq=False)
class ExplorationArm:
    """What a pair is chosen from: a relation, on frames of one drive or of all, in an order of chance.

    ``weather``: that the relation makes. ``draws``: of each frame, at most.
    """

    relation: str
    weather: str
    frames: tuple[Frame, ...]
    draws: int

    def pairs(self) -> Iterator[Pair]:
        """Yield its pairs: every frame once, then with the next draw."""
        for draw in range(self.draws):
            for episode, index in self.frames:
                yield Pair(episode, index, self.relation, str(draw))

    def items(self, line: Mapping[str, Any]) -> dict[Hashable, float]:
        """Return what a verdict line has found: kinds of violations, and cells of the domain."""
        decided: set[Hashable] = {("decided", self.weather, *cell) for cell in judged_cells(line)}
        cells = violated_cells(line.get("detail", {})) if kinds_of(line) else ()
        violated = {("violated", self.weather, *cell) for cell in cells}
        return {**dict.fromkeys(decided | violated, CELL_WORTH), **dict.fromkeys(kinds_of(line), 1.0)}


class ChosenPair(PlayResult):
    """One pair that is played, and recorded as those of any replay."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def done(self, pair: Pair) -> bool:
        """Tell whether it was judged before."""
        return self._recorder.done(pair)

    def followup(self, offer: Offer, bundle: Bundle, derived: DerivedFollowup, made_ms: float) -> None:
        """Record a follow-up that goes out."""
        self._recorder.followup(offer, bundle, derived, made_ms)

    def verdicts(self, verdicts: Sequence[Verdict], case: ExecutedPair | None) -> list[Verdict]:
        """Record verdicts; those of a run that went on before are not new."""
        super().verdicts(verdicts, case)
        return self._recorder.verdicts(verdicts, case)

    def death(self, error: Any) -> None:
        """Record that the stack died."""
        self._recorder.death(error)


class PairChoice:
    """Chooses the next pair by what those before have found.

    ``by``: as of ``--explore-by``. ``seed``: of the run; with the same verdicts it chooses the same pairs.
    """

    def __init__(self, arms: Sequence[ExplorationArm], by: str, seed: int) -> None:
        self._arms, self._by, self._left = arms, by, [arm.pairs() for arm in arms]
        self._found = Discovery(len(arms))
        self._drawn = generator(seed, "explore", 0, None, "arms")
        self._unplayed = self._drawn.permutation(len(arms)).tolist()
        self._open = list(range(len(arms)))

    def __iter__(self) -> Iterator[tuple[int, Pair]]:
        """Yield the number of an arm and its next pair, until all are used up; :meth:`take` what came of it."""
        while self._open:
            number = self._next_arm()
            pair = next(self._left[number], None)
            if pair is None:
                self._open.remove(number)
            else:
                yield number, pair

    def _next_arm(self) -> int:
        """Return the number of an arm; each has one pair before any has two, unless by chance."""
        if self._by == CHANCE:
            return int(self._drawn.choice(self._open))
        return self._unplayed.pop() if self._unplayed else self._found.choose(self._open)

    def take(self, number: int, line: Mapping[str, Any]) -> None:
        """Take in the verdict line of the pair of an arm; an empty one has found nothing."""
        self._found.take(number, self._arms[number].items(line) if line else {})


class Exploration:
    """Chooses pairs and plays them. A run that is resumed chooses the same again, and plays what is left.

    ``run``: what is replayed, with :class:`ExploredFrames` as its schedule. ``progress``: called with new verdicts.
    """

    def __init__(self, run: Run, recorder: Recorder, progress: Progress) -> None:
        assert isinstance(run.schedule, ExploredFrames)
        self._run, self._recorder, self._progress, self._schedule = run, recorder, progress, run.schedule
        self._back = max((m.needs_history for r in run.suite.relations for m in (*r.mutate, *r.baseline)), default=0)
        self._bundles: dict[Frame, Bundle] = {}

    def run(self, episodes: Sequence[Episode], source: Arm, followup: Arm) -> None:
        """Judge control and sham on all frames, then so many pairs as the request wants."""
        for episode in episodes:
            self._bundles |= {(b.episode, b.index): b for b in episode() if self._needed(b)}
        tapes = [self._tape([f for f in self._bundles if f[0] == e]) for e in self._schedule.frames]
        Lockstep(self._run.settings, self._recorder, self._progress).run(tapes, source, followup)
        arms = arms_of(self._run, [f for f in self._bundles if f[1] in self._schedule.frames[f[0]]])
        if arms:  # else no frame could be read, which is told as damage of the bags
            self._choose(arms, ReplayBench(self._run.stack, (source, followup), self._progress))

    def _choose(self, arms: Sequence[ExplorationArm], bench: ReplayBench) -> None:
        choice = PairChoice(arms, self._run.request.explore_by, self._run.request.seed)
        known = {line["pair"]: line for line in read_journal(self._run.out / "result.jsonl") if "pair" in line}
        for number, pair in itertools.islice(choice, self._schedule.chosen):
            line = known.get(str(pair)) if self._recorder.done(pair) else None
            choice.take(number, line or self._played(bench, pair))

    def _needed(self, bundle: Bundle) -> bool:
        frames = self._schedule.frames[bundle.episode]
        return any(index in frames for index in range(bundle.index, bundle.index + self._back + 1))

    def _tape(self, frames: Sequence[Frame]) -> Episode:
        return lambda: (self._bundles[frame] for frame in frames)

    def _played(self, bench: ReplayBench, pair: Pair) -> Mapping[str, Any]:
        """Play a pair; return its verdict line, nothing where it has none."""
        index, suite = pair.bundle or 0, self._run.suite
        frames = [f for i in range(index - self._back, index + 1) if (f := (pair.episode, i)) in self._bundles]
        settings = replace(
            self._run.settings,
            suite=replace(suite, relations=tuple(r for r in suite.relations if r.id == pair.relation)),
            schedule=FirstPairs([pair], remembers=False),
            draws=int(pair.draw) + 1,
        )
        played = bench.play(ChosenPair(self._recorder), settings, [self._tape(frames)])
        return next((verdict.as_plain() for verdict in played.collected if verdict.pair == pair), {})


def arms_of(run: Run, frames: Sequence[Frame]) -> list[ExplorationArm]:
    """Return what pairs are chosen from: each relation on each drive, or where that were too many, on all drives."""
    relations, wanted = run.suite.relations, run.request.explore or 0
    episodes = list(dict.fromkeys(episode for episode, _ in frames))
    apart = wanted >= PAIRS_PER_ARM * len(relations) * len(episodes)
    groups = [[f for f in frames if f[0] == e] for e in episodes] if apart else [list(frames)] * bool(frames)
    return [
        explored_arm(relation, group, run.request.seed, number)
        for relation, (number, group) in itertools.product(relations, enumerate(groups))
    ]


def explored_arm(relation: Relation, frames: Sequence[Frame], seed: int, number: int = 0) -> ExplorationArm:
    """Return the arm of a relation on frames, in an order by a seed and the ``number`` of the group of frames."""
    order = generator(seed, relation.id, number, None, "explore").permutation(len(frames))
    changes = weather([name_of(type(mutation)) for mutation in relation.mutate])
    return ExplorationArm(relation.id, changes, tuple(frames[i] for i in order), draws_of(relation))
