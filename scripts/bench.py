# SPDX-License-Identifier: Apache-2.0
"""Times on this machine: mutations, large messages, mutator against relay, pairs a second, summaries of many drives."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import bench_images
import bench_mutations
import bench_pairs
import bench_relay
import bench_rig
import bench_rig_cost
import bench_summary
import numpy as np
from rich.console import Console
from rich.table import Table

from mt_nodes.base.environment import keep_freed_memory
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.runs import doctor
from mt_nodes.world.scene.drive import generate_drive

Part = dict[str, Any]
#: With a stack that takes a millisecond: in process, over topics.
GOAL_PAIRS_PER_S = (100, 40)
#: Messages and rounds if nothing else is asked; of images, see :data:`bench_images.ROUNDS`.
ROUNDS = 100


def machine() -> Part:
    """Return what the figures depend on beside the code."""
    names = [line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.machine(),
        "cores": os.cpu_count(),
        "load_1min": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def mutations(given: argparse.Namespace) -> Part:
    """Return processor time and memory of every mutation with its defaults, on one cloud."""
    keep_freed_memory()
    return bench_mutations.measure(given.rounds or ROUNDS, given.bag)


def images(given: argparse.Namespace) -> Part:
    """Return processor time of every mutation that changes images, on a generated street's."""
    keep_freed_memory()
    return bench_images.measure(given.rounds or bench_images.ROUNDS, given.size or bench_images.SIZES)


def transport(given: argparse.Namespace) -> Part:
    """Return what the doctor finds of large messages to a second process and back."""
    return {finding.title: finding.detail for finding in doctor.check_transport(os.environ)}


def relay(given: argparse.Namespace) -> Part:
    """Return what the mutator adds to the way of a message, against a relay, in the same runs."""
    return bench_relay.measure(given.repeats, given.rounds or ROUNDS, given.before, given.payload or ())


def pairs(given: argparse.Namespace) -> Part:
    """Return pairs a second and their stages, in process and over topics, for each reference stack."""
    with tempfile.TemporaryDirectory() as place:
        bag = given.bag or Path(place) / "drive"
        if given.bag is None:
            write_bundles(bag, generate_drive(given.bundles))
        runs = [(t, s) for t in bench_pairs.TRANSPORTS for s in given.stack or bench_pairs.STACKS]
        return {f"{s}, {t}": bench_pairs.measure(bag, s, t, given.bundles) for t, s in runs}


def summary(given: argparse.Namespace) -> Part:
    """Return what it takes to sum up a relation over many drives with violations."""
    return bench_summary.measure(given.drives)


