# SPDX-License-Identifier: Apache-2.0
"""What makes the depth of a picture and its passes fast says what the plain formula says, in double precision."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
from made_images import street_in

from mt_nodes.data.images.codecs import Picture
from mt_nodes.relations.mutations.camera import sensor_noise, sensor_readout
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.road_covers import TILE_M, tile_values
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.world.camera import free_space
from mt_nodes.world.camera.depth import DepthMap
from mt_nodes.world.camera.depth_completion import between_beams, nearest
from mt_nodes.world.camera.free_space import NearThing, cheapest_path
from mt_nodes.world.camera.light import light_of, quantile, values_of
from mt_nodes.world.camera.relight import coarse_samples, covered
from mt_nodes.world.camera.sparse_depth import _topmost_rad

Floats = np.ndarray[Any, np.dtype[np.float64]]


@pytest.mark.parametrize("cell_px", [1, 2, 3, 4, 6, 16, 17])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("order", ["bgr", "mono"])
def test_cells_show_the_mean_of_their_pixels(cell_px: int, dtype: type, order: str) -> None:
    size = (5 * cell_px, 7 * cell_px)
    pixels = np.random.default_rng(cell_px).integers(0, np.iinfo(dtype).max, (*size, 3)[: 2 + (order == "bgr")], dtype)
    pixels[: 2 * cell_px] = np.iinfo(dtype).max  # sums at their limit
    means = pixels.astype(np.float64).reshape(5, cell_px, 7, cell_px, -1).mean(axis=(1, 3))
    expected = means[..., ::-1] if dtype == np.uint8 else np.rint(means[..., ::-1]) // 256
    found = coarse_samples(Picture(pixels, order), (5, 7), cell_px).astype(np.float64)
    assert np.abs(found - expected).max() <= (0.5 if dtype == np.uint8 else 1.0)


def _cost(path: Floats, cost: Floats) -> float:
    steps = free_space._STEP * np.abs(np.diff(path)).sum()
    return float(cost[path.astype(int), np.arange(cost.shape[1])].sum() + steps)


def test_no_path_costs_less_than_the_cheapest() -> None:
    rng = np.random.default_rng(1)
    for height, width in ((1, 5), (7, 1), (6, 9), (40, 70)):
        cost = rng.random((height, width))
        cost[rng.random(cost.shape) < 0.3] = free_space._NEVER
        rows = np.arange(height)
        total = cost[:, 0]
        for column in cost.T[1:]:
            total = column + (total + free_space._STEP * np.abs(rows[:, None] - rows)).min(axis=1)
        found = cheapest_path(cost.astype(np.float32))
        assert found.shape == (width,) and _cost(found, cost) == pytest.approx(total.min(), rel=1e-6)


@pytest.mark.parametrize("around", [0, 3, 12])
def test_what_is_behind_a_thing_is_what_is_nearest_in_the_whole_picture(
    around: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_space, "_AROUND", around)
    rng, some = np.random.default_rng(2), 0
    for _ in range(20):
        shape = (40, 60)
        range_m, measured = rng.uniform(3.0, 60.0, shape).astype(np.float32), rng.random(shape) < 0.03
        cells = np.zeros(shape, bool)
        cells[15:30, 20:45], range_m[15:30, 20:45] = True, 4.0
        thing = NearThing.of(cells, range_m)
        above = cells[:, thing.columns] & (rng.random((40, 25)) < 0.2)
        found = free_space._without(thing, range_m, measured, above)
        others = measured & (~cells | (range_m > 1.5 * 4.0))
        expected = np.where(measured, range_m, nearest(range_m, others))[:, thing.columns][above]
        np.testing.assert_array_equal(found, expected)
        some += len(found)
    assert some > 1000
    nothing = free_space._without(thing, range_m, np.zeros(shape, bool), above)
    np.testing.assert_array_equal(nothing, range_m[:, thing.columns][above])


@pytest.mark.parametrize("count", [1, 2, 40, 50_000])
@pytest.mark.parametrize("scale_m", [5.0, 40.0])
def test_the_topmost_beams_are_a_quantile_of_elevations(count: int, scale_m: float) -> None:
    rng = np.random.default_rng(count)
    x, y, z = (scale_m * rng.normal(size=(3, count))).astype(np.float32) * np.float32([[1.0], [1.0], [0.1]])
    if count > 2:
        x[:3] = np.nan, np.inf, 0.0
        y[2] = 0.0
    if count == 50_000:  # sorted, as many drivers give them
        z.sort()
    flat = np.hypot(x.astype(float), y.astype(float))
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = z / flat
    known = np.isfinite(slope)
    far = slope[known & (flat > 15.0)]
    expected = np.arctan(np.quantile(far if len(far) else slope[known], 0.995))
    assert _topmost_rad(x, y, z) == pytest.approx(expected, abs=1e-5)


def test_between_beams_the_inverse_range_is_linear_and_edges_are_those_of_the_light() -> None:
    rng, shape = np.random.default_rng(3), (60, 40)
    measured = rng.random(shape) < 0.25
    measured[:7] = False
    range_m = np.where(measured, rng.uniform(5.0, 9.0, shape), np.inf).astype(np.float32)
    light = rng.random((*shape, 3), np.float32)
    ground_m = np.full(shape, np.inf, np.float32)
    ground_m[40:] = 5.5
    found = between_beams(range_m, measured, light, ground_m)
    near, checked = nearest(range_m, measured), 0
    for row, column in np.argwhere(~measured & (np.arange(60)[:, None] >= np.argmax(measured.any(axis=1)))):
        above, below = (np.flatnonzero(part) for part in (measured[:row, column], measured[row:, column]))
        up, down = (row - above[-1] if above.size else 99), (below[0] if below.size else 99)
        expected = float(near[row, column])
        if up + down <= 8:
            upper, lower = (float(range_m[at, column]) for at in (row - up, row + down))
            grounded = all(range_m[at, column] > 0.85 * ground_m[at, column] for at in (row - up, row + down))
            if grounded or max(upper, lower) < 1.3 * min(upper, lower):
                expected = (up + down) / (down / upper + up / lower)
            else:
                unlike = [float(np.abs(light[row, column] - light[at, column]).sum()) for at in (row - up, row + down)]
                costs = unlike[0] / 0.05 + 0.5 * up, unlike[1] / 0.05 + 0.5 * down
                expected = upper if costs[0] < costs[1] else lower
            checked += 1
        assert found[row, column] == pytest.approx(expected, rel=1e-5)
    assert checked > 500


def test_bounds_are_found_once_and_only_if_asked_for() -> None:
    asked: list[int] = []
    range_m = np.arange(36, dtype=np.float32).reshape(6, 6)

    def bounds_m() -> tuple[Any, Any]:
        asked.append(1)
        return range_m - 1.0, range_m + 1.0

    depth = DepthMap(range_m, range_m > 0, 4, range_m, range_m, range_m, bounds_m)
    few = depth.thinned(3)
    assert not asked and few.step_px == 12 and few.range_m.tolist() == [[7.0, 10.0], [25.0, 28.0]]
    for bound_m, off_m in zip(few.bounds_m, (-1.0, 1.0), strict=True):
        np.testing.assert_array_equal(bound_m, few.range_m + off_m)
    assert depth.bounds_m is depth.bounds_m and len(asked) == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("order", ["rgb", "bgr", "mono"])
def test_a_cover_is_mixed_in_linear_light_to_a_step(order: str, dtype: type) -> None:
    rng, top = np.random.default_rng(4), np.iinfo(dtype).max
    pixels = rng.integers(0, top + 1, (150, 40) if order == "mono" else (150, 40, 3), dtype)
    share, other = rng.integers(0, 65536, (150, 40), np.uint16), rng.integers(0, 65536, (150, 40, 3), np.uint16)
    share[:20], share[20:40] = 0, 65535
    found = covered(Picture(pixels, order), share, other)
    shown = {"rgb": other, "bgr": other[..., ::-1], "mono": other @ np.array([0.2126, 0.7152, 0.0722])}[order] / 65535.0
    some = share / 65535.0 if order == "mono" else share[..., None] / 65535.0
    expected = values_of(light_of(pixels / top) * (1.0 - some) + some * shown) * top
    assert np.abs(found - expected).max() <= (1.0 if top == 255 else 3.0)
    np.testing.assert_array_equal(found[:20], pixels[:20])


@pytest.mark.parametrize("shape", [(50,), (9, 13), (0,), (10_000,)])
def test_a_pattern_goes_on_beyond_its_tile(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    tile = cv2.blur(rng.random((512, 512), np.float32), (9, 9), borderType=cv2.BORDER_REFLECT)
    x, y = rng.uniform(-300.0, 300.0, (2, *shape)).astype(np.float32)
    found = tile_values(tile, x, y)
    column, row = (np.float64(at) * 512 / TILE_M % 512 for at in (x, y))
    left, top = column.astype(int), row.astype(int)
    right, bottom, across, down = (left + 1) % 512, (top + 1) % 512, column - left, row - top
    upper = tile[top % 512, left % 512] * (1 - across) + tile[top % 512, right] * across
    lower = tile[bottom, left % 512] * (1 - across) + tile[bottom, right] * across
    # OpenCV looks at every 32nd of a pixel.
    np.testing.assert_allclose(found, upper * (1 - down) + lower * down, atol=np.ptp(tile) / 16)


def test_a_rolling_shutter_has_no_seams(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle, made = street_in("bgr8"), []
    mutation = sensor_readout.RollingShutter(ego_speed_mps=20.0, yaw_rate_radps=0.3)
    view = View.of(bundle, bundle.images[0])
    draw = mutation.draw_image(np.random.default_rng(0), view, None)
    for cells in (5, 10_000):
        monkeypatch.setattr(sensor_readout, "_STRIPE_CELLS", cells)
        made.append(mutation.change_image(view, draw))
    apart = cv2.absdiff(*made)
    # A 32nd of a pixel, which OpenCV rounds to, may go either way.
    assert (apart > 1).mean() < 0.005 and apart.max() <= 255 / 16 and (made[0] != view.picture.pixels).any()
    assert MutationPipeline([mutation], 0, "test").derive(bundle).broken is None


@pytest.mark.parametrize("share", [0.0, 0.15, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("count", [1, 2, 7, 10_001])
def test_a_quantile_is_numpys(share: float, count: int) -> None:
    values = np.random.default_rng(count).integers(0, 40, count).astype(np.float32) / np.float32(7.0)
    before = values.copy()
    assert quantile(values, share) == pytest.approx(float(np.quantile(before, share)), rel=1e-6)
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("full_well_e", [30.0, 800.0, 1e5])
def test_noise_in_bytes_is_that_of_the_formula_to_a_step(full_well_e: float) -> None:
    pixels = np.repeat(np.arange(256, dtype=np.uint8), 90).reshape(128, 60, 3)
    bundle = street_in("bgr8")
    view = View(bundle, bundle.images[0], Picture(pixels, "bgr"))
    mutation = sensor_noise.SensorNoise(full_well_e=full_well_e)
    places = np.random.default_rng(1).integers(0, 128, (4, 2), dtype=np.uint8)
    found = mutation.change_image(view, {"noise_key": 5, "places_px": places}).astype(np.float64)
    deviation = 255.0 * mutation._deviation(np.arange(256) / 255.0)
    field = sensor_noise._field(5, 32 + 128, (60 + 128) * 3) / 32.0
    for number, (down, right) in enumerate(places.astype(int)):
        rows = slice(32 * number, 32 * number + 32)
        own = field[down : down + 32, 3 * right : 3 * right + 180].reshape(32, 60, 3)
        expected = np.clip(pixels[rows] + deviation[pixels[rows]] * own, 0.0, 255.0)
        # Deviations are rounded to a 255th of the largest, numbers reach eight of them.
        allowed = 0.5 + np.abs(own) * deviation.max() / 510.0 + 1e-6
        assert (np.abs(found[rows] - expected) <= allowed).all()
    assert np.abs(found - pixels).max() > 1.0
