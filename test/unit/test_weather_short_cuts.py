# SPDX-License-Identifier: Apache-2.0
"""What is found once for a change and its proof, or faster, is what it would be if it were found anew."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from made_images import street
from scipy import special

from mt_nodes.data.images.codecs import Picture
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.joint import air_in_pictures, echo_proof, weather
from mt_nodes.relations.mutations.joint.fog_dust_smoke import Fog
from mt_nodes.relations.mutations.joint.rain_snow_hail import Rain, Snow
from mt_nodes.relations.mutations.joint.weather import Weather
from mt_nodes.relations.mutations.lidar.each_cloud import of_cloud
from mt_nodes.relations.mutations.untouched import unchanged
from mt_nodes.world.camera.light import light_of
from mt_nodes.world.camera.relight import BRIGHTNESS

BUNDLE = replace(street(), images=(), camera_infos=())
AIR = [Fog(visibility_m=60.0), Rain(rain_mm_per_h=50.0), Snow(snow_mm_per_h=1.0)]


def _derived(air: Weather) -> tuple[Followup, Draw]:
    draw = air.draw(np.random.default_rng(1), BUNDLE, air.begin(np.random.default_rng(0), BUNDLE))
    return air.apply(BUNDLE, draw), draw


def _bytes(followup: Followup) -> bytes:
    return followup.first.cloud().raw.tobytes()


@pytest.mark.parametrize("air", AIR)
def test_a_cloud_changes_and_is_proved_alike_whether_its_fate_is_kept_or_not(air: Weather) -> None:
    followup, draw = _derived(air)
    assert air.guarantee(BUNDLE, followup, draw) is None
    assert air.guarantee(BUNDLE, followup, draw) is None  # and again, when nothing is kept any more
    assert _bytes(air.apply(BUNDLE, draw)) == _bytes(followup)


@pytest.mark.parametrize("air", AIR)
def test_a_proof_by_another_draw_or_weather_does_not_get_the_fate_that_was_kept(air: Weather) -> None:
    followup, draw = _derived(air)
    key = next(name for name in draw if name.endswith("noise_key"))
    assert air.guarantee(BUNDLE, followup, draw | {key: draw[key] + 1}) is not None
    draw, cloud = of_cloud(_derived(air)[1], BUNDLE.cloud()), BUNDLE.cloud()
    kept = weather._fates[cloud][2]
    for name, value in draw.items():
        if isinstance(value, np.ndarray) and value.size:
            flat, before = value.reshape(-1), value.reshape(-1)[0]
            flat[0] += 1  # in place, as a careless mutation may
            assert not air._kept_for(cloud, draw), name
            flat[0] = before
    assert air._kept_for(cloud, draw) is kept and air._fate_of_draw(cloud, draw) is kept
    followup, draw = _derived(air)
    assert replace(air, max_range_m=60.0).guarantee(BUNDLE, followup, draw) is not None


def test_what_is_kept_cannot_be_written_to_and_goes_with_its_cloud() -> None:
    bundle = BUNDLE.with_clouds([cloud.with_raw(cloud.raw.copy()) for cloud in BUNDLE.clouds])
    draw = AIR[1].draw(np.random.default_rng(1), bundle, None)
    AIR[1].apply(bundle, draw)
    fate = weather._fates[bundle.cloud()][2]
    with pytest.raises(ValueError, match="read-only"):
        fate.new_m[0] = 1.0
    before = len(weather._fates)
    del bundle
    gc.collect()
    assert len(weather._fates) < before


@pytest.mark.parametrize("step", [1, 3, 6])
@pytest.mark.parametrize("order", ["rgb", "bgr", "mono"])
def test_the_brightness_of_cells_is_the_mean_of_their_light(order: str, step: int) -> None:
    pixels = np.random.default_rng(step).integers(0, 256, (7 * step, 30 * step, 3)[: 2 + (order != "mono")], np.uint8)
    light = light_of(pixels / 255.0).reshape(7, step, 30, step, -1).mean(axis=(1, 3))
    weights: dict[str, Any] = {"rgb": BRIGHTNESS, "bgr": BRIGHTNESS[::-1], "mono": [1.0]}
    found = air_in_pictures._mean_brightness(Picture(pixels, order), (7, 30), step)
    np.testing.assert_allclose(found, light @ np.array(weights[order]), atol=2e-5)


@pytest.mark.parametrize("order", ["rgb", "mono"])
@pytest.mark.parametrize("pattern", [lambda y, x: y, lambda y, x: x, lambda y, x: x + y, lambda y, x: y // 2])
def test_some_pixels_tell_the_mean_light_of_cells(pattern: Callable[[Any, Any], Any], order: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (240, 360, 3)[: 2 + (order == "rgb")], np.uint8)
    row, column = np.mgrid[:240, :360]
    pixels[pattern(row, column) % 2 == 0] = 255
    picture = Picture(pixels, order)
    some, step = air_in_pictures._thinned(picture, 6)
    assert (step, some.size) == (3, (120, 180))
    whole, part = (air_in_pictures._mean_brightness(p, (40, 60), s) for p, s in ((picture, 6), (some, step)))
    assert abs(float(whole.mean()) - float(part.mean())) < 0.01
    assert air_in_pictures._thinned(picture, 5) == (picture, 5)


def test_the_normal_distribution_function_is_left_out_only_where_it_is_one() -> None:
    z = np.linspace(-30.0, 12.0, 5000).reshape(100, 50)
    assert np.abs(echo_proof._log_ndtr(z) - special.log_ndtr(z)).max() < 3e-7
    some = z < 1.0
    np.testing.assert_array_equal(echo_proof._log_ndtr(z, some)[some], special.log_ndtr(z[some]))


def test_one_changed_byte_of_a_message_is_seen_wherever_it_is() -> None:
    [image] = street().images
    for place in (0, image.pixels.size // 2, image.pixels.size - 1):
        pixels = image.pixels.copy()
        assert unchanged([image], [replace(image, pixels=pixels)]) == [image.topic]
        pixels.reshape(-1)[place] ^= 1
        assert unchanged([image], [replace(image, pixels=pixels)]) == []
