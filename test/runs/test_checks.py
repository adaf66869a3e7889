# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_bundles import made_bundle, made_cloud

from mt_nodes.base import plugins, resources
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build, describe, plain
from mt_nodes.data.effects import Effects, Volume
from mt_nodes.data.outputs import Detections, Output, Path
from mt_nodes.data.transforms import TransformTree, pose_matrix
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.obstacle_checks import Monotone, ObstacleCountNotLess, ObstaclesKept
from mt_nodes.relations.conditions.source_conditions import ObstaclesWithin, PathReaches, PointsAtLeast
from mt_nodes.relations.default_relations import DEFAULT
from mt_nodes.relations.relation import load_relation, load_suite, shipped_relations

BUNDLE = made_bundle()
SIZES = {"car": (4.2, 1.8, 1.5), "pedestrian": (0.6, 0.6, 1.7), "cyclist": (1.8, 0.6, 1.7), "unknown": (1.0, 1.0, 1.0)}
STREET = [("car", 12.0, 3.0), ("car", 25.0, -3.0), ("pedestrian", 23.1, 5.0), ("cyclist", 8.0, -6.0)]


def seen(rows: list[tuple[Any, ...]], frame_id: str = "base_link", **columns: Any) -> Output:
    """Rows of class, x, y and perhaps a score."""
    return Output(
        Detections.make(
            frame_id,
            None,
            [[r[1], r[2], 0.8] for r in rows],
            [SIZES[r[0]] for r in rows],
            label=[r[0] for r in rows],
            score=[r[3] if len(r) > 3 else 1.0 for r in rows],
            **columns,
        )
    )


def judge(check: Any, before: Any, after: Any, effects: Effects | None = None, bundle: Any = BUNDLE) -> Judgement:
    source, followup = (o if isinstance(o, Output) else seen(o) for o in (before, after))
    judgement: Judgement = check.judge(source, followup, effects or Effects(), bundle)
    json.dumps(judgement.detail)
    return judgement


def kept(before: Any, after: Any, effects: Effects | None = None, bundle: Any = BUNDLE, **params: Any) -> Judgement:
    return judge(build(ObstaclesKept, params, "test"), before, after, effects, bundle)


def counted(before: Any, after: Any, **params: Any) -> Judgement:
    return judge(build(ObstacleCountNotLess, params, "test"), before, after)


def summary(j: Judgement) -> tuple[Any, ...]:
    return j.outcome.value, j.measured, j.bound, j.margin, j.lost, j.gained


def test_the_same_output_holds() -> None:
    assert summary(kept(STREET, STREET)) == ("HOLDS", 4, 4, 0, 0, 0)
    assert summary(counted(STREET, STREET)) == ("HOLDS", 4, 4, 0, 0, 0)


def test_a_lost_obstacle_is_named_with_its_place() -> None:
    judgement = kept(STREET, [STREET[0], STREET[1], STREET[3]])
    assert summary(judgement) == ("VIOLATED", 3, 4, -1, 1, 0)
    assert judgement.unit == "obstacles"
    assert judgement.reason == "lost pedestrian at (23.1, 5.0) m"
    assert judgement.detail["lost_at"] == [[23.1, 5.0, "pedestrian"]]
    assert judgement.detail["counts"] == {"all": [4, 3], "car": [2, 2], "cyclist": [1, 1], "pedestrian": [1, 0]}


def test_silence_loses_everything() -> None:
    judgement = kept(STREET, [])
    assert summary(judgement) == ("VIOLATED", 0, 4, -4, 4, 0)
    assert judgement.reason.endswith("and 1 more")


def test_ghosts_are_gained_and_mask_no_loss() -> None:
    after = [*STREET[1:], ("car", 35.0, 7.0)]
    judgement = kept(STREET, after)
    assert summary(judgement) == ("VIOLATED", 3, 4, -1, 1, 1)
    assert judgement.detail["gained_at"] == [[35.0, 7.0, "car"]]
    # The published comparison of numbers is blind to it: both relations are offered.
    assert summary(counted(STREET, after)) == ("HOLDS", 4, 4, 0, 1, 1)


def test_who_stands_where_something_was_added_is_demanded_all_the_same() -> None:
    added = Effects(added=(Volume("base_link", (13.0, 3.0, 0.8), (4.2, 1.8, 1.5), 0.0, "car"),))
    assert kept(STREET, STREET, added).outcome is Outcome.HOLDS
    assert summary(kept(STREET, STREET[1:], added)) == ("VIOLATED", 3, 4, -1, 1, 0)


