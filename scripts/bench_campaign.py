# SPDX-License-Identifier: Apache-2.0
"""Pairs per second of a campaign by number of workers, on generated drives.

Each number of workers does the same campaign in a directory of its own; what is measured begins when the leader does
and ends with its summary and page, so that the start of workers and the merge count. One small campaign before them
warms up files and caches. Cores are what workers share: more workers than cores gain little, and on a machine with
other load only ``ratio``, to the first number of workers of the same run, says much. ``cores_used`` is the processor
time of all processes that have ended over the wall time: it tells a machine that was busy from one that was full.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import tempfile
import time
from pathlib import Path

import yaml

from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.runs.campaign.conductor import begin, conduct
from mt_nodes.runs.campaign.file import Campaign
from mt_nodes.world.scene.drive import generate_drive


def measured(file: Path, out: Path, workers: int) -> dict[str, float]:
    """Do the campaign of a file with so many workers; return pairs, seconds and pairs per second."""
    began_s = time.monotonic()
    conducted = begin(Campaign.load(file), str(out), lambda campaign: replaced(campaign, workers))
    planned_s, worked_s = time.monotonic(), processor_s()
    summary = conduct(conducted, lambda: False)
    took_s, pairs = time.monotonic() - planned_s, sum(cell["offered"] for cell in summary["cells"].values())
    if summary["items"] != {"done": len(conducted.plan.drives), "failed": 0, "stopped": 0, "left": 0}:
        raise SystemExit(f"nothing was measured: {summary['items']}, {summary['exit_why']}")
    told = {
        "plan_s": planned_s - began_s,
        "s": took_s,
        "cores_used": (processor_s() - worked_s) / took_s,
        "pairs_per_s": pairs / took_s,
    }
    return {"workers": workers, "pairs": pairs, **{name: round(value, 2) for name, value in told.items()}}


def processor_s() -> float:
    """Return the processor time of this process and of all that came of it and have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def replaced(campaign: Campaign, workers: int) -> Campaign:
    """Return the campaign with so many workers."""
    return dataclasses.replace(campaign, workers=workers)


def main() -> None:
    """Print a JSON line for each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="1,2,4", help="numbers of workers, in turn")
    parser.add_argument("--drives", type=int, default=8)
    parser.add_argument("--bundles", type=int, default=10, help="length of each drive")
    parser.add_argument("--transport", choices=("inprocess", "ros"), default="inprocess")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        for number in range(given.drives):
            write_bundles(place / "drives" / f"drive_{number}", generate_drive(given.bundles, given.seed + number))
        asked = {
            "bags": ["drives/*"],
            "relations": ["noise_outside_roi_10", "noise_outside_roi_100", "noise_outside_roi_1000"],
            "transport": given.transport,
        }
        (place / "campaign.yaml").write_text(yaml.safe_dump(asked))
        (place / "warm.yaml").write_text(yaml.safe_dump({**asked, "bags": ["drives/drive_0"]}))
        measured(place / "warm.yaml", place / "warm", 1)
        first = None
        for workers in map(int, given.workers.split(",")):
            load = round(os.getloadavg()[0], 1)
            row = measured(place / "campaign.yaml", place / f"workers_{workers}", workers)
            first = first or row["pairs_per_s"]
            row["ratio"] = round(row["pairs_per_s"] / first, 2)
            print(json.dumps({**row, "cores": os.cpu_count(), "load_before": load}), flush=True)


if __name__ == "__main__":
    main()
