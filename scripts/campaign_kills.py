# SPDX-License-Identifier: Apache-2.0
"""Kills campaigns at random moments, goes on with them, and compares what they come to with an undisturbed one.

Each is one ``mt campaign`` of one or two workers over generated drives, with a planted fault, so that there are
violations and evidence. At a moment drawn from the length of the undisturbed campaign SIGKILL goes to the leader, to a
worker, to all workers, to a suite (over topics), or to every process. The leader is started again where it ended. In
the end every cell must hold the very verdicts, follow-ups, evidence and summary of the undisturbed campaign, nothing
may be judged twice, and with ``--stop-early`` relations must have stopped at the same drives.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from mt_process import Mt

from mt_nodes.base.jsonl import read_result
from mt_nodes.base.processes import wait_until
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.world.scene.drive import generate_drive

VICTIMS = {"inprocess": ("leader", "worker", "workers", "all"), "ros": ("leader", "worker", "workers", "suite", "all")}
#: What is left of a campaign may take so long to end; one that is not killed may, to come to its end.
LEAVE_S, END_S = 60.0, 900.0
#: More kills than one item can be at.
RETRIES = 1000
#: Of the span that moments are drawn from, with each kill: on a busy machine nothing would ever get done otherwise.
GROWTH = 1.2


def write_campaign(place: Path, given: argparse.Namespace) -> Path:
    """Write drives and the file of a campaign over them."""
    for number in range(given.drives):
        write_bundles(place / "drives" / f"drive_{number}", generate_drive(given.bundles, number))
    asked = {
        "bags": ["drives/*"],
        "relations": [
            "noise_outside_roi_100",
            {"id": "noise_outside_roi_10", "set": {"noise_outside_roi.points": [1000 if given.stop_early else 5, 50]}},
        ],
        "faults": ["grid_index_wrap"],
        "seeds": [0, 1],
        "transport": given.transport,
        "retries": RETRIES,
        "stop_early": {"when": "first_violation"} if given.stop_early else None,
    }
    (place / "campaign.yaml").write_text(yaml.safe_dump(asked))
    return place / "campaign.yaml"


def results(out: Path) -> dict[str, Any]:
    """Return of each cell the lines of journal and ledger, sorted, the names of evidence and draws, and the summary."""
    found = {}
    for cell in sorted((out / "cells").iterdir()):
        lines = [sorted((cell / name).read_text().splitlines()) for name in ("result.jsonl", "ledger.jsonl")]
        kept = sorted(path.name for folder in ("evidence", "draws") for path in (cell / folder).iterdir())
        found[cell.name] = (*lines, kept, read_result(cell / "summary.json"))
    return found


def judged_twice(out: Path) -> list[str]:
    """Return the pairs that an item's journal holds twice."""
    pairs: Counter[str] = Counter()
    for journal in out.glob("items/*/result.jsonl"):
        rows = map(json.loads, journal.read_text().splitlines())
        pairs.update(f"{journal.parent.name[:8]}/{row['pair']}" for row in rows if row["type"] == "verdict")
    return [pair for pair, count in pairs.items() if count > 1]


def stopped(out: Path) -> dict[str, dict[str, int]]:
    """Return at which drive which relation stopped, by cell."""
    summary: dict[str, Any] = read_result(out / "summary.json")
    return dict(summary["campaign"]["stopped"])


def kill(mt: Mt, victim: str, rng: random.Random) -> int:
    """Send SIGKILL to a part of it; return how many were hit."""
    there = mt.processes()
    workers, suites = (
        [pid for pid, command in there.items() if word in command] for word in ("multiprocessing.spawn", "nodes.suite ")
    )
    chosen = {
        "leader": [mt.process.pid],
        "worker": rng.sample(workers, min(1, len(workers))),
        "workers": workers,
        "suite": rng.sample(suites, min(1, len(suites))),
        "all": list(there),
    }[victim]
    for pid in chosen:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return len(chosen)


def disturbed(
    place: Path, file: Path, name: str, workers: int, rng: random.Random, span_s: float, victims: Sequence[str]
) -> Counter[str]:
    """Kill a campaign again and again until it ends all the same; return who was killed how often."""
    killed: Counter[str] = Counter()
    while True:
        mt = start(place, file, name, workers)
        while True:
            try:
                mt.process.wait(min(END_S, rng.uniform(0.0, span_s)))
            except subprocess.TimeoutExpired:
                if span_s > 2.0 * END_S:
                    raise SystemExit(f"no end after {killed.total()} kills: {mt.processes()}") from None
                victim = rng.choice(victims)
                killed[victim] += bool(kill(mt, victim, rng))
                span_s *= GROWTH
                if victim in ("leader", "all"):
                    mt.process.wait(END_S)
                    break
            else:
                return killed
        if rng.random() < 0.5 and not wait_until(lambda mt=mt: not mt.processes(), LEAVE_S):  # type: ignore[misc]
            raise SystemExit(f"left behind {LEAVE_S:g} s after the leader was killed: {mt.processes()}")


def start(place: Path, file: Path, name: str, workers: int) -> Mt:
    """Start a campaign, or go on with it."""
    return Mt.start(place, str(file), "--out", name, "--workers", str(workers), command="campaign")


def main() -> None:
    """Print a line a campaign and the totals; exit 1 when one came to something else."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, help="at least so many")
    parser.add_argument("--minutes", type=float, default=math.inf, help="no further campaign begins after so many")
    parser.add_argument("--drives", type=int, default=3)
    parser.add_argument("--bundles", type=int, default=4, help="length of each drive")
    parser.add_argument("--transport", choices=("inprocess", "ros"), default="inprocess")
    parser.add_argument("--span", type=float, default=0.5, help="moments are drawn from this share of its length")
    parser.add_argument("--stop-early", action="store_true", help="relations end at their first violation")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, total, differing, number = random.Random(given.seed), Counter[str](), 0, 0
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        file = write_campaign(place, given)
        began_s = time.monotonic()
        code = start(place, file, "whole", 1).process.wait(END_S)
        length_s, whole = time.monotonic() - began_s, results(place / "whole")
        print(f"undisturbed {length_s:.1f} s, stopped at drives: {stopped(place / 'whole') or 'none'}", flush=True)
        while total.total() < given.kills and time.monotonic() - began_s < 60.0 * given.minutes:
            workers = 1 + number % 2
            span_s, victims = length_s * given.span, VICTIMS[given.transport]
            killed = disturbed(place, file, f"run_{number}", workers, rng, span_s, victims)
            out = place / f"run_{number}"
            twice = judged_twice(out)
            exit_code = read_result(out / "summary.json")["exit_code"]
            same = exit_code == code and results(out) == whole and not twice
            same = same and stopped(out) == stopped(place / "whole")
            differing += not same
            total.update(killed)
            load = f"load {os.getloadavg()[0]:.0f}"
            print(f"{number:3} {workers} workers {'equal' if same else 'DIFFERS'}  {dict(killed)}  {load}", flush=True)
            if not same:
                shutil.copytree(place, Path(tempfile.mkdtemp(prefix="campaign_differs_")), dirs_exist_ok=True)
            shutil.rmtree(out)
            number += 1
    told = {"campaigns": number, "kills": total.total(), **total, "differing": differing, "seed": given.seed}
    print(json.dumps({**told, "undisturbed_s": round(length_s, 1)}))
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
