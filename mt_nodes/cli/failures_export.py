# SPDX-License-Identifier: Apache-2.0
"""``mt replay failures export DIR… --format FORMAT --out FOLDER``: violated pairs as labelled training data."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.cli.options import at_least_one

if TYPE_CHECKING:
    from mt_nodes.runs.export.export_files import Export

FORMATS, ORIGINS = ("kitti", "nuscenes", "coco", "yolo"), ("labels", "source_output")
#: Options of this verb alone.
OWN = ("format", "out", "labels", "limit")


def add_export_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    add = parser.add_argument
    about = "for export: format of the files: kitti or nuscenes of clouds, coco or yolo of pictures"
    add("--format", choices=FORMATS, help=about)
    add("--out", type=Path, metavar="FOLDER", help="for export: directory to make")
    about = "for export: where labels come from, the first that there is: " + ", ".join(ORIGINS)
    add("--labels", metavar="ORIGIN,…", help=f"{about} (default both; objects that were added are always labelled)")
    add("--limit", type=at_least_one, metavar="N", help="for export: at most N frames")


def export(args: argparse.Namespace, file: Path) -> int:
    """Write the files, store the cases in the database ``file``, and print what was left out; 3 if that is all.

    Raises MtError: results are damaged or not there, or the folder cannot be made.
    """
    from rich.progress import Progress

    from mt_nodes.engine.results_dirs import results_of
    from mt_nodes.runs.export.export_files import SENSORS, write_export
    from mt_nodes.runs.export.followup_export import ExportedPairs

    if args.format is None or args.out is None:
        raise UsageError("mt replay failures export: expected --format kitti|nuscenes|coco|yolo and --out FOLDER")
    places = [place for directory in map(Path, args.which) for place in results_of(directory)]
    pairs = ExportedPairs(places, SENSORS[args.format], _preference(args.labels), args.limit)
    with Progress(transient=True, disable=args.json or not sys.stdout.isatty()) as bar:
        task = bar.add_task("frames", total=None)
        done = write_export(pairs, args.format, args.out, lambda count: bar.update(task, completed=count))
    stored = _store(done, places, file) if done.frames else 0
    left_out = {
        **pairs.left_out,
        **{f"{name}: no proof of anything, never exported": n for name, n in pairs.never.items()},
    }
    if args.json:
        counts = {"labels": dict(done.origins), "unwritten": dict(done.unwritten), "left_out": left_out}
        print(json.dumps({"frames": len(done.frames), "out": str(args.out), "stored": stored, **counts}, indent=2))
    else:
        _print(done, left_out, stored, file)
    return int(ExitCode.PASS if done.frames else ExitCode.UNDECIDED)


def _preference(text: str | None) -> tuple[str, ...]:
    names = ORIGINS if text is None else tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in ORIGINS:
            raise UsageError(f"--labels: got '{name}', expected {' or '.join(ORIGINS)}, or both with a comma")
    if not names or len(set(names)) < len(names):
        raise UsageError(f"--labels: got '{text}', expected each of {' and '.join(ORIGINS)} once at most")
    return names


def _store(done: Export, places: list[Path], file: Path) -> int:
    """Store the cases that were exported, so that `mt replay --failures` replays them; return how many are new."""
    from mt_nodes.runs.campaign.cases import of_results
    from mt_nodes.runs.campaign.failures import Failures

    exported: dict[str, set[str]] = {}
    for row in done.frames:
        exported.setdefault(row["results"], set()).add(row["pair"])
    with Failures(file) as failures:
        cases = [case for place in places for case in of_results(place, file, exported.get(str(place), set()))]
        return failures.failed(cases)


def _print(done: Export, left_out: dict[str, int], stored: int, file: Path) -> None:
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import table, text
    from mt_nodes.runs.export.export_files import MANIFEST

    words = {
        "labels": "labels of the recording",
        "source_output": "pseudo-labels: what the stack said of the source",
        "added_object": "added objects, exactly known",
    }
    if done.frames:
        text(f"{counted(len(done.frames), 'frame')} exported to {done.out}, in {done.format}'s format")
        table(("labels", "of"), [(str(count), words[name]) for name, count in done.origins.items()])
        empty = sum(not row["objects"] for row in done.frames)
        if empty:
            text(f"{counted(empty, 'frame')} without an object, as the labels of the recording say")
        for why, count in done.unwritten.items():
            text(f"{counted(count, 'label')} not in the files: {why}")
        text(f"{done.out / MANIFEST} says of each frame which pair it is, and of each label where it comes from")
        again = "`mt replay --failures --fresh-draws 5`, before the training and after it"
        text(f"{counted(stored, 'new case')} stored in {file}; {again}, says whether it was mended")
    if left_out:
        table(("left out", "why"), [(str(count), why) for why, count in left_out.items()])
    if not done.frames:
        text("nothing was exported" + ("" if left_out else ": there is no violated pair"))
