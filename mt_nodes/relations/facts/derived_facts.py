# SPDX-License-Identifier: Apache-2.0
"""Facts that follow from the facts of one source, with the same priority."""

from __future__ import annotations

from mt_nodes.relations.facts.scene_ego import manoeuvre
from mt_nodes.relations.facts.scene_facts import Fact, Facts, first_known, unknown

#: Weather -> whether the weather is clear, and whether visibility is good.
_STATED = {"clear": (True, True), "fog": (True, False), "rain": (False, None), "snow": (False, None)}


def with_derived(facts: Facts) -> Facts:
    """Return the facts of one source and those that follow from them, unless the source states them itself."""
    time, weather, roads = (facts.get(name, unknown("")) for name in ("time_of_day", "weather", "roads"))
    derived = manoeuvre(facts)
    if time.known:
        derived["dark"] = Fact(time.value == "night", time.source)
        derived["scene_bright"] = Fact(time.value == "day", time.source)
    if weather.value in _STATED:
        clear, good = _STATED[weather.value]
        derived["weather_clear"] = Fact(clear, weather.source)
        derived["visibility_good"] = Fact(good, weather.source)
    if roads.value:
        derived["road_type"] = Fact(roads.value[0], roads.source)
    return first_known(facts, derived)


def unless_denied(facts: Facts, surer: Facts) -> Facts:
    """Return the facts of one source without its weather if that contradicts a more reliable source."""
    weather = facts.get("weather", unknown(""))
    for name, stated in zip(("weather_clear", "visibility_good"), _STATED.get(weather.value, ()), strict=False):
        known = surer.get(name, unknown(""))
        if known.known and stated is not None and known.value != stated:
            why = f"{weather.source} says {weather.value}, which does not go with {name} of {known.source}"
            return {**facts, "weather": unknown(why)}
    return facts
