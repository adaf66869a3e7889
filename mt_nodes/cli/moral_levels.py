# SPDX-License-Identifier: Apache-2.0
"""``mt experiment moral-levels``."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.cli.options import add_fields, add_results, request_of, resumed_directory
from mt_nodes.runs.moral.levels_request import LevelsRequest

if TYPE_CHECKING:
    from mt_nodes.stacks.stack import Stack


def add_moral_levels_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    request = LevelsRequest()
    parser.epilog = "example: mt experiment moral-levels --principles equal_treatment --fault low_is_litter"
    add_fields(parser, request, "principles", "object", "lidar", "camera", "faults", "pool", "cases", "runs", "seed")
    add_fields(parser, request, "workers")
    add_results(parser, "comparison", "levels.json", table="the table")


def run_moral_levels(args: argparse.Namespace) -> int:
    """Drive the same dilemmas at every level, print which module is to blame, return its exit code."""
    from mt_nodes.base.directories import new_directory
    from mt_nodes.engine.run_record import request_of as recorded_request
    from mt_nodes.engine.run_record import write_request
    from mt_nodes.runs.moral.levels_request import checked_levels

    if args.resume:
        out = resumed_directory(args, add_moral_levels_arguments)
        plain = recorded_request(out, "object", "mt experiment moral-levels")
        return _levels(out, LevelsRequest.from_plain(plain), as_json=args.json)
    request = checked_levels(request_of(LevelsRequest, args))
    out = new_directory(args.out)
    write_request(out, request, {"experiment": "moral-levels", "relations": []})
    return _levels(out, request, as_json=args.json)


def _levels(out: Path, request: LevelsRequest, *, as_json: bool) -> int:
    from mt_nodes.base import plugins
    from mt_nodes.base.jsonl import write_result
    from mt_nodes.cli.terminal import progress_bar, text
    from mt_nodes.runs.moral.levels import locate, markdown, result_of
    from mt_nodes.runs.moral.principle import load_principle

    plugins.add_directories(map(Path, request.plugins))
    principles = [load_principle(name) for name in request.principles]
    with progress_bar("{task.completed} runs", hidden=as_json, label="level {task.fields[level]}") as progress:
        task = progress.add_task("levels", total=None, level="object")

        def show(level: str, runs: int) -> None:
            progress.update(task, completed=runs, level=level)

        located = locate(out, request, principles, lambda level, stack: _drivers(out, request, stack), show)
    result = result_of(located)
    write_result(out / "levels.json", result)
    (out / "levels.md").write_text(markdown(located), encoding="utf-8")
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        text(markdown(located))
        for one in located:
            text(f"{one.case} ({one.principle}): {one.module}: {one.why}")
        text(f"exit code {result['exit_code']}: {result['exit_why']}\nresults in {out}")
    return int(result["exit_code"])


@contextmanager
def _drivers(out: Path, request: LevelsRequest, stack: Stack) -> Iterator[Any]:
    """Yield what drives runs of a level and checks dilemmas."""
    from mt_nodes.runs.moral.workers import drivers

    workers = request.workers or min(2, os.cpu_count() or 1)
    with drivers(stack, request.seed, workers, out / "console.log") as opened:
        yield opened
