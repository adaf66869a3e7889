# SPDX-License-Identifier: Apache-2.0
"""How sure a stack is of what it sees while what makes a pair fail is given to it little by little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.data.image_boxes import iou
from mt_nodes.data.outputs import Detections, ImageBoxes, Output

Floats = npt.NDArray[np.float64]

#: What lies so near to an obstacle is that obstacle, however it is boxed: a metre, or half of its length.
_NEAR_M = 1.0
#: A box that shares so much with another is that box.
_SHARED = 0.3
#: So many objects are told of, those whose score falls most first, and none whose score falls by less.
_MOST, _LEAST_FALL = 5, 0.02


@dataclass
class ScorePath:
    """Scores along the way from the source to the smallest follow-up.

    Attributes:
        atoms: how many atoms of the change were there at each step; the first step has none.
        violated: whether the pair was, at each step. answers: what the stack said.
    """

    atoms: list[int] = field(default_factory=list)
    violated: list[bool] = field(default_factory=list)
    answers: list[Output] = field(default_factory=list)

    def add(self, atoms: int, violated: bool, answer: Output) -> None:
        """Take in one step."""
        self.atoms.append(atoms)
        self.violated.append(violated)
        self.answers.append(answer)

    def as_plain(self, source: Output) -> dict[str, Any] | None:
        """Return what JSON can hold: of the objects of the source's answer those whose score falls; None: of none."""
        objects = [row for role in ("detections", "boxes") for row in self._falling(source, role)]
        objects.sort(key=lambda row: min(row["scores"]) - row["scores"][0])
        if not objects:
            return None
        return {"atoms": self.atoms, "violated": self.violated, "objects": objects[:_MOST]}

    def _falling(self, source: Output, role: str) -> list[dict[str, Any]]:
        objects = getattr(source, role)
        if objects is None or not len(objects):
            return []
        scores = np.column_stack([objects.score, *(_scores(objects, getattr(answer, role)) for answer in self.answers)])
        falls = np.flatnonzero(scores[:, 0] - scores.min(axis=1) >= _LEAST_FALL)
        return [
            {"label": str(objects.label[i]), "at": _place(objects, i), "scores": _rounded(scores[i])}
            for i in falls.tolist()
        ]


def _scores(objects: Any, candidates: Any) -> Floats:
    """Return (M,) the best score of what is said where each object was seen, 0 where nothing is."""
    if candidates is None or not len(candidates):
        return np.zeros(len(objects))
    if isinstance(objects, ImageBoxes):
        same = iou(objects.box_px, candidates.box_px) >= _SHARED
    else:
        away = np.linalg.norm(objects.center_m[:, None, :2] - candidates.center_m[None, :, :2], axis=2)
        same = away <= np.maximum(_NEAR_M, objects.size_m[:, 0] / 2.0)[:, None]
    return np.asarray(np.where(same, candidates.score[None, :], 0.0).max(axis=1))


def _place(objects: Detections | ImageBoxes, row: int) -> list[float]:
    """Return x, y of an obstacle in metres, or the edges of a box in pixels."""
    return _rounded(objects.box_px[row] if isinstance(objects, ImageBoxes) else objects.center_m[row, :2])


def _rounded(values: Floats) -> list[float]:
    return [round(float(value), 3) for value in values]


def steps_of(count: int, most: int) -> Sequence[int]:
    """Return 0 to ``count`` in ``most`` steps or fewer, as evenly as whole numbers are."""
    return sorted({round(step) for step in np.linspace(0, count, min(count, most) + 1).tolist()})