def test_count_violated() -> None:
    judgement = counted(STREET, STREET[1:])
    assert summary(judgement) == ("VIOLATED", 3, 4, -1, 1, 0)
    assert judgement.reason == "obstacles: 4 before, 3 after; lost car at (12.0, 3.0) m"


def test_count_per_category() -> None:
    after = [("car", 30.0, 6.0), *STREET[:2], STREET[3]]
    assert counted(STREET, after).outcome is Outcome.HOLDS
    judgement = counted(STREET, after, per_category=True)
    assert summary(judgement) == ("VIOLATED", 0, 1, -1, 1, 1)
    assert judgement.reason.startswith("pedestrian: 1 before, 0 after")


def test_count_per_category_sees_a_changed_class() -> None:
    after = [("pedestrian", 12.0, 3.0), *STREET[1:]]
    assert counted(STREET, after).outcome is Outcome.HOLDS
    assert counted(STREET, after, per_category=True).outcome is Outcome.VIOLATED


def test_kept_per_category_sees_a_changed_class() -> None:
    after = [("pedestrian", 12.0, 3.0), *STREET[1:]]
    assert kept(STREET, after).outcome is Outcome.HOLDS
    assert kept(STREET, after, per_category=True).reason == "lost car at (12.0, 3.0) m"


@pytest.mark.parametrize(
    ("obstacle", "demanded"),
    [
        (("car", 1.1, 0.0), True),
        (("car", 0.9, 0.0), False),
        (("car", 38.9, 0.0), True),
        (("car", 39.1, 0.0), False),
        (("car", 20.0, 9.1), False),
        (("car", 50.0, 0.0), False),
    ],
)
def test_only_the_keep_zone_is_demanded(obstacle: tuple[str, float, float], demanded: bool) -> None:
    expected = Outcome.VIOLATED if demanded else Outcome.NOT_APPLICABLE
    assert kept([obstacle], []).outcome is expected
    assert counted([obstacle], []).outcome is expected


def test_crossing_an_outline_is_no_violation() -> None:
    for check in (kept, counted):
        assert check([("car", 38.9, 0.0)], [("car", 40.2, 0.0)]).outcome is Outcome.HOLDS
        # Nor does an old obstacle that comes in make up for a lost one.
        assert check([("car", 10, 0), ("car", 39.2, 0)], [("car", 38.8, 0)]).outcome is Outcome.VIOLATED


def test_range_limit() -> None:
    assert kept([("car", 25.0, 0.0)], [], within_m=24.0).outcome is Outcome.NOT_APPLICABLE
    assert kept([("car", 23.0, 0.0)], [], within_m=24.0).outcome is Outcome.VIOLATED


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [(0.5, 0.3, "HOLDS"), (0.5, 0.29, "VIOLATED"), (0.49, 0.0, "NOT_APPLICABLE"), (0.9, 0.31, "HOLDS")],
)
def test_score_hysteresis(before: float, after: float, outcome: str) -> None:
    for check in (kept, counted):
        assert check([("car", 10, 0, before)], [("car", 10, 0, after)]).outcome.value == outcome


def test_an_obstacle_between_the_thresholds_is_neither_demanded_nor_new() -> None:
    weak = ("pedestrian", 30.0, 0.0, 0.4)
    for check in (kept, counted):
        judgement = check([*STREET, weak], [*STREET[1:], ("pedestrian", 30.0, 0.0, 0.8)])
        assert (judgement.outcome, judgement.lost, judgement.gained) == (Outcome.VIOLATED, 1, 0)


def test_split_and_merged_obstacles_are_kept() -> None:
    long = Output(Detections.make("base_link", None, [[20.0, 0, 1]], [[6.0, 2.0, 1]]))
    halves = Output(Detections.make("base_link", None, [[18.4, 0, 1], [21.6, 0, 1]], [[3.0, 2.0, 1]] * 2))
    assert summary(kept(long, halves)) == ("HOLDS", 1, 1, 0, 0, 0)
    pair = [("pedestrian", 20.0, 0.4), ("pedestrian", 20.0, -0.4)]
    merged = Output(Detections.make("base_link", None, [[20.0, 0, 1]], [[0.8, 1.6, 1.7]], label=["unknown"]))
    assert summary(kept(pair, merged)) == ("HOLDS", 2, 2, 0, 0, 0)
    assert summary(counted(pair, merged)) == ("VIOLATED", 1, 2, -1, 1, 0)


def test_coverage_has_a_threshold() -> None:
    far_part = Output(Detections.make("base_link", None, [[22.1, 0, 1]], [[2.1, 1.8, 1]]))
    assert kept([("car", 20.0, 0.0)], far_part).outcome is Outcome.VIOLATED
    assert kept([("car", 20.0, 0.0)], far_part, coverage=0.2).outcome is Outcome.HOLDS


