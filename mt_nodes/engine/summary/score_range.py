# SPDX-License-Identifier: Apache-2.0
"""Which scores a stack publishes, and whether the thresholds of its checks lie where they can decide anything.

Every stack scores as it likes: a detector whose best box has 0.87 is never demanded anything at 0.9, one whose boxes
have 0.9 now and then seldom, and one that cuts at 0.5 itself loses an obstacle for ever when it goes from 0.50 to 0.49.
A run tells of each.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mt_nodes.base.wording import counted
from mt_nodes.data.output_traits import DEFAULT_THRESHOLDS, Thresholds
from mt_nodes.data.outputs import Output
from mt_nodes.data.verdict import SCHEMA

TYPE = "scores"
#: After so many answers of the source arm it is told what is wrong with the thresholds.
FIRST_ANSWERS = 5
#: Less than this between the lowest score published and the high threshold is no gap.
LEAST_GAP = 0.1
#: The high threshold that is proposed lies this share of the way from the lowest score to an answer's usual highest.
_PROPOSED_SHARE = 0.4
#: Beyond these a detection is taken for one in another unit: no road user is as long, no sensor sees as far.
_MOST_SIZE_M, _MOST_RANGE_M, _MOST_YAW_RAD = 60.0, 2000.0, 6.4
#: Of the answers in which something is seen, in so many something should be demanded.
_LEAST_SHARE = 0.5

Line = Mapping[str, Any]


def score_line(bundle: tuple[int, int], output: Output, scores: Mapping[str, Thresholds]) -> dict[str, Any] | None:
    """Return the line of the scores in an answer of the source arm, in hundredths; None where it has none.

    ``bundle``: episode and index. ``output``: the answer. ``scores``: the stack's thresholds, by output.
    """
    outputs = {role: part for role in DEFAULT_THRESHOLDS if (part := getattr(output, role)) is not None}
    if not outputs:
        return None
    doubts = _unit_doubts(output)
    thresholds = {role: scores.get(role, DEFAULT_THRESHOLDS[role]) for role in outputs}
    return {
        "schema": SCHEMA,
        "type": TYPE,
        "bundle": list(bundle),
        "thresholds": {role: [each.high, each.low] for role, each in thresholds.items()},
        "hundredths": {role: _hundredths(part.score) for role, part in outputs.items()},
        "classes": {role: dict(Counter(part.label.tolist())) for role, part in outputs.items()},
        **({"doubts": doubts} if doubts else {}),
    }


def _unit_doubts(output: Output) -> list[str]:
    """Say what numbers of detections look like another unit than metres and radians; nothing of sound ones."""
    if output.detections is None:
        return []
    rows = np.column_stack([output.detections.size_m, output.detections.center_m, output.detections.yaw_rad])
    rows = np.abs(rows[np.isfinite(rows).all(axis=1)])
    if not len(rows):
        return []
    largest_m, farthest_m = (float(np.median(part.max(axis=1))) for part in (rows[:, :3], rows[:, 3:6]))
    most_rad = float(rows[:, 6].max())
    return [
        *([f"sizes of {largest_m:,.0f} m"] if largest_m > _MOST_SIZE_M else []),
        *([f"distances of {farthest_m:,.0f} m"] if farthest_m > _MOST_RANGE_M else []),
        *([f"yaw of {most_rad:.0f} rad"] if most_rad > _MOST_YAW_RAD else []),
    ]


def _hundredths(score: Any) -> dict[str, int]:
    finite = score[np.isfinite(score)]
    values, counts = np.unique(np.floor(finite.clip(0.0, 1.0) * 100 + 1e-6).astype(int), return_counts=True)
    return {str(value): count for value, count in zip(values.tolist(), counts.tolist(), strict=True)}


class ScoreRange:
    """The scores of a run, collected while its lines are read for something else."""

    def __init__(self) -> None:
        self.answers = 0
        self._doubts: Counter[str] = Counter()
        self._scores: dict[str, Counter[int]] = {}
        self._classes: dict[str, Counter[str]] = {}
        self._thresholds: dict[str, Thresholds] = {}
        #: By output: the highest score in each answer in which something is seen, in hundredths.
        self._highest: dict[str, list[int]] = {}

    def take(self, line: Line) -> None:
        """Take in a line, if it tells of scores."""
        if line.get("type") != TYPE:
            return
        self.answers += 1
        self._doubts.update(line.get("doubts", ()))
        for role, (high, low) in line["thresholds"].items():
            self._thresholds[role] = Thresholds(high, low)
        for role, counts in line["hundredths"].items():
            self._scores.setdefault(role, Counter()).update({int(value): count for value, count in counts.items()})
            self._classes.setdefault(role, Counter()).update(line["classes"].get(role, {}))
            self._highest.setdefault(role, []).extend([max(map(int, counts))] if counts else [])

    def passing(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield lines, and take in the scores among them."""
        for line in lines:
            self.take(line)
            yield line

    def plain(self) -> dict[str, Any]:
        """Return what a summary says of each output that something was seen in.

        Returns:
            By output: number of ``answers`` and of things in them, ``least`` and ``most`` of their scores, the
            thresholds ``high`` and ``low``, how many ``demanded`` (at or above ``high``), in how many answers (of how
            many in which something is seen), how many of each class, and if these thresholds are no good, ``warning``
            and ``proposal``, others.
        """
        return {role: self._plain(role, counts) for role, counts in self._scores.items() if counts}

    @property
    def least(self) -> float:
        """The lowest score that was published; 0 where all are the same, which says nothing of what is lower."""
        return min((min(counts) for counts in self._scores.values() if len(counts) > 1), default=0) / 100

    def warnings(self) -> list[str]:
        """Return a line for each output whose thresholds are no good: what is wrong, and what to write."""
        return [*score_warnings(self.plain()), *self._unit_warnings()]

    def _unit_warnings(self) -> list[str]:
        """Return a line if every answer so far has numbers that look like another unit."""
        if not self.answers or self._doubts.total() < self.answers:
            return []
        examples = {doubt.partition(" of ")[0]: doubt for doubt in self._doubts}
        return [
            f"the stack's detections have {', '.join(examples.values())}; expected metres and radians: is the stack's "
            "unit another (millimetres, degrees)?"
        ]

    def _plain(self, role: str, counts: Counter[int]) -> dict[str, Any]:
        least, most, fit = min(counts) / 100, max(counts) / 100, self._thresholds[role]
        demanded = sum(count for value, count in counts.items() if value / 100 >= fit.high)
        highest = sorted(self._highest[role])
        row = {
            "answers": self.answers,
            "count": counts.total(),
            **{"least": least, "most": most, "high": fit.high, "low": fit.low, "demanded": demanded},
            **{"seen_in": len(highest), "demanded_in": sum(value / 100 >= fit.high for value in highest)},
            "classes": dict(self._classes[role].most_common()),
        }
        # In half of the answers something has the middle one of their highest scores.
        high, low = proposal(least, highest[(len(highest) - 1) // 2] / 100)
        if (warning := _warning(role, row)) and (high, low) != (fit.high, fit.low):
            return {**row, "warning": warning, "proposal": {"high": high, "low": low}}
        return row


class ScoreFalls:
    """By how much the scores of lost things fell: a flicker at the threshold and a car gone from 0.95 are not one."""

    def __init__(self) -> None:
        #: How often a score, in hundredths, fell to another, 0 where nothing was left.
        self._falls: Counter[tuple[int, int]] = Counter()

    def take(self, falls: Iterable[Sequence[float]]) -> None:
        """Count what one pair lost: score before and after of each."""
        self._falls.update((round(100 * before), round(100 * after)) for before, after in falls)

    def plain(self, least: float = 0.0) -> dict[str, int]:
        """Return how many fell by less than :data:`LEAST_GAP` (``near``) and by more (``clear``); nothing of none.

        ``least``: the lowest score that the stack publishes: of what is gone nobody knows more than that it has less.
        """
        near = sum(
            count
            for (before, after), count in self._falls.items()
            if before - (after or round(100 * least)) < round(100 * LEAST_GAP)
        )
        return {"near": near, "clear": self._falls.total() - near} if self._falls else {}


def describe_score_drops(falls: Mapping[str, int]) -> str:
    """Say how many of what was lost fell just below the threshold."""
    total = falls["near"] + falls["clear"]
    return f"of {total} lost, {falls['near']} by a fall of the score of less than {LEAST_GAP:g}"


def score_warnings(scores: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a line for each output of a summary's ``scores`` whose thresholds are no good, with what to write."""
    wrong = {role: row for role, row in scores.items() if "warning" in row}
    return [f"{row['warning']}; {score_advice(role, row['proposal'])}" for role, row in wrong.items()]


def proposal(least: float, most: float) -> tuple[float, float]:
    """Return a high and a low threshold for a stack whose scores lie between these two.

    What answers must not be far below what is demanded: else anything at all would answer.
    """
    high = round(max(least + _PROPOSED_SHARE * (most - least), min(least + LEAST_GAP, most)), 2)
    return high, max(least, round(high / 2, 2))


def _warning(role: str, row: Mapping[str, Any]) -> str:
    counts = f"{row['count']} {role} in {counted(row['answers'], 'answer')} of the stack"
    if not row["demanded"]:
        return (
            f"of {counts} none has the score of {row['high']:g} (score_high) from which it is demanded, the highest is "
            f"{row['most']:.2f}: relations about {role} are NOT_APPLICABLE"
        )
    if row["least"] == row["most"]:  # it gives no scores, or two only
        return ""
    if row["demanded_in"] < _LEAST_SHARE * row["seen_in"]:
        return (
            f"of {counts} {row['demanded']} {'has' if row['demanded'] == 1 else 'have'} the score of {row['high']:g} "
            f"(score_high) from which one is demanded: in {row['seen_in'] - row['demanded_in']} of {row['seen_in']} "
            f"answers that see any none is, and relations about {role} are NOT_APPLICABLE there"
        )
    if row["least"] >= row["low"] and round(row["high"] - row["least"], 4) < LEAST_GAP:
        return (
            f"of {counts} none has a score below {row['least']:.2f}: the stack cuts there itself, and what is demanded "
            f"from {row['high']:g} (score_high) on is lost when its score falls by less than {LEAST_GAP:g}"
        )
    return ""


def score_advice(role: str, row: Mapping[str, float]) -> str:
    """Return what to write into a stack file."""
    return f"write scores: {{{role}: {{high: {row['high']:g}, low: {row['low']:g}}}}} into the stack file"


def score_notes(listen: Callable[[str], None], tell: Callable[[str], None]) -> Callable[[str], None]:
    """Return a listener to lines of a run that hands them on, and tells early of thresholds that are no good.

    ``listen``: is given each line. ``tell``: is given each warning, once.
    """
    found = ScoreRange()

    def listening(line: str) -> None:
        if found.answers < FIRST_ANSWERS and f'"{TYPE}"' in line:
            found.take(json.loads(line))
            if found.answers == FIRST_ANSWERS:
                for warning in found.warnings():
                    tell(warning)
        listen(line)

    return listening
