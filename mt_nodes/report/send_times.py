# SPDX-License-Identifier: Apache-2.0
"""Draws what is sent when: each message with the frame whose content it carries, and with its stamp."""

from __future__ import annotations

from collections import Counter
from typing import Any

from matplotlib.axes import Axes

from mt_nodes.report.birdseye import BLACK, BLUE, GREY, ORANGE, VERMILLION
from mt_nodes.report.pictures.frame_inspection import MutatedFrame, SentBundle

_SOURCE, _SENT, _STAMPED = 2.0, 1.0, 0.0
_BELOW = 0.24


class _Rows:
    """Marks over time, in rows; marks at one place go below each other, so that the later is the lower."""

    def __init__(self, axes: Axes, looked_at: int) -> None:
        self._axes, self._looked_at = axes, looked_at
        self._taken: Counter[tuple[float, float]] = Counter()

    def mark(self, time_s: float, row: float, sent: SentBundle, colour: str) -> float:
        """Draw the frame whose content a message carries; return the height it is at."""
        place = round(time_s, 4), row
        height = row - _BELOW * self._taken[place]
        self._taken[place] += 1
        edge = 2.0 if sent.frame == self._looked_at else 0.0
        self._axes.scatter([time_s], [height], s=330, c=colour, edgecolors=BLACK, linewidths=edge, zorder=2)
        words: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8, "fontweight": "bold", "zorder": 3}
        text = "other" if sent.content is None else str(sent.content)
        self._axes.annotate(text, (time_s, height), color="white", **words)
        return height


def draw_times(axes: Axes, look: MutatedFrame) -> None:
    """Draw three rows over time: source messages, follow-up messages when they go out, and what their stamps say.

    A line leads from each source frame to every message that carries its content, and on to that message's stamp.
    """
    start_ns = min(s.sent_ns for s in (*look.sources, *look.sent))
    rows, used = _Rows(axes, look.source.index), {s.content for s in look.sent}
    at: dict[int | None, float] = {}
    for sent in look.sources:
        at[sent.frame] = time_s = (sent.sent_ns - start_ns) * 1e-9
        lost = sent.frame not in used and sent is not look.sources[-1]  # the last may go out after those shown
        rows.mark(time_s, _SOURCE, sent, VERMILLION if lost else BLUE)
        if lost:
            axes.annotate("not sent", (time_s, _SOURCE - 0.3), ha="center", fontsize=8, color=VERMILLION)
    for sent in look.sent:
        sent_s, stamp_s = ((ns - start_ns) * 1e-9 for ns in (sent.sent_ns, sent.stamp_ns))
        above, below = rows.mark(sent_s, _SENT, sent, ORANGE), rows.mark(stamp_s, _STAMPED, sent, ORANGE)
        axes.plot([at.get(sent.content, sent_s), sent_s], [_SOURCE, above], color=GREY, linewidth=1.0, zorder=1)
        axes.plot([sent_s, stamp_s], [above, below], color=GREY, linewidth=1.0, zorder=1)
    axes.set_yticks((_SOURCE, _SENT, _STAMPED), ("source", "follow-up, sent", "follow-up, stamp says"))
    axes.set(ylim=(-0.7, 2.4), xlabel="time (s)")
    axes.grid(axis="x", color=GREY, alpha=0.3)
    axes.set_title(
        "each number is the frame whose points the message carries; at one time, the upper goes first", fontsize=9
    )
