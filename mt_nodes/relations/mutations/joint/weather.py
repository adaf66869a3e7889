# SPDX-License-Identifier: Apache-2.0
"""Effect of weather in the air on a cloud: weaker returns, lost ones, and echoes of the air."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.intensity.echo_fields import write_values
from mt_nodes.data.messages import Bundle, Cloud, Points
from mt_nodes.data.transforms import UnknownTransform
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.joint.attenuation import (
    Receiver,
    Singles,
    all_returns,
    noise_sigma_m,
    reflectivities,
    refuse_odd_ranges,
    refuse_unreadable_intensities,
    single_ranges_m,
    transmission,
)
from mt_nodes.relations.mutations.joint.chance import normals
from mt_nodes.relations.mutations.joint.fate import Fate, Mask
from mt_nodes.relations.mutations.joint.proof import proof_of_weather
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud, of_cloud, without
from mt_nodes.relations.mutations.lidar.rays import At, Rows, refuse_whole_numbers, write_range_fields

#: A hard return keeps at least this share of its range, whatever the noise.
_LEAST_SHARE = 0.5
_PART = 16384


@dataclass(frozen=True, eq=False)
class CloudPart:
    """A block of a cloud's returns: index of the first among all returns, which points they are, and ranges (k,)."""

    first: int
    at: At
    range_m: Singles


def parts(cloud: Cloud, at: At) -> Iterator[CloudPart]:
    """Yield the returns of a cloud in blocks."""
    count = len(cloud) if isinstance(at, slice) else len(at)
    for first in range(0, count, _PART):
        within = slice(first, min(first + _PART, count))
        some = within if isinstance(at, slice) else at[within]
        yield CloudPart(first, some, single_ranges_m(cloud, some))


