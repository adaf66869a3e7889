# SPDX-License-Identifier: Apache-2.0
"""What a live run learns from outside, and where its status goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mt_nodes.runs.live.attendance import Presence, always_present
from mt_nodes.runs.live.live_judging import nothing_missed


@dataclass(frozen=True)
class LiveSurroundings:
    """What a live run learns from outside, and where its status goes.

    Attributes:
        publish_status: called often with the status; an exception of it ends the run.
        missed_inputs: counts the inputs between two stamps (ns) that the live stack received and the suite did not.
        presence: whether the instances that somebody else starts and ends are there.
        refusal: why nothing may be tested at present; empty if it may.
        over_duty: why no test may begin now, as too much processor time was taken; empty if one may. It is given
            ``limits.duty_ms_per_s``.
    """

    publish_status: Callable[[dict[str, Any]], None] = lambda status: None
    missed_inputs: Callable[[int, int], int] = nothing_missed
    presence: Callable[[], Presence] = always_present
    refusal: Callable[[], str] = lambda: ""
    over_duty: Callable[[float], str] = lambda most_ms_per_s: ""
