# SPDX-License-Identifier: Apache-2.0
"""``mt live --config FILE``, and ``mt live VERB`` for a run that goes on."""

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

#: verb -> what stands behind it, and what it does
VERBS = {
    "start": ("", "begin to test, or go on"),
    "pause": ("", "test nothing for now"),
    "stop": ("", "end the run and write its summary"),
    "status": ("", "tell what the run does, as JSON"),
    "relations": ("ID,…", "let only these take turns"),
    "set": ("NAME VALUE", "change a parameter, such as segments.test_bundles"),
}
LATEST = Path("mt_results/latest")
#: A child that imports ROS, finds the run and waits for its reply.
CLIENT_TIMEOUT_S = 60.0

EXAMPLES = """example: mt live --config live.yaml --set mode=twin --set segments.test_bundles=50

while it goes on:
  mt live pause                                   the run in mt_results/latest
  mt live set limits.rate_hz 2 results/tuesday    the one with this results directory
  mt live relations fog_keeps_near_obstacles --domain 42
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    verbs = "".join(f"  {f'{name} {words}'.strip():<20} {does}\n" for name, (words, does) in VERBS.items())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"verbs for a run that goes on, found by its results directory DIR or control domain:\n{verbs}\n"
    parser.epilog += EXAMPLES
    add = parser.add_argument
    add("words", nargs="*", metavar="VERB", help=f"one of the verbs below with its words, and DIR (default {LATEST})")
    add("--config", type=Path, metavar="FILE", help="YAML file of the run, see docs/live.md")
    add("--set", action="append", default=[], metavar="K=V", help="in place of what the file says")
    add("--seed", type=int, metavar="N", help="what every draw depends on, in place of the file's")
    add("--out", metavar="DIR", help="results directory (default mt_results/<time>)")
    add("--json", action="store_true", help="print summary.json instead of a table")
    add("--domain", type=int, metavar="N", help="control domain of the run that a verb is for")


def run(args: argparse.Namespace) -> int:
    """Begin a run and return its exit code, or tell one that goes on what to do."""
    if args.config is None:
        return _command(args)
    if args.words or args.domain is not None:
        raise UsageError(f"got --config and {' '.join(args.words) or '--domain'}; a verb is for a run that goes on")
    return _begin(args)


def _begin(args: argparse.Namespace) -> int:
    from mt_nodes.base.suite_client import in_suite
    from mt_nodes.cli.mutate_command import settings
    from mt_nodes.cli.outcome import print_summary
    from mt_nodes.engine.plan import LIVE_SUITE, suite_process, suite_stop_s
    from mt_nodes.runs.live.live_run import LiveRun
    from mt_nodes.runs.live.settings import configured

    plugins = {"plugins": [str(p.resolve()) for p in args.plugins]} if args.plugins else {}
    run = LiveRun.create(configured(args.config, {**plugins, **settings(args.set)}, args.seed), args.out)
    with _Progress(run.out, args.json) as progress:
        kept = f"`mt report {run.out}` makes its report"
        summary = in_suite(suite_process(run.out, os.environ, LIVE_SUITE), suite_stop_s(run.stack), progress.show, kept)
    if args.json:
        print(json.dumps(summary, indent=2))
    else:
        print_summary(summary, run.out)
    return int(summary["exit_code"])


class _Progress:
    """Says once where the run is to be found, and on a terminal what it does just now.

    Args:
        out: results directory.
        aside: on standard error, because something else goes to standard output.
    """

    def __init__(self, out: Path, aside: bool) -> None:
        from rich.console import Console
        from rich.status import Status

        from mt_nodes.cli.terminal import console

        self._out, self._told, self._waiting = out, False, False
        self._console = Console(stderr=True, highlight=False, width=200) if aside else console()
        self._status = Status("waiting for the input", console=self._console)

    def __enter__(self) -> _Progress:
        if self._console.is_terminal and sys.stdout.isatty():
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def show(self, event: Mapping[str, Any]) -> None:
        """Show what the suite told: first of all its domains, then again and again how it goes."""
        from rich.text import Text

        if "domains" not in event:
            self._status.update(Text(progress_line(event)))
            self._tell_waiting(event)
        elif not self._told:
            self._told = True
            self._console.print(where(self._out, event["domains"]["control"]), markup=False, soft_wrap=True)

    def _tell_waiting(self, event: Mapping[str, Any]) -> None:
        """Where no status line can be seen, say once that something is waited for, and that it is there."""
        before, waits = self._waiting, event.get("waiting_for", "")
        self._waiting = bool(waits)
        if self._waiting != before and not self._console.is_terminal:
            self._console.print(f"waiting for {waits}" if waits else "it is there", markup=False, soft_wrap=True)


def where(out: Path, domain: int) -> str:
    """Return what to type to look at a run."""
    return (
        f"results go to {out}; /mt/* and the services are in ROS domain {domain}:\n"
        f"  ROS_DOMAIN_ID={domain} ros2 topic echo /mt/verdicts\n"
        f"  mt watch {out}\n"
        f"  mt live status {out}"
    )


def progress_line(status: Mapping[str, Any]) -> str:
    """Return one line of what a run does just now; until its instances are up it tells of no relation."""
    waiting = f"waiting for {status['waiting_for']}" if status["waiting_for"] else ""
    does = waiting or (f"{status['relation']} {status['phase']}" if status.get("relation") else "starting")
    counts = [f"{status[name]} {name}" for name in ("instants", "tested", "skipped", "violated") if name in status]
    return f"{status['state']}: {'; '.join(filter(None, (does, ', '.join(counts))))}"


def _command(args: argparse.Namespace) -> int:
    """Have a run do what the verb says; print its reply."""
    from mt_nodes.cli.terminal import text
    from mt_nodes.engine.plan import live_client

    words, directory = _read(args.words)
    if args.domain is not None and directory is not None:
        raise UsageError(f"got --domain {args.domain} and {directory}, expected one of them")
    domain = _domain(directory or LATEST) if args.domain is None else args.domain
    argv, env = live_client(domain, words, os.environ)
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=CLIENT_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise InfrastructureError(f"the call failed: {(done.stderr.strip().splitlines() or ['nothing was said'])[-1]}")
    reply = json.loads(done.stdout)
    if reply is None:
        raise InfrastructureError(
            f"no run answers in ROS domain {domain}; it has ended, or is on another computer: `mt live --config FILE` "
            "begins one, --domain N names the control domain that it told"
        )
    if not reply["ok"]:
        raise UsageError(reply["text"])
    text(json.dumps(json.loads(reply["text"]), indent=2) if words[0] == "status" else reply["text"])
    return int(ExitCode.PASS)


def _read(words: Sequence[str]) -> tuple[list[str], Path | None]:
    """Return a verb with its words, and the results directory behind them, if any.

    Raises:
        UsageError: there is no such verb, or it takes other words.
    """
    if not words:
        raise UsageError("got neither --config FILE nor a verb; see `mt live --help`")
    verb, given = words[0], list(words[1:])
    if verb not in VERBS:
        raise UsageError(f"no verb '{verb}'{suggest(verb, VERBS, 'verbs are ' + ', '.join(VERBS))}")
    wanted = VERBS[verb][0].split()
    more = given[len(wanted) :]
    if len(given) < len(wanted) or len(more) > 1:
        form = " ".join(("mt live", verb, *wanted, "[DIR]"))
        raise UsageError(f"got `mt live {' '.join(words)}`, expected `{form}`")
    return [verb, *given[: len(wanted)]], Path(more[0]) if more else None


def _domain(directory: Path) -> int:
    from mt_nodes.runs.live.live_run import read_domains

    return read_domains(directory)["control"]
