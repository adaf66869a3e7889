# SPDX-License-Identifier: Apache-2.0
"""``mt scenario FILE…``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base import resources
from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.base.yaml_files import read_text
from mt_nodes.cli.arguments import help_of
from mt_nodes.cli.replay_command import refuse_more_than_resume, relations_given
from mt_nodes.cli.whole_numbers import at_least_one, whole_number
from mt_nodes.runs.loop.scenario_request import ScenarioRequest

if TYPE_CHECKING:
    from mt_nodes.runs.loop.scenario_run import ScenarioRun

Summary = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    default = ScenarioRequest(scenarios=())
    parser.epilog = "example: mt scenario pedestrian_crosses --relations pedestrian_nearer_brakes --repeat 20"
    add = parser.add_argument
    about = help_of(ScenarioRequest)
    with_default = {name: f"{text} (default %(default)s)" for name, text in about.items()}
    add("scenarios", metavar="FILE", nargs="*", help=about["scenarios"])
    add("--relations", metavar="ID,…", help=f"{about['relations']} (default {','.join(default.relations)})")
    add("--suite", type=Path, metavar="FILE", help="YAML file with a list of relations")
    add("--stack", default=default.stack, help=with_default["stack"])
    add("--fault", action="append", default=[], metavar="NAME", help=about["faults"])
    add("--repeat", type=at_least_one, metavar="N", help=about["repeat"])
    add("--jitter", type=float, default=default.jitter, help=with_default["jitter"])
    add("--seed", type=whole_number, default=default.seed, help=with_default["seed"])
    add("--mode", default=default.mode, help=with_default["mode"])
    add("--transport", default=default.transport, help=about["transport"])
    add("--set", action="append", default=[], metavar="NAME=VALUE", help=about["parameters"])
    add("--strict", action="store_true", help=about["strict"])
    add("--waivers", default="", metavar="FILE", help=about["waivers"])
    add("--out", metavar="DIR", help="results directory (default mt_results/<time>)")
    add("--resume", type=Path, metavar="DIR", help="go on with the run in DIR; nothing else is given")
    add("--json", action="store_true", help="print summary.json instead of a table")
    add(
        "--check",
        metavar="DRIVER",
        help="first look at a driver, my_driver.py or a stack: what it is given and commands",
    )
    add("--format", action="store_true", help="print the files as the language has them, mended; nothing is driven")


def run(args: argparse.Namespace) -> int:
    """Drive, print what came out, return the run's exit code."""
    from mt_nodes.cli.replay_execution import go_where_it_started
    from mt_nodes.runs.loop.scenario_run import ScenarioRun

    if args.resume:
        refuse_more_than_resume(args, add_arguments, scenarios="FILE")
        out = args.resume.resolve()
        go_where_it_started(out)
        return int(drive(ScenarioRun.resume(out), as_json=args.json)["exit_code"])
    if args.check:
        return _check(args.check, args.scenarios)
    if not args.scenarios:
        raise UsageError("got no scenario; type `mt scenario FILE`, or `mt scenario --resume DIR`")
    if not args.strict:
        _warn(args.scenarios)
    if args.format:
        return _print_formatted(args.scenarios)
    return int(drive(ScenarioRun.create(_request(args), args.out), as_json=args.json)["exit_code"])


def _check(driver: str, scenarios: Sequence[str]) -> int:
    """Print what a driver is given, what it commands and what became of it; 4 if it does not drive at all."""
    from mt_nodes.cli.doctor_command import print_findings
    from mt_nodes.runs.doctor import worst
    from mt_nodes.runs.loop.driver_check import SCENARIO, check_driver, findings_of

    if len(scenarios) > 1:
        raise UsageError(f"--check: got {len(scenarios)} scenarios, expected one (or none: {SCENARIO})")
    findings = list(findings_of(check_driver(driver, *scenarios)))
    print_findings(findings)
    return int(ExitCode.INFRASTRUCTURE if worst(findings) == "error" else ExitCode.PASS)


def drive(run: ScenarioRun, *, as_json: bool = False, quiet: bool = False) -> Summary:
    """Drive all that a run owes and print its outcome; return the summary.

    Raises:
        MtError: nothing was driven, or the suite process ended without a summary.
    """
    from mt_nodes.cli.replay_execution import carry_out
    from mt_nodes.engine.plan import suite_process
    from mt_nodes.runs.loop.episode_conductor import execute, in_process_arms

    def here(progress: Callable[[Sequence[Any]], None]) -> Summary:
        return execute(run, lambda ending: in_process_arms(run, ending), lambda line: None, progress)

    suite = None if run.request.transport == "inprocess" else suite_process(run.out, os.environ)
    return carry_out(run, here, suite, f"`mt scenario --resume {run.out}` goes on", as_json=as_json, quiet=quiet)


def _warn(files: Sequence[str]) -> None:
    """Say on stderr what was mended in the user's files, and what looks like a slip there."""
    from mt_nodes.world.scenarios.language import warnings_of

    for path in _scripts(files):
        for warning in warnings_of(read_text(path), path.name, path):
            print(f"mt: warning: {warning}", file=sys.stderr)


def _print_formatted(files: Sequence[str]) -> int:
    """Print each file as the language has it.

    Raises:
        UsageError: something is wrong in it, all of which the text says; or it is in no language of ours.
    """
    from mt_nodes.world.scenarios.language import format_script

    paths = _scripts(files)
    if len(paths) < len(files):
        raise UsageError("--format: got OpenSCENARIO, expected .scenario")
    for path in paths:
        print(format_script(read_text(path), path.name, path), end="")
    return int(ExitCode.PASS)


def _scripts(files: Sequence[str]) -> list[Path]:
    from mt_nodes.world.drive.scenario_files import SUFFIXES

    found = [resources.find("scenarios", file, SUFFIXES) for file in files]
    return [path for path in found if path.suffix != ".xosc"]


def _request(args: argparse.Namespace) -> ScenarioRequest:
    return ScenarioRequest(
        scenarios=tuple(args.scenarios),
        relations=relations_given(args) or ScenarioRequest(scenarios=()).relations,
        stack=args.stack,
        mode=args.mode,
        transport=args.transport,
        seed=args.seed,
        repeat=args.repeat or 0,
        jitter=args.jitter,
        faults=tuple(args.fault),
        parameters=dict(_parameter(text) for text in args.set),
        strict=args.strict,
        plugins=tuple(str(p.resolve()) for p in args.plugins),
        waivers=args.waivers,
    )


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise UsageError(f"--set: got '{text}', expected NAME=VALUE")
    return name, value
