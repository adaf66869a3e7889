# SPDX-License-Identifier: Apache-2.0
"""A sweep without compensation of the vehicle's motion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Matrix, UnknownTransform
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.ego_speed import RATE, EgoSpeed, speed_in
from mt_nodes.relations.mutations.lidar.angle_fields import write_angles
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud
from mt_nodes.relations.mutations.lidar.placement import RANGE_FIELDS, finite_range
from mt_nodes.relations.mutations.lidar.rays import (
    At,
    at_rows,
    blocks,
    columns,
    proof_of_move,
    ranges_m,
    refuse_whole_numbers,
    returns,
    write_range_fields,
)

#: Speed of the vehicle where its motion is unknown (assumed: town traffic), and below which it stands.
_DEFAULT_MPS, _STANDS_MPS, _STANDS_RADPS = 10.0, 0.05, 0.002
TIME_FIELDS = ("time", "t", "timestamp", "time_stamp", "offset_time")
#: A sweep takes 0.02 to 0.5 s; so the span of a time field gives its unit.
_SWEEP_S = (0.02, 0.5)
_UNITS_S = (1.0, 1e-6, 1e-9)
#: Returns that tell whether a sensor looks all around.
_SAMPLE = 8192
_SLACK_M, _SLACK = 1e-4, 2e-6

Columns = tuple[npt.NDArray[np.floating[Any]], ...]


@dataclass(frozen=True)
class MotionDistorted(EachCloud):
    """Puts every return where the moving sensor would have measured it, as in a sweep without de-skewing.

    At time t of the sweep, relative to its middle, the vehicle is at E(t) = (v t cos(ω t / 2), v t sin(ω t / 2)),
    rotated by ω t: an arc of constant speed and yaw rate, to second order. A point p of a cloud that is valid for the
    middle of the sweep was measured at E(t)⁻¹ p. t comes from the cloud's time field (in the unit that the span of a
    sweep implies), else from the azimuth of a clockwise sweep that begins and ends behind, so that t = 0 straight ahead
    (as in KITTI's clouds: A. Geiger et al., "Vision meets Robotics", IJRR 2013). Guaranteed: after de-skewing, every
    return is at its old place, within rounding. Obstacles move by up to v T / 2, and may be torn where the sweep
    begins.
    """

    speed_mps: float | None = param(
        None,
        low=-60.0,
        high=60.0,
        unit="m/s",
        neutral=0.0,
        help="of the vehicle, along its x axis; unset: it moves and turns as recorded, 10 m/s where that is unknown",
    )
    yaw_rate_degps: float = param(
        0.0, low=-120.0, high=120.0, unit="deg/s", neutral=0.0, help="of the vehicle, to the left, on top of that"
    )
    period_s: float = param(
        0.1, low=0.02, high=0.5, unit="s", aspect="fixed", help="of one sweep, for clouds without a time field"
    )
    ego_frame_id: str = param("base_link", help="frame of the vehicle, whose x axis points ahead")

    random = False

    def __post_init__(self) -> None:
        if self.speed_mps == self.yaw_rate_degps == 0.0:
            raise UsageError("got no speed and no yaw rate, expected one of them")

    @property
    def needs_motion(self) -> bool:
        """Whether the speed of the vehicle is not given."""
        return self.speed_mps is None

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Nothing is random; check that there are times, and take the ego's motion.

        Raises NotApplicable: the vehicle stands.
        """
        refuse_whole_numbers(cloud)
        returns(cloud)
        sweep_clock(cloud, self.period_s)
        self._to_ego(bundle, cloud)
        if self.speed_mps is not None:
            return {}
        ego = EgoSpeed.of(bundle, None, _DEFAULT_MPS)
        if abs(ego.speed_mps) < _STANDS_MPS and abs(ego.yaw_rate_radps) < _STANDS_RADPS and not self.yaw_rate_degps:
            raise NotApplicable(f"the vehicle stands ({ego.source}): a sweep is not distorted")
        return ego.draw()

    def _motion(self, draw: Draw) -> tuple[float, float]:
        """Return speed in m/s and yaw rate in rad/s."""
        return speed_in(draw, self.speed_mps), float(np.radians(self.yaw_rate_degps)) + draw.get(RATE, 0.0)

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Transform every return into the vehicle's frame, back by its motion, and into the sensor's frame again."""
        raw = cloud.raw.copy()
        points, to_ego = raw.view(cloud.points.dtype), self._to_ego(bundle, cloud)
        clock, motion = sweep_clock(cloud, self.period_s), self._motion(draw)
        for at in blocks(cloud):
            old = columns(cloud, at)
            new = _measured(to_ego, old, clock(at), *motion)
            for name, column in zip("xyz", new, strict=True):
                points[name][at] = column
            if any(map(cloud.single, RANGE_FIELDS)):
                write_range_fields(points, cloud, at, np.sqrt(_squares(new) / _squares(old)))
            write_angles(points, cloud, at)
        return cloud.with_raw(raw, height=cloud.height)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """De-skew the follow-up, in complex numbers, and compare."""
        if (broken := proof_of_move(old, new, at_rows(old, returns(old)))) is not None:
            return broken
        to_ego, clock, off = self._to_ego(bundle, old), sweep_clock(old, self.period_s), 0
        speed_mps, rate_radps = self._motion(draw)
        for at in blocks(old):
            (x, y, z), (a, b, c) = _moved(to_ego, columns(new, at)), _moved(to_ego, columns(old, at))
            time_s = clock(at)
            half = np.exp(0.5j * rate_radps * time_s)
            back = (x + 1j * y) * half * half + speed_mps * time_s * half
            slack = _SLACK_M + _SLACK * ranges_m(new, at)
            off += int(np.count_nonzero(~((np.abs(back - (a + 1j * b)) <= slack) & (np.abs(z - c) <= slack))))
        return f"{off} returns are not where the motion puts them" if off else None

    def _to_ego(self, bundle: Bundle, cloud: Cloud) -> Matrix:
        try:
            return bundle.transforms.lookup(self.ego_frame_id, cloud.frame_id)
        except UnknownTransform as error:
            raise UsageError(f"ego_frame_id '{self.ego_frame_id}', cloud {cloud.topic}: {error}") from error


def sweep_clock(cloud: Cloud, period_s: float) -> Callable[[At], Floats]:
    """Return the measurement times of points (n,), in seconds from the middle of the sweep.

    They come from the cloud's time field, else from azimuth, for a clockwise sweep of ``period_s`` that begins behind.
    Raises NotApplicable: the time field spans no sweep in any unit; or there is none, and the sensor does not turn,
    since its returns lie on one side: a raster or a flash has another order of time.
    """
    name = next(filter(cloud.single, TIME_FIELDS), None)
    found = None if name is None else finite_range(cloud.points[name])
    if name is None or found is None:
        _refuse_one_side(cloud)
        return lambda at: _azimuth_rad(cloud, at) * (-period_s / (2.0 * np.pi))
    span, middle = found[1] - found[0], sum(found) / 2.0
    unit = next((u for u in _UNITS_S if _SWEEP_S[0] <= span * u <= _SWEEP_S[1]), None)
    if unit is None:
        raise NotApplicable(
            f"field '{name}' of {cloud.topic} spans {span:g}, which is no sweep of {_SWEEP_S[0]:g} to "
            f"{_SWEEP_S[1]:g} s in s, µs or ns"
        )
    return lambda at: (cloud.points[name][at].astype(np.float64) - middle) * unit


def _refuse_one_side(cloud: Cloud) -> None:
    """Raise NotApplicable for a cloud whose returns leave half of the horizon empty."""
    azimuth = _azimuth_rad(cloud, slice(None, None, 1 + len(cloud) // _SAMPLE))
    azimuth = np.sort(azimuth[np.isfinite(azimuth) & (azimuth != 0.0)])
    gap = float(np.diff(azimuth, append=azimuth[:1] + 2.0 * np.pi).max(initial=0.0))
    if gap > np.pi:
        raise NotApplicable(
            f"{cloud.topic} has no time field ({', '.join(TIME_FIELDS)}), and its returns leave {np.degrees(gap):.0f} "
            "degrees empty: no revolution tells when each was measured"
        )


def _measured(to_ego: Matrix, sensor: Columns, time_s: Floats, speed_mps: float, rate_radps: float) -> Columns:
    """Return where the moving sensor measured points that are given for the middle of the sweep."""
    x, y, z = _moved(to_ego, sensor)
    # Single precision is exact to a hundredth of a millimetre here, and takes a tenth of the time.
    half = (rate_radps / 2.0 * time_s).astype(np.float32)
    ahead_m, cosine, sine = speed_mps * time_s, np.cos(half), np.sin(half)
    x, y = x - ahead_m * cosine, y - ahead_m * sine
    cosine, sine = np.cos(2.0 * half), np.sin(2.0 * half)
    return _moved(np.asarray(np.linalg.inv(to_ego)), (cosine * x + sine * y, cosine * y - sine * x, z))


def _azimuth_rad(cloud: Cloud, at: At) -> Floats:
    x, y = (np.ascontiguousarray(cloud.points[name][at], dtype=np.float32) for name in "xy")
    return np.arctan2(y, x).astype(np.float64)


def _moved(matrix: Matrix, xyz: Columns) -> Columns:
    x, y, z = xyz
    return tuple(a * x + b * y + c * z + shift for a, b, c, shift in matrix[:3].tolist())


def _squares(xyz: Columns) -> Floats:
    x, y, z = xyz
    return np.asarray(x * x + y * y + z * z)
