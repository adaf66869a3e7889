# SPDX-License-Identifier: Apache-2.0
"""``mt bisect`` and, for ``git bisect run``, ``mt bisect step``."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.wording import counted
from mt_nodes.cli.options import add_fields, add_results, other_options, request_of, resumed_directory, settings
from mt_nodes.runs.bisect.bisect_request import BisectRequest, CaseOptions

_CASE = ("failures", "pair", "stack", "stack_settings", "transport", "bag", "warm")
_SURE = ("error", "good_rate", "bad_rate", "plays")
#: What a step tells ``git bisect run``.
_STEP_CODES = {"good": 0, "bad": 1, "skip": 125}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = (
        "example: mt bisect --failures mt_results/latest --good v1.4 --bad HEAD --stack my_stack.yaml; "
        "or: git bisect run mt bisect step --failures /data/failed --stack my_stack.yaml"
    )
    about = "test the version that is checked out, for `git bisect run`: exit code 0 good, 1 bad, 125 skip, 128 or more"
    parser.add_argument("verb", nargs="?", choices=("step",), help=f"{about} an error")
    request = BisectRequest()
    metavars = {"failures": "DIR", "good": "VERSION", "bad": "VERSION", "repo": "DIR", "build": "COMMAND"}
    changes: dict[str, dict[str, Any]] = {name: {"metavar": metavar} for name, metavar in metavars.items()}
    changes["values"] = {"action": "extend", "nargs": "+", "metavar": "VALUE"}
    names = ("failures", "good", "bad", "repo", "values", *_CASE[1:], "build", "build_minutes", "first_parent", "cases")
    add_fields(parser, request, *names, *_SURE, **changes)
    add_results(parser, "bisection", "bisect.json", table="a table")


def run(args: argparse.Namespace) -> int:
    """Bisect and print the first bad version; or test one version.

    Returns 0 if one version is found, 3 if several may be it or good and bad do not differ, 4 or more if an end cannot
    be tested or the run failed. Of a step: 0 good, 1 bad, 125 cannot be tested, 128 or more an error.
    """
    if args.verb:
        return _step(args)
    from mt_nodes.runs.bisect.bisect_run import BisectRun, carry_out

    if args.resume:
        bisection = BisectRun.resume(resumed_directory(args, add_arguments))
    else:
        bisection = BisectRun.create(request_of(BisectRequest, args, stack_settings=_settings(args)), args.out)
    with _progress(len(bisection.versions.graph.versions)) as show:
        result = carry_out(bisection, show)
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        print_result(result)
    return int(result["exit_code"])


def _step(args: argparse.Namespace) -> int:
    from mt_nodes.cli.terminal import text
    from mt_nodes.runs.bisect.bisect_run import test_here

    if more := other_options(args, add_arguments, "verb", *_CASE, *_SURE, "out", "json"):
        raise UsageError(f"mt bisect step: got {', '.join(more)}; these are for `mt bisect` without step")
    options = request_of(CaseOptions, args, stack_settings=_settings(args))
    with tempfile.TemporaryDirectory(prefix="mt_bisect_") as temporary:
        test = test_here(options, Path(args.out or temporary), lambda tally: None)
    if args.json:
        print(json.dumps(test.as_plain(), indent=2))
    else:
        text(f"{test.state}: pair '{test.version}' {test.tally}{'; ' * bool(test.why)}{test.why}")
    return _STEP_CODES[test.state]


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    return settings(args.stack_settings)


@contextmanager
def _progress(versions: int) -> Iterator[Callable[[str, int, Any], None]]:
    from mt_nodes.cli.terminal import progress_bar

    count = "{task.description}: {task.fields[tally]}, about {task.fields[left]} more"
    with progress_bar(count, label="bisect", remaining=False) as bar:
        steps = versions.bit_length()
        task = bar.add_task("", total=steps, tally="", left="")

        def show(words: str, left: int, tally: Any) -> None:
            bar.update(task, description=words[:40], completed=steps - left, tally=tally, left=counted(left, "step"))

        yield show


def print_result(result: dict[str, Any]) -> None:
    """Print the versions that were tested in order of the test, and the first bad one."""
    from mt_nodes.cli.terminal import heading, paragraph, table, text
    from mt_nodes.engine.summary.bisect_headline import certainty_words, short_name

    heading(f"pair {result['pair'] or '(none chosen)'}")
    if result["tests"]:
        rows = [
            (short_name(result, test["version"]), test["state"], *_plays(test), test["why"].partition("\n")[0])
            for test in result["tests"]
        ]
        table(("version", "state", "violated", "plays", "why"), rows, right=("violated", "plays"))
    paragraph(result["headline"])
    if result["found"]:
        for line in _about(result["about"][result["first_bad"][0]]):
            text(f"  {line}")
    for line in (*certainty_words(result), *result["notes"]):
        paragraph(line)
    text(f"{counted(result['plays'], 'play')} in all; results in {result['results']}, page: report.html")


def _plays(test: dict[str, Any]) -> tuple[str, str]:
    tally = test["tally"]
    plays = tally["held"] + tally["violated"] + tally["undecided"]
    return str(tally["violated"]), str(plays)


def _about(version: dict[str, str]) -> list[str]:
    if "author" not in version:
        return []
    return [f"{version['author']}, {version['date']}", *version["message"].splitlines()]
