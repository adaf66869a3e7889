# SPDX-License-Identifier: Apache-2.0
"""Errors of measurement: of the range rate, and of range and azimuth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.radar import Radar
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.each_cloud import proof_of_change
from mt_nodes.relations.mutations.radar.each_radar import EachRadar, as_radar, near
from mt_nodes.world.scene.radar_model import folded

_CUT = 4.0


@dataclass(frozen=True)
class RadarDopplerErrors(EachRadar):
    """Range rates with noise, a bias, and ambiguity.

    ``v' = v + bias + noise``, normal and cut at four standard deviations; then, with an unambiguous span, v' is folded
    into ±``unambiguous_mps``: a radar that samples the phase at intervals T knows a range rate up to multiples of
    lambda / (2 T) (M. A. Richards, *Fundamentals of Radar Signal Processing*, 2nd ed., 2014, chapter 5). Accuracies of
    0.03 m/s are usual (Continental, ARS 408 data sheet: ±0.1 km/h). Speeds without the sensor's own motion, and
    components, follow.

    Guaranteed: every range rate is off the old one by the bias and at most four standard deviations, but for whole
    spans; places, strengths and all else stay, byte for byte.
    """

    noise_mps: float = param(0.1, low=0.0, high=10.0, unit="m/s", neutral=0.0, help="standard deviation of the noise")
    bias_mps: float = param(0.0, low=-20.0, high=20.0, unit="m/s", neutral=0.0, help="added to every range rate")
    unambiguous_mps: float = param(
        0.0, low=0.0, high=200.0, unit="m/s", aspect="fixed", help="folded beyond this, either way; 0: unambiguous"
    )

    def __post_init__(self) -> None:
        if not (self.noise_mps or self.bias_mps or self.unambiguous_mps):
            raise UsageError("noise_mps, bias_mps and unambiguous_mps are all 0, which changes nothing")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Draw the noise of every detection."""
        noise = np.clip(rng.standard_normal(len(cloud)), -_CUT, _CUT) * self.noise_mps
        return {"noise_mps": noise.astype(np.float32)}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Change the range rates."""
        radar = as_radar(cloud)
        rate = radar.doppler_mps + self.bias_mps + draw["noise_mps"]
        if self.unambiguous_mps:
            rate = folded(rate, self.unambiguous_mps)
        return radar.moved(np.arange(len(radar)), doppler_mps=rate)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Measure the change of every range rate."""
        before, after = as_radar(old), as_radar(new)
        broken = proof_of_change(old, new, slice(None), before.speed_fields)
        if broken is not None:
            return broken
        off = after.doppler_mps - before.doppler_mps - self.bias_mps
        if self.unambiguous_mps:
            if not (np.abs(after.doppler_mps) <= self.unambiguous_mps + 0.02).all():
                return "a range rate is beyond the unambiguous span"
            span = 2.0 * self.unambiguous_mps
            off = (off + span / 2.0) % span - span / 2.0
        bound = _CUT * self.noise_mps + 0.02
        return None if near(off, 0.0, bound) else f"a range rate is {np.abs(off).max():.3g} m/s off, not {bound:.3g}"


@dataclass(frozen=True)
class RadarPlaceErrors(EachRadar):
    """Range and azimuth with a bias, or in coarse steps.

    ``range' = step * round((range + offset) / step)``, and the same for the azimuth; a step of 0 is none. An offset of
    the azimuth is what a bumper that was bent, or a mount that was not calibrated, leaves: tenths of a degree in
    normal operation, some degrees after a bump (assumed); resolution cells of 0.2 to 2 m and 1 to 5° are usual.

    Guaranteed: every detection is at that range and azimuth; range rates along the new rays, elevations and strengths
    stay; nothing else changes.
    """

    random = False

    range_offset_m: float = param(0.1, low=-5.0, high=5.0, unit="m", neutral=0.0, help="added to every range")
    range_step_m: float = param(0.0, low=0.0, high=5.0, unit="m", neutral=0.0, help="ranges become multiples of this")
    azimuth_offset_deg: float = param(
        0.0, low=-20.0, high=20.0, unit="deg", neutral=0.0, help="added to every azimuth, to the left"
    )
    azimuth_step_deg: float = param(
        0.0, low=0.0, high=20.0, unit="deg", neutral=0.0, help="azimuths become multiples of this"
    )

    def __post_init__(self) -> None:
        if not any((self.range_offset_m, self.range_step_m, self.azimuth_offset_deg, self.azimuth_step_deg)):
            raise UsageError("all offsets and steps are 0, which changes nothing")

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Move every detection."""
        radar = as_radar(cloud)
        range_m, azimuth, elevation = radar.polar
        moved_m = np.maximum(_stepped(range_m + self.range_offset_m, self.range_step_m), 0.01)
        turned = _stepped(azimuth + np.radians(self.azimuth_offset_deg), float(np.radians(self.azimuth_step_deg)))
        return radar.moved(np.arange(len(radar)), (moved_m, turned, elevation))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Measure range and azimuth from coordinates."""
        before, after = as_radar(old), as_radar(new)
        strengths = (name for name in before.strength_fields if name.lower() != "rcs")
        fields = (*before.place_fields, *before.speed_fields, *strengths)
        broken = proof_of_change(old, new, slice(None), fields)
        if broken is not None:
            return broken
        longer = np.linalg.norm(after.xyz, axis=1) - np.linalg.norm(before.xyz, axis=1)
        free = np.linalg.norm(after.xyz, axis=1) > 0.02
        if not near((longer - self.range_offset_m)[free], 0.0, self.range_step_m / 2.0 + 0.01):
            return "a range is off the formula"
        off = np.angle(np.exp(1j * (_bearing(after) - _bearing(before) - np.radians(self.azimuth_offset_deg))))
        if not near(off, 0.0, float(np.radians(self.azimuth_step_deg)) / 2.0 + 1e-4):
            return "an azimuth is off the formula"
        return None if near(after.doppler_mps, before.doppler_mps, 0.02) else "a range rate changed"


def _bearing(radar: Radar) -> Floats:
    xyz = radar.xyz
    return np.asarray(np.angle(xyz[:, 0] + 1j * xyz[:, 1]))


def _stepped(values: Floats, step: float) -> Floats:
    return np.asarray(np.rint(values / step) * step) if step else values
