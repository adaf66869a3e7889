# SPDX-License-Identifier: Apache-2.0
"""Weather in the air: laws over range, persistence, monotony, scales, and guarantees that can fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from drives import street
from hypothesis import given, settings
from hypothesis import strategies as st
from made_bundles import LAYOUTS, TOPIC, TREE, cloud_bundle, in_bytes, made_cloud
from scipy.special import ndtri

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.seeds import generator
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.joint.attenuation import Receiver
from mt_nodes.relations.mutations.joint.chance import quarters
from mt_nodes.relations.mutations.joint.density import Patches
from mt_nodes.relations.mutations.joint.empty_proof import Fate
from mt_nodes.relations.mutations.joint.fog_dust_smoke import Dust, Fog, Smoke
from mt_nodes.relations.mutations.joint.precipitation import CLASSES, Precipitation
from mt_nodes.relations.mutations.joint.rain_snow_hail import Rain, Snow
from mt_nodes.relations.mutations.joint.scatterers import ParticleBox, class_edges_mm
from mt_nodes.relations.mutations.joint.soft_return import soft_return
from mt_nodes.relations.mutations.joint.weather import Weather
from mt_nodes.relations.mutations.lidar.placement import empty_returns
from mt_nodes.relations.relation import load_relation
from mt_nodes.world.scene.drive import generate_drive

STREET = street()
#: What the shipped monotone relations change, but for snow, which is not monotone point by point.
AIR = ("fog", "dust", "rain")
EVEN_FOG = Fog(visibility_m=100.0, patchiness=0.0)
HEAVY: dict[str, Weather] = {
    "fog": Fog(visibility_m=60.0),
    "dust": Dust(visibility_m=60.0),
    "rain": Rain(rain_mm_per_h=100.0, range_noise=0.002),
    "snow": Snow(snow_mm_per_h=1.0, reach_m=5.0),
}


def drawn(weather: Weather, bundle: Bundle, seed: int = 0) -> tuple[Weather, Draw]:
    """Of the sensor of the formulas here: 90 % is seen at 120 m."""
    weather = replace(weather, sensor="generic") if weather.sensor == "auto" else weather
    state = weather.begin(generator(seed, "weather", 0, None, 0), bundle)
    return weather, weather.draw(generator(seed, "weather", 0, bundle.index, 0), bundle, state)


def derive(weather: Weather, bundle: Bundle, seed: int = 0) -> tuple[Followup, Draw]:
    weather, draw = drawn(weather, bundle, seed)
    return weather.apply(bundle, draw), draw


def fate_of(weather: Weather, bundle: Bundle, seed: int = 0) -> Fate:
    draw = drawn(weather, bundle, seed)[1]
    return weather.fate(bundle.cloud(), {name.removeprefix(f"{TOPIC}|"): value for name, value in draw.items()})


def range_m(cloud: Cloud) -> npt.NDArray[np.float64]:
    return np.linalg.norm(cloud.xyz.astype(np.float64), axis=1)


def walls(layout: str = "velodyne", intensity: float = 200.0, count: int = 4000) -> Bundle:
    """Returns of one brightness at ranges from 2 to 110 m, all around and a little up and down."""
    rng = np.random.default_rng(5)
    away, azimuth, level = (rng.uniform(*limits, count) for limits in ((2, 110), (-np.pi, np.pi), (-0.3, 0.1)))
    points = np.zeros(count, LAYOUTS[layout])
    xyz = (np.cos(level) * np.cos(azimuth), np.cos(level) * np.sin(azimuth), np.sin(level))
    for name, column in zip("xyz", xyz, strict=True):
        points[name] = away * column
    if "intensity" in points.dtype.names:
        points["intensity"] = intensity
    if "time" in points.dtype.names:
        points["time"], points["ring"] = np.arange(count), np.arange(count) % 64
    return cloud_bundle(in_bytes(Cloud(TOPIC, 1_000, "velodyne", points)))


def dense(azimuths: int = 1800, levels: int = 64, away_m: float = 40.0, intensity: float = 40.0) -> Bundle:
    """A sphere of dark returns at one range, all of whose beams point where a 64-beam sensor's do."""
    azimuth, level = np.meshgrid(np.linspace(-np.pi, np.pi, azimuths, endpoint=False), np.linspace(-0.43, 0.03, levels))
    azimuth, level = azimuth.ravel(), level.ravel()
    points = np.zeros(len(level), LAYOUTS["kitti"])
    xyz = (np.cos(level) * np.cos(azimuth), np.cos(level) * np.sin(azimuth), np.sin(level))
    for name, column in zip("xyz", xyz, strict=True):
        points[name] = away_m * column
    points["intensity"] = intensity
    points["intensity"][0] = 255.0
    return Bundle(0, 0, 0, (in_bytes(Cloud(TOPIC, 0, "velodyne", points)),), transforms=TREE)


