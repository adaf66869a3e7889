# SPDX-License-Identifier: Apache-2.0
"""Draws send times: each message with the frame whose points it carries, and with its stamp."""

from __future__ import annotations

from collections import Counter
from typing import Any

from matplotlib.axes import Axes

from mt_nodes.report.picture_colours import BLACK, BLUE, GREY, ORANGE, VERMILLION
from mt_nodes.report.pictures.frame_inspection import MutatedFrame, SentBundle

_SOURCE, _SENT, _STAMPED = 2.0, 1.0, 0.0
_BELOW = 0.24


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
