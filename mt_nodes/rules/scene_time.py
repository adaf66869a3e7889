# SPDX-License-Identifier: Apache-2.0
"""The time of day from stamps, if they are calendar time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from mt_nodes.data.messages import Bundle
from mt_nodes.relations.facts.scene_facts import Fact, unknown

#: Earlier stamps are seconds of a simulation or of a machine's uptime, not of a calendar (2000-01-01 UTC).
_CALENDAR_NS = 946_684_800 * 10**9
#: Hours of the clock that are day, or night, all year between 55° north and south, where most roads are: an assumption,
#: with room for summer time. Other hours depend on the place and the date.
_DAY_H, _NIGHT_H = (9.0, 15.0), (23.5, 3.0)


def of_stamps(bundles: Sequence[Bundle], utc_offset_h: float | None) -> Fact:
    """Return ``day`` or ``night`` by the hour of the middle stamp."""
    stamp_ns = bundles[len(bundles) // 2].stamp_ns
    if stamp_ns < _CALENDAR_NS:
        return unknown("stamps are of no calendar")
    if utc_offset_h is None:
        return unknown("stamps are UTC, and the local time there is not known")
    local = datetime.fromtimestamp(stamp_ns // 10**9, timezone(timedelta(hours=utc_offset_h)))
    hour, source = local.hour + local.minute / 60.0, f"stamps: {local:%H:%M} local time"
    if _DAY_H[0] <= hour < _DAY_H[1]:
        return Fact("day", source)
    if hour >= _NIGHT_H[0] or hour < _NIGHT_H[1]:
        return Fact("night", source)
    return unknown(f"{source}, when it is light or not by place and date")


def reconciled(hour: Fact, light: Fact) -> Fact:
    """Return the time of day from stamps and pictures: the known one, or both if they agree; else unknown."""
    if not (hour.known and light.known):
        return light if light.known else hour if hour.known else unknown(f"{light.source}; {hour.source}")
    if hour.value == light.value:
        return Fact(light.value, f"{light.source}; {hour.source}")
    return unknown(f"{hour.source} says {hour.value}, {light.source} say {light.value}")
