# SPDX-License-Identifier: Apache-2.0
"""Spray behind a vehicle on a wet road."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from scipy import special

from mt_nodes.base.arrays import Floats, Mask, Rows
from mt_nodes.base.errors import NoEffect, NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Matrix, move
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.ego_speed import SOURCE, EgoSpeed
from mt_nodes.relations.mutations.joint.beam_parts import firing_of, is_last_of_several
from mt_nodes.relations.mutations.joint.chance import gaussian, shares_at
from mt_nodes.relations.mutations.joint.echoes import Echoes, moved_points, proof_of_echoes, reflectivity, with_echoes
from mt_nodes.relations.mutations.joint.plume import Plume
from mt_nodes.relations.mutations.joint.plume_beams import (
    Ways,
    beams_through,
    known_beams,
    passed_by_steps,
    reflectivity_of,
    strongest_echoes,
    ways_to,
)
from mt_nodes.relations.mutations.joint.proof import proof_of_losses
from mt_nodes.relations.mutations.joint.reception import WeakenedReturns, with_sensor
from mt_nodes.relations.mutations.joint.spray_in_pictures import SprayInPictures, place_of
from mt_nodes.relations.mutations.joint.vehicle_backs import NEARER_M, VehicleBack, nearest_vehicle
from mt_nodes.relations.mutations.lidar.each_cloud import marked
from mt_nodes.relations.mutations.lidar.lost_returns import count_lost
from mt_nodes.relations.mutations.lidar.rays import (
    at_rows,
    ranges_m,
    refuse_whole_numbers,
    returns,
    rounding_m,
    smallest,
)
from mt_nodes.relations.mutations.lidar.strength_proof import power_db, proof_of_strengths, stronger_than
from mt_nodes.relations.mutations.objects.in_scene import ego_from

#: Width of the film that the tyres of both sides roll over, and cross-section of the fresh plume.
_TRACKS_M, _SECTION_M2 = 0.4, 1.5
#: Mean diameter of droplets times the speed of the tyre: 0.8 mm at 6 m/s.
_DIAMETER_M2_PER_S = 0.8e-3 * 6.0
#: The proof checks one in so many of the unchanged returns, and so many at a time, to save memory.
_SAMPLE, _PART = 16, 8192
#: Returns that lose less than 0.1 % stay unchanged.
_NOTICED = 0.999
#: How much two quadratures of the plume may differ, as a share of the light before it.
_LOSS_SLACK = 0.02
#: Speed where nobody knows the ego's (assumed), and the least, in m/s: nothing flies behind a vehicle that stands.
_USUAL_MPS, _LEAST_MPS = 20.0, 0.01


@dataclass(frozen=True)
class Spray(WeakenedReturns, SprayInPictures):
    """Adds a plume of spray behind the nearest vehicle ahead: false returns and a veil, weaker returns behind it.

    Spray behind vehicles makes returns of its own and hides others (SemanticSpray, A. Piroli et al., RA-L 2023;
    J. R. Vargas Rivero et al., Sensors 21, 2021). Tyres lift the share ``airborne_share`` of the film they roll over,
    0.4 m wide in all, into a cross-section of 1.5 m²; droplets come to rest in the air at once, so that a volume of
    air holds c = share · 0.4 m · water / 1.5 m² of water at any speed. Its extinction is α = 3 c / d (cross-section of
    spheres, extinction efficiency 2), with a mean diameter d = 0.8 mm · 6 m/s / speed (tyre spray in the laboratory:
    800 µm, falling with Weber number to the power −1/2, thus with speed). α falls by 1/e each ``length_m`` behind
    and ``height_m`` up, and as a Gaussian aside; around this mean, patches of 0.3 m are exponentially distributed,
    rest in the air and so fall back behind the vehicle from frame to frame.

    Pictures: what lies behind the plume passes exp(−∫ α), the rest is the drops' light (Koschmieder's law): drops are
    larger than both wavelengths, so that cameras and LiDARs meet the same α, in the same patches. Both end at the same
    depth. That thick spray has 0.85 of the horizon's light is assumed.

    A beam is weakened by exp(−2 ∫ α). Its echo from a patch at range R is that of a surface of reflectivity
    π (α / 18.8 sr) · 1.5 m (lidar ratio of droplets at 905 nm: E. O'Connor et al., J. Atmos. Oceanic Technol. 21, 2004;
    pulse of 10 ns), weakened likewise. The strongest echo of a beam, in the receiver's noise, is reported where it
    exceeds the detection threshold and what is left of the return behind, as in bad air; without it, a return is lost
    by chance (:class:`~mt_nodes.relations.mutations.joint.reception.WeakenedReturns`). Assumptions, for want of
    published numbers: share and shape of the plume, the patches, and that echo and return of a beam share their noise,
    so that more spray brings no return back. One cloud does not tell whether a vehicle moves:
    the nearest thing of a vehicle's size within ``aside_m`` of the ego's straight path is taken for one that does,
    which with the default may be one in the next lane, or a parked one; about 1.75 m leaves the ego's own lane (lanes
    are 3 to 3.75 m wide). Without ``speed_mps`` it is taken to drive as fast as the ego does, and 20 m/s where nobody
    knows that.

    Guaranteed: only beams through the plume change; false returns are on their beams, inside the plume, nearer than the
    return before and no stronger than the densest patch and the noise drawn for them allow; the others weaken by the
    integral of α, computed by another quadrature, and are lost where the number drawn for them exceeds their chance of
    detection; in pictures, only lines of sight through the plume change, by its optical depth, added up at other
    places.
    """

    radar_reason = (
        "a plume of some metres weakens a wave of 77 GHz by less than 1 dB there and back, as rain of 150 mm/h would "
        "(ITU-R P.838-3: 41 dB/km)"
    )

    water_mm: float = param(
        1.0, low=0.001, high=10.0, unit="mm", neutral=0.001, help="depth of the water film on the road"
    )
    speed_mps: float | None = param(
        None,
        low=1.0,
        high=60.0,
        unit="m/s",
        aspect="fixed",
        help="speed of the vehicle ahead over the road; if unset, the ego's own, that follows it, else 20",
    )
    airborne_share: float = param(
        0.05, low=0.0001, high=1.0, aspect="fixed", help="share of the film under the tyres that flies"
    )
    length_m: float = param(4.0, low=0.5, high=50.0, unit="m", aspect="fixed", help="decay length behind the vehicle")
    height_m: float = param(0.8, low=0.1, high=5.0, unit="m", aspect="fixed", help="decay height over the road")
    ahead_m: tuple[float, float] = param(
        (5.0, 50.0), low=2.0, high=150.0, unit="m", aspect="place", help="where its back may be"
    )
    aside_m: float = param(
        4.0,
        low=0.5,
        high=20.0,
        unit="m",
        aspect="place",
        help="how far from the ego's path its middle may be (own lane: 1.75)",
    )
    least_points: int = param(50, low=5, high=100_000, aspect="fixed", help="returns the vehicle must have")
    min_range_m: float = param(
        1.0, low=0.1, high=50.0, unit="m", aspect="fixed", help="the sensor reports nothing nearer"
    )
    ego_frame_id: str = param("base_link", help="frame on the road under the ego, x ahead, z up")

    def __post_init__(self) -> None:
        if self.ahead_m[0] >= self.ahead_m[1]:
            raise UsageError(f"ahead_m: got {self.ahead_m[0]:g} to {self.ahead_m[1]:g}, expected near before far")

    @property
    def needs_motion(self) -> bool:
        """Whether the speed is the ego's own."""
        return self.speed_mps is None

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Any:
        """Choose the pattern of an episode, and when and where it begins."""
        return int(rng.integers(1 << 63)), bundle.stamp_ns, place_of(bundle)

    def find_plume(self, bundle: Bundle, state: Any) -> Draw:
        """Return the vehicle, under ``vehicle`` (4,), its speed, and the pattern with the way that it has gone.

        Raises NotApplicable: there is no cloud, or no vehicle ahead in it.
        """
        if not bundle.known_clouds:
            raise NotApplicable(f"bundle {bundle.index} has no cloud to find a vehicle ahead in")
        cloud = bundle.known_clouds[0]
        to_ego = self._to_ego(bundle, cloud)
        ahead = self._ahead(ways_to(cloud, to_ego), to_ego)
        vehicle = nearest_vehicle(ahead, self.ahead_m, self.aside_m, self.least_points)
        ego, (key, began_ns, place) = EgoSpeed.of(bundle, self.speed_mps, _USUAL_MPS), state
        drift_m = ego.speed_mps * (bundle.stamp_ns - began_ns) * 1e-9
        if self.speed_mps is None and place is not None and (now := place_of(bundle)) is not None:
            drift_m = float(np.linalg.norm(now - place))
        speed_mps = max(ego.speed_mps, _LEAST_MPS)
        return {
            "vehicle": np.array(astuple(vehicle)),
            "key": key,
            "drift_m": drift_m,
            "speed_mps": speed_mps,
            SOURCE: ego.source,
        }

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Find the plume (:meth:`plume_draw`) and its echoes: rows (n,), ranges, intensities, 0 to 1.

        Raises NoEffect: no beam loses a noticeable share of its power to it.
        """
        refuse_whole_numbers(cloud)
        to_ego = self._to_ego(bundle, cloud)
        reflectivity(cloud, at_rows(cloud, returns(cloud)))
        draw = self.plume_draw(bundle, state)
        plume = self.plume(draw)
        beams, passed = beams_through(cloud, to_ego, plume, self.min_range_m)
        if not (passed < _NOTICED).any():
            raise NoEffect(
                f"none of {len(beams.rows)} beams of {cloud.topic} through the plume behind the vehicle "
                f"{plume.vehicle.rear_x_m:.1f} m ahead loses {1.0 - _NOTICED:.1%} of its power"
            )
        # One number for every point: with another plume the same beams draw the same ones.
        draw, chance = draw | self.draw_reception(rng, cloud), rng.random(len(cloud), dtype=np.float32)
        receiver, values = with_sensor(self, draw["sensor"]).receiver, (reflectivity(cloud, beams.rows), beams.own_m)
        soft, soft_m = strongest_echoes(beams, plume, to_ego[:3, 3], chance, receiver.focus_m)
        left, numbers = self.received(cloud, beams.rows, (*values, passed), draw)
        peak = receiver.signal(soft, soft_m) + gaussian(numbers[:, 1]) * np.float32(receiver.noise)
        least, last = np.maximum(left, np.float32(1.0)), is_last_of_several(cloud, beams.rows)
        if last is not None:
            least[last & (left >= 1.0)] = np.inf
        wins = np.flatnonzero(peak > least)
        draw["rows"], draw["range_m"] = smallest(beams.rows[wins]), soft_m[wins].astype(np.float32)
        draw["intensity"] = np.minimum(receiver.reflectivity(peak[wins], soft_m[wins]), 1.0).astype(np.float32)
        return draw

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Put the echoes in."""
        return with_echoes(cloud, self.echoes(bundle, cloud, draw))

    def echoes(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Echoes:
        """Return the changes of the beams through the plume."""
        plume, to_ego = self.plume(draw), self._to_ego(bundle, cloud)
        rows, own_m, passed = known_beams(cloud, to_ego, plume, self.min_range_m)
        moved = draw["rows"].astype(np.int64)
        rho = reflectivity(cloud, rows)
        intensity, softer = rho * passed, np.searchsorted(rows, moved)
        lost, touched = self.lost(cloud, rows, (rho, own_m, passed), draw), passed < _NOTICED
        intensity[softer], lost[softer], touched[softer] = draw["intensity"], False, True
        touched &= ~lost
        range_m = draw["range_m"].astype(np.float64)
        return Echoes(rows[touched], intensity[touched], moved, range_m, rows[lost])

    def plume(self, draw: Draw) -> Plume:
        """Return the plume of a draw."""
        water = self.airborne_share * _TRACKS_M * self.water_mm * 1e-3 / _SECTION_M2
        extinction = 3.0 * water * float(draw["speed_mps"]) / _DIAMETER_M2_PER_S
        vehicle = VehicleBack(*draw["vehicle"].tolist())
        return Plume(vehicle, extinction, self.length_m, self.height_m, float(draw["drift_m"]), int(draw["key"]))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Check places and strengths of the false returns, and the losses of the others by another quadrature."""
        echoes, plume = self.echoes(bundle, old, draw), self.plume(draw)
        broken, whole = proof_of_echoes(old, new, echoes)
        if broken is not None:
            return broken
        to_ego = self._to_ego(bundle, old)
        range_m = ranges_m(whole, draw["rows"])
        if not (np.abs(range_m - draw["range_m"]) <= rounding_m(old, range_m) + 1e-5).all():
            return "a false return is not where it was drawn"
        place = move(to_ego, whole.xyz[echoes.moved].astype(np.float64))
        low, high = plume.box_m
        if not ((place >= low - 1e-3) & (place <= high + 1e-3)).all():
            return "a false return is outside the plume"
        densest = reflectivity_of(plume.mean_per_m(*place.T) * plume.patchiness(*place.T))
        own = with_sensor(self, draw["sensor"])
        threshold = self.sensitivity * np.square(np.maximum(range_m, own.focus_m) / own.max_range_m)
        if (draw["intensity"] < np.minimum(threshold, 1.0) * (1.0 - 1e-3)).any():
            return "a false return is weaker than the sensor detects"
        number = shares_at(draw["noise_key"], firing_of(old, slice(0), echoes.moved))
        noise = np.maximum(special.ndtri(number[:, 1]) / own.receiver.threshold_to_noise, 0.0)
        # A place on the edge of a patch may be rounded into its neighbour: few are.
        brightest = 1.01 * densest + noise * threshold
        if stronger_than(whole, echoes.moved, brightest, range_m).sum() > 2 + 0.001 * len(brightest):
            return "a false return is stronger than its patch and the noise allow"
        broken = proof_of_strengths(whole, echoes.moved, draw["intensity"].astype(np.float64), range_m)
        if broken is not None:
            return f"{broken}, which was drawn for a false return"
        if (range_m < self.min_range_m - 1e-3).any():
            return f"a false return is nearer than {self.min_range_m:g} m"
        return self._weakened_as_promised(old, whole, echoes, (plume, to_ego), draw)

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report the number of lost returns, and the places of false ones."""
        added = moved_points(bundle, draws)
        numbers = {
            "returns_lost": count_lost(bundle, clouds),
            "returns_scattered": float(sum(map(len, added.values()))),
        }
        return Effects(numbers=numbers, added_points=added)

    def _to_ego(self, bundle: Bundle, cloud: Cloud) -> Matrix:
        return ego_from(bundle, cloud.frame_id, self.ego_frame_id, cloud.topic)

    def _ahead(self, ways: list[Ways], to_ego: Matrix) -> Floats:
        """Return the points (n, 3) in the ego's frame that may belong to a vehicle."""
        nearest_m = self.ahead_m[0] - NEARER_M - to_ego[0, 3]
        return np.asarray(np.concatenate([way[:, way[0] >= nearest_m] for _, way in ways], axis=1).T + to_ego[:3, 3])

    def _weakened_as_promised(
        self, old: Cloud, whole: Cloud, echoes: Echoes, seen: tuple[Plume, Matrix], draw: Draw
    ) -> str | None:
        """Check the weaker and lost returns, and some of the unchanged ones."""
        chosen, lost_mark = marked(len(old), returns(old)[::_SAMPLE]), marked(len(old), echoes.lost)
        chosen[echoes.rows], chosen[echoes.moved] = True, False
        rows = np.flatnonzero(chosen | lost_mark)
        parts = np.split(rows, np.arange(_PART, len(rows), _PART))
        found = (self._part_as_promised(old, whole, part, lost_mark[part], seen, draw) for part in parts)
        return next(filter(None, found), None)

    def _part_as_promised(
        self, old: Cloud, whole: Cloud, rows: Rows, lost: Mask, seen: tuple[Plume, Matrix], draw: Draw
    ) -> str | None:
        """Check some thousand of them."""
        passed, before = passed_by_steps(old, rows, *seen, self.min_range_m), reflectivity(old, rows)
        slack_db = 10.0 * np.log10(1.0 + _LOSS_SLACK / np.maximum(passed, _LOSS_SLACK))
        receiver, decibels = with_sensor(self, draw["sensor"]).receiver, (power_db(before), power_db(passed))
        broken = proof_of_losses(receiver, old, rows, decibels, lost, draw["noise_key"], slack_db)
        if broken is not None:
            return broken
        stay, range_m, passed = ~lost, ranges_m(old, rows[~lost]), passed[~lost]
        broken = proof_of_strengths(whole, rows[stay], before[stay] * passed, range_m, slack_db[stay], old)
        return broken and f"{broken}, weakened by the plume"
