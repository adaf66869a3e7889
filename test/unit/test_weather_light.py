# SPDX-License-Identifier: Apache-2.0
"""Light of pictures in weather: without the sun, by the ends of cells, of lamps and beams, and behind particles."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from mt_nodes.data.images.codecs import Picture
from mt_nodes.relations.mutations.joint.air_in_pictures import _cells_of
from mt_nodes.relations.mutations.joint.particles_in_pictures import Streaks
from mt_nodes.relations.mutations.joint.weather_light import WeatherLight, beside_sky, reflected
from mt_nodes.world.camera.depth import DepthMap
from mt_nodes.world.camera.diffuse_light import brightness, diffuse_light, of_ends, shading_of
from mt_nodes.world.camera.headlamps import bloom, lamps_in, low_beams
from mt_nodes.world.camera.light import light_of, values_of
from mt_nodes.world.camera.local_relight import relit_locally
from mt_nodes.world.camera.surroundings import Surroundings

CELL_PX, ROWS, COLUMNS = 4, 40, 60


def road_around() -> Surroundings:
    """Sky in the upper quarter, a wall below it, and road in the lower half."""
    row = np.arange(ROWS)[:, None] + np.zeros((1, COLUMNS))
    down = np.where(row < ROWS // 2, -0.05, 0.1 + 0.01 * (row - ROWS // 2))
    rays = np.stack([np.sqrt(1.0 - down**2), np.zeros_like(down), -down], axis=-1)
    range_m = np.where(row < ROWS // 4, np.inf, np.where(row < ROWS // 2, 30.0, 1.6 / down)).astype(np.float32)
    depth = DepthMap.known(range_m, CELL_PX)
    return Surroundings(depth, rays, np.array([0.0, 0.0, 1.6]))


def shaded_road() -> Picture:
    """A white sky, a grey wall, and a road whose left half lies in a blue shadow, with a bright line across both."""
    pixels = np.full((ROWS * CELL_PX, COLUMNS * CELL_PX, 3), 120, np.uint8)
    pixels[: ROWS * CELL_PX // 4] = 255
    pixels[ROWS * CELL_PX // 2 :] = 150
    pixels[ROWS * CELL_PX // 2 :, : COLUMNS * CELL_PX // 2] = (45, 55, 70)
    pixels[110:114] = np.minimum(pixels[110:114] * 1.6, 255).astype(np.uint8)
    noise = np.random.default_rng(2).normal(0.0, 3.0, pixels.shape)
    return Picture(np.clip(pixels + noise, 0, 255).astype(np.uint8), "rgb")


def test_without_sun_shadows_on_the_road_fade_and_lines_and_walls_stay() -> None:
    picture, around = shaded_road(), road_around()
    shading = shading_of(picture, around)
    new = relit_locally(picture, shading.samples, diffuse_light(shading), CELL_PX)
    before, after = (light_of(pixels[120:150] / 255.0) for pixels in (picture.pixels, new))
    shadow, sunny = np.s_[:, 20:100], np.s_[:, 140:220]
    assert before[sunny].mean() > 5.0 * before[shadow].mean()
    assert 0.7 < after[sunny].mean() / after[shadow].mean() < 2.0
    blue = [float(light[shadow][..., 2].mean() / light[shadow][..., 0].mean()) for light in (before, after)]
    assert blue[0] > 1.8 and 1.0 < blue[1] < 0.85 * blue[0]
    line = light_of(new[111:113, 140:220] / 255.0).mean() / after[sunny].mean()
    assert line > 1.5, "a lane marking is no light"
    assert np.abs(new[:36].astype(int) - picture.pixels[:36]).max() <= 2, "the sky stays"
    assert diffuse_light(shading, 1.0) == pytest.approx(shading.light)


def test_a_little_sun_leaves_a_little_shadow() -> None:
    shading = shading_of(shaded_road(), road_around())
    contrasts = []
    for direct in (0.0, 0.3, 0.6, 1.0):
        light = brightness(diffuse_light(shading, direct))[:, 32:37]
        contrasts.append(float(light[..., 40:].mean() / light[..., 5:20].mean()))
    assert contrasts == sorted(contrasts) and contrasts[-1] > 3.0 * contrasts[0]


@pytest.mark.parametrize("kind", ["rgb", "bgr", "mono", "words"])
def test_pixels_follow_the_ends_of_their_cells(kind: str) -> None:
    """Light times a half, plus a tenth: exact at both ends, and between them within what a line differs from it."""
    dtype = np.uint16 if kind == "words" else np.uint8
    top = np.iinfo(dtype).max
    ramp = np.tile(np.linspace(0.3, 0.6, 64), (64, 1))
    samples = (ramp * top).astype(dtype)
    order = "mono" if kind == "mono" else "bgr" if kind == "bgr" else "rgb"
    picture = Picture(samples if kind == "mono" else np.stack([samples] * 3, axis=-1), order)
    ends = np.empty((3, 2, 8, 8), np.float32)
    ends[:, 0], ends[:, 1] = 0.3, 0.6
    light = (0.5 * light_of(ends) + np.array([0.1, 0.1, 0.1])[:, None, None, None]).astype(np.float32)
    new = relit_locally(picture, ends, light, 8) / top
    expected = values_of(0.5 * light_of(ramp) + 0.1)
    found = new if kind == "mono" else new[..., 0]
    assert np.abs(found - expected).max() < 0.012
    assert np.abs(found[:, [0, -1]] - expected[:, [0, -1]]).max() < 0.006


def test_bright_may_turn_dark_only_where_it_is_asked_for() -> None:
    picture = Picture(np.tile(np.linspace(60, 200, 64).astype(np.uint8)[None, :, None], (64, 1, 3)), "rgb")
    ends = np.empty((3, 2, 8, 8), np.float32)
    ends[:, 0], ends[:, 1] = 60 / 255, 200 / 255
    light = np.empty_like(ends)
    light[:, 0], light[:, 1] = 0.1, 0.02
    turned = relit_locally(picture, ends, light, 8, negative=True)
    assert turned[0, 0, 0] > turned[0, -1, 0] + 30
    assert np.ptp(relit_locally(picture, ends, light, 8)) <= 1


def test_low_beams_have_a_cut_off_and_fall_with_the_square_of_the_range() -> None:
    wall = np.stack([np.full(400, 25.0), np.full(400, 0.8), np.linspace(0.0, 2.0, 400)], axis=-1)
    light = low_beams(wall, 0.01)  # weak: not compressed
    edge_m = wall[np.argmax(np.abs(np.diff(light))), 2]
    assert edge_m == pytest.approx(0.66 - 0.01 * (25.0 - 1.6), abs=0.12), "1 % below the lamps"
    assert light[wall[:, 2] > 1.2].max() < 0.05 * light.max()
    along = np.array([[x, 0.08 * (x - 1.6), 0.66 - 0.02 * (x - 1.6)] for x in (11.6, 21.6)])
    near, far = low_beams(along, 0.01)
    assert near / far == pytest.approx(4.0, rel=0.15)
    verge, oncoming = low_beams(np.array([[25.0, -4.0, 0.7], [25.0, 4.0, 0.7]]))
    assert verge > 3.0 * oncoming, "the cut-off rises to the right"
    assert (low_beams(wall, 0.0) == 0.0).all()


def test_small_red_lights_are_lamps_and_paint_and_fringes_are_none() -> None:
    pixels = np.full((300, 1200, 3), 90, np.uint8)
    pixels[40:50, 100:112] = (255, 60, 40)  # a brake light
    pixels[100:250, 300:500] = (255, 60, 40)  # a red lorry
    pixels[20:200, 800] = (255, 60, 40)  # the fringe of a pole
    pixels[200:208, 1000:1010] = (150, 40, 30)  # a reflector, or a lamp that is off
    found = lamps_in(Picture(pixels, "rgb"), 4)
    lit = found.sum(axis=-1) > 0.02
    assert lit[10:13, 25:28].all() and lit.sum() <= 20
    spread = bloom(found)
    assert spread[11, 26].max() > spread[11, 32].max() > spread[11, 45].max() > 0.0
    assert not lamps_in(Picture(pixels[..., 0].copy(), "mono"), 4).any()


def test_particles_out_of_focus_are_wider_and_fainter_and_take_as_much_light() -> None:
    place = np.array([[320.0, 240.0]])
    sharp, soft = (
        Streaks(place, place + 0.01, np.array([4.0]), np.array([blur]), np.array([min(1.0, (4.0 / (4.0 + blur)) ** 2)]))
        for blur in (0.0, 16.0)
    )
    layers = [one.layer((480, 640)).astype(np.float64) for one in (sharp, soft)]
    assert layers[1].max() < 0.5 * layers[0].max()
    assert (layers[1] > 2).sum() > 2.0 * (layers[0] > 2).sum()
    stopped = np.pi / 4.0 * 4.0**2 * 255.0
    assert 0.5 < layers[1].sum() / stopped < 2.0 and 0.5 < layers[0].sum() / stopped < 4.0


def test_small_flakes_are_round() -> None:
    place = np.array([[320.0, 240.0]])
    layer = Streaks(place, place + 0.01, np.array([1.9]), np.zeros(1), np.ones(1)).layer((480, 640)) / 255.0
    assert layer.max() > 0.5
    rim = np.count_nonzero((layer > 0.05 * layer.max()) & (layer < 0.75 * layer.max()))
    assert rim > 14, f"{rim} samples lie between the flake and what is behind it: a square has some 8"


def test_the_air_beside_the_sky_is_that_of_things_there() -> None:
    passing = np.full((20, 20), 0.6, np.float32)
    sky = np.zeros((20, 20), bool)
    sky[:10], passing[:10] = True, 0.0
    assert beside_sky(passing, sky)[8:10] == pytest.approx(np.full((2, 20), 0.6))
    assert (beside_sky(passing, sky)[:3] == 0.0).all()


def test_values_of_cells_have_the_edges_of_the_picture() -> None:
    """The road's edge, one cell off: each end gets the value of what looks like it."""
    shading = shading_of(shaded_road(), road_around())
    values = np.where(np.arange(COLUMNS) < COLUMNS // 2 + 1, 0.9, 0.2).astype(np.float32)[None].repeat(ROWS, axis=0)
    dark, bright = of_ends(shading, values, 0.04)[:, 34:38, COLUMNS // 2]
    assert (dark > 0.8).all() and (bright < 0.5).all()
    flat = np.full((ROWS, COLUMNS), 0.5, np.float32)
    assert (of_ends(shading, flat, 0.04) == 0.5).all()


def test_a_wet_road_mirrors_what_stands_beyond_it() -> None:
    light, ground = np.zeros((40, 30, 3), np.float32), np.zeros((40, 30), bool)
    ground[20:] = True
    light[14:18, 10:14, 0] = 1.0
    image = reflected(light, ground)
    assert image[22:27, 11:13, 0].max() > 0.5 and image[34:, :, 0].max() < 0.01
    assert cv2.countNonZero(image[..., 1]) == 0


def test_depth_of_a_scene_is_not_changed_by_its_light() -> None:
    around = road_around()
    dark = replace(shaded_road(), pixels=shaded_road().pixels // 2)
    first, second = shading_of(shaded_road(), around), shading_of(dark, around)
    assert (first.ground == second.ground).all() and second.level < first.level


def test_puddles_rest_on_the_road() -> None:
    """What lies 2 m ahead lies under the ego when it has gone 2 m, and elsewhere when it has turned."""
    light = WeatherLight.__new__(WeatherLight)
    ahead, here = np.array([[5.0, 2.0]], np.float32), np.array([[3.0, 0.0]], np.float32)
    light.ego_pose = np.array([100.0, 7.0, 0.0])
    before = np.stack(light.on_road(ahead, np.ones_like(ahead)))
    light.ego_pose = np.array([102.0, 7.0, 0.0])
    assert np.stack(light.on_road(here, np.ones_like(here))) == pytest.approx(before, abs=1e-4)
    light.ego_pose = np.array([102.0, 7.0, np.pi / 2.0])
    x, y = light.on_road(np.array([[1.0]], np.float32), np.array([[0.0]], np.float32))
    assert (float(x[0, 0]), float(y[0, 0])) == pytest.approx((102.0 % 32.0, 8.0), abs=1e-4)


def test_the_proof_measures_light_not_samples_so_that_a_veil_over_fine_edges_holds() -> None:
    around, air, passing = road_around(), 0.5, 0.4
    pixels = np.full((ROWS * CELL_PX, COLUMNS * CELL_PX, 3), 20, np.uint8)
    pixels[:, ::2] = 230  # every cell is half dark, half bright
    light = passing * light_of(pixels / 255.0) + (1.0 - passing) * air
    veiled = np.rint(255.0 * values_of(light)).astype(np.uint8)
    before, after = (_cells_of(Picture(p, "rgb"), CELL_PX, around.shape) for p in (pixels, veiled))
    assert before == pytest.approx(light_of(np.array([20, 230]) / 255.0).mean(), abs=1e-3)
    assert after == pytest.approx(passing * before + (1.0 - passing) * air, abs=2e-3)
