# SPDX-License-Identifier: Apache-2.0
"""The sham of LiDARs and radars: a change of the cloud that must not matter to any stack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats, Ints
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.mutations.keyed_draws import cut_normals, new_key, order_of

_CUT = 5.0


@dataclass(frozen=True)
class PointsPermuted(Mutation):
    """Reorders the points; in an organised cloud moves each along its ray, far below sensor noise.

    The order of an organised cloud defines neighbours, so it stays. In an unorganised one ring and time are fields and
    move with their point. Detections of a radar are reordered likewise. The jitter is normal, cut at five standard
    deviations. Guaranteed: the points are the same byte for byte, or each is moved along its ray within that bound.
    """

    sensors = ("lidar", "radar")
    role = "sham"

    jitter_m: float = param(
        1e-5, low=0.0, high=1e-3, unit="m", neutral=0.0, help="standard deviation along the ray, organised clouds only"
    )

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw for every cloud the key of an order, ``<topic>|order_key``, or of a jitter, ``<topic>|jitter_key``."""
        if not bundle.clouds and not bundle.radars:
            raise NotApplicable(f"bundle {bundle.index} has no cloud")
        return dict(self._draw_cloud(rng, cloud) for cloud in (*bundle.clouds, *bundle.radars))

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Permute or jitter every cloud."""
        clouds = [self._changed(c, draw) for c in (*bundle.clouds, *bundle.radars)]
        return Followup(((0, bundle.with_clouds(clouds)),))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Prove that the points are the same, or moved by less than the bound and along their rays."""
        pairs = ((source.clouds, followup.first.clouds), (source.radars, followup.first.radars))
        for old, new in (pair for both in pairs for pair in zip(*both, strict=True)):
            broken = self._jittered(old, new) if old.organised else _permuted(old, new, _order(old, draw))
            if broken is not None:
                return f"{old.topic}: {broken}"
        return None

    def _draw_cloud(self, rng: np.random.Generator, cloud: Cloud) -> tuple[str, int]:
        if not cloud.organised:
            return f"{cloud.topic}|order_key", new_key(rng)
        if any(cloud.points.dtype[name].kind != "f" for name in "xyz"):
            raise NotApplicable(f"organised {cloud.topic} has whole-number coordinates, too coarse for a jitter")
        return f"{cloud.topic}|jitter_key", new_key(rng)

    def _changed(self, cloud: Cloud, draw: Draw) -> Cloud:
        if not cloud.organised:
            return cloud.with_raw(cloud.raw.take(_order(cloud, draw)), height=cloud.height)
        raw = cloud.raw.copy()
        points, xyz = raw.view(cloud.points.dtype), cloud.xyz.astype(np.float64)
        range_m = np.linalg.norm(xyz, axis=1)
        rows = np.flatnonzero(np.isfinite(range_m) & (range_m > 0.0))
        along_m = cut_normals(draw[f"{cloud.topic}|jitter_key"], len(cloud), _CUT)[rows] * self.jitter_m
        moved = xyz[rows] * (1.0 + along_m / range_m[rows])[:, None]
        for i, name in enumerate("xyz"):
            points[name][rows] = moved[:, i]
        return cloud.with_raw(raw, height=cloud.height)

    def _jittered(self, old: Cloud, new: Cloud) -> str | None:
        if len(new) != len(old) or new.height != old.height:
            return f"{len(new)} points in {new.height} rows, expected {len(old)} in {old.height}"
        restored = new.raw.copy()
        for name in "xyz":
            restored.view(old.points.dtype)[name] = old.points[name]
        if restored.tobytes() != old.raw.tobytes():
            return "a field other than the coordinates changed"
        before, after = old.xyz.astype(np.float64), new.xyz.astype(np.float64)
        known = np.isfinite(before).all(axis=1)
        if not np.array_equal(known, np.isfinite(after).all(axis=1)):
            return "a return appeared or vanished"
        moved = np.linalg.norm(after[known] - before[known], axis=1)
        bound = _CUT * self.jitter_m + _rounding_m(old, before[known])
        return (
            None if (moved <= bound).all() else f"a point moved {moved.max():.2g} m, the bound is {bound.max():.2g} m"
        )


def _order(cloud: Cloud, draw: Draw) -> Ints:
    return order_of(draw[f"{cloud.topic}|order_key"], len(cloud))


def _permuted(old: Cloud, new: Cloud, order: Ints) -> str | None:
    """Prove that the points are the same: ``order`` names every old row once, and the new rows are those."""
    if len(new) != len(old) or new.height != old.height:
        return f"{len(new)} points, expected {len(old)}"
    if len(order) != len(old) or (np.bincount(order, minlength=len(old)) != 1).any():
        return "the drawn order is no permutation"
    same = np.array_equal(old.raw.take(order).view(np.uint8), np.ascontiguousarray(new.raw).view(np.uint8))
    return None if same else "a point was changed, doubled or lost"


def _rounding_m(cloud: Cloud, xyz: Floats) -> Floats:
    """Return how far rounding to the cloud's coordinate type may move points (N,), in metres."""
    relative = max(float(np.finfo(cloud.points.dtype[name]).eps) for name in "xyz")
    return np.asarray(np.abs(xyz).max(axis=1, initial=0.0) * relative)
