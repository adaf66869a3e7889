# SPDX-License-Identifier: Apache-2.0
"""Weather and the sensor: receivers, beams without a return, several returns of a firing, and proofs that can fail."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from made_bundles import LAYOUTS, TOPIC, cloud_bundle, in_bytes
from scipy.special import ndtri
from test_mutations_weather import EVEN_FOG, HEAVY, STREET, derive, fate_of, walls

from mt_nodes.data.firings import return_pairs
from mt_nodes.data.intensity.sensor_reading import SensorReading
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.joint.attenuation import Receiver
from mt_nodes.relations.mutations.joint.beam_parts import Amplitudes, CloudPart
from mt_nodes.relations.mutations.joint.empty_proof import Fate
from mt_nodes.relations.mutations.joint.fog_dust_smoke import Fog
from mt_nodes.relations.mutations.joint.hazy_air import HazyAir
from mt_nodes.relations.mutations.joint.rain_snow_hail import Rain, Snow
from mt_nodes.relations.mutations.joint.receiver_models import RECEIVER_MODELS
from mt_nodes.relations.mutations.joint.reception import with_sensor
from mt_nodes.relations.mutations.joint.soft_return import soft_return
from mt_nodes.relations.mutations.joint.weather import Weather
from mt_nodes.relations.mutations.lidar.placement import empty_returns

# --- families of sensors


@pytest.mark.parametrize("name", RECEIVER_MODELS)
def test_a_receiver_sees_as_far_as_its_data_sheet_says(name: str) -> None:
    """Within 15 %: makers' figures at two reflectivities do not follow the LiDAR equation."""
    model, rng = RECEIVER_MODELS[name], np.random.default_rng(1)
    receiver = Receiver(model.max_range_m)
    for line in model.ranges:
        needed = 1.0 + float(ndtri(line.probability)) / 5.0
        far_m = model.max_range_m * np.sqrt(line.reflectivity / 0.9 / needed)
        assert far_m == pytest.approx(line.range_m, rel=0.15)
        mean = float(receiver.signal(np.array([line.reflectivity]), np.array([far_m]))[0])
        assert (mean + rng.normal(0.0, 0.2, 50_000) > 1.0).mean() == pytest.approx(line.probability, abs=0.01)
    assert model.source and model.assumed


def test_the_sensor_is_recognised_and_told_and_its_parameters_give_way_to_own_ones() -> None:
    bundle = walls()
    weathers = (Fog(), Fog(sensor="os2"), Fog(sensor="os2", max_range_m=90.0), Snow(sensor="livox"))
    draws = [w.draw_cloud(np.random.default_rng(1), bundle, bundle.cloud(), None) for w in weathers]
    assert [d["sensor"] for d in draws] == ["hdl_64e", "os2", "os2", "livox"]
    own = [with_sensor(w, d["sensor"]) for w, d in zip(weathers, draws, strict=True)]
    assert own[1].max_range_m == RECEIVER_MODELS["os2"].max_range_m and own[2].max_range_m == 90.0
    assert isinstance(own[3], Snow) and own[3].divergence_mrad == RECEIVER_MODELS["livox"].divergence_mrad
    lost = [
        float(fate_of(Fog(visibility_m=300.0, sensor=name), bundle).lost.mean()) for name in ("os0", "os1", "vls_128")
    ]
    assert lost[0] > lost[1] > lost[2]


# --- beams without a return


def half_empty(organised: bool) -> Bundle:
    """A revolution of 16 beams, of which every third return is missing."""
    columns, levels = 900, 16
    elevations, azimuths = np.radians(np.arange(levels) * 2.0 - 15.0), -2.0 * np.pi * np.arange(columns) / columns
    level, azimuth = np.meshgrid(elevations, azimuths, indexing="ij")
    points = np.zeros((levels, columns), LAYOUTS["velodyne"])
    xyz = (np.cos(level) * np.cos(azimuth), np.cos(level) * np.sin(azimuth), np.sin(level))
    for name, column in zip("xyz", xyz, strict=True):
        points[name] = 30.0 * column
    points["intensity"], points["ring"] = 3.0, np.arange(levels)[:, None]
    points["time"] = np.arange(columns)[None, :]
    missing = np.random.default_rng(6).random(points.shape) < 0.3
    if not organised:
        return cloud_bundle(Cloud(TOPIC, 1_000, "velodyne", points[~missing]))
    for name in "xyz":
        points[name][missing] = np.nan
    points["intensity"][missing] = 0.0
    return cloud_bundle(Cloud(TOPIC, 1_000, "velodyne", points.reshape(-1), height=levels, is_dense=False))


