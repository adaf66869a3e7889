# SPDX-License-Identifier: Apache-2.0
"""Follow-ups made again from what a finished run recorded."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Outcome, Pair
from mt_nodes.engine.followups import FollowupPlan
from mt_nodes.engine.judging import Offer
from mt_nodes.engine.ledger import baseline_of, load_draws, read_ledger
from mt_nodes.relations.pipeline import DerivedFollowup, MutationPipeline
from mt_nodes.relations.relation import Relation


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

        Args:
            relation: whose follow-ups they are. directory: results of the run.
            reduced: returns what was left of a follow-up before it was sent.
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
