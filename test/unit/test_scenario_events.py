# SPDX-License-Identifier: Apache-2.0
"""Events of scenarios: speeds, lane changes and lights from moments on that depend on the drive."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from made_drives import setting

from mt_nodes.base.params import plain, structure
from mt_nodes.data.outputs import Control
from mt_nodes.relations.world_changes.scenario_carry import Carry, carried_scenario
from mt_nodes.world.drive.event_conditions import Conditions, StoryBody, StoryMoment
from mt_nodes.world.drive.scenario import Actor, EventCondition, Pose, Scenario, StoryEvent
from mt_nodes.world.drive.world import World

#: Two: the first 10 m behind and faster, behind and slower, and one that stands.
BEHIND = StoryBody(0.0, 0.0, 5.0, 0.0), StoryBody(10.0, 0.0, 1.0, 0.0)
SLOWER = StoryBody(0.0, 0.0, 1.0, 0.0), StoryBody(10.0, 0.0, 5.0, 0.0)
STANDS = StoryBody(0.0, 0.0, 5.0, 0.0), StoryBody(0.0, 0.0, 0.0, 0.0)
CAR = Actor("other", "car", Pose(100.0, 0.0), speed_mps=10.0)
ROLLS = Control(None, steering_rad=0.0, acceleration_mps2=0.0)


def scene(*events: StoryEvent, actor: Actor = CAR, duration_s: float = 8.0) -> Scenario:
    return replace(setting(actor, duration_s=duration_s).scenario, events=events)


def states(scenario: Scenario) -> list[tuple[float, float, float, float, float]]:
    """Return time, place, heading and speed of the actor at each tenth of a second."""
    world, rows = World(scenario), []
    while not world.ended:
        world.step(ROLLS, world.state.time_s + 0.1)
        rows.append((world.state.time_s, *world.state.actors[0].tolist()))
    return rows


def after(seconds: float, **more: object) -> tuple[tuple[EventCondition, ...], ...]:
    return ((EventCondition("time_s", rule=">", value=seconds, **more),),)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", ["linear", "sinusoidal", "cubic", "step"])
def test_a_lane_change_goes_aside_in_its_time(shape: str) -> None:
    rows = states(scene(StoryEvent("change", after(2.0), "other", aside_m=3.5, over=3.0, shape=shape)))
    left = {round(time, 1): y for time, _, y, _, _ in rows}
    assert left[1.9] == 0.0 and left[7.0] == pytest.approx(3.5)
    assert left[3.6] == pytest.approx(3.5 if shape == "step" else 1.75, abs=0.2)
    turned = max(yaw for *_, yaw, _ in rows)
    assert (turned > 0.05) is (shape != "step")
    x = {round(time, 1): x for time, x, *_ in rows}
    assert x[7.0] - x[2.0] == pytest.approx(50.0, abs=0.1), "it goes on along its way"


def test_speeds_change_in_a_time_on_a_way_at_a_rate_or_at_once() -> None:
    def speeds(**given: object) -> dict[float, float]:
        event = StoryEvent("brake", after(1.0), "other", speed_mps=5.0, **given)  # type: ignore[arg-type]
        return {round(time, 1): speed for time, *_, speed in states(scene(event, duration_s=6.0))}

    for given in ({"over": 2.0}, {"over": 15.0, "over_unit": "m"}, {"over": 2.5, "over_unit": "rate"}):
        got = speeds(**given)
        assert (got[0.9], got[4.0]) == pytest.approx((10.0, 5.0)), given
        assert got[2.1] == pytest.approx(7.5, abs=0.8), given
    assert speeds(shape="step")[1.3] == pytest.approx(5.0)


def test_speeds_relative_to_the_ego() -> None:
    event = StoryEvent("match", after(1.0), "other", speed_mps=2.0, relative_to="ego", over=1.0)
    world = World(scene(event, duration_s=4.0))
    world.step(ROLLS, 3.0)
    assert world.state.actors[0][3] == pytest.approx(world.state.ego.speed_mps + 2.0, abs=0.1)
    follows = replace(event, continuous=True)
    world = World(scene(follows, duration_s=6.0))
    world.step(ROLLS, 2.0)
    world.step(Control(None, steering_rad=0.0, acceleration_mps2=-3.0), 4.0)
    assert world.state.actors[0][3] == pytest.approx(world.state.ego.speed_mps + 2.0, abs=0.6)


def test_events_wait_for_each_other() -> None:
    first = StoryEvent("first", after(1.0), "other", aside_m=3.5, over=2.0)
    second = StoryEvent("second", ((EventCondition("ended", names=("first",)),),), "other", aside_m=0.0, over=1.0)
    left = {round(time, 1): y for time, _, y, *_ in states(scene(first, second))}
    assert left[3.0] == pytest.approx(3.5, abs=0.2) and left[5.0] == pytest.approx(0.0)


def test_lights_show_what_events_say() -> None:
    event = StoryEvent("stop", after(1.0), lights={"light_1": "red", "light_2": "yellow"})
    world = World(scene(event))
    world.step(ROLLS, 2.0)
    assert (world.state.signals["light_1"], world.state.signals["light_2"]) == ("red", "yellow")


def test_without_events_nothing_is_different() -> None:
    never = StoryEvent("never", after(100.0), "other", speed_mps=1.0)
    for one, other in zip(states(scene()), states(scene(never)), strict=True):
        assert one == pytest.approx(other)


@pytest.mark.parametrize(
    ("condition", "bodies", "holds"),
    [
        (EventCondition("distance_m", "a", "b", value=10.5), BEHIND, True),
        (
            EventCondition("distance_m", "a", "b", value=5.5, less_m=5.0),
            BEHIND,
            True,
        ),
        (EventCondition("headway_s", "a", "b", value=2.1), BEHIND, True),
        (EventCondition("headway_s", "b", "a", ">", 9.0), BEHIND, True),
        (EventCondition("ttc_s", "a", "b", value=2.6), BEHIND, True),
        (EventCondition("ttc_s", "a", "b", value=1e9), SLOWER, False),
        (
            EventCondition("place_m", "a", value=3.0, place=Pose(0, 2)),
            STANDS,
            True,
        ),
        (EventCondition("speed_mps", "a", rule="=", value=5.0), STANDS, True),
        (
            EventCondition("travelled_m", "a", rule=">", value=5.0),
            STANDS,
            False,
        ),
        (EventCondition("standing_s", "b", rule=">", value=0.5), STANDS, False),
    ],
)
def test_conditions(condition: EventCondition, bodies: tuple[StoryBody, StoryBody], holds: bool) -> None:
    event = StoryEvent("e", ((condition,),))
    conditions = Conditions(scene(event))
    conditions.look(StoryMoment(1.0, dict(zip("ab", bodies, strict=True))), {}, set(), set())
    assert conditions.hold(event) is holds


@pytest.mark.parametrize(
    ("edge", "delay_s", "expected"),
    [
        ("none", 0.0, [True, False, True, True, False]),
        ("rising", 0.0, [False, False, True, False, False]),
        ("falling", 0.0, [False, True, False, False, True]),
        ("risingOrFalling", 0.0, [False, True, True, False, True]),
        ("none", 0.2, [False, False, True, False, True]),
    ],
)
def test_edges_and_delays(edge: str, delay_s: float, expected: list[bool]) -> None:
    event = StoryEvent("e", ((EventCondition("speed_mps", "a", rule=">", value=1.0, edge=edge, delay_s=delay_s),),))
    conditions, got = Conditions(scene(event)), []
    for number, speed in enumerate((2.0, 0.0, 2.0, 2.0, 0.0)):
        conditions.look(StoryMoment(0.1 * number, {"a": StoryBody(0.0, 0.0, speed, 0.0)}), {}, set(), set())
        got.append(conditions.hold(event))
    assert got == expected


def test_who_stands_has_done_so_for_a_time() -> None:
    event = StoryEvent("e", ((EventCondition("standing_s", "a", rule=">", value=0.15),),))
    conditions, got = Conditions(scene(event)), []
    for number, speed in enumerate((0.0, 0.0, 0.0, 1.0, 0.0)):
        conditions.look(StoryMoment(0.1 * number, {"a": StoryBody(0.0, 0.0, speed, 0.0)}), {}, set(), set())
        got.append(conditions.hold(event))
    assert got == [False, False, True, False, False]


def test_events_are_carried_and_kept() -> None:
    near = EventCondition("place_m", "ego", value=5.0, place=Pose(10.0, 1.0, 0.2))
    scenario = scene(StoryEvent("change", ((near,),), "other", aside_m=3.5))
    [event] = carried_scenario(scenario, Carry.mirror(Pose(0.0, 0.0))).events
    assert event.aside_m == -3.5 and event.when[0][0].place == Pose(10.0, -1.0, -0.2)
    assert structure(Scenario, plain(scenario)) == scenario
    mirrored = states(carried_scenario(scene(StoryEvent("c", after(1.0), "other", aside_m=3.0)), Carry()))
    assert math.isclose(mirrored[-1][2], 3.0)
