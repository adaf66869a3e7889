# SPDX-License-Identifier: Apache-2.0
"""Effect of weather in the air on a cloud: weaker returns, lost ones, and echoes of the air."""

from __future__ import annotations

from abc import abstractmethod
from copy import deepcopy
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask, Rows, Singles
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.intensity.echo_fields import write_values
from mt_nodes.data.messages import Bundle, Cloud, Points
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.joint.air_drift import AirDrift
from mt_nodes.relations.mutations.joint.attenuation import (
    all_returns,
    noise_sigma_m,
    reflectivities,
    refuse_odd_ranges,
    refuse_unreadable_intensities,
    transmission,
)
from mt_nodes.relations.mutations.joint.beam_parts import Amplitudes, CloudPart, firing_of, is_last_of_several, parts
from mt_nodes.relations.mutations.joint.chance import gaussian, quarters, quarters_at
from mt_nodes.relations.mutations.joint.empty_beams import EmptyBeams, EmptyEchoes, empty_beams, write_echoes
from mt_nodes.relations.mutations.joint.empty_proof import Fate, SeenEchoes
from mt_nodes.relations.mutations.joint.proof import proof_of_weather
from mt_nodes.relations.mutations.joint.reception import Reception, with_sensor
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud, of_cloud
from mt_nodes.relations.mutations.lidar.rays import At, refuse_whole_numbers, write_range_fields