def report(given: argparse.Namespace) -> Part:
    """Return what it takes to make summary, tables and report of a million pairs."""
    return bench_summary.measure_report(given.drives * 2 // 3)


def rig(given: argparse.Namespace) -> Part:
    """Return what a rig of many sensors loses beside `mt live`, what is added, and what cores relations need."""
    return bench_rig.measure([bench_rig.Setting(*run, given.seconds) for run in bench_rig.RUNS])


PARTS: dict[str, Callable[[argparse.Namespace], Part]] = {
    f.__name__: f for f in (mutations, images, transport, relay, pairs, summary, report, rig)
}
#: Parts that a page is written of, and its name.
PAGES: dict[str, tuple[str, Callable[[Path, Part, Part], None]]] = {
    "mutations": ("performance.md", bench_mutations.write_docs),
    "images": ("performance_images.md", bench_images.write_docs),
    "rig": ("performance_rig.md", bench_rig_cost.write_docs),
    "relay": ("performance_inline.md", bench_relay.write_docs),
}


def main(argv: list[str] | None = None) -> None:
    """Measure, print tables, write JSON where asked."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part; may be given again")
    parser.add_argument("--bag", type=Path, help="replay this instead of a generated drive, mutate its clouds")
    parser.add_argument(
        "--stack", action="append", help="replay into this; may be given again (default both references)"
    )
    parser.add_argument("--bundles", type=int, default=25, help="of the drive (default %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="of the relay's runs (default %(default)s)")
    parser.add_argument("--drives", type=int, default=100_000, help="of the summary (default %(default)s)")
    parser.add_argument(
        "--rounds", type=int, help=f"messages a way and run (default {ROUNDS}; of images {bench_images.ROUNDS})"
    )
    parser.add_argument(
        "--size",
        action="append",
        type=_size,
        metavar="WxH",
        help="of images; may be given again",
    )
    parser.add_argument("--seconds", type=float, default=12.0, help="a turn of the rig (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure")
    names = [payload.name for payload in bench_relay.PAYLOADS]
    parser.add_argument("--payload", action="append", choices=names, help="of the relay's runs; may be given again")
    parser.add_argument("--before", type=Path, metavar="DIR", help="checkout whose mutator takes its turn, too")
    parser.add_argument("--docs", type=Path, metavar="DIR", help="write the pages of what is measured")
    given = parser.parse_args(argv)
    console, found = Console(width=None if sys.stdout.isatty() else 200), {"machine": machine()}
    console.print(", ".join(f"{name} {value}" for name, value in found["machine"].items()), highlight=False)
    for name in given.only or PARTS:
        found[name] = PARTS[name](given)
        for table in TABLES[name](found[name]):
            console.print(table)
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n")
    for name in found.keys() & PAGES.keys() if given.docs else ():
        page, write = PAGES[name]
        write(given.docs / page, found["machine"], found[name])
    measured = found.get("mutations", {"by_name": {}})
    if unfit := [name for name, row in measured["by_name"].items() if "not applicable" in row]:
        raise SystemExit(f"bench: not applicable to this cloud, so not measured: {', '.join(unfit)}")


def _size(text: str) -> bench_images.Size:
    width, height = text.split("x")
    return int(width), int(height)


def _table(title: str, *columns: str) -> Table:
    made = Table(title=title)
    for i, column in enumerate(columns):
        made.add_column(column, justify="right" if i else "left")
    return made


def _mutations(part: Part) -> list[Table]:
    title = (
        f"one frame of {part['points']:,} points, {part['rounds']} rounds, defaults; memory as multiple of the cloud"
    )
    table = _table(title, *bench_mutations.COLUMNS)
    for row in bench_mutations.cells(part):
        table.add_row(*row)
    return [table]


def _images(part: Part) -> list[Table]:
    title = f"images: one frame of a generated street, {part['rounds']} rounds, defaults"
    table = _table(title, *bench_images.columns(part))
    for row in bench_images.cells(part):
        table.add_row(*row)
    return [table]


def _transport(part: Part) -> list[Table]:
    table = _table("messages to a second process and back", "transport", "")
    for title, detail in part.items():
        table.add_row(title, detail)
    return [table]


def _relay(part: Part) -> list[Table]:
    tables = []
    for name, rows in part["payloads"].items():
        publish = (
            f"; publish alone {rows['relay']['publish_p50_ms']:.2f} ms" if "publish_p50_ms" in rows["relay"] else ""
        )
        goals = ", ".join(f"{q} {goal:g}" for q, goal in bench_relay.GOALS.items())
        title = (
            f"{name}, {part['repeats']} x {part['rounds']} messages a way (goals {goals} times the relay's{publish})"
        )
        table = _table(title, *bench_relay.COLUMNS)
        for row in bench_relay.cells(rows):
            table.add_row(*row)
        tables.append(table)
    return tables


def _pairs(part: Part) -> list[Table]:
    runs = list(part.values())
    names = [f"{run['stack']}\n{run['transport']}" for run in runs]
    rate = _table(
        "replay in lockstep (goal with a stack of 1 ms: {} pairs/s in process, {} over topics)".format(
            *GOAL_PAIRS_PER_S
        ),
        "",
        *names,
    )
    for label in ("pairs", "pairs_per_s", "followups_per_s"):
        rate.add_row(label.replace("_per_s", "/s"), *(str(run[label]) for run in runs))
    for phase in bench_pairs.PHASES:
        rate.add_row(f"{phase} (s)", *(f"{run['phases_s'][phase]:.2f}" for run in runs))
    stages = _table("where the time of a pair goes, ms", "", *names)
    for told, note in (("ms_per_pair", ""), ("beside_ms_per_pair", " (beside)")):
        for stage in dict.fromkeys(stage for run in runs for stage in run[told]):
            cells = (run[told].get(stage) for run in runs)
            stages.add_row(stage + note, *("" if cell is None else f"{cell:.2f}" for cell in cells))
    return [rate, stages]


def _rig(part: Part) -> list[Table]:
    runs = _table("a rig of many sensors beside mt live", *bench_rig_cost.RUN_COLUMNS)
    for row in bench_rig_cost.run_cells(part):
        runs.add_row(*row)
    costs = _table(f"cores needed; the model was off by {bench_rig_cost.error(part):.0%}", *bench_rig_cost.COST_COLUMNS)
    for row in bench_rig_cost.cost_cells(part):
        costs.add_row(*row)
    return [runs, costs]


def _summary(part: Part, what: str = "summing up a relation that is violated in every drive") -> list[Table]:
    table = _table(f"{what} (goal {bench_summary.GOAL_S:g} s, {bench_summary.GOAL_MIB:g} MiB)", "", "")
    for name, value in part.items():
        table.add_row(name, f"{value:,}")
    return [table]


TABLES: dict[str, Callable[[Part], list[Table]]] = {
    "mutations": _mutations,
    "images": _images,
    "transport": _transport,
    "relay": _relay,
    "pairs": _pairs,
    "summary": _summary,
    "rig": _rig,
    "report": partial(_summary, what="summary, tables and report of pairs"),
}


if __name__ == "__main__":
    main()
