# SPDX-License-Identifier: Apache-2.0
"""Places and fields of added LiDAR points: shared by mutations that add returns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Ints, Mask
from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.data.messages import Bundle, Cloud, Points
from mt_nodes.data.regions import Region, RegionUnavailable
from mt_nodes.data.transforms import Matrix, UnknownTransform
from mt_nodes.relations.mutations.lidar.angle_fields import write_angles

#: Fields with a point's distance, in the driver's unit.
RANGE_FIELDS = ("range", "distance")
_ROUNDS = 64
_TRIES_PER_RAY = 8
#: Drawn points keep this much more than the margin, so that rounding never decides a guarantee.
_SLACK_M = 1e-6


@dataclass(frozen=True)
class Space:
    """The space outside a region and its margin, within one sensor's range.

    Distances to the region and the ego radius are horizontal in the region's frame, so that a region with height limits
    counts as a column; the range is the 3-D distance from the sensor.
    """

    region: Region
    to_region: Matrix
    margin_m: float
    within_m: float
    max_range_m: float
    ego_radius_m: float

    def outside(self, xyz: Floats) -> Mask:
        """Return which points (N, 3) of the sensor's frame lie outside the region and its margin."""
        return self.region.beyond(self._plan(xyz), self.margin_m + _SLACK_M)

    def allows(self, xyz: Floats) -> Mask:
        """Return at which points (N, 3) of the sensor's frame a noise point is allowed."""
        plan, sensor = self._plan(xyz), self.to_region[:2, 3]
        allowed = self.region.beyond(plan, self.margin_m + _SLACK_M)
        if self.within_m < np.inf:
            allowed &= ~self.region.beyond(plan, self.margin_m + self.within_m)
        x, y = plan[:, 0] - sensor[0], plan[:, 1] - sensor[1]
        allowed &= x * x + y * y >= self.ego_radius_m**2
        squares = xyz * xyz
        # Slack, because squares may round to another side of the limit than the proof's norms.
        allowed &= squares[:, 0] + squares[:, 1] + squares[:, 2] <= limit_m2(self)
        return np.asarray(allowed)

    def window(self) -> tuple[list[float], list[float]]:
        """Return the lowest and highest (x, y) of the region's frame at which points are allowed.

        Raises NotApplicable: the band around the region is out of the sensor's range.
        """
        sensor, bounds, reach = self.to_region[:2, 3].tolist(), self.region.bounds, self.margin_m + self.within_m
        low = [max(at - self.max_range_m, edge - reach) for at, edge in zip(sensor, bounds[:2], strict=True)]
        high = [min(at + self.max_range_m, edge + reach) for at, edge in zip(sensor, bounds[2:], strict=True)]
        if not (low[0] < high[0] and low[1] < high[1]):
            raise NotApplicable(f"region '{self.region.name}' is beyond the range of {self.max_range_m:g} m")
        return low, high

    def lift(self, xy: Floats, z_m: Floats) -> Floats:
        """Return the sensor-frame points (N, 3) of height ``z_m`` above ``xy`` (N, 2) of the region's frame.

        Raises NotApplicable: the sensor's z axis lies in the region's plane, so that no such point exists.
        """
        (a, b, u, shift_x), (c, d, v, shift_y) = self.to_region[:2].tolist()
        turned = a * d - b * c
        if abs(turned) < 1e-3:
            raise NotApplicable(f"the sensor's z axis lies in the ground plane of frame '{self.region.frame_id}'")
        # Two equations in two unknowns, solved explicitly: calling a solver costs more than the points.
        x, y = xy[:, 0] - shift_x - u * z_m, xy[:, 1] - shift_y - v * z_m
        return _columns((d * x - b * y) / turned, (a * y - c * x) / turned, z_m)

    def _plan(self, xyz: Floats) -> Floats:
        """Return the horizontal positions (N, 2) in the region's frame of points of the sensor's frame."""
        x, y, z = xyz[:, 0], xyz[:, 1], xyz[:, 2]
        return _columns(*(x * a + y * b + z * c + shift for a, b, c, shift in self.to_region[:2].tolist()))


def limit_m2(space: Space) -> float:
    """Return the largest square of a noise point's distance from the sensor."""
    return (space.max_range_m - _SLACK_M) ** 2


def to_region(bundle: Bundle, cloud: Cloud, region: Region) -> tuple[Region, Matrix]:
    """Return the region at this instant and the matrix from the cloud's frame to the region's.

    Raises NotApplicable: there is no usable message on the region's topic yet. UsageError: no transform joins the
    cloud's frame and the region's.
    """
    try:
        resolved = region.resolve(bundle)
        return resolved, bundle.transforms.lookup(resolved.frame_id, cloud.frame_id)
    except RegionUnavailable as error:
        raise NotApplicable(str(error)) from error
    except UnknownTransform as error:
        raise UsageError(f"region '{region.name}', cloud {cloud.topic}: {error}") from error


