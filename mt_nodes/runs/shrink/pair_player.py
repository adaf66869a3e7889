# SPDX-License-Identifier: Apache-2.0
"""Plays one pair again and again in the loop, each time with another input, in arms that stay alive."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mt_nodes.base.errors import UsageError
from mt_nodes.data.bags.bundles import Unreadable
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.data.verdict import Pair, Verdict
from mt_nodes.engine.arm import Arm
from mt_nodes.engine.followups import FollowupMaker, FollowupPlan
from mt_nodes.engine.judging import Offer
from mt_nodes.engine.recorder import ExecutedPair, Progress, Recorder, no_progress
from mt_nodes.engine.reduction.difference import Difference
from mt_nodes.engine.reduction.reduction import Reduction, difference_of
from mt_nodes.engine.series import SeriesVerdict
from mt_nodes.relations.pipeline import DerivedFollowup
from mt_nodes.relations.relation import Relation, Suite
from mt_nodes.runs.replay.replay_bench import CachedEpisode, PlayResult, ReplayBench
from mt_nodes.runs.replay.replay_run import Run

#: Follow-ups of so long a window are kept, to be recorded without another play.
_KEPT_BUNDLES = 200


@dataclass(frozen=True, eq=False)
class SmallerPair:
    """A smaller form of a pair: a relation that may be weaker, and what is left of its input."""

    relation: Relation
    left: Reduction


@dataclass(frozen=True, eq=False)
class Target:
    """The follow-up of the pair's own bundle, as a relation makes it."""

    relation: Relation
    prepared: FollowupPlan
    bundle: Bundle

    @functools.cached_property
    def difference(self) -> Difference | None:
        """What tells it from what the source arm is given; None where it cannot be divided, or there is none."""
        derived = self.prepared.derived
        return None if derived is None else difference_of(derived, self.bundle)


class RecordablePlay(PlayResult):
    """What came of one play, and all that it takes to record it: follow-ups and cases."""

    def __init__(self) -> None:
        super().__init__()
        self._followups: list[tuple[Offer, Bundle, DerivedFollowup, float]] = []
        self._cases: list[tuple[Sequence[Verdict], ExecutedPair | None]] = []
        self._over_series: list[Sequence[SeriesVerdict]] = []
        #: Whether everything was kept; else the follow-up last sent alone.
        self.whole = True

    def followup(self, offer: Offer, bundle: Bundle, derived: DerivedFollowup, made_ms: float) -> None:
        """Take in a follow-up that goes out."""
        if len(self._followups) >= _KEPT_BUNDLES:
            self.whole = False
            self._followups.clear()
            self._cases = self._cases[-1:]
        self._followups.append((offer, bundle, derived, made_ms))

    def verdicts(self, verdicts: Sequence[Verdict], case: ExecutedPair | None) -> list[Verdict]:
        """Take in verdicts, and what they were judged by."""
        self._cases.append((verdicts, case))
        return super().verdicts(verdicts, case)

    def answers(self, pair: Pair) -> tuple[Output | None, Output | None]:
        """Return what the stack said to both inputs of a pair, None where it was not asked, or its case not kept."""
        for verdicts, case in self._cases:
            if case is not None and any(verdict.pair == pair for verdict in verdicts):
                return case.source_answer.output, case.followup_answer.output
        return None, None

    def series(self, verdicts: Sequence[SeriesVerdict]) -> list[Verdict]:
        """Take in verdicts over sequences, and what they were judged by."""
        self._over_series.append(verdicts)
        return super().verdicts([verdict for verdict, _ in verdicts], None)

    def record(self, recorder: Recorder) -> None:
        """Have all of it recorded."""
        for sent in self._followups:
            recorder.followup(*sent)
        for verdicts, case in self._cases:
            recorder.verdicts(verdicts, case)
        for series in self._over_series:
            recorder.series(series)


