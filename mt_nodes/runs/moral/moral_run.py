# SPDX-License-Identifier: Apache-2.0
"""One campaign, checked: which stack is judged by which principles on which dilemmas; kept in ``run.json``."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.base.message_packages import refuse_missing
from mt_nodes.base.params import plain
from mt_nodes.data.transforms import dump_transforms
from mt_nodes.engine.run_record import in_directory, note_resumed, request_of, write_record
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.runs.moral.dilemma import Dilemma
from mt_nodes.runs.moral.moral_request import MoralRequest, checked_request
from mt_nodes.runs.moral.pool import load_pool, published
from mt_nodes.runs.moral.principle import Principle, load_principle
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.stack import Stack, load_stack

COMMAND = "mt experiment moral"
EXPERIMENT = "moral"


@dataclass(frozen=True, eq=False)
class MoralRun:
    """Everything that a campaign needs, checked: what cannot run was refused while making it.

    Attributes:
        pool: dilemmas to draw from. published: those that come first, whatever is drawn.
    """

    request: MoralRequest
    principles: tuple[Principle, ...]
    pool: tuple[Dilemma, ...]
    published: tuple[Dilemma, ...]
    stack: Stack
    rig: Rig
    out: Path

    @classmethod
    def make(cls, request: MoralRequest, out: Path) -> MoralRun:
        """Load and check what the request names.

        Raises:
            UsageError: saying what to type instead.
        """
        for directory in request.plugins:
            if Path(directory).resolve() not in plugins.directories():
                plugins.add_directory(Path(directory))
        stack = with_faults(load_stack(request.stack), request.faults)
        request = checked_request(request, stack)
        principles = _principles(request.principles)
        pool = load_pool(request.pool)
        if not pool:
            raise UsageError(f"--pool {request.pool}: got no dilemma, expected one or more")
        first = published() if request.pool == MoralRequest().pool else ()
        return cls(request, principles, pool, first, stack, Rig.for_stack(stack), out)

    @classmethod
    def create(cls, request: MoralRequest, out: str | None) -> MoralRun:
        """Make a run, its directory (a new one below ``mt_results`` when ``out`` is empty) and what it holds at first.

        Raises:
            UsageError: it cannot run, and nothing was written; or the directory holds another run.
            InfrastructureError: the directory cannot be written.
        """
        checked = cls.make(request, Path(out or "."))
        if checked.request.transport == "ros":
            refuse_missing(checked.stack.message_types, f"stack '{checked.stack.name}'")
        return in_directory(out, lambda place: dataclasses.replace(checked, out=place), cls.save)

    @classmethod
    def load(cls, out: Path) -> MoralRun:
        """Make the run that :meth:`save` described.

        Raises:
            UsageError: the directory holds none.
        """
        return cls.make(MoralRequest.from_plain(request_of(out, "principles", COMMAND)), out)

    @classmethod
    def resume(cls, out: Path) -> MoralRun:
        """Make the run of a results directory, to go on with it, and note in ``run.json`` that it was resumed.

        Raises:
            UsageError: there is none, or it would not be the same run any more: a principle or the stack has changed.
        """
        run = cls.load(out)
        note_resumed(out, run.principles, run.stack)
        return run

    def save(self) -> None:
        """Write ``run.json``, and the stack and transforms for the processes that host it."""
        dump_transforms(self.rig.mounts, self.out / "transforms.yaml")
        write_record(self.out, self.request, self.principles, self.stack, {EXPERIMENT: dict(self.rig.topics)})

    @property
    def condition(self) -> dict[str, Any]:
        """What the journal begins with; what may be changed when going on (time, workers) is none of it."""
        request, dilemmas = self.request, [plain(dilemma) for dilemma in (*self.published, *self.pool)]
        digest = hashlib.sha256(json.dumps(dilemmas, sort_keys=True).encode()).hexdigest()
        return {
            "experiment": EXPERIMENT,
            "seed": request.seed,
            "transport": request.transport,
            "stack": self.stack.name,
            "faults": list(request.faults),
            "principles": [principle.id for principle in self.principles],
            "pool": {"name": request.pool, "dilemmas": len(dilemmas), "sha256": digest},
            "cases": request.cases,
            "search": request.search,
            "runs": request.runs,
        }


def _principles(names: Sequence[str]) -> tuple[Principle, ...]:
    found = tuple(load_principle(name) for name in names)
    ids = [principle.id for principle in found]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise UsageError(f"--principles: got {', '.join(twice)} twice, expected each once")
    return found
