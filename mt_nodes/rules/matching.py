# SPDX-License-Identifier: Apache-2.0
"""Chooses a relation of the store for a case: AutoMT's third agent, deterministic and without a model.

In this order: the relations nearest in meaning to the scene; of these the applicable ones, by road and condition, where
unknown facts exclude; of these the least often run; of these the nearest; of these a random one, from the seed and the
case alone. The published tool retrieves all relations, as does the default here: with a limit, an applicable relation
may be missed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from mt_nodes.base.seeds import generator
from mt_nodes.rules.rule_store import Store
from mt_nodes.rules.scene import SceneFacts
from mt_nodes.rules.store_entry import Entry
from mt_nodes.rules.validation import Factor, logical_alignment, on_road

CHOSEN = "chosen"
Refusal = Callable[[Entry], str]
"""Why a relation cannot be run at all (no mutation shows it, no sensor sees it), empty when it can."""
EditFacts = Callable[[Entry], Mapping[str, Any]]
"""What is known of the change itself, such as the number on the sign that it adds."""


@dataclass(frozen=True)
class Candidate:
    """A considered relation.

    ``index``: in the store. ``near``: similarity to the scene. ``executions``: before this choice. ``applies``: None if
    unknown. ``why``: it was chosen, or not.
    """

    index: int
    text: str
    near: float
    executions: int
    applies: bool | None
    why: str


@dataclass(frozen=True)
class Choice:
    """The choice for a case; plain data, for a plan.

    ``case``: its name. ``index``: of the relation in the store, None if none applies. ``candidates``: all considered,
    nearest first.
    """

    case: str
    index: int | None
    seed: int
    scene: Mapping[str, Any]
    candidates: tuple[Candidate, ...]

    @property
    def why(self) -> str:
        """Explain why this relation, or none, was chosen."""
        chosen = next((c for c in self.candidates if c.index == self.index), None)
        if chosen is not None:
            return chosen.why
        if not self.candidates:
            return "none of 0 relations applies: store, region and origins leave none; `mt rules list` shows them"
        unclear = sum(c.applies is None for c in self.candidates)
        return f"none of {len(self.candidates)} relations applies; of {unclear} it is not known"

    def as_plain(self) -> dict[str, Any]:
        """Return it in the form of JSON."""
        return {**asdict(self), "candidates": [asdict(c) for c in self.candidates], "why": self.why}


@dataclass(frozen=True)
class Matcher:
    """Settings of the choice.

    Attributes:
        seed: of random choices. limit: how many of the nearest are considered, 0 for all. region: of the rules; empty:
            all.
        origins: only relations by these readers; empty: all. refuse, edit_facts: see :data:`Refusal` and
            :data:`EditFacts`.
    """

    seed: int = 0
    limit: int = 0
    region: str = ""
    origins: tuple[str, ...] = ()
    refuse: Refusal = lambda entry: ""
    edit_facts: EditFacts = lambda entry: {}

    def plan(self, store: Store, scenes: Mapping[str, SceneFacts]) -> list[Choice]:
        """Return the choice for each case, in order, and count it, all in one transaction.

        Raises InfrastructureError: the store cannot be written, or others write for too long; nothing is counted.
        """
        with store.transaction():
            counted = {entry.index: entry.executions for entry in store.entries()}
            choices = []
            for case, scene in scenes.items():
                choices.append(self.choose(store, case, scene, counted))
                if (index := choices[-1].index) is not None:
                    counted[index] += 1
            store.count(Counter(c.index for c in choices if c.index is not None).elements())
        return choices

    def choose(self, store: Store, case: str, scene: SceneFacts, executions: Mapping[int, int] | None = None) -> Choice:
        """Return the choice for one case, without counting it.

        ``executions``: how often each relation was run, by index; None: from the store.
        """
        entries = store.entries(self.region, self.origins)
        if executions is not None:
            entries = [replace(entry, executions=executions[entry.index]) for entry in entries]
        nearest = store.nearest(scene.query, entries, self.limit or len(entries))
        candidates_by_distance = [self._candidate(store, entry, near, scene) for entry, near in nearest]
        applicable = [c for c in candidates_by_distance if c.applies]
        chosen = self._drawn(case, applicable) if applicable else None
        candidates = tuple(self._explained(c, chosen, len(applicable)) for c in candidates_by_distance)
        return Choice(case, chosen.index if chosen else None, self.seed, scene.as_plain(), candidates)

    def _candidate(self, store: Store, entry: Entry, near: float, scene: SceneFacts) -> Candidate:
        if refused := self.refuse(entry):
            found = Factor(False, f"cannot be run: {refused}")
        else:
            needs = store.ontology.elements[entry.statement.element].needs
            found = _applicable(entry, needs, scene, self.edit_facts(entry))
        return Candidate(entry.index, entry.text, near, entry.executions, found.holds, found.source)

    def _drawn(self, case: str, applicable: Sequence[Candidate]) -> Candidate:
        """Return the least often run, of these the nearest, of these a random one."""
        best = min((c.executions, -c.near) for c in applicable)
        equal = sorted((c for c in applicable if (c.executions, -c.near) == best), key=lambda c: c.index)
        lot = generator(self.seed, f"rule_matching_{case}", 0, None, 0).integers(len(equal))
        return equal[int(lot)]

    def _explained(self, candidate: Candidate, chosen: Candidate | None, applicable: int) -> Candidate:
        if chosen is None or not candidate.applies:
            return candidate
        if candidate is chosen:
            return replace(candidate, why=f"{CHOSEN}: of {applicable} that apply the least often run, then the nearest")
        if candidate.executions > chosen.executions:
            return replace(candidate, why=f"applies, but was run {candidate.executions} times, others less often")
        if candidate.near < chosen.near:
            return replace(candidate, why="applies, but another that was run as often is nearer to the scene")
        return replace(candidate, why="applies, is as near and was run as often as another that the lot chose")


def _applicable(entry: Entry, needs: str, scene: SceneFacts, edit: Mapping[str, Any]) -> Factor:
    """Return whether a relation applies to a scene: the scene is on its road, and meets its condition."""
    road = on_road(entry.statement.road, scene)
    return logical_alignment(entry.statement, needs, scene, edit) if road.holds else road
