# SPDX-License-Identifier: Apache-2.0
"""One pair played again and again over topics that are all recorded, from request to result."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mt_nodes.base.directories import unused
from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.base.jsonl import read_result, write_result
from mt_nodes.base.plain_data import PlainData
from mt_nodes.data.regions import Region
from mt_nodes.engine.arm import Arm, start
from mt_nodes.engine.recorded_pair import RecordedPair
from mt_nodes.engine.summary.blame_headline import BLAMED, FILE
from mt_nodes.runs.again.pair_request import request_of_pair, run_of_pair
from mt_nodes.runs.blame.analysis import analyse
from mt_nodes.runs.blame.blame_json import as_plain
from mt_nodes.runs.blame.blame_plays import DrivePlays, PairPlays, ReplayPlays
from mt_nodes.runs.blame.repeat_test import MOST_REPEATS, least_repeats
from mt_nodes.runs.blame.stack_graph import StackGraph
from mt_nodes.runs.blame.tape import Tape
from mt_nodes.runs.blame.topic_measures import Evidence, Play, Read
from mt_nodes.runs.loop.scenario_run import ScenarioRun
from mt_nodes.runs.replay.execute import play_to_end
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.runs.run_directory import RunDirectory

REQUEST_FILE = "blame.request.json"
#: Probability that any topic of an honest stack is taken to differ.
ALPHA = 0.01


class RecordingArm(Arm, Protocol):
    """An arm whose stack's topics are recorded."""

    @property
    def tape(self) -> Tape:
        """What is recorded."""

    def graph(self) -> StackGraph:
        """Return the nodes and topics of the stack, in its own names."""


@dataclass(frozen=True)
class BlameRequest(PlainData):
    """What was asked of ``mt blame``.

    Attributes:
        directory: results of the run. pair: which one.
        bag: see :meth:`mt_nodes.engine.recorded_pair.RecordedPair.request`.
        topics: patterns of the topics that are recorded, as of files; empty: all.
        repeats: plays of the pair, and as many of control.
    """

    directory: str
    pair: str
    bag: str = ""
    topics: tuple[str, ...] = ()
    repeats: int = 6


@dataclass(frozen=True, eq=False)
class BlameRun(RunDirectory[BlameRequest]):
    """A blame, checked. ``finished``: the pair. ``run``: plays it again, one instance of the stack for each arm."""

    COMMAND, KEY, REQUEST = "mt blame", "directory", BlameRequest

    finished: RecordedPair
    run: Run | ScenarioRun

    @classmethod
    def make(cls, request: BlameRequest, out: Path) -> BlameRun:
        """Find the pair, and make the run that plays it again.

        Raises UsageError: it was not violated, or its stack cannot be played as two instances; says what to do.
        MtError: the run, its bag or its stack is not what it was.
        """
        if not 2 <= request.repeats <= MOST_REPEATS:
            raise UsageError(f"--repeats: got {request.repeats}, expected 2 to {MOST_REPEATS}")
        finished = RecordedPair.find(Path(request.directory), request.pair)
        where = f"{finished.directory}: pair '{finished.pair}'"
        finished.refuse_unless_violated()
        run = _run_of(finished, request, out)
        if run.stack.isolation == "remap" or run.stack.external:
            raise UsageError(
                f"{where}: stack '{run.stack.name}' {'is external' if run.stack.external else 'has isolation: remap'}; "
                "its nodes can be told apart only if two instances are started in ROS domains of their own: give it a "
                "stack file with a command or callable, and replay"
            )
        return cls(request, out, finished, run)

    @classmethod
    def create(cls, request: BlameRequest, out: str | None) -> BlameRun:
        """Check what is asked, and make the results directory, a new one below that of the run."""
        name = request.pair.replace("/", "_")
        return super().create(request, out or str(unused(Path(request.directory) / BLAMED / name)))

    @classmethod
    def load(cls, out: Path) -> BlameRun:
        """Make the one that :meth:`save` noted in a directory."""
        return cls.make(cls.read_request(read_result(out / REQUEST_FILE), out), out)

    def at(self, out: Path) -> BlameRun:
        """Return it with another results directory."""
        return dataclasses.replace(self, out=out, run=dataclasses.replace(self.run, out=out))

    def save(self) -> None:
        """Write what the processes of the stack need, and what was asked."""
        self.run.save()
        write_result(self.out / REQUEST_FILE, self.request.as_plain())

    def plays(self, arms: tuple[RecordingArm, RecordingArm]) -> PairPlays:
        """Return what plays pair and control in arms that are ready."""
        if isinstance(self.run, ScenarioRun):
            return DrivePlays(self.run, arms)
        return ReplayPlays(self.run, arms, self.finished.directory)


