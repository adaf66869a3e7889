# SPDX-License-Identifier: Apache-2.0
"""``mt``: the parser is light; what a command needs is imported when it runs."""

from __future__ import annotations

import argparse
import importlib
import io
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from mt_nodes import __version__
from mt_nodes.base import plugins
from mt_nodes.base.errors import ExitCode, MtError, UsageError, suggest
from mt_nodes.cli.leaving import no_early_end, reader_is_gone
from mt_nodes.cli.supervision import supervised

#: group -> command -> summary; its module in mt_nodes.cli has ``add_arguments(parser)`` and ``run(args) -> int``
GROUPS = {
    "run": {
        "demo": "test an honest and a faulty stack on a generated drive",
        "replay": "replay rosbags through the mutators into a stack and judge",
        "live": "test beside a running stack; start, pause or stop such a run",
        "scenario": "drive scenarios in a closed loop and judge",
        "campaign": "replay many drives into many stacks; resumable after any kill",
        "doctor": "say what is wrong on this machine and what to type",
        "inline": "forward live topics on a test bench, and mutate them while safe",
        "experiment": "repeat a published experiment on your bags and stack",
    },
    "look": {
        "watch": "look at a run in progress, or at its end",
        "report": "make the report of a finished run again; what was covered",
        "compare": "compare two runs, or show the trend over many",
        "list": "list mutations, checks, relations, adapters, stacks, faults, ...",
        "show": "show one of them with its parameters",
    },
    "author": {
        "mutate": "write a mutated bag",
        "rules": "turn traffic rules into relations, and manage them",
        "models": "train driving models on camera images, and evaluate them",
    },
    "maintain": {
        "reproduce": "make one pair of a finished run again and judge it",
        "shrink": "reduce a violated pair to the smallest change that still fails",
        "search": "search a relation's parameters for the least violating change",
        "review": "have people rate cases blind, and measure their agreement",
    },
}
#: Commands of before, each with what to type now; they go on working for one release.
HIDDEN = {
    "coverage": "show what runs covered: range, bearing, class and weather (now `mt report --coverage`)",
    "failures": "list, add or forget cases that failed before (now `mt replay failures`)",
}
COMMANDS = {name: summary for group in (*GROUPS.values(), HIDDEN) for name, summary in group.items()}
FAILURES_VERBS = ("list", "add", "forget")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; known errors are one line, unknown ones keep their traceback.

    Args:
        argv: what follows ``mt``, to be run in this process; None: this process is that of ``mt``, which a child of it
            does the work for (:mod:`mt_nodes.cli.supervision`).
    """
    return supervised(lambda: _run(sys.argv[1:])) if argv is None else _run(argv)


def _run(argv: Sequence[str]) -> int:
    words = _name_first(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):  # file names may be no UTF-8, and are told all the same
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        args = _parsed(words)
        with no_early_end():
            for directory in args.plugins:
                plugins.add_directory(directory)
            command = importlib.import_module(f"mt_nodes.cli.{args.command}_command")
            return int(command.run(args))
    except MtError as error:
        print(f"mt: {error}", file=sys.stderr)
        return int(error.exit_code)
    except KeyboardInterrupt as interrupted:
        print(f"mt: {str(interrupted) or 'interrupted'}", file=sys.stderr)
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        if not reader_is_gone():
            traceback.print_exc()
            return int(ExitCode.INFRASTRUCTURE)
        # `mt list … | head`: nothing to tell anybody. Never 0: nobody has heard what a run came to.
        return 128 + signal.SIGPIPE
    except Exception:  # noqa: BLE001 - the traceback is the message; the exit code must not be that of a FAIL
        traceback.print_exc()
        return int(ExitCode.INFRASTRUCTURE)


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    """Return what was typed.

    Raises:
        UsageError: an argument is unknown, and which may have been meant.
    """
    parser, asked = _parser(words)
    args, unknown = parser.parse_known_args(words)
    if unknown:
        asked = _innermost(asked or parser, words)
        known = [option for action in asked._actions for option in action.option_strings if option.startswith("--")]
        meant = suggest(unknown[0].partition("=")[0], known, " ") if unknown[0].startswith("-") else ""
        raise UsageError(f"{asked.prog}: does not take '{unknown[0]}'{meant.rstrip('; ')}; see `{asked.prog} --help`")
    return args


def _innermost(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of the verb that was typed, where a command has verbs."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return next((action.choices[word] for word in words if word in action.choices), parser)
    return parser


def _parser(words: Sequence[str]) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser | None]:
    """Return the parser, and that of the command which is asked for."""
    parser = argparse.ArgumentParser(
        prog="mt",
        usage="mt [-h] [--version] COMMAND ...",
        description=_overview(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="`mt COMMAND --help` has an example; begin with: mt demo",
    )
    parser.add_argument("--version", action="version", version=f"mt {__version__}")
    subparsers = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", prog="mt", help=argparse.SUPPRESS
    )
    asked, command = next((word for word in words if word in COMMANDS), None), None
    for name, summary in COMMANDS.items():
        sub = subparsers.add_parser(name, description=summary[0].upper() + summary[1:] + ".")
        add_common(sub)
        if name == asked:
            command = sub
            # Only the command that runs brings its own arguments, so that the others cost nothing to start.
            importlib.import_module(f"mt_nodes.cli.{name}_command").add_arguments(sub)
    return parser, command


def _overview() -> str:
    """Return the commands in their groups: 22 are too many to read as one list."""
    lines = ["Metamorphic testing of a driving stack while it runs."]
    for group, commands in GROUPS.items():
        lines += ["", f"{group}:", *(f"  {name:<11}{summary}" for name, summary in commands.items())]
    return "\n".join(lines)


def add_common(parser: argparse.ArgumentParser) -> None:
    """Declare what every command takes."""
    parser.add_argument("--plugins", type=Path, action="append", default=[], metavar="DIR", help="your own plugins")
    parser.add_argument("-v", "--verbose", action="store_true", help="say more while running")


def _name_first(words: Sequence[str]) -> list[str]:
    """Return the words with the name of an experiment, or a verb, before its options, typed in any order."""
    command, *others = words or ("",)
    if command == "replay" and others[:1] == ["failures"] and others[1:2] and others[1] in FAILURES_VERBS:
        return ["failures", *others[1:]]
    if command in ("experiment", "models", "rules"):
        names = importlib.import_module(f"mt_nodes.cli.{command}_command").NAMES
        first = next((at for at, word in enumerate(others) if word in names), 0)
        others = [*others[first : first + 1], *others[:first], *others[first + 1 :]]
    return [command, *others] if words else []


if __name__ == "__main__":
    sys.exit(main())