def finite_rows(cloud: Cloud) -> Mask:
    """Return which points (N,) have finite coordinates."""
    x, y, z = (cloud.points[name] for name in "xyz")
    return np.asarray(np.isfinite(x + y + z))


def empty_returns(cloud: Cloud) -> Mask:
    """Return which points (N,) of an organised cloud hold no return: not finite, or all coordinates zero."""
    # The sum of absolute coordinates gives both with one number per point.
    kind = np.result_type(*(cloud.points.dtype[name] for name in "xyz"), np.float32)
    away = np.abs(cloud.points["x"], dtype=kind)
    with np.errstate(over="ignore"):
        for name in "yz":
            away += np.abs(cloud.points[name], dtype=kind)
    return np.asarray(~((away > 0) & (away < np.inf)))


def rounded(cloud: Cloud, xyz: Floats) -> Floats:
    """Return coordinates (N, 3) in the precision of the cloud's layout."""
    return _columns(*(xyz[:, i].astype(cloud.points.dtype[name].newbyteorder("=")) for i, name in enumerate("xyz")))


def finite_range(values: Points) -> tuple[float, float] | None:
    """Return the lowest and highest finite number of a field (N,), None if there is none."""
    # Copied first: a field is strided, and two passes over it cost more than the copy.
    values = np.array(values)
    low, high = (float(values.min()), float(values.max())) if len(values) else (math.nan, math.nan)
    if math.isfinite(low) and math.isfinite(high):
        return low, high
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if len(values) else None


