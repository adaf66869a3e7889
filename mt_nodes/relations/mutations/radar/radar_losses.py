# SPDX-License-Identifier: Apache-2.0
"""Detections that are lost: at random, by their strength, and in a sector with interference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects, Volume
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.radar import Radar
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.each_cloud import proof_of_removal
from mt_nodes.relations.mutations.lidar.lost_returns import sector
from mt_nodes.relations.mutations.radar.each_radar import EachRadar, added_draw, added_part, as_radar, with_detections
from mt_nodes.relations.mutations.radar.weaker_echoes import (
    missed,
    proof_of_number,
    proof_of_weakening,
    remaining,
    snr_db,
    weakened,
    without_rows,
)


class DetectionsLost(EachRadar):
    """Base: loses the detections at the ``rows`` of a draw; a message may keep all, but not every one of a bundle."""

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw for every radar; at least one must lose something."""
        draw = super().draw(rng, bundle, state)
        if not any(len(value) for name, value in draw.items() if name.endswith("|rows")):
            raise NotApplicable(f"bundle {bundle.index} has no detection that would be lost")
        return draw

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Drop the drawn rows."""
        return without_rows(as_radar(cloud), draw["rows"])

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report how many were lost."""
        return Effects(numbers={"detections_lost": float(sum(len(draw["rows"]) for draw in draws.values()))})


@dataclass(frozen=True)
class RadarDetectionsDropped(DetectionsLost):
    """Loses a share of the detections, all equally likely: a full list on the bus, lost CAN frames.

    Guaranteed: exactly ``round(share * n)`` of n detections are lost, at least one; the rest remains, byte for byte.
    """

    share: float = param(0.2, low=0.001, high=0.99, neutral=0.001, help="share of the detections that are lost")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose the detections to lose."""
        count = max(1, round(self.share * len(cloud)))
        return {"rows": np.sort(rng.choice(len(cloud), count, replace=False))}

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Count them."""
        expected = len(old) - max(1, round(self.share * len(old)))
        if len(new) != expected:
            return f"{len(new)} detections left, expected {expected}"
        return proof_of_removal(old, new, draw["rows"])


