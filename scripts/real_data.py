# SPDX-License-Identifier: Apache-2.0
"""Makes docs/real_data.md: what the honest reference stacks come to on a recorded drive, relation by relation."""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.journal import read_journal
from mt_nodes.plan import ReplayRequest
from mt_nodes.relations import shipped_relations
from mt_nodes.replay import execute, in_process_arms
from mt_nodes.runs import Run, unfit
from mt_nodes.stacks import load_stack

PAGE = Path(__file__).resolve().parents[1] / "docs" / "real_data.md"
STACKS = ("reference_detector", "reference_whole_cloud", "reference_tracker")
#: What differs from frame to frame in a reason: how many things there were, which places were tried in vain.
_COUNTED, _TRIED = re.compile(r"\bnone of \d+ "), re.compile(r": of \d+ places? (tried|looked at).*")
HEAD = """# A real drive

What honest stacks come to on {frames} frames of a recorded drive (KITTI, HDL-64E, a street in town with parked cars):
the three reference stacks, in process, seed 0, each relation in a pass of its own (`two_pass`). The drive is one, and
short: it shows whether relations can be decided on real data and whether honest stacks hold them, and no rate. This
page is made by `scripts/real_data.py BAG` in some minutes. Control and sham are violated in {background} of {offered}
pairs.
"""


@dataclass(frozen=True)
class Told:
    """What a run says of one relation: summary, frames violated, and how often which reason kept it undecided."""

    summary: Mapping[str, Any]
    violated: tuple[int, ...]
    undecided: Counter[str]


def play(bag: Path, stack: str, out: Path) -> None:
    """Judge one stack by every relation that fits it."""
    made = load_stack(stack)
    fit = tuple(r.id for r in shipped_relations() if r.role == "relation" and unfit(r, made) is None)
    request = ReplayRequest((str(bag),), fit, stack=stack, mode="two_pass", transport="inprocess")
    run = Run.create(request, str(out))
    execute(run, lambda ending: in_process_arms(run), lambda line: None, lambda verdicts: None)


def told(results: Path) -> dict[str, Told]:
    """Read what a run came to, relation by relation."""
    violated: dict[str, list[int]] = {}
    undecided: dict[str, Counter[str]] = {}
    for line in read_journal(results / "result.jsonl"):
        if line["type"] != "verdict":
            continue
        if line["outcome"] == "VIOLATED":
            violated.setdefault(line["relation"], []).append(int(line["pair"].split("/")[1]))
        elif line["outcome"] != "HOLDS":
            undecided.setdefault(line["relation"], Counter())[shortened(line["reason"])] += 1
    summary = json.loads((results / "summary.json").read_text(encoding="utf-8"))
    return {
        name: Told(row, tuple(sorted(violated.get(name, ()))), undecided.get(name, Counter()))
        for name, row in summary["relations"].items()
    }


def shortened(reason: str) -> str:
    """Return a reason without what differs from frame to frame."""
    return _TRIED.sub("", _COUNTED.sub("none of the ", reason))


def page(found: Mapping[str, Mapping[str, Told]]) -> str:
    """Return the page, from what is told of each stack."""
    kinds = {name: told.summary["kind"] for rows in found.values() for name, told in rows.items()}
    tells = [told for rows in found.values() for told in rows.values()]
    backgrounds = [told.summary[role] for told in tells for role in ("control", "sham")]
    head = HEAD.format(
        frames=max(sum(told.summary["outcomes"].values()) for told in tells),
        background=sum(b["violated"] for b in backgrounds),
        offered=sum(sum(b["outcomes"].values()) for b in backgrounds),
    )
    return "\n".join([head, *_table(found, kinds), "", *_violated(found), "", *_undecided(found)]) + "\n"


def _table(found: Mapping[str, Mapping[str, Told]], kinds: Mapping[str, str]) -> list[str]:
    columns = ["relation", "kind", *(f"`{stack}`" for stack in found)]
    lines = ["Violated of decided pairs; nothing where a relation is not for a stack.", "", _row(columns)]
    lines.append(_row(["---"] * len(columns)))
    for name in sorted(kinds):
        cells = (rows[name].summary if name in rows else None for rows in found.values())
        lines.append(
            _row([f"`{name}`", kinds[name], *(f"{c['violated']} of {c['decided']}" if c else "" for c in cells)])
        )
    return lines


def _violated(found: Mapping[str, Mapping[str, Told]]) -> list[str]:
    lines = ["## Violated by an honest stack", ""]
    names = sorted({name for rows in found.values() for name in rows})
    rows = [(n, found[s][n], s) for n in names for s in found if n in found[s] and found[s][n].violated]
    necessary = sum(told.summary["kind"] == "necessary" for _, told, _ in rows)
    lines += [f"{necessary} of these are `necessary`. Each file of the others says why it is only `expected`.", ""]
    lines += [_row(("relation", "stack", "frames")), _row(["---"] * 3)]
    return lines + [_row((f"`{n}`", f"`{s}`", ", ".join(map(str, t.violated)))) for n, t, s in rows]


def _undecided(found: Mapping[str, Mapping[str, Told]]) -> list[str]:
    lines = ["## Decided too seldom", "", "Fewer pairs than a relation demands before it passes, and why the others"]
    lines += ["were not decided.", "", _row(("relation", "stack", "decided", "demanded", "why not")), _row(["---"] * 5)]
    for stack, rows in found.items():
        for name, told in rows.items():
            if told.summary["decided"] < told.summary["min_decided"]:
                why = "; ".join(f"{count} times: {reason}" for reason, count in told.undecided.most_common(3))
                counts = (str(told.summary["decided"]), str(told.summary["min_decided"]))
                lines.append(_row((f"`{name}`", f"`{stack}`", *counts, why)))
    return lines


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(argv: list[str] | None = None) -> int:
    """Play what was not played yet, and write the page."""
    parser = argparse.ArgumentParser(prog="real_data", description=__doc__)
    parser.add_argument("bag", type=Path, metavar="BAG", help="the recorded drive")
    parser.add_argument("--results", type=Path, metavar="DIR", help="keep results here, and use those that are there")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as spare:
        kept = args.results or Path(spare)
        for stack in STACKS:
            if not (kept / stack / "summary.json").exists():
                play(args.bag, stack, kept / stack)
        PAGE.write_text(page({stack: told(kept / stack) for stack in STACKS}), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
