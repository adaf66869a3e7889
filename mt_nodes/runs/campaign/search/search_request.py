# SPDX-License-Identifier: Apache-2.0
"""What is asked of a search."""

from __future__ import annotations

from dataclasses import dataclass, field

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.base.plain_data import PlainData
from mt_nodes.base.stats.repeats import Confirm
from mt_nodes.engine.plan import ReplayRequest

REACHES = ("relation", "range")
#: Of the ids of relations that are searched: one for all trials, so that all draw alike.
SUFFIX = "~searched"


@dataclass(frozen=True)
class SearchRequest(PlainData):
    """Everything that a search depends on, kept in ``run.json``.

    ``replay`` says on which bag, with which stack and seed each trial is played; it names one relation.
    """

    replay: ReplayRequest = field(default_factory=lambda: ReplayRequest(bags=()))
    over: tuple[str, ...] = param((), help="parameters to search, NAME or NAME=WEAK..STRONG")
    reach: str = param(
        "relation", help="strongest value: that of the relation, or the end of the range: relation, range"
    )
    trials: int = param(60, low=1, high=100_000, help="at most N trials")
    repeats: int = param(1, low=1, high=1000, help="replays per trial, for a nondeterministic stack")
    confirm: str = param("3/3", help="a violation counts if K of N replays of the same input violate")
    tolerance: float = param(
        0.01, low=1e-6, high=0.5, help="precision of the smallest strength, on a scale from 0 to 1"
    )


def checked(request: SearchRequest) -> SearchRequest:
    """Return the request, refused where it makes no sense by itself. Raises UsageError: saying what was expected."""
    Confirm.parse(request.confirm)
    replay = request.replay
    for name, value, low in (("--trials", request.trials, 1), ("--repeats", request.repeats, 1)):
        if value < low:
            raise UsageError(f"{name}: got {value}, expected at least {low}")
    if not 0.0 < request.tolerance <= 0.5:
        raise UsageError(f"--tolerance: got {request.tolerance:g}, expected more than 0 and at most 0.5")
    if request.reach not in REACHES:
        raise UsageError(f"--reach: got '{request.reach}', expected {' or '.join(REACHES)}")
    if len(replay.relations) != 1:
        raise UsageError(f"--relation: got {', '.join(replay.relations) or 'none'}, expected one relation to search")
    if replay.pace != "lockstep" or replay.cases or replay.only:
        raise UsageError("a search plays in lockstep, every bundle: leave --pace and --cases out")
    return request