def batch_size(missing: int) -> int:
    """Return how many points are drawn at once while some are missing."""
    return min(missing + missing // 2 + 64, 1 << 20)


def in_window(window: tuple[list[float], list[float]], unit: Floats) -> Floats:
    """Return places (n, 2) of numbers (2 or more, n) from 0 to 1 between the lowest and highest of a window."""
    low, high = window
    return _columns(*(low[i] + (high[i] - low[i]) * unit[i] for i in range(2)))


def scattered(
    rng: np.random.Generator,
    count: int,
    cloud: Cloud,
    space: Space,
    first: Callable[[tuple[float, float]], Floats] | None = None,
) -> Floats:
    """Draw ``count`` points (count, 3): uniform by area horizontally, z uniform over the frame's own.

    Rejection sampling in bounded rounds. ``first``: gives those of the first, drawn already, from lowest and highest z.
    Raises NotApplicable: the cloud has no finite z, or too little space is left outside.
    """
    z_range = finite_range(cloud.points["z"])
    if z_range is None:
        raise NotApplicable(f"{cloud.topic} has no point with finite coordinates")
    z_low, z_high = z_range
    parts = [np.empty((0, 3)) if first is None else first(z_range)[:count]]
    missing = count - len(parts[0])
    for _ in range(_ROUNDS if first is None else _ROUNDS - 1):
        if not missing:
            break
        unit = rng.random((3, batch_size(missing)))
        xy = in_window(space.window(), unit)
        xyz = rounded(cloud, space.lift(xy, z_low + (z_high - z_low) * unit[2]))
        parts.append(xyz[space.allows(xyz)][:missing])
        missing -= len(parts[-1])
    if missing:
        raise NotApplicable(
            f"found room for {count - missing} of {count} points outside region '{space.region.name}' "
            f"within {space.max_range_m:g} m of {cloud.topic}'s sensor"
        )
    return np.concatenate(parts) if len(parts) > 1 else np.ascontiguousarray(parts[0])


def shortened(rng: np.random.Generator, count: int, cloud: Cloud, space: Space) -> tuple[Ints, Floats]:
    """Draw ``count`` returns outside and for each a shorter range, also outside, on its ray from the frame's origin.

    Returns the rows (count,) in ascending order and the new coordinates (count, 3).
    Raises NotApplicable: too few returns can be shortened without entering the region's margin, or rounding to whole
    numbers would take them off their rays.
    """
    if any(cloud.points.dtype[name].kind != "f" for name in "xyz"):
        raise NotApplicable(f"{cloud.topic} has whole-number coordinates, too coarse to stay on a ray")
    order, batch = rng.permutation(np.flatnonzero(finite_rows(cloud))), max(2 * count, 1024)
    rows, places, found = [np.empty(0, np.int64)], [np.empty((0, 3))], 0
    for start in range(0, len(order) if count else 0, batch):
        chosen = order[start : start + batch]
        old = cloud.xyz[chosen].astype(np.float64)
        chosen, old = chosen[space.outside(old)], old[space.outside(old)]
        ratio = rng.uniform(0.0, 0.99, (_TRIES_PER_RAY, len(chosen)))
        new = rounded(cloud, (ratio[:, :, None] * old).reshape(-1, 3))
        allowed = space.allows(new).reshape(ratio.shape)
        hit = np.flatnonzero(allowed.any(axis=0))[: count - found]
        rows.append(chosen[hit])
        places.append(new.reshape(*ratio.shape, 3)[allowed.argmax(axis=0)[hit], hit])
        found += len(hit)
        if found == count:
            break
    if found < count:
        raise NotApplicable(f"{found} returns of {cloud.topic} lie outside with room before them, {count} are needed")
    joined = np.concatenate(rows)
    rising = np.argsort(joined)
    return joined[rising], np.concatenate(places)[rising]


def intensities(rng: np.random.Generator, count: int, cloud: Cloud, full_scale: bool) -> Points | None:
    """Return values (count,) of the field ``intensity_field`` in its own type, or None when the cloud has none.

    Uniform between the frame's lowest and highest, or the sensor's full scale with ``full_scale``.
    Raises NotApplicable: what the cloud's intensities mean is in doubt, and full scale or another field depends on it.
    """
    name = cloud.intensity_field
    if name is None:
        if full_scale:
            raise NotApplicable(f"{cloud.topic} has no intensity to set to full scale")
        return None
    kind = cloud.points.dtype[name].newbyteorder("=")
    found = finite_range(cloud.points[name])
    if found is None:
        raise NotApplicable(f"no intensity of {cloud.topic} is a finite number")
    low, high = found
    if full_scale or len(cloud.echo_names) > 1:
        cloud.echoes.refuse_doubt()
    if full_scale:
        return np.full(count, cloud.echoes.field(name).full_scale).astype(kind)
    drawn = (
        rng.uniform(low, high, count) if kind.kind == "f" else rng.integers(int(low), int(high), count, endpoint=True)
    )
    return drawn.astype(kind)


def write_points(points: Points, rows: Ints | slice, xyz: Floats, intensity: Points | None, cloud: Cloud) -> None:
    """Write coordinates, the strength of the echo, and range and direction fields into rows of ``points``.

    Other fields stay, ambient light among them.
    """
    for i, name in enumerate("xyz"):
        points[name][rows] = xyz[:, i]
    if intensity is not None:
        write_intensity(points, rows, intensity, np.linalg.norm(xyz, axis=1), cloud)
    for name in filter(cloud.single, RANGE_FIELDS):
        points[name][rows] = np.linalg.norm(xyz, axis=1) * _range_unit(cloud, name)
    write_angles(points, cloud, rows)


def write_intensity(points: Points, rows: Ints | slice, intensity: Points, range_m: Floats, cloud: Cloud) -> None:
    """Write values (n,) of ``intensity_field`` into rows, and what that echo at ranges (n,) is in other such fields."""
    name, *others = cloud.echo_names
    points[name][rows] = intensity
    if others:
        rho = cloud.echoes.field(name).convention.reflectivity(intensity, range_m)
        for other in others:
            points[other][rows] = cloud.echoes.field(other).values(points, rho, range_m)


def intensity_of(cloud: Cloud, reflectivity: Points, range_m: Points) -> Points | None:
    """Return the values (n,) of ``intensity_field`` of echoes as of surfaces of some reflectivity (n,) at ranges (n,).

    None for a cloud without intensities.
    Raises NotApplicable: what the cloud's intensities mean is in doubt.
    """
    if (name := cloud.intensity_field) is None:
        return None
    cloud.echoes.refuse_doubt()
    return cloud.echoes.field(name).values(cloud.points, reflectivity, range_m)


def intensity_from(cloud: Cloud, rows: Ints, range_m: Floats, share: Floats | float = 1.0) -> Points | None:
    """Return the values (n,) of ``intensity_field`` of what is at other rows (n,), seen at ranges (n,) instead.

    A sensor that compensates for range gives the same value. Of the power a share may be left. None for a cloud without
    intensities.
    Raises NotApplicable: what the cloud's intensities mean is in doubt, and a change depends on it.
    """
    if (name := cloud.intensity_field) is None:
        return None
    cloud.echoes.refuse_doubt()
    field = cloud.echoes.field(name)
    if field.convention.at_any_range and field.convention.proportional:
        values = cloud.points[name][rows]
        return values if isinstance(share, float) and share == 1.0 else field.as_field(cloud.points, values * share)
    away_m = np.linalg.norm(cloud.xyz[rows].astype(np.float64), axis=1)
    return field.values(cloud.points, field.reflectivity(cloud.points, rows, away_m) * share, range_m)


def _columns(*columns: npt.NDArray[Any]) -> Floats:
    """Return (N,) columns as (N, k), each still contiguous, which is faster in NumPy."""
    joined = np.empty((len(columns), len(columns[0])))
    for row, column in zip(joined, columns, strict=True):
        row[:] = column
    return joined.T


def _range_unit(cloud: Cloud, name: str) -> float:
    """Return the unit of the field per metre: the median over the first returns."""
    rows = np.flatnonzero(~empty_returns(cloud))[:1000]
    metres = np.linalg.norm(cloud.xyz[rows].astype(np.float64), axis=1)
    return float(np.median(cloud.points[name][rows] / metres)) if len(rows) else 1.0
