# SPDX-License-Identifier: Apache-2.0
"""What it takes to sum up a relation over many drives, each with violations: the worst case of its tests."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from mt_nodes.data.verdict import Pair
from mt_nodes.engine.summary.summary import RelationInfo, summarise

#: The summary of so many drives is to take less than this.
GOAL_S, GOAL_MIB = 60.0, 1024.0
_ARMS = (("fog", "0"), ("identity", "0@fog"), ("points_permuted", "0@fog"))


def lines(drives: int, pairs: int) -> Iterator[dict[str, Any]]:
    """Yield verdict lines; each drive has a number of violations of its own in each arm, so no two tests are alike."""
    violated = np.random.default_rng(1).integers(1, pairs + 1, (drives, len(_ARMS)))
    violated[:, 1:] //= 4
    for drive in range(drives):
        for (arm, draw), bad in zip(_ARMS, violated[drive].tolist(), strict=True):
            for bundle in range(pairs):
                wrong = bundle < bad
                yield {
                    "type": "verdict",
                    "pair": str(Pair(drive, bundle, arm, draw)),
                    "outcome": "VIOLATED" if wrong else "HOLDS",
                    "lost": int(wrong),
                    "gained": bundle % 2,
                }


def measure(drives: int, pairs: int = 5) -> dict[str, Any]:
    """Return seconds and peak memory of summing up so many drives of so many pairs, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_measure, args=(there, drives, pairs))
    process.start()
    there.close()
    found: dict[str, Any] = here.recv()
    process.join()
    return found


def _measure(answer: Connection, drives: int, pairs: int) -> None:
    info = RelationInfo("fog", "expected")
    summarise(lines(2, pairs), [info], drive_by_drive=True)  # what is imported late is no part of it
    began_s, before_mib = time.perf_counter(), _peak_mib()
    summary = summarise(lines(drives, pairs), [info], drive_by_drive=True)["relations"]["fog"]
    took_s = time.perf_counter() - began_s
    if (summary["drives"], summary["outcome"]) != (drives, "FAIL"):
        raise SystemExit(f"nothing was measured: {summary['drives']} drives, {summary['outcome']}")
    answer.send(
        {
            "drives": drives,
            "lines": drives * pairs * len(_ARMS),
            "s": round(took_s, 2),
            "peak_mib": round(_peak_mib(), 1),
            "beyond_mib": round(_peak_mib() - before_mib, 1),
        }
    )


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
