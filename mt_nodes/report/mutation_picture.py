# SPDX-License-Identifier: Apache-2.0
"""Draws a frame before and after a mutation, from above and from the side; or the send times of its messages."""

from __future__ import annotations

import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure, FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import describe, plain
from mt_nodes.base.plugins import name_of
from mt_nodes.data.regions import Region
from mt_nodes.report.image_picture import changed_pictures, clouds_differ, draw_pictures, height_in
from mt_nodes.report.picture_colours import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILLION
from mt_nodes.report.pictures.before_after import BeforeAfter, before_after
from mt_nodes.report.pictures.frame_inspection import MutatedFrame, SentBundle

_SOURCE, _SENT, _STAMPED = 2.0, 1.0, 0.0
_BELOW = 0.24

#: The darker part of a colour map: light grey is invisible on white.
_GREY: Colormap = LinearSegmentedColormap.from_list("grey", ["#C8C8C8", "#4A4A4A"])
_SCALE: Colormap = LinearSegmentedColormap.from_list("scale", matplotlib.colormaps["viridis"](np.linspace(0, 0.92, 64)))
_ADDED, _REMOVED = PURPLE, VERMILLION
_OUTLINES = {"added": (BLUE, "-"), "removed": (VERMILLION, "-"), "occluded": (GREEN, "--")}
#: A space at which no line is broken.
_NO_BREAK = "\u00a0"
_WIDTH_IN, _LINE_LETTERS = 11.0, 150


def write_picture(frame: MutatedFrame, path: Path, range_m: float | None = None, dpi: int = 110) -> None:
    """Draw and write the picture, in the format of the path's suffix (png, svg, pdf …).

    Raises UsageError: it cannot be written there, or not in that format.
    """
    figure = draw(frame, range_m)
    try:
        figure.savefig(path, dpi=dpi)
    except (OSError, ValueError) as error:
        raise UsageError(f"--out {path}: cannot be written: {error}") from error


def draw(frame: MutatedFrame, range_m: float | None = None) -> Figure:
    """Return the figure of one frame."""
    pictures = changed_pictures(frame)
    if pictures and (frame.change is None or not clouds_differ(frame.source, frame.derived.followup.first)):
        figure = _figure(height_in(pictures, _WIDTH_IN), frame)
        draw_pictures(figure, pictures)
        return figure
    if frame.of_times or frame.change is None:
        figure = _figure(4.4, frame)
        draw_times(figure.add_subplot(), frame)
        return figure
    shown = before_after(frame, frame.change, range_m)
    if not pictures:
        figure = _figure(_clouds_in(shown), frame)
        _clouds(frame, shown, figure)
        return figure
    above_in, below_in = height_in(pictures, _WIDTH_IN), _clouds_in(shown)
    figure = _figure(above_in + below_in, frame)
    parts: Any = figure.subfigures(2, 1, height_ratios=(above_in, below_in))
    draw_pictures(parts[0], pictures)
    _clouds(frame, shown, parts[1])
    return figure


def _figure(height_in: float, frame: MutatedFrame) -> Figure:
    figure = Figure(figsize=(_WIDTH_IN, height_in + 0.17 * title(frame).count("\n")), layout="constrained")
    FigureCanvasAgg(figure)
    name, _, rest = title(frame).partition("\n")
    figure.suptitle(f"$\\bf{{{name.replace('_', chr(92) + '_')}}}$\n{rest}", fontsize=9, x=0.01, ha="left")
    return figure


def title(frame: MutatedFrame) -> str:
    """Return name, parameters and counts, one per line."""
    counts = [f"frame {frame.source.index}", f"seed {frame.seed}", _counts(frame)]
    named = len(frame.mutations) > 1 or bool(frame.baseline)
    lines = [frame.name, *(_parameters(m, named) for m in frame.mutations)]
    lines += [f"before: the relation's baseline, {_parameters(m, True)}" for m in frame.baseline]
    lines.append(", ".join(counts))
    return "\n".join(part for line in lines for part in textwrap.wrap(line, _LINE_LETTERS))


