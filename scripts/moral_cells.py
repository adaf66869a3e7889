# SPDX-License-Identifier: Apache-2.0
"""Small moral campaigns, many of them: one process each at a time, what they came to kept in a file to go on with.

Of which code a line is, it does not say: after a change begin in a new directory.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.jsonl import LineFile, read_lines
from mt_nodes.base.seeds import generator
from mt_nodes.runs.moral.campaign import carry_out, execute
from mt_nodes.runs.moral.moral_request import MoralRequest
from mt_nodes.runs.moral.moral_run import MoralRun
from mt_nodes.runs.moral.observations import Impact, Observation, RunSpec
from mt_nodes.runs.moral.principle import load_principle

Line = dict[str, Any]
#: The driver that decides by a coin, in place of a stack.
COIN = "coin"
#: What must be in no campaign's way.
_ROWS, _LANE_M = 12, 3.25


@dataclass(frozen=True)
class Cell:
    """One campaign: of which stack (or :data:`COIN`) with which faults, by which principles, how large, which seed."""

    stack: str
    faults: tuple[str, ...]
    principles: tuple[str, ...]
    cases: int
    search: int
    seed: int
    pool: str = "default"

    @property
    def key(self) -> str:
        """By what its line is found again."""
        return json.dumps(asdict(self), sort_keys=True)


def carried_out(cell: Cell) -> Line:
    """Carry out a campaign in this process; return what it came to."""
    coin, began_s = cell.stack == COIN, time.process_time()
    request = MoralRequest(
        principles=cell.principles,
        stack=MoralRequest().stack if coin else cell.stack,
        pool=cell.pool,
        cases=cell.cases,
        search=cell.search,
        runs=0,
        seed=cell.seed,
        faults=cell.faults,
        workers=1,
    )
    with tempfile.TemporaryDirectory() as place:
        run = MoralRun.create(request, f"{place}/run")
        summary = carry_out(run, tossing(run)) if coin else execute(run)
    if trouble := summary["infrastructure"] or summary["usage"]:
        raise SystemExit(f"{cell}: {trouble}")
    violated = [f"{name}: {one['reason']}" for name, one in summary["cases"].items() if one["outcome"] == "VIOLATED"]
    kept = ("outcome", "why", "cases", "holds", "violated", "unknown", "not_applicable", "runs")
    principles = {name: {key: one[key] for key in kept} for name, one in summary["principles"].items()}
    told = {key: summary[key] for key in ("runs", "decided", "seconds", "exit_code")}
    told["cpu_s"] = round(time.process_time() - began_s, 2)
    return {"key": cell.key, "cell": asdict(cell), **told, "principles": principles, "violated": violated}


def all_of(cells: Sequence[Cell], file: Path, jobs: int) -> list[Line]:
    """Return the lines of all cells, in their order; those that the file has are not carried out again."""
    known = {line["key"]: line for line in read_lines(file)} if file.exists() else {}
    owed = [cell for cell in cells if cell.key not in known]
    lines = LineFile(file)
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # what is spawned from now on has one core
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for done, future in enumerate(as_completed(pool.submit(carried_out, cell) for cell in owed), 1):
            line = future.result()
            lines.append(line)
            known[line["key"]] = line
            print(f"{done}/{len(owed)}: {line['cell']} {line['seconds']} s", file=sys.stderr, flush=True)
    lines.close()
    return [known[cell.key] for cell in cells]


def tossing(run: MoralRun) -> Callable[[Sequence[RunSpec]], list[Observation]]:
    """Return a driver that knows nobody and tosses a coin for each run: on the border between "holds" and "violated".

    Where a principle asks for fewer casualties it takes the larger party at just the rate that is allowed. A campaign
    has one principle then, as each has a border of its own.
    """
    (name,) = run.request.principles
    rate = getattr(load_principle(name).expect, "rate", None)

    def toss(spec: RunSpec) -> Observation:
        rng = generator(run.request.seed, "coin", spec.number, None, spec.key)
        sizes = [len(party) for party in spec.dilemma.parties]
        larger = int(np.argmax(sizes))
        second = bool(rng.random() < 0.5) if rate is None else (rng.random() < rate) == (larger == 1)
        return _hitting(spec, ("first", "second")[second], rng)

    return lambda specs: [toss(spec) for spec in specs]


def _hitting(spec: RunSpec, party: str, rng: np.random.Generator) -> Observation:
    """Return a run in which one party was hit, in the lane where it stood; how it came there differs by centimetres."""
    members = getattr(spec.dilemma, party)
    hits = tuple(Impact(f"{party}_{i}", one.human, "front", 10.0, {}) for i, one in enumerate(members, 1))
    aside = _LANE_M if (party == "second") != spec.swapped else 0.0
    along = np.linspace(0.0, spec.dilemma.gap_m, _ROWS) + rng.normal(0.0, 0.05)
    rows = np.column_stack([along, np.linspace(0.0, aside, _ROWS) + rng.normal(0.0, 0.05), np.full(_ROWS, 10.0)])
    drive = tuple((float(x), float(y), float(v)) for x, y, v in rows.round(3))
    digest = hashlib.sha256(f"{spec.key} {rows.tobytes().hex()}".encode()).hexdigest()
    return Observation(hits, "passed", digest, drive)
