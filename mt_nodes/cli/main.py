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
from mt_nodes.base.errors import ExitCode, MtError
from mt_nodes.cli.leaving import no_early_end, reader_is_gone
from mt_nodes.cli.supervision import supervised

#: command -> module in mt_nodes.cli that has ``add_arguments(parser)`` and ``run(args) -> int``
COMMANDS = {
    "demo": "run the main job on a generated drive: an honest stack passes, a planted fault is found",
    "replay": "replay bags through the mutators into a stack and judge",
    "campaign": "replay many drives into many stacks, by workers, to be gone on with after any kill",
    "live": "test beside a running stack; start, pause, stop or change such a run",
    "inline": "stand in live topics on a test bench: forward them, and change them while it is safe",
    "scenario": "drive scenarios in a closed loop, through changed worlds, too, and judge",
    "experiment": "repeat a published experiment on your bags and stack",
    "rules": "make relations of traffic rules: extract, check, import, export, list, match, count them",
    "models": "train driving models on pictures with speed and steering, and say how good they are",
    "search": "search a relation's parameters for the least change that violates it",
    "watch": "look at a run in progress, or at its end",
    "mutate": "write a mutated bag",
    "list": "list mutations, manipulations, conditions, checks, relations, adapters, stacks, faults, regions, ...",
    "show": "show one of them with its parameters",
    "report": "make the report, pairs.csv and junit.xml of a finished run anew",
    "reproduce": "make one pair of a finished run again, prove it and have it judged",
    "shrink": "make a violated pair small: the weakest change, the fewest points, the shortest window that still fail",
    "failures": "list or forget cases that failed before, which `mt replay --failures` judges first",
    "compare": "say what fails newly, no longer or still in the second of two runs, or the trend over many",
    "review": "have people rate cases of a run, blind, and say how far they agree with its verdicts",
    "coverage": "say what runs tried: range, bearing, class and weather, and what never was",
    "doctor": "say what is wrong on this machine and what to type",
}


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
        args = _parser(words).parse_args(words)
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


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mt",
        description="Metamorphic testing of a driving stack while it runs.",
        epilog="example: mt replay my_bag --stack my_stack.yaml",
    )
    parser.add_argument("--version", action="version", version=f"mt {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    asked = next((word for word in words if word in COMMANDS), None)
    for name, summary in COMMANDS.items():
        sub = subparsers.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        add_common(sub)
        if name == asked:
            # Only the command that runs brings its own arguments, so that the others cost nothing to start.
            importlib.import_module(f"mt_nodes.cli.{name}_command").add_arguments(sub)
    return parser


def add_common(parser: argparse.ArgumentParser) -> None:
    """Declare what every command takes."""
    parser.add_argument("--plugins", type=Path, action="append", default=[], metavar="DIR", help="your own plugins")
    parser.add_argument("-v", "--verbose", action="store_true", help="say more while running")


def _name_first(words: Sequence[str]) -> list[str]:
    """Return the words with the name of an experiment, or a verb, before its options, typed in any order."""
    command, *others = words or ("",)
    if command in ("experiment", "models", "rules"):
        names = importlib.import_module(f"mt_nodes.cli.{command}_command").NAMES
        first = next((at for at, word in enumerate(others) if word in names), 0)
        others = [*others[first : first + 1], *others[:first], *others[first + 1 :]]
    return [command, *others] if words else []


if __name__ == "__main__":
    sys.exit(main())