@pytest.mark.parametrize("organised", [False, True])
@pytest.mark.parametrize("name", HEAVY)
def test_air_echoes_on_empty_beams_as_before_what_is_far_away(name: str, organised: bool) -> None:
    bundle, weather = half_empty(organised), HEAVY[name]
    followup, draw = derive(weather, bundle)
    assert weather.guarantee(bundle, followup, draw) is None
    fate, numbers, new = fate_of(weather, bundle), followup.effects.numbers, followup.first.cloud()
    assert fate.on_empty is not None
    assert numbers["empty_beams"] == pytest.approx(0.3 * 16 * 900, rel=0.06)
    on_empty = numbers["empty_beams_echoed"] / numbers["empty_beams"]
    before_returns = fate.scattered.mean()
    assert on_empty > before_returns - 0.02 and before_returns > 0.0
    if name == "fog":  # so thick that what is 30 m behind it is no longer seen
        assert on_empty == pytest.approx(before_returns, abs=0.05)
    if organised:
        filled = empty_returns(bundle.cloud()) & ~empty_returns(new)
        assert filled.sum() == numbers["empty_beams_echoed"] and len(new) == len(bundle.cloud())
    elevation = np.degrees(np.arcsin(fate.on_empty.xyz[:, 2] / np.linalg.norm(fate.on_empty.xyz, axis=1)))
    assert np.abs(elevation - (np.rint((elevation + 15.0) / 2.0) * 2.0 - 15.0)).max() < 0.01
    azimuth = np.degrees(np.arctan2(fate.on_empty.xyz[:, 1], fate.on_empty.xyz[:, 0])) / 0.4
    assert np.abs(azimuth - np.rint(azimuth)).max() < 0.02


@pytest.mark.parametrize("organised", [False, True])
def test_a_clear_day_leaves_empty_beams_empty(organised: bool) -> None:
    bundle = half_empty(organised)
    assert derive(Fog(visibility_m=2000.0), bundle)[0].effects.numbers["empty_beams_echoed"] <= 2.0


@pytest.mark.parametrize("organised", [False, True])
@pytest.mark.parametrize(
    ("way", "says"),
    [
        ("turn", "off the ring|nearer than 1 m"),
        ("far", "too faint|thick enough"),
        ("none", "expected|nearer|off the ring"),
    ],
)
def test_echoes_on_empty_beams_that_are_none_are_seen(organised: bool, way: str, says: str) -> None:
    bundle, fog = half_empty(organised), replace(EVEN_FOG, visibility_m=60.0)
    followup, draw = derive(fog, bundle)
    new = followup.first.cloud()
    _, at = fate_of(fog, bundle).splice(bundle.cloud())
    raw = new.raw.copy()
    points = raw.view(new.points.dtype)
    if way == "turn":
        points["z"][at] += np.float32(0.2)
    elif way == "far":
        for name in "xyz":
            points[name][at] *= np.float32(8.0)
    else:
        raw = np.delete(raw, at) if not organised else raw
        if organised:
            points["x"][at] = np.nan
    cloud = new.with_raw(raw, height=new.height) if organised else new.with_raw(raw)
    made = Followup(((0, followup.first.with_clouds([cloud])),), followup.effects)
    assert re.search(says, str(fog.guarantee(bundle, made, draw)))


# --- several returns of a firing


@pytest.mark.parametrize("name", HEAVY)
def test_of_two_reports_of_a_firing_one_may_be_the_air_and_the_other_the_target(name: str) -> None:
    single = half_empty(organised=False).cloud()
    points = np.repeat(single.points, 2)
    for axis in "xyz":
        points[axis][::2] *= np.float32(0.5)  # a branch 15 m before the wall at 30 m
    points["intensity"][1::2] = 200.0
    points["ring"], points["time"] = points["ring"], np.repeat(np.arange(len(single)), 2)
    cloud = Cloud(TOPIC, 1_000, "velodyne", points)
    reading = in_bytes(cloud).reading.as_plain() | {"dual_return": True}
    bundle = cloud_bundle(cloud.read_as(SensorReading.of_plain(TOPIC, reading)))
    assert return_pairs(bundle.cloud()).dual
    weather = replace(HEAVY[name], visibility_m=100.0) if isinstance(HEAVY[name], HazyAir) else HEAVY[name]
    followup, draw = derive(weather, bundle)
    assert weather.guarantee(bundle, followup, draw) is None
    fate = fate_of(weather, bundle)
    near, last = fate.scattered[::2], fate.scattered[1::2]
    behind = near & ~last & ~fate.lost[1::2]
    assert behind.sum() > 20, "fog in front, and the wall behind it"
    assert last.sum() < 0.5 * near.sum()
    both = near & last
    np.testing.assert_allclose(fate.new_m[::2][both], fate.new_m[1::2][both], atol=0.3 if name == "fog" else 30.0)


