# SPDX-License-Identifier: Apache-2.0
"""Replays a long drive in process, a lap again and again, and lays a line through the memory of each process.

In the first half of the time caches fill; the line is that of the second half.

What is judged and how fast says nothing here: clouds are small and the stack answers at once, so that an hour of a
10 Hz sensor takes minutes. The figures go to ``scripts/soak.json``, beside those of the soak.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml
from memory_watch import MemoryWatch
from mt_process import Mt
from soak import FIGURES, HZ, LAP, LIDAR, RELATION, accounts

from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.world.scene.drive import generate_drive

EVERY_S = 2.0
STACK = """
import numpy as np

def detect(points):
    return np.array([[12.0, 3.0, 0.5, 4.0, 2.0, 1.5, 0.0]])
"""


def main() -> None:
    """Replay, print the figures as JSON and keep them; exit 1 when a pair is unaccounted for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=1.0, help="of driving")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="JSON file that they are added to")
    given = parser.parse_args()
    laps = max(1, round(given.hours * 3600.0 * HZ / LAP))
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        write_bundles(place / "lap", generate_drive(LAP, 1, LIDAR))
        (place / "small.py").write_text(STACK)
        stack = {"callable": "small:detect", "points_frame": "base_link", "stateless": True}
        (place / "stack.yaml").write_text(yaml.safe_dump(stack))
        words = ("--stack", "stack.yaml", "--relations", RELATION, "--transport", "inprocess", "--out", "out")
        began_s, began_at_s, watch = time.monotonic(), time.time(), MemoryWatch()
        mt = Mt.start(place, *["lap"] * laps, *words)
        while mt.process.poll() is None:
            watch.look(mt.processes())
            with contextlib.suppress(subprocess.TimeoutExpired):
                mt.process.wait(EVERY_S)
        took_s = time.monotonic() - began_s
        # The summary and the report at the end read the whole journal: they are none of the drive.
        ended_s = (place / "out" / "result.jsonl").stat().st_mtime
        found = {"bundles": laps * LAP, "took_s": round(took_s), **accounts([place / "out"])}
        found["processes"] = watch.lines(ended_s, least_s=30.0, left_out=0.5)
    for row in found["processes"].values():
        grown_mb = row["slope_mb_per_h"] * (ended_s - began_at_s) / 3600.0
        row["bytes_per_pair"] = round(1e6 * grown_mb / found["offered"])
    figures = json.loads(given.figures.read_text()) if given.figures.exists() else {"pieces": []}
    given.figures.write_text(json.dumps({**figures, "drive": found}, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    sys.exit(any(found[key] for key in ("unaccounted", "journal_missing", "journal_doubled")))


if __name__ == "__main__":
    main()
