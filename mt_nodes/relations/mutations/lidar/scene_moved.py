# SPDX-License-Identifier: Apache-2.0
"""Base of mutations that move the whole scene."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats, Mask, Rows
from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.base.plugins import name_of
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud, Points
from mt_nodes.data.transforms import Matrix, UnknownTransform
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.angle_fields import angle_fields, proof_of_angles, write_angles
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud, proof_of_change, refuse_implausible, without
from mt_nodes.relations.mutations.lidar.placement import RANGE_FIELDS, empty_returns
from mt_nodes.relations.mutations.lidar.rays import pieces, ranges_follow, write_range_fields

Columns = tuple[Floats, Floats, Floats]
#: Tolerance for rounding to the cloud's coordinate type, in units in the last place at the point's range.
_ROUNDINGS = 8.0
_BLOCK = 1 << 13


@dataclass(frozen=True)
class SceneMoved(EachCloud):
    """Base: one 4×4 matrix of the ego's frame moves every return, the same for every cloud.

    Points keep their rows, so the order of a scan and the grid of an organised cloud stay, and with them every point's
    neighbours; ring and time stay with the point. The azimuth that a row implies no longer holds: the cloud is that of
    a sensor elsewhere. Empty returns stay empty; range fields follow the coordinates; a return that moves out of the
    sensor's range is lost. ``Effects.output_transform`` is the matrix, so that checks move every expected obstacle
    along.
    """

    frame_id: str = param("base_link", help="the ego's frame: on the ground, x forward, y left, z up")
    min_range_m: float = param(
        0.5, low=0.0, high=10.0, unit="m", aspect="fixed", help="nearest that the sensor can see"
    )
    max_range_m: float = param(
        120.0, low=1.0, high=1000.0, unit="m", aspect="fixed", help="farthest that the sensor can see"
    )
    drawn_once: bool = param(False, help="draw once an episode: the scene stays steady for a stack that remembers")

    @abstractmethod
    def draw_scene(self, rng: np.random.Generator) -> Draw:
        """Draw the movement: arrays and numbers by name."""

    @abstractmethod
    def matrix(self, draw: Draw, to_ego: Matrix) -> Matrix:
        """Return the 4×4 matrix of the movement in the ego's frame; ``to_ego`` takes the cloud's frame there."""

    @abstractmethod
    def misplaced_m(self, draw: Draw, old: Columns, new: Columns, to_ego: Matrix) -> Floats:
        """Return how far returns (N,) are off their places; ``old`` and ``new`` are x, y, z in the ego's frame.

        Computed independently of :meth:`matrix`: this is the proof.
        """

    def contradiction(self, inputs: Collection[str], sync_s: float) -> str:
        """Say that other sensors do not move along."""
        others = [role for role in ("camera", "radar") if role in inputs]
        moves = f"{name_of(type(self))} moves the scene in clouds alone"
        return f"{moves}: the {' and the '.join(others)} would go on to show it where it was" if others else ""

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Draw:
        """Draw the movement of the episode."""
        return self.draw_scene(rng)

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw once for all clouds, which show one scene; a radar's would contradict them."""
        if bundle.radars:
            raise NotApplicable(f"{bundle.radars[0].topic} would go on to show the scene where it was")
        self._one_matrix(bundle, motion := state if self.drawn_once else self.draw_scene(rng))
        return {f"{cloud.topic}|{name}": value for cloud in bundle.clouds for name, value in motion.items()}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Move every return of a cloud."""
        matrix, raw = self._matrix(bundle, cloud, draw), cloud.raw.copy()
        points, out_of_range = raw.view(cloud.points.dtype), [np.empty(0, np.int64)]
        # In blocks, so that columns in double precision need little memory.
        for rows in pieces(_return_rows(cloud), len(cloud)):
            old = _columns(cloud, rows)
            new = _carried(matrix, old)
            _write(points, rows, old, new, cloud)
            out_of_range.append(self._out_of_range(rows, old, new))
        changed, lost = cloud.with_raw(raw, height=cloud.height), np.concatenate(out_of_range)
        changed = without(changed, lost) if len(lost) else changed
        write_angles(changed.points, cloud, _return_rows(changed))
        return changed

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report the movement of the expected output."""
        cloud = bundle.clouds[0]
        matrix = self.matrix(draws[cloud.topic], self._to_ego(bundle, cloud))
        return Effects(output_transform=matrix, output_frame_id=self.frame_id)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Prove that every return is in its place, and nothing else changed but the fields that repeat it."""
        matrix, rows, out_of_range = self._matrix(bundle, old, draw), _return_rows(old), [np.empty(0, np.int64)]
        for piece in pieces(rows, len(old)):
            before = _columns(old, piece)
            out_of_range.append(self._out_of_range(piece, before, _carried(matrix, before)))
        if len(lost := np.concatenate(out_of_range)):
            old = without(old, lost)
            rows = _return_rows(old)
        broken = proof_of_change(old, new, rows, ("x", "y", "z", *RANGE_FIELDS, *angle_fields(old)))
        broken = broken or proof_of_angles(old, new, rows)
        return broken or self._proof_of_places(old, new, rows, draw, self._to_ego(bundle, old))

    def _proof_of_places(self, old: Cloud, new: Cloud, at: Rows | slice, draw: Draw, to_ego: Matrix) -> str | None:
        """Prove the place of every return, and its range fields."""
        worst, reach_m, broken = np.zeros(1), 1.0, None
        for rows in pieces(at, len(old)):
            before, after = _columns(old, rows), _columns(new, rows)
            off_m = self.misplaced_m(draw, _carried(to_ego, before), _carried(to_ego, after), to_ego)
            worst = np.maximum(worst, off_m.max(initial=0.0))
            reach_m = max(reach_m, *(float(end) for c in (*before, *after) for end in (c.max(), -c.min())))
            broken = broken or _ranges_follow(old, new, rows, before, after)
        bound_m = _ROUNDINGS * reach_m * max(float(np.finfo(old.points.dtype[name]).eps) for name in "xyz")
        # Negated, so that NaN does not pass.
        if not worst[0] <= bound_m:
            return f"a return is {worst[0]:.2g} m from where it belongs, rounding explains {bound_m:.2g} m"
        return broken

    def _matrix(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Matrix:
        """Return the matrix in the cloud's own frame."""
        to_ego = self._to_ego(bundle, cloud)
        return np.asarray(np.linalg.solve(to_ego, self.matrix(draw, to_ego) @ to_ego))

    def _out_of_range(self, rows: Rows | slice, old: Columns, new: Columns) -> Rows:
        """Return the rows of returns that move out of the sensor's range."""
        was, now = (self._in_reach(_squares(columns)) for columns in (old, new))
        lost = np.flatnonzero(was & ~now)
        return lost + (rows.start or 0) if isinstance(rows, slice) else rows[lost]

    def _in_reach(self, squares: Floats) -> Mask:
        return np.asarray((squares >= self.min_range_m**2) & (squares <= self.max_range_m**2))

    def _to_ego(self, bundle: Bundle, cloud: Cloud) -> Matrix:
        try:
            return bundle.transforms.lookup(self.frame_id, cloud.frame_id)
        except UnknownTransform as error:
            raise UsageError(f"cloud {cloud.topic}: {error}") from error

    def _one_matrix(self, bundle: Bundle, draw: Draw) -> None:
        """Refuse a bundle without a valid follow-up: no return, too coarse coordinates, or clouds that diverge."""
        if not any((~empty_returns(cloud)).any() for cloud in bundle.clouds):
            raise NotApplicable(f"bundle {bundle.index} has no cloud with a return")
        for cloud in bundle.clouds:
            refuse_implausible(cloud)
            if any(cloud.points.dtype[name].kind != "f" for name in "xyz"):
                raise NotApplicable(f"{cloud.topic} has whole-number coordinates, too coarse to be carried elsewhere")
        matrices = [self.matrix(draw, self._to_ego(bundle, cloud)) for cloud in bundle.clouds]
        if not all(np.allclose(m, matrices[0], atol=1e-9) for m in matrices):
            raise NotApplicable(f"the {len(matrices)} clouds stand apart: no one change carries the scene they show")


