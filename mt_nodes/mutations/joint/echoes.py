# SPDX-License-Identifier: Apache-2.0
"""Returns that became weaker, were overtaken by a nearer echo on their beam, or fell below the noise.

Power is told by what the cloud holds: an intensity over its full scale is taken for the target's reflectivity times
cosine of incidence, compensated for range, as Velodyne's calibrated intensity is. The echo just seen at range R then
has ``sensitivity * (R / max_range_m)**2``, since received power falls with the square of the range; a target of 90 %
is just seen at a sensor's full range (V. Kilic et al., Lidar Light Scattering Augmentation, 2021).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.errors import NotApplicable
from mt_nodes.frames import Bundle, Cloud
from mt_nodes.mutations.base import Draw
from mt_nodes.mutations.joint.attenuation import DARKEST
from mt_nodes.mutations.lidar.each_cloud import proof_of_change, proof_of_removal, without
from mt_nodes.mutations.lidar.intensity_scale import full_scale
from mt_nodes.mutations.lidar.placement import RANGE_FIELDS, empty_returns, finite_range
from mt_nodes.mutations.lidar.rays import At, Floats, Rows, proof_on_beam, ranges_m, with_ranges

#: A return that was reported is taken to have had this much more power than the least that is seen (3 dB), whatever
#: its intensity says: a cloud need not follow the law of the noise floor.
LEAST_MARGIN = 2.0


@dataclass(frozen=True)
class Floor:
    """The weakest echo a sensor sees: its intensity, 0 to 1, at ``max_range_m``."""

    sensitivity: float
    max_range_m: float

    def at(self, range_m: Floats) -> Floats:
        """Return the intensity (n,), 0 to 1, of the weakest echo at ranges (n,)."""
        return np.asarray(self.sensitivity * np.square(range_m / self.max_range_m))

    def margin(self, reflectivity: Floats, range_m: Floats) -> Floats:
        """Return by what factor (n,) returns are stronger than the weakest that is seen: 2 at least.

        None is taken for darker than 5 %: dark ones are rounded to 0.
        """
        with np.errstate(over="ignore"):
            return np.asarray(np.maximum(np.maximum(reflectivity, DARKEST) / self.at(range_m), LEAST_MARGIN))


@dataclass(frozen=True, eq=False)
class Echoes:
    """What became of some returns of a cloud; every other stays.

    Attributes:
        rows: (n,) returns with another intensity, rising. intensity: (n,) that intensity, on the cloud's own scale.
        moved: (m,) returns that a nearer echo on the beam took the place of, rising, all among ``rows``.
        range_m: (m,) where that echo is.
        lost: (k,) returns that nothing took the place of, rising, none among ``rows``.
    """

    rows: Rows
    intensity: Floats
    moved: Rows
    range_m: Floats
    lost: Rows


NO_ROWS: Rows = np.empty(0, dtype=np.int64)
NO_FLOATS: Floats = np.empty(0)


def reflectivity(cloud: Cloud, rows: At) -> tuple[Floats, float]:
    """Return intensities (n,) of returns over their full scale, 0 to 1, and that scale.

    Raises:
        NotApplicable: the cloud has no intensities, or they fit no known scale.
    """
    name = cloud.intensity_field
    if name is None:
        raise NotApplicable(
            f"{cloud.topic} has no intensity to tell weak returns by; its fields are {', '.join(cloud.fields)}"
        )
    values = cloud.points[name]
    found = finite_range(values)
    if found is None:
        raise NotApplicable(f"no intensity of {cloud.topic} is a finite number")
    scale = full_scale(*found, values.dtype, cloud.topic)
    chosen = values[rows].astype(np.float64)
    if not np.isfinite(chosen).all():
        raise NotApplicable(f"{int((~np.isfinite(chosen)).sum())} intensities of {cloud.topic} are not finite numbers")
    return chosen / scale, scale


def rows_at(cloud: Cloud, at: At) -> Rows:
    """Return points of a cloud as row numbers (n,)."""
    return np.arange(*at.indices(len(cloud))) if isinstance(at, slice) else at


def with_echoes(cloud: Cloud, echoes: Echoes) -> Cloud:
    """Return the cloud with weaker returns, nearer echoes and without the lost ones."""
    name, moved = str(cloud.intensity_field), echoes.moved
    new = with_ranges(cloud, moved, ranges_m(cloud, moved), echoes.range_m.copy())
    field = new.points[name]  # of a cloud that was just made and is nobody else's yet
    field[echoes.rows] = as_field(cloud, echoes.intensity)
    return without(new, echoes.lost) if len(echoes.lost) else new


def moved_points(bundle: Bundle, draws: Mapping[str, Draw]) -> dict[str, Floats]:
    """Return where the drawn echoes are (m, 3), by topic: ``rows`` and ``range_m`` of each draw."""
    moved = {cloud.topic: (cloud, draws[cloud.topic]["rows"]) for cloud in bundle.clouds}
    return {
        topic: cloud.xyz[rows] * (draws[topic]["range_m"] / ranges_m(cloud, rows))[:, None]
        for topic, (cloud, rows) in moved.items()
    }


def count_lost(bundle: Bundle, clouds: Mapping[str, Cloud]) -> float:
    """Return how many returns the changed clouds of a bundle have less than its own."""
    return float(sum(_held(cloud) - _held(clouds[cloud.topic]) for cloud in bundle.clouds))


def _held(cloud: Cloud) -> int:
    return int(np.count_nonzero(~empty_returns(cloud))) if cloud.organised else len(cloud)


def as_field(cloud: Cloud, intensity: Floats) -> npt.NDArray[Any]:
    """Return intensities (n,) as the cloud's field holds them: whole numbers are rounded."""
    kind = cloud.points.dtype[str(cloud.intensity_field)]
    return np.asarray((intensity if kind.kind == "f" else np.rint(intensity)).astype(kind))


def proof_of_echoes(old: Cloud, new: Cloud, echoes: Echoes) -> tuple[str | None, Cloud]:
    """Prove that only those returns changed, that moved ones are nearer and on their beams, and lost ones gone.

    Also returns the new cloud with the old rows: lost returns are put back, so that rows can be compared.
    """
    rows, lost, moved = echoes.rows, echoes.lost, echoes.moved
    if len(np.intersect1d(rows, lost)) or len(np.setdiff1d(moved, rows)):
        return "a return is both lost and changed, or moved without a new intensity", new
    whole = _put_back(old, new, lost)
    if whole is None:
        return f"{len(new)} points, expected {len(old)} of which {len(lost)} are lost", new
    name = old.intensity_field
    broken = proof_of_removal(whole, new, lost) if len(lost) else None
    broken = broken or proof_of_change(old, whole, rows, (*"xyz", *filter(old.single, RANGE_FIELDS), name))
    weaker = whole.raw.copy()
    weaker.view(old.points.dtype)[name][rows] = old.points[name][rows]
    broken = broken or proof_on_beam(old, whole.with_raw(weaker, height=old.height), moved)
    if broken is None and not (ranges_m(whole, moved) < ranges_m(old, moved)).all():
        broken = "an echo is not nearer than the return it takes the place of"
    return broken, whole


def _put_back(old: Cloud, new: Cloud, lost: Rows) -> Cloud | None:
    """Return the new cloud with the old points at the lost rows, or None when the number of points is wrong."""
    kept = np.delete(np.arange(len(old)), lost)
    if len(new) != (len(old) if old.organised else len(kept)):
        return None
    raw = old.raw.copy()
    raw[kept] = new.raw[kept] if old.organised else new.raw
    return old.with_raw(raw, height=old.height)
