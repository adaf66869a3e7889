# SPDX-License-Identifier: Apache-2.0
"""Corruptions of one object: which object, what becomes of its returns, and that the proofs find what is wrong."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.data.ground_truth import GroundTruth
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.outputs import Detections
from mt_nodes.data.transforms import move
from mt_nodes.relations.mutations.base import Followup, Mutation
from mt_nodes.relations.mutations.objects.object_deformed import (
    ObjectDeformed,
    ObjectRotated,
    ObjectScaled,
    ObjectSheared,
    ObjectSmeared,
)
from mt_nodes.relations.mutations.objects.object_exchange import objects_of, search_of
from mt_nodes.relations.mutations.objects.object_returns import (
    ObjectCutOut,
    ObjectEchoesLost,
    ObjectJittered,
    ObjectReturns,
    ObjectThinned,
)
from mt_nodes.world.scene.drive import CLOUD_TOPIC, generate_drive

ROWS: tuple[ObjectReturns, ...] = (ObjectEchoesLost(), ObjectThinned(), ObjectCutOut(), ObjectJittered())
SHAPES: tuple[ObjectDeformed, ...] = (ObjectScaled(), ObjectSheared(), ObjectRotated(), ObjectSmeared())


@cache
def bundle() -> Bundle:
    return next(iter(generate_drive(1)))


@cache
def derived(mutation: Any) -> tuple[Followup, dict[str, Any]]:
    rng = np.random.default_rng(5)
    draw = mutation.draw(rng, bundle(), mutation.begin(rng, bundle()))
    return mutation.apply(bundle(), draw), draw


def part(draw: dict[str, Any], name: str) -> Any:
    return draw[f"{CLOUD_TOPIC}|{name}"]


def in_ego(cloud: Cloud) -> np.ndarray:
    return move(bundle().transforms.lookup("base_link", cloud.frame_id), cloud.xyz.astype(np.float64))


def own(mutation: ObjectReturns, draw: dict[str, Any]) -> np.ndarray:
    plain = {name: part(draw, name) for name in ("outline_m", "plane")}
    return mutation.own(bundle(), bundle().cloud(), plain)


@pytest.mark.parametrize("mutation", [*ROWS, *SHAPES], ids=lambda m: type(m).__name__)
def test_it_is_proven_and_changes_one_place_alone(mutation: Mutation) -> None:
    followup, draw = derived(mutation)
    assert mutation.guarantee(bundle(), followup, draw) is None
    outline = part(draw, "outline_m")
    low, high = outline.min(axis=0) - 1.0, outline.max(axis=0) + 1.0
    before, after = ({p.tobytes(): p for p in in_ego(c)} for c in (bundle().cloud(), followup.first.cloud()))
    gone = np.array([before[key] for key in before.keys() - after.keys()])
    near = ((gone[:, :2] > low) & (gone[:, :2] < high)).all(axis=1)
    # An object that gets another shape uncovers and hides what is behind it, on the same bearings.
    bearing = np.arctan2(gone[:, 1], gone[:, 0])
    edges = np.arctan2(outline[:, 1], outline[:, 0])
    assert len(gone) and (near | ((bearing > edges.min() - 0.15) & (bearing < edges.max() + 0.15))).all()


def test_the_object_is_the_nearest_or_the_one_with_a_label() -> None:
    mutation = ObjectThinned()
    nearest = part(derived(mutation)[1], "outline_m").mean(axis=0)
    to_ego = bundle().transforms.lookup("base_link", "velodyne")
    search = search_of("any", (4.0, 30.0), 6.0, 30, 6.0)
    things = [outline for outline, _ in objects_of(bundle(), to_ego, search, "cloud", "base_link")]
    assert things[0].mean(axis=0) == pytest.approx(nearest)
    other = things[2]
    size = [*np.ptp(other, axis=0), 1.7]
    label = Detections.make("base_link", 0, [[*other.mean(axis=0), 0.9]], [size], [0.0], ["pedestrian"])
    truth = GroundTruth(label, frozenset({"pedestrian"}), np.array([200]))
    labelled = replace(bundle(), truth=truth)
    draw = mutation.draw(np.random.default_rng(0), labelled, None)
    assert part(draw, "outline_m").mean(axis=0) == pytest.approx(other.mean(axis=0))
    followup = mutation.apply(labelled, draw)
    assert mutation.guarantee(labelled, followup, draw) is None
    draw = replace(mutation, chosen_by="cloud").draw(np.random.default_rng(0), labelled, None)
    assert part(draw, "outline_m").mean(axis=0) == pytest.approx(nearest)


def test_labels_that_are_asked_for_must_be_there() -> None:
    with pytest.raises(NotApplicable, match="has no labels"):
        ObjectThinned(chosen_by="labels").draw(np.random.default_rng(0), bundle(), None)
    far = Detections.make("base_link", 0, [[60.0, 0.0, 1.0]], [[4.0, 2.0, 1.5]], [0.0], ["car"])
    truth = GroundTruth(far, frozenset({"car"}), np.array([200]))
    with pytest.raises(NotApplicable, match="none of 1 labelled objects"):
        ObjectThinned().draw(np.random.default_rng(0), replace(bundle(), truth=truth), None)


def test_a_sensor_that_does_not_see_it_says_so() -> None:
    cloud = bundle().cloud()
    rear = replace(cloud, topic="/rear", points=cloud.points[cloud.points["x"] < 0.0])
    both = replace(bundle(), clouds=(cloud, rear))
    for mutation in (ObjectThinned(), ObjectJittered()):
        draw = mutation.draw(np.random.default_rng(0), both, None)
        followup = mutation.apply(both, draw)
        assert mutation.guarantee(both, followup, draw) is None and followup.first.cloud("/rear") is rear
        assert "0 returns of /rear" in followup.effects.unchanged["/rear"]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_weak_echoes_are_lost_first(share: float) -> None:
    mutation = ObjectEchoesLost(share=share)
    followup, draw = derived(mutation)
    rows, lost = own(mutation, draw), part(draw, "rows").astype(int)
    assert len(lost) / len(rows) == pytest.approx(share, abs=0.08)
    cloud = bundle().cloud()
    strength = np.maximum(cloud.points["intensity"] / 255.0, 0.05)
    strength = strength / np.maximum(np.linalg.norm(cloud.xyz, axis=1), 15.0) ** 2
    kept = np.setdiff1d(rows, lost)
    assert strength[lost].mean() < strength[kept].mean()  # half of a dark car is equally weak
    assert bool(followup.effects.occluded) == (len(lost) > 0.5 * len(rows)), "it is demanded while half is there"


def test_a_hole_is_round() -> None:
    mutation = ObjectCutOut(share=0.3)
    _, draw = derived(mutation)
    xyz, rows = bundle().cloud().xyz.astype(float), own(mutation, draw)
    away = np.linalg.norm(xyz[rows] - xyz[part(draw, "middle")], axis=1)
    lost = np.isin(rows, part(draw, "rows"))
    assert lost.sum() == round(0.3 * len(rows)) and away[lost].max() <= away[~lost].min()


@pytest.mark.parametrize("distribution", ["gaussian", "uniform", "impulse"])
def test_noise_stays_on_the_rays(distribution: str) -> None:
    mutation = ObjectJittered(distribution=distribution, size_m=0.05, share=0.5)
    followup, draw = derived(mutation)
    rows = part(draw, "rows").astype(int)
    old, new = (c.xyz[rows].astype(np.float64) for c in (bundle().cloud(), followup.first.cloud()))
    ranges = [np.linalg.norm(xyz, axis=1) for xyz in (old, new)]
    assert np.abs(old / ranges[0][:, None] - new / ranges[1][:, None]).max() < 1e-6
    moved = ranges[1] - ranges[0]
    assert {"gaussian": 0.04 < moved.std() < 0.06, "uniform": np.abs(moved).max() < 0.051, "impulse": True}[
        distribution
    ]
    assert distribution != "impulse" or np.abs(moved) == pytest.approx(0.05, abs=1e-4)


def test_a_smaller_object_is_smaller_and_stands_on_the_same_ground() -> None:
    mutation = ObjectScaled(factor=0.8)
    followup, draw = derived(mutation)
    rows = np.concatenate([part(draw, "rows"), part(draw, "lost")]).astype(int)
    tops = [xyz[:, 2].max() for xyz in (in_ego(bundle().cloud())[rows], _added(followup))]
    assert tops[1] == pytest.approx(0.8 * tops[0], abs=0.08)
    assert followup.effects.added[0].size_m[2] == pytest.approx(tops[1], abs=0.1)


def test_unchanged_it_is_measured_as_before() -> None:
    """A shape that hardly changes gives nearly all returns again: none is lost at edges or on a single line."""
    mutation = ObjectScaled(factor=0.9999)
    _, draw = derived(mutation)
    count = len(part(draw, "rows")) + len(part(draw, "lost"))
    back = len(part(draw, "put_rows")) + len(part(draw, "put_new_rows"))
    assert 0.95 * count <= back <= 1.25 * count
    with pytest.raises(UsageError, match="changes nothing"):
        ObjectScaled(factor=1.0)


@pytest.mark.parametrize("share", [0.9, 0.5])
def test_what_is_left_behind_is_found(share: float) -> None:
    mutation = ObjectSheared()
    _, draw = derived(mutation)
    stays = np.random.default_rng(1).random(len(part(draw, "put_rows"))) < share
    less = draw | {f"{CLOUD_TOPIC}|put_{n}": part(draw, f"put_{n}")[stays] for n in ("rows", "range_m", "intensity")}
    broken = mutation.guarantee(bundle(), mutation.apply(bundle(), less), less)
    assert broken is not None and "left behind the object" in broken
    assert int(broken.split()[1]) > 0.7 * (~stays).sum()


def test_a_return_off_the_surface_is_found() -> None:
    mutation = ObjectRotated()
    _, draw = derived(mutation)
    name = f"{CLOUD_TOPIC}|put_range_m"
    wrong = draw | {name: draw[name] - np.float32(0.5)}
    broken = mutation.guarantee(bundle(), mutation.apply(bundle(), wrong), wrong)
    assert broken is not None and "farther from the object's own" in broken


def test_echoes_lost_against_the_law_are_found() -> None:
    mutation = ObjectEchoesLost(share=0.5)
    _, draw = derived(mutation)
    rows, name = own(mutation, draw), f"{CLOUD_TOPIC}|rows"
    fewer = draw | {name: draw[name][::3]}
    broken = mutation.guarantee(bundle(), mutation.apply(bundle(), fewer), fewer)
    assert broken is not None and "the formula says" in broken
    other = draw | {name: np.arange(5)}
    broken = mutation.guarantee(bundle(), mutation.apply(bundle(), other), other)
    assert not np.isin(np.arange(5), rows).any() and broken is not None and "not the object's" in broken


def test_a_smear_follows_the_time_of_each_return() -> None:
    mutation = ObjectSmeared(speed_mps=30.0, heading_deg=90.0)
    followup, draw = derived(mutation)
    times = bundle().cloud().points["time"]
    rows = np.concatenate([part(draw, "rows"), part(draw, "lost")]).astype(int)
    middle = (times.max() + times.min()) / 2.0
    expected = 30.0 * float((times[rows] - middle).mean())
    moved = [xyz[:, 1].mean() for xyz in (in_ego(bundle().cloud())[rows], _added(followup))]
    assert moved[1] - moved[0] == pytest.approx(expected, abs=0.15 * abs(expected) + 0.1)


def _added(followup: Followup) -> np.ndarray:
    to_ego = bundle().transforms.lookup("base_link", "velodyne")
    return move(to_ego, followup.effects.added_points[CLOUD_TOPIC].astype(np.float64))
