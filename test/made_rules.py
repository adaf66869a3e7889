# SPDX-License-Identifier: Apache-2.0
"""Relations from rules, and scenes, without rule texts and without drives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.data.detector_coverage import DetectorCoverage
from mt_nodes.relations.facts.scene_facts import Fact
from mt_nodes.rules.nearest_texts import Fitted, Index
from mt_nodes.rules.scene import SceneFacts
from mt_nodes.rules.scene_detector import SceneDetector
from mt_nodes.rules.statement import ADDS, ON_ROAD, REPLACES, Statement
from mt_nodes.rules.store_entry import Entry
from mt_nodes.stacks.stack import load_stack


def entry(element: str, road: str = "any_road", condition: str = "", *rules: str, **rest: Any) -> Entry:
    """A relation that slows down, of the region germany."""
    verb = REPLACES if element in ("rain", "fog", "night") else ADDS
    place = ON_ROAD if verb == ADDS else ""
    behaviour = rest.pop("behaviour", "slow_down")
    said = Statement(road, verb, element, behaviour, place, condition, rules)
    return Entry(said, rest.pop("region", "germany"), **rest)


def some() -> list[Entry]:
    """Relations of several roads and conditions."""
    return [
        entry("rain", "any_road", "speed_kmh > 50", "DE-03"),
        entry("red_light", "intersection", "", "DE-26", "DE-34"),
        entry("pedestrian", "crosswalk", "", "CA-05", region="california"),
        entry("cyclist", "any_road", "", "CA-16", region="california"),
        entry("child", "school_zone", "", "CA-09", region="california"),
    ]


def scene(roads: tuple[str, ...] | None = (), **facts: Any) -> SceneFacts:
    """A scene in which the ego moves; what is None is not known."""
    known = {"moving": True, "roads": roads, **facts}
    return SceneFacts({name: Fact(value, "a test says so") for name, value in known.items()})


def lamp_detector() -> SceneDetector:
    """The detector of lamps with a recall that a test takes for granted."""
    shares = dict.fromkeys(("red_light", "yellow_light", "green_light"), 0.97)
    coverage = DetectorCoverage(35.0, 60.0, shares, given="scene_bright and visibility_good", measured="a test")
    return SceneDetector(replace(load_stack("reference_lamps"), coverage={"boxes": coverage}))


def by_letters(corpus: Sequence[str]) -> Fitted:
    """An embedder that needs no library: how often each letter is in a text."""

    def embed(texts: Sequence[str]) -> Floats:
        return np.array([[text.count(chr(97 + i)) for i in range(26)] for text in texts], dtype=np.float64)

    return embed


def index_by_letters(texts: Sequence[str]) -> Index:
    """An index by :func:`by_letters`."""
    return Index(texts, by_letters)
