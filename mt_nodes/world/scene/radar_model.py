# SPDX-License-Identifier: Apache-2.0
"""Model of a 77 GHz radar: who is detected, how strongly, and the detections of a scan.

Sources: the radar equation and the detection of a Swerling I target, M. A. Richards, *Fundamentals of Radar Signal
Processing*, 2nd ed., 2014, chapters 2 and 6; resolution, range and field of view of the order of Continental's ARS 408
data sheet (near scan).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.data.messages import Points
from mt_nodes.data.radar import cartesian

RADAR_LAYOUT = np.dtype([(name, "<f4") for name in ("x", "y", "z", "doppler", "rcs", "snr")])
"""Detections of the generated radar: metres, range rate in m/s, radar cross-section in dBsm, decibels above noise."""

#: Mean radar cross-section at 76 to 77 GHz by class, in dBsm, and the area (m²) that a body shows to the front.
#: Pedestrians: −8 to −3 dBsm (N. Yamada et al., Radar Cross Section for Pedestrian in 76 GHz Band, EuMC 2005; J.
#: Fortuny-Guasch, J.-M. Chareau, Radar Cross Section Measurements of Pedestrian Dummies and Humans in the 24/77 GHz
#: Frequency Bands, JRC 2013); bicycles with riders: about 0 dBsm (D. Belgiovane, C.-C. Chen, Bicycles and Human Riders
#: Backscattering at 77 GHz for Automotive Radar, EuCAP 2016); cars: about 10 dBsm, lorries: about 20 dBsm (orders of
#: magnitude that data sheets and ETSI EN 301 091 assume). Areas, and what no source is named for: assumed.
CROSS_SECTIONS: dict[str, tuple[float, float]] = {
    "pedestrian": (-4.0, 0.6),
    "cyclist": (0.0, 0.7),
    "bicycle": (-2.0, 0.4),
    "motorcycle": (4.0, 0.9),
    "animal": (-3.0, 0.7),
    "car": (10.0, 2.6),
    "truck": (20.0, 7.5),
    "bus": (20.0, 7.5),
    "trailer": (18.0, 6.0),
    "unknown": (0.0, 0.6),
}
#: Backscatter per square metre that faces the sensor: of walls, posts, and rough asphalt at a grazing angle (assumed).
HOUSE_M0, POLE_M0, GROUND_M0 = 0.3, 1.0, 0.0015


def cross_section_dbsm(label: str) -> float:
    """Return the mean radar cross-section of a class."""
    return CROSS_SECTIONS.get(label, CROSS_SECTIONS["unknown"])[0]


def backscatter(label: str) -> float:
    """Return the mean cross-section of a class per square metre of visible surface, as seen from the sensor."""
    dbsm, area_m2 = CROSS_SECTIONS.get(label, CROSS_SECTIONS["unknown"])
    return float(10.0 ** (dbsm / 10.0) / area_m2)


@dataclass(frozen=True)
class RadarModel:
    """A radar that reports detections: one a cell of range, azimuth and Doppler speed that stands out of the noise.

    Attributes:
        half_view_rad: largest azimuth to either side. range_min_m, range_max_m: limits of reported ranges.
        range_step_m, azimuth_step_rad, doppler_step_mps: size of the resolution cells.
        range_sigma_m, azimuth_sigma_rad, doppler_sigma_mps: standard deviations of the errors.
        unambiguous_mps: range rates beyond this, either way, are folded back.
        reference_m: range at which a target of 10 dBsm has ``reference_db`` above noise.
        false_alarm: probability of a detection in a cell with noise alone.
        floor_dbsm: weaker targets are below the sensitivity near the sensor, which is lowered there against the road's
            clutter (assumed).
    """

    half_view_rad: float
    range_min_m: float
    range_max_m: float
    range_step_m: float
    azimuth_step_rad: float
    doppler_step_mps: float
    range_sigma_m: float
    azimuth_sigma_rad: float
    doppler_sigma_mps: float
    unambiguous_mps: float = 35.0
    reference_m: float = 100.0
    reference_db: float = 21.0
    false_alarm: float = 1e-6
    floor_dbsm: float = -25.0

    def snr_db(self, cross_section_dbsm: Floats, range_m: Floats) -> Floats:
        """Return the signal-to-noise ratio (n,): the received power falls with the fourth power of the range."""
        over_m = np.log10(np.maximum(range_m, 1e-3) / self.reference_m)
        return np.asarray(self.reference_db + cross_section_dbsm - 10.0 - 40.0 * over_m)

    def detection_probability(self, snr_db: Floats) -> Floats:
        """Return the probability (n,) of detecting a Swerling I target: Pfa ^ (1 / (1 + SNR)) (Richards, eq. 6.94)."""
        return np.asarray(self.false_alarm ** (1.0 / (1.0 + 10.0 ** (np.asarray(snr_db) / 10.0))))

    @cached_property
    def cells(self) -> float:
        """Number of resolution cells."""
        ranges = (self.range_max_m - self.range_min_m) / self.range_step_m
        return ranges * (2 * self.half_view_rad / self.azimuth_step_rad) * (2 * self.unambiguous_mps / 0.2)

    @cached_property
    def rays(self) -> tuple[Floats, float]:
        """Directions (n, 3) in the sensor's frame that sample what it illuminates, and the solid angle of each."""
        step = np.radians(0.4)
        azimuth = np.arange(-self.half_view_rad, self.half_view_rad + 1e-9, step)
        elevation = np.radians(np.arange(-10.0, 10.1, 0.8))
        a, e = (grid.reshape(-1) for grid in np.meshgrid(azimuth, elevation))
        return cartesian(np.ones(len(a)), a, e), float(step * np.radians(0.8))


