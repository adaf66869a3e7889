# SPDX-License-Identifier: Apache-2.0
"""Corruptions of one object's returns: echoes lost, thinned, cut out, jittered along their rays.

They follow 3D_Corruptions_AD (Y. Dong et al., "Benchmarking Robustness of 3D Object Detection to Common Corruptions in
Autonomous Driving", CVPR 2023: local density, cut-out and noise of a box) and Robo3D (L. Kong et al., ICCV 2023:
incomplete echo). Pictures stay: what fails is the echo, not the object.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erf

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.errors import NoEffect
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects, Volume
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Matrix
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.joint.attenuation import DARKEST, THRESHOLD_TO_NOISE, reflectivities
from mt_nodes.relations.mutations.keyed_draws import new_key
from mt_nodes.relations.mutations.lidar.drawn_returns import RowsLost, rows_of
from mt_nodes.relations.mutations.lidar.points_jittered import PointsJittered
from mt_nodes.relations.mutations.lidar.rays import ranges_m, refuse_whole_numbers, rows_of_share, smallest
from mt_nodes.relations.mutations.objects.in_scene import FOCUS_M, Sensor, ego_from
from mt_nodes.relations.mutations.objects.object_exchange import CHOICES, SIZES, objects_of, search_of
from mt_nodes.relations.mutations.objects.object_removed import standing_within
from mt_nodes.world.scene.returns import lengths, places

#: Standard deviations by which a number of lost echoes may be off: one frame in a billion would be refused wrongly.
_SIGMAS = 6.0
#: An object that loses more of its returns may not be found any more: assumed.
_DEMANDED_SHARE = 0.5
_HEIGHT_M = 5.0


@dataclass(frozen=True)
class ObjectReturns(RowsLost):
    """Base: changes the returns of the nearest object ahead, in every cloud that has some.

    The draw holds the object's outline (k, 2) and the ground (5,) around it, in the ego's frame.
    """

    chosen_by: str = param("auto", choices=CHOICES, help="labels, or what stands in the cloud; auto: labels if any")
    size: str = param("any", choices=tuple(SIZES), help="what is looked for: as large as a person, a car, or any")
    ahead_m: tuple[float, float] = param(
        (4.0, 30.0), low=0.0, high=200.0, unit="m", aspect="place", help="nearest and farthest x"
    )
    aside_m: float = param(
        6.0, low=0.5, high=100.0, unit="m", aspect="place", help="farthest from the path, to either side"
    )
    least_points: int = param(30, low=3, high=100_000, aspect="fixed", help="returns that make an object")
    largest_m: float = param(6.0, low=0.5, high=50.0, unit="m", aspect="fixed", help="what is longer is no object")
    ego_frame_id: str = param("base_link", help="frame on the road under the ego, x ahead, z up")

    @abstractmethod
    def draw_returns(self, rng: np.random.Generator, cloud: Cloud, own: Rows) -> Draw:
        """Draw from the object's returns (n,), rows of a cloud."""

    @abstractmethod
    def prove_returns(self, old: Cloud, new: Cloud, draw: Draw, own: Rows) -> str | None:
        """Prove what is promised of the object's returns (n,); that all else is unchanged is proven elsewhere."""

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Find the object in the first cloud, and draw from its returns in this one."""
        search = search_of(self.size, self.ahead_m, self.aside_m, self.least_points, self.largest_m)
        to_ego = self._to_ego(bundle, bundle.clouds[0])
        outline, plane = next(objects_of(bundle, to_ego, search, self.chosen_by, self.ego_frame_id))
        drawn: Draw = {"outline_m": outline, "plane": plane}
        own = self.own(bundle, cloud, drawn)
        if len(own) >= self.least_points:
            return {**drawn, **self.draw_returns(rng, cloud, own)}
        raise NoEffect(f"{len(own)} returns of {cloud.topic} are the object's, {self.least_points} are needed")

    def own(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Rows:
        """Return the object's returns (n,) in a cloud, rising: what stands on the ground within its outline."""
        return standing_within(cloud, self._to_ego(bundle, cloud), draw["outline_m"], draw["plane"])

    def prove_lost(self, bundle: Bundle, old: Cloud, draw: Draw) -> str | None:
        """Prove that only returns of the object are lost, and the right ones."""
        own, rows = self.own(bundle, old, draw), rows_of(draw)
        if not np.isin(rows, own).all():
            return "a return that is not the object's is lost"
        return self.prove_returns(old, old, draw, own)

    def volumes(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> tuple[Volume, ...]:
        """Return the object's place if it loses so much that it cannot be demanded."""
        lost = sum(len(draw["rows"]) for draw in draws.values())
        count = sum(len(self.own(bundle, cloud, draws[cloud.topic])) for cloud in bundle.clouds)
        return (self._place(draws),) if lost > _DEMANDED_SHARE * count else ()

    def _place(self, draws: Mapping[str, Draw]) -> Volume:
        first = next(iter(draws.values()))
        outline, ground_m = first["outline_m"], float(first["plane"][0])
        (x0, y0), (x1, y1) = outline.min(axis=0).tolist(), outline.max(axis=0).tolist()
        center = ((x0 + x1) / 2, (y0 + y1) / 2, ground_m + _HEIGHT_M / 2)
        corners = tuple((float(x), float(y)) for x, y in outline.tolist())
        return Volume(self.ego_frame_id, center, (x1 - x0, y1 - y0, _HEIGHT_M), label="object", outline_m=corners)

    def _to_ego(self, bundle: Bundle, cloud: Cloud) -> Matrix:
        return ego_from(bundle, cloud.frame_id, self.ego_frame_id, cloud.topic)


@dataclass(frozen=True)
class ObjectEchoesLost(ObjectReturns):
    """Loses echoes of one object, the weakest first: the same object with a darker paint (Robo3D's incomplete echo).

    Its reflectivity is multiplied by one factor a < 1, so that on average ``share`` of its returns fall below the
    receiver's threshold: an echo of s thresholds is kept with probability ``Φ(TNR (a s - 1))``, where s follows from
    the return's intensity and range (see ``object_added``). Robo3D deletes 75, 85 or 95 % of a vehicle's returns at
    random; with the intensities of a real surface, dark and far parts go first.

    Guaranteed: only returns of the object are lost, as many as the formula says within six standard deviations; none
    whose echo stays far above the threshold, and all whose echo falls far below it; the rest remains byte for byte. An
    object that loses more than half of its returns is not demanded.
    """

    share: float = param(0.5, low=0.01, high=0.95, neutral=0.01, help="share of its returns that are lost on average")
    max_range_m: float = param(120.0, low=1.0, high=1000.0, unit="m", aspect="fixed", help="the sensor's range")
    sensitivity: float = param(
        0.2, low=0.001, high=1.0, aspect="fixed", help="brightness that is seen half of the time at max_range_m"
    )

    def draw_returns(self, rng: np.random.Generator, cloud: Cloud, own: Rows) -> Draw:
        """Find the factor by bisection, and draw which echoes are lost."""
        signal = self._signals(cloud, own)
        low, high = 0.0, 2.0 / float(signal.min())
        for _ in range(50):
            factor = (low + high) / 2.0
            lost = float(np.mean(1.0 - self._kept(factor * signal)))
            low, high = (factor, high) if lost > self.share else (low, factor)
        chosen = rng.random(len(own)) >= self._kept(high * signal)
        return {"factor": high, "rows": smallest(own[chosen])}

    def prove_returns(self, old: Cloud, new: Cloud, draw: Draw, own: Rows) -> str | None:
        """Compare what is lost with the law: its sum, and its ends."""
        lost = np.isin(own, rows_of(draw))
        x, y, z = places(old, own).T
        bright = np.full(len(own), DARKEST) if old.intensity_field is None else self._bright(old, own)
        square = np.maximum(x * x + y * y + z * z, FOCUS_M**2)
        strength = draw["factor"] * bright / self.sensitivity * self.max_range_m**2 / square
        keep = 0.5 * (1.0 + erf(THRESHOLD_TO_NOISE * (strength - 1.0) / np.sqrt(2.0)))
        expected, spread = float((1.0 - keep).sum()), float(np.sqrt((keep * (1.0 - keep)).sum()))
        if abs(int(lost.sum()) - expected) > _SIGMAS * spread + 1.0:
            return f"{int(lost.sum())} echoes lost, the formula says {expected:.0f} ± {spread:.0f}"
        if abs(expected - self.share * len(own)) > 0.02 * len(own) + 1.0:
            return f"{expected:.0f} of {len(own)} echoes are lost on average, expected {self.share:.0%}"
        sure = _SIGMAS / THRESHOLD_TO_NOISE
        if lost[strength > 1.0 + sure].any() or not lost[strength < 1.0 - sure].all():
            return "a strong echo is lost, or a weak one kept"
        return None

    def _signals(self, cloud: Cloud, own: Rows) -> Floats:
        """Return the strength of the object's echoes (n,), in thresholds."""
        sensor = Sensor(0.0, self.max_range_m, self.sensitivity)
        bright = np.full(len(own), DARKEST) if cloud.intensity_field is None else self._bright(cloud, own)
        return sensor.signal(bright, ranges_m(cloud, own))

    def _bright(self, cloud: Cloud, own: Rows) -> Floats:
        found = reflectivities(cloud, own, ranges_m(cloud, own).astype(np.float32), DARKEST)
        return np.asarray(found, dtype=np.float64)

    def _kept(self, signal: Floats) -> Floats:
        return Sensor(0.0, np.inf, self.sensitivity).detection_probability(signal, np.zeros(len(signal)))


@dataclass(frozen=True)
class ObjectThinned(ObjectReturns):
    """Loses a share of one object's returns, all equally likely: a lower density in its box.

    Guaranteed: exactly ``round(share n)`` of its n returns are lost, at least one; the rest remains byte for byte, in
    order. An object that loses more than half of its returns is not demanded.
    """

    share: float = param(0.3, low=0.01, high=0.95, neutral=0.01, help="share of its returns that are lost")

    def draw_returns(self, rng: np.random.Generator, cloud: Cloud, own: Rows) -> Draw:
        """Choose the returns to lose."""
        return {"rows": rows_of_share(rng, own, self.share)}

    def prove_returns(self, old: Cloud, new: Cloud, draw: Draw, own: Rows) -> str | None:
        """Count them."""
        return _wrong_count(rows_of(draw), own, self.share)


@dataclass(frozen=True)
class ObjectCutOut(ObjectReturns):
    """Loses the returns of one object around one of them, drawn at random: a hole as of dirt, or of a mirror.

    The hole is a ball around that return, which holds ``share`` of the object's returns.

    Guaranteed: exactly ``round(share n)`` of its n returns are lost, at least one, and none is nearer to that return
    than they; the rest remains byte for byte, in order. An object that loses more than half is not demanded.
    """

    share: float = param(0.2, low=0.01, high=0.95, neutral=0.01, help="share of its returns that are cut out")

    def draw_returns(self, rng: np.random.Generator, cloud: Cloud, own: Rows) -> Draw:
        """Choose the middle of the hole, and find its neighbours."""
        middle = int(own[rng.integers(len(own))])
        away = self._away_m(cloud, own, middle)
        nearest = np.argsort(away, kind="stable")[: max(1, round(self.share * len(own)))]
        return {"middle": middle, "rows": smallest(np.sort(own[nearest]))}

    def prove_returns(self, old: Cloud, new: Cloud, draw: Draw, own: Rows) -> str | None:
        """Compare the distances of lost and of remaining returns from the middle."""
        rows = rows_of(draw)
        left = np.setdiff1d(own, rows)
        away = [
            np.linalg.norm(places(old, some) - places(old, np.array([draw["middle"]])), axis=1) for some in (rows, left)
        ]
        if len(left) and away[0].max() > away[1].min() + 1e-6:
            return f"a return {away[0].max():.2f} m from the middle is lost, one {away[1].min():.2f} m from it is not"
        return _wrong_count(rows, own, self.share)

    def _away_m(self, cloud: Cloud, own: Rows, middle: int) -> Floats:
        return lengths(places(cloud, own) - places(cloud, np.array([middle])))


@dataclass(frozen=True)
class ObjectJittered(ObjectReturns, PointsJittered):
    """Moves one object's returns at random, along their beams or in space, as ``points_jittered`` moves all.

    Guaranteed: only returns of the object move, within the bound, and along the beam where promised; range fields
    follow; nothing else changes.
    """

    size_m: float = param(
        0.02, low=1e-6, high=5.0, unit="m", neutral=1e-06, help="standard deviation, half width or length of moves"
    )

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Move the drawn returns."""
        return PointsJittered.change_cloud(self, bundle, cloud, draw)

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report the number of moved returns."""
        return PointsJittered.describe_change(self, bundle, clouds, draws)

    def draw_returns(self, rng: np.random.Generator, cloud: Cloud, own: Rows) -> Draw:
        """Choose the returns that move, and a key for their offsets."""
        refuse_whole_numbers(cloud)
        rows = smallest(own) if self.share == 1.0 else rows_of_share(rng, own, self.share)
        return {"rows": rows, "offset_key": new_key(rng)}

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Prove the moves as ``points_jittered`` does, and that they are the object's."""
        return self.prove_lost(bundle, old, draw) or PointsJittered.prove_cloud(self, bundle, old, new, draw)

    def prove_returns(self, old: Cloud, new: Cloud, draw: Draw, own: Rows) -> str | None:
        """Count the moved returns."""
        return _wrong_count(rows_of(draw), own, self.share)


def _wrong_count(rows: Rows, own: Rows, share: float) -> str | None:
    expected = max(1, round(share * len(own)))
    return None if len(np.unique(rows)) == expected else f"{len(rows)} of {len(own)} returns, expected {expected}"
