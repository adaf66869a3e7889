# SPDX-License-Identifier: Apache-2.0
"""Drives laps of the town by driving models, in several lights and in a town of another size, and prints how well.

    python scripts/network_laps.py                                  # the weights that ship
    python scripts/network_laps.py cnn3d=made/cnn3d/weights.pt --trained night --trained rain

``--json`` prints the figures. Exit code 1: in a light that it was trained in, a model left its lane or did not come
around. Distances are those of the vehicle's outline from the edges of its lane, negative outside; ``aside`` is how far
its rear axle is from where the expert's was that pictures were labelled by.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lap_evaluation import LapResult, laps
from rich.console import Console
from rich.table import Table

from mt_nodes.runs.loop.scenario_request import ScenarioRequest
from mt_nodes.runs.loop.scenario_run import ScenarioRun

SCENARIO = "town_lap"
#: Who drives slower in the dark or in rain has the time for it.
_SLOW = {"duration": "150"}
#: Parameters of the scenario by what they are called.
LIGHTS: dict[str, dict[str, str]] = {
    "noon": {},
    "morning, clear": {"hour": "8.5", "clouds": "0"},
    "afternoon, wet": {"hour": "15", "clouds": "0.6", "wet": "0.6"},
    "another town": {"town": "town_12"},
    "7 h, low sun": {"hour": "7", "clouds": "0"},
    "17 h, low sun": {"hour": "17", "clouds": "0"},
    "rain": {"rain": "0.5", "wet": "0.8", **_SLOW},
    "light fog": {"fog": "0.2"},
    "night": {"hour": "23", **_SLOW},
}
#: Those that every recipe of docs/models.md trains in.
DAYLIGHT = ("noon", "morning, clear", "afternoon, wet")


@dataclasses.dataclass(frozen=True)
class LapPlan:
    """Which laps are driven. ``trained``: lights that the model learned in."""

    lights: Sequence[str] = tuple(LIGHTS)
    trained: Sequence[str] = DAYLIGHT
    repeat: int = 3
    seed: int = 0


def main(words: Sequence[str] | None = None) -> int:
    """Drive, print, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about = "shipped stack or .yaml file; =WEIGHTS: with other weights than its own"
    parser.add_argument("stacks", nargs="*", default=["pilotnet"], metavar="STACK[=WEIGHTS]", help=about)
    parser.add_argument("--repeat", type=int, default=3, help="laps a light, each begun a little elsewhere")
    parser.add_argument("--seed", type=int, default=0, help="what they depend on")
    parser.add_argument("--light", action="append", choices=LIGHTS, help="only this; may be given again")
    also = "the model was trained in this light, too, beside daylight"
    parser.add_argument("--trained", action="append", choices=LIGHTS, default=[], help=also)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(words)
    plan = LapPlan(args.light or tuple(LIGHTS), (*DAYLIGHT, *args.trained), args.repeat, args.seed)
    rows = [row for stack in args.stacks for row in driven(*_named(stack), plan)]
    if args.json:
        print(json.dumps(rows, indent=2))
    else:
        show(rows)
    return int(any(row["trained_in"] and row["in_lane"] < row["laps"] for row in rows))


def _named(text: str) -> tuple[str, str]:
    stack, _, weights = text.partition("=")
    return stack, weights


def driven(stack: str, weights: str, plan: LapPlan) -> list[dict[str, Any]]:
    """Return the figures of a model for each light; ``weights``: empty for those of the stack file."""
    return [
        {
            "stack": stack,
            "light": name,
            "trained_in": name in plan.trained,
            **_driven(stack, weights, LIGHTS[name], plan),
        }
        for name in plan.lights
    ]


def _driven(stack: str, weights: str, parameters: Mapping[str, str], plan: LapPlan) -> dict[str, Any]:
    """Return the figures of one light: the worst of all laps, and the means of means."""
    asked = ScenarioRequest((SCENARIO,), stack=stack, seed=plan.seed, repeat=plan.repeat, parameters=parameters)
    run = ScenarioRun.make(asked, Path())
    if weights:
        own = {**run.stack.params, "weights": str(Path(weights).resolve())}
        run = dataclasses.replace(run, stack=dataclasses.replace(run.stack, params=own))
    done = list(laps(run))
    kept: list[LapResult] = [lap.stack for lap in done]
    around = [lap.lap_s for lap in kept if lap.lap_s is not None]
    return {
        "laps": len(kept),
        "in_lane": sum(lap.in_lane for lap in kept),
        "room_m": min(lap.room_m for lap in kept),
        "expert_room_m": min(lap.expert.room_m for lap in done),
        "aside_mean_m": sum(lap.aside_mean_m for lap in kept) / len(kept),
        "aside_max_m": max(lap.aside_max_m for lap in kept),
        "driven_m": min(lap.driven_m for lap in kept),
        "lap_s": max(around, default=None),
        "slowest_mps": min(lap.slowest_mps for lap in kept),
        "fastest_mps": max(lap.fastest_mps for lap in kept),
        "each": [dataclasses.asdict(lap) for lap in kept],
    }


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print a table."""
    names = ("network", "light", "trained in", "laps in lane", "least room (expert), m", "aside mean, max, m")
    table = Table(*names, "least driven, m", "lap, s", "m/s")
    for row in rows:
        table.add_row(
            row["stack"],
            row["light"],
            "yes" if row["trained_in"] else "no",
            f"{row['in_lane']} of {row['laps']}",
            f"{row['room_m']:.2f} ({row['expert_room_m']:.2f})",
            f"{row['aside_mean_m']:.3f}, {row['aside_max_m']:.2f}",
            f"{row['driven_m']:.0f}",
            "-" if row["lap_s"] is None else f"{row['lap_s']:.1f}",
            f"{row['slowest_mps']:.1f} … {row['fastest_mps']:.1f}",
        )
    Console(width=160).print(table)


if __name__ == "__main__":
    raise SystemExit(main())
