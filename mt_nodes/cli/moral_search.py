# SPDX-License-Identifier: Apache-2.0
"""``mt experiment moral-search``."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.options import add_fields, add_results, request_of, resumed_directory
from mt_nodes.runs.moral.study_request import StudyRequest

if TYPE_CHECKING:
    from mt_nodes.runs.moral.search_study import StudyCell


def add_moral_search_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    request = StudyRequest()
    parser.epilog = "example: mt experiment moral-search --principles fewer_casualties --runs 100 --seeds 3"
    add_fields(parser, request, "principles", "stack", "faults", "operators", "pool", "cases", "runs", "confirm")
    add_fields(parser, request, "seeds", "seed", "workers")
    add_results(parser, "study", "study.json", table="tables")


def run_moral_search(args: argparse.Namespace) -> int:
    """Carry out the searches of a study, print its tables, return its exit code."""
    from mt_nodes.base.directories import new_directory
    from mt_nodes.engine.run_record import request_of as recorded_request
    from mt_nodes.engine.run_record import write_request
    from mt_nodes.runs.moral.study_request import checked_study

    if args.resume:
        out = resumed_directory(args, add_moral_search_arguments)
        plain = recorded_request(out, "seeds", "mt experiment moral-search")
        return _study(out, StudyRequest.from_plain(plain), as_json=args.json)
    request = checked_study(request_of(StudyRequest, args))
    out = new_directory(args.out)
    write_request(out, request, {"experiment": "moral-search", "relations": []})
    return _study(out, request, as_json=args.json)


def _study(out: Path, request: StudyRequest, *, as_json: bool) -> int:
    from mt_nodes.base import plugins
    from mt_nodes.base.jsonl import write_result
    from mt_nodes.cli.terminal import progress_bar, text
    from mt_nodes.runs.moral.principle import load_principle
    from mt_nodes.runs.moral.search_study import carry_out_study
    from mt_nodes.runs.moral.study_tables import markdown, rows_of, study_end

    plugins.add_directories(map(Path, request.plugins))
    principles = [load_principle(name) for name in request.principles]
    count = "{task.completed}/{task.total} searches"
    with progress_bar(count, hidden=as_json, label="{task.fields[doing]}") as progress:
        task = progress.add_task("searches", total=None, doing="starting")

        def show(done: int, total: int, line: Mapping[str, Any]) -> None:
            doing = f"{line['principle']} by {line['operator']}: {line['sorts']} different cases"
            progress.update(task, total=total, completed=done, doing=doing)

        lines = carry_out_study(out, request, principles, lambda cell: _drivers(out, request, cell), show)
    rows = rows_of(lines)
    code, why = study_end(lines)
    result = {"schema": 1, "rows": rows, "searches": len(lines), "exit_code": int(code), "exit_why": why}
    write_result(out / "study.json", result)
    (out / "study.md").write_text(markdown(rows), encoding="utf-8")
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        text(markdown(rows))
        text(f"exit code {int(code)}: {why}\nresults in {out}")
    return int(code)


@contextmanager
def _drivers(out: Path, request: StudyRequest, cell: StudyCell) -> Iterator[Any]:
    """Yield what drives runs of a search and checks dilemmas, for the stack with the faults of its principle."""
    from mt_nodes.runs.moral.workers import drivers
    from mt_nodes.stacks.callables import with_faults
    from mt_nodes.stacks.stack import load_stack

    stack = with_faults(load_stack(request.stack), request.faults_for(cell.principle))
    if not stack.callable or "control" not in stack.answers:
        raise UsageError(f"--stack {request.stack}: expected a Python callable that answers control, without topics")
    workers = request.workers or min(2, os.cpu_count() or 1)
    with drivers(stack, cell.seed, workers, out / "console.log") as opened:
        yield opened
