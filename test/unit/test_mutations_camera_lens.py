# SPDX-License-Identifier: Apache-2.0
"""What stands before the lens, in it, and behind it: films, frost, drift, read-out, pulsed light, binned photosites."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest
from made_images import street

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.data.transforms import Transform, TransformTree
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.mutations.camera import image_tones
from mt_nodes.relations.mutations.camera.image_blurred import ImageMotionBlurred
from mt_nodes.relations.mutations.camera.image_occluded import ImageOccluded
from mt_nodes.relations.mutations.camera.image_tones import BrightnessChanged, GammaChanged
from mt_nodes.relations.mutations.camera.image_warps import ImageScaled
from mt_nodes.relations.mutations.camera.lens_drift import LensDrifted, VignettingDrifted
from mt_nodes.relations.mutations.camera.lens_film import LensFilm
from mt_nodes.relations.mutations.camera.lens_frost import LensFrost
from mt_nodes.relations.mutations.camera.on_the_lens import LensDirt, LensDrops
from mt_nodes.relations.mutations.camera.pixel_defects import PixelsDead
from mt_nodes.relations.mutations.camera.sensor_noise import SensorNoise
from mt_nodes.relations.mutations.camera.sensor_readout import ImagePixelated, LightPulsed, RollingShutter
from mt_nodes.world.camera import light
from mt_nodes.world.camera.light import light_of
from mt_nodes.world.scene.camera_rendering import CameraSensor

SENSOR = CameraSensor(640, 480)
#: The state of the segment that begins with the bundle.
BEGUN: Any = object()
MIDDLE = np.array([319.5, 239.5])


def bundle_of(pixels: np.ndarray, stamp_ns: int = 0) -> Bundle:
    """A picture with its calibration and mount, and no cloud."""
    tree = TransformTree([Transform("base_link", "camera", SENSOR.mount)])
    image = Image("/c/image", stamp_ns, "camera", pixels, "bgr8")
    info = SENSOR.info("/c/camera_info", stamp_ns, "camera")
    return Bundle(0, 0, stamp_ns, images=(image,), camera_infos=(info,), transforms=tree)


def derive(mutation: Mutation, bundle: Bundle, state: Any = BEGUN) -> tuple[Followup, Draw]:
    state = mutation.begin(np.random.default_rng(3), bundle) if state is BEGUN else state
    draw = mutation.draw(np.random.default_rng(5), bundle, state)
    return mutation.apply(bundle, draw), draw


def pixels_of(followup: Followup) -> np.ndarray:
    return np.asarray(followup.first.images[0].pixels, float)


def proven(mutation: Mutation, bundle: Bundle, state: Any = BEGUN) -> np.ndarray:
    followup, draw = derive(mutation, bundle, state)
    assert mutation.guarantee(bundle, followup, draw) is None
    return pixels_of(followup)


def flat(level: int, spot: int = 20) -> np.ndarray:
    """One grey, with a small darker square so that the picture shows something."""
    pixels = np.full((480, 640, 3), level, np.uint8)
    pixels[4:12, 4:12] = max(0, level - spot)
    return pixels


def dots(step: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """A dark picture with soft dots, and their places (n, 2)."""
    places = np.stack(np.meshgrid(np.arange(40, 600, step), np.arange(40, 440, step)), -1).reshape(-1, 2)
    pixels = np.zeros((480, 640), np.float32)
    pixels[places[:, 1], places[:, 0]] = 1.0
    soft = cv2.GaussianBlur(pixels, (0, 0), 1.5)
    return cv2.merge([np.rint(soft / soft.max() * 220.0 + 10.0).astype(np.uint8)] * 3), places


def shifts(after: np.ndarray, places: np.ndarray, reach: int = 8) -> np.ndarray:
    """How far each dot (n, 2) has moved: the centre of its light."""
    grid = np.stack(np.meshgrid(np.arange(-reach, reach + 1), np.arange(-reach, reach + 1)), -1)
    found = []
    for x, y in places:
        light = np.clip(after[y - reach : y + reach + 1, x - reach : x + reach + 1, 0] - 12.0, 0.0, None)
        found.append((light[..., None] * grid).sum((0, 1)) / light.sum())
    return np.array(found)


def test_a_film_deflects_by_the_slope_times_n_minus_one() -> None:
    pixels, places = dots()
    film = LensFilm(slope_mrad=10.0, patch=0.12, index=1.33)
    moved = shifts(proven(film, bundle_of(pixels)), places)
    rms_px = np.sqrt((moved**2).sum(axis=1).mean())
    assert rms_px == pytest.approx(SENSOR.focal_px * 0.33 * 0.010, rel=0.2)
    near = np.abs(moved[:-1] - moved[1:]).mean(axis=0)[1]
    assert near < 0.5 * np.abs(moved).mean(), "neighbours move alike: patches are larger than the dots' distance"


def test_a_film_does_not_pass_for_a_thinner_one() -> None:
    bundle = bundle_of(dots()[0])
    strong, draw = derive(LensFilm(slope_mrad=60.0, patch=0.05), bundle)
    assert "are outside of what lies within" in str(
        LensFilm(slope_mrad=3.0, patch=0.05).guarantee(bundle, strong, draw)
    )


def test_frost_grows_from_the_rim_and_hides_what_is_behind_it() -> None:
    pixels = cv2.merge([np.random.default_rng(0).integers(0, 256, (480, 640), dtype=np.uint8)] * 3)
    frost, bundle = LensFrost(cover=0.3), bundle_of(pixels)
    changed = np.abs(proven(frost, bundle) - pixels).max(axis=2) > 0
    assert not changed[200:280, 260:380].any(), "the middle is free"
    rim = np.concatenate([changed[:6].ravel(), changed[-6:].ravel(), changed[:, :6].ravel(), changed[:, -6:].ravel()])
    assert rim.mean() > 0.6 > 2.0 * changed[120:360, 160:480].mean()
    followup, draw = derive(frost, bundle)
    thin = replace(
        followup.first.images[0], pixels=cv2.addWeighted(pixels, 0.9, followup.first.images[0].pixels, 0.1, 0)
    )
    weak = Followup(((0, replace(followup.first, images=(thin,))),), followup.effects)
    assert "of the detail behind thick ice is left" in str(frost.guarantee(bundle, weak, draw))


def test_photosites_are_joined_by_their_mean_and_by_no_other_number() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (480, 640, 3), dtype=np.uint8)
    bundle = bundle_of(pixels)
    after = proven(ImagePixelated(bin_px=4), bundle)
    squares = pixels.reshape(120, 4, 160, 4, 3).mean(axis=(1, 3))
    np.testing.assert_allclose(after[::4, ::4], squares, atol=0.51)
    followup, draw = derive(ImagePixelated(bin_px=4), bundle)
    assert "pixels of a square differ" in str(ImagePixelated(bin_px=8).guarantee(bundle, followup, draw))


def test_a_pole_leans_while_the_vehicle_turns() -> None:
    pixels = flat(60)
    pixels[:, 318:322] = 230
    shutter = RollingShutter(readout_ms=50.0, ego_speed_mps=0.0, yaw_rate_radps=0.3, range_m=20.0)
    after = proven(shutter, bundle_of(pixels))[..., 0]
    rows = np.array([60, 420])
    where = [
        (np.clip(after[r] - 70.0, 0.0, None) * np.arange(640)).sum() / np.clip(after[r] - 70.0, 0.0, None).sum()
        for r in rows
    ]
    # The camera turns to the left: what it sees moves to the right, in later rows farther.
    expected_px = SENSOR.focal_px * 0.3 * 0.050 * (rows[1] - rows[0]) / 479.0
    assert where[1] - where[0] == pytest.approx(expected_px, rel=0.05)
    followup, draw = derive(shutter, bundle_of(pixels))
    other = replace(shutter, yaw_rate_radps=-0.3)
    assert "differ from where they came from" in str(other.guarantee(bundle_of(pixels), followup, draw))


def test_a_vehicle_that_stands_has_no_rolling_shutter() -> None:
    with pytest.raises(NotApplicable, match="19 move by less"):
        derive(RollingShutter(ego_speed_mps=0.0, range_m=20.0), bundle_of(flat(60)))


def test_pulses_give_each_row_the_light_of_its_exposure() -> None:
    lamp = LightPulsed(frequency_hz=100.0, duty=0.5, depth=1.0, exposure_ms=2.5, readout_ms=20.0)
    before = float(light_of(90 / 255.0))
    light = light_of(proven(lamp, bundle_of(flat(90)), 0.0)[:, 320, 0] / 255.0) / before
    # Two periods from top to bottom: the first row is exposed while it is on, the row a half period later while off.
    assert light[5] == pytest.approx(2.0, abs=0.1) and light[140] == pytest.approx(0.0, abs=0.02)
    assert light.mean() == pytest.approx(1.0, abs=0.05)
    # A quarter before it goes off, an exposure of a quarter begins to lose light: at half of that, half is left.
    assert light[round(0.375 * 239.75)] == pytest.approx(1.0, abs=0.1)


def test_pulses_alias_with_the_frames_and_a_wrong_phase_is_noticed() -> None:
    lamp = LightPulsed(frequency_hz=100.0, depth=1.0, exposure_ms=1.0)
    frames = [proven(lamp, bundle_of(flat(90), stamp_ns), 0.0) for stamp_ns in (0, 10_000_000, 5_000_000)]
    np.testing.assert_array_equal(frames[0], frames[1])
    assert np.abs(frames[0] - frames[2]).mean() > 50.0
    followup, draw = derive(lamp, bundle_of(flat(90)), 0.0)
    assert "is off by" in str(lamp.guarantee(bundle_of(flat(90)), followup, {**draw, "/c/image|phase": 0.5}))


def test_only_small_coloured_lamps_in_the_dark_pulse() -> None:
    pixels = flat(60)
    pixels[100:108, 300:308] = (20, 20, 230)  # a brake light
    pixels[300:308, 100:108] = (230, 40, 20)  # something blue
    pixels[200:400, 400:600] = (20, 20, 230)  # a red wall
    lamp = LightPulsed(of="lamps", depth=1.0, duty=0.2, exposure_ms=0.5, readout_ms=0.0)
    after = proven(lamp, bundle_of(pixels, 5_000_000), 0.0)
    changed = np.abs(after - pixels).max(axis=2) > 0
    assert changed[100:108, 300:308].all() and changed.sum() <= 100
    assert 0.1 < float(light_of(after[104, 304, 2] / 255.0) / light_of(230 / 255.0)) < 0.3, "daylight is left"
    with pytest.raises(NotApplicable, match="no small, bright, coloured lamp"):
        derive(lamp, bundle_of(flat(60)), 0.0)


def test_vignetting_halves_the_light_of_the_corners() -> None:
    after = proven(VignettingDrifted(corner_stops=-1.0), bundle_of(flat(180)), None)[..., 0]
    light = light_of(after / 255.0) / float(light_of(180 / 255.0))
    assert light[-1, -1] == pytest.approx(0.5, abs=0.02) and light[240, 320] == pytest.approx(1.0, abs=0.01)
    assert light[240, -1] == pytest.approx(2.0 ** -(319.5**2 / (319.5**2 + 239.5**2)), abs=0.02)
    bright = bundle_of(flat(60, 60))
    lifted = proven(VignettingDrifted(corner_stops=1.0), bright, None)
    assert lifted[6, 6, 0] == 0.0, "black stays black"
    with pytest.raises(UsageError, match="corner_stops"):
        VignettingDrifted(corner_stops=0.0)


def test_vignetting_of_another_strength_is_noticed() -> None:
    bundle = bundle_of(flat(180))
    followup, draw = derive(VignettingDrifted(corner_stops=-1.0), bundle, None)
    stronger = {**draw, "/c/image|corner_stops": -1.4}
    assert "is off by" in str(VignettingDrifted(corner_stops=-1.4).guarantee(bundle, followup, stronger))


def test_a_ramp_begins_with_nothing_and_ends_with_all() -> None:
    drift = VignettingDrifted(corner_stops=-1.0, over="ramp", duration_s=10.0)
    first = bundle_of(flat(180))
    state = drift.begin(np.random.default_rng(0), first)
    with pytest.raises(NotApplicable, match="the drift begins here"):
        derive(drift, first, state)
    half, full = (proven(drift, bundle_of(flat(180), ns), state)[-1, -1, 0] for ns in (5_000_000_000, 10_000_000_000))
    assert 180 > half > full


def test_a_longer_lens_shows_what_scaling_shows() -> None:
    pixels = np.asarray(cv2.resize(street().images[0].pixels, (640, 480)))
    bundle = bundle_of(pixels)
    longer = proven(LensDrifted(focal=0.05, distortion=0.0), bundle, None)
    scaled = proven(ImageScaled(factor=1.05), bundle)
    assert np.abs(longer - scaled)[20:-20, 20:-20].mean() < 1.0 < np.abs(longer - pixels).mean()
    followup, draw = derive(LensDrifted(focal=0.05, distortion=0.0), bundle, None)
    wrong = {**draw, "/c/image|error": np.array([0.03, 0.0, 0.0, 0.0])}
    assert "differ from where they came from" in str(
        LensDrifted(focal=0.05, distortion=0.0).guarantee(bundle, followup, wrong)
    )


def test_distortion_moves_by_the_cube_of_the_radius() -> None:
    pixels, places = dots()
    moved = shifts(proven(LensDrifted(focal=0.0, distortion=-0.05), bundle_of(pixels), None), places)
    flat_places = (places - MIDDLE) / SENSOR.focal_px
    expected = -0.05 * (flat_places**2).sum(axis=1)[:, None] * flat_places * SENSOR.focal_px
    np.testing.assert_allclose(moved, expected, atol=0.25)


def test_a_rectified_picture_has_no_distortion_to_drift() -> None:
    bundle = bundle_of(dots()[0])
    rectified = replace(bundle, images=(replace(bundle.images[0], topic="/c/image_rect"),))
    with pytest.raises(NotApplicable, match="rectified"):
        derive(LensDrifted(), rectified, None)


def test_motion_ahead_at_one_range_is_a_zoom_and_needs_no_cloud() -> None:
    pixels, places = dots(40)
    blur = ImageMotionBlurred(exposure_ms=20.0, ego_speed_mps=20.0, range_m=10.0)
    after = proven(blur, bundle_of(pixels))[..., 0]
    far = places[np.argmax(np.abs(places - MIDDLE).sum(axis=1))]
    near = places[np.argmin(np.abs(places - MIDDLE).sum(axis=1))]
    brightest = [after[y - 9 : y + 10, x - 9 : x + 10].max() for x, y in (far, near)]
    assert brightest[0] < 0.6 * brightest[1], "4 % of the way from the middle smears the outer dots"


def test_speckle_grows_with_the_light() -> None:
    noise = SensorNoise(full_well_e=100_000.0, read_noise_e=0.0, gain_spread=0.1)
    spreads = []
    for level in (60, 180):
        light = light_of(proven(noise, bundle_of(flat(level)))[20:] / 255.0)
        spreads.append(float(light.std() / light.mean()))
    assert spreads == pytest.approx([0.1, 0.1], rel=0.15)


@pytest.mark.parametrize("mutation", [BrightnessChanged(offset=0.1), BrightnessChanged(offset=-0.3), GammaChanged()])
def test_tables_give_the_same_bytes_with_and_without_stringzilla(
    mutation: Mutation, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = bundle_of(np.random.default_rng(2).integers(0, 256, (480, 640, 3), dtype=np.uint8))
    assert light.byte_translation() is not None, "the tests install it"
    fast = proven(mutation, bundle)
    for module in (light, image_tones):
        monkeypatch.setattr(module, "byte_translation", lambda: None)
    np.testing.assert_array_equal(fast, proven(mutation, bundle))


@pytest.mark.parametrize(
    "mutation", [LensFilm(), LensFrost(), LensDirt(), LensDrops(), ImageOccluded(), PixelsDead(dead_rows=2)]
)
def test_each_camera_of_a_rig_has_its_own_whichever_others_there_are(mutation: Mutation) -> None:
    pixels = np.asarray(cv2.resize(street().images[0].pixels, (640, 480)))
    one = bundle_of(pixels)
    names = ("/a/image", "/b/image")
    both = replace(one, images=tuple(replace(one.images[0], topic=name) for name in names))
    state = mutation.begin(np.random.default_rng(3), both)
    first, second = (np.asarray(i.pixels) for i in derive(mutation, both, state)[0].first.images)
    alone = derive(mutation, replace(both, images=both.images[1:]), state)[0].first.images[0]
    assert (first != second).any()
    np.testing.assert_array_equal(second, np.asarray(alone.pixels))
