# SPDX-License-Identifier: Apache-2.0
"""The directory of a run: made, loaded, gone on with and written in one way, whatever kind of run it holds."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from mt_nodes.base.message_packages import refuse_missing
from mt_nodes.base.plain_data import PlainData
from mt_nodes.data.transforms import TransformTree, dump_transforms
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.run_record import Judge, in_directory, note_resumed, request_of, write_record
from mt_nodes.relations.relation import Suite
from mt_nodes.stacks.stack import Stack

Q = TypeVar("Q", bound=PlainData)
D = TypeVar("D", bound="RunDirectory[Any]")
S = TypeVar("S", bound="StackRun[Any]")


@dataclass(frozen=True, eq=False)
class RunDirectory(ABC, Generic[Q]):
    """Everything that a run needs, checked: what cannot run was refused while making it.

    ``request``: what was asked. ``out``: results directory.
    """

    request: Q
    out: Path

    #: The command that makes such a run, a key of its request that no other kind of run has, and what it is asked.
    COMMAND: ClassVar[str]
    KEY: ClassVar[str]
    REQUEST: ClassVar[type[PlainData]]

    @classmethod
    @abstractmethod
    def make(cls: type[D], request: Any, out: Path) -> D:
        """Load and check what the request names. Raises UsageError: saying what to type instead."""

    @classmethod
    def read_request(cls, plain: Mapping[str, Any], out: Path) -> Any:
        """Return the request that ``run.json`` of a directory holds. Raises UsageError: it is none."""
        return cls.REQUEST.from_plain(plain)

    @classmethod
    def create(cls: type[D], request: Any, out: str | None) -> D:
        """Make a run, its directory (a new one below ``mt_results`` when ``out`` is empty) and what it holds at first.

        Raises UsageError: it cannot run, and nothing was written; or the directory holds another run.
        InfrastructureError: the directory cannot be written.
        """
        checked = cls.make(request, Path(out or "."))
        checked.refuse_impossible()
        return in_directory(out, checked.at, cls.save)

    @classmethod
    def load(cls: type[D], out: Path) -> D:
        """Make the run that :meth:`save` described. Raises UsageError: the directory holds none."""
        return cls.make(cls.read_request(request_of(out, cls.KEY, cls.COMMAND), out), out)

    @classmethod
    def resume(cls: type[D], out: Path) -> D:
        """Make the run of a results directory, to go on with it.

        Raises UsageError: there is none, or it would not be the same run any more.
        """
        return cls.load(out)

    def at(self: D, out: Path) -> D:
        """Return it with another results directory."""
        return dataclasses.replace(self, out=out)

    def refuse_impossible(self) -> None:
        """Refuse what cannot run here, before anything is written. Raises UsageError: saying what is missing."""

    @abstractmethod
    def save(self) -> None:
        """Write ``run.json``, and what else the directory holds at first."""


@dataclass(frozen=True, eq=False)
class StackRun(RunDirectory[Q]):
    """A run of one stack. ``stack``: what is under test, faults planted."""

    stack: Stack

    @classmethod
    def resume(cls: type[S], out: Path) -> S:
        """Make the run of a results directory, to go on with it, and note in ``run.json`` that it was resumed.

        Raises:
            UsageError: there is none, or it would not be the same run any more: its judges or the stack have changed.
        """
        run = cls.load(out)
        note_resumed(out, run.judges, run.stack)
        return run

    def refuse_impossible(self) -> None:
        """Refuse messages whose packages are not installed."""
        if self.over_topics:
            refuse_missing(self.message_types, f"stack '{self.stack.name}'")

    def save(self) -> None:
        """Write ``run.json``, and the stack and transforms for the processes that host it."""
        dump_transforms(self.static_transforms, self.out / "transforms.yaml")
        record = (self.request, self.judges, self.stack, self.topics_of_sources)
        write_record(self.out, *record, **self.more_of_record)

    @property
    @abstractmethod
    def judges(self) -> Sequence[Judge]:
        """What the run is judged by: all relations that are offered, or principles."""

    @property
    @abstractmethod
    def static_transforms(self) -> TransformTree:
        """Transforms for callables that are hosted, which have no ``/tf``."""

    @property
    @abstractmethod
    def topics_of_sources(self) -> Mapping[str, Any]:
        """Source of the input (bag, scenario, mode) -> role -> topic."""

    @property
    def more_of_record(self) -> dict[str, Any]:
        """What else ``run.json`` keeps, by key."""
        return {}

    @property
    @abstractmethod
    def condition(self) -> dict[str, Any]:
        """What the journal begins with."""

    @property
    def over_topics(self) -> bool:
        """Whether ROS carries the messages."""
        request: Any = self.request
        return bool(request.transport == "ros")

    @property
    def message_types(self) -> dict[str, str]:
        """Topic of the stack -> message type that must be installed for it."""
        return self.stack.message_types


@dataclass(frozen=True, eq=False)
class SuiteRun(StackRun[Q]):
    """A run that is judged by a suite of relations.

    ``suite``: relations, control and sham. ``left_out``: relations of the patterns and suites asked for that cannot be
    judged, and why; of a new run only.
    """

    suite: Suite
    left_out: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    @property
    def judges(self) -> Sequence[Judge]:
        """All relations that are offered, control and sham included."""
        return self.suite.all

    @property
    def more_of_record(self) -> dict[str, Any]:
        """What was left out, if anything, and the number of verdicts to come, if it is known."""
        left_out = {"left_out": dict(self.left_out)} if self.left_out else {}
        return left_out if self.pairs_to_come is None else {**left_out, "pairs": self.pairs_to_come}

    @property
    def pairs_to_come(self) -> int | None:
        """Number of verdicts of the whole run; None where it goes on for as long as there is input."""
        return None

    @property
    def only(self) -> Pair | None:
        """The one pair that is judged again, None in an ordinary run."""
        request: Any = self.request
        return Pair.parse(request.only) if request.only else None

    @property
    def waivers(self) -> str:
        """File of violations that are accepted, empty when there is none."""
        request: Any = self.request
        return str(request.waivers)

    @property
    def most_evidence(self) -> int | None:
        """Of how many violated pairs of each relation evidence is kept, None: of all."""
        return None

    @property
    @abstractmethod
    def input_condition(self) -> dict[str, Any]:
        """What the journal's first line says of the input, ``pace`` to ``limit``."""

    @property
    def condition(self) -> dict[str, Any]:
        """What the journal begins with."""
        request: Any = self.request
        return {
            "seed": request.seed,
            "mode": request.mode,
            **self.input_condition,
            "stack": self.stack.name,
            "faults": list(request.faults),
            "relations": [r.id for r in self.suite.relations],
            "control": self.suite.control.id,
            "sham": self.suite.sham.id,
        }
