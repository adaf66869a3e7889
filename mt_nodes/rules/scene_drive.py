# SPDX-License-Identifier: Apache-2.0
"""Scene facts from a world, where the source drives towards the changed place of the follow-up's world."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mt_nodes.base.seeds import generator
from mt_nodes.data.lanes import SignalStates
from mt_nodes.data.messages import Bundle, Odometry, WorldMessage
from mt_nodes.data.outputs import Detections
from mt_nodes.relations.checks.trace_check import RoadStretch
from mt_nodes.relations.facts.condition import HAS
from mt_nodes.relations.facts.derived_facts import with_derived
from mt_nodes.relations.facts.scene_ego import ego_motion
from mt_nodes.relations.facts.scene_facts import Fact, Facts, first_known
from mt_nodes.relations.world_changes.base import WorldEffects
from mt_nodes.rules.scene_world import world_facts
from mt_nodes.world.drive.driven import ScenarioTrace
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.route import lane_of
from mt_nodes.world.drive.scenario import Pose
from mt_nodes.world.drive.signals import colour_at, programmes
from mt_nodes.world.drive.teller import Teller
from mt_nodes.world.drive.trace import EgoState, WorldState

#: Number of sampled instants of the stretch.
_SAMPLES = 6
#: A turning ego changes its heading by at least the first value up to this far after the stretch, one that goes
#: straight by less than the second. Both are assumed: junctions turn by a quarter circle or not at all.
_TURNS_RAD, _STRAIGHT_RAD, _BEHIND_M = 0.5, 0.2, 20.0
#: ``can_stop_before_line``: braking this hard after this time; as in the ontology.
_LATE_S, _BRAKES_MPS2 = 1.0, 3.0
_SOURCE = "the world, where the source drives"


def facts_on_stretch(source: ScenarioTrace, stretch: RoadStretch, effects: WorldEffects) -> dict[str, Any]:
    """Return the facts at the beginning of a stretch, or in the middle of a whole way, by name.

    Temporary facts refer to the whole stretch: lights and signs ahead at any time of it, and a way that is clear all
    the time. For a light that turns yellow that instant counts.
    """
    road = load_map(source.scenario.road)
    row, (first, last) = stretch.now, stretch.rows
    if "from_s" in effects.numbers:
        after = int(np.searchsorted(source.trace.time_s, effects.numbers["from_s"]))
        row = min(after, len(source.trace) - 1)
    rows = sorted({row, *np.linspace(first, last - 1, _SAMPLES).round().astype(int).tolist()})
    looks = dict(zip(rows, _sampled(source, road, rows), strict=True))
    world = {**looks[row][0], **_throughout([facts for facts, _ in looks.values()])}
    ego = ego_motion((looks[row][1],), (), source.scenario.ego.vehicle.wheelbase_m)
    known = first_known(_of_the_drive(source, road, stretch, row, effects, world), with_derived(world | ego))
    return {name: fact.value for name, fact in known.items() if fact.known}


def _sampled(source: ScenarioTrace, road: RoadMap, rows: list[int]) -> Iterator[tuple[Facts, Bundle]]:
    """Yield the world's facts at rows of a trace."""
    scenario, trace = source.scenario, source.trace
    teller, lights = Teller(scenario, road), programmes(road, scenario.signals)
    for row in rows:
        time_s = float(trace.time_s[row])
        colours = {name: colour_at(programme, time_s) for name, programme in lights.items()}
        actors = trace.actors[row]
        state = WorldState(time_s, EgoState(*trace.ego[row].tolist()), actors, np.zeros(len(actors)), colours)
        messages: dict[str, Detections | Odometry | SignalStates] = {
            "objects": teller.objects(state, 0, generator(0, "facts", 0, None, 0)),
            "odometry": teller.odometry(state, 0),
            "signals": teller.signals(state, 0),
        }
        world_messages = tuple(
            WorldMessage(f"/{role}", role, 0, data.frame_id, data) for role, data in messages.items()
        )
        bundle = Bundle(0, 0, 0, world_messages=world_messages)
        yield world_facts(scenario, road, bundle), bundle


def _throughout(instants: list[Facts]) -> Facts:
    """Return the facts for several instants: everything present at any, a way clear at all, the least gap."""
    together: dict[str, Callable[[Any], Any]] = {
        HAS: lambda sets: frozenset().union(*sets),
        "path_clear": all,
        "lead_gap_m": min,
    }
    always = {}
    for name, join in together.items():
        values = [facts[name].value for facts in instants if name in facts and facts[name].known]
        if len(values) == len(instants):
            always[name] = Fact(join(values), _SOURCE)
    return always


def _of_the_drive(
    source: ScenarioTrace, road: RoadMap, stretch: RoadStretch, row: int, effects: WorldEffects, world: Facts
) -> Facts:
    """Return the facts of the trace itself: the lane, its turn, whether it can stop, the time gap."""
    ego = EgoState(*source.trace.ego[row].tolist())
    lane = lane_of(road, Pose(ego.x_m, ego.y_m, ego.yaw_rad))
    names = {(True, False): "rightmost", (False, True): "leftmost", (True, True): "middle", (False, False): "only"}
    facts: Facts = {"ego_lane": Fact(names[bool(lane.left), bool(lane.right)], f"map '{road.name}'")}
    if "intersection" in (world["roads"].value or ()):
        facts |= _turning(source, stretch)
    gap = world.get("lead_gap_m")
    if gap is not None and ego.speed_mps > 0.0:
        facts["time_gap_s"] = Fact(gap.value / ego.speed_mps, _SOURCE)
    if effects.at is not None and effects.changed:
        to_line_m = float(np.hypot(effects.at.x_m - ego.x_m, effects.at.y_m - ego.y_m))
        needs_m = ego.speed_mps * _LATE_S + ego.speed_mps**2 / (2.0 * _BRAKES_MPS2)
        facts["can_stop_before_line"] = Fact(needs_m <= to_line_m - source.scenario.ego.vehicle.front_m, _SOURCE)
    return facts


def _turning(source: ScenarioTrace, stretch: RoadStretch) -> Facts:
    yaw = np.unwrap(source.trace.column("yaw_rad"))
    before, after = np.interp([stretch.at_m[0], stretch.at_m[-1] + _BEHIND_M], source.way_m, yaw)
    turn = float(after - before)
    if _STRAIGHT_RAD < abs(turn) < _TURNS_RAD:
        return {}
    heading = "straight" if abs(turn) <= _STRAIGHT_RAD else "left" if turn > 0.0 else "right"
    changes = {
        "ego_turning": heading != "straight",
        "ego_turning_left": heading == "left",
        "ego_turning_right": heading == "right",
        "ego_heading": heading,
    }
    return {name: Fact(value, "the source's way") for name, value in changes.items()}