def front_radar() -> RadarModel:
    """Return a front radar of medium range: ±60°, 100 m, 0.4 m, 2.8°, 0.12 m/s (of the order of the ARS 408)."""
    return RadarModel(
        half_view_rad=float(np.radians(60.0)),
        range_min_m=0.5,
        range_max_m=100.0,
        range_step_m=0.4,
        azimuth_step_rad=float(np.radians(2.8)),
        doppler_step_mps=0.12,
        range_sigma_m=0.08,
        azimuth_sigma_rad=float(np.radians(0.3)),
        doppler_sigma_mps=0.03,
    )


def folded(doppler_mps: Floats, unambiguous_mps: float) -> Floats:
    """Return range rates (n,) as a radar with an unambiguous span of ±``unambiguous_mps`` reports them."""
    span = 2.0 * unambiguous_mps
    return np.asarray(doppler_mps - span * np.rint(doppler_mps / span))


def detect(
    model: RadarModel,
    direction: Floats,
    range_m: Floats,
    area_cross_section: Floats,
    doppler_mps: Floats,
    rng: np.random.Generator,
) -> Points:
    """Return the detections (N,) of :data:`RADAR_LAYOUT` of one scan, in the sensor's frame, nearest first.

    Hits of one cell of range, azimuth and Doppler speed make one target, whose cross-section is the sum of theirs; it
    fluctuates from scan to scan as of Swerling's first case (an exponential distribution). A two-dimensional radar
    does not measure elevation: z is 0.
    ``direction``: (n, 3) unit vectors of the rays that hit something. ``range_m``: (n,) along them.
    ``area_cross_section``: (n,) backscatter per square metre that faces the sensor. ``doppler_mps``: (n,) range rates.
    """
    within = (range_m >= model.range_min_m) & (range_m <= model.range_max_m)
    direction, range_m, doppler_mps = direction[within], range_m[within], doppler_mps[within]
    azimuth = np.arctan2(direction[:, 1], direction[:, 0])
    sigma_m2 = area_cross_section[within] * range_m**2 * model.rays[1]
    key = np.stack(
        [
            np.floor(range_m / model.range_step_m),
            np.floor(azimuth / model.azimuth_step_rad),
            np.floor(doppler_mps / model.doppler_step_mps),
        ]
    )
    _, cell, count = np.unique(key, axis=1, return_inverse=True, return_counts=True)
    total = np.bincount(cell.reshape(-1), sigma_m2, len(count))
    mean = [np.bincount(cell.reshape(-1), sigma_m2 * v, len(count)) / total for v in (range_m, azimuth, doppler_mps)]
    mean_snr_db = model.snr_db(10.0 * np.log10(total), mean[0])
    seen = rng.random(len(total)) < model.detection_probability(mean_snr_db)
    seen &= total >= 10.0 ** (model.floor_dbsm / 10.0)
    return _reported(model, np.stack([*mean, total])[:, seen], rng)


def _reported(model: RadarModel, targets: Floats, rng: np.random.Generator) -> Points:
    """Return what is reported of detected targets (4, n): range, azimuth, range rate, m²; and false alarms."""
    count = targets.shape[1]
    false = rng.poisson(model.false_alarm * model.cells)
    low = [model.range_min_m, -model.half_view_rad, -model.unambiguous_mps]
    high = [model.range_max_m, model.half_view_rad, model.unambiguous_mps]
    sigmas = [[model.range_sigma_m], [model.azimuth_sigma_rad], [model.doppler_sigma_mps]]
    place = np.concatenate(
        [targets[:3] + rng.normal(size=(3, count)) * sigmas, rng.uniform(low, high, (false, 3)).T], 1
    )
    # A target that is detected tends to be in a strong moment; half of the mean at least (assumed).
    strength = targets[3] * np.maximum(rng.exponential(size=count), 0.5)
    floor_db = 10.0 * np.log10(-np.log(model.false_alarm)) - model.snr_db(np.zeros(false), place[0, count:])
    rcs_db = np.concatenate([10.0 * np.log10(strength), floor_db])
    order = np.argsort(place[0])
    points = np.zeros(len(order), RADAR_LAYOUT)
    points["x"], points["y"] = (place[0] * np.cos(place[1]))[order], (place[0] * np.sin(place[1]))[order]
    points["doppler"] = folded(place[2], model.unambiguous_mps)[order]
    points["rcs"], points["snr"] = rcs_db[order], model.snr_db(rcs_db, place[0])[order]
    return points