def test_outputs_in_another_frame_are_moved() -> None:
    low = Output(replace(seen(STREET).detections, center_m=seen(STREET).detections.center_m - [0, 0, 1.73]))
    velodyne = Output(replace(low.detections, frame_id="velodyne"))
    region = {"frame_id": "base_link", "box_m": {"x": [0, 40], "y": [-10, 10]}, "z_m": [0.5, 1.0]}
    assert summary(kept(velodyne, STREET, region=region)) == ("HOLDS", 4, 4, 0, 0, 0)


def test_unknown_frame_is_an_error_that_says_so() -> None:
    judgement = kept(seen(STREET, "map"), STREET)
    assert judgement.outcome is Outcome.ERROR
    assert "no transform from frame 'map' to 'base_link'" in judgement.reason


def test_expected_transform_is_applied_to_the_source() -> None:
    ahead = Effects(output_transform=pose_matrix([-5.0, 0, 0], [0, 0, 0, 1]), output_frame_id="base_link")
    nearer = [(c, x - 5.0, y) for c, x, y in STREET]
    assert kept(STREET, nearer).outcome is Outcome.VIOLATED
    assert summary(kept(STREET, nearer, ahead)) == ("HOLDS", 4, 4, 0, 0, 0)
    # What has left the keep zone is not demanded.
    assert summary(kept([("car", 5.5, 0.0)], [], ahead))[0] == "NOT_APPLICABLE"


@pytest.mark.parametrize("kind", ["removed", "occluded", "revealed"])
def test_removed_occluded_and_revealed_obstacles_are_not_demanded(kind: str) -> None:
    hole = Volume("velodyne", (12.0, 3.0, -1.0), (5.0, 3.0, 2.0))
    assert summary(kept(STREET, STREET[1:], Effects(**{kind: (hole,)}))) == ("HOLDS", 3, 3, 0, 0, 0)
    assert kept(STREET, STREET[:3], Effects(**{kind: (hole,)})).reason == "lost cyclist at (8.0, -6.0) m"


def test_what_reaches_nearer_than_beyond_m_is_not_demanded() -> None:
    """The car ahead, 12.4 m away with its middle, begins at 10.1 m; the cyclist is 10 m away, 1.8 m long."""
    assert summary(kept(STREET, STREET[1:], beyond_m=9.8)) == ("VIOLATED", 2, 3, -1, 1, 0)
    assert summary(kept(STREET, STREET[1:], beyond_m=10.5)) == ("HOLDS", 2, 2, 0, 0, 0)
    assert kept(STREET, STREET[:3], beyond_m=8.5).outcome is Outcome.VIOLATED
    assert kept(STREET, STREET[:3], beyond_m=10.0).outcome is Outcome.HOLDS
    assert kept(STREET, [], beyond_m=30.0).outcome is Outcome.NOT_APPLICABLE


def test_an_obstacle_without_a_size_can_be_removed() -> None:
    point = Output(Detections.make("base_link", None, [[12.0, 3.0, 0.0]]))
    hole = Effects(removed=(Volume("base_link", (12.0, 3.0, 0.0), (1.0, 1.0, 1.0)),))
    assert kept(point, [], hole).outcome is Outcome.NOT_APPLICABLE
    assert kept(point, []).outcome is Outcome.VIOLATED
    assert kept(point, point).outcome is Outcome.HOLDS


@pytest.mark.parametrize("column", ["center_m", "size_m", "yaw_rad", "score"])
def test_numbers_that_are_not_finite_are_an_error(column: str) -> None:
    broken = seen(STREET)
    getattr(broken.detections, column)[1] = np.nan
    for before, after, name in ((broken, STREET, "source"), (STREET, broken, "follow-up")):
        judgement = kept(before, after)
        assert judgement.outcome is Outcome.ERROR
        assert judgement.reason == f"the {name} output has 1 of 4 obstacles with numbers that are not finite"


def test_bev_iou_needs_sizes() -> None:
    point = Output(Detections.make("base_link", None, [[12.0, 3.0, 0.0]]))
    assert "without a size" in kept(point, STREET, association="bev_iou").reason


def test_nothing_to_demand_is_not_applicable() -> None:
    judgement = kept([], STREET)
    assert judgement.outcome is Outcome.NOT_APPLICABLE
    assert judgement.measured is None
    assert "keep zone of 'front_40m'" in judgement.reason


