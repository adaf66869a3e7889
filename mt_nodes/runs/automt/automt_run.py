# SPDX-License-Identifier: Apache-2.0
"""One experiment, checked: its directory, what is proposed for which case, and a replay of it into each stack.

``run.json`` has what was asked, ``proposals.json`` and ``cases.yaml`` what every case was given, frozen before anything
is run, ``relations/`` the relations that no shipped rule gave, ``answers.jsonl`` what a language model said, and a
directory of its own each stack's replay. Whoever was interrupted goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base import plugins
from mt_nodes.base.directories import cannot_write, write_whole
from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import read_result
from mt_nodes.engine.case_plan import FILE as CASES
from mt_nodes.engine.case_plan import write_cases
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.engine.run_record import FILE as RECORD
from mt_nodes.engine.run_record import write_request
from mt_nodes.runs.automt.automt_request import COMMAND, AutomtRequest, checked_request
from mt_nodes.runs.automt.proposals import ProposalSet, plan_of
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.runs.run_directory import RunDirectory
from mt_nodes.stacks.stack import Stack, load_stack, refuse_world_inputs

PROPOSALS, RELATIONS, ANSWERS, RESULT = "proposals.json", "relations", "answers.jsonl", "automt.json"


@dataclass(frozen=True, eq=False)
class AutomtRun(RunDirectory[AutomtRequest]):
    """Everything that an experiment needs, checked: what cannot run was refused while making it.

    ``stacks``: what was asked for, by the name that each stack has.
    """

    COMMAND, KEY, REQUEST = COMMAND, "rounds", AutomtRequest

    stacks: Mapping[str, Stack]

    @classmethod
    def make(cls, request: AutomtRequest, out: Path) -> AutomtRun:
        """Load and check what the request names. Raises UsageError: saying what to type instead."""
        plugins.add_directories(map(Path, request.plugins))
        request = checked_request(request)
        stacks: dict[str, Stack] = {}
        for name in request.stacks:
            stack = load_stack(name)
            _refuse_stack(stack, request.transport)
            if stack.name in stacks:
                raise UsageError(f"--stack {name}: got a second stack named '{stack.name}', expected names that differ")
            stacks[stack.name] = stack
        return cls(request, out, stacks)

    @classmethod
    def create(cls, request: AutomtRequest, out: str | None) -> AutomtRun:
        """Make a run and its directory, a new one below ``mt_results`` when ``out`` is empty.

        Raises UsageError: it cannot run, and nothing was written; or the directory holds another run.
        InfrastructureError: the directory cannot be written.
        """
        if out and (Path(out) / RECORD).exists():
            raise UsageError(f"--out {out}: holds a run already; choose another directory, or --resume {out}")
        run = super().create(request, out)
        return run.at(run.out.resolve())

    def save(self) -> None:
        """Write ``run.json``."""
        write_request(self.out, self.request, {"relations": []})

    @property
    def proposed(self) -> ProposalSet | None:
        """What every case was given, None before that is frozen."""
        path = self.out / PROPOSALS
        return ProposalSet.from_plain(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None

    def freeze(self, proposed: ProposalSet) -> None:
        """Keep what every case was given, the plan of the replays first.

        Raises InfrastructureError: it cannot be written.
        """
        request = self.request
        fields = ("regions", "methods", "frames", "reference", "rounds", "seed")
        origin = {"experiment": COMMAND, **{name: getattr(request, name) for name in fields}}
        plan = plan_of(proposed, origin)
        if plan.cases:
            write_cases(plan, self.out / CASES)
        try:
            write_whole(self.out / PROPOSALS, json.dumps(proposed.as_plain(), indent=1) + "\n")
        except OSError as error:
            raise cannot_write(self.out, error) from error

    def replays(self) -> dict[str, Run]:
        """Return the replay into each stack, new or to be gone on with.

        Raises UsageError: one cannot run, or would not be the same any more.
        """
        return {
            name: self._replay(name, stack_file)
            for name, stack_file in zip(self.stacks, self.request.stacks, strict=True)
        }

    def _replay(self, name: str, stack_file: str) -> Run:
        place, request = self.out / name, self.request
        if (place / RECORD).is_file():
            return Run.load(place) if finished(place) else Run.resume(place)
        replay = ReplayRequest(
            bags=request.bags,
            stack=stack_file,
            transport=request.transport,
            limit=request.limit,
            seed=request.seed,
            topics=request.topics,
            transforms=request.transforms,
            plugins=request.plugins,
            cases=str(self.out / CASES),
        )
        return Run.create(replay, str(place))


def finished(directory: Path) -> bool:
    """Whether a replay came to its end, good or bad; one that was interrupted did not."""
    summary = summary_of(directory)
    return bool(summary) and not summary["interrupted"] and summary["infrastructure"] is None


def summary_of(directory: Path) -> dict[str, Any]:
    """Return what a replay was summed up to, nothing before that."""
    path = directory / "summary.json"
    return read_result(path) if path.is_file() else {}


def _refuse_stack(stack: Stack, transport: str) -> None:
    refuse_world_inputs(stack)
    if "control" not in stack.answers:
        raise UsageError(
            f"stack '{stack.name}' answers {', '.join(stack.answers)}, no control: only speed and steering are judged"
        )
    if transport == "inprocess" and not stack.callable:
        raise UsageError(f"--transport inprocess: stack '{stack.name}' is not a Python callable; use --transport ros")