def _return_rows(cloud: Cloud) -> Rows | slice:
    """Return the rows of returns; a slice if all points are returns, which is ten times as fast."""
    empty = empty_returns(cloud)
    return np.flatnonzero(~empty) if empty.any() else slice(None)


def _columns(cloud: Cloud, rows: Rows | slice) -> Columns:
    x, y, z = (cloud.points[name][rows].astype(np.float64) for name in "xyz")
    return x, y, z


def _carried(matrix: Matrix, columns: Columns) -> Columns:
    x, y, z = columns
    moved = (a * x + b * y + c * z + shift for a, b, c, shift in matrix[:3].tolist())
    return next(moved), next(moved), next(moved)


def _squares(columns: Columns) -> Floats:
    x, y, z = columns
    return np.asarray(x * x + y * y + z * z)


def _range_m(columns: Columns) -> Floats:
    return np.asarray(np.sqrt(_squares(columns)))


def _write(points: Points, rows: Rows | slice, old: Columns, new: Columns, cloud: Cloud) -> None:
    for name, column in zip("xyz", new, strict=True):
        points[name][rows] = column
    if any(map(cloud.single, RANGE_FIELDS)):
        write_range_fields(points, cloud, rows, _range_m(new) / _range_m(old))


def _ranges_follow(old: Cloud, new: Cloud, rows: Rows | slice, before: Columns, after: Columns) -> str | None:
    for name in filter(old.single, RANGE_FIELDS):
        if not ranges_follow(old.points[name][rows], new.points[name][rows], _range_m(after) / _range_m(before)):
            return f"field '{name}' does not follow the coordinates"
    return None
