# SPDX-License-Identifier: Apache-2.0
"""Contents of the viewer of a pair of drives: both arms in one picture, and the data that its script plays.

Everything is in the frame of the picture: that of the follow-up's ego at its start, x ahead and to the right of the
picture, y up, in metres. The source is drawn where its follow-up is expected: in a mirrored world, mirrored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import degrees
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.engine.recorded_drives import RecordedDrives
from mt_nodes.engine.series_tables import ARMS
from mt_nodes.relations.world_changes.scenario_carry import Carry, carried_road
from mt_nodes.world.drive import shapes
from mt_nodes.world.drive.bodies import facts_of, size_of
from mt_nodes.world.drive.driven import ScenarioTrace
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Pose
from mt_nodes.world.drive.signals import Programme, programmes
from mt_nodes.world.drive.trace import Collision

#: Plotted values of the ego: title, column of the trace, factor, unit, smallest height of the plot in that unit.
PLOTTED = (
    ("speed", "speed_mps", 1.0, "m/s", 1.0),
    ("steering", "steering_rad", degrees(1.0), "°", 2.0),
    ("acceleration", "acceleration_mps2", 1.0, "m/s²", 1.0),
)
#: Default names of the arms.
NAMES = ("source", "follow-up")
_LOOKS = {"pedestrian": "person", "cyclist": "rider", "motorcycle": "rider", "animal": "animal"}
_LOOKS |= dict.fromkeys(("car", "truck", "bus"), "vehicle")
#: Margin around the egos' paths, distance to others that are shown, smallest width, and height over width.
_AROUND_M, _NEAR_M, _LEAST_M, _LEAST_HEIGHT = 10.0, 50.0, 40.0, 0.4
#: Units of the script's data: a centimetre, a millisecond, a tenth of a degree.
_CM, _MS, _DEGREES_10 = 0.01, 0.001, np.pi / 1800.0
_ALIKE_M = 0.02


@dataclass(frozen=True, eq=False)
class DrawnBody:
    """A body in the picture.

    Attributes:
        name: with its kind. look: ``ego``, ``person``, ``rider``, ``vehicle``, ``animal`` or ``thing``.
        arms: numbers of the arms that it is in; both where it moves alike in both.
        corners_m: (K, 2) footprint in its own frame.
        rows: (T, 3) x, y and unwrapped yaw, at the instants of the last of its arms.
    """

    name: str
    look: str
    arms: tuple[int, ...]
    corners_m: Floats
    rows: Floats

    @property
    def moves(self) -> bool:
        """Whether it ever moves or turns."""
        return bool(np.ptp(self.rows, axis=0).max() > 0.0)


@dataclass(frozen=True)
class CollisionMark:
    """A collision of one arm."""

    arm: int
    collision: Collision
    x_m: float
    y_m: float


@dataclass(frozen=True, eq=False)
class EpisodeView:
    """Everything that is drawn of a pair.

    Attributes:
        road, programmes: the follow-up's map, and its lights. times_s: (T,) of each arm.
        egos: of source and follow-up. bodies: everybody else. hits: collisions of both arms.
        plotted: in the order of :data:`PLOTTED`, (T,) of each arm. names: of the arms.
    """

    road: RoadMap
    programmes: dict[str, Programme]
    times_s: tuple[Floats, Floats]
    egos: tuple[DrawnBody, DrawnBody]
    bodies: tuple[DrawnBody, ...]
    hits: tuple[CollisionMark, ...]
    plotted: tuple[tuple[Floats, Floats], ...]
    names: tuple[str, str] = NAMES

    @classmethod
    def of(cls, recorded: RecordedDrives, names: tuple[str, str] = NAMES) -> EpisodeView:
        """Transform a pair into the picture's frame."""
        after = recorded.settings[1]
        to_picture = Carry.between(after.scenario.ego.start, Pose(0.0, 0.0))
        carries = (recorded.effects.carried.then(to_picture), to_picture)
        arms = list(zip(recorded.drives, carries, strict=True))
        egos = [_ego(number, names[number], *arm) for number, arm in enumerate(arms)]
        others = [list(_others(number, *arm)) for number, arm in enumerate(arms)]
        return cls(
            road=carried_road(after.road, to_picture),
            programmes=programmes(after.road, after.scenario.signals),
            times_s=(arms[0][0].trace.time_s, arms[1][0].trace.time_s),
            egos=(egos[0], egos[1]),
            bodies=tuple(_merged(*others)),
            hits=tuple(hit for number, arm in enumerate(arms) for hit in _hits(number, *arm)),
            plotted=tuple(_plotted(arms, column, factor) for _, column, factor, *_ in PLOTTED),
            names=names,
        )

    @property
    def end_s(self) -> float:
        """Time of the last event in either arm."""
        return max(
            float(time_s) for time_s in (*(t[-1] for t in self.times_s), *(h.collision.time_s for h in self.hits))
        )

    @property
    def window(self) -> tuple[float, float, float, float]:
        """Window: x min, y min, x max, y max in metres."""
        driven = np.concatenate([ego.rows[:, :2] for ego in self.egos])
        low, high = driven.min(axis=0) - _AROUND_M, driven.max(axis=0) + _AROUND_M
        tracks = [body.rows[:, :2] for body in self.bodies]
        near = [at[((at > low - _NEAR_M) & (at < high + _NEAR_M)).all(axis=1)] for at in tracks]
        corners = np.concatenate([[low, high], *(place + side for place in near for side in (-2.0, 2.0))])
        (x0, y0), (x1, y1) = corners.min(axis=0), corners.max(axis=0)
        more_x = max(0.0, _LEAST_M - (x1 - x0)) / 2.0
        more_y = max(0.0, _LEAST_HEIGHT * (x1 - x0 + 2.0 * more_x) - (y1 - y0)) / 2.0
        return float(x0 - more_x), float(y0 - more_y), float(x1 + more_x), float(y1 + more_y)

    def script_data(self) -> dict[str, Any]:
        """Return the data of the script, packed, as whole numbers (cm, ms, 0.1°, hundredths of the plots' units)."""
        arms = [
            {"t": packed(time_s, _MS), "n": [packed(both[arm], 0.01) for both in self.plotted]}
            for arm, time_s in enumerate(self.times_s)
        ]
        return {
            "end": round(self.end_s / _MS),
            "arms": arms,
            "bodies": [_motion(body) for body in (*self.egos, *self.bodies)],
            "lights": [[[c, round(s / _MS)] for c, s in self.programmes[light.name]] for light in self.road.signals],
            "hits": [[hit.arm, round(hit.collision.time_s / _MS)] for hit in self.hits],
        }


