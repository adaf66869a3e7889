# SPDX-License-Identifier: Apache-2.0
"""Makes docs/real_data.md: what honest reference stacks come to on a recorded drive, and cameras on generated ones."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.jsonl import read_result
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.relations.checks.sequence import SequenceCheck
from mt_nodes.relations.relation import Relation, shipped_relations
from mt_nodes.runs.replay.execute import execute, in_process_arms
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.stacks.stack import Stack, load_stack
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive

PAGE = Path(__file__).resolve().parents[1] / "docs" / "real_data.md"
STACKS = ("reference_detector", "reference_whole_cloud", "reference_tracker")
CAMERA_STACKS = ("reference_camera", "reference_both")
FRAMES = 26
#: Generated drives with a camera: seed, and the largest curvature of the road in 1/m.
GENERATED = {"left bend": (1, 1.0 / 80.0), "right bend": (2, -1.0 / 60.0)}
#: What differs from frame to frame in a reason: how many things there were, which places were tried in vain.
_COUNTED, _TRIED = re.compile(r"\bnone of \d+ "), re.compile(r": of \d+ places? (tried|looked at).*")
HEAD = """# A real drive

This page gives the outcome of every relation for honest stacks on a recorded drive. Use it to see which relations can
be decided on real data, and which of them an honest stack violates.

The three reference stacks with a LiDAR run on {frames} frames of a drive (KITTI, HDL-64E, a street in town with traffic
ahead), in process, seed 0, each relation in its own pass (`two_pass`). One short drive gives no reliable rates.
`scripts/real_data.py BAG` makes this page in half an hour. Control and sham are violated in {background} of
{offered} pairs.
"""
CAMERA_HEAD = """# Cameras

The reference camera stack runs with all of its relations, the reference stack with both sensors with those whose
mutation changes images and clouds. The input is the same recorded drive, and two generated drives of {frames} frames
each (640 x 480, the street of `mt demo` with a bend). Control and sham are violated in {background} of {offered} pairs.

