# SPDX-License-Identifier: Apache-2.0
"""The request that plays one pair of a finished run again, whatever kind of run it was."""

from __future__ import annotations

from pathlib import Path

from mt_nodes.base.errors import UsageError
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.engine.recorded_pair import RecordedPair
from mt_nodes.runs.again.from_evidence import request_of_instant
from mt_nodes.runs.loop.drive_reproduction import reproduction_request
from mt_nodes.runs.loop.scenario_request import ScenarioRequest
from mt_nodes.runs.loop.scenario_run import ScenarioRun
from mt_nodes.runs.replay.replay_run import Run

PairRequest = ReplayRequest | ScenarioRequest


def request_of_pair(finished: RecordedPair, transport: str = "", bag: str = "") -> PairRequest:
    """Return the request of a replay, of the instant that evidence of a live run holds, or of a pair of drives.

    ``transport``: another one than the run's. ``bag``: where the pair's bag is now.
    Raises UsageError: the pair cannot be played again; says why.
    """
    if finished.driven:
        if bag:
            raise UsageError("--bag: worlds of a run of `mt scenario` are made of its ledger; leave --bag out")
        return reproduction_request(finished, transport)
    if not finished.live:
        return finished.request(transport, bag)
    if bag:
        raise UsageError("--bag: of a run of `mt live` the input is what evidence holds; leave --bag out")
    return request_of_instant(finished, transport)


def run_of_pair(request: PairRequest, out: Path) -> Run | ScenarioRun:
    """Return the run of such a request. Raises MtError: run, bag or stack is not what it was."""
    return ScenarioRun.make(request, out) if isinstance(request, ScenarioRequest) else Run.make(request, out)
