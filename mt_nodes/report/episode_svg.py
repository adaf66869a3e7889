# SPDX-License-Identifier: Apache-2.0
"""Draws a pair of drives: the whole episode from above, and the state of both ego vehicles over time.

A script can play it. Units of the view from above are centimetres, y downwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from math import degrees
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.arrays import Floats, Ints
from mt_nodes.engine.series_tables import ARMS
from mt_nodes.report.episode_view import PLOTTED, CollisionMark, DrawnBody, EpisodeView
from mt_nodes.world.drive.markings import markings
from mt_nodes.world.drive.signals import colour_at

_PLOT_X, _PLOT_Y = 2000.0, 400.0
_LIGHT_M, _CROSS_M, _BAR_M, _NOSE = 0.6, 0.9, 10.0, 0.3
#: A label of a collision stands so far off the road, and no farther from the collision than this and that.
_OFF_ROAD_M, _MOST_BESIDE_M = 1.0, 12.0
#: Outlines of each ego on its way; height of text as a share of the picture's width.
_GHOSTS, _TEXT = 8, 0.016
_SIMPLER_M = 0.03
#: Height of a plot over its largest value.
_MARGIN = 1.06


@dataclass(frozen=True)
class EgoPlot:
    """One value of the ego vehicle over time: picture, title, and the ends of its axis."""

    svg: str
    title: str
    unit: str
    low: str
    high: str


def from_above(view: EpisodeView) -> str:
    """Return the whole episode as an SVG element."""
    x0, y0, x1, y1 = view.window
    box = [round(100.0 * v) for v in (x0, -y1, x1 - x0, y1 - y0)]
    parts = (*_ground(view), *_lights(view), *_trails(view), *_ghosts(view), *_bodies(view), *_hits(view))
    return (
        f'<svg class="top" viewBox="{" ".join(map(str, box))}" font-size="{round(_TEXT * box[2])}" role="img" '
        f'aria-label="Both drives from above">{"".join(parts)}</svg>'
    )


def plots(view: EpisodeView) -> list[EgoPlot]:
    """Return a plot of each value of :data:`mt_nodes.report.episode_view.PLOTTED`."""
    return [_plot(view, both, spec) for both, spec in zip(view.plotted, PLOTTED, strict=True)]


def seconds(view: EpisodeView) -> list[tuple[float, int]]:
    """Return marks of the time axis: position in percent, and seconds."""
    step = next((s for s in (1, 2, 5, 10, 20, 60) if view.end_s / s <= 10.0), 300)
    return [(round(100.0 * t / view.end_s, 2), t) for t in range(0, int(view.end_s) + 1, step)] if view.end_s else []


def path(points_m: npt.ArrayLike, *, closed: bool = True) -> str:
    """Return places (N, 2) as data of an SVG path, in whole centimetres."""
    places = np.round(np.asarray(points_m, dtype=np.float64) * (100.0, -100.0)).astype(np.int64)
    return _steps(places) + ("z" if closed else "")


def _steps(places: Ints) -> str:
    steps = np.diff(places, axis=0)
    moves = steps[steps.any(axis=1)].ravel().tolist()
    return f"M{places[0, 0]} {places[0, 1]}" + (f"l{' '.join(map(str, moves))}" if moves else "")


def _ground(view: EpisodeView) -> Iterator[str]:
    """Yield carriageway, paint, kerbs, houses and a scale."""
    road, window = view.road, shapely.box(*view.window)
    x0, y0, x1, y1 = (round(100.0 * v) for v in view.window)
    yield f'<rect class="ground" x="{x0}" y="{-y1}" width="{x1 - x0}" height="{y1 - y0}"/>'
    layers: dict[str, tuple[list[Any], bool]] = {
        "surface": ([road.carriageway], True),
        "paint": ([shapely.Polygon(outline) for outline in markings(road)], True),
        "kerb": ([shapely.LineString(kerb) for kerb in road.kerbs_m], False),
        "house": ([shapely.Polygon(house.outline_m) for house in road.buildings], True),
    }
    for name, (shown, closed) in layers.items():
        if data := "".join(_clipped(shown, window, closed=closed)):
            yield f'<path class="{name}" fill-rule="evenodd" d="{data}"/>'
    corner = view.window[0] + 2.0, view.window[1] + 2.0
    scale = [corner, (corner[0] + _BAR_M, corner[1])]
    yield f'<path class="scale" d="{path(scale, closed=False)}"/>'
    yield f'<text class="scale" {_at(*corner)} dy="-.4em">{_BAR_M:g} m</text>'


def _clipped(shown: Iterable[Any], window: Any, *, closed: bool) -> Iterator[str]:
    for one in shown:
        if not one.intersects(window):
            continue
        for part in shapely.get_parts(shapely.simplify(one.intersection(window), _SIMPLER_M)):
            if part.geom_type == "LineString":
                yield path(part.coords, closed=closed)
            elif part.geom_type == "Polygon":
                yield from (path(ring.coords[:-1]) for ring in (part.exterior, *part.interiors))


def _lights(view: EpisodeView) -> Iterator[str]:
    for number, light in enumerate(view.road.signals):
        programme = view.programmes[light.name]
        turns = ", ".join(f"{colour} {seconds:g} s" for colour, seconds in programme)
        yield (
            f'<circle class="light {colour_at(programme, view.end_s)}" data-light="{number}" '
            f'cx="{round(100.0 * light.pose.x_m)}" cy="{round(-100.0 * light.pose.y_m)}" r="{100.0 * _LIGHT_M:g}">'
            f"<title>{escape(light.name)}: {escape(turns)}</title></circle>"
        )


def _trails(view: EpisodeView) -> Iterator[str]:
    for body in (*view.bodies, *view.egos):
        if body.moves:
            yield f'<path class="trail {_classes(body)}" d="{path(body.rows[:, :2], closed=False)}"/>'


def _ghosts(view: EpisodeView) -> Iterator[str]:
    """Yield outlines of the egos on their way, at equal intervals."""
    for ego, time_s in zip(view.egos, view.times_s, strict=True):
        rows = np.searchsorted(time_s, view.end_s * np.arange(_GHOSTS) / _GHOSTS)
        for row in rows[rows < len(time_s) - 1].tolist():
            yield f'<path class="ghost {_classes(ego)}" d="{path(ego.corners_m)}" {_placed(ego.rows[row])}/>'


def _bodies(view: EpisodeView) -> Iterator[str]:
    """Yield all bodies at the end of the drive; the egos have the first numbers but are drawn last, on top."""
    numbered = list(enumerate((*view.egos, *view.bodies)))
    for number, body in (*numbered[2:], *numbered[:2]):
        arm = "" if len(body.arms) == 2 or body in view.egos else f" ({view.names[body.arms[0]]} only)"
        yield (
            f'<path class="body {_classes(body)}" data-body="{number}" d="{path(body.corners_m)}{_nose(body)}" '
            f"{_placed(body.rows[-1])}><title>{escape(body.name)}{arm}</title></path>"
        )


def _nose(body: DrawnBody) -> str:
    """Return an arrow that points ahead, for bodies with a front."""
    (back, right), (front, left) = body.corners_m.min(axis=0), body.corners_m.max(axis=0)
    if body.look == "thing" or len(body.corners_m) != 4:
        return ""
    begin = front - _NOSE * (front - back)
    return path([(begin, right), (front, (left + right) / 2.0), (begin, left)], closed=False)


def _hits(view: EpisodeView) -> Iterator[str]:
    """Yield a cross at each collision, and its speed off the road: that of the source below, of the follow-up above."""
    left, _, right, _ = view.window
    for number, hit in enumerate(view.hits):
        x, y, c = hit.x_m, hit.y_m, _CROSS_M
        cross = path([(x - c, y - c), (x + c, y + c)], closed=False) + path([(x - c, y + c), (x + c, y - c)])
        end_m = _road_end_m(view, hit)
        leader = path([(x, y), (x, end_m)], closed=False)
        share = (x - left) / (right - left)
        anchor = "middle" if 0.2 < share < 0.8 else "start" if share <= 0.2 else "end"
        yield (
            f'<g class="hit {ARMS[hit.arm]}" data-hit="{number}"><path d="{cross}"/><path class="leader" d="{leader}"/>'
            f'<text {_at(x, end_m)} dy="{"-.3em" if hit.arm else "1em"}" text-anchor="{anchor}">{_speed(view, hit)}'
            "</text></g>"
        )


def _road_end_m(view: EpisodeView, hit: CollisionMark) -> float:
    """Return where the road near a collision ends, upwards (follow-up) or downwards (source), in metres."""
    side = 1.0 if hit.arm else -1.0
    ray = shapely.LineString([(hit.x_m, hit.y_m), (hit.x_m, hit.y_m + side * _MOST_BESIDE_M)])
    part = shapely.intersection(ray, view.road.carriageway)
    ends = [part.bounds[1], part.bounds[3]] if not part.is_empty else [hit.y_m, hit.y_m]
    return float(ends[1] if hit.arm else ends[0]) + side * _OFF_ROAD_M


def _speed(view: EpisodeView, hit: CollisionMark) -> str:
    return f"{view.names[hit.arm]}: {hit.collision.closing_mps:.1f} m/s, {escape(hit.collision.name)}"


def _plot(view: EpisodeView, both: tuple[Floats, Floats], spec: tuple[str, str, float, str, float]) -> EgoPlot:
    title, _, _, unit, least = spec
    values = np.concatenate([*both, [0.0]])
    low, high = _MARGIN * float(values.min()), _MARGIN * float(values.max())
    more = max(0.0, least - (high - low)) / 2.0
    low, high = low - more, high + more
    span_s = max(view.end_s, 1e-3)

    def places(time_s: Floats, values: Floats) -> str:
        xy = np.column_stack([_PLOT_X * time_s / span_s, _PLOT_Y * (high - values) / (high - low)])
        return _steps(np.round(xy).astype(np.int64))

    zero = round(_PLOT_Y * high / (high - low))
    lines = "".join(
        f'<path class="curve {arm}" d="{places(time_s, values)}"/>'
        for arm, time_s, values in zip(ARMS, view.times_s, both, strict=True)
    )
    hits = "".join(_bar(_PLOT_X * hit.collision.time_s / span_s, f"struck {ARMS[hit.arm]}") for hit in view.hits)
    svg = (
        f'<svg class="plot" viewBox="0 0 {_PLOT_X:g} {_PLOT_Y:g}" preserveAspectRatio="none" role="img" '
        f'aria-label="{title} of both egos over time"><path class="zero" d="M0 {zero}H{_PLOT_X:g}"/>{hits}{lines}'
        f"{_bar(0.0, 'time-line')}</svg>"
    )
    return EgoPlot(svg, title, unit, _tenths(low), _tenths(high))


def _bar(x: float, name: str) -> str:
    return f'<path class="{name}" d="M{round(x)} 0V{_PLOT_Y:g}"/>'


def _classes(body: DrawnBody) -> str:
    return body.look if len(body.arms) == 2 or "ego" in body.look else f"{body.look} {ARMS[body.arms[0]]}"


def _at(x_m: float, y_m: float) -> str:
    return f'x="{round(100.0 * x_m)}" y="{round(-100.0 * y_m)}"'


def _placed(row: Floats) -> str:
    x, y, yaw = row.tolist()
    return f'transform="translate({round(100.0 * x)} {round(-100.0 * y)}) rotate({_tenths(-degrees(yaw))})"'


def _tenths(value: float) -> str:
    # Adding zero turns a negative zero into zero.
    return f"{round(value, 1) + 0.0:.1f}"
