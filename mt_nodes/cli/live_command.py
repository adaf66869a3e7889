# SPDX-License-Identifier: Apache-2.0
"""``mt live --config FILE``, and ``mt live VERB`` for a run in progress."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import ExitCode, InfrastructureError, UsageError, suggest
from mt_nodes.cli.options import add_results, put_out, settings

#: verb -> its words, and what it does
VERBS = {
    "start": ("", "begin testing, or resume it after a pause"),
    "pause": ("", "pause testing"),
    "stop": ("", "end the run and write its summary"),
    "status": ("", "print the state of the run as JSON"),
    "relations": ("ID,…", "test only these relations; also 'fog_*', tag:fog, weather, all"),
    "set": ("NAME VALUE", "change a setting, such as segments.test_bundles"),
}
LATEST = Path("mt_results/latest")
#: Time for a child process that imports ROS, finds the run and waits for its reply.
CLIENT_TIMEOUT_S = 60.0

EXAMPLES = """example: mt live --config live.yaml --set mode=twin --set segments.test_bundles=50
         mt live --watch-only --config live.yaml --set watch.weather=rain

while the run is in progress:
  mt live pause                                   for the run in mt_results/latest
  mt live set limits.rate_hz 2 results/tuesday    for the run with this results directory
  mt live relations fog_keeps_near_obstacles --domain 42
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    verbs = "".join(f"  {f'{name} {words}'.strip():<20} {does}\n" for name, (words, does) in VERBS.items())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"verbs for a run in progress, found by its results directory DIR or its control domain:\n{verbs}\n"
    parser.epilog += EXAMPLES
    add = parser.add_argument
    add("words", nargs="*", metavar="VERB", help=f"a verb below with its words, then DIR (default {LATEST})")
    add("--config", type=Path, metavar="FILE", help="YAML file of the run, see docs/live.md")
    add("--watch-only", action="store_true", help="start and publish nothing: check the live stack's outputs alone")
    add("--set", action="append", default=[], metavar="K=V", help="override a setting of the config file")
    add("--seed", type=int, metavar="N", help="seed of all random draws, in place of the file's")
    add_results(parser, table="a table")
    add("--domain", type=int, metavar="N", help="control domain of the run in progress")


def run(args: argparse.Namespace) -> int:
    """Execute a run and return its exit code, or send a verb to a run in progress."""
    if args.config is None:
        return _send_verb(args)
    if args.words or args.domain is not None:
        raise UsageError(f"got --config and {' '.join(args.words) or '--domain'}; a verb is for a run in progress")
    return _watch_live(args) if args.watch_only else _run_live(args)


def _watch_live(args: argparse.Namespace) -> int:
    from mt_nodes.cli.watch_table import watch_run
    from mt_nodes.runs.live.settings import watch_configured

    if args.seed is not None:
        raise UsageError("--seed: got it with --watch-only, which draws nothing; leave it out")
    plugins = {"plugins": [str(p.resolve()) for p in args.plugins]} if args.plugins else {}
    return watch_run(watch_configured(args.config, {**plugins, **settings(args.set)}), args.out, args.json)


def _run_live(args: argparse.Namespace) -> int:
    from mt_nodes.base.suite_client import in_suite
    from mt_nodes.cli.outcome import print_summary, warn_of_left_out
    from mt_nodes.engine.plan import LIVE_SUITE, suite_process, suite_stop_s
    from mt_nodes.runs.live.live_run import LiveRun
    from mt_nodes.runs.live.settings import configured

    plugins = {"plugins": [str(p.resolve()) for p in args.plugins]} if args.plugins else {}
    run = LiveRun.create(configured(args.config, {**plugins, **settings(args.set)}, args.seed), args.out)
    warn_of_left_out(run.left_out)
    with _Progress(run.out, args.json) as progress:
        afterwards = f"`mt report {run.out}` makes its report"
        suite = suite_process(run.out, os.environ, LIVE_SUITE)
        summary = in_suite(suite, suite_stop_s(run.stack), progress.show, afterwards)
    put_out(args.json, summary, lambda: print_summary(summary, run.out))
    return int(summary["exit_code"])


