# SPDX-License-Identifier: Apache-2.0
"""One search, checked: which relation, over what, on which bag, into which stack; kept in ``run.json``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mt_nodes.base.directories import write_whole
from mt_nodes.base.errors import UsageError
from mt_nodes.data.transforms import TransformTree
from mt_nodes.relations.relation import Relation, Suite
from mt_nodes.relations.strength import Strength, axis, is_place, strengths
from mt_nodes.runs.campaign.search.search_request import SUFFIX, SearchRequest, checked
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.runs.run_directory import StackRun


def axes_of(request: SearchRequest, relation: Relation) -> tuple[Strength, ...]:
    """Return what is searched over: what ``over`` names, else every strength that the relation has turned up.

    Raises UsageError: there is nothing to search over.
    """
    if request.over:
        named = tuple(_axis(request, relation, text) for text in request.over)
        if twice := sorted({a.name for a in named if [b.name for b in named].count(a.name) > 1}):
            raise UsageError(f"--over: got {', '.join(twice)} twice, expected each once")
        return named
    found = strengths(relation, request.reach)
    if not found:
        raise UsageError(
            f"relation '{relation.id}' has no strength that could be turned down; name what to search with --over, "
            "such as --over object_added.range_m"
        )
    return found


def _axis(request: SearchRequest, relation: Relation, text: str) -> Strength:
    name, equals, ends = text.partition("=")
    if not equals:
        plain = axis(relation, name) if request.reach == "relation" else None
        reaching = [a for a in strengths(relation, request.reach) if name in (a.name, a.parameter)]
        return plain or (reaching[0] if len(reaching) == 1 else axis(relation, name))
    weak, dots, strong = ends.partition("..")
    try:
        both = (float(weak), float(strong)) if dots else None
    except ValueError:
        both = None
    if both is None:
        raise UsageError(f"--over {text}: got '{ends}', expected WEAK..STRONG such as {name}=1..1000")
    return axis(relation, name, both)


def places_of(relation: Relation, axes: tuple[Strength, ...]) -> tuple[bool, ...]:
    """Tell which axes say where, and not how much."""
    return tuple(is_place(relation, one) for one in axes)


COMMAND = "mt search"
#: Beside ``run.json``: the trials, what they came to, the relation that was found, and the replay with it.
TRIALS, SUMMARY, RELATIONS, CONFIRMED = "search.jsonl", "summary.json", "relations", "confirmed"
#: What the processes of the stack are started from, and their logs.
STACK = "stack"


@dataclass(frozen=True, eq=False)
class SearchRun(StackRun[SearchRequest]):
    """Everything that a search needs, checked: what cannot run was refused while making it.

    ``run``: the replay that each trial is one of. ``relation``: what is searched, under its id of the search.
    """

    COMMAND, KEY, REQUEST = COMMAND, "replay", SearchRequest

    run: Run
    relation: Relation
    axes: tuple[Strength, ...]

    @classmethod
    def make(cls, request: SearchRequest, out: Path) -> SearchRun:
        """Load and check what the request names. Raises UsageError: saying what to type instead."""
        run = Run.make(checked(request).replay, out / STACK)
        (relation,) = run.suite.relations
        if relation.loop:
            raise UsageError(f"relation '{relation.id}' is of the closed loop, which is not searched")
        varied = dataclasses.replace(relation, id=relation.id + SUFFIX)
        return cls(request, out, run.stack, run, varied, axes_of(request, relation))

    def at(self, out: Path) -> SearchRun:
        """Return it with another results directory."""
        return dataclasses.replace(self, out=out, run=dataclasses.replace(self.run, out=out / STACK))

    def save(self) -> None:
        """Write what the processes of the stack are started from, and ``run.json``."""
        self.run.out.mkdir(exist_ok=True)
        self.run.save()
        super().save()

    @property
    def suite(self) -> Suite:
        """The relation as it is asked for, control and sham."""
        return self.run.suite

    @property
    def judges(self) -> Sequence[Relation]:
        """All relations that are offered, control and sham included."""
        return self.suite.all

    @property
    def over_topics(self) -> bool:
        """Whether ROS carries the messages."""
        return self.run.over_topics

    @property
    def message_types(self) -> dict[str, str]:
        """Topic of the stack -> message type, of what it must get and of what it says."""
        return self.run.message_types

    @property
    def static_transforms(self) -> TransformTree:
        """Transforms of the replay."""
        return self.run.static_transforms

    @property
    def topics_of_sources(self) -> dict[str, Any]:
        """Bag -> role -> topic."""
        return self.run.topics_of_sources

    @property
    def places(self) -> tuple[bool, ...]:
        """Which axes say where, and not how much."""
        return places_of(self.relation, self.axes)

    @property
    def condition(self) -> dict[str, object]:
        """What the journal of the trials begins with."""
        about = self.run.condition
        ends = {a.name: [a.weak, a.strong] for a in self.axes}
        settings = {name: getattr(self.request, name) for name in ("trials", "repeats", "tolerance", "confirm")}
        return {**about, "relation": self.relation.id, "axes": ends, "draws": self.run.request.draws, **settings}

    def write_relation(self, relation: Relation) -> Path:
        """Write a relation of the search as a file, and return it."""
        path = self.out / RELATIONS / f"{relation.id}.yaml"
        path.parent.mkdir(exist_ok=True)
        write_whole(path, yaml.safe_dump(relation.as_plain(), sort_keys=False, allow_unicode=True))
        return path

    def replayed(self, relation: Path) -> Run:
        """Return the ordinary replay of a relation that was found, made anew or gone on with.

        Raises MtError: it cannot be made.
        """
        place = self.out / CONFIRMED
        if (place / "run.json").exists():
            return Run.resume(place)
        request = dataclasses.replace(self.run.request, relations=(str(relation.resolve()),))
        return Run.create(request, str(place))
