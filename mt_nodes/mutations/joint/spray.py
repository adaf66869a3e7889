# SPDX-License-Identifier: Apache-2.0
"""Spray behind a vehicle on a wet road."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.effects import Effects
from mt_nodes.errors import NotApplicable, UsageError
from mt_nodes.frames import Bundle, Cloud
from mt_nodes.mutations.base import Draw
from mt_nodes.mutations.joint.echoes import (
    Echoes,
    Floor,
    count_lost,
    moved_points,
    proof_of_echoes,
    reflectivity,
    rows_at,
    with_echoes,
)
from mt_nodes.mutations.joint.plume import Plume, depth, places, within
from mt_nodes.mutations.joint.vehicles import Vehicle, nearest_vehicle
from mt_nodes.mutations.lidar.blocks import blocks
from mt_nodes.mutations.lidar.each_cloud import EachCloud
from mt_nodes.mutations.lidar.rays import (
    At,
    Floats,
    Rows,
    at_rows,
    columns,
    ranges_m,
    refuse_whole_numbers,
    returns,
    rounding_m,
    smallest,
)
from mt_nodes.mutations.objects.in_scene import ego_from
from mt_nodes.params import param
from mt_nodes.transforms import Matrix, move

Singles = npt.NDArray[np.float32]

#: Width of the film that the tyres of both sides roll over, and cross-section of the fresh plume.
_TRACKS_M, _SECTION_M2 = 0.4, 1.5
#: Mean diameter of droplets times the speed of the tyre: 0.8 mm at 6 m/s.
_DIAMETER_M2_PER_S = 0.8e-3 * 6.0
#: Extinction over back-scatter of water droplets at 905 nm.
_LIDAR_RATIO_SR = 18.8
#: Half the length of a pulse of 10 ns: what scatters at once.
_PULSE_M = 1.5
#: Places on a beam where an echo is looked for, and where the proof measures what the plume takes away.
_PLACES, _STEPS = 8, 32
_PART = 2048
_NUMBERS = np.arange(_PLACES, dtype=np.float32)[:, None]
#: The proof looks at one in so many of the returns that were left alone.
_SAMPLE = 16
#: An echo nearer than this to the beam's return is one with it; returns that lose less than 0.1 % are left alone.
_APART_M, _NOTICED = 0.2, 0.999


@dataclass(frozen=True, eq=False)
class _Beams:
    """Beams through the plume: rows (n,), unit directions (3, n) in the ego's frame, own ranges, way through (n,)."""

    rows: Rows
    direction: Singles
    own_m: Floats
    enter_m: Singles
    leave_m: Singles

    def parts(self) -> Iterator[_Beams]:
        """Yield the beams some thousands at a time, so that what is computed of them stays in the processor's cache."""
        for start in range(0, len(self.rows), _PART):
            of = slice(start, start + _PART)
            yield _Beams(self.rows[of], self.direction[:, of], self.own_m[of], self.enter_m[of], self.leave_m[of])


