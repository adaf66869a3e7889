# SPDX-License-Identifier: Apache-2.0
"""Signals of a drive: one value per row of its trace, computed from the trace, the scenario and the map."""

from __future__ import annotations

from dataclasses import astuple
from functools import cached_property

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive import shapes
from mt_nodes.world.drive.bodies import size_of
from mt_nodes.world.drive.clearance import outlines
from mt_nodes.world.drive.driven import ScenarioTrace
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.signals import colour_at, programmes
from mt_nodes.world.scenarios.temporal.formula import TIME, Argument, Atom, Constant, FixedPlace, Signal, StateRef, Term

Booleans = npt.NDArray[np.bool_]

#: The longest time to collision, in s: bodies that do not approach have it, and so robustness stays finite. Assumed.
LONGEST_TTC_S = 100.0
_ARITHMETIC = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
_HOLDS = {
    **{"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal},
    **{"==": np.equal, "!=": np.not_equal},
}


class TraceSignals:
    """The signals of a drive. ``driven``: a drive of at least one row. ``road``: its map."""

    def __init__(self, driven: ScenarioTrace, road: RoadMap) -> None:
        self._driven, self._road = driven, road
        self._trace = driven.trace

    def holds(self, atom: Atom) -> Booleans:
        """Return (T,) whether a comparison is true, exactly."""
        if colour := _colour(atom):
            shown = self._light(atom) == colour
            return np.asarray(shown if atom.operator == "==" else ~shown)
        return np.asarray(_HOLDS[atom.operator](self.term(atom.left), self.term(atom.right)))

    def robustness(self, atom: Atom) -> Floats:
        """Return (T,) by how much a comparison is true, negative where it is false, in the unit of its terms.

        Infinite for the colour of a light, which is true or false alone.
        """
        if _colour(atom):
            return np.where(self.holds(atom), np.inf, -np.inf)
        more = self.term(atom.left) - self.term(atom.right)
        if atom.operator in ("==", "!="):
            return -np.abs(more) if atom.operator == "==" else np.abs(more)
        return more if atom.operator in (">", ">=") else -more

    def term(self, term: Term) -> Floats:
        """Return (T,) the value of a term. Raises ValueError: a value is no number, as after a division by zero."""
        if isinstance(term, Constant):
            return np.full(len(self._trace), float(term.value))
        if isinstance(term, Signal):
            return self._signal(term)
        with np.errstate(all="ignore"):
            values = np.asarray(_ARITHMETIC[term.operator](self.term(term.left), self.term(term.right)))
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ValueError(f"{term} is no number at {self._trace.time_s[row]:.1f} s, where {term.right} is 0")
        return values

    def _signal(self, signal: Signal) -> Floats:
        if signal.name == TIME:
            return np.asarray(self._trace.time_s - self._trace.time_s[0])
        return np.asarray(getattr(self, f"_{signal.name}")(*signal.arguments))

    def _dis(self, one: Argument, other: Argument) -> Floats:
        distance = np.asarray(shapely.distance(self._outlines(one), self._outlines(other)))
        distance[self._contacts(one, other)] = 0.0
        return distance

    def _contacts(self, one: Argument, other: Argument) -> list[int]:
        """Return the rows of contact: the first row that is not before it, or the last one."""
        pair = [a for a in (one, other) if isinstance(a, StateRef)]
        if len(pair) < 2 or pair[0].ego == pair[1].ego:
            return []
        name = next(state.name for state in pair if not state.ego)
        times = [collision.time_s for collision in self._trace.collisions if collision.name == name]
        return [min(int(np.searchsorted(self._trace.time_s, t - 1e-9)), len(self._trace) - 1) for t in times]

    def _ttc(self, one: Argument, other: Argument) -> Floats:
        """Return distance by closing speed along the line between the nearest points of both outlines.

        The time to collision at constant velocities (Hayward, *Near-miss determination through use of a scale of
        danger*, Highway Research Record 384, 1972) of bodies whose nearest points stay the same ones.
        """
        distance = self._dis(one, other)
        ends = shapely.get_coordinates(shapely.shortest_line(self._outlines(one), self._outlines(other)))
        away = np.diff(ends.reshape(-1, 2, 2), axis=1)[:, 0]
        length = np.linalg.norm(away, axis=1)
        closing = np.einsum("ij,ij->i", self._velocity(one) - self._velocity(other), away) / np.maximum(length, 1e-9)
        free = (closing * LONGEST_TTC_S > distance) & (distance > 0.0)
        times = np.divide(distance, closing, out=np.full_like(distance, LONGEST_TTC_S), where=free)
        return np.where(distance > 0.0, times, 0.0)

    def _spd(self, one: Argument, other: Argument | None = None) -> Floats:
        return self._speed(one) - (self._speed(other) if other else 0.0)

    def _speed(self, of: Argument) -> Floats:
        if isinstance(of, Constant):
            return np.full(len(self._trace), float(of.value))
        return np.asarray(self._states(of)[:, 3])

    def _vel(self, one: Argument, other: Argument) -> Floats:
        return np.asarray(np.linalg.norm(self._velocity(one) - self._velocity(other), axis=1))

    def _velocity(self, of: Argument) -> Floats:
        if isinstance(of, FixedPlace):
            return np.tile([of.x, of.y], (len(self._trace), 1))
        states = self._states(of)
        return np.asarray(states[:, 3:4] * np.column_stack([np.cos(states[:, 2]), np.sin(states[:, 2])]))

    def _acc(self, _ego: Argument) -> Floats:
        return self._trace.column("acceleration_mps2")

    def _offset(self, _ego: Argument) -> Floats:
        places = self._driven.places_m.tolist()
        return np.array([self._road.nearest_lane(x, y).station_of(x, y)[1] for x, y in places])

    def _light(self, atom: Atom) -> npt.NDArray[np.str_]:
        signal = next(term for term in (atom.left, atom.right) if isinstance(term, Signal))
        programme = self._programmes[str(signal.arguments[0])]
        return np.array([colour_at(programme, t) for t in self._trace.time_s.tolist()])

    @cached_property
    def _programmes(self) -> dict[str, tuple[tuple[str, float], ...]]:
        return programmes(self._road, self._driven.scenario.signals)

    def _states(self, of: Argument) -> Floats:
        """Return (T, 4) place, heading and speed."""
        assert isinstance(of, StateRef), f"{of} has no state"
        if of.ego:
            return self._trace.ego[:, :4]
        if of.name in self._trace.names:
            return self._trace.actors[:, self._trace.names.index(of.name)]
        pose = next(one.pose for one in self._driven.scenario.obstacles if one.name == of.name)
        return np.tile([*astuple(pose), 0.0], (len(self._trace), 1))

    def _outlines(self, of: Argument) -> npt.NDArray[np.object_]:
        """Return (T,) polygons or points."""
        if isinstance(of, FixedPlace):
            return np.full(len(self._trace), shapely.Point(of.x, of.y), dtype=object)
        assert isinstance(of, StateRef), f"{of} has no outline"
        scenario, poses = self._driven.scenario, self._states(of)[:, :3]
        if of.ego:
            return outlines(shapes.of_vehicle(scenario.ego.vehicle), poses)
        if of.name in self._trace.names:
            return outlines(shapes.box(*size_of(scenario.actor(of.name))[:2]), poses)
        obstacle = next(one for one in scenario.obstacles if one.name == of.name)
        return outlines(shapes.of_obstacle(obstacle), poses)


def _colour(atom: Atom) -> str:
    """Return the colour that a comparison is about, empty if it is about numbers."""
    return next((t.value for t in (atom.left, atom.right) if isinstance(t, Constant) and isinstance(t.value, str)), "")