#: Effects of weather, counts over all clouds. ``empty_beams``: those without a return whose direction is known, if the
#: air is thick enough for echoes.
NUMBERS = ("returns_lost", "returns_scattered", "empty_beams", "empty_beams_echoed")
#: A hard return keeps at least this share of its range, whatever the noise.
_LEAST_SHARE = 0.5
#: Of clouds that were changed: by which weather and draw, and their fate, for the proof.
_fates: WeakKeyDictionary[Cloud, tuple[Any, Draw, Fate]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Weather(Reception, EachCloud):
    """Weakens every return by e^(−2 ∫ α dr); returns below the threshold, in the receiver's noise, are lost.

    The amplitude a of a reported return, in thresholds, is drawn given its intensity and that it was detected
    (:meth:`Receiver.detected`). Its share n of noise is normal, so that in bad air it is q (a − n) + n with the
    share q of light: the same firing, with its target weakened. Where the highest peak of the air before it exceeds
    that and the threshold, the sensor, which reports the strongest echo, reports the air. It reads as a target of the
    reflectivity that would echo so; intensities of hard returns fall by q, their mean. A weaker return is measured
    worse: its range noise grows by σ² = 0.09²/2 (1/a′ − 1/a) (V. Kilic et al., LISA, 2021).
    The reports of one firing share its chance. The last of several stays the target as long as that is detected, while
    an earlier one, the strongest, may become the air: fog before a target that is seen through it. Where only the air
    is left, both report it, as Velodyne's sensors do where strongest and last echo are the same.
    Beams without a return are beams with nothing behind: the air echoes on them by the same law, where their direction
    is known. The air drifts by wind, fall and the ego's own motion: fixed in the world but for wind and fall; with a
    given speed as a function of the stamp alone. Two sensors are each in a copy of it, placed around themselves.

    Assumptions, for want of published numbers: ``focus_m`` (see :class:`Receiver`: data sheets do not tell it), that
    dark returns are of 5 %, the error of intensities, and that the strongest echo is the one reported.
    """

    max_range_m: float = param(
        120.0, low=10.0, high=500.0, unit="m", aspect="fixed", help="the sensor sees a 90 % target that far"
    )
    unknown_reflectivity: float = param(
        0.3,
        low=0.05,
        high=1.0,
        aspect="fixed",
        help="reflectivity assumed of every return of a cloud without intensities",
    )
    ego_speed_mps: float | None = param(
        None,
        low=-20.0,
        high=70.0,
        unit="m/s",
        aspect="fixed",
        help="speed of the vehicle, forward; unset: as it moves, 10 where that is unknown",
    )
    wind_x_mps: float = param(
        0.0,
        low=-40.0,
        high=40.0,
        unit="m/s",
        aspect="fixed",
        help="wind along the vehicle's x axis as an episode begins, over ground",
    )
    wind_y_mps: float = param(0.0, low=-40.0, high=40.0, unit="m/s", aspect="fixed", help="wind along its y axis")

    @property
    def noise_at_threshold_m(self) -> float:
        """Standard deviation of the range of an echo at the threshold."""
        return self.model.noise_m

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
    def echoes(self, cloud: Cloud, part: CloudPart, draw: Draw, found: Amplitudes) -> tuple[Singles, Singles]:
        """Return range and amplitude (k,) of the echo of the air before each return that exceeds it; 0 for none."""

    @abstractmethod
    def empty_echoes(self, beams: EmptyBeams, draw: Draw) -> tuple[Rows, Singles, Singles]:
        """Return which empty beams (k,) the air echoes on, ascending, and range and amplitude of the echoes."""

    @property
    def likely_echoes(self) -> bool:
        """Whether the air may echo on a beam at all."""
        return True

    @abstractmethod
    def proof_depths(self, cloud: Cloud, rows: Rows, draw: Draw) -> Floats:
        """Return what :meth:`optical_depths` does of some returns (k,), by another way of integration."""

    @abstractmethod
    def proof_of_air(self, old: Cloud, seen: SeenEchoes, draw: Draw) -> str | None:
        """Check that the air permits the echoes seen, and no others."""

    @abstractmethod
    def draw_air(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any, noise_key: int) -> Draw:
        """Return the parameters of the air at this instant."""

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Draw the key of the noise, and the air."""
        refuse_whole_numbers(cloud)
        at = all_returns(cloud)
        refuse_odd_ranges(cloud, at)
        refuse_unreadable_intensities(cloud, at)
        is_last_of_several(cloud, slice(0))  # decided once a topic, which takes memory that is scarce later
        reception = self.draw_reception(rng, cloud)
        own = with_sensor(self, reception["sensor"])
        return {**reception, **own.draw_air(rng, bundle, cloud, state, reception["noise_key"])}

    def fate(self, cloud: Cloud, draw: Draw) -> Fate:
        """Decide the fate of every beam, in blocks of some thousands, which fit the processor's cache."""
        at, own = all_returns(cloud), with_sensor(self, draw["sensor"])
        on_empty = own._on_empty(cloud, draw)  # before the columns: both together take more memory
        columns = zip(*(own._fate_of(cloud, part, draw) for part in parts(cloud, at)), strict=True)
        old_m, new_m, passing, reads, scattered, lost = map(np.concatenate, columns)
        return Fate(at, old_m, new_m, passing, reads, scattered, lost, on_empty)

    def amplitudes(self, cloud: Cloud, part: CloudPart, draw: Draw) -> Amplitudes:
        """Return the amplitudes of a part of the returns, before and in the weather."""
        if cloud.reading.dual_return:
            index = np.arange(part.first, part.first + len(part.range_m))
            chance = quarters_at(draw["noise_key"], firing_of(cloud, all_returns(cloud), index))
        else:
            chance = quarters(draw["noise_key"], len(part.range_m), part.first)
        bright = reflectivities(cloud, part.at, part.range_m, self.unknown_reflectivity)
        passing = transmission(self.optical_depths(cloud, part, draw))
        clear, weakened = self.receiver.weakened(bright, part.range_m, passing, chance)
        least = np.maximum(weakened, np.float32(1.0))
        if (last := is_last_of_several(cloud, part.at)) is not None:
            least[last & (weakened >= 1.0)] = np.inf
        return Amplitudes(clear, weakened, least, passing, chance)

    def _fate_of(self, cloud: Cloud, part: CloudPart, draw: Draw) -> tuple[npt.NDArray[Any], ...]:
        """Return the columns (k,) of a fate for a part of the returns."""
        range_m, found = part.range_m, self.amplitudes(cloud, part, draw)
        echo_m, echo = self.echoes(cloud, part, draw, found)
        scattered = echo > 0.0
        lost = (found.weakened < 1.0) & ~scattered
        sigma_m = noise_sigma_m(found.clear, np.maximum(found.weakened, np.float32(1.0)), self.noise_at_threshold_m)
        if self.further_noise:
            sigma_m = np.hypot(sigma_m, range_m * np.float32(self.further_noise))
        noisy_m = range_m + sigma_m * gaussian(found.chance[:, 3])
        noisy_m = np.clip(noisy_m, range_m * _LEAST_SHARE, np.maximum(range_m, np.float32(self.max_range_m)))
        reads = np.minimum(self.receiver.reflectivity(echo[scattered], echo_m[scattered]), np.float32(1.0))
        return range_m, np.where(scattered, echo_m, noisy_m), found.passing, reads, scattered, lost

    def _on_empty(self, cloud: Cloud, draw: Draw) -> EmptyEchoes | None:
        if not self.likely_echoes:
            return None
        beams = empty_beams(cloud)
        hit, range_m, amplitude = self.empty_echoes(beams, draw)
        reads = np.minimum(self.receiver.reflectivity(amplitude, range_m), np.float32(1.0))
        return EmptyEchoes(beams, hit, range_m, reads)

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Change every cloud, and report lost returns and echoes of the air."""
        numbers, added, clouds = dict.fromkeys(NUMBERS, 0.0), {}, []
        for cloud in bundle.clouds:
            fate = self._kept_fate(cloud, of_cloud(draw, cloud))
            clouds.append(self._changed(cloud, fate))
            numbers["returns_lost"] += float(np.count_nonzero(fate.lost))
            numbers["returns_scattered"] += float(np.count_nonzero(fate.scattered))
            if fate.on_empty is not None:
                numbers["empty_beams"] += float(len(fate.on_empty.beams))
                numbers["empty_beams_echoed"] += float(len(fate.on_empty.hit))
            added[cloud.topic] = fate.echo_places(cloud)
        return Followup(((0, bundle.with_clouds(clouds)),), Effects(numbers=numbers, added_points=added))

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Drop lost returns, then move and weaken the rest."""
        return self._changed(cloud, self.fate(cloud, draw))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Check lost returns, beams, ranges and intensities, in decibels."""
        fate = self._fate_of_draw(old, draw)
        return proof_of_weather(with_sensor(self, draw["sensor"]), old, new, fate, draw)

    def _kept_fate(self, cloud: Cloud, draw: Draw) -> Fate:
        """Return a cloud's fate, and keep it, read-only, for the proof."""
        fate = self.fate(cloud, draw)
        for column in (fate.old_m, fate.new_m, fate.passing, fate.reads, fate.scattered, fate.lost):
            column.flags.writeable = False
        _fates[cloud] = self, deepcopy(draw), fate
        return fate

    def _fate_of_draw(self, cloud: Cloud, draw: Draw) -> Fate:
        """Return a cloud's fate: once the one that was kept, since it takes memory."""
        kept = self._kept_for(cloud, draw)
        _fates.pop(cloud, None)
        return kept or self.fate(cloud, draw)

    def _kept_for(self, cloud: Cloud, draw: Draw) -> Fate | None:
        """Return the fate that was kept if it is of this very weather and draw."""
        weather, kept, fate = _fates.get(cloud, (None, {}, None))
        same = weather == self and kept.keys() == draw.keys()
        return fate if same and all(np.array_equal(kept[name], draw[name]) for name in draw) else None

    @property
    def needs_motion(self) -> bool:
        """Whether the speed of the ego is not given."""
        return self.ego_speed_mps is None

    def drift(self, bundle: Bundle, cloud: Cloud, fall_mps: float = 0.0) -> AirDrift:
        """Return how the air has moved past the sensor."""
        return AirDrift.of(bundle, cloud, self.ego_speed_mps, np.array([self.wind_x_mps, self.wind_y_mps, -fall_mps]))

    def _changed(self, cloud: Cloud, fate: Fate) -> Cloud:
        # The spliced cloud is a fresh copy: it may be written to. In blocks, to save memory.
        (new, empty_at), read = fate.splice(cloud), 0
        for index, stay, rows in fate.blocks(cloud):
            ratio = (fate.new_m[index] / fate.old_m[index])[stay]
            at: At = rows
            if len(rows) and rows[-1] - rows[0] == len(rows) - 1:  # side by side, as where no echo was put between
                at = slice(int(rows[0]), int(rows[-1]) + 1)
            for name in "xyz":
                new.points[name][at] = new.points[name][at] * ratio
            write_range_fields(new.points, cloud, rows, ratio.astype(np.float64))
            begin, read = read, read + int(np.count_nonzero(fate.scattered[index]))
            _weaken(new.points, cloud, fate, (index, stay, rows), fate.reads[begin:read])
        if fate.on_empty is not None and len(fate.on_empty.hit):
            write_echoes(new, cloud, empty_at, fate.on_empty)
        return new


def _weaken(points: Points, cloud: Cloud, fate: Fate, block: tuple[slice, Mask, Rows], reads: Singles) -> None:
    """Write the strengths of a block of remaining returns, some of which read as echoes (k,) of the air."""
    index, stay, rows = block
    if not cloud.echoes.fields:
        return
    values = cloud.echoes.weakened(points, rows, fate.passing[index][stay], fate.old_m[index][stay])
    echoed, soft_m = fate.scattered[index], fate.new_m[index]
    for name, soft_values in cloud.echoes.values(points, reads, soft_m[echoed]).items():
        values[name][echoed[stay]] = soft_values
    write_values(points, rows, values)