# --- the laws


def test_intensity_falls_by_the_law_over_range() -> None:
    bundle = walls()
    old, new, fate = bundle.cloud(), derive(EVEN_FOG, bundle)[0].first.cloud(), fate_of(EVEN_FOG, bundle)
    at = np.concatenate([rows for _, _, rows in fate.blocks(old)])
    before, after = range_m(old)[~fate.lost], range_m(new)[at]
    hard = np.abs(after - before) < 0.3
    assert hard.sum() > 500
    expected = 200.0 * 20.0 ** (-2.0 * before[hard] / 100.0)
    np.testing.assert_allclose(new.points["intensity"][at][hard], expected, rtol=1e-4)


@pytest.mark.parametrize("intensity", [200.0, 30.0, 3.0])
def test_returns_vanish_as_often_as_the_law_says(intensity: float) -> None:
    """Simulated anew: an amplitude with a log-logistic error, again and again until it is detected; then the fog."""
    bundle = walls(intensity=intensity, count=20_000)
    fate = fate_of(replace(EVEN_FOG, pulse_ns=1.0), bundle)
    ended = fate.lost | fate.scattered
    assert fate.scattered.mean() < 0.01 and 0.1 < ended.mean() < 0.95
    r, rng = range_m(bundle.cloud()), np.random.default_rng(3)
    for low, high in pairwise((2.0, 20.0, 35.0, 50.0, 70.0, 90.0, 110.0)):
        here = (r >= low) & (r < high)
        where = rng.choice(r[here], 400_000)
        nominal = max(intensity / 255.0, 0.05) / 0.9 * (120.0 / np.maximum(where, 5.0)) ** 2
        amplitude = nominal * np.exp(rng.logistic(0.0, 0.5, len(where)))
        noise, light = rng.normal(0.0, 0.2, len(where)), 20.0 ** (-2.0 * where / 100.0)
        reported = amplitude >= 1.0
        gone = (light * amplitude + (1.0 - light) * noise < 1.0)[reported].mean()
        spread = np.sqrt(gone * (1.0 - gone) * (1.0 / here.sum() + 1.0 / reported.sum()))
        assert ended[here].mean() == pytest.approx(gone, abs=5.0 * spread + 0.002)


def test_a_receiver_detects_what_its_data_sheet_says() -> None:
    """A target of 10 % at 45 m is seen by 90 % of the firings, and by half of them where its mean echo is at 1."""
    rng, ouster = np.random.default_rng(0), Receiver(45.0, 0.0, 0.1, 5.0, 0.9)
    for away_m, seen in ((45.0, 0.9), (45.0 * np.sqrt(1.0 + 1.2816 / 5.0), 0.5)):
        mean = float(ouster.signal(np.array([0.1]), np.array([away_m]))[0])
        assert (mean + rng.normal(0.0, ouster.noise, 100_000) > 1.0).mean() == pytest.approx(seen, abs=0.01)


def test_reported_returns_were_detected_and_share_no_amplitude() -> None:
    """Dark returns far away had amplitudes that their intensity does not explain, but not all the same."""
    share = (np.arange(50_000, dtype=np.float32) + 0.5) / 50_000
    dark, far = np.zeros(50_000, np.float32), np.full(50_000, 90.0, np.float32)
    amplitude = Receiver(120.0, 5.0).detected(dark, far, share)
    assert amplitude.min() >= 1.0 and len(np.unique(amplitude)) > 30_000
    assert np.median(amplitude) == pytest.approx(np.sqrt(2.0), rel=0.01)
    bright = Receiver(120.0, 5.0).detected(np.full_like(dark, 0.9), far / 9.0, share)
    assert np.median(bright) == pytest.approx(144.0, rel=0.01)


@pytest.mark.parametrize("visibility_m", [20.0, 60.0, 150.0])
def test_back_scatter_follows_the_integral(visibility_m: float) -> None:
    """The LiDAR equation for a volume, integrated anew on a finer grid."""
    alpha, beta, tau_ns, floor = np.log(20.0) / visibility_m, 0.046 / visibility_m, 10.0, 0.9 / np.pi / 120.0**2
    table = soft_return(alpha, beta, tau_ns, Receiver(120.0, 5.0))
    width = 0.299792458 * tau_ns
    target = 40.0
    where, signal = table.before(np.array([target], np.float32))
    r = np.arange(0.0, 40.0, 0.01)
    scattered = beta * np.clip((r - 0.9) / 0.1, 0, 1) * np.exp(-2 * alpha * r) / np.maximum(r, 5.0) ** 2
    centres = np.arange(1.0, 20.0, 0.05)
    pulses = np.where(np.abs(r - centres[:, None]) < width / 2, np.cos(np.pi * (r - centres[:, None]) / width) ** 2, 0)
    power = pulses @ scattered * 0.01
    assert float(signal[0]) == pytest.approx(power.max() / floor, rel=0.02)
    assert float(where[0]) == pytest.approx(centres[int(np.argmax(power))], abs=0.15)