On the recorded drive, no relation about lanes is decided. The car is in a queue of traffic: two or three dashes of the
lane's lines are visible, one of them behind a car or in a lorry's shadow, and a third of the stretch that the lane
follower evaluates is below the image. It reports no lane, correctly: with a lower threshold it finds a line more than a
metre beside the lane in eleven of these frames. The drive shows no people, so boxes are decided only where one was
added; the few other boxes are false detections.
"""


@dataclass(frozen=True)
class Told:
    """What a run says of one relation: summary, frames violated, and how often which reason kept it undecided."""

    summary: Mapping[str, Any]
    violated: tuple[int, ...]
    undecided: Counter[str]


def wanted(made: Stack) -> tuple[str, ...]:
    """Return the relations by which a stack is judged here: all that fit and judge frames, not a drive as a whole.

    With both sensors only what changes both.
    """
    both = {"lidar", "camera"} <= set(made.inputs)
    judging = (r for r in shipped_relations() if r.role == "relation" and not isinstance(r.check, SequenceCheck))
    relations = (r for r in judging if incompatibility(r, made) is None)
    return tuple(r.id for r in relations if not both or ("camera" in r.requires and _changes_both(r)))


def _changes_both(relation: Relation) -> bool:
    return any({"lidar", "camera"} <= set(mutation.changes) for mutation in relation.mutate)


def play(bag: Path, stack: str, names: Sequence[str], out: Path) -> None:
    """Judge one stack by relations."""
    request = ReplayRequest((str(bag),), tuple(names), stack=stack, mode="two_pass", transport="inprocess")
    finish(Run.create(request, str(out)))


def finish(run: Run) -> None:
    """Play what is left of a run."""
    execute(run, lambda ending: in_process_arms(run, ending), lambda line: None, lambda verdicts: None)


def played(bag: Path, stack: str, place: Path) -> dict[str, Told]:
    """Return what is told of one stack on one drive.

    Runs below ``place`` that were cut off are gone on with; what no run tells is played in a new one.
    """
    found: dict[str, Told] = {}
    before = sorted(path for path in place.glob("*") if path.is_dir())
    for out in before:
        if not (out / "summary.json").exists():
            finish(Run.resume(out))
        found |= told(out)
    names = wanted(load_stack(stack))
    if missing := [name for name in names if name not in found]:
        play(bag, stack, missing, place / str(len(before)))
        found |= told(place / str(len(before)))
    return {name: found[name] for name in names}


def generated(name: str, place: Path) -> Path:
    """Return a generated drive, made unless it is there already."""
    path = place / name.replace(" ", "_")
    seed, bend_1pm = GENERATED[name]
    if not path.exists():
        write_bundles(path, generate_drive(FRAMES, seed, camera=CameraSensor(), bend_1pm=bend_1pm))
    return path


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
    summary = read_result(results / "summary.json")
    return {
        name: Told(row, tuple(sorted(violated.get(name, ()))), undecided.get(name, Counter()))
        for name, row in summary["relations"].items()
    }


def shortened(reason: str) -> str:
    """Return a reason without what differs from frame to frame."""
    return _TRIED.sub("", _COUNTED.sub("none of the ", reason))


Found = Mapping[str, Mapping[str, Told]]
"""What is told of relations, by column."""


def page(found: Found, cameras: Found | None = None) -> str:
    """Return the page, from what is told of each stack; of those with cameras by stack and drive."""
    parts = _part(HEAD, found)
    if cameras:
        parts += ["", *_part(CAMERA_HEAD, cameras)]
    return "\n".join(parts) + "\n"


def _part(head: str, found: Found) -> list[str]:
    tells = [told for rows in found.values() for told in rows.values()]
    backgrounds = [told.summary[role] for told in tells for role in ("control", "sham")]
    text = head.format(
        frames=max(sum(told.summary["outcomes"].values()) for told in tells),
        background=sum(b["violated"] for b in backgrounds),
        offered=sum(sum(b["outcomes"].values()) for b in backgrounds),
    )
    return [text, *_table(found), "", *_violated(found), "", *_undecided(found)]


def _table(found: Found) -> list[str]:
    kinds = {name: told.summary["kind"] for rows in found.values() for name, told in rows.items()}
    columns = ["relation", "kind", *map(_titled, found)]
    lines = [
        "Each cell gives violated of decided pairs, in brackets the pairs that were not applicable. A cell is empty if"
    ]
    lines += ["the relation does not fit the stack.", "", _row(columns), _row(["---"] * len(columns))]
    for name in sorted(kinds):
        cells = (_cell(rows[name].summary) if name in rows else "" for rows in found.values())
        lines.append(_row([f"`{name}`", kinds[name], *cells]))
    return lines


def _cell(summary: Mapping[str, Any]) -> str:
    not_applicable = summary["outcomes"].get("NOT_APPLICABLE", 0)
    return f"{summary['violated']} of {summary['decided']}" + (f" ({not_applicable})" if not_applicable else "")


def _titled(column: str) -> str:
    """Return the title of a column: ``stack``, or ``stack drive``."""
    stack, _, drive = column.partition(" ")
    return f"`{stack}`" + (f", {drive}" if drive else "")


def _violated(found: Found) -> list[str]:
    lines = ["## Violated by an honest stack", ""]
    names = sorted({name for rows in found.values() for name in rows})
    rows = [(n, found[s][n], s) for n in names for s in found if n in found[s] and found[s][n].violated]
    necessary = sum(told.summary["kind"] == "necessary" for _, told, _ in rows)
    lines += [f"{necessary} of these are `necessary`. The files of the others state why they are only `expected`.", ""]
    lines += [_row(("relation", "stack", "frames")), _row(["---"] * 3)]
    return lines + [_row((f"`{n}`", _titled(s), ", ".join(map(str, t.violated)))) for n, t, s in rows]


def _undecided(found: Found) -> list[str]:
    lines = [
        "## Too few decided pairs",
        "",
        "Relations with fewer decided pairs than they need to pass, and why the others",
    ]
    lines += ["were not decided.", "", _row(("relation", "stack", "decided", "required", "reason")), _row(["---"] * 5)]
    for column, rows in found.items():
        for name, told in rows.items():
            if told.summary["decided"] < told.summary["min_decided"]:
                why = "; ".join(f"{count} times: {reason}" for reason, count in told.undecided.most_common(3))
                counts = (str(told.summary["decided"]), str(told.summary["min_decided"]))
                lines.append(_row((f"`{name}`", _titled(column), *counts, why)))
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
        found = {stack: played(args.bag, stack, kept / stack) for stack in STACKS}
        cameras = {}
        for stack in CAMERA_STACKS:
            cameras[stack] = played(args.bag, stack, kept / stack)
            for drive in GENERATED:
                bag = generated(drive, kept / "drives")
                cameras[f"{stack} {drive}"] = played(bag, stack, kept / f"{stack} {drive}")
        PAGE.write_text(page(found, cameras), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
