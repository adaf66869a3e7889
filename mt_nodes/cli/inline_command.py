# SPDX-License-Identifier: Apache-2.0
"""``mt inline --config FILE``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.base.processes import flag_of_signals
from mt_nodes.base.wording import counted
from mt_nodes.cli.options import put_out
from mt_nodes.runs.vehicle.interlock import cause

if TYPE_CHECKING:
    from mt_nodes.runs.vehicle.inline import InlineConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt inline --config bench.yaml --arm   (on a test bench; read docs/vehicle.md first)"
    add = parser.add_argument
    add("--config", type=Path, required=True, metavar="FILE", help="YAML file of the run, see docs/vehicle.md")
    add(
        "--arm",
        action="store_true",
        help="allow changes of the input, while all permits are given and the switch is on",
    )
    add("--duration", type=float, default=0.0, metavar="S", help="end after S seconds (default: at Ctrl-C)")
    add("--out", metavar="DIR", help="results directory (default mt_results/<time>)")
    add("--json", action="store_true", help="print summary.json instead of a table")


def run(args: argparse.Namespace) -> int:
    """Forward the topics until interrupted; print how many messages were replaced."""
    import yaml

    from mt_nodes.base.directories import new_directory
    from mt_nodes.runs.vehicle.relay_process import CONFIG
    from mt_nodes.runs.vehicle.standby import StandingIn

    if args.duration < 0.0:
        raise UsageError(f"--duration: got {args.duration:g}, expected seconds, or 0 for no end")
    config = configured(args)
    out = new_directory(args.out).resolve()
    (out / CONFIG).write_text(
        yaml.safe_dump(_without_empty(json.loads(json.dumps(config.as_plain())))), encoding="utf-8"
    )
    ended = flag_of_signals()
    until_s = time.monotonic() + args.duration if args.duration else float("inf")
    relay = StandingIn(config, out, args.arm, _StateLine(on_stderr=args.json).show)
    summary = relay.run(lambda: ended.is_set() or time.monotonic() > until_s)
    put_out(args.json, summary, lambda: _print(summary, out))
    if args.arm and not any(counts["replaced"] for counts in summary["topics"].values()):
        print("mt inline: changes were allowed by --arm, and no message was replaced", file=sys.stderr)
        return int(ExitCode.UNDECIDED)
    return int(ExitCode.PASS)


def configured(args: argparse.Namespace) -> InlineConfig:
    """Return what the file says, with the command line's directories of plugins: the mutator knows only the file's."""
    from mt_nodes.runs.vehicle.inline import load_inline_config

    config = load_inline_config(args.config)
    return replace(config, plugins=(*config.plugins, *(str(directory.resolve()) for directory in args.plugins)))


def _without_empty(row: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out values that are not set: a signal is given by its value or its range."""
    return {
        key: _without_empty(value)
        if isinstance(value, dict)
        else [_without_empty(v) if isinstance(v, dict) else v for v in value]
        if isinstance(value, list)
        else value
        for key, value in row.items()
        if value not in (None, [])
    }


#: Why a message is not replaced though changes are allowed.
AMBIGUOUS = "its messages have no stamp, or the stamp of another recent message"
#: Why a standby took over from a relay, see :class:`mt_nodes.runs.vehicle.sentry.RelayFate`.
TAKEN_OVER = {
    "died": "died",
    "frozen": "sent no heartbeat, and was killed",
    "deaf": "did not forward messages that its standby received, and was killed",
}


class _StateLine:
    """Prints a line whenever changes of the input become allowed or forbidden, and why: for the operator."""

    def __init__(self, on_stderr: bool) -> None:
        self._file = sys.stderr if on_stderr else sys.stdout
        self._last = ""
        #: (relay, topic) -> originals that could not be replaced, and replacements.
        self._counts: dict[tuple[int, str], tuple[int, int]] = {}

    def show(self, event: Mapping[str, Any]) -> None:
        waiting = ", ".join(event["waiting_for"])
        text = "INPUT IS CHANGED" if event["granted"] and event["mutator"] else f"forwarding only: {event['why']}"
        if event["granted"] and not event["mutator"]:
            text = "forwarding only: the mutator is not running"
        elif event["granted"] and not event["topics"]:
            text = "forwarding only: there is nothing to change"
        if waiting:
            text += f" (no publisher for {waiting})"
        if event["changed"] and event["changed"] not in text:
            text += f" ({event['changed']})"
        if not event["guarded"]:
            text += " (no standby relay yet)"
        if unchanged := self._not_replaced(event):
            text += f" (but not {', '.join(unchanged)}: {AMBIGUOUS})"
        if (line := cause(text)) != self._last:
            print(time.strftime("%H:%M:%S"), text, file=self._file, flush=True)
        self._last = line

    def _not_replaced(self, event: Mapping[str, Any]) -> list[str]:
        """Return the topics of which no message was replaced since the last event, because some were ambiguous."""
        before = self._counts
        relay = event["relay"]
        now = {(relay, name): (counts["ambiguous"], counts["replaced"]) for name, counts in event["topics"].items()}
        self._counts = now
        return [
            name
            for (_, name), (ambiguous, replaced) in now.items()
            if ambiguous > (was := before.get((relay, name), (0, 0)))[0] and replaced == was[1]
        ]


def _print(summary: Mapping[str, Any], out: Path) -> None:
    from mt_nodes.cli import terminal

    columns = ("topic", "forwarded", "replaced", "late", "added p50", "p99", "max")
    rows = [
        (name, *(str(counts[key]) for key in ("originals", "replaced", "late")), *map(_ms, _added(counts)))
        for name, counts in summary["topics"].items()
    ]
    terminal.table(columns, rows, right=columns[1:])
    for why, seconds in summary["seconds"].items():
        terminal.text(f"{seconds:.1f} s: {why}")
    for name, counts in summary["topics"].items():
        if counts["ambiguous"]:
            terminal.text(f"{name}: {counted(counts['ambiguous'], 'message')} could not be replaced: {AMBIGUOUS}")
    for takeover in summary["takeovers"]:
        terminal.text(f"a standby took over from a relay, which {TAKEN_OVER[takeover['why']]}")
    for what, count in summary["restarts"].items():
        terminal.text(f"the {what} was restarted {counted(count, 'time')}")
    terminal.text(f"results in {out}")


def _added(counts: Mapping[str, Any]) -> tuple[float | None, ...]:
    return tuple(counts["added_ms"].get(name) for name in ("p50", "p99", "max"))


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} ms"
