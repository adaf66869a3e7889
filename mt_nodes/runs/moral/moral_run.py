# SPDX-License-Identifier: Apache-2.0
"""One campaign, checked: which stack is judged by which principles on which dilemmas; kept in ``run.json``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import plain
from mt_nodes.data.transforms import TransformTree
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.runs.moral.dilemma import Dilemma
from mt_nodes.runs.moral.moral_request import MoralRequest, checked_request
from mt_nodes.runs.moral.pool import load_pool, published
from mt_nodes.runs.moral.principle import Principle, load_principle
from mt_nodes.runs.run_directory import StackRun
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.stack import load_stack

COMMAND = "mt experiment moral"
EXPERIMENT = "moral"


@dataclass(frozen=True, eq=False)
class MoralRun(StackRun[MoralRequest]):
    """Everything that a campaign needs, checked: what cannot run was refused while making it.

    ``pool``: dilemmas to draw from. ``published``: those that come first, whatever is drawn.
    """

    COMMAND, KEY, REQUEST = COMMAND, "principles", MoralRequest

    principles: tuple[Principle, ...]
    pool: tuple[Dilemma, ...]
    published: tuple[Dilemma, ...]
    rig: Rig

    @classmethod
    def make(cls, request: MoralRequest, out: Path) -> MoralRun:
        """Load and check what the request names. Raises UsageError: saying what to type instead."""
        plugins.add_directories(map(Path, request.plugins))
        stack = with_faults(load_stack(request.stack), request.faults)
        request = checked_request(request, stack)
        principles = _principles(request.principles)
        pool = load_pool(request.pool)
        if not pool:
            raise UsageError(f"--pool {request.pool}: got no dilemma, expected one or more")
        first = published() if request.pool == MoralRequest().pool else ()
        return cls(request, out, stack, principles, pool, first, Rig.for_stack(stack))

    @property
    def judges(self) -> Sequence[Principle]:
        """The principles."""
        return self.principles

    @property
    def static_transforms(self) -> TransformTree:
        """Where the sensors are mounted."""
        return self.rig.mounts

    @property
    def topics_of_sources(self) -> dict[str, Any]:
        """The experiment -> role -> topic."""
        return {EXPERIMENT: dict(self.rig.topics)}

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
