# SPDX-License-Identifier: Apache-2.0
"""Makes the follow-ups of a run, or says why there is none: of each bundle, before it is sent."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mt_nodes.base.errors import InfrastructureError, NotApplicable, PluginError
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Outcome, Pair
from mt_nodes.engine.judging import Offer
from mt_nodes.engine.ledger import baseline_of, load_draws, read_ledger
from mt_nodes.engine.open_loop import OpenLoop, settling_reason
from mt_nodes.engine.processor_time import ProcessorTime
from mt_nodes.engine.schedule import EVERYTHING, Schedule
from mt_nodes.engine.send_order import Part
from mt_nodes.relations.checks.scored_check import described_unreported, of_classes
from mt_nodes.relations.pipeline import Begun, DerivedFollowup, MutationPipeline
from mt_nodes.relations.relation import Relation, Suite


@dataclass(frozen=True, eq=False)
class FollowupPlan:
    """A follow-up ready to send, or why there is none (``derived`` is None).

    Of one that sends nothing the outcome is known, too: its pair is SKIPPED.
    """

    offer: Offer
    derived: DerivedFollowup | None
    outcome: Outcome | None = None
    reason: str = ""
    made_ms: float = 0.0
    #: Ids of relations that do not judge what it is answered.
    settling: frozenset[str] = frozenset()

    @property
    def baseline(self) -> Bundle | None:
        """What the source arm is given in place of the source; None: the source itself."""
        baseline = self.derived.baseline if self.derived else None
        return None if baseline is None else baseline.followup.first

    @classmethod
    def settles(cls, offer: Offer, settling: frozenset[str]) -> FollowupPlan:
        """Return that the source goes out in place of the follow-up."""
        return cls(offer, None, Outcome.SETTLING, settling_reason(offer.relation), settling=settling)

    def for_source(self, source: Bundle) -> Part:
        """Return what goes to the source arm."""
        given = self.baseline or source
        return Part(given, given.changed_topics(source), source.stamp_ns, 0)

    @classmethod
    def ready(cls, offer: Offer, derived: DerivedFollowup, made_ms: float) -> FollowupPlan:
        """Return a follow-up that may go out."""
        if derived.followup.bundles:
            return cls(offer, derived, made_ms=made_ms)
        return cls(offer, derived, Outcome.SKIPPED, "the follow-up sends nothing", made_ms)


class FollowupSource(Protocol):
    """What makes follow-ups for a run."""

    def __call__(self, offer: Offer, bundle: Bundle) -> FollowupPlan:
        """Make the follow-up of one offer, or say why there is none."""
        ...

    def begin(self, offer: Offer, bundle: Bundle) -> None:
        """Look at a bundle whose pairs are done or not offered: what persists over an episode may begin with it."""
        ...


class MeteredFollowups:
    """Makes follow-ups, and adds up what that takes."""

    def __init__(self, make: FollowupSource, cpu: ProcessorTime) -> None:
        self._make, self._cpu = make, cpu

    def __call__(self, offer: Offer, bundle: Bundle) -> FollowupPlan:
        """Make the follow-up of one offer, or say why there is none."""
        with self._cpu.spent_on(offer.relation.id):
            return self._make(offer, bundle)

    def begin(self, offer: Offer, bundle: Bundle) -> None:
        """Look at a bundle whose pairs are done or not offered."""
        with self._cpu.spent_on(offer.relation.id):
            self._make.begin(offer, bundle)


class FollowupMaker:
    """Makes the follow-ups of a run and proves them."""

    def __init__(self, suite: Suite, seed: int, schedule: Schedule = EVERYTHING) -> None:
        self._schedule = schedule
        self._pipelines = {r.id: MutationPipeline(r.mutate, seed, r.id, r.baseline, r.requires) for r in suite.all}

    def __call__(self, offer: Offer, bundle: Bundle) -> FollowupPlan:
        """Derive the follow-up of one offer."""
        began = time.perf_counter()
        try:
            first = self._schedule.first(offer, bundle)
            derived = self._pipelines[offer.relation.id].derive(bundle, offer.draw, first)
        except NotApplicable as why:
            return FollowupPlan(offer, None, Outcome.NOT_APPLICABLE, _unreported(offer.relation) or str(why))
        except PluginError as error:
            return FollowupPlan(offer, None, Outcome.ERROR, str(error))
        made_ms = 1e3 * (time.perf_counter() - began)
        if derived.broken:
            return FollowupPlan(offer, None, Outcome.INVALID, derived.broken, made_ms)
        return FollowupPlan.ready(offer, derived, made_ms)

    def begin(self, offer: Offer, bundle: Bundle) -> None:
        """Begin what persists over an episode or a case, and remember its bundles, as an undisturbed run does."""
        pipeline = self._pipelines[offer.relation.id]
        pipeline.meet(bundle)
        if self._schedule.wants(offer, bundle) and not pipeline.begun(bundle, self._schedule.first(offer, bundle)):
            self(offer, bundle)

    def handed_over(self, offer: Offer, bundle: Bundle) -> tuple[Bundle, Begun] | None:
        """Return what :meth:`of_another` needs to make a follow-up; None: it is to be made here."""
        return self._pipelines[offer.relation.id].handed_over(bundle, self._schedule.first(offer, bundle))

    def of_another(self, offer: Offer, bundle: Bundle, begun: Begun) -> FollowupPlan:
        """Make a follow-up for another process, whose :meth:`handed_over` returned bundle and what has begun."""
        self._pipelines[offer.relation.id].take_over(bundle, begun, self._schedule.first(offer, bundle))
        return self(offer, bundle)


def _unreported(relation: Relation) -> str:
    """Say that a stack reports other classes than what a relation adds; empty if it reports it, or nobody knows.

    This holds wherever the object would stand, so it comes before the reasons why it cannot stand there.
    """
    classes = getattr(relation.check, "classes", ())
    added = np.array([label for each in relation.mutate if (label := getattr(each, "label", ""))])
    return described_unreported(added, classes) if len(added) and not of_classes(added, classes).any() else ""


def make_or_settle(
    make: FollowupSource, offer: Offer, bundle: Bundle, loop: OpenLoop, stretch: int | None = None
) -> FollowupPlan:
    """Make the follow-up of a bundle, unless the arms are to settle first: then the source goes out."""
    settling = loop.settling(bundle, stretch)
    if settling and loop.substitutes:
        make.begin(offer, bundle)
        return FollowupPlan.settles(offer, settling)
    return replace(make(offer, bundle), settling=settling)


class RecordedDraws:
    """The draws of one relation in a results directory."""

    def __init__(self, directory: Path, relation: Relation) -> None:
        """Read the ledger. Raises MtError: it is missing or damaged."""
        self._directory = directory
        self._pipeline = MutationPipeline(relation.mutate, 0, relation.id)
        self._baseline = MutationPipeline(relation.baseline, 0, relation.id) if relation.baseline else None
        self.lines = {line["pair"]: line for line in read_ledger(directory) if line["relation"] == relation.id}

    def rebuild(self, pair: Pair, bundle: Bundle) -> DerivedFollowup | None:
        """Return a pair's follow-up, made again; None when the run sent none.

        Raises InfrastructureError: the file of the draws is missing or damaged, or they do not fit the bundle.
        """
        self.meet(bundle)
        line = self.lines.get(str(pair.followup))
        if line is None:
            return None
        milder = baseline_of(line)
        try:
            baseline = (
                None if self._baseline is None or milder is None else self._derived(self._baseline, bundle, milder)
            )
            return replace(self._derived(self._pipeline, bundle, line), baseline=baseline)
        except (LookupError, TypeError, ValueError) as error:
            raise InfrastructureError(
                f"follow-up {line['pair']} cannot be made again, its draws do not fit: {error}; has the bag, the "
                "relation or the version of a mutation changed since?"
            ) from error

    def meet(self, bundle: Bundle) -> None:
        """Take a bundle in, for the follow-ups of later ones to look back on."""
        for pipeline in filter(None, (self._pipeline, self._baseline)):
            pipeline.remember(bundle)

    def _derived(self, pipeline: MutationPipeline, bundle: Bundle, line: dict[str, Any]) -> DerivedFollowup:
        draws = load_draws(self._directory, line)
        return DerivedFollowup(pipeline.rebuild(bundle, draws), draws)


class RecordedFollowups:
    """Makes the follow-ups that a finished run sent, in place of new ones."""

    def __init__(
        self,
        relation: Relation,
        directory: Path,
        reduced: Callable[[DerivedFollowup, Bundle], DerivedFollowup] = lambda derived, bundle: derived,
    ) -> None:
        """Read the ledger of the results directory.

        ``relation``: whose follow-ups they are. ``directory``: results of the run. ``reduced``: returns what was left
        of a follow-up before it was sent.
        """
        self._draws, self._reduced = RecordedDraws(directory, relation), reduced

    def __call__(self, offer: Offer, bundle: Bundle) -> FollowupPlan:
        """Make the follow-up of one offer again."""
        began = time.perf_counter()
        derived = self._draws.rebuild(offer.followup_pair(bundle), bundle)
        if derived is None:
            return FollowupPlan(offer, None, Outcome.SKIPPED, "the recorded run sent no follow-up of this bundle")
        return FollowupPlan.ready(offer, self._reduced(derived, bundle), 1e3 * (time.perf_counter() - began))

    def begin(self, offer: Offer, bundle: Bundle) -> None:
        """Recorded draws hold what persisted, too: there is nothing to begin, but bundles to look back on."""
        self._draws.meet(bundle)
