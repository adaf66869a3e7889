# SPDX-License-Identifier: Apache-2.0
"""Drives laps of the town by a driving model, in lights that it was trained in and others, and prints how well.

``python scripts/pilotnet_lap.py`` prints a table; ``--json`` the figures. Exit code 1: in a light that it was trained
in it left its lane, or did not come around. Distances are those of the vehicle's outline from the edges of its lane,
negative outside; ``aside`` is how far its rear axle is from where the expert's was that pictures were labelled by.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lap_evaluation import LapResult, laps
from rich.console import Console
from rich.table import Table

from mt_nodes.runs.loop.scenario_request import ScenarioRequest
from mt_nodes.runs.loop.scenario_run import ScenarioRun

SCENARIO = "town_lap"
#: Parameters of the scenario by what they are called; those of KNOWN lie within what the model was trained in.
KNOWN = {
    "noon": {},
    "morning, clear": {"hour": "8.5", "clouds": "0"},
    "afternoon, wet": {"hour": "15", "clouds": "0.6", "wet": "0.6"},
}
UNSEEN = {
    "7 h, low sun": {"hour": "7", "clouds": "0"},
    "17 h, low sun": {"hour": "17", "clouds": "0"},
    "rain": {"rain": "0.5", "wet": "0.8"},
    "light fog": {"fog": "0.2"},
    "night": {"hour": "23"},
}


def main(words: Sequence[str] | None = None) -> int:
    """Drive, print, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stack", default="pilotnet", help="name of a shipped stack or a .yaml file")
    parser.add_argument("--repeat", type=int, default=3, help="laps a light, each begun a little elsewhere")
    parser.add_argument("--seed", type=int, default=0, help="what they depend on")
    parser.add_argument("--light", action="append", choices=[*KNOWN, *UNSEEN], help="only this; may be given again")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(words)
    rows = []
    for name, parameters in (KNOWN | UNSEEN).items():
        if not args.light or name in args.light:
            rows.append(driven(name, parameters, args))
    if args.json:
        print(json.dumps(rows, indent=2))
    else:
        show(rows)
    return int(any(row["trained_in"] and row["in_lane"] < row["laps"] for row in rows))


def driven(name: str, parameters: dict[str, str], args: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one light: the worst of all laps, and the means of means."""
    asked = ScenarioRequest((SCENARIO,), stack=args.stack, seed=args.seed, repeat=args.repeat, parameters=parameters)
    done = list(laps(ScenarioRun.make(asked, Path())))
    kept: list[LapResult] = [lap.stack for lap in done]
    around = [lap.lap_s for lap in kept if lap.lap_s is not None]
    return {
        "light": name,
        "trained_in": name in KNOWN,
        "laps": len(kept),
        "in_lane": sum(lap.in_lane for lap in kept),
        "room_m": min(lap.room_m for lap in kept),
        "expert_room_m": min(lap.expert.room_m for lap in done),
        "aside_mean_m": sum(lap.aside_mean_m for lap in kept) / len(kept),
        "aside_max_m": max(lap.aside_max_m for lap in kept),
        "lap_s": max(around, default=None),
        "slowest_mps": min(lap.slowest_mps for lap in kept),
        "fastest_mps": max(lap.fastest_mps for lap in kept),
        "each": [dataclasses.asdict(lap) for lap in kept],
    }


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print a table."""
    names = ("light", "trained in", "laps in lane", "least room (expert), m", "aside mean, max, m", "lap, s", "m/s")
    table = Table(*names)
    for row in rows:
        table.add_row(
            row["light"],
            "yes" if row["trained_in"] else "no",
            f"{row['in_lane']} of {row['laps']}",
            f"{row['room_m']:.2f} ({row['expert_room_m']:.2f})",
            f"{row['aside_mean_m']:.3f}, {row['aside_max_m']:.2f}",
            "-" if row["lap_s"] is None else f"{row['lap_s']:.1f}",
            f"{row['slowest_mps']:.1f} … {row['fastest_mps']:.1f}",
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    raise SystemExit(main())
