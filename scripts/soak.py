# SPDX-License-Identifier: Apache-2.0
"""A long replay in real time: does every pair end, and does the memory of every process stay flat.

``mt replay --pace realtime`` plays a generated drive (10 Hz, 107,000 points a cloud) again and again to two stacks for
as long as asked. Meanwhile anonymous memory, open files and threads of each process are read every few seconds; at the
end a straight line is laid through each. Left out are the first tenth, in which caches fill, and the report at the end.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from mt_process import Mt

from mt_nodes.base.environment import clean_shared_memory, leftovers
from mt_nodes.base.result_files import read_result
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.world.scene.drive import generate_drive

BUNDLES, PERIOD_S, OFFERS = 100, 0.1, 3
RELATION = "noise_outside_roi_1000"
EVERY_S = 5.0
LEFT_OUT = 0.1
#: A process that lives shorter (a stack that was restarted) has no slope worth telling.
LEAST_S = 60.0
Sample = tuple[float, float, int, int]


def sample(pid: int) -> Sample | None:
    """Return the time in s, anonymous memory in MB, threads and open files of a process; None when it is gone."""
    try:
        rows = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except (OSError, ValueError):
        return None
    if "RssAnon" not in rows:  # it has ended and waits for its parent
        return None
    return time.time(), int(rows["RssAnon"].split()[0]) / 1e3, int(rows["Threads"]), files


def watched(mt: Mt) -> dict[str, list[Sample]]:
    """Sample every process until the run is over."""
    samples: dict[str, list[Sample]] = defaultdict(list)
    while True:
        for pid, command in mt.processes().items():
            if (found := sample(pid)) is not None:
                samples[f"{role(command)} {pid}"].append(found)
        try:
            mt.process.wait(EVERY_S)
        except subprocess.TimeoutExpired:
            continue
        return samples


def role(command: str) -> str:
    """Return what a process is, by its command line."""
    for part, name in (("nodes.suite", "suite"), ("nodes.callable_stack", "stack"), ("cli.main", "command line")):
        if part in command:
            return name
    return command[:40]


def line(rows: list[Sample], ended_s: float) -> dict[str, Any] | None:
    """Return first, last and highest memory, its slope by least squares in MB an hour, and threads and open files."""
    rows = [row for row in rows if row[0] <= ended_s]
    if not rows or rows[-1][0] - rows[0][0] < LEAST_S:
        return None
    kept = rows[math.ceil(LEFT_OUT * len(rows)) :]
    at_h, memory_mb = np.array([r[0] for r in kept]) / 3600.0, np.array([r[1] for r in kept])
    return {
        "minutes": round((rows[-1][0] - rows[0][0]) / 60.0, 1),
        "memory_mb": [round(float(v), 1) for v in (memory_mb[0], memory_mb[-1], memory_mb.max())],
        "slope_mb_per_h": round(float(np.polyfit(at_h, memory_mb, 1)[0]), 2),
        "threads": [kept[0][2], kept[-1][2]],
        "open_files": [kept[0][3], kept[-1][3]],
    }


def main() -> None:
    """Soak, print the figures as JSON, exit 1 when a pair is unaccounted for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--stack", default="reference_detector")
    given = parser.parse_args()
    rounds = max(1, round(given.minutes * 60.0 / (BUNDLES * PERIOD_S * OFFERS)))
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        write_bundles(place / "drive", generate_drive(BUNDLES))
        clean_shared_memory()
        words = ("--pace", "realtime", "--relations", RELATION, "--stack", given.stack, "--out", "soak")
        mt = Mt.start(place, *["drive"] * rounds, *words)
        samples = watched(mt)
        ended_s = (place / "soak" / "result.jsonl").stat().st_mtime
        lines = {name: found for name, rows in samples.items() if (found := line(rows, ended_s)) is not None}
        summary = read_result(place / "soak" / "summary.json")
        journal = (place / "soak" / "result.jsonl").read_bytes().count(b'"type": "verdict"')
        owed = rounds * BUNDLES * OFFERS
        report = {
            "minutes": given.minutes,
            "exit_code": mt.process.returncode,
            "pairs_owed": owed,
            "pairs_unaccounted": owed - summary["offered"],
            "journal_lines": journal,
            "outcomes": summary["outcomes"],
            "latency_ms": summary["latency_ms"],
            "processes": lines,
            "segments_left": len(leftovers()),
        }
    print(json.dumps(report, indent=2))
    sys.exit(bool(report["pairs_unaccounted"]) or journal != summary["offered"])


if __name__ == "__main__":
    main()