def _parameters(mutation: Any, named: bool) -> str:
    parameters = []
    for row in describe(type(mutation)):
        value = getattr(mutation, row["name"])
        if value is None or value in ("", ()):
            continue
        text = value.name if isinstance(value, Region) else f"{value:g}" if isinstance(value, float) else plain(value)
        words = f"{row['name']} = {text}" + (f" {row['unit']}" if row["unit"] else "")
        parameters.append(words.replace(" ", _NO_BREAK))
    return (f"{name_of(type(mutation))}: " if named else "") + (", ".join(parameters) or "no parameters")


def _counts(frame: MutatedFrame) -> str:
    if frame.of_times or frame.change is None:
        sent = len(frame.derived.followup.bundles)
        return f"{sent} {'bundle' if sent == 1 else 'bundles'} sent in its place"
    n = frame.change.counts()
    changes = [f"{n[k]:,} {k}" for k in ("added", "removed") if n[k]]
    if n["moved"]:
        changes.append(f"{n['moved']:,} moved by {n['moved_median_m']:.2g} m (median; most {n['moved_most_m']:.2g} m)")
    if n["intensity_changed"]:
        changes.append(f"intensity of {n['intensity_changed']:,} changed")
    if n["reordered"]:
        changes.append("in another order")
    return f"{n['points_before']:,} → {n['points_after']:,} points: {', '.join(changes) or _other_changes(frame)}"


def _other_changes(frame: MutatedFrame) -> str:
    """Return whether images changed, or the Doppler speeds of a radar, where no return came, went or moved."""
    changed = frame.derived.followup.first.changed_topics(frame.source)
    if changed & {radar.topic for radar in frame.source.radars}:
        return "radar speeds changed"
    return "images changed" if changed & {image.topic for image in frame.source.images} else "nothing changed"


def _panels_in(shown: BeforeAfter) -> tuple[float, float]:
    """Return the heights of the panels from above and from the side."""
    x0, x1, y0, y1, z0, z1 = shown.window
    panel_in = (_WIDTH_IN - 1.2) / 2.0
    s0, s1 = shown.side
    return panel_in * (y1 - y0) / (x1 - x0), panel_in * (z1 - z0) / (s1 - s0)


def _clouds_in(shown: BeforeAfter) -> float:
    return sum(_panels_in(shown)) + 1.8


def _clouds(frame: MutatedFrame, shown: BeforeAfter, figure: FigureBase) -> None:
    x0, x1, y0, y1, z0, z1 = shown.window
    s0, s1 = shown.side
    above_in, side_in = _panels_in(shown)
    grid = figure.subplots(2, 2, sharex="row", sharey="row", height_ratios=(above_in, side_in))
    scale = _limits(shown)
    for column, when in enumerate(("before", "after")):
        for row, (view, axis) in enumerate((("from above", 1), ("from the side", 2))):
            axes = grid[row, column]
            _panel(axes, shown, when, axis, scale)
            axes.set_title(f"{when}, {view}", fontsize=9)
            axes.set(
                aspect="equal",
                **({"xlim": (x0, x1), "ylim": (y0, y1)} if row == 0 else {"xlim": (s0, s1), "ylim": (z0, z1)}),
            )
            axes.tick_params(labelsize=8)
        grid[1, column].set_xlabel(f"x, forward (m, {shown.frame_id})", fontsize=8)
    grid[0, 0].set_ylabel("y, to the left (m)", fontsize=8)
    grid[1, 0].set_ylabel("z (m)", fontsize=8)
    if shown.colours.label:
        colours = ScalarMappable(Normalize(*scale), _SCALE)
        bar = figure.colorbar(colours, ax=grid, location="right", shrink=0.8, aspect=40, pad=0.01)
        bar.set_label(shown.colours.label, fontsize=8)
        bar.ax.tick_params(labelsize=8)
    if _counts(frame).endswith("nothing changed"):
        grid[0, 1].text(0.5, 0.06, "nothing changed", transform=grid[0, 1].transAxes, ha="center", fontsize=12)
    if handles := _legend(shown):
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8, frameon=False)