def _run_of(finished: RecordedPair, request: BlameRequest, out: Path) -> Run | ScenarioRun:
    return run_of_pair(dataclasses.replace(request_of_pair(finished, "ros", request.bag), mode="twin"), out)


def carry_out(
    blaming: BlameRun,
    open_arms: Callable[[ExitStack], tuple[RecordingArm, RecordingArm]],
    read_of: Callable[[StackGraph], Read],
    tell: Callable[[int, str], None],
) -> dict[str, Any]:
    """Play, analyse, keep what came of it, and return what ``blame.json`` holds.

    Whatever ends it early is in it, with the exit code of that.
    Raises UsageError: the stack cannot be started as its file says; there are too few repeats for so many topics.

    Args:
        open_arms: makes the arms and puts their end on the stack.
        read_of: returns what reads the messages of a graph's topics.
        tell: called before each play, with its number and what is played.
    """
    evidence: list[Evidence] = []

    def begin(ending: ExitStack) -> Callable[[], None]:
        arms = open_arms(ending)
        start(*arms)
        graph = arms[0].graph()
        _refuse_few(blaming.request.repeats, graph)
        return lambda: evidence.append(_evidence(blaming, arms, graph, tell))

    trouble = play_to_end(blaming.out, begin, lambda error: None)
    finding = None if trouble else analyse(evidence[0], read_of(evidence[0].graph), ALPHA)
    plain = as_plain(blaming.request.as_plain(), evidence[0] if evidence else None, finding, trouble)
    plain |= {"results": str(blaming.out.resolve()), "exit_code": _exit_code(plain, trouble)}
    write_result(blaming.out / FILE, plain)
    write_result(blaming.out / "summary.json", {"schema": 1, "exit_code": plain["exit_code"]})
    return plain


def _refuse_few(repeats: int, graph: StackGraph) -> None:
    least = least_repeats(len(graph.types), ALPHA)
    if least is None:
        raise UsageError(
            f"the stack has {len(graph.types)} topics, too many to be tested with {MOST_REPEATS} repeats: choose those "
            "that matter with --topics"
        )
    if repeats < least:
        raise UsageError(f"--repeats: got {repeats}, expected {least} or more for {len(graph.types)} topics")


def _evidence(
    blaming: BlameRun, arms: tuple[RecordingArm, RecordingArm], graph: StackGraph, tell: Callable[[int, str], None]
) -> Evidence:
    plays, stack, run = blaming.plays(arms), blaming.run.stack, blaming.run
    kinds: dict[str, list[Play]] = {"pair": [], "control": []}
    for number in range(2 * blaming.request.repeats):
        kind = ("pair", "control")[number % 2]
        tell(number + 1, kind)
        for arm in arms:
            arm.tape.begin()
        violated = plays.play(control=kind == "control")
        source, followup = (arm.tape.end() for arm in arms)
        kinds[kind].append(Play(source, followup, violated))
    check = plays.relation.check
    judged = [row.topic for role in getattr(check, "needs", ()) if (row := stack.outputs.get(role)) is not None]
    region = _fixed_region(check)
    return Evidence(
        graph,
        kinds["pair"],
        kinds["control"],
        judged or [stack.outputs[role].topic for role in stack.answers],
        [row.topic for row in stack.published],
        run.static_transforms,
        region,
        float(getattr(check, "keep_inset_m", 0.0)),
        blaming.finished.pair.bundle if not blaming.finished.driven else None,
        next(filter(None, map(_fixed_region, plays.relation.mutate)), None),
    )


def _fixed_region(part: object) -> Region | None:
    """Return the region of a check or a mutation, None where it has none that is the same at every instant."""
    region = getattr(part, "region", None)
    return region if isinstance(region, Region) and region.fixed else None


def _exit_code(plain: Mapping[str, Any], trouble: Mapping[str, Any]) -> int:
    """Return 0 if a node was named, 3 if none could be; never 0 where nothing was played."""
    if trouble:
        codes = {"interrupted": ExitCode.INTERRUPTED, "isolation": ExitCode.ISOLATION, "usage": ExitCode.USAGE}
        return int(next((codes[kind] for kind in trouble if kind in codes), ExitCode.INFRASTRUCTURE))
    return int(ExitCode.PASS if plain["located"] else ExitCode.UNDECIDED)