@dataclass(frozen=True)
class Weather(EachCloud):
    """Weakens every return by e^(−2 ∫ α dr); returns below the noise floor are lost.

    Where the echo of the air before a return is stronger than the return, and above the floor, it takes its place: a
    sensor that reports the strongest echo. It reads as a target of the reflectivity that would echo so. A weaker return
    is measured worse: its range noise grows by σ² = 0.09²/2 (1/SNR′ − 1/SNR) (V. Kilic et al., LISA, 2021).
    Beams without a return stay so: their direction is not in a cloud. The air drifts by wind, fall and the ego's own
    speed as a function of the stamp alone; two sensors are each in a copy of it, placed around themselves.

    Assumptions, for want of published numbers: ``focus_m`` (see :class:`Receiver`: data sheets do not tell it), that no
    target is darker than 5 %, that a return that was reported had 3 dB to spare, and that the strongest echo is the one
    reported.
    """

    max_range_m: float = param(
        120.0, low=10.0, high=500.0, unit="m", aspect="fixed", help="the sensor sees a 90 % target that far"
    )
    focus_m: float = param(
        5.0, low=0.5, high=50.0, unit="m", aspect="fixed", help="nearer echoes are out of focus: not stronger (assumed)"
    )
    unknown_reflectivity: float = param(
        0.3,
        low=0.05,
        high=1.0,
        aspect="fixed",
        help="reflectivity assumed of every return of a cloud without intensities",
    )
    ego_speed_mps: float = param(
        10.0, low=-20.0, high=70.0, unit="m/s", aspect="fixed", help="speed of the vehicle, forward"
    )
    wind_x_mps: float = param(
        0.0, low=-40.0, high=40.0, unit="m/s", aspect="fixed", help="wind along the vehicle's x axis, over ground"
    )
    wind_y_mps: float = param(0.0, low=-40.0, high=40.0, unit="m/s", aspect="fixed", help="wind along its y axis")

    @property
    def receiver(self) -> Receiver:
        """The sensor's receiver."""
        return Receiver(self.max_range_m, self.focus_m)

    @property
    def further_noise(self) -> float:
        """Standard deviation of further range noise, as a share of the range."""
        return 0.0

    @property
    @abstractmethod
    def extinction_per_m(self) -> float:
        """Mean extinction coefficient α of the air, 1/m."""

    @abstractmethod
    def optical_depths(self, cloud: Cloud, part: CloudPart, draw: Draw) -> Singles:
        """Return ∫ α dr (k,) from the sensor to the returns, one way."""

    @abstractmethod
    def echoes(self, cloud: Cloud, part: CloudPart, draw: Draw) -> tuple[Singles, Singles]:
        """Return range and signal (k,) of the strongest echo of the air before each return; signal 0 for none."""

    @abstractmethod
    def proof_depths(self, cloud: Cloud, rows: Rows, draw: Draw) -> npt.NDArray[np.float64]:
        """Return what :meth:`optical_depths` does of some returns (k,), by another way of integration."""

    @abstractmethod
    def draw_air(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Return the parameters of the air at this instant."""

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Draw the key of the range noise, and the air."""
        refuse_whole_numbers(cloud)
        at = all_returns(cloud)
        refuse_odd_ranges(cloud, at)
        refuse_unreadable_intensities(cloud, at)
        return {"noise_key": int(rng.integers(2**62)), **self.draw_air(rng, bundle, cloud, state)}

    def fate(self, cloud: Cloud, draw: Draw) -> Fate:
        """Decide the fate of every return, in blocks of some thousands, which fit the processor's cache."""
        at = all_returns(cloud)
        columns = [self._fate_of(cloud, part, draw) for part in parts(cloud, at)]
        old_m, new_m, passing, reads, scattered, lost = map(np.concatenate, zip(*columns, strict=True))
        return Fate(at, old_m, new_m, passing, reads, scattered, lost)

    def _fate_of(self, cloud: Cloud, part: CloudPart, draw: Draw) -> tuple[npt.NDArray[Any], ...]:
        """Return the columns (k,) of a fate for a part of the returns."""
        range_m = part.range_m
        clear = self.receiver.received(reflectivities(cloud, part.at, range_m, self.unknown_reflectivity), range_m)
        passing = transmission(self.optical_depths(cloud, part, draw))
        weakened = clear * passing
        echo_m, echo = self.echoes(cloud, part, draw)
        scattered = (echo >= 1.0) & (echo > weakened) & (echo_m < range_m)
        lost = (weakened < 1.0) & ~scattered
        sigma_m = noise_sigma_m(clear, np.maximum(weakened, np.float32(1.0)))
        if self.further_noise:
            sigma_m = np.hypot(sigma_m, range_m * np.float32(self.further_noise))
        noisy_m = range_m + sigma_m * normals(draw["noise_key"], len(range_m), part.first)
        noisy_m = np.clip(noisy_m, range_m * _LEAST_SHARE, np.maximum(range_m, np.float32(self.max_range_m)))
        reads = np.minimum(self.receiver.reflectivity(echo, echo_m), np.float32(1.0))
        return range_m, np.where(scattered, echo_m, noisy_m), passing, reads, scattered, lost

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Change every cloud, and report lost returns and echoes of the air."""
        numbers, added, clouds = {"returns_lost": 0.0, "returns_scattered": 0.0}, {}, []
        for cloud in bundle.clouds:
            fate = self.fate(cloud, of_cloud(draw, cloud))
            clouds.append(self._changed(cloud, fate))
            numbers["returns_lost"] += float(np.count_nonzero(fate.lost))
            numbers["returns_scattered"] += float(np.count_nonzero(fate.scattered))
            added[cloud.topic] = fate.echo_places(cloud)
        return Followup(((0, bundle.with_clouds(clouds)),), Effects(numbers=numbers, added_points=added))

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Drop lost returns, then move and weaken the rest."""
        return self._changed(cloud, self.fate(cloud, draw))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Check lost returns, beams, ranges and intensities, in decibels."""
        fate = self.fate(old, draw)
        return proof_of_weather(self, old, new, fate, draw)

    def drift_mps(self, bundle: Bundle, cloud: Cloud, fall_mps: float = 0.0) -> npt.NDArray[np.float64]:
        """Return the velocity (3,) of the air in the sensor's frame, z up if its mount is unknown."""
        velocity = np.array([self.wind_x_mps - self.ego_speed_mps, self.wind_y_mps, -fall_mps])
        try:
            return np.asarray(bundle.transforms.lookup(cloud.frame_id, "base_link")[:3, :3] @ velocity)
        except UnknownTransform:
            return velocity

    def _changed(self, cloud: Cloud, fate: Fate) -> Cloud:
        # The cloud from without() is a fresh copy: it may be written to.
        new = without(cloud, fate.rows(fate.lost))
        points, at, left = new.points, fate.remaining_rows(cloud), ~fate.lost
        ratio = (fate.new_m / fate.old_m)[left]
        for name in "xyz":
            points[name][at] = points[name][at] * ratio
        write_range_fields(points, cloud, at, ratio.astype(np.float64))
        self._weaken(points, at, cloud, fate, left)
        return new

    def _weaken(self, points: Points, at: At, cloud: Cloud, fate: Fate, left: Mask) -> None:
        if not cloud.echoes.fields:
            return
        values = cloud.echoes.weakened(points, at, fate.passing[left], fate.old_m[left])
        echoed, soft, soft_m = fate.scattered[left], fate.reflectivity[fate.scattered], fate.new_m[fate.scattered]
        for name, soft_values in cloud.echoes.values(points, soft, soft_m).items():
            values[name][echoed] = soft_values
        write_values(points, at, values)