@pytest.mark.parametrize("visibility_m", [40.0, 110.0, 180.0])
def test_echoes_of_fog_are_the_highest_samples_of_a_noisy_waveform(visibility_m: float) -> None:
    """Simulated sample by sample: one a pulse apart, from anywhere on, each with its own noise."""
    away_m, trials, rng = 30.0, 20_000, np.random.default_rng(4)
    bundle = walls(intensity=0.0, count=trials)
    points = bundle.cloud().points.copy()
    for name in "xyz":
        points[name] *= np.float32(away_m) / range_m(bundle.cloud())
    bundle = cloud_bundle(replace(bundle.cloud(), points=points))
    fate = fate_of(Fog(visibility_m=visibility_m, patchiness=0.0), bundle)
    table = soft_return(np.log(20.0) / visibility_m, 0.046 / visibility_m, 10.0, Receiver(120.0, 5.0))
    apart = table.width_m / 2.0
    samples_m = 1.0 + apart * (rng.random((trials, 1)) + np.arange(18))
    mean = np.interp(samples_m, 0.05 * np.arange(len(table.waveform)), table.waveform)
    mean = mean * np.exp(rng.logistic(0.0, 0.25, (trials, 1)))  # gain and focus of the beam's laser
    height = np.where(samples_m < away_m - apart, mean + rng.normal(0.0, 0.2, mean.shape), 0.0)
    highest, light = height.max(axis=1), 20.0 ** (-2.0 * away_m / visibility_m)
    chance = rng.random(trials)
    behind = light * np.sqrt((1.0 + (1.0 - chance) * (0.05 / 0.9 * 16.0) ** 2) / chance)
    behind += (1.0 - light) * rng.normal(0.0, 0.2, trials)
    reported = highest > np.maximum(behind, 1.0)
    assert fate.scattered.mean() == pytest.approx(reported.mean(), abs=0.015)
    assert fate.lost.mean() == pytest.approx((~reported & (behind < 1.0)).mean(), abs=0.015)
    echo_m, expected_m = fate.new_m[fate.scattered], samples_m[np.arange(trials), height.argmax(axis=1)][reported]
    assert (fate.new_m[fate.scattered] < fate.old_m[fate.scattered]).all() and echo_m.min() >= 1.0
    shares = [0.05, 0.25, 0.5, 0.75, 0.95]
    np.testing.assert_allclose(np.quantile(echo_m, shares), np.quantile(expected_m, shares), atol=0.3)
    read = fate.reflectivity[fate.scattered] / 0.9 * (120.0 / np.maximum(echo_m, 5.0)) ** 2
    unlimited = fate.reflectivity[fate.scattered] < 1.0
    np.testing.assert_allclose(
        np.quantile(read[unlimited], shares), np.quantile(highest[reported], shares), rtol=0.03, atol=0.02
    )


def test_patches_have_mean_one_and_a_table_that_is_their_integral() -> None:
    patches = Patches(7, 0.6, 15.0, (3.0, -2.0))
    rng = np.random.default_rng(1)
    azimuth, r = rng.uniform(-np.pi, np.pi, 300), rng.uniform(5.0, 120.0, 300)
    shares = (np.arange(2000) + 0.5) / 2000
    x, y = np.cos(azimuth) * r, np.sin(azimuth) * r
    exact = np.mean([patches.at(x * s, y * s) for s in shares], axis=0)
    told = patches.mean_to(azimuth.astype(np.float32), r.astype(np.float32), 120.0)
    np.testing.assert_allclose(told, exact, rtol=0.01)
    everywhere = patches.at(rng.uniform(0, 960, 200_000), rng.uniform(0, 960, 200_000))
    assert everywhere.mean() == pytest.approx(1.0, abs=0.03) and everywhere.min() > 0.39 and everywhere.max() < 1.61


