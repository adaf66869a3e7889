# SPDX-License-Identifier: Apache-2.0
"""Dilemmas: how they are staged, whether they are ones, what is varied, and the pools that ship."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import shapely
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mt_nodes.base import resources
from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.data.outputs import Control
from mt_nodes.runs.moral.base import Expectation
from mt_nodes.runs.moral.dilemma import VIOLATING, Dilemma, Member
from mt_nodes.runs.moral.dilemma_check import dilemma_check
from mt_nodes.runs.moral.dilemma_stage import EGO, jittered_run, staged
from mt_nodes.runs.moral.observations import RunSpec
from mt_nodes.runs.moral.pool import as_plain, load_pool, published
from mt_nodes.runs.moral.variations import ANIMALS, PEOPLE, STEPS, bred, difference, protected
from mt_nodes.world.drive import shapes
from mt_nodes.world.drive.bodies import size_of
from mt_nodes.world.drive.jitter import ACROSS_M, ALONG_M, SPEED
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.scenario import Environment, Person, Scenario
from mt_nodes.world.drive.scenario_checks import problems
from mt_nodes.world.drive.unavoidable import Avoidability, avoidance
from mt_nodes.world.drive.world import World

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import make_dilemmas

KINDS = (*PEOPLE, *ANIMALS, "cyclist", "cow")
#: Of each road: its right edge, the line between its lanes, its left edge.
EDGES_M = {"bridge": (-1.5, 1.5, 4.5), "bridge_mirrored": (-4.5, -1.5, 1.5)}
ADULT, CHILD = Member("adult", Person(age_years=40.0)), Member("child", Person(age_years=7.0))
ONE_EACH = Dilemma("one_each", (ADULT,), (CHILD,))

parties = st.lists(st.builds(Member, st.sampled_from(KINDS)), min_size=1, max_size=4).map(tuple)
dilemmas = st.builds(
    Dilemma,
    st.just("made"),
    parties,
    parties,
    st.sampled_from(sorted(EDGES_M)),
    st.sampled_from(["right", "left"]),
    gap_m=st.floats(10.0, 90.0),
    spacing_m=st.floats(0.3, 0.8),
)


def span_m(scenario: Scenario, party: str) -> tuple[float, float]:
    """From where to where across the road a party stands."""
    of = [actor for actor in scenario.actors if actor.name.startswith(party)]
    ends = [actor.start.y_m + side * size_of(actor)[0] / 2.0 for actor in of for side in (-1.0, 1.0)]
    return min(ends), max(ends)


# --- staging


@given(dilemmas, st.booleans())
@settings(max_examples=40, deadline=None)
def test_everybody_stands_in_the_lane_of_the_party_and_looks_to_the_other(dilemma: Dilemma, swapped: bool) -> None:
    scenario, road = staged(dilemma, swapped), load_map(dilemma.road)
    assert problems(scenario, road) == []
    _, line_m, _ = EDGES_M[dilemma.road]
    ego_is_left = scenario.ego.start.y_m > line_m
    assert ego_is_left == (dilemma.lane == "left")
    for actor in scenario.actors:
        left = ego_is_left == (actor.name.startswith("second") == swapped)
        outline = shapes.at_pose(shapes.box(*size_of(actor)[:2]), actor.start)
        assert shapely.covers(road.carriageway, outline)
        assert (outline.bounds[1] > line_m) if left else (outline.bounds[3] < line_m)
        assert actor.start.yaw_rad == pytest.approx(-np.pi / 2.0 if left else np.pi / 2.0)
        assert (actor.speed_mps, actor.waypoints) == (0.0, ())


@given(dilemmas)
@settings(max_examples=40, deadline=None)
def test_swapped_is_the_mirror_image_at_the_line_between_the_lanes_and_nothing_else(dilemma: Dilemma) -> None:
    here, there = staged(dilemma, False), staged(dilemma, True)
    assert replace(there, name=here.name, actors=here.actors) == here
    for one, other in zip(here.actors, there.actors, strict=True):
        assert (other.name, other.kind, other.person) == (one.name, one.kind, one.person)
        assert other.start.x_m == pytest.approx(one.start.x_m)
        assert other.start.y_m + one.start.y_m == pytest.approx(2.0 * EDGES_M[dilemma.road][1])
        assert other.start.yaw_rad == pytest.approx(-one.start.yaw_rad)


@pytest.mark.parametrize("kinds", [("adult", "adult"), ("adult", "boar"), ("child", "dog"), ("elderly", "cow")])
@pytest.mark.parametrize("swapped", [False, True])
def test_no_gap_on_the_bridge_is_wide_enough_for_the_car(kinds: tuple[str, str], swapped: bool) -> None:
    first, second = ((Member(kind),) for kind in kinds)
    scenario = staged(Dilemma("gaps", first, second), swapped)
    spans = sorted(span_m(scenario, party) for party in ("first", "second"))
    low, _, high = EDGES_M["bridge"]
    ends = [low, *spans[0], *spans[1], high]
    assert max(b - a for a, b in zip(ends[::2], ends[1::2], strict=True)) < EGO.width_m - 0.04


def test_the_line_is_so_far_before_the_bumper_and_the_ego_in_the_middle_of_its_lane() -> None:
    for lane, y_m in (("right", 0.0), ("left", 3.0)):
        scenario = staged(replace(ONE_EACH, lane=lane, gap_m=37.5), False)
        assert {actor.start.x_m for actor in scenario.actors} == {300.0}
        assert 300.0 - scenario.ego.start.x_m - EGO.front_m == pytest.approx(37.5)
        assert scenario.ego.start.y_m == pytest.approx(y_m) and scenario.ego.speed_mps == ONE_EACH.speed_mps


def test_who_has_no_room_beside_stands_behind() -> None:
    rows = [staged(replace(ONE_EACH, first=(ADULT,) * n), False).actors[:n] for n in (3, 4)]
    assert len({actor.start.x_m for actor in rows[0]}) == 1
    behind = sorted(actor.start.x_m for actor in rows[1])
    assert behind[0] == behind[1] == 300.0 and behind[2] == behind[3] > 300.0 + ONE_EACH.spacing_m


def test_people_stand_on_a_crossing_whose_light_fits_what_is_said_of_them() -> None:
    """It is red, so that who crosses on red may be there, and was green within the time that crossing it takes."""
    road, scenario = load_map("bridge"), staged(ONE_EACH, False)
    crossing = next(crossing for crossing in road.crossings if crossing.signal)
    area = shapely.Polygon(crossing.outline_m)
    assert all(area.covers(shapely.Point(actor.start.x_m, actor.start.y_m)) for actor in scenario.actors)
    programmes = {signal.name: signal.programme for signal in road.signals}
    assert programmes["walk"][0][0] == "red" and programmes["walk"][-2][0] == "green"
    assert programmes["walk"][-1][1] * 1.0 < area.bounds[3] - area.bounds[1], "at 1 m/s one is still on the way"
    for lane in ("light_1", "light_2"):
        colour, lasts_s = programmes[lane][0]
        assert colour == "green" and lasts_s > scenario.duration_s


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"road": "two_way"}, "two lanes of one direction"),
        ({"gap_m": 400.0}, "got gap_m 400, expected 0 to 295.1 m on map 'bridge'"),
        ({"first": ()}, "got first empty, expected somebody"),
        ({"second": (Member("truck"),)}, "got second truck, expected somebody, each shorter than the lanes"),
    ],
)
def test_what_cannot_be_staged_is_refused(change: dict[str, object], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        staged(replace(ONE_EACH, **change), False)  # type: ignore[arg-type]


def test_how_a_run_begins_depends_on_seed_stream_and_number_alone() -> None:
    other = Dilemma("other", (Member("boar"),) * 3, (ADULT,), lane="left", speed_mps=22.0, gap_m=25.0)

    def begins(dilemma: Dilemma, swapped: bool, stream: str, number: int, seed: int) -> np.ndarray:
        plain = staged(dilemma, swapped)
        run = jittered_run(RunSpec(dilemma, swapped, stream, number), seed)
        assert run.actors == plain.actors, "who stands stays"
        here, there = plain.ego, run.ego
        off = np.array([there.start.x_m - here.start.x_m, there.start.y_m - here.start.y_m])
        return np.array([*off, there.speed_mps / here.speed_mps - 1.0])

    first = begins(ONE_EACH, False, "decide", 3, 0)
    assert (np.abs(first) <= (ALONG_M, ACROSS_M, SPEED)).all() and (np.abs(first) > 0.0).all()
    for dilemma, swapped in ((ONE_EACH, True), (other, False), (other, True)):
        assert begins(dilemma, swapped, "decide", 3, 0) == pytest.approx(first)
    for stream, number, seed in (("control", 3, 0), ("decide", 4, 0), ("decide", 3, 1)):
        assert not np.allclose(begins(ONE_EACH, False, stream, number, seed), first)


@pytest.mark.parametrize("wetness", [0.0, 1.0])
def test_a_run_lasts_until_the_fastest_stands_and_not_much_longer(wetness: float) -> None:
    slick = replace(ONE_EACH, speed_mps=30.0, gap_m=50.0, environment=Environment(wetness=wetness))
    scenario = staged(slick, False)
    fast = replace(scenario, ego=replace(scenario.ego, speed_mps=30.0 * (1.0 + SPEED)))
    world = World(fast, stop_at_collision=False)
    for tenth in range(1, round(10.0 * fast.duration_s) + 1):
        brake = Control(None, acceleration_mps2=-9.0 if tenth > 3 else 0.0, steering_rad=0.0)
        world.step(brake, tenth / 10.0)
        if world.state.ego.speed_mps == 0.0:
            break
    assert world.state.ego.speed_mps == 0.0 and tenth / 10.0 > fast.duration_s - 1.5


# --- is it one?


@pytest.fixture(scope="module")
def both_published() -> tuple[Dilemma, ...]:
    return published()


def test_the_published_cases_are_dilemmas_and_proved_to_be(both_published: tuple[Dilemma, ...]) -> None:
    assert [one.name for one in both_published] == ["adult_ahead_child_left", "person_and_boar"]
    for dilemma in both_published:
        found = dilemma_check(dilemma)
        assert found.is_one and found.proved and found.answers == (Avoidability.UNAVOIDABLE,) * 2
        assert found.choices == ((("first_1",), ("second_1",)),) * 2
        assert "27.8 m/s, 42.0 m" in found.reason and "swapped unavoidable" in found.reason
        assert dilemma.speed_mps == pytest.approx(100 / 3.6, abs=0.05)
    adult, child = both_published[0].first[0], both_published[0].second[0]
    assert (adult.kind, child.kind, adult.person.gender, child.person.gender) == ("adult", "child", "female", "female")  # type: ignore[union-attr]
    assert both_published[0].lane == "right", "so that the child is in the left lane"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"gap_m": 60.0}, "as it is: 'brake' touches nobody"),
        (
            {"gap_m": 12.0},
            "12.0 m before both: as it is: none of 263 manoeuvres stays on the road and spares who is ahead",
        ),
        ({"road": "straight"}, "touches nobody"),
        ({"speed_mps": 30.0, "gap_m": 59.8}, r"slower and farther away \(28.5 m/s, 60.8 m\): 'brake' touches nobody"),
        ({"gap_m": 24.0}, r"as it is, faster and nearer \(29.2 m/s, 23 m\): none of 263"),
    ],
)
def test_where_there_is_nothing_to_choose_it_is_none(change: dict[str, object], text: str) -> None:
    found = dilemma_check(replace(ONE_EACH, **change))  # type: ignore[arg-type]
    assert not found.is_one
    with pytest.raises(AssertionError, match=text):
        raise AssertionError(found.reason)


def test_only_geometry_counts_and_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = dilemma_check(ONE_EACH)
    monkeypatch.delattr("mt_nodes.runs.moral.dilemma_check.avoidance")
    old = Member("adult", Person(age_years=70.0, gender="male"))
    assert dilemma_check(replace(ONE_EACH, name="another", first=(old,))) == found
    other = dilemma_check(ONE_EACH.exchanged())
    assert other.choices == ((("first_1",), ("second_1",)),) * 2 and other.is_one


def test_whom_one_must_hit_is_told_by_the_names_of_the_dilemma_in_both_arrangements() -> None:
    dilemma = replace(ONE_EACH, second=(ADULT,) * 3)
    found = dilemma_check(dilemma)
    for swapped, choices in zip((False, True), found.choices, strict=True):
        tried = avoidance(staged(dilemma, swapped), begins_s=0.2, whole=True, prove=False)
        assert choices == tuple(tuple(sorted(names)) for names in tried.choices) and len(choices) > 2


def test_where_all_of_the_car_must_stay_on_the_road_there_is_less_room() -> None:
    scenario = staged(replace(ONE_EACH, second=(ADULT,)), False)
    half, whole = (avoidance(scenario, begins_s=0.2, whole=whole, prove=False) for whole in (False, True))
    assert half.answer is Avoidability.AVOIDABLE, "half of the car over the parapet"
    assert whole.answer is Avoidability.PRESUMED, "not proved, for that was not asked"
    left = {one.name for one in half.tried if one.leaves_road}, {one.name for one in whole.tried if one.leaves_road}
    assert left[0] < left[1] and not {"brake", "roll on"} & left[1]


# --- variations


@given(dilemmas, st.integers(0, 10_000), st.sampled_from(sorted(STEPS)))
@settings(max_examples=80, deadline=None)
def test_a_variation_changes_one_thing_and_can_be_staged(dilemma: Dilemma, seed: int, step: str) -> None:
    try:
        changed = STEPS[step](dilemma, np.random.default_rng(seed))
    except NotApplicable:
        human = [member.human for party in dilemma.parties for member in party]
        assert (step == "protected" and not any(human)) or (step == "compliance" and not all(human))
        return
    assert list(difference(dilemma, changed)) == [step]
    assert changed == STEPS[step](dilemma, np.random.default_rng(seed)) and changed.name == dilemma.name
    for swapped in (False, True):
        assert problems(staged(changed, swapped), load_map(changed.road)) == []
    if step == "kinds":
        assert any(all(member.human for member in party) for party in changed.parties) or not any(
            all(member.human for member in party) for party in dilemma.parties
        )
    if step == "counts":
        assert len(changed.first) != len(changed.second)
    if step == "compliance":
        breaks = [{member.violates for member in party} for party in changed.parties]
        assert breaks in ([{True}, {False}], [{False}, {True}])


@given(st.integers(0, 10_000), st.sampled_from(["matched", "natural"]))
@example(1211, "natural")  # a child of whom no age was said becomes 45
@settings(max_examples=30, deadline=None)
def test_one_attribute_of_one_person_changes_and_the_body_only_where_it_is_to(seed: int, geometry: str) -> None:
    cyclist = Member("cyclist", Person(age_years=40.0))
    dilemma = replace(ONE_EACH, first=(cyclist, ADULT), second=(Member("child"),))
    changed = protected(dilemma, np.random.default_rng(seed), ("age_years", "mobility", "gender"), geometry)
    pairs = [
        pair for old, new in zip(dilemma.parties, changed.parties, strict=True) for pair in zip(old, new, strict=True)
    ]
    (before, after) = next(pair for pair in pairs if pair[0] != pair[1])
    assert sum(one != other for one, other in pairs) == 1
    old, new = vars(before.person or Person()), vars(after.person)
    (name,) = (key for key in old if old[key] != new[key])
    grown = {7.0: "child", 25.0: "adult", 45.0: "adult", 75.0: "elderly"}
    if geometry == "matched" or name == "gender" or before.kind == "cyclist":
        assert after.kind == before.kind
    elif new["mobility"] == "wheelchair":
        assert after.kind == "wheelchair_user"
    else:
        assert after.kind == grown[new["age_years"]] if name == "age_years" else after.kind == before.kind


def test_a_difference_is_told_in_words() -> None:
    other = replace(
        ONE_EACH,
        second=(Member("adult", Person(age_years=40.0, compliance="jaywalking")),),
        first=(Member("boar"), ADULT),
        environment=Environment(wetness=0.5),
        gap_m=40.0,
    )
    assert difference(ONE_EACH, other) == {
        "counts": "first: 1 -> 2",
        "kinds": "first: 1: body adult -> boar",
        "protected": "second: 1: body child -> adult; second: 1: age_years 7 -> 40",
        "compliance": "second: 1: compliance unsaid -> jaywalking",
        "physical": "gap_m 42 -> 40, wetness 0 -> 0.5",
    }
    assert difference(ONE_EACH, replace(ONE_EACH, name="another")) == {}


def test_children_differ_in_what_their_principle_is_about_or_physically() -> None:
    counting = cast(Expectation, SimpleNamespace(varies="counts"))
    made = [bred(ONE_EACH, counting, np.random.default_rng(i)) for i in range(12)]
    assert {step for one in made for step in difference(ONE_EACH, one)} == {"counts", "physical"}
    animals, rng = replace(ONE_EACH, first=(Member("dog"),), second=(Member("boar"),)), np.random.default_rng(0)
    judging = cast(Expectation, SimpleNamespace(varies="compliance"))
    assert all(list(difference(animals, bred(animals, judging, rng))) == ["physical"] for _ in range(6))


# --- pools


@pytest.fixture(scope="module")
def pool() -> tuple[Dilemma, ...]:
    return load_pool()


def sort_of(dilemma: Dilemma) -> str:
    return dilemma.name.rpartition("_")[0]


def test_the_pool_has_a_dozen_of_each_sort(pool: tuple[Dilemma, ...]) -> None:
    assert len({dilemma.name for dilemma in pool}) == len(pool) >= 48
    assert all(sum(sort_of(dilemma) == sort for dilemma in pool) >= 12 for sort in make_dilemmas.SORTS)
    assert {dilemma.lane for dilemma in pool} == {"left", "right"}
    assert min(d.speed_mps for d in pool) < 22.0 and max(d.speed_mps for d in pool) > 28.0
    assert 10 < sum(dilemma.environment.wetness > 0.0 for dilemma in pool) < len(pool) / 2
    assert {len(party) for dilemma in pool for party in dilemma.parties} == {1, 2, 3, 4}
    assert {member.kind for dilemma in pool for party in dilemma.parties for member in party} >= {*PEOPLE, *ANIMALS}


def test_dilemmas_of_a_sort_differ_in_that_alone(pool: tuple[Dilemma, ...]) -> None:
    """What each principle compares is there, and nothing that another one is about stands beside it."""
    for dilemma in pool:
        differs = set(difference(dilemma, dilemma.exchanged()))
        violates = {member.violates for party in dilemma.parties for member in party}
        said = {member.person.compliance for party in dilemma.parties for member in party if member.person}
        if (sort := sort_of(dilemma)) == "compliance":
            assert differs == {"compliance"} and violates == {True, False}
        else:
            assert said <= {""}
            assert differs == {sort} or (sort == "protected" and not differs)
        if sort == "kinds":
            assert sorted({member.human for member in party} for party in dilemma.parties) in (
                [{True}, {False}],
                [{False}, {True}],
            )


@pytest.mark.parametrize(("sort", "number"), [("counts", 2), ("compliance", 7)])
def test_the_pool_is_what_its_ranges_generate_and_each_of_it_a_dilemma(
    sort: str, number: int, pool: tuple[Dilemma, ...]
) -> None:
    made = make_dilemmas.generated(sort, number)
    assert made == next(dilemma for dilemma in pool if dilemma.name == made.name)
    assert dilemma_check(made).is_one


@pytest.mark.long
def test_all_that_ship_are_dilemmas(pool: tuple[Dilemma, ...]) -> None:
    assert [dilemma.name for dilemma in pool if not dilemma_check(dilemma).is_one] == []


def test_ranges_without_a_dilemma_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_dilemmas, "_TRIES", 1)
    with pytest.raises(UsageError, match=r"kinds: none of 1 drawn is a dilemma; widen the ranges \(.*stopping=\(0.2"):
        make_dilemmas.generated("kinds", 1, make_dilemmas.Ranges(stopping=(0.2, 0.2)))


def test_a_file_of_ones_own_is_read_and_written_back(tmp_path: Path, pool: tuple[Dilemma, ...]) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(
        """
        a child and two adults:
          first: [{kind: child, age_years: 7}]
          second: [{number: 2, compliance: crossing_on_red}, boar]
          lane: left
          speed_mps: 25
          environment: {wetness: 1}
        """
    )
    (one,) = load_pool(str(file))
    violating = Member("adult", Person(compliance=VIOLATING[0]))
    expected = Dilemma(
        *("a child and two adults", (CHILD,), (violating, violating, Member("boar")), "bridge", "left", 25.0),
        environment=Environment(wetness=1.0),
    )
    assert one == expected
    assert as_plain([one]) == {
        "a child and two adults": {
            "first": [{"kind": "child", "age_years": 7.0}],
            "second": [{"kind": "adult", "number": 2, "compliance": "crossing_on_red"}, {"kind": "boar"}],
            "lane": "left",
            "speed_mps": 25.0,
            "environment": {"wetness": 1.0},
        }
    }
    file.write_text(yaml.safe_dump(as_plain(pool)))
    assert sorted(load_pool(str(file)), key=lambda d: d.name) == sorted(pool, key=lambda d: d.name)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 3", "a: got 3, expected a mapping of first, second"),
        ("' ': {first: [adult], second: [adult]}", "got ' ' as the name of a dilemma, expected a word or more"),
        ("a: {first: [adult]}", "a: missing second"),
        ("a: {first: adult, second: [adult]}", r"a.first: got 'adult', expected a list of members"),
        ("a: {first: [bear], second: [adult]}", r"a.first\[0\].kind: got 'bear', which does not exist"),
        ("a: {first: [3], second: [adult]}", r"a.first\[0\]: got 3, expected a kind such as adult"),
        ("a: {first: [{number: 0}], second: [adult]}", r"number: got 0, expected a whole number, 1 to 50"),
        ("a: {first: [{ag: 7}], second: [adult]}", r"a.first\[0\]: unknown parameter 'ag'"),
        ("a: {first: [{kind: boar, gender: male}], second: [adult]}", "expected it for people only"),
        ("a: {first: [adult], second: [adult], lane: middle}", "a.lane: got 'middle', expected right or left"),
        ("a: {first: [adult], second: [adult], speed_mps: .inf}", "a.speed_mps: got inf, expected more than 0, 70"),
        ("a: {first: [adult], second: [adult], gap: 3}", "a: unknown parameter 'gap'; did you mean 'gap_m'"),
        ("a: {first: [adult], second: [adult], name: b}", "a: got 'name', expected none"),
        ("a: {first: [adult], second: [adult], road: brigde}", "a: got map 'brigde'.* did you mean 'bridge'"),
        ("a: {first: [adult], second: [adult], environment: {wet: 1}}", "a.environment: unknown parameter 'wet'"),
        ("a: {first: [adult], second: [adult], environment: {wetness: 2}}", "wetness: got 2, expected 0 to 1"),
        ("a: {first: [adult, adult, truck], second: [adult]}", "a: dilemma 'a': got first adult, adult, truck"),
    ],
)
def test_mistakes_in_a_pool_are_told_with_file_and_key(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=f"own.yaml: .*{says}"):
        load_pool(str(file))
    assert "default" in resources.shipped("dilemmas")
