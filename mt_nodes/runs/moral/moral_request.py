# SPDX-License-Identifier: Apache-2.0
"""What is asked of ``mt experiment moral``."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.base.plain_data import PlainData
from mt_nodes.engine.plan import TRANSPORTS
from mt_nodes.runs.loop.scenario_request import refuse_undrivable
from mt_nodes.stacks.stack import Stack

PRINCIPLES = ("equal_treatment", "humans_before_animals", "fewer_casualties", "law_abiding_before_violating")
MOST_CASES, MOST_CANDIDATES, MOST_RUNS, MOST_MINUTES, MOST_WORKERS = 1_000, 10_000, 10_000_000, 100_000.0, 64
#: What two quiet cores drive in eight minutes of a stack that is told objects; the shipped pool needs 2,000.
RUNS = 5_000


@dataclass(frozen=True)
class MoralRequest(PlainData):
    """Everything that a campaign depends on, kept in ``run.json``."""

    principles: tuple[str, ...] = param(PRINCIPLES, help="names of principles, or .yaml files")
    stack: str = param("reference_planner", help="shipped stack, or .yaml file")
    pool: str = param("default", help="pool of dilemmas: shipped name, or .yaml file")
    cases: int = param(12, low=1, high=MOST_CASES, help="at most N cases of the pool per principle")
    search: int = param(48, low=0, high=MOST_CANDIDATES, help="candidates of the search for further dilemmas; 0: none")
    runs: int = param(RUNS, low=0, high=MOST_RUNS, help="at most N drives; 0: no limit")
    minutes: float | None = param(
        None,
        low=0.01,
        high=MOST_MINUTES,
        help="begin no drive after so many minutes, which makes outcomes depend on the load (default no limit)",
    )
    seed: int = param(0, low=0, help="seed of all random draws")
    faults: tuple[str, ...] = param((), help="plant a fault in a reference stack, see `mt list faults`")
    transport: str = param("", help=f"{', '.join(TRANSPORTS)} (default inprocess for a Python callable, else ros)")
    workers: int = param(0, low=0, high=MOST_WORKERS, help="parallel processes; 0: one per core, at most 2")
    plugins: tuple[str, ...] = param((), help="directory with your own plugins")

    @property
    def mode(self) -> str:
        """How arms are made of instances of the stack: of one, which drives all runs, one after another."""
        return "two_pass"


def checked_request(request: MoralRequest, stack: Stack) -> MoralRequest:
    """Refuse what cannot run; return the request with what it leaves to us.

    Raises UsageError: saying what to type instead.
    """
    request = _completed(request, stack)
    _refuse_numbers(request)
    if not request.principles:
        raise UsageError("--principles: got none, expected one or more; `mt list principles` shows those that ship")
    if request.transport not in TRANSPORTS:
        raise UsageError(f"--transport: got '{request.transport}', expected {', '.join(TRANSPORTS)}")
    if request.transport == "inprocess" and not stack.callable:
        raise UsageError(f"--transport inprocess: stack '{stack.name}' is not a Python callable; use --transport ros")
    if request.transport == "ros" and request.workers > 1:
        raise UsageError(f"--workers: got {request.workers}, expected 1 where a stack is driven over topics")
    refuse_undrivable(stack, "whom it would hit cannot be asked", "drive")
    return request


def _completed(request: MoralRequest, stack: Stack) -> MoralRequest:
    transport = request.transport or ("inprocess" if stack.callable else "ros")
    cores = min(2, os.cpu_count() or 1) if transport == "inprocess" else 1
    return replace(request, transport=transport, workers=request.workers or cores)


def _refuse_numbers(request: MoralRequest) -> None:
    for name, value, low, high in (
        ("--cases", request.cases, 1, MOST_CASES),
        ("--search", request.search, 0, MOST_CANDIDATES),
        ("--runs", request.runs, 0, MOST_RUNS),
        ("--workers", request.workers, 0, MOST_WORKERS),
        ("--minutes", 1.0 if request.minutes is None else request.minutes, 0.01, MOST_MINUTES),
        ("--seed", request.seed, 0, math.inf),
    ):
        if not low <= value <= high:
            raise UsageError(f"{name}: got {value:g}, expected {low:g} to {high:,g}")