@pytest.mark.parametrize(
    ("weather", "law"),
    [
        (Rain(rain_mm_per_h=25.0), lambda d: 8000.0 * np.exp(-4.1 * 25.0**-0.21 * d) * d**2),
        (Snow(snow_mm_per_h=2.0), lambda d: 2500 * 2**-0.94 * np.exp(-2.29 * 2**-0.45 * d) * (d * 10 ** (1 / 3)) ** 2),
    ],
)
def test_extinction_is_twice_the_particles_shadow(weather: Weather, law: Callable[[Any], Any]) -> None:
    d = np.linspace(0.0, 40.0, 400_001)
    shadow_m2_per_m3 = 2.0 * np.pi / 4.0 * np.sum(law(d)) * (d[1] - d[0]) * 1e-6
    assert weather.extinction_per_m == pytest.approx(shadow_m2_per_m3, rel=1e-4)


@pytest.mark.parametrize(
    ("weather", "away_m", "intensity"),
    [(Rain(rain_mm_per_h=100.0), 40.0, 40.0), (Snow(snow_mm_per_h=1.0, reach_m=5.0), 20.0, 255.0)],
)
def test_particles_are_met_as_often_as_the_law_says(weather: Precipitation, away_m: float, intensity: float) -> None:
    """Beams are cones: what is met in a shell is its volume times the particles that outshine what is behind."""
    bundle = dense(away_m=away_m, intensity=intensity)
    fates = [fate_of(weather, bundle, seed) for seed in range(3)]
    found_m = np.concatenate([f.new_m[f.scattered] for f in fates])
    law, reach, alpha = weather.spectrum, weather.reach_m, weather.extinction_per_m
    r = np.arange(1.0, 30.0, 0.01) + 0.005
    beam_m = 0.010 + 0.003 * r
    # The amplitudes of what is behind, of a share of the returns each: those of the law, in the rain.
    share = (np.arange(400)[:, None] + 0.5) / 400
    nominal, light = max(intensity / 255.0, 0.05) / 0.9 * (120.0 / away_m) ** 2, np.exp(-2.0 * alpha * away_m)
    behind = np.maximum(light * np.sqrt((1.0 + (1.0 - share) * nominal**2) / share), 1.0)
    at_r = weather.strength / 0.9 * (120.0 / np.maximum(r, weather.focus_m)) ** 2 * np.exp(-2.0 * alpha * r)
    least_mm = beam_m * np.sqrt(behind / at_r) / law.swell * 1e3
    least_mm = np.where(behind > at_r, law.most_mm, np.minimum(least_mm, law.most_mm))
    density = law.intercept_per_m3_mm / law.slope_per_mm
    density = density * (np.exp(-law.slope_per_mm * least_mm) - np.exp(-law.slope_per_mm * law.most_mm))
    met = np.pi / 4.0 * beam_m**2 * density * 0.01 * (r < away_m)
    # A beam that meets several tells one of them: the expected number of beams, shell by shell, is a little less.
    edges = [1.0, 1.5, 2.0, 3.0, reach, reach + 1.5, reach + 4.0]
    beams = len(bundle.cloud()) * len(fates)
    total = beams * float(-np.expm1(-met.sum(axis=1)).mean())
    met = met.mean(axis=0)
    # One particle is met by several beams at once, which makes the numbers scatter more than single hits would.
    shared = max(1.0, float(np.mean(beam_m[:100] ** 2) / (2 * np.pi / 1800 * 0.46 / 63 * r[50] ** 2)))
    assert len(found_m) == pytest.approx(total, abs=5.0 * np.sqrt(total * shared) + 0.06 * total)
    for low, high in pairwise(edges):
        expected = beams * met[(r >= low) & (r < high)].sum()
        count = ((found_m >= low) & (found_m < high)).sum()
        assert count == pytest.approx(expected, abs=5.0 * np.sqrt(expected * shared) + 0.15 * expected + 3.0)