class _Progress:
    """Prints once how to watch the run, and on a terminal its state.

    ``out``: results directory. ``on_stderr``: print to standard error, because standard output is for something else.
    """

    def __init__(self, out: Path, on_stderr: bool) -> None:
        from rich.console import Console
        from rich.status import Status

        from mt_nodes.cli.terminal import console

        self._out, self._printed, self._waiting = out, False, False
        self._console = Console(stderr=True, highlight=False, width=200) if on_stderr else console()
        self._status = Status("waiting for input", console=self._console)

    def __enter__(self) -> _Progress:
        if self._console.is_terminal and sys.stdout.isatty():
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def show(self, event: Mapping[str, Any]) -> None:
        """Show an event of the suite process: first its domains, then its state, again and again."""
        from rich.text import Text

        if "domains" not in event:
            self._status.update(Text(progress_line(event)))
            self._print_waiting(event)
        elif not self._printed:
            self._printed = True
            self._console.print(how_to_watch(self._out, event["domains"]["control"]), markup=False, soft_wrap=True)

    def _print_waiting(self, event: Mapping[str, Any]) -> None:
        """Without a status line, print once what the run waits for, and that it has arrived."""
        before, waits = self._waiting, event.get("waiting_for", "")
        self._waiting = bool(waits)
        if self._waiting != before and not self._console.is_terminal:
            self._console.print(f"waiting for {waits}" if waits else "it has arrived", markup=False, soft_wrap=True)


def how_to_watch(out: Path, domain: int) -> str:
    """Return what to type to watch a run."""
    return (
        f"results go to {out}; topics /mt/* and services are in ROS domain {domain}:\n"
        f"  ROS_DOMAIN_ID={domain} ros2 topic echo /mt/verdicts\n"
        f"  mt watch {out}\n"
        f"  mt live status {out}"
    )


def progress_line(status: Mapping[str, Any]) -> str:
    """Return one line with the state of a run; without a relation until its stacks are ready."""
    waiting = f"waiting for {status['waiting_for']}" if status["waiting_for"] else ""
    activity = waiting or (f"{status['relation']} {status['phase']}" if status.get("relation") else "starting")
    counts = [f"{status[name]} {name}" for name in ("instants", "tested", "skipped", "violated") if name in status]
    return f"{status['state']}: {'; '.join(filter(None, (activity, ', '.join(counts))))}"


def _send_verb(args: argparse.Namespace) -> int:
    """Send the verb to the run; print its reply."""
    from mt_nodes.cli.terminal import text
    from mt_nodes.engine.plan import live_client

    words, directory = _read(args.words)
    if args.domain is not None and directory is not None:
        raise UsageError(f"got --domain {args.domain} and {directory}, expected one of them")
    domain = _domain(directory or LATEST) if args.domain is None else args.domain
    argv, env = live_client(domain, words, os.environ)
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=CLIENT_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise InfrastructureError(f"the call failed: {(done.stderr.strip().splitlines() or ['no error text'])[-1]}")
    reply = json.loads(done.stdout)
    if reply is None:
        raise InfrastructureError(
            f"no run answers in ROS domain {domain}: it has ended, or is on another computer; `mt live --config FILE` "
            "begins a run and prints its control domain, which --domain N chooses"
        )
    if not reply["ok"]:
        raise UsageError(reply["text"])
    text(json.dumps(json.loads(reply["text"]), indent=2) if words[0] == "status" else reply["text"])
    return int(ExitCode.PASS)


def _read(words: Sequence[str]) -> tuple[list[str], Path | None]:
    """Return a verb with its words, and the results directory after them, if any."""
    if not words:
        raise UsageError("got neither --config FILE nor a verb; see `mt live --help`")
    verb, given = words[0], list(words[1:])
    if verb not in VERBS:
        raise UsageError(f"no verb '{verb}'{suggest(verb, VERBS, 'verbs are ' + ', '.join(VERBS))}")
    expected = VERBS[verb][0].split()
    more = given[len(expected) :]
    if len(given) < len(expected) or len(more) > 1:
        form = " ".join(("mt live", verb, *expected, "[DIR]"))
        raise UsageError(f"got `mt live {' '.join(words)}`, expected `{form}`")
    return [verb, *given[: len(expected)]], Path(more[0]) if more else None


def _domain(directory: Path) -> int:
    from mt_nodes.runs.live.live_run import read_domains

    return read_domains(directory)["control"]