def test_a_region_that_has_not_come_yet_is_not_applicable() -> None:
    judgement = kept(STREET, STREET, region="topic:/roi")
    assert judgement.outcome is Outcome.NOT_APPLICABLE
    assert "no polygon on /roi" in judgement.reason


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"keep_inset_m": 10.0}, "leaves nothing of region 'front_40m'"),
        ({"beyond_m": 20.0, "within_m": 20.0}, "beyond_m 20 is not below within_m 20"),
        ({"score_low": 0.6}, "above score_high"),
        ({"association": "iou"}, "expected one of centre, bev_iou"),
        ({"region": "front"}, "front_40m"),
    ],
)
def test_wrong_parameters(params: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        build(ObstaclesKept, params, "test")


@given(st.randoms(use_true_random=False), st.sampled_from([ObstaclesKept, ObstacleCountNotLess]), st.booleans())
def test_verdicts_do_not_depend_on_the_order(random: Any, cls: type, iou: bool) -> None:
    # A coarse grid makes ties.
    def one() -> tuple[Any, ...]:
        place = (random.randrange(2, 12) / 2 + 10, random.randrange(-4, 5) / 2)
        return (random.choice(list(SIZES)), *place, random.choice([0.2, 0.4, 0.9]))

    before, after = ([one() for _ in range(random.randrange(9))] for _ in range(2))
    check = cls(association="bev_iou" if iou else "centre")
    first = judge(check, before, after)
    random.shuffle(before)
    random.shuffle(after)
    assert judge(check, before, after) == first


@pytest.mark.parametrize("kind", ["checks", "conditions"])
def test_every_parameter_has_help(kind: str) -> None:
    assert plugins.catalogue(kind)
    for cls in plugins.catalogue(kind).values():
        assert plugins.summary_of(cls)
        assert all(row["help"] for row in describe(cls))


def test_obstacles_within() -> None:
    near = build(ObstaclesWithin, {"range_m": 10.0, "at_least": 2}, "test")
    assert near.unmet(BUNDLE, seen(STREET)) == "1 obstacles within 10 m, expected at least 2"
    assert near.unmet(BUNDLE, seen([*STREET, ("car", 5, 5)])) is None
    inside = build(ObstaclesWithin, {"region": "front_40m"}, "test")
    assert inside.unmet(BUNDLE, seen([("car", 45, 0)])) == "0 obstacles seen in region 'front_40m', expected at least 1"
    assert inside.unmet(BUNDLE, seen([("car", 35, 0, 0.4)])) is not None
    assert inside.unmet(BUNDLE, seen([("car", 35, 0)])) is None


def test_path_reaches() -> None:
    def ahead(*x_m: float) -> Output:
        return Output(path=Path.make("base_link", 0, [(x, 0.0, 0.0) for x in x_m]))

    reaches = PathReaches(ahead_m=8.0)
    assert reaches.unmet(BUNDLE, ahead(0.0, 8.0)) is None and reaches.unmet(BUNDLE, ahead(9.0, 2.0)) is None
    short = "the source's path reaches 7.5 m ahead, expected at least 8 m"
    assert reaches.unmet(BUNDLE, ahead(0.0, 7.5)) == short
    assert reaches.unmet(BUNDLE, ahead()) == reaches.unmet(BUNDLE, Output()) == "the source output tells no path"


def test_what_cannot_be_evaluated_is_unmet() -> None:
    bare = replace(BUNDLE, transforms=TransformTree())
    assert "no transform" in str(ObstaclesWithin(range_m=9.0).unmet(bare, seen(STREET, "velodyne")))
    assert "no detections" in str(ObstaclesWithin().unmet(BUNDLE, Output()))
    assert "no polygon on /roi" in str(
        build(ObstaclesWithin, {"region": "topic:/roi"}, "t").unmet(BUNDLE, seen(STREET))
    )
    assert "no cloud on /rear" in str(PointsAtLeast(topic="/rear").unmet(BUNDLE, Output()))
    assert "no transform" in str(build(PointsAtLeast, {"region": "front_40m"}, "t").unmet(bare, Output()))


def test_points_at_least() -> None:
    bundle = made_bundle(made_cloud(count=2000, holes=0.5))
    finite = int(np.isfinite(bundle.cloud().xyz).all(axis=1).sum())
    assert PointsAtLeast(points=finite).unmet(bundle, Output()) is None
    assert (
        PointsAtLeast(points=finite + 1).unmet(bundle, Output()) == f"{finite} points, expected at least {finite + 1}"
    )
    x, y = bundle.cloud().points["x"], bundle.cloud().points["y"]
    inside = int(((x >= 0) & (x <= 40) & (np.abs(y) <= 10)).sum())
    demanding = build(PointsAtLeast, {"points": inside + 1, "region": "front_40m"}, "test")
    assert demanding.unmet(bundle, Output()) == f"{inside} points in region 'front_40m', expected at least {inside + 1}"
    assert replace(demanding, points=inside).unmet(bundle, Output()) is None


def test_shipped_relations_load_and_say_their_source() -> None:
    relations = shipped_relations()
    assert {r.id for r in relations} == set(resources.shipped("relations"))
    assert all(r.because for r in relations)
    assert all("CACM" in r.because for r in relations if r.id.startswith("noise"))
    suite = load_suite(DEFAULT)
    assert [r.role for r in suite.all] == ["control", "sham", "relation", "relation", "relation"]
    assert [r.mutate[0].points for r in suite.relations] == [10, 100, 1000]  # type: ignore[attr-defined]


def test_relations_survive_being_written_down() -> None:
    for relation in shipped_relations():
        for plugin in (*relation.mutate, *relation.given, *((relation.check,) if relation.check else ())):
            assert build(type(plugin), json.loads(json.dumps(plain(plugin))), "again") == plugin


def test_the_variants_are_what_they_are_called() -> None:
    mutation = {r.id: r.mutate[0] for r in shipped_relations()}
    assert mutation["noise_near_roi_1000"].within_m == 5.0  # type: ignore[attr-defined]
    assert mutation["noise_outside_roi_on_ray_1000"].mode == "on_ray"  # type: ignore[attr-defined]
    assert mutation["noise_outside_roi_bright_10"].intensity == "full_scale"  # type: ignore[attr-defined]
    assert isinstance(load_relation("noise_outside_roi_count_1000").check, ObstacleCountNotLess)


def monotone(less: Any, more: Any, effects: Effects | None = None, **params: Any) -> Judgement:
    return judge(build(Monotone, params, "test"), less, more, effects)


def test_more_of_a_change_may_lose_anybody_and_show_nobody_anew() -> None:
    assert summary(monotone(STREET, STREET)) == ("HOLDS", 0, 0, 0, 0, 0)
    assert summary(monotone(STREET, STREET[:1])) == ("HOLDS", 0, 0, 0, 3, 0)
    judgement = monotone(STREET[:1], STREET[:2])
    assert summary(judgement) == ("VIOLATED", 1, 0, -1, 0, 1)
    assert judgement.reason == "seen only through more of it: car at (25.0, -3.0) m"
    assert judgement.detail["gained_at"] == [[25.0, -3.0, "car"]]
    assert monotone(STREET, []).outcome is Outcome.HOLDS
    assert monotone([], STREET[:1]).outcome is Outcome.VIOLATED
    assert monotone([], []).outcome is Outcome.NOT_APPLICABLE


def test_monotone_goes_by_both_thresholds_and_by_what_it_allows() -> None:
    unsure = [("car", 12.0, 3.0, 0.4)]
    sure = [("car", 12.0, 3.0, 0.6)]
    # What the milder shows, however unsure, is no news; what the stronger shows unsurely is none either.
    assert monotone([*unsure, STREET[1]], [*sure, STREET[1]]).outcome is Outcome.HOLDS
    assert monotone([STREET[1]], [*unsure, STREET[1]]).outcome is Outcome.HOLDS
    assert monotone([STREET[1]], [*sure, STREET[1]]).outcome is Outcome.VIOLATED
    assert summary(monotone([STREET[1]], [*sure, STREET[1]], gained_at_most=1)) == ("HOLDS", 1, 1, 0, 0, 1)
    assert monotone(STREET[:1], STREET[:3], gained_at_most=1).margin == -1


def test_monotone_forgives_what_the_mutation_put_there_and_parts_of_what_was_there() -> None:
    added = Effects(added=(Volume("base_link", (25.0, -3.0, 0.8), (4.2, 1.8, 1.5), 0.0, "car"),))
    assert monotone(STREET[:1], STREET[:2], added).outcome is Outcome.HOLDS
    # Half of a car that is split in two has the other half's partner, and lies within what was there.
    halves = [("unknown", 24.0, -3.0), ("unknown", 26.0, -3.0)]
    assert monotone([STREET[1]], halves).outcome is Outcome.HOLDS


@given(st.lists(st.sampled_from(STREET), unique=True), st.lists(st.sampled_from(STREET), unique=True))
def test_monotone_is_the_relation_of_a_subset(less: list[Any], more: list[Any]) -> None:
    judgement = monotone(less, more)
    if judgement.outcome is not Outcome.NOT_APPLICABLE:
        assert (judgement.outcome is Outcome.HOLDS) == (set(more) <= set(less))
        assert judgement.gained == len(set(more) - set(less)) and judgement.lost == len(set(less) - set(more))
