# SPDX-License-Identifier: Apache-2.0
"""``mt scenario SCENARIO…``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base import resources
from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.base.yaml_files import read_text
from mt_nodes.cli.options import add_fields, add_results, at_least_one, help_of, request_of, resumed_directory
from mt_nodes.cli.replay_command import relations_given
from mt_nodes.runs.loop.scenario_request import ScenarioRequest

if TYPE_CHECKING:
    from mt_nodes.runs.loop.scenario_run import ScenarioRun

Summary = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    request = ScenarioRequest(scenarios=())
    parser.epilog = "example: mt scenario pedestrian_crosses --relations pedestrian_nearer_brakes --repeat 20"
    add = parser.add_argument
    names = ", ".join(request.relations)
    relations = {"default": None, "help": f"{help_of(ScenarioRequest)['relations']} (default {names})"}
    add_fields(parser, request, "scenarios", "relations", relations=relations)
    add("--suite", type=Path, metavar="FILE", help="YAML file with a list of relations")
    repeat = {"type": at_least_one}
    add_fields(parser, request, "stack", "faults", "repeat", "jitter", "seed", "mode", "transport", repeat=repeat)
    add_fields(parser, request, "simulator", "simulator_settings")
    add_fields(parser, request, "parameters", "strict", "claim_followups", "waivers")
    add_results(parser, "run", table="a table")
    check = "only check a driver (my_driver.py, or a stack): what it receives, what it commands and where it drives"
    add("--check", metavar="DRIVER", help=check)
    falsify = "search values of a parameter of the script, NAME=LOW..HIGH, at which one of its claims is violated"
    add("--falsify", action="append", default=[], metavar="NAME=LOW..HIGH", help=falsify)
    add("--trials", type=at_least_one, default=50, metavar="N", help="drives of --falsify at most (default 50)")
    add("--format", action="store_true", help="only print the scenario files, corrected and in standard layout")


def run(args: argparse.Namespace) -> int:
    """Drive, print the outcome, return the run's exit code."""
    from mt_nodes.runs.loop.scenario_run import ScenarioRun

    if args.resume:
        run = ScenarioRun.resume(resumed_directory(args, add_arguments))
        return int(drive(run, as_json=args.json)["exit_code"])
    if args.check:
        return _check(args.check, args.scenarios)
    if not args.scenarios:
        raise UsageError(
            "got no scenario; type `mt scenario SCENARIO`, or `mt scenario --resume DIR`; see `mt list scenarios`"
        )
    if not args.strict:
        _warn(args.scenarios)
    if args.format:
        return _print_formatted(args.scenarios)
    if args.falsify:
        return _falsify(args)
    return int(drive(ScenarioRun.create(_request(args), args.out), as_json=args.json)["exit_code"])


def _falsify(args: argparse.Namespace) -> int:
    """Search parameters at which a claim is violated, print what was found; return 1 where something was."""
    from mt_nodes.base.directories import new_directory
    from mt_nodes.base.jsonl import write_result
    from mt_nodes.runs.loop.falsification import SUMMARY, SearchedParameter, falsify

    if args.simulator:
        raise UsageError("--falsify: --simulator is not driven in; leave it out to search in the own world")
    if len(args.scenarios) != 1:
        raise UsageError(f"--falsify: got {len(args.scenarios)} scenarios, expected one")
    parameters = [SearchedParameter.parse(text) for text in args.falsify]
    request, out = _request(args), new_directory(args.out)
    found = falsify(request, parameters, args.trials, out, None if args.json else _print_trial)
    write_result(out / SUMMARY, found)
    if args.json:
        print(json.dumps(found, indent=2))
        return int(found["exit_code"])
    if found["confirmed"]:
        values = " ".join(f"--set {name}={value!r}" for name, value in found["best"]["values"].items())
        print(f"mt scenario {args.scenarios[0]} {values} --seed {request.seed} --repeat 1")
    print(f"exit code {found['exit_code']}: {found['exit_why']}\nresults in {out}")
    return int(found["exit_code"])


def _print_trial(line: Mapping[str, Any]) -> None:
    values = ", ".join(f"{name} {value:g}" for name, value in line["values"].items())
    objective = "none" if line["objective"] is None else f"{line['objective']:.3g}"
    print(f"trial {line['trial']}: {values}: least robustness {objective}")


def _check(driver: str, scenarios: Sequence[str]) -> int:
    """Print what a driver receives, what it commands and where it drives; return 4 if it does not drive at all."""
    from mt_nodes.cli.doctor_command import print_findings
    from mt_nodes.runs.doctor import worst
    from mt_nodes.runs.loop.driver_check import SCENARIO, check_driver, findings_of

    if len(scenarios) > 1:
        raise UsageError(f"--check: got {len(scenarios)} scenarios, expected one (or none: {SCENARIO})")
    findings = list(findings_of(check_driver(driver, *scenarios)))
    print_findings(findings)
    return int(ExitCode.INFRASTRUCTURE if worst(findings) == "error" else ExitCode.PASS)


def drive(run: ScenarioRun, *, as_json: bool = False, quiet: bool = False) -> Summary:
    """Drive all episodes of a run, print its outcome and return the summary.

    Raises MtError: nothing was driven, or the suite process ended without a summary.
    """
    from mt_nodes.cli.replay_execution import execute_run
    from mt_nodes.engine.plan import suite_process
    from mt_nodes.runs.loop.episode_conductor import execute, in_process_arms

    def in_process(progress: Callable[[Sequence[Any]], None]) -> Summary:
        return execute(run, lambda ending: in_process_arms(run, ending), lambda line: None, progress)

    suite = None if run.request.transport == "inprocess" else suite_process(run.out, os.environ)
    return execute_run(
        run, in_process, suite, f"`mt scenario --resume {run.out}` goes on", as_json=as_json, quiet=quiet
    )


def _warn(files: Sequence[str]) -> None:
    """Print warnings about the user's files: what was corrected, and what looks like a mistake."""
    from mt_nodes.world.scenarios.language import warnings_of

    for path in _scripts(files):
        for warning in warnings_of(read_text(path), path.name, path):
            print(f"mt: warning: {warning}", file=sys.stderr)


def _print_formatted(files: Sequence[str]) -> int:
    """Print each file in standard layout.

    Raises UsageError: a file has errors, all of which the text lists, or is OpenSCENARIO.
    """
    from mt_nodes.world.scenarios.language import format_script

    paths = _scripts(files)
    if len(paths) < len(files):
        raise UsageError("--format: got OpenSCENARIO, expected .scenario")
    for path in paths:
        print(format_script(read_text(path), path.name, path), end="")
    return int(ExitCode.PASS)


def _scripts(files: Sequence[str]) -> list[Path]:
    from mt_nodes.world.drive.scenario_files import CLAIMED, SUFFIXES

    found = [resources.find("scenarios", file, SUFFIXES, CLAIMED) for file in files]
    return [path for path in found if path.suffix != ".xosc"]


def _request(args: argparse.Namespace) -> ScenarioRequest:
    return request_of(
        ScenarioRequest,
        args,
        relations=relations_given(args, loop=True) or ScenarioRequest(scenarios=()).relations,
        parameters=dict(_parameter(text) for text in args.parameters),
    )


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise UsageError(f"--set: got '{text}', expected NAME=VALUE")
    return name, value
