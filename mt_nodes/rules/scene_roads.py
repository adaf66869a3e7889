# SPDX-License-Identifier: Apache-2.0
"""Road types by the tags of OpenStreetMap (wiki.openstreetmap.org, "Key:highway", "Key:junction" and the others named).

Several may fit at once: a crossing in a residential street is both.
"""

from __future__ import annotations

from collections.abc import Mapping

from mt_nodes.relations.facts.scene_facts import Fact, unknown

#: Key and value (``*``: any but ``no``) -> road type of the ontology; where one comes to stands before where one is.
_TAGS: tuple[tuple[str, str, str], ...] = (
    ("railway", "level_crossing", "level_crossing"),
    ("highway", "crossing", "crosswalk"),
    ("footway", "crossing", "crosswalk"),
    ("highway", "traffic_signals", "intersection"),
    ("highway", "bus_stop", "bus_stop"),
    ("junction", "roundabout", "roundabout"),
    ("junction", "circular", "roundabout"),
    ("junction", "yes", "intersection"),
    ("tunnel", "*", "tunnel"),
    ("bridge", "*", "bridge"),
    ("amenity", "school", "school_zone"),
    ("hazard", "children", "school_zone"),
    ("highway", "construction", "work_zone"),
    ("highway", "motorway", "motorway"),
    ("highway", "motorway", "freeway"),
    ("highway", "trunk", "freeway"),
    ("highway", "residential", "residential_area"),
    ("highway", "living_street", "residential_area"),
    ("landuse", "residential", "residential_area"),
    ("landuse", "industrial", "industrial_area"),
    ("landuse", "harbour", "port_area"),
    ("service", "alley", "alley"),
    ("highway", "pedestrian", "pedestrian_zone"),
    ("highway", "footway", "footpath"),
    ("highway", "cycleway", "bicycle_path"),
)


def road_of_tags(tags: Mapping[str, str]) -> Fact:
    """Return the road types that tags of a way, and of nodes ahead on it, stand for; unknown without any tag."""
    if not tags:
        return unknown("no map")
    roads = dict.fromkeys(road for key, value, road in _TAGS if _has(tags, key, value))
    told = ", ".join(f"{key}={value}" for key, value in sorted(tags.items()))
    return Fact(tuple(roads), f"map tags: {told}")


def _has(tags: Mapping[str, str], key: str, value: str) -> bool:
    return tags.get(key) == value or (value == "*" and tags.get(key, "no") != "no")
