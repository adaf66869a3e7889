# SPDX-License-Identifier: Apache-2.0
"""Changes some pictures of a recording as relations would: what a model learns from then has their follow-ups, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.seeds import generator
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.relation import load_relation


class FrameEdits:
    """Draws for each picture whether one of some relations changes it, and which.

    ``share``: of the pictures that are changed. The labels stay, so relations whose follow-up has another answer, as a
    mirrored picture has, are refused.
    Raises UsageError: a relation is unknown, changes no message, or looks back at earlier pictures.
    """

    def __init__(self, relations: Sequence[str], share: float, seed: int) -> None:
        loaded = [load_relation(name) for name in relations]
        for relation in loaded:
            if not relation.mutate or any(mutation.needs_history for mutation in relation.mutate):
                raise UsageError(f"--edit {relation.id}: expected a relation that changes single pictures")
        self._pipelines = {one.id: MutationPipeline(one.mutate, seed, one.id) for one in loaded}
        self._share, self._seed = share, seed
        self._changed, self._refused = Counter[str](), dict[str, str]()

    def edited(self, bundle: Bundle) -> Bundle:
        """Return a bundle, or its follow-up; itself where the relation that was drawn does not apply to it.

        Raises UsageError: the follow-up is not one picture in place of one with the same answer.
        """
        rng = generator(self._seed, "models record edits", bundle.episode, bundle.index, "which")
        if not self._pipelines or rng.random() >= self._share:
            return bundle
        name = str(rng.choice(np.array(list(self._pipelines))))
        try:
            followup = self._pipelines[name].derive(bundle).followup
        except NotApplicable as error:
            self._refused[name] = str(error)
            return bundle
        if [delay_ns for delay_ns, _ in followup.bundles] != [0] or followup.effects.change_truth:
            raise UsageError(f"--edit {name}: its follow-up has another answer, and the labels would be wrong")
        self._changed[name] += 1
        return followup.first

    def refuse_unapplied(self) -> None:
        """Raise UsageError if a relation applied to none of the pictures that it was drawn for."""
        for name, why in self._refused.items():
            if not self._changed[name]:
                raise UsageError(f"--edit {name}: it applies to no picture of a drive: {why}")
