# SPDX-License-Identifier: Apache-2.0
"""Kills runs of every kind that can be resumed, at random moments, and compares with an undisturbed run.

Each run has a planted fault where its kind takes one, so that there are violations and evidence. At a moment drawn
from the length of the undisturbed run SIGKILL goes to the command line, to the suite, to both, or to every process;
some runs are killed again while they are resumed. Every file of lines (journal, ledger, scores, trials, drives) must
hold the very lines of the undisturbed run, and the exit code must be the same.
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
from pathlib import Path

from mt_process import Mt

from mt_nodes.base.processes import wait_until
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.world.scene.drive import generate_drive

NOISE = ("--fault", "grid_index_wrap", "--relations", "noise_outside_roi_100,noise_outside_roi_1000", "--seed", "7")
SEARCH = ("--relation", "noise_outside_roi_1000", "--fault", "grid_index_wrap", "--trials", "12", "--limit", "3")
CROWD = ("--relations", "far_crowd_brakes", "--fault", "looks_ahead_by_count", "--repeat", "1", "--seed", "7")
#: Kind -> the command, its words, and what resumes it; ``{bag}`` is the drive. Topics: fan-out; tracker: a pass for
#: each relation with a stack that remembers.
KINDS = {
    "inprocess": ("replay", ("{bag}", *NOISE, "--transport", "inprocess"), ()),
    "scenario": ("scenario", ("pedestrian_crosses", *CROWD), ()),
    "moral": ("experiment", ("moral", "--cases", "1", "--search", "2", "--runs", "30", "--seed", "7"), ("moral",)),
    "search": ("search", ("{bag}", *SEARCH, "--transport", "inprocess"), ()),
    "topics": ("replay", ("{bag}", *NOISE), ()),
    "tracker": ("replay", ("{bag}", *NOISE, "--stack", "reference_tracker"), ()),
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


def results(out: Path) -> dict[str, list[str]]:
    """Return the lines of every file of lines, sorted."""
    return {path.name: sorted(path.read_text().splitlines()) for path in sorted(out.glob("*.jsonl"))}


def start(place: Path, kind: str, name: str) -> Mt:
    """Start a run of a kind, or go on with it where it has begun."""
    command, words, verb = KINDS[kind]
    if begun(place / name):
        return Mt.start(place, *verb, "--resume", name, command=command)
    shutil.rmtree(place / name, ignore_errors=True)
    return Mt.start(place, *(word.format(bag="drive") for word in words), "--out", name, command=command)


def begun(out: Path) -> bool:
    """Whether a run has written what was asked of it: before that there is nothing to go on with."""
    return any((out / name).exists() for name in ("run.json", "search.json"))


def undisturbed(place: Path, kind: str) -> tuple[float, int]:
    """Run without kills; return its length in seconds and its exit code."""
    began = time.monotonic()
    code = start(place, kind, f"whole_{kind}").process.wait(END_S)
    return time.monotonic() - began, code


def killed(place: Path, kind: str, name: str, length_s: float, rng: random.Random) -> tuple[list[str], int]:
    """Kill a run once or more, resume it until it ends; return who was killed when, and the last exit code."""
    happened: list[str] = []
    while True:
        mt = start(place, kind, name)
        if happened and rng.random() > AGAIN:
            return happened, mt.process.wait(END_S)
        victim, moment_s = rng.choice(VICTIMS), rng.uniform(0.0, length_s)
        try:
            code = mt.process.wait(moment_s)
        except subprocess.TimeoutExpired:
            kill(mt, victim)
            happened.append(f"{victim} at {moment_s:.1f} s, {judged(place / name)} lines")
            continue
        if happened:
            return happened, code
        shutil.rmtree(place / name)  # over before its moment came


def judged(out: Path) -> int:
    """Return how many lines a run has written."""
    return sum(path.read_bytes().count(b"\n") for path in out.glob("*.jsonl"))


def main() -> None:
    """Print a line a run and the totals; exit 1 when a run came to something else."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=tuple(KINDS), metavar="KIND,…")
    parser.add_argument("--bundles", type=int, default=12, help="length of the generated drive")
    parser.add_argument("--minutes", type=float, default=math.inf, help="no further run begins after so many")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, totals, differing, number = random.Random(given.seed), Counter[str](), 0, 0
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        write_bundles(place / "drive", generate_drive(given.bundles))
        lengths = {kind: undisturbed(place, kind) for kind in given.kinds}
        print({kind: (round(length_s, 1), code) for kind, (length_s, code) in lengths.items()}, flush=True)
        while number < given.runs and time.monotonic() - began_s < 60.0 * given.minutes:
            kind = given.kinds[number % len(given.kinds)]
            happened, ended = killed(place, kind, f"run_{number}", lengths[kind][0], rng)
            same = (ended, results(place / f"run_{number}")) == (lengths[kind][1], results(place / f"whole_{kind}"))
            differing += not same
            totals.update({kind: len(happened)})
            print(f"{number:3} {kind:9} {'equal' if same else 'DIFFERS'}  {'; '.join(happened)}", flush=True)
            if not same:
                shutil.copytree(place, Path(tempfile.mkdtemp(prefix="kills_differ_")), dirs_exist_ok=True)
            shutil.rmtree(place / f"run_{number}")
            number += 1
    print(json.dumps({"runs": number, "kills": dict(totals), "differing": differing, "seed": given.seed}))
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
