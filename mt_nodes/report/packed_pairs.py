# SPDX-License-Identifier: Apache-2.0
"""All pairs of a run as columns, for the report's script that sorts, searches and filters them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.evidence import evidence_name
from mt_nodes.engine.recorded_pair import command
from mt_nodes.engine.summary.verdict_rows import PairRow
from mt_nodes.relations.relation import CONTROL, LOOP_SHAM, SHAMS
from mt_nodes.report.page_data import coded, floats, packed

ARMS = ("relation", "control", "sham")
_ARM_OF = {CONTROL: "control", **dict.fromkeys((*SHAMS, LOOP_SHAM), "sham")}
#: Columns with repeated values, which are stored as numbers.
_CODED = ("relation", "draw", "judged_for", "outcome", "unit", "reason", "object_class")
_MEASURED = ("measured", "bound", "margin", "range_m")
#: Missing value: the bundle of a whole episode, the rank of a pair that is not violated.
_NONE = -1


def arm_of(row: PairRow) -> str:
    """Return whether a pair is of the relation, control or sham: one of :data:`ARMS`."""
    return _ARM_OF[row.relation] if row.of_background else "relation"


def packed_pairs(results_dir: Path, rows: Sequence[PairRow], violated: Sequence[PairRow]) -> str:
    """Return rows as one text (see :mod:`mt_nodes.report.page_data`), in their order.

    Columns: ``episode``, ``bundle`` (-1: a whole episode), repeated texts as numbers of the header's lists, ``arm``,
    ``lost``, ``gained``, the measured values (NaN: none), the commands of ``source`` and ``followup`` (NaN: none),
    ``worst`` (rank among the violated, -1: not violated) and ``evidence`` (whether there is a bag of it).
    ``violated``: the violated pairs, worst first.
    """
    texts = {name: coded(map(attrgetter(name), rows)) for name in _CODED}
    rank = {row.pair: at for at, row in enumerate(violated)}
    bags = {path.name for path in (results_dir / "evidence").glob("*.mcap")}
    arrays: dict[str, npt.NDArray[Any]] = {
        "episode": np.array([row.episode for row in rows], dtype=np.uint32),
        "bundle": np.array([_NONE if row.bundle is None else row.bundle for row in rows], dtype=np.float64),
        "arm": np.array([ARMS.index(arm_of(row)) for row in rows], dtype=np.uint8),
        "lost": np.array([row.lost for row in rows], dtype=np.int32),
        "gained": np.array([row.gained for row in rows], dtype=np.int32),
        "worst": np.array([rank.get(row.pair, _NONE) for row in rows], dtype=np.int32),
        "evidence": np.array([row.pair in rank and _evidence(row) in bags for row in rows], dtype=np.uint8),
        **{name: codes for name, (codes, _) in texts.items()},
        **{name: floats(map(attrgetter(name), rows)) for name in _MEASURED},
        **_commanded(rows),
    }
    header = {
        "count": len(rows),
        "arms": ARMS,
        "texts": {name: values for name, (_, values) in texts.items()},
        "reproduce": _before_pair(command(results_dir, Pair(0, 0, "a"))),
        "picture": shlex.join(["mt", "report", str(results_dir.resolve()), "--pair"]),
    }
    return packed(header, arrays)


def _commanded(rows: Sequence[PairRow]) -> dict[str, Floats]:
    if not any(row.commanded for row in rows):
        return {}
    return {
        arm: floats([row.commanded[at] if row.commanded else None for row in rows])
        for at, arm in enumerate(("source", "followup"))
    }


def _evidence(row: PairRow) -> str:
    return evidence_name(Pair.parse(row.pair))


def _before_pair(line: str) -> str:
    return line.rpartition(" ")[0]