class Player:
    """Plays candidates for a pair.

    ``run``: made of :meth:`mt_nodes.engine.recorded_pair.RecordedPair.request`. ``arms``: of the source and of the
    follow-up, ready. ``progress``: called with the verdicts of every instant.
    """

    def __init__(self, run: Run, arms: tuple[Arm, Arm], progress: Progress = no_progress) -> None:
        assert run.only is not None, "one pair is played"
        self._run, self._bench = run, ReplayBench(run.stack, arms, progress)
        (self._source,), (offer,) = run.sources, run.offers
        self.pair, self.relation = run.only, offer.relation
        self.tape = CachedEpisode(self._readable, None if self.pair.bundle is None else self.pair.bundle + 1)
        self._target: Target | None = None

    @property
    def plays(self) -> int:
        """How often it has played."""
        return self._bench.plays

    def _readable(self) -> Iterator[Bundle]:
        return (found for found in self._source.readings() if not isinstance(found, Unreadable))

    @property
    def whole(self) -> SmallerPair:
        """The pair as it was."""
        numbers = [bundle.index for bundle in self.tape]
        if not numbers or self.pair.bundle not in (None, numbers[-1]):
            raise UsageError(f"{self._source.reader.path}: pair '{self.pair}' needs more bundles than the bag has")
        return SmallerPair(self.relation, Reduction(0, numbers[-1] + 1))

    def suite(self, relation: Relation) -> Suite:
        """Return the suite of the run with a relation in the place of the one of its id."""
        own = self._run.suite
        return replace(own, relations=tuple(relation if r.id == relation.id else r for r in own.relations))

    def target(self, relation: Relation) -> Target:
        """Return the follow-up of the pair's bundle as a relation makes it."""
        if self._target is None or self._target.relation is not relation:
            suite, run = self.suite(relation), self._run
            preparer, bundle = FollowupMaker(suite, run.request.seed, run.schedule), None
            (offer,) = run.schedule.offers(suite, run.request.draws, self.pair)
            for bundle in self.tape:
                if bundle.index != self.pair.bundle:
                    preparer.begin(offer, bundle)
            assert bundle is not None, "the tape ends with the pair's bundle"
            self._target = Target(relation, preparer(offer, bundle), bundle)
        return self._target

    def play(self, form: SmallerPair) -> RecordablePlay:
        """Play a smaller form in arms as fresh as the stack needs. Raises InfrastructureError: the stack died."""
        run, suite = self._run, self.suite(form.relation)
        prepare = _Reduced(self, form, FollowupMaker(suite, run.request.seed, run.schedule))
        settings = replace(run.settings, suite=suite, only=self.pair, source_of_followups=prepare)
        return self._bench.play(RecordablePlay(), settings, [prepare.episode])

    def fails(self, played: RecordablePlay) -> bool:
        """Tell whether the pair was violated in a play."""
        return played.violated(self.pair)

    @property
    def stateless(self) -> bool:
        """Whether the stack forgets."""
        return self._run.stack.stateless


class _Reduced:
    """Makes the follow-ups of one play: of the pair's own bundle what is left of it."""

    def __init__(self, player: Player, candidate: SmallerPair, preparer: FollowupMaker) -> None:
        self._player, self._candidate, self._preparer = player, candidate, preparer
        (self._offer,) = player._run.schedule.offers(player.suite(candidate.relation), only=player.pair)
        self._alone = player.stateless and player.pair.bundle is not None

    def episode(self) -> Iterator[Bundle]:
        """Yield what is played; what lies before it may begin what persists, as in the run."""
        left = self._candidate.left
        if self._alone:
            yield self._player.target(self._candidate.relation).bundle
            return
        for bundle in self._player.tape:
            if bundle.index >= left.end:
                return
            if bundle.index < left.first:
                self._preparer.begin(self._offer, bundle)
            else:
                yield bundle

    def __call__(self, offer: Offer, bundle: Bundle) -> FollowupPlan:
        """Make the follow-up of one bundle."""
        if bundle.index != self._player.pair.bundle:
            return self._preparer(offer, bundle)
        target = self._player.target(self._candidate.relation)
        if target.bundle is not bundle:  # a long drive is read anew in each play
            target = Target(target.relation, self._preparer(offer, bundle), bundle)
        plan = target.prepared
        if plan.derived is None or self._candidate.left.mask is None:
            return replace(plan, offer=offer)
        return replace(plan, offer=offer, derived=self._candidate.left.of(plan.derived, target.difference))

    def begin(self, offer: Offer, bundle: Bundle) -> None:
        """Look at a bundle that is not offered."""
        self._preparer.begin(offer, bundle)