@pytest.mark.parametrize("up", [False, True])
def test_the_grid_finds_what_looking_at_every_pair_finds(up: bool) -> None:
    """Beams of all directions, or of a sensor that looks at the zenith; returns bright and dark beside each other."""
    rng = np.random.default_rng(8)
    unit = rng.normal(size=(1500, 3)) * (0.3 if up else 1.0) + (0.0, 0.0, 1.0 if up else 0.0)
    xyz = unit / np.linalg.norm(unit, axis=1)[:, None] * rng.uniform(2.0, 60.0, 1500)[:, None]
    points = np.zeros(1500, LAYOUTS["kitti"])
    for i, name in enumerate("xyz"):
        points[name] = xyz[:, i]
    points["intensity"] = rng.choice([2.0, 250.0], 1500)
    bundle = Bundle(0, 0, 0, (in_bytes(Cloud(TOPIC, 0, "velodyne", points)),), transforms=TREE)
    snow = Snow(snow_mm_per_h=1.0, reach_m=3.0, aperture_mm=30.0, sensor="generic")
    state = snow.begin(np.random.default_rng(4), bundle)
    draw = snow.draw_cloud(np.random.default_rng(4), bundle, bundle.cloud(), state)
    place, size = (
        np.concatenate(c, axis=-1) for c in zip(*(b.at(np.zeros(3), -9, 9) for b in state.boxes), strict=True)
    )
    away, r = np.linalg.norm(place, axis=0), np.linalg.norm(xyz, axis=1)
    seen = np.flatnonzero(
        (away >= 1.0)
        & (away < np.repeat([b.side_m / 2 for b in state.boxes], [len(b.diameter_m) for b in state.boxes]))
    )
    place, size, away = place[:, seen].astype(np.float64), size[seen], away[seen]
    alpha, beam_m = snow.extinction_per_m, 0.030 + 0.003 * away
    echo = 0.9 * np.minimum((size / beam_m) ** 2, 1) / 25.0 * np.exp(-2 * alpha * away) / (0.9 / 120.0**2)
    bright = np.maximum(points["intensity"] / 255.0, 0.05) / np.maximum(r, 5.0) ** 2 / (0.9 / 120.0**2)
    chance = (quarters(draw["noise_key"], 1500).astype(np.float64) + 0.5) / 65536
    behind = np.sqrt((1.0 + (1.0 - chance[:, 0]) * bright**2) / chance[:, 0])
    light = np.exp(-2 * alpha * r)
    least = np.maximum(light * behind + (1.0 - light) * 0.2 * ndtri(chance[:, 1]), 1.0)
    strongest = np.zeros(1500)
    for k in range(1500):
        along = xyz[k] @ place / r[k]
        met = (along > 0) & (away**2 - along**2 <= (beam_m / 2) ** 2) & (echo > least[k]) & (away < r[k])
        strongest[k] = echo[met].max(initial=0.0)
    assert 50 < np.count_nonzero(strongest) < 1450
    told = np.zeros(1500)
    told[draw["rows"]] = draw["echo"]
    different = np.abs(told - strongest) > 1e-3 * strongest
    assert different.sum() <= 3, "more than rounding at the rims of beams explains"


# --- particles and patches persist


@given(st.floats(-20.0, 20.0), st.floats(0.0, 0.3))
@settings(max_examples=20)
def test_a_particle_is_at_the_moved_place_in_the_next_frame(speed: float, dt: float) -> None:
    rng = np.random.default_rng(2)
    places = rng.integers(0, 2**16, (3, 500)).astype(np.uint16)
    order = np.argsort(places[2], kind="stable")
    box = ParticleBox(8.0, 4.0, places[:, order], np.arange(500, dtype=np.float32))
    at = np.array([1.7e10, -3.0, 12.0])
    moved = np.array([speed, 1.0, -4.0]) * dt
    before, after = (dict(zip(s.tolist(), p.T, strict=True)) for p, s in (box.at(at, -4, 4), box.at(at + moved, -4, 4)))
    assert len(before) >= 499 and len(after) >= 499
    for name in set(before) & set(after):
        step = after[name] - before[name] - moved
        np.testing.assert_allclose(step - 8.0 * np.rint(step / 8.0), 0.0, atol=4e-4)


def test_a_slab_of_a_box_is_what_lies_there() -> None:
    rng = np.random.default_rng(3)
    places = rng.integers(0, 2**16, (3, 2000)).astype(np.uint16)
    box = ParticleBox(10.0, 1.0, places[:, np.argsort(places[2], kind="stable")], np.arange(2000, dtype=np.float32))
    for down in (0.0, 3.3, 7.9):
        whole, names = box.at(np.array([1.0, 2.0, down]), -5.0, 5.0)
        part, some = box.at(np.array([1.0, 2.0, down]), -2.0, 0.7)
        inside = (whole[2] >= -2.0) & (whole[2] <= 0.7)
        assert set(names[inside].tolist()) <= set(some.tolist())
        assert (part[2] >= -2.001).all() and (part[2] <= 0.701).all() and len(some) < inside.sum() + 3


