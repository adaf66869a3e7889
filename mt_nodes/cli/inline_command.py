# SPDX-License-Identifier: Apache-2.0
"""``mt inline --config FILE``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.base.processes import flag_of_signals
from mt_nodes.base.wording import counted
from mt_nodes.runs.vehicle.interlock import cause


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt inline --config bench.yaml --arm   (on a test bench; read docs/vehicle.md before)"
    add = parser.add_argument
    add("--config", type=Path, required=True, metavar="FILE", help="YAML file of the run, see docs/vehicle.md")
    add("--arm", action="store_true", help="allow input to be changed while every permit and the switch hold")
    add("--duration", type=float, default=0.0, metavar="S", help="end after so long (default: when told to)")
    add("--out", metavar="DIR", help="results directory (default mt_results/<time>)")
    add("--json", action="store_true", help="print summary.json instead of a table")


def run(args: argparse.Namespace) -> int:
    """Stand in until told to end; print what was replaced."""
    import yaml

    from mt_nodes.base.directories import new_directory
    from mt_nodes.runs.vehicle.inline import load_inline_config
    from mt_nodes.runs.vehicle.relay_process import CONFIG
    from mt_nodes.runs.vehicle.standby import StandingIn

    if args.duration < 0.0:
        raise UsageError(f"--duration: got {args.duration:g}, expected seconds, or 0 for no end")
    config = load_inline_config(args.config)
    out = new_directory(args.out).resolve()
    (out / CONFIG).write_text(
        yaml.safe_dump(_without_nothing(json.loads(json.dumps(config.as_plain())))), encoding="utf-8"
    )
    ended = flag_of_signals()
    until_s = time.monotonic() + args.duration if args.duration else float("inf")
    standing_in = StandingIn(config, out, args.arm, _Shown(aside=args.json).show)
    summary = standing_in.run(lambda: ended.is_set() or time.monotonic() > until_s)
    if args.json:
        print(json.dumps(summary, indent=2))
    else:
        _print(summary, out)
    return int(ExitCode.PASS)


def _without_nothing(row: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what is not said: a signal is told by its value or its range."""
    return {
        key: _without_nothing(value)
        if isinstance(value, dict)
        else [_without_nothing(v) if isinstance(v, dict) else v for v in value]
        if isinstance(value, list)
        else value
        for key, value in row.items()
        if value not in (None, [])
    }


#: Why a message is not changed though it might be.
AMBIGUOUS = "its messages bear no stamp, or one that another bore lately"
#: What became of a relay whose place was taken, see :class:`mt_nodes.runs.vehicle.sentry.RelayFate`.
TAKEN_OVER = {
    "died": "died",
    "frozen": "gave no sign of life, and was killed",
    "deaf": "did not send what its standby heard, and was killed",
}


class _Shown:
    """Says whenever permission comes or goes, and why: the operator's indicator."""

    def __init__(self, aside: bool) -> None:
        self._file = sys.stderr if aside else sys.stdout
        self._last = ""
        #: Of each topic, and the relay that told: originals that nothing could take the place of, and replacements.
        self._counts: dict[tuple[int, str], tuple[int, int]] = {}

    def show(self, event: Mapping[str, Any]) -> None:
        waiting = ", ".join(event["waiting_for"])
        text = "INPUT IS CHANGED" if event["granted"] and event["mutator"] else f"forwarding only: {event['why']}"
        if event["granted"] and not event["mutator"]:
            text = "forwarding only: the mutator is not there"
        elif event["granted"] and not event["topics"]:
            text = "forwarding only: there is nothing to change"
        if waiting:
            text += f" (nobody publishes {waiting})"
        if event["changed"] and event["changed"] not in text:
            text += f" ({event['changed']})"
        if not event["guarded"]:
            text += " (no relay stands by yet)"
        if unchanged := self._as_they_came(event):
            text += f" (but not {', '.join(unchanged)}: {AMBIGUOUS})"
        if (told := cause(text)) != self._last:
            print(time.strftime("%H:%M:%S"), text, file=self._file, flush=True)
        self._last = told

    def _as_they_came(self, event: Mapping[str, Any]) -> list[str]:
        """Return the topics of which, since the last event, some could not be replaced and none was."""
        before = self._counts
        relay = event["relay"]
        now = {(relay, name): (told["ambiguous"], told["replaced"]) for name, told in event["topics"].items()}
        self._counts = now
        return [
            name
            for (_, name), (ambiguous, replaced) in now.items()
            if ambiguous > (was := before.get((relay, name), (0, 0)))[0] and replaced == was[1]
        ]


def _print(summary: Mapping[str, Any], out: Path) -> None:
    from mt_nodes.cli import terminal

    columns = ("topic", "as they came", "replaced", "late", "added p50", "p99", "max")
    rows = [
        (name, str(told["originals"]), str(told["replaced"]), str(told["late"]), *map(_ms, _added(told)))
        for name, told in summary["topics"].items()
    ]
    terminal.table(columns, rows, right=columns[1:])
    for why, seconds in summary["seconds"].items():
        terminal.text(f"{seconds:.1f} s: {why}")
    for name, told in summary["topics"].items():
        if told["ambiguous"]:
            terminal.text(f"{name}: {counted(told['ambiguous'], 'message')} could not be replaced: {AMBIGUOUS}")
    for takeover in summary["takeovers"]:
        terminal.text(f"a standby took the place of a relay: it {TAKEN_OVER[takeover['why']]}")
    for what, count in summary["restarts"].items():
        terminal.text(f"the {what} was followed by another {counted(count, 'time')}")
    terminal.text(f"results are in {out}")


def _added(told: Mapping[str, Any]) -> tuple[float | None, ...]:
    return tuple(told["added_ms"].get(name) for name in ("p50", "p99", "max"))


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} ms"
