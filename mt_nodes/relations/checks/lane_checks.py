# SPDX-License-Identifier: Apache-2.0
"""Check of detected lanes and lane lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.arrays import Mask
from mt_nodes.base.assignment import linear_sum_assignment
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.lanes import Lanes
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.data.transforms import UnknownTransform, move
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check, at_most, nothing_to_judge

Places = npt.NDArray[np.float64]
#: A name that stands for the side of a line goes to the other side in a mirror.
_SIDES = {"left": "right", "right": "left"}


@dataclass(frozen=True, eq=False)
class _Line:
    """A lane's middle line, or a line between lanes: its name, empty where it has none, and (K, 2) places."""

    name: str
    places: Places

    @property
    def described(self) -> str:
        """What it is called, for people."""
        return f"lane '{self.name}'" if self.name else "the lane"


@dataclass(frozen=True)
class LanesKept(Check):
    """Each lane or lane line of the source is in the follow-up, at most ``tolerance_m`` beside where it was.

    Places every ``step_m`` along a line of the source, up to ``horizon_m`` from the vehicle's frame, are its stations;
    the distance at one is that to the follow-up's line, where that line passes the station: stations before its
    beginning and behind its end are not compared, and where these are more than ``1 - least_share`` of all, the line is
    lost. Lines with one name in both outputs belong together, others to the nearest one. In a mirror the expected lines
    are mirrored, and ``left`` is ``right``. New lines are reported beside it. A source without a line decides nothing.
    """

    needs: ClassVar[tuple[str, ...]] = ("lanes",)

    tolerance_m: float = param(0.2, low=0.001, high=10.0, unit="m", help="largest distance at a station")
    horizon_m: float = param(20.0, low=1.0, high=300.0, unit="m", help="stations beyond are not compared")
    step_m: float = param(1.0, low=0.1, high=10.0, unit="m", help="between stations")
    least_share: float = param(0.5, low=0.01, high=1.0, help="share of the stations that the follow-up's line passes")
    ego_frame_id: str = param("base_link", help="frame of the vehicle, from whose origin the horizon counts")

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Compare line by line."""
        assert source.lanes is not None and followup.lanes is not None
        try:
            expected = self._expected(source.lanes, effects, bundle)
            lines = _lines(_moved(followup.lanes, source.lanes.frame_id, bundle))
            ego = bundle.transforms.lookup(source.lanes.frame_id, self.ego_frame_id)[:2, 3]
        except UnknownTransform as error:
            return Judgement(Outcome.ERROR, reason=str(error), unit="m")
        stations = {i: places for i, line in enumerate(expected) if len(places := self._stations(line, ego)) > 1}
        if not stations:
            return nothing_to_judge(f"the source sees no lane within {self.horizon_m:g} m", "m")
        partner = _partners([expected[i] for i in stations], [*stations.values()], lines)
        off = [
            None if j is None else self._off_m(places, lines[j])
            for j, places in zip(partner, stations.values(), strict=True)
        ]
        return self._judgement([expected[i] for i in stations], off, len(lines) - sum(j is not None for j in partner))

    def _judgement(self, lines: Sequence[_Line], off: Sequence[float | None], new: int) -> Judgement:
        lost = [line for line, off_m in zip(lines, off, strict=True) if off_m is None]
        found = [(off_m, line) for line, off_m in zip(lines, off, strict=True) if off_m is not None]
        detail: dict[str, Any] = {"off_m": [None if value is None else round(value, 4) for value in off]}
        if lost:
            names = ", ".join(line.described for line in lost)
            reason = f"{names} not seen any more"
            return Judgement(
                Outcome.VIOLATED, None, self.tolerance_m, None, "m", reason, len(lost), max(new, 0), detail
            )
        worst, line = max(found, key=lambda row: row[0])
        reason = f"{line.described} is {worst:.3f} m beside where it was; {len(found)} compared"
        return at_most(worst, self.tolerance_m, "m", reason, gained=max(new, 0), detail=detail)

    def _expected(self, lanes: Lanes, effects: Effects, bundle: Bundle) -> list[_Line]:
        """Return the lines of the source where they are expected, in the source's frame.

        A movement of the scene carries what is seen with it; a mirror of the images alone swaps left and right.
        """
        lines, carry = _lines(lanes), effects.carry(lanes.frame_id, bundle.transforms)
        if carry is None and not effects.mirrored:
            return lines
        rows = []
        for line in lines:
            if carry is None:
                places = line.places * (1.0, -1.0)
            else:
                places = move(carry, np.column_stack([line.places, np.zeros(len(line.places))]))[:, :2]
            rows.append(_Line(_SIDES.get(line.name, line.name) if effects.mirrored else line.name, np.asarray(places)))
        return rows

    def _stations(self, line: _Line, ego: Places) -> Places:
        """Return places (N, 2) every ``step_m`` along a line, those within the horizon; none of a shorter line."""
        along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(line.places, axis=0).T))])
        at = np.arange(0.0, along[-1] + 1e-9, self.step_m)
        places = np.column_stack([np.interp(at, along, column) for column in line.places.T])
        return np.asarray(places[np.hypot(*(places - ego).T) <= self.horizon_m])

    def _off_m(self, stations: Places, line: _Line) -> float | None:
        """Return the largest distance at a station; None where the line passes too few of them."""
        passed = _passes(line.places, stations)
        if passed.mean() < self.least_share:
            return None
        return float(_distances(line.places, stations[passed]).max())


def _lines(lanes: Lanes) -> list[_Line]:
    return [_Line(strip.name, np.asarray(strip.middle_m)) for strip in lanes.strips if len(strip.middle_m) > 1]


def _moved(lanes: Lanes, frame_id: str, bundle: Bundle) -> Lanes:
    if lanes.frame_id == frame_id:
        return lanes
    matrix = bundle.transforms.lookup(frame_id, lanes.frame_id)
    places = move(matrix, np.column_stack([lanes.point_m, np.zeros(len(lanes))]))[:, :2]
    return Lanes(frame_id, lanes.stamp_ns, lanes.name, lanes.direction, lanes.width_m, np.asarray(places))


def _partners(expected: Sequence[_Line], stations: Sequence[Places], lines: Sequence[_Line]) -> list[int | None]:
    """Return the follow-up's line of each expected one: that of its name, else the nearest free one."""
    names = [line.name for line in lines]
    partner: list[int | None] = [
        names.index(line.name) if line.name and names.count(line.name) == 1 else None for line in expected
    ]
    left = [i for i, own in enumerate(partner) if own is None]
    free = [j for j in range(len(lines)) if j not in partner]
    if left and free:
        cost = np.array([[_mean_m(stations[i], lines[j]) for j in free] for i in left])
        for row, column in zip(*linear_sum_assignment(cost), strict=True):
            partner[left[int(row)]] = free[int(column)]
    return partner


def _mean_m(stations: Places, line: _Line) -> float:
    return float(_distances(line.places, stations).mean())


def _distances(line: Places, places: Places) -> Places:
    return np.asarray(shapely.distance(shapely.LineString(line), shapely.points(places)))


def _passes(line: Places, places: Places) -> Mask:
    """Return which places (N,) lie beside a line, not before its beginning or behind its end."""
    first, last = line[1] - line[0], line[-1] - line[-2]
    string = shapely.LineString(line)
    at = shapely.line_locate_point(string, shapely.points(places))
    before = (at <= 0.0) & ((places - line[0]) @ first < 0.0)
    behind = (at >= string.length) & ((places - line[-1]) @ last > 0.0)
    return np.asarray(~(before | behind))