@dataclass(frozen=True)
class RadarTargetsMissed(DetectionsLost):
    """Weakens the echoes by some decibels, so that weak and far targets are missed by chance.

    Dirt, snow or water on the radome, or a weaker transmitter, take ``loss_db`` from every echo. A target whose
    cross-section fluctuates from scan to scan (Swerling I) is detected with the probability
    ``Pd = Pfa ^ (1 / (1 + SNR))``, and its signal-to-noise ratio falls with the fourth power of the range (M. A.
    Richards, *Fundamentals of Radar Signal Processing*, 2nd ed., 2014, chapters 2 and 6). What was detected remains
    with probability ``Pd(SNR / loss) / Pd(SNR)``. The ratio is the message's own ``snr``; else it follows from ``rcs``
    and range for a sensor that detects a car of 10 dBsm at 100 m with 21 dB (assumed); on any other scale the weakest
    detection is taken to be at the threshold. Nearer than ``beyond_m`` nothing changes.

    Guaranteed: no detection up to ``beyond_m`` is lost or changed; what remains beyond it is weaker by ``loss_db``;
    the number of lost ones fits the formula within six standard deviations.
    """

    loss_db: float = param(6.0, low=0.1, high=40.0, unit="dB", neutral=0.1, help="taken from every echo, both ways")
    beyond_m: float = param(0.0, low=0.0, high=300.0, unit="m", aspect="place", help="only beyond this range")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Draw for every detection beyond the range."""
        return {"rows": missed(rng, as_radar(cloud), self._loss_db(as_radar(cloud).polar[0]))}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Weaken what is beyond the range, and drop what is missed."""
        return weakened(as_radar(cloud), self._loss_db(as_radar(cloud).polar[0]), draw["rows"])

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Compare row by row, and count."""
        before = as_radar(old)
        return proof_of_weakening(
            before, as_radar(new), self._loss_db(np.linalg.norm(before.xyz, axis=1)), draw["rows"]
        )

    def _loss_db(self, range_m: Floats) -> Floats:
        return np.where(range_m > self.beyond_m, self.loss_db, 0.0)


@dataclass(frozen=True)
class RadarInterference(EachRadar):
    """Another radar in the same band: a raised noise floor in a sector, and a streak of false detections in it.

    An interferer whose chirps cross the receiver's band raises the noise over all ranges while the antenna looks
    towards it: weak targets fall below the threshold, and residues are reported at any range (S. Alland, W. Stark, M.
    Ali, M. Hegde, Interference in Automotive Radar Systems, IEEE Signal Processing Magazine 36(5), 2019). The floor
    rises by ``raised_db`` within the sector, whose middle is drawn within the sensor's field; the loss follows
    :class:`RadarTargetsMissed`. Nothing in the sector can be demanded (``effects.occluded``). With ``every`` above 1 it
    comes in bursts, as chirps of two radars drift through each other; other frames have no follow-up.

    Guaranteed: outside the sector every detection remains, byte for byte; the number of lost ones fits the formula
    within six standard deviations; the false ones lie within the sector.
    """

    width_deg: float = param(20.0, low=0.5, high=180.0, unit="deg", neutral=0.5, help="width of the sector")
    raised_db: float = param(10.0, low=0.1, high=60.0, unit="dB", neutral=0.1, help="rise of the noise floor in it")
    false_detections: int = param(15, low=0, high=1000, neutral=0, help="residues that are reported in it")
    max_range_m: float = param(100.0, low=5.0, high=500.0, unit="m", aspect="fixed", help="the sensor's range")
    every: int = param(1, low=1, high=1000, unit="frames", aspect="place", help="a burst begins every so many frames")
    burst: int = param(1, low=1, high=1000, unit="frames", aspect="place", help="frames that a burst lasts")

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Any:
        """Draw the frame with which the first burst begins."""
        return int(rng.integers(self.every))

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose the sector, who is lost in it, and the residues."""
        if (bundle.index - int(state)) % self.every >= self.burst:
            raise NotApplicable(f"no interference in frame {bundle.index}: bursts of {self.burst} every {self.every}")
        radar = as_radar(cloud)
        if radar.tracks:
            raise NotApplicable(f"{radar.topic} has tracks, not detections")
        _, azimuth, elevation = radar.polar
        middle = float(rng.uniform(azimuth.min(), azimuth.max()))
        inside = np.flatnonzero(np.abs(azimuth - middle) <= self._half_rad)
        lost = inside[rng.random(len(inside)) >= remaining(snr_db(radar)[inside], self.raised_db)]
        count = self.false_detections
        place = rng.uniform(2.0, self.max_range_m, count), middle + rng.uniform(-1, 1, count) * self._half_rad * 0.999
        rate = radar.doppler_mps
        added = added_draw(
            (*place, rng.choice(elevation, count)),
            rng.uniform(rate.min(), rate.max(), count),
            rng.choice(radar.strength_db, count),
            rng.integers(len(radar), size=count),
        )
        return {"rows": lost, "middle_rad": middle, **added}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Drop and add."""
        added = with_detections(as_radar(cloud), draw)
        return without_rows(added, draw["rows"])

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report what was lost and added, and the sectors."""
        volumes: list[Volume] = []
        for topic, draw in draws.items():
            volumes += sector(clouds[topic].frame_id, draw["middle_rad"], 2.0 * self._half_rad)
        lost, added = (float(sum(len(d[name]) for d in draws.values())) for name in ("rows", "range_m"))
        points = {t: clouds[t].xyz[len(clouds[t]) - len(d["range_m"]) :] for t, d in draws.items()}
        numbers = {"detections_lost": lost, "detections_added": added}
        return Effects(occluded=tuple(volumes), numbers=numbers, added_points=points)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Measure angles by scalar products with the sector's middle."""
        before, rows = as_radar(old), draw["rows"]
        kept = before.take(np.setdiff1d(np.arange(len(old)), rows))
        added = added_part(kept, as_radar(new), len(draw["range_m"]))
        if isinstance(added, str):
            return added
        if not (_aside_rad(before.take(rows), draw["middle_rad"]) <= self._half_rad + 1e-6).all():
            return "a detection outside the sector was lost"
        if not (_aside_rad(added, draw["middle_rad"]) <= self._half_rad + 1e-6).all():
            return "a false detection is outside the sector"
        inside = _aside_rad(before, draw["middle_rad"]) <= self._half_rad
        return proof_of_number(len(rows), snr_db(before)[inside], self.raised_db)

    @property
    def _half_rad(self) -> float:
        return float(np.radians(self.width_deg / 2.0))


def _aside_rad(radar: Radar, middle_rad: float) -> Floats:
    x, y = radar.xyz[:, 0], radar.xyz[:, 1]
    cosine = (x * np.cos(middle_rad) + y * np.sin(middle_rad)) / np.maximum(np.hypot(x, y), 1e-9)
    return np.asarray(np.arccos(np.clip(cosine, -1.0, 1.0)))
