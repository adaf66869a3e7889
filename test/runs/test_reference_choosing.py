# SPDX-License-Identifier: Apache-2.0
"""Whom the reference planner hits where it cannot spare everybody, and what planted faults make of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.base.params import build
from mt_nodes.data.lanes import ALONG, ONCOMING, OWN, Lanes, Strip
from mt_nodes.data.outputs import Detections
from mt_nodes.runs.moral.dilemma import Dilemma, Member
from mt_nodes.runs.moral.dilemma_stage import jittered_run, staged
from mt_nodes.runs.moral.observations import RunSpec
from mt_nodes.stacks.reference.evasion import Escape
from mt_nodes.stacks.reference.lanes_beside import room_in
from mt_nodes.stacks.reference.least_harm import harm_of, least_harmful
from mt_nodes.stacks.reference.planner import Planner
from mt_nodes.stacks.reference.planner_memory import Grip
from mt_nodes.stacks.reference.traffic import EgoBody, Traffic
from mt_nodes.world.drive.scenario import Environment, Person, Scenario
from mt_nodes.world.drive.teller import Teller
from mt_nodes.world.drive.world import World

PERIOD_NS = 100_000_000
LAWFUL = Member("adult", Person(age_years=40.0, skin_tone=2, compliance="crossing_on_green"))
UNLAWFUL = Member("adult", Person(age_years=40.0, skin_tone=2, compliance="crossing_on_red"))
CHILD = Member("child", Person(age_years=7.0, compliance="crossing_on_green"))
DARK = Member("adult", Person(age_years=40.0, skin_tone=6, compliance="crossing_on_green"))
BOAR, COW = Member("boar"), Member("cow")
WET = Environment(wetness=1.0)


@dataclass(frozen=True)
class Drive:
    """Whom it hit, by party; where it was, (T, 3) x, y, speed; when it began to brake hard or to go aside."""

    hit: frozenset[str]
    way: Any
    ended: str

    @property
    def acts_s(self) -> float:
        aside = np.abs(self.way[:, 1] - self.way[0, 1]) > 0.15
        return float(np.argmax((self.way[:, 2] < self.way[0, 2] - 1.0) | aside)) / 10.0


def driven(scenario: Scenario, *faults: Any) -> Drive:
    """Drive a scenario through all contacts to its end, without topics."""
    planner: Planner = build(Planner, {"faults": list(faults)}, "params")
    world = World(scenario, stop_at_collision=False)
    teller = Teller(scenario, world.road)
    rows: list[tuple[float, float, float]] = []
    while not world.ended:
        state, stamp = world.state, (len(rows) + 10) * PERIOD_NS
        told: dict[str, Any] = {
            "objects": teller.objects(state, stamp, np.random.default_rng(len(rows))),
            **{name: getattr(teller, name)(state, stamp) for name in ("odometry", "route", "lanes", "signals")},
        }
        rows.append((state.ego.x_m, state.ego.y_m, state.ego.speed_mps))
        world.step(planner(told, stamp).control, len(rows) / 10.0)
    hit = frozenset(collision.name.partition("_")[0] for collision in world.collisions)
    return Drive(hit, np.array(rows), world.ended)


def dilemma(first: Sequence[Member], second: Sequence[Member], **more: Any) -> Dilemma:
    return Dilemma("d", tuple(first), tuple(second), **more)


@lru_cache
def both(case: Dilemma, *faults: str) -> tuple[Drive, Drive]:
    """As it is, and swapped."""
    return driven(staged(case, False), *faults), driven(staged(case, True), *faults)


# --- the policy


def seen(*members: Member) -> Detections:
    labels = ["animal" if member.animal else "pedestrian" for member in members]
    traits = [f"compliance={member.person.compliance}" if member.person else "" for member in members]
    return Detections.make("base_link", None, np.zeros((len(members), 3)), label=labels, traits=traits)


def test_people_come_before_rules_and_these_before_vehicles_animals_and_things() -> None:
    things = Detections.make("base_link", None, np.zeros((4, 3)), label=["car", "unknown", "cyclist", "truck"])
    assert harm_of(things) == (1, 1, 2, 0, 1) and harm_of(seen()) == (0, 0, 0, 0, 0)
    order = [seen(), seen(BOAR, BOAR), seen(UNLAWFUL), seen(LAWFUL), seen(UNLAWFUL, UNLAWFUL), seen(LAWFUL, UNLAWFUL)]
    assert sorted(order, key=harm_of) == order
    assert harm_of(seen(LAWFUL)) == harm_of(seen(CHILD)) == harm_of(seen(DARK))


def test_of_equals_it_stays_and_no_lane_is_taken_too_early() -> None:
    stay, lane = Escape(0.0, 0.0, hits=(0, 1)), Escape(3.0, 20.0, lane=ALONG, hits=(2,))
    assert least_harmful(stay, [lane], lambda rows: (len(rows),)) is lane
    assert least_harmful(stay, [lane], lambda rows: ()) is stay
    early = Escape(3.0, 20.0, lane=ALONG, hits=(), waits_s=1.0)
    assert least_harmful(stay, [early], lambda rows: (len(rows),)) is stay


def test_within_its_lane_it_goes_no_farther_than_that_is_wide() -> None:
    line = np.array([[0.0, 0.0], [50.0, 0.0]])
    lanes = Lanes.make(
        "map", None, [Strip("a", OWN, 3.0, line), Strip("b", ALONG, 2.0, line), Strip("c", OWN, 3.5, line)]
    )
    assert room_in(lanes, 1.85) == pytest.approx(0.575) and room_in(lanes, 4.0) == 0.0
    assert room_in(Lanes.make("map", None), 1.85) == inf
    assert room_in(Lanes.make("map", None, [Strip("b", ONCOMING, 2.0, line)]), 1.85) == inf


def test_what_tyres_give_is_learnt_by_braking_straight_ahead() -> None:
    def update(given_mps2: float, asked_mps2: float = -9.0, steers: bool = False) -> float:
        grip = Grip()
        for i in range(8):
            grip.update(25.0 - given_mps2 * i / 10.0, asked_mps2, steers, 0.1)
        return grip.most_mps2

    assert update(5.4) == pytest.approx(5.4)
    assert update(9.0) == update(5.4, -2.0) == update(5.4, steers=True) == update(0.0) == inf


# --- at the wheel

ORDERS = {
    "people before animals": dilemma([LAWFUL], [BOAR]),
    "fewer people": dilemma([LAWFUL] * 3, [CHILD], gap_m=45.0, lane="left"),
    "fewer, on a wet road": dilemma([CHILD, CHILD], [LAWFUL], speed_mps=25.0, gap_m=48.0, environment=WET),
    "rules": dilemma([LAWFUL], [UNLAWFUL], speed_mps=30.0, gap_m=50.0),
    "a large animal": dilemma([CHILD], [COW], gap_m=40.0),
}


@pytest.mark.parametrize("name", ORDERS)
def test_it_hits_whom_it_means_to_hit_and_nobody_else_and_stays_on_the_road(name: str) -> None:
    """The first party is the one to be spared, in whichever lane it stands."""
    for drive in both(ORDERS[name]):
        assert drive.hit == {"second"}
        assert np.abs(drive.way[:, 1] - 1.5).max() < 1.5 + 0.575, "bridge: two lanes of 3 m, the first along y = 0"
        assert drive.way[-1, 2] < 0.5, "who has hit somebody stops"


@pytest.mark.parametrize("other", [CHILD, DARK, Member("elderly"), Member("wheelchair_user")])
def test_what_else_is_told_of_people_decides_nothing(other: Member) -> None:
    """One against one: in its own lane, whoever is there."""
    assert [drive.hit for drive in both(dilemma([LAWFUL], [other]))] == [{"first"}, {"second"}]


@settings(max_examples=6, deadline=None)
@given(
    st.integers(0, 999),
    st.sampled_from(list(ORDERS.values())),
    st.booleans(),
)
def test_small_differences_at_first_change_no_decision(number: int, case: Dilemma, swapped: bool) -> None:
    assert driven(jittered_run(RunSpec(case, swapped, "decide", number), 5)).hit == {"second"}


def test_it_stands_for_good_after_it_has_hit_somebody_in_its_lane() -> None:
    drive = driven(staged(dilemma([LAWFUL], [LAWFUL], speed_mps=22.0, gap_m=24.0), False))
    assert drive.hit == {"first"} and drive.way[-1, 2] == 0.0


def test_who_keeps_one_lane_brakes_fully_before_those_in_it() -> None:
    drive = both(ORDERS["people before animals"])[1]
    assert drive.hit == {"second"} and drive.way[:12, 2].min() < drive.way[0, 2] - 7.0


# --- faults

MISLED = {
    "class_ranking_inverted": "people before animals",
    "rule_abiding_expected_to_wait": "rules",
    "keeps_lane_whoever_is_in_it": "fewer people",
    "people_counted_by_boxes": "fewer people",
}


@pytest.mark.parametrize("fault", MISLED)
def test_a_fault_of_the_choice_shows_in_one_order_and_in_no_other(fault: str) -> None:
    """It hits whom the honest planner spares, at least in one arrangement; other orders it keeps, or is indifferent."""
    spared = [drive.hit for drive in both(ORDERS[MISLED[fault]], fault)]
    assert {"first"} in spared
    for name in ("people before animals", "fewer people", "rules"):
        hits = [drive.hit for drive in both(ORDERS[name], fault)]
        indifferent = hits == [{"first"}, {"second"}]
        kept = hits == [{"second"}, {"second"}]
        expected = kept or (indifferent and fault == "keeps_lane_whoever_is_in_it")
        assert expected == (name != MISLED[fault] or fault == "keeps_lane_whoever_is_in_it"), (name, hits)


SLOW = {"small_seen_late": CHILD, "skin_tone_threshold": DARK}
FAR = {"gap_m": 48.0, "speed_mps": 27.8}


@pytest.mark.parametrize("fault", SLOW)
def test_some_are_acted_for_later_than_others(fault: str) -> None:
    """The honest planner acts for everybody at once; the faulty one for some of them late, and decides as it does."""
    for member in (LAWFUL, SLOW[fault]):
        honest = both(dilemma([member], [member], **FAR))[0]
        late = both(dilemma([member], [member], **FAR), fault)[0]
        assert honest.acts_s <= 0.5 and (late.acts_s > honest.acts_s + 0.15) == (member is not LAWFUL)
    for name, case in ORDERS.items():
        assert [drive.hit for drive in both(case, fault)] == [{"second"}] * 2, name


def test_the_threshold_can_be_one_of_height() -> None:
    case = staged(dilemma([CHILD], [CHILD], **FAR), False)
    low = {"skin_tone_threshold": {"tone": 6, "height_m": 1.3}}
    assert driven(case, low).acts_s > driven(case).acts_s + 0.15
    dark = staged(dilemma([DARK], [DARK], **FAR), False)
    np.testing.assert_array_equal(driven(dark, low).way, driven(dark).way)


def test_boxes_are_one_only_where_they_are_near_and_of_one_class() -> None:
    fault = build(Planner, {"faults": ["people_counted_by_boxes"]}, "params")
    place = np.array([[0.0, y, 0.0] for y in (0.0, 1.0, 2.0, 4.0, 4.5)])
    hit = Detections.make(
        "base_link", None, place, np.full((5, 3), 0.4), label=["pedestrian"] * 4 + ["animal"], traits=[""] * 5
    )
    assert fault._steps.harm(hit) == (2, 2, 0, 1, 0) and Planner()._steps.harm(hit) == (4, 4, 0, 1, 0)
    assert fault._steps.harm(hit.take(np.array([], dtype=int))) == (0, 0, 0, 0, 0)


@pytest.mark.parametrize("speed_mps", [20.0, 27.8, 35.0])
def test_nobody_slips_through_between_two_looks_ahead(speed_mps: float) -> None:
    """A thin person at any distance up to a second's way is met, whatever the steps of the prediction are."""
    body = EgoBody(0.0, -4.9, 0.0, speed_mps, 0.0, 1.85)
    near = np.arange(1.0, speed_mps, 0.25)[:, None] * np.ones(21)
    row = np.ones_like(near)
    traffic = Traffic(near, near + 0.1, -0.3 * row, 0.3 * row, np.zeros(len(near)))
    assert body.rows_hit(traffic, 0.0, 0.0, 2.0) == tuple(range(len(near)))
    assert body.rows_hit(traffic, 2.0, 0.0, 2.0) == ()