@pytest.mark.parametrize("name", ["rain", "snow"])
def test_echoes_move_with_the_air(name: str) -> None:
    """A particle that is met again half a millisecond later echoes from where the drift took it, 5 mm nearer."""
    weather = replace(HEAVY[name], ego_speed_mps=10.0, reach_m=3.0, sensor="generic")
    bundle = dense()
    state = weather.begin(generator(1, "w", 0, None, 0), bundle)
    places = []
    for i, stamp_ns in enumerate((0, 500_000)):
        moment = replace(bundle, clouds=(replace(bundle.cloud(), stamp_ns=stamp_ns),), stamp_ns=stamp_ns)
        draw = weather.draw(generator(1, "w", 0, i, 0), moment, state)
        places.append(weather.apply(moment, draw).effects.added_points[TOPIC])
    # Those farther away are not kept one by one.
    places = [p[np.linalg.norm(p, axis=1) < weather.reach_m] for p in places]
    before, after = (p[p[:, 0] > 0.9 * np.linalg.norm(p, axis=1)] for p in places)
    assert len(before) > 20
    near = np.linalg.norm(before[:, None] - after[None], axis=2) < 0.03
    fall_m = 0.5e-3 * (1.0 if name == "snow" else 7.0)
    drifted = np.linalg.norm(before + np.array([-0.005, 0.0, -fall_m]), axis=1)
    met_again, stood_still = (
        (near & (np.abs(r[:, None] - np.linalg.norm(after, axis=1)) < 1e-3)).any(axis=1).mean()
        for r in (drifted, np.linalg.norm(before, axis=1))
    )
    assert met_again > 0.5 and stood_still < 0.3


@pytest.mark.parametrize("name", HEAVY)
def test_what_came_before_does_not_matter(name: str) -> None:
    weather, frames = HEAVY[name], list(generate_drive(2))
    state = weather.begin(generator(1, "w", 0, None, 0), frames[0])
    weather.draw(generator(1, "w", 0, 0, 0), frames[0], state)
    draws = [weather.draw(generator(1, "w", 0, 1, 0), frames[1], s) for s in (state, weather.begin(
        generator(1, "w", 0, None, 0), frames[1]))]  # fmt: skip
    clouds = [weather.apply(frames[1], d).first.cloud().raw.tobytes() for d in draws]
    assert clouds[0] == clouds[1]


def test_patches_drift_with_the_stamp() -> None:
    fog, bundle = Fog(ego_speed_mps=20.0, wind_y_mps=5.0), walls()
    draws = []
    for frame, stamp_ns in enumerate((0, 500_000_000)):
        cloud = replace(bundle.cloud(), stamp_ns=stamp_ns)
        draws.append(fog.draw_cloud(np.random.default_rng(frame), bundle, cloud, 11))
    x, y = np.linspace(-50, 50, 101), np.linspace(20, -20, 101)
    before, after = (fog.patches(d) for d in draws)
    np.testing.assert_allclose(before.at(x, y), after.at(x - 10.0, y + 2.5), atol=1e-9)


# --- more is more


@pytest.mark.parametrize(
    ("mild", "severe"),
    [
        (Fog(visibility_m=400.0), Fog(visibility_m=150.0)),
        (Fog(visibility_m=80.0), Fog(visibility_m=30.0)),
        (Dust(visibility_m=150.0), Dust(visibility_m=50.0)),
        (Rain(rain_mm_per_h=20.0), Rain(rain_mm_per_h=100.0)),
        (Smoke(visibility_m=80.0), Smoke(visibility_m=40.0)),
        *((load_relation(f"{name}_monotone").baseline[0], load_relation(f"{name}_monotone").mutate[0]) for name in AIR),
    ],
)
def test_worse_weather_takes_all_that_better_takes_and_more(mild: Weather, severe: Weather) -> None:
    gone = [fate.lost | fate.scattered for fate in (fate_of(w, STREET) for w in (mild, severe))]
    assert not (gone[0] & ~gone[1]).any()
    assert gone[1].sum() > gone[0].sum()
    darker = [fate_of(w, STREET).passing for w in (mild, severe)]
    assert (darker[1] < darker[0]).all()


@given(
    st.sampled_from([(Fog, 15.0, 1000.0), (Dust, 15.0, 1000.0), (Smoke, 15.0, 1000.0), (Rain, 1.0, 150.0)]),
    st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)),
    st.sampled_from([3.0, 30.0, 200.0]),
    st.integers(0, 2**31),
)
@settings(max_examples=12, deadline=None)
def test_what_some_air_takes_is_taken_by_worse_air(
    air: tuple[type[Weather], float, float], shares: tuple[float, float], intensity: float, seed: int
) -> None:
    """The same numbers are drawn for each return whatever the severity, so that losses are subsets point by point."""
    kind, low, high = air
    name = "rain_mm_per_h" if kind is Rain else "visibility_m"
    some, other = (low * (high / low) ** share for share in sorted(shares))
    mild, severe = (some, other) if kind is Rain else (other, some)
    fates = [fate_of(kind(**{name: value}), walls(intensity=intensity), seed) for value in (mild, severe)]
    gone = [fate.lost | fate.scattered for fate in fates]
    assert not (gone[0] & ~gone[1]).any()


