# SPDX-License-Identifier: Apache-2.0
"""How many kinds of violations ``mt replay --explore`` finds, against as many pairs of chance.

``python scripts/exploration_study.py OUT [--stack reference_cnnseg] [--relations all]`` judges every relation on every
frame of some generated drives once, with several draws. A stateless stack that always answers alike gives the same
verdicts whenever it is asked, so the choice of pairs can be repeated with many seeds over the recorded verdicts. What
chooses is the code of ``mt replay``. Prints medians over the seeds, and Vargha and Delaney's effect size.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from mt_nodes.base.jsonl import read_result
from mt_nodes.base.stats.effect_size import effect_size
from mt_nodes.cli.main import main as mt
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.plan import EXPLORE_BY
from mt_nodes.engine.summary.explored import judged_cells, kinds_of
from mt_nodes.relations.relation import load_relation
from mt_nodes.runs.replay.exploration import ExplorationArm, PairChoice, explored_arm
from mt_nodes.world.scene.drive import generate_drive

Lines = Mapping[str, Mapping[str, Any]]
#: After so many pairs the kinds that are known are counted.
STOPS = (250, 500, 1000)


def judged(place: Path, args: argparse.Namespace) -> Lines:
    """Return the verdict line of every pair of relations, judged now unless it was before."""
    drives = [place / f"drive_{seed}" for seed in range(args.first_drive, args.first_drive + args.drives)]
    for seed, drive in enumerate(drives, args.first_drive):
        if not drive.exists():
            write_bundles(drive, generate_drive(args.frames, seed))
    out = place / "all"
    words = ["--relations", args.relations, "--draws", str(args.draws), "--transport", "inprocess"]
    faults = [word for name in args.fault for word in ("--fault", name)]
    where = ["--resume", str(out)] if (out / "run.json").exists() else [*map(str, drives), "--out", str(out)]
    if not (out / "summary.json").exists() or read_result(out / "summary.json")["interrupted"]:
        mt(["replay", *where, *([] if "--resume" in where else ["--stack", args.stack, *words, *faults])])
    lines = (line for line in read_journal(out / "result.jsonl") if line["type"] == "verdict")
    return {line["pair"]: line for line in lines if "@" not in line["pair"]}


def arms_of(lines: Lines, draws: int, seed: int) -> list[ExplorationArm]:
    """Return the arms of a run with a seed: each relation that judges single frames, on those of all drives."""
    pairs = [Pair.parse(name) for name in lines]
    frames = sorted({(pair.episode, pair.bundle) for pair in pairs if pair.bundle is not None})
    names = sorted({pair.relation for pair in pairs if pair.bundle is not None})
    whole = [
        n for n in names if all(f"{e}/{b}/{n}/{d}" in lines for (e, b), d in itertools.product(frames, range(draws)))
    ]
    found = (explored_arm(load_relation(name), frames, seed) for name in whole)
    return [ExplorationArm(arm.relation, arm.weather, arm.frames, min(arm.draws, draws)) for arm in found]


def chosen(lines: Lines, arms: Sequence[ExplorationArm], by: str, seed: int) -> list[dict[str, int]]:
    """Return how many kinds and cells are known at each stop."""
    choice, kinds, cells, rows = PairChoice(arms, by, seed), set(), set(), []
    for count, (number, pair) in enumerate(itertools.islice(choice, STOPS[-1]), 1):
        line = lines[str(pair)]
        choice.take(number, line)
        kinds |= kinds_of(line)
        cells |= judged_cells(line)
        if count in STOPS:
            rows.append({"pairs": count, "kinds": len(kinds), "cells": len(cells)})
    return rows


def main() -> None:
    """Judge all, choose with each seed, print the table, and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--stack", default="reference_cnnseg")
    parser.add_argument("--relations", default="all")
    parser.add_argument("--fault", nargs="*", default=[])
    parser.add_argument("--first-drive", type=int, default=100)
    for name, default in (("drives", 4), ("frames", 6), ("draws", 2), ("seeds", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    lines = judged(args.out, args)
    found = {
        by: [chosen(lines, arms_of(lines, args.draws, seed), by, seed) for seed in range(args.seeds)]
        for by in EXPLORE_BY
    }
    everything = set().union(*map(kinds_of, lines.values()))
    print(f"{len(lines)} pairs of {args.stack}, {len(everything)} kinds in all")
    print("| pairs | what | chosen by new kinds | by chance | A12 | p |\n| --- | --- | --- | --- | --- | --- |")
    for stop, what in itertools.product(range(len(STOPS)), ("kinds", "cells")):
        one, other = ([run[stop][what] for run in found[by] if len(run) > stop] for by in EXPLORE_BY)
        if one:
            effect = effect_size(one, other)
            medians = f"{median(one):g} | {median(other):g}"
            print(f"| {STOPS[stop]} | {what} | {medians} | {effect.a12:.2f} ({effect.magnitude}) | {effect.p:.2g} |")
    result = {"stack": args.stack, "pairs": len(lines), "kinds": len(everything), "runs": found}
    (args.out / "study.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