def _limits(shown: BeforeAfter) -> tuple[float, float]:
    values = [v[np.isfinite(v)] for v in (shown.colours.before, shown.colours.after) if v is not None]
    if not values or not sum(map(len, values)):
        return 0.0, 1.0
    low, high = np.percentile(np.concatenate(values), (1, 99))
    if shown.colours.before is None:  # for changes: the scale includes 0
        low, high = min(low, 0.0), max(high, 0.0)
    return float(low), float(high if high > low else low + 1e-6)


def _panel(axes: Axes, shown: BeforeAfter, when: str, axis: int, scale: tuple[float, float]) -> None:
    before = when == "before"
    xyz, values = (shown.before, shown.colours.before) if before else (shown.after, shown.colours.after)
    marked, colour = (shown.removed, _REMOVED) if before else (shown.added, _ADDED)
    size = 0.7 * max(1.0, 60.0 / (shown.window[1] - shown.window[0])) ** 0.75
    if values is None:
        z0, z1 = shown.window[4:]
        _points(axes, shown, xyz, axis, size, c=xyz[:, 2], cmap=_GREY, vmin=z0, vmax=z1)
    else:
        _points(axes, shown, xyz, axis, size, c=values, cmap=_SCALE, vmin=scale[0], vmax=scale[1])
    few = min(3.4, 140.0 / max(len(marked), 1) ** 0.5)
    _points(axes, shown, marked, axis, max(0.8 * size, few), c=colour)
    _volumes(axes, shown, before, axis)
    if not before and len(shown.arrows):
        start, end = shown.arrows[:, 0], shown.arrows[:, 1]
        way = (end - start) * shown.magnified
        units: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "width": 0.0022}
        axes.quiver(start[:, 0], start[:, axis], way[:, 0], way[:, axis], color=BLACK, zorder=4, **units)
    axes.plot([0], [0], marker=">", color=BLACK, markersize=6, clip_on=True)


def _points(axes: Axes, shown: BeforeAfter, xyz: Floats, axis: int, size: float, **colours: Any) -> None:
    """Draw the points (N, 3) inside the window; ``c``, where it is an array, has a value for each."""
    x0, x1, y0, y1 = shown.window[:4]
    inside = (xyz[:, 0] >= x0) & (xyz[:, 0] <= x1) & (axis == 2 or (xyz[:, 1] >= y0) & (xyz[:, 1] <= y1))
    if isinstance(colours["c"], np.ndarray):
        inside &= np.isfinite(colours["c"])
        colours["c"] = colours["c"][inside]
    axes.scatter(xyz[inside, 0], xyz[inside, axis], s=size**2, linewidths=0, rasterized=True, **colours)


def _volumes(axes: Axes, shown: BeforeAfter, before: bool, axis: int) -> None:
    hidden = "added" if before else "removed"
    for outline in (o for o in shown.outlines if o.what != hidden):
        colour, style = _OUTLINES[outline.what]
        (x0, x1), (z0, z1) = outline.side_x, outline.side_z
        corners = outline.above if axis == 1 else [(x0, z0), (x1, z0), (x1, z1), (x0, z1)]
        axes.add_patch(Polygon(corners, fill=False, edgecolor=colour, linestyle=style, linewidth=1.4, zorder=3))
    for polygon in shown.regions if axis == 1 else ():
        axes.add_patch(Polygon(polygon, fill=False, edgecolor=BLACK, linewidth=1.2, zorder=3))


