# SPDX-License-Identifier: Apache-2.0
"""Perception with a camera: the lines of the own lane, and traffic lights with their states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import cv2
import numpy as np

from mt_nodes.base.arrays import Mask, Pixels, Singles
from mt_nodes.base.params import param
from mt_nodes.data.lanes import OWN, Lanes, SignalStates, Strip
from mt_nodes.data.outputs import Output
from mt_nodes.stacks.reference.camera import CameraStack
from mt_nodes.stacks.reference.faults.base import named_faults
from mt_nodes.stacks.reference.faults.perception_base import PerceptionSteps, sorted_faults
from mt_nodes.stacks.reference.lane import FAR_M, NEAR_M, LaneFit

_KINDS = ("camera", "perception")
#: Ratio of the strongest channel to others in a lit lamp (red: to both others; yellow: of red and green, to blue;
#: green: to red), at which its score is 0, and 1. Assumed, around those of the lamp detector.
_RATIOS = {"red": (1.3, 1.9), "yellow": (1.3, 1.9), "green": (1.2, 1.6)}
#: Red to green of what is red and no longer yellow, and green to red of what is green: between orange, and lime. Green
#: lamps are bluish, leaves are not (CIE S 004/E-2001: green signals have x of 0.34 at most).
_ORANGE, _LIME = 1.4, 1.15
#: Green to blue of what is green and not the sky in a window.
_CYAN = 1.06
#: Brightness of what surrounds a lamp, as a share of its own, at which its score is 1, and 0: a housing is black.
_SURROUNDINGS = (0.45, 0.85)
#: Area in pixels of a lamp with a score of 0, and of 1: smaller ones are leaves in the sun as often as lamps.
_AREA_PX = (8.0, 28.0)
#: Brightness of a lamp, as a share of the brightest in the picture, at which its score is 0, and 1.
_BRIGHTNESS = (0.45, 0.7)
_LINE_STEP_M, _MOST, _DECIMALS = 1.0, 200, 6


#: A lamp is off if another one within so many of its heights is brighter by this factor: lenses have their colours in
#: the light of day, too (assumed; of three lenses in one housing the outer ones are three heights apart).
_HOUSING_HEIGHTS, _BRIGHTER = 4.5, 1.25


class _Lamp(NamedTuple):
    """A spot of light: its state, left, upper, right and lower edge in pixels, mean brightness, and score."""

    state: str
    box_px: tuple[int, int, int, int]
    brightness: float
    score: float

    def shares_housing(self, other: _Lamp) -> bool:
        """Return whether both may be lenses of one light: as large, one above or beside the other, and near."""
        (x0, y0, x1, y1), (u0, v0, u1, v1) = self.box_px, other.box_px
        high, other_high = y1 - y0 + 1.0, v1 - v0 + 1.0
        aligned = min(abs(x0 + x1 - u0 - u1), abs(y0 + y1 - v0 - v1)) / 2.0 <= 0.6 * max(high, other_high)
        return aligned and 0.5 <= high / other_high <= 2.0 and self.apart_heights(other) <= _HOUSING_HEIGHTS

    def apart_heights(self, other: _Lamp) -> float:
        """Return the distance to another lamp, in heights of the taller one."""
        (x0, y0, x1, y1), (u0, v0, u1, v1) = self.box_px, other.box_px
        return float(np.hypot(x0 + x1 - u0 - u1, y0 + y1 - v0 - v1) / 2.0 / (max(y1 - y0, v1 - v0) + 1.0))


@dataclass(frozen=True, eq=False)
class RoadCamera:
    """Finds the two lines of the own lane, and lit lamps of traffic lights; each picture on its own.

    A lamp is a compact spot of saturated red, yellow or green above the horizon with dark surroundings. Tail lights of
    lorries and signs may be taken for one, too: for who compares two pictures of one scene that is no matter.
    """

    lane_width_m: float = param(4.0, low=2.0, high=6.0, unit="m", help="between the middles of the lines")
    seen_share: float = param(0.6, low=0.0, high=1.0, help="share of the road ahead along which a line must be seen")
    least_score: float = param(0.2, low=0.0, high=1.0, help="lamps with less are not published")
    faults: tuple[Any, ...] = param(
        (),
        convert=lambda value, where: named_faults(value, where, *_KINDS),
        help="names of faults to plant, or {name: {parameter: value}}",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "faults", named_faults(self.faults, "faults", *_KINDS))

    def __call__(self, given: Pixels | Mapping[str, Any], stamp_ns: int | None = None) -> Output:
        """Return ``lanes``, left and right line in ``base_link``, and ``signals`` in the picture.

        Raises ValueError: the picture has another shape.
        ``given``: a picture (H, W, 3) uint8, red, green, blue; or that as ``image``, with its ``camera_info``.
        ``stamp_ns``: of the picture; only some faults look at it.
        """
        camera_input, lane = self._camera.look(given, stamp_ns)
        horizon = int(np.clip(round(camera_input.camera.k[1, 2]), 1, len(camera_input.rgb)))
        return self._camera.report(Output(lanes=self._lines(lane), signals=self._signals(camera_input.rgb[:horizon])))

    @cached_property
    def _camera(self) -> CameraStack:
        return CameraStack(lane_width_m=self.lane_width_m, faults=sorted_faults(self.faults)[0])

    @cached_property
    def _steps(self) -> PerceptionSteps:
        honest = PerceptionSteps(lit=lambda rgb: _BRIGHTNESS[0] * _brightest(rgb))
        return reduce(lambda steps, fault: fault.plant(steps), sorted_faults(self.faults)[1], honest)

    def _lines(self, lane: LaneFit) -> Lanes:
        if lane.visible_share < self.seen_share:
            return Lanes.make(self._camera.frame_id, None)
        x = np.arange(NEAR_M, FAR_M + _LINE_STEP_M / 2.0, _LINE_STEP_M)
        middle = lane.left_m(x)
        sides = (("left", self.lane_width_m / 2.0), ("right", -self.lane_width_m / 2.0))
        places = [np.column_stack([x + self._camera.forward_m, middle + side]).round(_DECIMALS) for _, side in sides]
        return Lanes.make(
            self._camera.frame_id,
            None,
            [Strip(name, OWN, 0.0, line) for (name, _), line in zip(sides, places, strict=True)],
        )

    def _signals(self, sky: Pixels) -> SignalStates:
        """Return the lamps in the part of a picture (H, W, 3) above the horizon."""
        bright, brightest = sky.max(axis=2), _brightest(sky)
        lit = bright >= max(self._steps.lit(sky), 1.0)
        found = [lamp for state, ratio in _ratios(sky).items() for lamp in _lamps(ratio, state, bright, lit, brightest)]
        rows = [lamp for lamp in _shining(found) if lamp.score >= self.least_score]
        return SignalStates.make(
            "",
            None,
            [""] * len(rows),
            [lamp.state for lamp in rows],
            None,
            [round(lamp.score, _DECIMALS) for lamp in rows],
            [lamp.box_px for lamp in rows],
        )


def _ratios(rgb: Pixels) -> dict[str, Singles]:
    """Return by state how much (H, W) the strongest channel exceeds others."""
    red, green, blue = (channel.astype(np.float32) + 1.0 for channel in cv2.split(rgb))
    amber = (red < _ORANGE * green) & (green < _LIME * red)
    return {
        "red": red / np.maximum(green, blue),
        "yellow": np.where(amber, np.minimum(red, green) / blue, 0.0),
        "green": np.where((blue > red) & (green > _CYAN * blue), green / red, 0.0),
    }


def _brightest(rgb: Pixels) -> float:
    """Return the brightness of a picture's brightest thousandth, at least 1."""
    return max(float(np.percentile(rgb.max(axis=2), 99.9)), 1.0)


