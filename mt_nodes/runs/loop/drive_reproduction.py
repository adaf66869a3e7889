# SPDX-License-Identifier: Apache-2.0
"""One pair of drives of a finished run once more: both worlds of its ledger, driven through again and compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.engine.recorded_drives import episode_line, episode_lines
from mt_nodes.engine.recorded_pair import RecordedPair
from mt_nodes.runs.loop.scenario_request import ScenarioRequest
from mt_nodes.world.drive.trace import Trace
from mt_nodes.world.drive.trace_file import load_trace

_STACK = "the stack answered otherwise to what was the same until then: it is not deterministic, or it has changed"
_WORLD = "the world went another way after the same commands: it needs the same versions and CPU type"
_EITHER = (
    "after commands that are the same as far as a trace holds them (no yaw rate, no pedals): the stack, which is not "
    "deterministic or has changed, or versions or the CPU type are not the same"
)


@dataclass(frozen=True)
class DriveComparison:
    """Whether a drive came again bit for bit.

    ``what``: source, follow-up, or what the latter's stack was given. ``expected``: SHA-256 by the ledger. ``now``:
    what it came to, None where nobody drove. ``why``: where both drives part, empty where they do not.
    """

    what: str
    expected: str
    now: str | None
    why: str = ""

    @property
    def same(self) -> bool:
        """Whether it did."""
        return self.now == self.expected


def reproduction_request(finished: RecordedPair, transport: str = "") -> ScenarioRequest:
    """Return the request of a run, restricted to a pair of drives.

    Neither the scenario's file nor that of its waivers is asked for: both worlds are made of the ledger.
    ``transport``: another one than the run's.
    Raises UsageError: the relation is not there any more.
    """
    request = ScenarioRequest.from_plain(finished.about["request"])
    return dataclasses.replace(
        request,
        # A run that was asked for none had all that fit, and those ship.
        relations=(finished.relation(request.relations or (finished.pair.judged_for,)),),
        stack=finished.located(request.stack),
        transport=transport or request.transport,
        waivers="",
        only=str(finished.pair),
        recorded=str(finished.directory.resolve()),
    )


def compare_drives(finished: RecordedPair, out: Path) -> list[DriveComparison]:
    """Compare both drives with those of the run.

    ``out``: results directory of :func:`reproduction_request`.
    Raises MtError: a ledger or a trace is missing or damaged.
    """
    was = episode_line(finished.directory, finished.pair)
    now = episode_lines(out, [finished.pair]).get(finished.pair.followup)
    sides = (("source", was["source"], now and now["source"]), ("follow-up", was, now))
    found = [_compared(what, finished.directory / line["trace"], line, out, rerun) for what, line, rerun in sides]
    given = DriveComparison("given", was.get("sent_sha256", ""), (now or {}).get("sent_sha256", ""))
    # Other drives are given other things anyway; the same drive of other things is by a stack that did not look.
    return found if given.same or not all(side.same for side in found) else [*found, given]


def _compared(
    what: str, trace: Path, line: Mapping[str, Any], out: Path, rerun: Mapping[str, Any] | None
) -> DriveComparison:
    if rerun is None:
        return DriveComparison(what, line["sha256"], None)
    same = line["sha256"] == rerun["sha256"]
    why = "" if same else parting(load_trace(trace), load_trace(out / rerun["trace"]))
    return DriveComparison(what, line["sha256"], rerun["sha256"], why)


def parting(was: Trace, now: Trace) -> str:
    """Say where two drives part, and whether the stack or the world began, as far as traces tell."""
    rows = min(len(was), len(now))
    worlds = [_unlike(a[:rows], b[:rows]) for a, b in ((was.time_s, now.time_s), (was.ego, now.ego))]
    elsewhere = np.logical_or.reduce([*worlds, _unlike(was.actors[:rows], now.actors[:rows])])
    answers_differ = _unlike(was.commands[:rows], now.commands[:rows]) | (was.answered[:rows] != now.answered[:rows])
    if not (parted := np.flatnonzero(elsewhere | answers_differ)).size:
        return f"it ended otherwise: {now.ended} after {len(now)} instants, was {was.ended} after {len(was)}"
    row = int(parted[0])
    whose = _culprit(was, row) if elsewhere[row] else _STACK
    return f"both drives are the same until {was.time_s[row]:.1f} s; {whose}"


def _culprit(was: Trace, row: int) -> str:
    """Say who can have changed a world at a row, before which the commands that were kept are the same."""
    if row == 0:
        return _WORLD
    steering, speed, acceleration = was.commands[row - 1]
    return _EITHER if np.isnan(steering) or (np.isnan(speed) and np.isnan(acceleration)) else _WORLD


def _unlike(one: Floats, other: Floats) -> Mask:
    """(T,) whether rows (T, …) differ; what is not told (NaN) is like itself."""
    alike = (one == other) | (np.isnan(one) & np.isnan(other))
    return np.asarray(~alike.all(axis=tuple(range(1, alike.ndim))))