@dataclass(frozen=True)
class Spray(EachCloud):
    """Puts a plume of spray behind the nearest vehicle ahead: false returns from it, weaker and lost ones behind it.

    Spray behind vehicles makes returns of its own and hides others (SemanticSpray, A. Piroli et al., RA-L 2023;
    J. R. Vargas Rivero et al., Sensors 21, 2021). Tyres lift the share ``airborne_share`` of the film they roll over,
    0.4 m wide in all, into a cross-section of 1.5 m²; droplets come to rest in the air at once, so that a volume of
    air holds c = share · 0.4 m · water / 1.5 m² of water at any speed. Its extinction is α = 3 c / d (cross-section of
    spheres, extinction efficiency 2), with a mean diameter d = 0.8 mm · 6 m/s / speed (tyre spray in the laboratory:
    800 µm, falling with Weber number to the power −1/2, thus with speed). α falls by 1/e each ``length_m`` behind
    and ``height_m`` up, and as a Gaussian aside; around this mean, patches of 0.3 m are exponentially distributed,
    rest in the air and so fall back behind the vehicle from frame to frame.

    A beam is weakened by exp(−2 ∫ α). Its echo from a patch at range R is that of a surface of reflectivity
    π (α / 18.8 sr) · 1.5 m (lidar ratio of droplets at 905 nm: E. O'Connor et al., J. Atmos. Oceanic Technol. 21, 2004;
    pulse of 10 ns), weakened likewise; of all echoes of a beam the strongest wins, if the sensor sees it. A return is
    lost when what is left of it is below the noise floor (a target of 90 % is just seen at ``max_range_m``: LISA,
    V. Kilic et al., 2021). Assumptions, for want of published numbers: share and shape of the plume, the patches, and
    that a return that is there at all had 3 dB to spare.

    Guaranteed: only beams through the plume change; false returns are on their beams, within the plume, nearer than
    the return before, no stronger than the densest patch allows; the others weaken by the integral of α, by another
    quadrature, and those are lost that fall below the floor.
    """

    water_mm: float = param(1.0, low=0.001, high=10.0, unit="mm", help="depth of the water film on the road")
    speed_mps: float = param(20.0, low=1.0, high=60.0, unit="m/s", help="speed of the vehicle ahead over the road")
    airborne_share: float = param(0.05, low=0.0001, high=1.0, help="share of the film under the tyres that flies")
    length_m: float = param(4.0, low=0.5, high=50.0, unit="m", help="decay length behind the vehicle")
    height_m: float = param(0.8, low=0.1, high=5.0, unit="m", help="decay height over the road")
    ahead_m: tuple[float, float] = param((5.0, 50.0), low=2.0, high=150.0, unit="m", help="where its back may be")
    aside_m: float = param(4.0, low=0.5, high=20.0, unit="m", help="how far from the ego's path its middle may be")
    least_points: int = param(50, low=5, high=100_000, help="returns the vehicle must have")
    min_range_m: float = param(1.0, low=0.1, high=50.0, unit="m", help="the sensor reports nothing nearer")
    sensitivity: float = param(0.9, low=1e-6, high=1.0, help="intensity, 0 to 1, of the weakest echo at max_range_m")
    max_range_m: float = param(120.0, low=1.0, high=1000.0, unit="m", help="the sensor's range")
    ego_frame_id: str = param("base_link", help="frame on the road under the ego, x ahead, z up")

    def __post_init__(self) -> None:
        if self.ahead_m[0] >= self.ahead_m[1]:
            raise UsageError(f"ahead_m: got {self.ahead_m[0]:g} to {self.ahead_m[1]:g}, expected near before far")

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Any:
        """Choose the pattern of an episode, and when it begins."""
        return int(rng.integers(1 << 63)), bundle.stamp_ns

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Find the vehicle, under ``vehicle`` (4,), and the plume's echoes: rows (n,), ranges, intensities, 0 to 1."""
        refuse_whole_numbers(cloud)
        to_ego = self._to_ego(bundle, cloud)
        reflectivity(cloud, at_rows(cloud, returns(cloud)))
        vehicle = nearest_vehicle(self._ahead(cloud, to_ego), self.ahead_m, self.aside_m, self.least_points)
        key, began_ns = state
        drift_m = self.speed_mps * (bundle.stamp_ns - began_ns) * 1e-9
        draw: Draw = {"vehicle": np.array(astuple(vehicle)), "key": key, "drift_m": drift_m}
        plume = self.plume(draw)
        beams = self._through(cloud, to_ego, plume)
        passed = _passed(beams, plume, to_ego[:3, 3])
        if not (passed < _NOTICED).any():
            raise NotApplicable(
                f"none of {len(beams.rows)} beams of {cloud.topic} through the plume behind the vehicle "
                f"{vehicle.rear_x_m:.1f} m ahead loses {1.0 - _NOTICED:.1%} of its power"
            )
        # One number for every point: with another plume the same beams draw the same ones.
        soft, soft_m = self._soft(beams, plume, to_ego[:3, 3], rng.random(len(cloud), dtype=np.float32))
        left = reflectivity(cloud, beams.rows)[0] * passed
        wins = (soft / soft_m**2 > left / beams.own_m**2) & (soft >= self._floor.at(soft_m))
        draw["rows"] = smallest(beams.rows[wins])
        draw["range_m"], draw["intensity"] = soft_m[wins].astype(np.float32), soft[wins].astype(np.float32)
        return draw

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Put the echoes in."""
        return with_echoes(cloud, self.echoes(bundle, cloud, draw))

    def echoes(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Echoes:
        """Return what becomes of the beams through the plume."""
        plume, to_ego = self.plume(draw), self._to_ego(bundle, cloud)
        beams, moved = self._through(cloud, to_ego, plume), draw["rows"].astype(np.int64)
        passed = _passed(beams, plume, to_ego[:3, 3])
        rho, scale = reflectivity(cloud, beams.rows)
        intensity, softer = rho * passed, np.searchsorted(beams.rows, moved)
        lost, touched = passed * self._floor.margin(rho, beams.own_m) < 1.0, passed < _NOTICED
        intensity[softer], lost[softer], touched[softer] = draw["intensity"], False, True
        touched &= ~lost
        range_m = draw["range_m"].astype(np.float64)
        return Echoes(beams.rows[touched], intensity[touched] * scale, moved, range_m, beams.rows[lost])

    def plume(self, draw: Draw) -> Plume:
        """Return the plume that a draw tells of."""
        water = self.airborne_share * _TRACKS_M * self.water_mm * 1e-3 / _SECTION_M2
        extinction = 3.0 * water * self.speed_mps / _DIAMETER_M2_PER_S
        vehicle = Vehicle(*draw["vehicle"].tolist())
        return Plume(vehicle, extinction, self.length_m, self.height_m, float(draw["drift_m"]), int(draw["key"]))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Look where the false returns are, how strong, and how much the others lost, by another quadrature."""
        echoes, plume = self.echoes(bundle, old, draw), self.plume(draw)
        broken, whole = proof_of_echoes(old, new, echoes)
        if broken is not None:
            return broken
        to_ego, name = self._to_ego(bundle, old), old.intensity_field
        range_m = ranges_m(whole, draw["rows"])
        if not (np.abs(range_m - draw["range_m"]) <= rounding_m(old, range_m) + 1e-5).all():
            return "a false return is not where it was drawn"
        place = move(to_ego, whole.xyz[echoes.moved].astype(np.float64))
        low, high = plume.box_m
        if not ((place >= low - 1e-3) & (place <= high + 1e-3)).all():
            return "a false return is outside the plume"
        rho, scale = reflectivity(whole, echoes.moved)
        densest = self._echo_of(plume.mean_per_m(*place.T) * plume.patchiness(*place.T))
        rounding = 0.5 / scale if old.points.dtype[str(name)].kind in "iu" else 1e-6
        # A place on the edge of a patch may round to its neighbour's side: few do.
        if (rho > 1.01 * densest + rounding).sum() > 2 + 0.001 * len(rho):
            return "a false return is stronger than its patch allows"
        if (range_m < self.min_range_m - 1e-3).any():
            return f"a false return is nearer than {self.min_range_m:g} m"
        return self._weakened_as_promised(old, whole, echoes, plume, to_ego)

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Say how many returns are lost, and where the false ones are."""
        added = moved_points(bundle, draws)
        numbers = {
            "returns_lost": count_lost(bundle, clouds),
            "returns_scattered": float(sum(map(len, added.values()))),
        }
        return Effects(numbers=numbers, added_points=added)

    @property
    def _floor(self) -> Floor:
        return Floor(self.sensitivity, self.max_range_m)

    def _to_ego(self, bundle: Bundle, cloud: Cloud) -> Matrix:
        return ego_from(bundle, cloud.frame_id, self.ego_frame_id, cloud.topic)

    def _through(self, cloud: Cloud, to_ego: Matrix, plume: Plume) -> _Beams:
        """Return the beams that go through the plume before their return."""
        parts = [
            self._through_part(rows_at(cloud, at), _places(cloud, at, to_ego), to_ego, plume) for at in blocks(cloud)
        ]
        columns_ = ([getattr(part, name) for part in parts] for name in _Beams.__dataclass_fields__)
        return _Beams(*(np.concatenate(column, axis=-1) for column in columns_))

    def _through_part(self, rows: Rows, place: Floats, to_ego: Matrix, plume: Plume) -> _Beams:
        origin, (low, high) = to_ego[:3, 3], plume.box_m
        near = np.ones(len(rows), dtype=bool)
        # Most beams end before the plume or go past it: a look at the box around each way saves the rest.
        for start, end, least, most in zip(origin, place, low, high, strict=True):
            near &= (np.maximum(end, start) > least) & (np.minimum(end, start) < most)
        direction, own_m = _directions(place[:, near], origin)
        enter_m, leave_m = within(origin, direction, plume.box_m)
        enter_m, leave_m = np.maximum(enter_m, self.min_range_m), np.minimum(leave_m, own_m - _APART_M)
        hit = np.flatnonzero(leave_m > enter_m)
        # Single precision from here on: a beam's way through the plume need not be known to better than a micrometre.
        way, enter_m, leave_m = (of[..., hit].astype(np.float32) for of in (direction, enter_m, leave_m))
        return _Beams(rows[near][hit], way, own_m[hit], enter_m, leave_m)

    def _ahead(self, cloud: Cloud, to_ego: Matrix) -> Floats:
        """Return the points (n, 3) in the ego's frame among which a vehicle is looked for."""
        parts = [_places(cloud, at, to_ego) for at in blocks(cloud)]
        return np.concatenate([place[:, place[0] >= self.ahead_m[0]] for place in parts], axis=1).T

    def _soft(self, beams: _Beams, plume: Plume, origin: Floats, chance: Singles) -> tuple[Floats, Floats]:
        """Return the strongest echo of the plume on each beam (n,), as an intensity of 0 to 1, and its range (n,)."""
        found = [self._soft_part(part, plume, origin, chance[part.rows]) for part in beams.parts()]
        soft, soft_m = (np.concatenate(column) for column in zip(*found, strict=True))
        return soft, soft_m

    def _soft_part(self, beams: _Beams, plume: Plume, origin: Floats, chance: Singles) -> tuple[Floats, Floats]:
        step_m = (beams.leave_m - beams.enter_m) / _PLACES
        at_m = beams.enter_m + step_m * (_NUMBERS + np.float32(0.05) + np.float32(0.9) * chance)
        place = places(origin, beams.direction, at_m)
        mean = plume.mean_per_m(*place)
        before = (np.cumsum(mean, axis=0) - mean / 2) * step_m
        echo = self._echo_of(mean * plume.patchiness(*place)) * np.exp(-2 * before)
        best = np.argmax(echo / np.square(at_m), axis=0)[None]
        return np.take_along_axis(echo, best, axis=0)[0], np.take_along_axis(at_m, best, axis=0)[0]

    def _echo_of(self, extinction_per_m: Floats) -> Floats:
        """Return the reflectivity of the surface, 0 to 1, whose echo is as strong as that of droplets."""
        return np.minimum(np.pi * _PULSE_M / _LIDAR_RATIO_SR * extinction_per_m, 1.0)

    def _weakened_as_promised(
        self, old: Cloud, whole: Cloud, echoes: Echoes, plume: Plume, to_ego: Matrix
    ) -> str | None:
        """Look at the returns that are weaker or lost, and at some that were left alone."""
        others = np.setdiff1d(returns(old)[::_SAMPLE], np.concatenate([echoes.rows, echoes.lost]))
        rows = np.sort(np.concatenate([np.setdiff1d(echoes.rows, echoes.moved), echoes.lost, others]))
        passed, (before, scale) = self._passed_by_steps(old, rows, plume, to_ego), reflectivity(old, rows)
        lost, power = np.isin(rows, echoes.lost), passed * self._floor.margin(before, ranges_m(old, rows))
        if (power[lost] > 1.03).any() or (power[~lost] < 0.97).any():
            return "a return above the noise floor was lost, or one below it stayed"
        after = whole.points[old.intensity_field][rows[~lost]].astype(np.float64) / scale
        rounding = 0.51 / scale if old.points.dtype[str(old.intensity_field)].kind in "iu" else 1e-6
        off = np.abs(after - (before * passed)[~lost]) > 0.02 * before[~lost] + rounding
        return f"{int(off.sum())} returns are not as weak as the plume makes them" if off.any() else None

    def _passed_by_steps(self, old: Cloud, rows: Rows, plume: Plume, to_ego: Matrix) -> Floats:
        """Return which share (n,) of the power of returns is left, by the midpoint rule; some at a time."""
        cuts = np.arange(_PART, len(rows), _PART)
        parts = [self._passed_part(old, part, plume, to_ego) for part in np.split(rows, cuts)]
        return np.concatenate(parts)

    def _passed_part(self, old: Cloud, rows: Rows, plume: Plume, to_ego: Matrix) -> Floats:
        origin = to_ego[:3, 3]
        direction, own_m = _directions(move(to_ego, old.xyz[rows].astype(np.float64)).T, origin)
        enter_m, leave_m = within(origin, direction, plume.box_m)
        enter_m, leave_m = np.maximum(enter_m, self.min_range_m), np.minimum(leave_m, own_m - _APART_M)
        step_m = np.maximum(leave_m - enter_m, 0.0) / _STEPS
        at_m = np.where(step_m > 0.0, enter_m, 0.0) + step_m * (np.arange(_STEPS) + 0.5)[:, None]
        mean = plume.mean_per_m(*places(origin, direction, at_m))
        return np.asarray(np.exp(-2.0 * np.where(step_m > 0.0, mean.sum(axis=0) * step_m, 0.0)))


def _places(cloud: Cloud, at: At, to_ego: Matrix) -> Floats:
    """Return where returns are in the ego's frame (3, n)."""
    x, y, z = columns(cloud, at)
    return np.stack([a * x + b * y + c * z + d for a, b, c, d in to_ego[:3].tolist()])


def _directions(place: Floats, origin: Floats) -> tuple[Floats, Floats]:
    """Return unit vectors (3, n) from the sensor towards places (3, n), and their distances (n,)."""
    direction = place - origin[:, None]
    own_m = np.sqrt(np.square(direction).sum(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        direction /= own_m
    return direction, own_m


def _passed(beams: _Beams, plume: Plume, origin: Floats) -> Floats:
    """Return which share (n,) of the power of each beam's return is left after the way there and back."""
    depths = [depth(plume, origin, part.direction, part.enter_m, part.leave_m) for part in beams.parts()]
    return np.asarray(np.exp(-2.0 * np.concatenate([np.empty(0), *depths])))
