# SPDX-License-Identifier: Apache-2.0
"""One search, checked: which relation, over what, on which bag, into which stack; kept in ``run.json``."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import yaml

from mt_nodes.base.directories import write_whole
from mt_nodes.base.errors import UsageError
from mt_nodes.base.message_packages import refuse_missing
from mt_nodes.engine.run_record import in_directory, note_resumed, request_of, write_record
from mt_nodes.relations.relation import Relation, Suite
from mt_nodes.relations.strength import Strength
from mt_nodes.runs.campaign.search.search_request import SUFFIX, SearchRequest, axes_of, checked, places_of
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.stacks.stack import Stack

COMMAND = "mt search"
#: Beside ``run.json``: the trials, what they came to, the relation that was found, and the replay with it.
TRIALS, SUMMARY, RELATIONS, CONFIRMED = "search.jsonl", "summary.json", "relations", "confirmed"
#: What the processes of the stack are started from, and their logs.
STACK = "stack"


@dataclass(frozen=True, eq=False)
class SearchRun:
    """Everything that a search needs, checked: what cannot run was refused while making it.

    Attributes:
        request: what was asked.
        run: the replay that each trial is one of.
        relation: what is searched, under its id of the search.
        axes: what of it is varied.
        out: results directory.
    """

    request: SearchRequest
    run: Run
    relation: Relation
    axes: tuple[Strength, ...]
    out: Path

    @classmethod
    def make(cls, request: SearchRequest, out: Path) -> SearchRun:
        """Load and check what the request names.

        Raises:
            UsageError: saying what to type instead.
        """
        run = Run.make(checked(request).replay, out / STACK)
        (relation,) = run.suite.relations
        if relation.loop:
            raise UsageError(f"relation '{relation.id}' is of the closed loop, which is not searched")
        return cls(
            request,
            run,
            dataclasses.replace(relation, id=relation.id + SUFFIX),
            axes_of(request, relation),
            out,
        )

    @classmethod
    def create(cls, request: SearchRequest, out: str | None) -> SearchRun:
        """Make a search, its directory (a new one below ``mt_results`` when ``out`` is empty) and what it holds first.

        Raises:
            UsageError: it cannot run, and nothing was written; or the directory holds another run.
            InfrastructureError: the directory cannot be written.
        """
        made = cls.make(request, Path(out or "."))
        if request.replay.transport == "ros":
            refuse_missing(made.run.message_types, f"stack '{made.stack.name}'")
        if out and (Path(out) / TRIALS).exists():
            raise UsageError(f"--out {out}: holds the results of a search already; choose another directory")
        return in_directory(out, made.moved, cls.save)

    @classmethod
    def load(cls, out: Path) -> SearchRun:
        """Make the search that :meth:`save` described.

        Raises:
            UsageError: the directory holds none.
        """
        return cls.make(SearchRequest.from_plain(request_of(out, "replay", COMMAND)), out)

    @classmethod
    def resume(cls, out: Path) -> SearchRun:
        """Make the search of a results directory, to go on with it, and note that in ``run.json``.

        Raises:
            UsageError: there is none, or it would not be the same any more: relation or stack have changed.
        """
        made = cls.load(out)
        note_resumed(out, made.run.suite.all, made.stack)
        return made

    def moved(self, out: Path) -> SearchRun:
        """Return it with another results directory."""
        return dataclasses.replace(self, out=out, run=dataclasses.replace(self.run, out=out / STACK))

    def save(self) -> None:
        """Write what the processes of the stack are started from, and ``run.json``."""
        self.run.out.mkdir(exist_ok=True)
        self.run.save()
        topics = {source.reader.path.name: source.roles for source in self.run.sources}
        write_record(self.out, self.request, self.suite.all, self.stack, topics)

    @property
    def suite(self) -> Suite:
        """The relation as it is asked for, control and sham."""
        return self.run.suite

    @property
    def stack(self) -> Stack:
        """What is under test."""
        return self.run.stack

    @property
    def places(self) -> tuple[bool, ...]:
        """Which axes say where, and not how much."""
        return places_of(self.relation, self.axes)

    @property
    def condition(self) -> dict[str, object]:
        """What the journal of the trials begins with."""
        about = self.run.condition
        ends = {a.name: [a.weak, a.strong] for a in self.axes}
        asked = {name: getattr(self.request, name) for name in ("trials", "repeats", "tolerance", "confirm")}
        return {**about, "relation": self.relation.id, "axes": ends, "draws": self.run.request.draws, **asked}

    def write_relation(self, relation: Relation) -> Path:
        """Write a relation of the search as a file, and return it."""
        path = self.out / RELATIONS / f"{relation.id}.yaml"
        path.parent.mkdir(exist_ok=True)
        write_whole(path, yaml.safe_dump(relation.as_plain(), sort_keys=False, allow_unicode=True))
        return path

    def replayed(self, relation: Path) -> Run:
        """Return the ordinary replay of a relation that was found, made anew or gone on with.

        Raises:
            MtError: it cannot be made.
        """
        place = self.out / CONFIRMED
        if (place / "run.json").exists():
            return Run.resume(place)
        request = dataclasses.replace(self.run.request, relations=(str(relation.resolve()),))
        return Run.create(request, str(place))
