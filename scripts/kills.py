# SPDX-License-Identifier: Apache-2.0
"""Kills replays at random moments, resumes them, and compares what they come to with an undisturbed run.

Each run is one of ``mt replay`` with a planted fault, so that there are violations and evidence. At a moment drawn
from the length of the undisturbed run SIGKILL goes to the command line, to the suite, to both, or to every process;
some runs are killed again while they are resumed. Journal and ledger must hold the very lines of the undisturbed run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from mt_process import Mt

from mt_nodes.base.processes import wait_until
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.world.scene.drive import generate_drive

ASKED = ("--fault", "grid_index_wrap", "--relations", "noise_outside_roi_100,noise_outside_roi_1000", "--seed", "7")
#: Fan-out, one pass a relation with a stack that remembers, and no processes at all.
KINDS = {
    "topics": (),
    "tracker": ("--stack", "reference_tracker"),
    "inprocess": ("--transport", "inprocess"),
}
VICTIMS = ("command line", "suite", "both", "all")
AGAIN = 0.3
LEAVE_S, END_S = 60.0, 600.0


def kill(mt: Mt, victim: str) -> None:
    """Send SIGKILL to a part of it, and wait until nobody is left."""
    for pid, command in mt.processes().items():
        command_line, suite = pid == mt.process.pid, "mt_nodes.nodes.suite" in command
        chosen = {"command line": command_line, "suite": suite, "both": command_line or suite, "all": True}
        if chosen[victim]:
            os.kill(pid, signal.SIGKILL)
    mt.process.wait(END_S)
    if not wait_until(lambda: not mt.processes(), LEAVE_S):
        raise SystemExit(f"left behind {LEAVE_S:g} s after {victim} was killed: {mt.processes()}")


def results(out: Path) -> tuple[list[str], list[str]]:
    """Return the lines of journal and ledger, sorted."""
    journal, ledger = ((out / name).read_text().splitlines() for name in ("result.jsonl", "ledger.jsonl"))
    return sorted(journal), sorted(ledger)


def undisturbed(place: Path, kind: str, bag: Path) -> tuple[float, int]:
    """Run without kills; return its length in seconds and its exit code."""
    began = time.monotonic()
    code = Mt.start(place, str(bag), *ASKED, *KINDS[kind], "--out", f"whole_{kind}").process.wait(END_S)
    return time.monotonic() - began, code


def killed(place: Path, kind: str, bag: Path, name: str, length_s: float, rng: random.Random) -> tuple[list[str], int]:
    """Kill a run once or more, resume it until it ends; return who was killed when, and the last exit code."""
    happened: list[str] = []
    while True:
        fresh = not (place / name / "run.json").exists()
        mt = Mt.start(place, *((str(bag), *ASKED, *KINDS[kind], "--out", name) if fresh else ("--resume", name)))
        if happened and rng.random() > AGAIN:
            return happened, mt.process.wait(END_S)
        victim, moment_s = rng.choice(VICTIMS), rng.uniform(0.0, length_s)
        try:
            code = mt.process.wait(moment_s)
        except subprocess.TimeoutExpired:
            kill(mt, victim)
            happened.append(f"{victim} at {moment_s:.1f} s, {judged(place / name)} judged")
            continue
        if happened:
            return happened, code
        shutil.rmtree(place / name)  # over before its moment came


def judged(out: Path) -> int:
    """Return how many verdicts a run has journaled."""
    journal = out / "result.jsonl"
    return max(0, journal.read_bytes().count(b"\n") - 1) if journal.exists() else 0


def main() -> None:
    """Print a line a run and the totals; exit 1 when a run came to something else."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--bundles", type=int, default=12, help="length of the generated drive")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, total, differing = random.Random(given.seed), Counter[str](), 0
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        write_bundles(place / "drive", generate_drive(given.bundles))
        lengths = {kind: undisturbed(place, kind, place / "drive") for kind in KINDS}
        for number in range(given.runs):
            kind = tuple(KINDS)[number % len(KINDS)]
            length_s, code = lengths[kind]
            happened, ended = killed(place, kind, place / "drive", f"run_{number}", length_s, rng)
            same = (ended, results(place / f"run_{number}")) == (code, results(place / f"whole_{kind}"))
            differing += not same
            total.update(kills=len(happened))
            print(
                f"{number:3} {kind:9} {'equal' if same else 'DIFFERS'}  {'; '.join(happened)}",
                flush=True,
            )
    print(json.dumps({"runs": given.runs, **total, "differing": differing, "seed": given.seed}))
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
