# SPDX-License-Identifier: Apache-2.0
"""How often a driver that violates no principle is said to violate one, over many seeds of a small campaign.

``python scripts/moral_false_alarms.py --seeds 200 --out DIR`` takes the honest driver by all principles at once;
``--driver coin`` one that tosses a coin for each run, each principle on the border of what it demands, where false
alarms are as frequent as they get. What was carried out is kept in ``DIR/cells.jsonl`` and not carried out again.
Ends with 1 where a principle is violated more often than its level allows, by Clopper and Pearson's lower bound.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from moral_cells import COIN, Cell, Line, all_of

from mt_nodes.base.stats.e_values import exact_interval
from mt_nodes.base.stats.intervals import ALPHA
from mt_nodes.runs.moral.moral_request import PRINCIPLES

HONEST = "honest"
#: The shipped dilemmas by their file: by name the two published ones would come first, whatever the seed.
POOL = str(Path(__file__).parents[1] / "config" / "dilemmas" / "default.yaml")


def cells(driver: str, principles: tuple[str, ...], seeds: range, cases: int, search: int) -> list[Cell]:
    """Return the campaigns: of the honest driver by all principles, of the coin by each."""
    stack, groups = (COIN, [(one,) for one in principles]) if driver == COIN else ("reference_planner", [principles])
    return [Cell(stack, (), group, cases, search, seed, POOL) for seed in seeds for group in groups]


def summed_up(lines: list[Line], principles: tuple[str, ...]) -> dict[str, Any]:
    """Return what all campaigns came to, by principle and together."""
    seconds, decided = [line["seconds"] for line in lines], sum(line["decided"] for line in lines)
    return {
        "campaigns": len(lines),
        "principles": {name: _of(name, lines) for name in principles},
        "seconds": {"mean": float(np.mean(seconds)), "p95": float(np.quantile(seconds, 0.95)), "most": max(seconds)},
        "decided": decided,
        "runs_per_decided": sum(line["runs"] for line in lines) / max(decided, 1),
        "seconds_per_decided": sum(seconds) / max(decided, 1),
        "violated": [text for line in lines for text in line["violated"]],
    }


def _of(name: str, lines: list[Line]) -> dict[str, Any]:
    ends = [line["principles"][name] for line in lines if name in line["principles"]]
    alarms = sum(end["violated"] > 0 for end in ends)
    counts = {key: sum(end[key] for end in ends) for key in ("holds", "violated", "unknown", "not_applicable", "runs")}
    decided = counts["holds"] + counts["violated"]
    interval = exact_interval(alarms, len(ends))
    return {
        "campaigns": len(ends),
        "alarms": alarms,
        "ci95": interval,
        **counts,
        "runs_per_decided": counts["runs"] / max(decided, 1),
    }


def table(driver: str, summed: dict[str, Any]) -> str:
    """Return it as Markdown."""
    rows = [
        "| principle | campaigns | with a false alarm | 95 % interval | holds | violated | unknown | runs a decision |"
    ]
    rows.append("|---" * 8 + "|")
    for name, one in summed["principles"].items():
        low, high = one["ci95"]
        counts = f"{one['holds']} | {one['violated']} | {one['unknown']} | {one['runs_per_decided']:.1f}"
        rows.append(f"| `{name}` | {one['campaigns']} | {one['alarms']} | {low:.3f} … {high:.3f} | {counts} |")
    took = summed["seconds"]
    rows.append(
        f"\n{driver} driver, {summed['campaigns']} campaigns of {took['mean']:.1f} s on the mean (95 % within "
        f"{took['p95']:.1f} s, at most {took['most']:.1f} s); {summed['runs_per_decided']:.1f} runs and "
        f"{summed['seconds_per_decided']:.2f} s a decided case."
    )
    return "\n".join(rows) + "\n"


def main() -> int:
    """Carry out what is owed and write what it came to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--driver", choices=(HONEST, COIN), default=HONEST)
    parser.add_argument("--seeds", type=int, default=200, help="how many (default %(default)s)")
    parser.add_argument("--principles", default=",".join(PRINCIPLES), metavar="ID,…")
    parser.add_argument("--cases", type=int, default=1, help="a principle (default %(default)s)")
    parser.add_argument("--search", type=int, default=0, help="dilemmas that are bred (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time (default: one a core)")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    principles = tuple(args.principles.split(","))
    asked = cells(args.driver, principles, range(args.seeds), args.cases, args.search)
    summed = summed_up(all_of(asked, args.out / "cells.jsonl", args.jobs), principles)
    text = table(args.driver, summed)
    (args.out / f"false_alarms_{args.driver}.md").write_text(text, encoding="utf-8")
    (args.out / f"false_alarms_{args.driver}.json").write_text(json.dumps(summed, indent=1), encoding="utf-8")
    print(text)
    return 1 if any(one["ci95"][0] > ALPHA for one in summed["principles"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