def test_heavier_snow_spares_only_what_flakes_hid() -> None:
    """Whatever lighter snow's extinction takes, heavier snow takes; only small flakes that it lacks may be missing."""
    relation = load_relation("snow_monotone")
    light, heavy = (replace(snow, sensor="generic") for snow in (relation.baseline[0], relation.mutate[0]))
    mild, severe = fate_of(light, STREET), fate_of(heavy, STREET)
    gone = severe.lost | severe.scattered
    assert not (mild.lost & ~gone).any()
    # The law's share of missing flakes is largest for the smallest that the sensor sees.
    least_mm = class_edges_mm(light.spectrum, light.detection, CLASSES)[0]
    missing = 1.0 - float(heavy.spectrum.per_m3(least_mm, np.inf) / light.spectrum.per_m3(least_mm, np.inf))
    assert 0 < (mild.scattered & ~gone).sum() < missing * mild.scattered.sum()


def test_more_snow_takes_more() -> None:
    """Its law has fewer small flakes in heavy snow, so that it takes more, but not all of the same."""
    gone = [fate_of(Snow(snow_mm_per_h=rate, reach_m=5.0), STREET) for rate in (0.2, 1.0, 4.0)]
    counts = [int((f.lost | f.scattered).sum()) for f in gone]
    assert counts[0] < counts[1] < counts[2]


@pytest.mark.parametrize(("mild", "severe"), [(0.1, 0.5), (0.5, 4.0), (2.0, 10.0)])
def test_no_snow_can_take_all_that_less_snow_takes(mild: float, severe: float) -> None:
    """Heavier snow has fewer flakes above any size below 0.48 mm R^0.45, some of which the sensor sees; more above."""
    light, heavy = (Snow(snow_mm_per_h=rate) for rate in (mild, severe))
    least_mm = float(class_edges_mm(light.spectrum, light.detection, CLASSES)[0])
    edge_mm = 0.49 / (2.29 * 0.45) * np.array([mild, severe]) ** 0.45
    fewer = [float(snow.spectrum.per_m3(edge_mm[0], np.inf)) for snow in (light, heavy)]
    assert fewer[0] > fewer[1]
    more = [float(snow.spectrum.per_m3(edge_mm[1], np.inf)) for snow in (light, heavy)]
    assert more[0] < more[1]
    assert least_mm < edge_mm[1], "no such flake is seen"


# --- scales and layouts


def test_intensities_from_0_to_1_do_not_turn_the_cloud_into_fog() -> None:
    """LiDAR_fog_sim took 0–1 for 0–255, made 90 % of the returns fog, at up to 437 km and behind the sensor."""
    points = STREET.cloud().points.copy()
    points["intensity"] /= 255.0
    points["intensity"][0] = 1.0
    unit = STREET.with_clouds([replace(STREET.cloud(), points=points)])
    byte = STREET.cloud().points.copy()
    byte["intensity"][0] = 255.0
    whole = STREET.with_clouds([replace(STREET.cloud(), points=byte)])
    fog = Fog(visibility_m=60.0)
    fates = [fate_of(fog, b) for b in (unit, whole)]
    np.testing.assert_array_equal(fates[0].scattered, fates[1].scattered)
    np.testing.assert_array_equal(fates[0].lost, fates[1].lost)
    new = derive(fog, unit)[0].first.cloud()
    assert fates[0].scattered.mean() < 0.5 and range_m(new).max() <= 121.0
    assert new.points["intensity"].max() <= 1.0 and new.points["intensity"].min() >= 0.0


@pytest.mark.parametrize("name", HEAVY)
def test_senseless_intensities_are_refused(name: str) -> None:
    for worst, says in ((1e6, "fit none of the scales"), (-3.0, "fit none"), (np.nan, "not a finite number")):
        points = walls().cloud().points.copy()
        points["intensity"][5] = worst
        with pytest.raises(NotApplicable, match=says):
            derive(HEAVY[name], cloud_bundle(replace(walls().cloud(), points=points)))


@pytest.mark.parametrize("name", HEAVY)
def test_returns_that_are_no_sensors_are_refused(name: str) -> None:
    for far in (2e4, 1e-3):
        points = walls().cloud().points.copy()
        for axis in "xyz":
            points[axis][5] = far
        with pytest.raises(NotApplicable, match=r"expected 0\.01 to 10,000 m"):
            derive(HEAVY[name], cloud_bundle(replace(walls().cloud(), points=points)))


def test_a_cloud_without_intensities_is_of_the_reflectivity_assumed() -> None:
    bundle = walls("no_intensity")
    bright, dark = (
        fate_of(replace(EVEN_FOG, pulse_ns=1.0, unknown_reflectivity=rho), bundle).lost for rho in (1.0, 0.1)
    )
    assert (dark & ~bright).any() and not (bright & ~dark).any()