def packed(values: npt.ArrayLike, unit: float) -> list[int]:
    """Return values (T,) in whole units as second differences, which are small numbers where the values are smooth."""
    whole = np.round(np.asarray(values, dtype=np.float64) / unit).astype(np.int64)
    differences: list[int] = np.diff(whole, n=2, prepend=[0, 0]).tolist()
    return differences


def _motion(body: DrawnBody) -> dict[str, Any] | None:
    if not body.moves:
        return None
    x, y, yaw = body.rows.T
    return {"a": body.arms[-1], "x": packed(x, _CM), "y": packed(-y, _CM), "r": packed(-yaw, _DEGREES_10)}


def _rows(poses: Floats, carry: Carry) -> Floats:
    """Return (T, 3) poses in the picture's frame."""
    yaw = np.unwrap(carry.yaws(poses[:, 2]))
    return np.column_stack([carry.places(np.ascontiguousarray(poses[:, :2])), yaw])


def _ego(arm: int, name: str, drive: ScenarioTrace, carry: Carry) -> DrawnBody:
    corners = shapes.of_vehicle(drive.scenario.ego.vehicle)
    return DrawnBody(f"ego, {name}", f"ego {ARMS[arm]}", (arm,), corners, _rows(drive.trace.ego, carry))


def _others(arm: int, drive: ScenarioTrace, carry: Carry) -> Iterator[DrawnBody]:
    scenario = drive.scenario
    for number, actor in enumerate(scenario.actors):
        look = _LOOKS.get(facts_of(actor.kind).label, "thing")
        corners = shapes.box(*size_of(actor)[:2])
        yield DrawnBody(
            f"{actor.name}, {actor.kind}", look, (arm,), corners, _rows(drive.trace.actors[:, number], carry)
        )
    for one in scenario.obstacles:
        pose = np.array([[one.pose.x_m, one.pose.y_m, one.pose.yaw_rad]])
        yield DrawnBody(f"{one.name}, {one.shape}", "thing", (arm,), shapes.of_obstacle(one), _rows(pose, carry))


def _merged(source: Sequence[DrawnBody], followup: Sequence[DrawnBody]) -> Iterator[DrawnBody]:
    """Yield all bodies; those that move alike in both arms only once, for the longer of both."""
    left = {body.name: body for body in source}
    for body in followup:
        twin = left.get(body.name)
        if twin is not None and _alike(twin, body):
            del left[body.name]
            longer = body if len(body.rows) >= len(twin.rows) else twin
            # The rows are at the instants of the last arm.
            yield replace(longer, arms=(1 - longer.arms[0], longer.arms[0]))
        else:
            yield body
    yield from left.values()


def _alike(one: DrawnBody, other: DrawnBody) -> bool:
    rows = min(len(one.rows), len(other.rows))
    reach_m = float(np.hypot(*other.corners_m.T).max())
    apart = np.abs(one.rows[:rows] - other.rows[:rows]) * (1.0, 1.0, reach_m)
    return np.array_equal(one.corners_m, other.corners_m) and bool(apart.max() < _ALIKE_M)


def _hits(arm: int, drive: ScenarioTrace, carry: Carry) -> Iterator[CollisionMark]:
    for collision in drive.trace.collisions:
        x, y = carry.places(np.array([[collision.x_m, collision.y_m]]))[0].tolist()
        yield CollisionMark(arm, collision, x, y)


def _plotted(arms: Sequence[tuple[ScenarioTrace, Carry]], column: str, factor: float) -> tuple[Floats, Floats]:
    source, followup = (drive.trace.column(column) * factor for drive, _ in arms)
    # In the follow-up's frame a mirrored source steers to the other side.
    return source * (arms[0][1].side if column == "steering_rad" else 1.0), followup