# --- guarantees that can fail


@dataclass(frozen=True)
class LeftAtOrigin(Fog):
    """Forgets to take lost returns out."""

    def _changed(self, cloud: Cloud, fate: Fate) -> Cloud:
        raw = cloud.raw.copy()
        for name in "xyz":
            raw.view(cloud.points.dtype)[name][fate.rows(fate.lost)] = 0.0
        return cloud.with_raw(raw, height=cloud.height)


@dataclass(frozen=True)
class TooClear(Fog):
    """Weakens one way only."""

    def optical_depths(self, *args: Any) -> Any:
        return super().optical_depths(*args) / 2.0


@dataclass(frozen=True)
class TooThick(Snow):
    """Weakens three ways."""

    def optical_depths(self, *args: Any) -> Any:
        return super().optical_depths(*args) * 1.5


@dataclass(frozen=True)
class EchoesAnywhere(Fog):
    """Puts echoes behind what they hide."""

    def fate(self, cloud: Cloud, draw: Draw) -> Fate:
        fate = super().fate(cloud, draw)
        return replace(fate, new_m=np.where(fate.scattered, fate.old_m * np.float32(1.5), fate.new_m))


@dataclass(frozen=True)
class Flipped(Rain):
    """Lets noise turn a point to the other side of the sensor."""

    def fate(self, cloud: Cloud, draw: Draw) -> Fate:
        fate = super().fate(cloud, draw)
        return replace(fate, new_m=np.where(fate.scattered, -fate.new_m, fate.new_m))


@dataclass(frozen=True)
class Switched(Fog):
    """Reports the air wherever its mean echo is above the threshold, as if there were no noise."""

    def echoes(self, cloud: Cloud, part: CloudPart, draw: Draw, found: Amplitudes) -> Any:
        echo_m, echo = (np.zeros(len(part.range_m), np.float32) for _ in range(2))
        table = soft_return(self.extinction_per_m, self.backscatter_per_m_sr, self.pulse_ns, self.receiver)
        where, signal = table.before(part.range_m)
        reported = signal > np.maximum(found.weakened, 1.0)
        echo_m[reported], echo[reported] = where[reported], signal[reported]
        return echo_m, echo


@dataclass(frozen=True)
class AllAtThePeak(Fog):
    """Puts all echoes to the peak of the mean waveform."""

    def echoes(self, cloud: Cloud, part: CloudPart, draw: Draw, found: Amplitudes) -> Any:
        echo_m, echo = super().echoes(cloud, part, draw, found)
        return np.where(echo > 0.0, np.minimum(echo_m, np.float32(1.3)), echo_m), echo


@dataclass(frozen=True)
class AtTheThreshold(Fog):
    """Takes every return to be just detected."""

    def amplitudes(self, *args: Any) -> Amplitudes:
        found = super().amplitudes(*args)
        return replace(found, weakened=found.passing * np.float32(1.5))


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (Switched(visibility_m=100.0), "thick enough|too thin"),
        (AllAtThePeak(visibility_m=80.0), "off the middle|too thin|thick enough"),
        (AtTheThreshold(visibility_m=150.0), "noise floor"),
        (LeftAtOrigin(), "points, expected"),
        (TooClear(), "noise floor"),
        (TooThick(reach_m=4.0, snow_mm_per_h=5.0), "noise floor|do not fall"),
        (EchoesAnywhere(visibility_m=60.0), "not before what they hide"),
        (Flipped(rain_mm_per_h=100.0), "left their beams"),
    ],
)
def test_a_broken_copy_is_seen(broken: Weather, says: str) -> None:
    followup, draw = derive(broken, STREET)
    assert broken.guarantee(STREET, followup, draw) is not None
    assert re.search(says, str(broken.guarantee(STREET, followup, draw)))


@pytest.mark.parametrize("name", HEAVY)
@pytest.mark.parametrize(("field", "by"), [("x", 0.5), ("intensity", 20.0), ("ring", 1), ("x", np.nan)])
def test_tampering_is_seen(name: str, field: str, by: float) -> None:
    weather = HEAVY[name]
    followup, draw = derive(weather, STREET)
    cloud = followup.first.cloud()
    raw = cloud.raw.copy()
    points = raw.view(cloud.points.dtype)
    points[field][100:200] = points[field][100:200] + by
    made = Followup(((0, followup.first.with_clouds([cloud.with_raw(raw)])),), followup.effects)
    assert weather.guarantee(STREET, made, draw)
