# SPDX-License-Identifier: Apache-2.0
"""What it takes to sum up a relation over many drives, each with violations, which is the worst case of its tests; and
what it takes to make the report of a million pairs from their journal."""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.jsonl import seal
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.finish import finish
from mt_nodes.engine.summary.summary import RelationInfo, summarise
from mt_nodes.report.run_files import ReportTables

#: The summary of so many drives, and the report of so many pairs, are to take less than this.
GOAL_S, GOAL_MIB = 60.0, 1024.0
_ARMS = (("fog", "0"), ("identity", "0@fog"), ("points_permuted", "0@fog"))
#: As the check of obstacles writes it of a street with fifteen.
_DETAIL = {
    "counts": {"all": [15, 15], "car": [7, 7], "cyclist": [2, 2], "pedestrian": [4, 4], "unknown": [2, 2]},
    "judged_in": {
        "car": [[0, -60, 1], [0, 60, 1], [10, -30, 1], [10, 30, 1], [20, -30, 1], [20, 0, 2]],
        "cyclist": [[10, -30, 1], [20, 0, 1]],
        "pedestrian": [[10, -60, 1], [10, 0, 1], [20, -30, 1], [30, 0, 1]],
        "unknown": [[30, 0, 1], [30, -30, 1]],
    },
}


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
    return _alone(_measure, drives, pairs)


def measure_report(drives: int, pairs: int = 5) -> dict[str, Any]:
    """Return seconds and peak memory of summary, tables and report of such drives, in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        with (Path(place) / "result.jsonl").open("w", encoding="utf-8") as file:
            file.write(seal({"schema": 1, "type": "condition", "seed": 1, "relations": ["fog"]}) + "\n")
            file.writelines(seal(_as_written(line)) + "\n" for line in lines(drives, pairs))
        return _alone(_measure_report, place)


def _as_written(line: Mapping[str, Any]) -> dict[str, Any]:
    lost = line["lost"]
    detail = {**_DETAIL, "lost_at": [[10.1, -3.2, "car"]] * lost, "gained_at": []}
    more = {"relation": Pair.parse(line["pair"]).relation, "stamp_ns": 0, "unit": "obstacles", "detail": detail}
    numbers = {"measured": 15 - lost, "bound": 15, "margin": -lost, "reason": f"{15 - lost} of 15 kept"}
    return {**line, **more, **numbers}


def _alone(work: Callable[..., None], *args: Any) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=work, args=(there, *args))
    process.start()
    there.close()
    found: dict[str, Any] = here.recv()
    process.join()
    return found


def _measure(answer: Connection, drives: int, pairs: int) -> None:
    info = RelationInfo("fog", "expected")
    summarise(lines(2, pairs), [info], drive_by_drive=True)  # what is imported late is no part of it
    began_s, began_cpu_s, before_mib = time.perf_counter(), time.process_time(), _peak_mib()
    summary = summarise(lines(drives, pairs), [info], drive_by_drive=True)["relations"]["fog"]
    took_s, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    if (summary["drives"], summary["outcome"]) != (drives, "FAIL"):
        raise SystemExit(f"nothing was measured: {summary['drives']} drives, {summary['outcome']}")
    answer.send(
        {
            "drives": drives,
            "lines": drives * pairs * len(_ARMS),
            "s": round(took_s, 2),
            "cpu_s": round(cpu_s, 2),
            "peak_mib": round(_peak_mib(), 1),
            "beyond_mib": round(_peak_mib() - before_mib, 1),
        }
    )


def _measure_report(answer: Connection, place: str) -> None:
    out, info = Path(place), RelationInfo("fog", "expected")
    began_s, before_mib = time.process_time(), _peak_mib()
    summary = finish(out, [info], tables=ReportTables(out, [info]), drive_by_drive=True)
    took_s = time.process_time() - began_s
    with (out / "pairs.csv").open("rb") as file:
        rows = sum(1 for _ in file) - 1
    if summary["relations"]["fog"]["outcome"] != "FAIL" or not rows:
        raise SystemExit(f"nothing was measured: {rows} pairs, {summary['relations']['fog']['outcome']}")
    answer.send(
        {
            "pairs": rows,
            "cpu_s": round(took_s, 2),
            "peak_mib": round(_peak_mib(), 1),
            "beyond_mib": round(_peak_mib() - before_mib, 1),
            "page_mib": round((out / "report.html").stat().st_size / 2**20, 2),
        }
    )


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