def _lamps(ratio: Singles, state: str, bright: Pixels, lit: Mask, brightest: float) -> list[_Lamp]:
    """Return the compact spots of a colour, the largest ones first."""
    mask = (lit & (ratio >= _RATIOS[state][0])).astype(np.uint8)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    order = sorted(range(1, count), key=lambda row: -int(stats[row, cv2.CC_STAT_AREA]))[:_MOST]
    lamps = []
    for row in order:
        x, y, wide, high, area = stats[row].tolist()
        compact = 0.6 <= wide / high <= 1.7 and area >= 0.55 * wide * high and y + high < len(bright)
        if area >= _AREA_PX[0] and compact:
            part = labels[y : y + high, x : x + wide] == row
            own = ratio[y : y + high, x : x + wide][part], bright[y : y + high, x : x + wide][part]
            around = _around(bright, (x, y, wide, high))
            score = (
                _share(float(np.percentile(own[0], 75)), *_RATIOS[state])
                * _share(around / max(float(own[1].mean()), 1.0), *_SURROUNDINGS[::-1])
                * _share(float(area), *_AREA_PX)
                * _share(float(np.percentile(own[1], 75)) / brightest, *_BRIGHTNESS)
            )
            lamps.append(_Lamp(state, (x, y, x + wide - 1, y + high - 1), float(own[1].mean()), score))
    return lamps


def _shining(lamps: list[_Lamp]) -> list[_Lamp]:
    """Return the lamps that are on: the brightest of each housing, of one spot the state that fits best."""

    def outshone(lamp: _Lamp, other: _Lamp) -> bool:
        apart = lamp.apart_heights(other)
        if apart < 0.5:
            return (other.score, other.state) > (lamp.score, lamp.state)
        return lamp.shares_housing(other) and other.brightness > _BRIGHTER * lamp.brightness

    known = [lamp for lamp in lamps if lamp.score > 0.0]
    return [lamp for lamp in known if not any(outshone(lamp, other) for other in known if other is not lamp)]


def _around(bright: Pixels, box: tuple[int, int, int, int]) -> float:
    """Return the median brightness of a ring about a box (x, y, width, height), as wide as half of it."""
    x, y, wide, high = box
    gap, width = 1, max(2, max(wide, high) // 2)
    y0, x0 = max(0, y - gap - width), max(0, x - gap - width)
    outer = bright[y0 : y + high + gap + width, x0 : x + wide + gap + width]
    ring = np.ones(outer.shape, dtype=bool)
    ring[max(0, y - gap - y0) : y + high + gap - y0, max(0, x - gap - x0) : x + wide + gap - x0] = False
    return float(np.median(outer[ring])) if ring.any() else 255.0


def _share(value: float, nothing: float, whole: float) -> float:
    """Return where a value lies between what counts nothing and what counts whole, 0 to 1."""
    return float(np.clip((value - nothing) / (whole - nothing), 0.0, 1.0))