def _legend(shown: BeforeAfter) -> list[Line2D]:
    def spot(colour: str, label: str) -> Line2D:
        return Line2D([], [], linestyle="", marker="o", markersize=5, color=colour, label=label)

    handles = [spot(_REMOVED, f"removed ({len(shown.removed):,})")] if len(shown.removed) else []
    handles += [spot(_ADDED, f"added ({len(shown.added):,})")] if len(shown.added) else []
    for what, (colour, style) in _OUTLINES.items():
        labels = sorted({o.label for o in shown.outlines if o.what == what} - {"unknown", what})
        if any(o.what == what for o in shown.outlines):
            label = f"volume {what}" + (f": {', '.join(labels)}" if labels else "")
            handles.append(Line2D([], [], color=colour, linestyle=style, label=label))
    handles += [Line2D([], [], color=BLACK, label="region")] if shown.regions else []
    if len(shown.arrows):
        times = "" if shown.magnified == 1 else f", drawn {shown.magnified:g} times as long"
        handles.append(Line2D([], [], color=BLACK, marker=">", markersize=4, label=f"moves{times}"))
    return handles


class _Rows:
    """Marks over time, in rows; marks at the same time go below each other, later ones lower."""

    def __init__(self, axes: Axes, inspected: int) -> None:
        self._axes, self._inspected = axes, inspected
        self._marks: Counter[tuple[float, float]] = Counter()

    def mark(self, time_s: float, row: float, sent: SentBundle, colour: str) -> float:
        """Draw the number of the frame whose points a message carries; return the height of the mark."""
        at = round(time_s, 4), row
        height = row - _BELOW * self._marks[at]
        self._marks[at] += 1
        edge = 2.0 if sent.frame == self._inspected else 0.0
        self._axes.scatter([time_s], [height], s=330, c=colour, edgecolors=BLACK, linewidths=edge, zorder=2)
        words: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8, "fontweight": "bold", "zorder": 3}
        text = "other" if sent.content is None else str(sent.content)
        self._axes.annotate(text, (time_s, height), color="white", **words)
        return height


def draw_times(axes: Axes, frame: MutatedFrame) -> None:
    """Draw three rows over time: source messages, follow-up messages at their send time, and at their stamp.

    A line leads from each source frame to every message that carries its content, and on to that message's stamp.
    """
    start_ns = min(s.sent_ns for s in (*frame.sources, *frame.sent))
    rows, used = _Rows(axes, frame.source.index), {s.content for s in frame.sent}
    at: dict[int | None, float] = {}
    for sent in frame.sources:
        at[sent.frame] = time_s = (sent.sent_ns - start_ns) * 1e-9
        lost = sent.frame not in used and sent is not frame.sources[-1]  # the last one may be sent after the shown ones
        rows.mark(time_s, _SOURCE, sent, VERMILLION if lost else BLUE)
        if lost:
            axes.annotate("not sent", (time_s, _SOURCE - 0.3), ha="center", fontsize=8, color=VERMILLION)
    for sent in frame.sent:
        sent_s, stamp_s = ((ns - start_ns) * 1e-9 for ns in (sent.sent_ns, sent.stamp_ns))
        above, below = rows.mark(sent_s, _SENT, sent, ORANGE), rows.mark(stamp_s, _STAMPED, sent, ORANGE)
        axes.plot([at.get(sent.content, sent_s), sent_s], [_SOURCE, above], color=GREY, linewidth=1.0, zorder=1)
        axes.plot([sent_s, stamp_s], [above, below], color=GREY, linewidth=1.0, zorder=1)
    axes.set_yticks((_SOURCE, _SENT, _STAMPED), ("source", "follow-up, sent", "follow-up, stamp"))
    axes.set(ylim=(-0.7, 2.4), xlabel="time (s)")
    axes.grid(axis="x", color=GREY, alpha=0.3)
    axes.set_title(
        "numbers: the frame whose points the message carries; at equal times the upper one is sent first", fontsize=9
    )
