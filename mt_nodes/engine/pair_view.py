# SPDX-License-Identifier: Apache-2.0
"""What a bird's-eye view of a violated pair is drawn from: plain arrays, kept as evidence."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.verdict import Pair

Floats = npt.NDArray[np.floating]
Texts = npt.NDArray[np.str_]

#: What is seen around the region, in metres.
SURROUNDINGS_M = 6.0
#: So many added points, and no more, are shown wherever they are within so many metres of what is shown anyway.
_FEW, _NEAR_M = 10, 20.0
#: Half the width of the view when nothing tells where to look, in metres.
WITHOUT_REGION_M = 40.0
#: Arrays of a picture by name: the shape of one row.
SHAPES: dict[str, tuple[int, ...]] = {
    **{"source_xyz": (3,), "followup_xyz": (3,), "added_xyz": (3,), "source_boxes": (7,), "followup_boxes": (7,)},
    **{"source_labels": (), "followup_labels": (), "lost_at": (2,), "gained_at": (2,), "region": (2,), "keep": (2,)},
    **{"source_lines": (2,), "followup_lines": (2,), "source_occupied": (2,), "followup_occupied": (2,)},
    **{
        "source_image": (),
        "followup_image": (),
        "source_px": (4,),
        "followup_px": (4,),
        "lost_px": (4,),
        "gained_px": (4,),
        "source_px_labels": (),
        "followup_px_labels": (),
        "added_px": (4,),
        "source_lines_px": (2,),
        "followup_lines_px": (2,),
        "expected_lines_px": (2,),
    },
}


@dataclass(frozen=True, eq=False)
class PairView:
    """What is drawn of one pair, everything in the frame of the region (x forward, y left, metres).

    Attributes:
        source_xyz, followup_xyz, added_xyz: points (N, 3); added ones are drawn over the follow-up.
        source_boxes, followup_boxes: (M, 7) x, y, z, length, width, height, yaw; the labels (M,) go with them.
        lost_at, gained_at: (K, 2) centres of obstacles that only one arm saw.
        region, keep: polygons (P, 2).
        source_lines, followup_lines: (N, 2) lanes, paths and predicted paths, one after the other, NaN between two.
        source_occupied, followup_occupied: (N, 2) outlines of what is occupied, likewise.
        source_image, followup_image: bytes (B,) of a JPEG each, of a stack with cameras.
        source_px, followup_px, lost_px, gained_px, added_px: boxes (M, 4) in it, x0 y0 x1 y1 in its pixels.
        source_px_labels, followup_px_labels: (M,) classes of the arms' boxes, and states of traffic lights.
        source_lines_px, followup_lines_px, expected_lines_px: (N, 2) x y of paths and lanes in it, NaN where it shows
            none; the last is where the source's path is expected in the follow-up.
    """

    source_xyz: Floats
    followup_xyz: Floats
    added_xyz: Floats
    source_boxes: Floats
    followup_boxes: Floats
    source_labels: Texts
    followup_labels: Texts
    lost_at: Floats
    gained_at: Floats
    region: Floats
    keep: Floats
    source_lines: Floats
    followup_lines: Floats
    source_occupied: Floats
    followup_occupied: Floats
    source_image: npt.NDArray[np.uint8]
    followup_image: npt.NDArray[np.uint8]
    source_px: Floats
    followup_px: Floats
    lost_px: Floats
    gained_px: Floats
    source_px_labels: Texts
    followup_px_labels: Texts
    added_px: Floats
    source_lines_px: Floats
    followup_lines_px: Floats
    expected_lines_px: Floats

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> PairView:
        """Build from arrays by name; those that are missing are empty.

        Raises ValueError: an array has the wrong shape.
        """
        for name, array in arrays.items():
            if array.shape[1:] != SHAPES[name]:
                raise ValueError(f"{name}: got shape {array.shape}, expected (N, {', '.join(map(str, SHAPES[name]))})")
        return cls(**{name: arrays.get(name, np.empty((0, *shape))) for name, shape in SHAPES.items()})

    @property
    def window(self) -> tuple[float, float, float, float]:
        """What is shown: x min, x max, y min, y max in metres."""
        shown = np.concatenate([self.region, self.keep, self.lost_at, self.gained_at])
        if len(shown) == 0:
            return -WITHOUT_REGION_M, WITHOUT_REGION_M, -WITHOUT_REGION_M, WITHOUT_REGION_M
        if len(self.added_xyz) <= _FEW:
            # What is left of a change that was made small is shown, unless the rest would get lost in the picture.
            near = self.added_xyz[:, :2] - np.clip(self.added_xyz[:, :2], shown.min(axis=0), shown.max(axis=0))
            shown = np.concatenate([shown, self.added_xyz[np.abs(near).max(axis=1, initial=0.0) <= _NEAR_M, :2]])
        (x0, y0), (x1, y1) = shown.min(axis=0) - SURROUNDINGS_M, shown.max(axis=0) + SURROUNDINGS_M
        return float(x0), float(x1), float(y0), float(y1)


def load_view(path: Path) -> PairView:
    """Read the arrays of a :class:`PairView` by name from an ``.npz``; those that are missing stay empty.

    Raises InfrastructureError: the file cannot be read or an array has the wrong shape.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return PairView.of({name: file[name] for name in SHAPES if name in file})
    except (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise InfrastructureError(f"{path}: cannot be read as evidence arrays: {error}") from error


def evidence_file(results_dir: Path, pair: Pair) -> Path:
    """Return where the arrays of a pair's picture lie; the file may be missing."""
    return results_dir / "evidence" / f"{str(pair).replace('/', '_')}.npz"
