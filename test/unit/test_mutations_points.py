# SPDX-License-Identifier: Apache-2.0
"""What is particular of the mutations of points: shares, formulas, rays, surfaces, and guarantees that can fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from drives import recorded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_bundles import LAYOUTS, TOPIC, TREE, made_bundle, made_cloud

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import build
from mt_nodes.base.seeds import generator
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.mutations.lidar.density_increased import DensityIncreased
from mt_nodes.relations.mutations.lidar.drawn_returns import (
    FarPointsDropped,
    PointsDropped,
    PointsDuplicated,
    SectorDropped,
)
from mt_nodes.relations.mutations.lidar.intensity_changed import IntensityChanged
from mt_nodes.relations.mutations.lidar.noise_clustered_outside_roi import NoiseClusteredOutsideRoi
from mt_nodes.relations.mutations.lidar.noise_inside_roi import NoiseInsideRoi
from mt_nodes.relations.mutations.lidar.placement import empty_returns
from mt_nodes.relations.mutations.lidar.points_jittered import PointsJittered
from mt_nodes.relations.mutations.lidar.range_errors import RangeBiased, RangeQuantised
from mt_nodes.relations.mutations.lidar.region_cut_out import RegionCutOut
from mt_nodes.relations.mutations.lidar.returns_emptied import ReturnsEmptied
from mt_nodes.relations.mutations.lidar.scan_limits import DensityDecreased
from mt_nodes.world.scene.drive import LIDAR_HEIGHT_M, generate_drive

STREET = next(iter(generate_drive(1)))
ORGANISED = made_bundle(made_cloud("ouster", 8192, height=64, holes=0.3))
BOX = {"frame_id": "base_link", "box_m": {"x": [5, 15], "y": [-6, 6]}}
FEW = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def derive(mutation: Mutation, bundle: Bundle, seed: int = 0) -> tuple[Followup, Draw]:
    draw = mutation.draw(generator(seed, "points", 0, 0, 0), bundle, None)
    return mutation.apply(bundle, draw), draw


def derived(mutation: Mutation, bundle: Bundle, seed: int = 0) -> tuple[Cloud, Draw]:
    """The new cloud and what was drawn for it, after the mutation proved itself."""
    followup, draw = derive(mutation, bundle, seed)
    assert mutation.guarantee(bundle, followup, draw) is None
    return followup.first.cloud(), {name.removeprefix(f"{TOPIC}|"): value for name, value in draw.items()}


def tampered(bundle: Bundle, change: Callable[[Any], None], mutation: Mutation) -> str | None:
    """What the guarantee says of a follow-up whose points were changed behind its back."""
    followup, draw = derive(mutation, bundle)
    cloud = followup.first.cloud()
    raw = cloud.raw.copy()
    change(raw.view(cloud.points.dtype))
    made = Followup(((0, followup.first.with_clouds([cloud.with_raw(raw, height=cloud.height)])),), followup.effects)
    return mutation.guarantee(bundle, made, draw)


def range_m(cloud: Cloud) -> np.ndarray:
    return np.linalg.norm(cloud.xyz.astype(float), axis=1)


def lost_rows(old: Cloud, new: Cloud) -> np.ndarray:
    """Rows of an unorganised cloud that are not in the new one, by the time and ring of a return."""
    key = old.points["time"].astype(float) * 1e6 + old.points["ring"]
    return np.flatnonzero(~np.isin(key, new.points["time"].astype(float) * 1e6 + new.points["ring"]))


def scan(ranges: Callable[[np.ndarray, np.ndarray], np.ndarray], rings: int = 4, columns: int = 90) -> Bundle:
    """A sensor of some rings, column by column, that sees ``ranges(azimuth, elevation)``."""
    azimuth = np.repeat(np.linspace(-0.4, 0.4, columns), rings)
    elevation = np.tile(np.linspace(-0.1, 0.1, rings), columns)
    r = ranges(azimuth, elevation)
    points = np.zeros(len(r), LAYOUTS["velodyne"])
    points["x"], points["y"] = r * np.cos(elevation) * np.cos(azimuth), r * np.cos(elevation) * np.sin(azimuth)
    points["z"], points["intensity"] = r * np.sin(elevation), 10.0 * np.arange(len(r)) / len(r)
    points["ring"], points["time"] = np.tile(np.arange(rings), columns), np.repeat(np.arange(columns), rings) * 1e-4
    return Bundle(0, 0, 1_000, (Cloud(TOPIC, 1_000, "velodyne", points),), transforms=TREE)


def two_walls(azimuth: np.ndarray, elevation: np.ndarray) -> np.ndarray:
    return np.where(azimuth < 0.0, 10.0, 20.0) / np.cos(elevation)


# --- broken copies: each guarantee sees a mutation that does something else


def wrong_rows(cls: type[Mutation]) -> Callable[..., Mutation]:
    """A copy that draws the right number of neighbours of the right rows."""

    class Broken(cls):  # type: ignore[misc, valid-type]
        def draw_cloud(self, rng: Any, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
            draw = super().draw_cloud(rng, bundle, cloud, state)
            rows = np.asarray(draw["rows"], dtype=np.int64)
            return {**draw, "rows": np.setdiff1d(np.arange(len(cloud)), rows)[: len(rows)]}

    return Broken


def unchanged(cls: type[Mutation]) -> Callable[..., Mutation]:
    """A copy that draws, but does nothing."""

    class Broken(cls):  # type: ignore[misc, valid-type]
        def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
            return cloud

    return Broken


def one_off(cls: type[Mutation]) -> Callable[..., Mutation]:
    """A copy that also moves one point by a metre, aside of its beam."""

    class Broken(cls):  # type: ignore[misc, valid-type]
        def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
            new = super().change_cloud(bundle, cloud, draw)
            raw = new.raw.copy()
            raw.view(new.points.dtype)["z"][len(new) // 2] += 1.0
            return new.with_raw(raw, height=new.height)

    return Broken


EVERY: dict[type[Mutation], dict[str, Any]] = {
    DensityDecreased: {},
    DensityIncreased: {},
    FarPointsDropped: {},
    IntensityChanged: {},
    NoiseClusteredOutsideRoi: {},
    NoiseInsideRoi: {},
    PointsDropped: {},
    PointsDuplicated: {},
    PointsJittered: {},
    RangeBiased: {},
    RangeQuantised: {},
    RegionCutOut: {},
    ReturnsEmptied: {},
    SectorDropped: {},
}


@pytest.mark.parametrize("breaking", [unchanged, one_off])
@pytest.mark.parametrize("cls", EVERY, ids=lambda c: c.__name__)
def test_guarantee_fails_on_a_broken_copy(cls: type[Mutation], breaking: Callable[..., Any]) -> None:
    broken = breaking(cls)(**EVERY[cls])
    followup, draw = derive(broken, STREET)
    assert broken.guarantee(STREET, followup, draw)


@pytest.mark.parametrize("cls", EVERY, ids=lambda c: c.__name__)
def test_guarantee_holds_on_a_recorded_cloud(cls: type[Mutation]) -> None:
    points = (recorded(13)[0] - np.float32([0, 0, LIDAR_HEIGHT_M, 0])).view(LAYOUTS["kitti"]).reshape(-1)
    derived(cls(**EVERY[cls]), Bundle(0, 0, 1_000, (Cloud(TOPIC, 1_000, "velodyne", points),), transforms=TREE))


@pytest.mark.parametrize("cls", [FarPointsDropped, RegionCutOut, SectorDropped])
def test_guarantee_sees_other_returns_lost(cls: type[Mutation]) -> None:
    broken = wrong_rows(cls)()
    followup, draw = derive(broken, STREET)
    assert broken.guarantee(STREET, followup, draw)


def test_guarantee_sees_too_few_lost() -> None:
    followup, draw = derive(PointsDropped(share=0.1), STREET)
    assert "expected" in str(PointsDropped(share=0.2).guarantee(STREET, followup, draw))


def test_a_stranger_among_the_topics_is_seen() -> None:
    mutation, bundle = PointsDropped(), made_bundle()
    followup, draw = derive(mutation, bundle)
    image = replace(bundle.images[0], stamp_ns=5)
    made = Followup(((0, replace(followup.first, images=(image,))),))
    assert "/camera/image changed, too" in str(mutation.guarantee(bundle, made, draw))


# --- returns lost


@FEW
@given(st.floats(0.001, 0.9), st.integers(0, 2**31), st.sampled_from(["kitti", "double", "big_endian", "ouster"]))
def test_share_of_the_returns_is_dropped(share: float, seed: int, layout: str) -> None:
    bundle = made_bundle(made_cloud(layout))
    new, draw = derived(PointsDropped(share=share), bundle, seed)
    assert len(new) == 4000 - max(1, round(share * 4000))
    assert draw["rows"].dtype == np.uint16


def test_organised_cloud_gets_empty_returns() -> None:
    old = ORGANISED.cloud()
    new, draw = derived(PointsDropped(share=0.2), ORGANISED)
    known = ~empty_returns(old)
    assert new.height == 64 and not new.is_dense
    assert int((~empty_returns(new)).sum()) == known.sum() - round(0.2 * known.sum())
    assert not new.points["range"][draw["rows"]].any() and not new.points["intensity"][draw["rows"]].any()
    assert (new.points["ring"] == old.points["ring"]).all()


def test_far_points_are_dropped_by_the_formula() -> None:
    bundle = made_bundle(made_cloud("velodyne", 60_000))
    mutation = FarPointsDropped(from_m=20.0, half_m=15.0)
    old, (new, draw) = bundle.cloud(), derived(mutation, bundle)
    lost, r = np.zeros(len(old), bool), range_m(old)
    lost[draw["rows"]] = True
    assert not lost[r <= 20.0].any()
    for low in range(20, 80, 10):
        bin_m = (r >= low) & (r < low + 10)
        expected = 1.0 - 2.0 ** (-(r[bin_m] - 20.0) / 15.0)
        assert lost[bin_m].mean() == pytest.approx(expected.mean(), abs=0.03)
    assert len(new) == len(old) - lost.sum()


def test_farther_points_are_dropped_more() -> None:
    kept = [len(derived(FarPointsDropped(half_m=h), STREET)[0]) for h in (5.0, 20.0, 80.0)]
    assert kept == sorted(kept) and kept[0] < kept[2]


def test_region_is_cut_out_and_excused() -> None:
    mutation = build(RegionCutOut, {"region": BOX}, "test")
    followup, draw = derive(mutation, STREET)
    assert mutation.guarantee(STREET, followup, draw) is None
    shift = np.array([0.0, 0.0, 1.73])
    inside = [mutation.region.contains(b.cloud().xyz + shift).sum() for b in (STREET, followup.first)]
    assert inside[0] > 100 and inside[1] == 0
    (volume,) = followup.effects.removed
    assert (volume.frame_id, volume.center_m[:2], volume.size_m[:2]) == ("base_link", (10.0, 0.0), (10.0, 12.0))
    assert set(volume.outline_m) == {(5, -6), (15, -6), (15, 6), (5, 6)}


@pytest.mark.parametrize(
    "region",
    [
        {**BOX, "z_m": [0.5, 2.0]},
        {"frame_id": "base_link", "polygon_m": [[5, 0], [12, -7], [19, 0], [12, 7]]},
        {"frame_id": "velodyne", "polygon_m": [[[4, 1], [9, 1], [9, 5]], [[-9, -5], [-4, -5], [-4, -1], [-9, -1]]]},
    ],
)
def test_any_region_can_be_cut_out(region: dict[str, Any]) -> None:
    mutation = build(RegionCutOut, {"region": region}, "test")
    new, _ = derived(mutation, STREET)
    shift = [0.0, 0.0, 1.73 if region["frame_id"] == "base_link" else 0.0]
    assert not mutation.region.contains(new.xyz.astype(float) + shift).any()
    assert len(new) < len(STREET.cloud())


def test_nothing_in_the_region_is_no_followup() -> None:
    nowhere = {"frame_id": "base_link", "box_m": {"x": [500, 501], "y": [0, 1]}}
    with pytest.raises(NotApplicable, match="no return that would be lost"):
        derive(build(RegionCutOut, {"region": nowhere}, "test"), STREET)


@FEW
@given(st.integers(1, 5), st.floats(0.5, 90.0), st.integers(0, 2**31))
def test_sectors_are_empty_and_the_rest_is_there(sectors: int, width_deg: float, seed: int) -> None:
    bundle = made_bundle()
    new, draw = derived(SectorDropped(sectors=sectors, width_deg=width_deg), bundle, seed)
    azimuth = np.arctan2(*bundle.cloud().xyz[:, 1::-1].astype(float).T)
    apart = np.abs((azimuth[:, None] - draw["azimuth_rad"] + np.pi) % (2 * np.pi) - np.pi).min(axis=1)
    half = np.radians(width_deg / 2)
    expected = int((apart > half).sum())
    assert abs(len(new) - expected) <= int((np.abs(apart - half) < 1e-5).sum())


def test_sectors_are_occluded() -> None:
    followup, draw = derive(SectorDropped(sectors=2, width_deg=10.0), STREET)
    assert len(followup.effects.occluded) == 2
    for volume, azimuth in zip(followup.effects.occluded, draw["/sensing/lidar/points|azimuth_rad"], strict=True):
        towards = np.mean(volume.outline_m, axis=0)
        assert np.arctan2(towards[1], towards[0]) == pytest.approx(azimuth, abs=0.02)


@pytest.mark.parametrize(("value", "layout"), [("own", "velodyne"), ("nan", "kitti"), ("zero", "kitti")])
def test_emptied_returns_stay_in_place(value: str, layout: str) -> None:
    bundle = made_bundle(made_cloud(layout))
    new, draw = derived(ReturnsEmptied(share=0.05, value=value), bundle)
    xyz = new.xyz[draw["rows"]]
    assert len(new) == 4000 and len(draw["rows"]) == 200
    assert (xyz == 0).all() if value == "zero" else np.isnan(xyz).all()
    assert new.is_dense == (value == "zero")
    assert not new.points["intensity"][draw["rows"]].any()


def test_whole_number_coordinates_cannot_be_nan_or_jittered() -> None:
    layout = np.dtype([("x", "<i4"), ("y", "<i4"), ("z", "<i4")])
    points = np.arange(1, 31, dtype="<i4").repeat(3).view(layout)
    bundle = made_bundle(Cloud(TOPIC, 1_000, "velodyne", points))
    for mutation in (ReturnsEmptied(value="nan"), PointsJittered(), RangeBiased(), RangeQuantised()):
        with pytest.raises(NotApplicable, match="whole-number"):
            derive(mutation, bundle)
    assert (derived(ReturnsEmptied(), bundle)[0].points["x"] == 0).any()


# --- ranges


@FEW
@given(
    st.sampled_from(["gaussian", "uniform", "impulse"]),
    st.sampled_from(["along_ray", "in_space"]),
    st.floats(0.0001, 1.0),
    st.sampled_from([1.0, 0.1]),
    st.sampled_from([*LAYOUTS, "organised"]),
    st.integers(0, 2**31),
)
def test_jitter_proves_itself(
    distribution: str, direction: str, size_m: float, share: float, layout: str, seed: int
) -> None:
    bundle = ORGANISED if layout == "organised" else made_bundle(made_cloud(layout))
    mutation = PointsJittered(distribution=distribution, direction=direction, size_m=size_m, share=share)
    old, (new, _) = bundle.cloud(), derived(mutation, bundle, seed)
    known = ~empty_returns(old)
    assert (empty_returns(new) == ~known).all()
    moved = np.linalg.norm(new.xyz[known].astype(float) - old.xyz[known], axis=1) > 1e-5
    assert moved.mean() <= share + 1e-3
    if "range" in new.fields:
        np.testing.assert_allclose(new.points["range"][known] / 1000, range_m(new)[known], atol=2e-3)


@pytest.mark.parametrize("direction", ["along_ray", "in_space"])
@pytest.mark.parametrize(("distribution", "sigma"), [("gaussian", 1.0), ("uniform", 3**-0.5), ("impulse", 1.0)])
def test_jitter_is_distributed_as_promised(direction: str, distribution: str, sigma: float) -> None:
    old = STREET.cloud()
    new, _ = derived(PointsJittered(distribution=distribution, direction=direction, size_m=0.05), STREET)
    steps = new.xyz.astype(float) - old.xyz
    if direction == "along_ray":
        steps = (range_m(new) - range_m(old))[:, None]
    elif distribution == "impulse":
        steps = steps[range_m(old) < 119.0]  # beyond, a move out of reach does not take place
        np.testing.assert_allclose(np.linalg.norm(steps, axis=1), 0.05, atol=2e-4)
        sigma = 3**-0.5
    assert steps.mean() == pytest.approx(0.0, abs=1e-3)
    np.testing.assert_allclose(steps.std(axis=0), 0.05 * sigma, rtol=0.02)


def test_jitter_along_the_ray_keeps_the_beam_and_in_space_does_not() -> None:
    for direction, on_beam in (("along_ray", True), ("in_space", False)):
        new, _ = derived(PointsJittered(direction=direction, size_m=0.5, distribution="uniform"), STREET)
        old = STREET.cloud()
        unit = [c.xyz.astype(float) / range_m(c)[:, None] for c in (old, new)]
        assert (np.linalg.norm(unit[0] - unit[1], axis=1).max() < 1e-6) == on_beam


def test_ranges_stay_within_the_sensors() -> None:
    bundle = made_bundle()
    for mutation in (
        PointsJittered(size_m=5.0, min_range_m=6.0, max_range_m=60.0),
        PointsJittered(size_m=5.0, min_range_m=6.0, max_range_m=60.0, direction="in_space"),
        RangeBiased(offset_m=-2.0, min_range_m=6.0, max_range_m=60.0),
        RangeBiased(scale=0.1, min_range_m=6.0, max_range_m=60.0),
    ):
        before, after = range_m(bundle.cloud()), range_m(derived(mutation, bundle)[0])
        assert (after >= np.minimum(before, 6.0) - 1e-4).all() and (after <= np.maximum(before, 60.0) + 1e-4).all()
        assert (after != before).any()


@FEW
@given(st.floats(-0.3, 0.3), st.floats(-0.01, 0.01), st.sampled_from([*LAYOUTS, "organised"]))
def test_bias_is_linear_in_range(offset_m: float, scale: float, layout: str) -> None:
    if abs(offset_m) < 1e-4:
        offset_m = 0.1
    bundle = ORGANISED if layout == "organised" else made_bundle(made_cloud(layout))
    old, (new, _) = bundle.cloud(), derived(RangeBiased(offset_m=offset_m, scale=scale), bundle)
    known = ~empty_returns(old)
    before, after = range_m(old)[known], range_m(new)[known]
    slope, shift = np.polyfit(before, after, 1)
    assert slope == pytest.approx(1.0 + scale, abs=1e-4) and shift == pytest.approx(offset_m, abs=1e-3)


@FEW
@given(st.floats(0.001, 1.0), st.sampled_from([*LAYOUTS, "organised"]))
def test_quantised_ranges_are_multiples(step_m: float, layout: str) -> None:
    bundle = ORGANISED if layout == "organised" else made_bundle(made_cloud(layout))
    old, (new, _) = bundle.cloud(), derived(RangeQuantised(step_m=step_m), bundle)
    known = ~empty_returns(old)
    steps = range_m(new)[known] / step_m
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-4 + 4e-5 / step_m)
    assert np.abs(range_m(new)[known] - range_m(old)[known]).max() <= step_m / 2 + 1e-4


def test_a_range_field_that_does_not_follow_is_seen() -> None:
    def leave(points: Any) -> None:
        points["range"][5] += 300

    bundle = made_bundle(made_cloud("ouster"))
    for mutation in (RangeBiased(), RangeQuantised(step_m=0.1), PointsJittered()):
        assert "field 'range' does not follow" in str(tampered(bundle, leave, mutation))


# --- intensities


@FEW
@given(
    st.floats(0.0, 3.0),
    st.floats(-0.5, 0.5),
    st.sampled_from([0.0, 0.03, 0.3]),
    st.floats(0.1, 1.0),
    st.sampled_from(["kitti", "velodyne", "double", "big_endian", "ouster"]),
    st.integers(0, 2**31),
)
def test_intensities_stay_in_scale(
    scale: float, shift: float, noise: float, saturate_at: float, layout: str, seed: int
) -> None:
    bundle = made_bundle(made_cloud(layout))
    mutation = IntensityChanged(scale=scale, shift=shift, noise=noise, saturate_at=saturate_at)
    new, _ = derived(mutation, bundle, seed)
    values = new.points["intensity"].astype(float)
    full = bundle.cloud().echoes.field("intensity").full_scale
    assert full == 255.0 or layout == "ouster"
    assert values.min() >= 0.0 and values.max() <= full
    assert not ((values >= saturate_at * full + 1.0) & (values < full - 0.1)).any()
    assert new.xyz.tobytes() == bundle.cloud().xyz.tobytes()


@pytest.mark.parametrize(("top", "full"), [(0.9, 1.0), (200.0, 255.0), (4000.0, 3996.0)])
def test_full_scale_is_told_from_the_values(top: float, full: float) -> None:
    cloud = made_cloud("kitti")
    cloud.points["intensity"] = np.linspace(0.0, top, len(cloud))
    new, _ = derived(IntensityChanged(scale=0.0, shift=1.0, noise=0.0), made_bundle(cloud))
    np.testing.assert_allclose(new.points["intensity"], full)


@pytest.mark.parametrize(("low", "high"), [(-5.0, 10.0), (0.0, 1e6), (0.0, np.nan)])
def test_intensities_that_make_no_sense_are_refused(low: float, high: float) -> None:
    cloud = made_cloud("kitti")
    cloud.points["intensity"][:2] = low, high
    with pytest.raises(NotApplicable, match=r"fit none of the scales|not a finite number"):
        derive(IntensityChanged(), made_bundle(cloud))


# --- parameters that do not go together


@pytest.mark.parametrize(
    ("cls", "params", "says"),
    [
        (RangeBiased, {"offset_m": 0.0}, "changes nothing"),
        (IntensityChanged, {"noise": 0.0}, "change nothing"),
        (DensityDecreased, {"keep_every": 2, "first": 2}, "expected less than keep_every"),
        (PointsDropped, {"share": 1.0}, "expected 0.0001 to 0.99"),
        (PointsJittered, {"distribution": "cauchy"}, "expected one of gaussian, uniform, impulse"),
    ],
)
def test_what_makes_no_sense_is_refused(cls: type[Mutation], params: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        build(cls, params, "test")


@dataclass(frozen=True)
class Twice(PointsDropped):
    """Draws a row twice."""

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        rows = np.asarray(super().draw_cloud(rng, bundle, cloud, state)["rows"])
        return {"rows": np.concatenate([rows[:-1], rows[:1]])}


def test_a_row_drawn_twice_is_seen() -> None:
    followup, draw = derive(Twice(), STREET)
    assert "each once" in str(Twice().guarantee(STREET, followup, draw))