@pytest.mark.parametrize("name", HEAVY)
def test_organised_clouds_keep_their_places(name: str) -> None:
    bundle = cloud_bundle(made_cloud("ouster", 8192, height=64, holes=0.3))
    followup, draw = derive(HEAVY[name], bundle)
    assert HEAVY[name].guarantee(bundle, followup, draw) is None
    old, new = bundle.cloud(), followup.first.cloud()
    assert (new.height, new.width) == (64, 128)
    lost = empty_returns(new) & ~empty_returns(old)
    assert lost.sum() == followup.effects.numbers["returns_lost"]
    assert (np.isfinite(range_m(new)) | np.isnan(new.points["x"])).all() and not (range_m(new) == 0.0).any()


@pytest.mark.parametrize("name", HEAVY)
def test_effects_count_what_happened(name: str) -> None:
    followup, _ = derive(HEAVY[name], STREET)
    numbers, new = followup.effects.numbers, followup.first.cloud()
    assert len(new) == len(STREET.cloud()) - numbers["returns_lost"] + numbers["empty_beams_echoed"]
    added = followup.effects.added_points[TOPIC]
    assert len(added) == numbers["returns_scattered"] + numbers["empty_beams_echoed"]
    assert numbers["returns_scattered"] > 0 and numbers["empty_beams"] >= numbers["empty_beams_echoed"] > 0
    assert set(map(tuple, added.astype(np.float32).tolist())) <= set(map(tuple, new.xyz.tolist()))


def test_goodins_noise_is_a_share_of_the_range() -> None:
    fate = fate_of(Rain(rain_mm_per_h=30.0, range_noise=0.02), walls(count=20_000))
    hard = ~fate.scattered & ~fate.lost & (fate.old_m < 80.0)
    share = (fate.new_m / fate.old_m)[hard] - 1.0
    assert share.std() == pytest.approx(0.02, rel=0.05)


# --- chance


def shares(weather: Weather, bundle: Bundle) -> tuple[float, float]:
    fate = fate_of(weather, bundle)
    return float(fate.lost.mean()), float(fate.scattered.mean())


def test_fog_loses_and_scatters_together_and_passes_smoothly_with_visibility() -> None:
    """There was a switch at 113 m: 8 % scattered and none lost before, 8 % lost and none scattered after."""
    bundle = walls(intensity=12.0, count=20_000)
    band = [110.0 * 1.15**k for k in range(7)]
    found = np.array([shares(Fog(visibility_m=v), bundle) for v in band])
    assert (found > 0.001).all() and (np.diff(found.sum(axis=1)) < 0.0).all()
    for visibility_m in (60.0, 110.0, 113.0, 150.0, 250.0):
        step = np.array([shares(Fog(visibility_m=v), bundle) for v in (visibility_m, visibility_m * 1.02)])
        assert np.abs(np.diff(step, axis=0)).max() < 0.04


def test_no_echo_of_fog_has_a_range_of_its_own() -> None:
    fate = fate_of(Fog(visibility_m=50.0), walls(intensity=0.0, count=20_000))
    echo_m = fate.new_m[fate.scattered]
    assert (echo_m == 1.0).mean() < 1e-3
    assert np.unique(np.round(echo_m, 3), return_counts=True)[1].max() < 0.01 * len(echo_m)


def test_heavy_rain_loses_returns_and_less_of_it_fewer() -> None:
    bundle = walls(intensity=12.0, count=20_000)
    lost = [shares(Rain(rain_mm_per_h=rate), bundle)[0] for rate in (1.0, 10.0, 50.0, 100.0)]
    assert 0.0 < lost[0] < lost[1] < lost[2] < lost[3] < 0.8


def test_snow_falls_off_smoothly_with_range() -> None:
    """Flakes one by one near by and those by law join, and nothing is cut at 6 m."""
    bundle = dense(away_m=40.0, intensity=2.0)
    found_m = np.concatenate([f.new_m[f.scattered] for f in (fate_of(Snow(), bundle, seed) for seed in range(2))])
    count = np.histogram(found_m, np.arange(1.0, 13.0))[0]
    assert count[6:10].min() > 20
    assert (count[1:] < 2.0 * count[:-1] + 20).all() and (count[1:] > 0.3 * count[:-1] - 20).all()
    by_law = fate_of(Snow(reach_m=2.0), bundle)
    one_by_one = fate_of(Snow(reach_m=8.0), bundle)
    assert by_law.scattered.sum() == pytest.approx(one_by_one.scattered.sum(), rel=0.06)
    quantiles = [np.quantile(f.new_m[f.scattered], [0.1, 0.25, 0.5, 0.75, 0.9]) for f in (by_law, one_by_one)]
    np.testing.assert_allclose(*quantiles, rtol=0.06)
