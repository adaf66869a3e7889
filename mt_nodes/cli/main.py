# SPDX-License-Identifier: Apache-2.0
"""``mt``: the parser is light; each command imports what it needs when it runs."""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from mt_nodes import __version__
from mt_nodes.base import plugins
from mt_nodes.base.errors import ExitCode, MtError, UsageError, suggest
from mt_nodes.base.garbage import spare_modules
from mt_nodes.cli import completion
from mt_nodes.cli.options import add_common, add_verbs, run_verb
from mt_nodes.cli.supervision import refuse_exit, stdout_is_closed, supervised
from mt_nodes.cli.verbs import VERBS


class CommandParser(argparse.ArgumentParser):
    """A parser of ``argparse`` that suggests what is similar to an unknown word.

    ``hidden``: words of sub-commands that work but are never suggested.
    """

    hidden: frozenset[str] = frozenset()

    def error(self, message: str) -> NoReturn:
        """End with exit code 2; argparse prints the whole usage before, which hides what is wrong."""
        hint = "" if message.startswith("argument -") else f"; see `{self.prog} --help`"
        self.exit(int(ExitCode.USAGE), f"{self.prog}: error: {message}{hint}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices if choice not in self.hidden]
        if isinstance(action, argparse._SubParsersAction):
            kind = str(action.metavar).lower()
            raise argparse.ArgumentError(None, f"no {kind} '{value}'{_hint(str(value), known, kind)}")
        text = f"got '{value}', expected {' or '.join(known)}{suggest(str(value), known, ' ').rstrip('; ')}"
        raise argparse.ArgumentError(action, text)


def _hint(word: str, known: Iterable[str], kind: str) -> str:
    """Return what to type in place of an unknown command or verb."""
    if kind == "command" and Path(word).exists():
        return f", but there is a file of that name: `mt replay {word}` replays a bag, `mt show {word}` shows results"
    return suggest(word, known, " ").rstrip("; ")


#: group -> command -> summary; one without verbs has a module with ``add_arguments(parser)`` and ``run(args) -> int``
GROUPS = {
    "run": {
        "demo": "test an honest and a faulty stack on a generated drive",
        "replay": "replay original and mutated rosbags into a stack, compare outputs",
        "live": "test beside a running stack; start, pause or stop such a run",
        "scenario": "drive each scenario twice in a closed loop, compare the drives",
        "campaign": "replay many drives into many stacks; can always be resumed",
        "doctor": "check this machine, and print how to fix what is wrong",
        "inline": "on a test bench: forward live topics, and mutate them while safe",
        "experiment": "repeat a published experiment on your bags and stack",
    },
    "look": {
        "watch": "show the progress of a run, and its outcome",
        "report": "make the report of a run again; show what runs covered",
        "compare": "compare two runs, or show the trend over many",
        "list": "list relations, suites, mutations, stacks, scenarios and more",
        "show": "explain a name; show a run, a judged pair or a mutated frame",
    },
    "author": {
        "suggest": "suggest relations for a bag and a stack, write a suite of them",
        "new": "write a working mutation, check, relation or stack, with a test",
        "mutate": "write a mutated copy of a bag",
        "rules": "turn traffic rules into relations, and manage them",
        "models": "train and evaluate driving models and detectors",
    },
    "maintain": {
        "reproduce": "make one pair of a run again, bit for bit, and judge it",
        "verify": "check that results are as they were written, follow-ups made again",
        "evidence": "the case for safety: plan, sign, and verify a bundle of evidence",
        "blame": "name the node of a stack in which a violation begins",
        "bisect": "find the first version of a stack in which a violation begins",
        "shrink": "reduce a violated pair to the smallest change that still fails",
        "search": "search for the smallest change that violates a relation",
        "review": "have people rate cases blind, and measure their agreement",
    },
}
#: Former commands, each with what to type now; they work for one more release.
HIDDEN = {
    "coverage": "show what runs covered: range, bearing, class and weather (now `mt report --coverage`)",
    "failures": "list, add, forget or export failing cases (now `mt replay failures`)",
}
COMMANDS = {name: summary for group in (*GROUPS.values(), HIDDEN) for name, summary in group.items()}
#: Exit codes by which ``git bisect run`` skips a commit, and from which on it stops.
_SKIP, _ABORT = 125, 128
FAILURES_VERBS = ("list", "add", "forget", "export")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; known errors are one line, unknown ones keep their traceback.

    ``argv``: the words after ``mt``, to be run in this process; None: those of this process, to be run in a child
    (:mod:`mt_nodes.cli.supervision`).
    """
    if argv is not None:
        return _exit_code_of(argv)(_run(argv))
    spare_modules()
    if completion.is_asked_for(sys.argv, os.environ):
        completion.complete(_parser(_verb_first(completion.typed_words(os.environ)))[0], HIDDEN)
    return supervised(lambda: _run(sys.argv[1:]), _exit_code_of(sys.argv[1:]))


def _exit_code_of(words: Sequence[str]) -> Callable[[int], int]:
    """Return what makes the exit code: in a step of ``git bisect run`` no error may look like a bad version."""
    if words[:1] != ["bisect"] or "step" not in words:
        return int
    return lambda code: code if code in (ExitCode.PASS, ExitCode.FAIL, _SKIP) else max(code, _ABORT)


def _run(argv: Sequence[str]) -> int:
    words = _verb_first(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):  # file names that are not UTF-8 are printed escaped
        sys.stdout.reconfigure(errors="backslashreplace")
    if not words:
        # Help is what a person wants to see. Exit code 2: nothing was tested, and `mt $ARGS` in a script is no success.
        _parser(words)[0].print_help()
        return int(ExitCode.USAGE)
    try:
        args = _parsed(words)
        with refuse_exit():
            if args.trust:
                importlib.import_module("mt_nodes.engine.provenance").trust_all()
            for directory in args.plugins:
                plugins.add_directory(directory)
            if args.command in VERBS:
                return run_verb(args, VERBS[args.command])
            command = importlib.import_module(f"mt_nodes.cli.{args.command}_command")
            return int(command.run(args))
    except MtError as error:
        text = str(error)
        named = text.startswith(tuple(f"mt {name}" for name in COMMANDS))
        print(text if named else f"mt: {text}", file=sys.stderr)
        return int(error.exit_code)
    except KeyboardInterrupt as interrupted:
        print(f"mt: {str(interrupted) or 'interrupted'}", file=sys.stderr)
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        if not stdout_is_closed():
            traceback.print_exc()
            return int(ExitCode.INFRASTRUCTURE)
        # `mt list … | head`: there is nobody to print to. Never 0: the outcome of a run may not have been printed.
        return 128 + signal.SIGPIPE
    except Exception as error:  # noqa: BLE001 - the traceback is the message; the exit code is not that of a FAIL
        if shortage := _shortage(error):
            print(f"mt: {shortage}", file=sys.stderr)
        else:
            traceback.print_exc()
        return int(ExitCode.INFRASTRUCTURE)


def _shortage(error: Exception) -> str:
    """Return what the machine is short of, and what to do about it; empty if the error is another one."""
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.EMFILE, errno.ENFILE):
        return f"too few open files are allowed: {error}; `ulimit -n` shows how many, 1024 are enough"
    if number in (errno.ENOSPC, errno.EDQUOT):
        where = error.filename if isinstance(error, OSError) and error.filename else "the output"
        return f"{where} cannot be written: {os.strerror(number)}; free some space, or write elsewhere"
    # The loader of shared libraries says it in words only; an import that is short of memory may not say it at all.
    unnamed = isinstance(error, SystemError) or "can't start new thread" in str(error)
    unnamed = unnamed and resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    short = isinstance(error, MemoryError) or number == errno.ENOMEM or "failed to map segment" in str(error)
    if short or unnamed:
        return f"out of memory: {str(error) or type(error).__name__}; free some, or allow more (`ulimit -v`)"
    return ""


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    """Return the parsed command line. Raises UsageError: an argument is unknown; names a similar one."""
    parser, command = _parser(words)
    args, unknown = parser.parse_known_args(words)
    if unknown:
        command = _innermost(command or parser, words)
        known = [option for action in command._actions for option in action.option_strings if option.startswith("--")]
        similar = suggest(unknown[0].partition("=")[0], known, " ") if unknown[0].startswith("-") else ""
        text = f"{command.prog}: does not take '{unknown[0]}'{similar.rstrip('; ')}; see `{command.prog} --help`"
        raise UsageError(text)
    return args


def _innermost(parser: CommandParser, words: Sequence[str]) -> CommandParser:
    """Return the parser of the typed verb, for a command with verbs."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return next((action.choices[word] for word in words if word in action.choices), parser)
    return parser


def _parser(words: Sequence[str]) -> tuple[CommandParser, CommandParser | None]:
    """Return the parser, and that of the typed command."""
    parser = CommandParser(
        prog="mt",
        usage="mt [-h] [--version] COMMAND ...",
        description=_overview(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="`mt COMMAND --help` shows an example. To begin, type: mt demo",
    )
    parser.add_argument("--version", action="version", version=f"mt {__version__}")
    parser.hidden = frozenset(HIDDEN)
    subparsers = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", prog="mt", help=argparse.SUPPRESS
    )
    typed, command = next((word for word in words if word in COMMANDS), None), None
    # Only the command that runs has a parser with its arguments: the others cost no time, but are known.
    unused = CommandParser(add_help=False)
    for name, summary in COMMANDS.items():
        if name != typed:
            subparsers.choices[name] = unused
            continue
        command = subparsers.add_parser(name, description=summary[0].upper() + summary[1:] + ".")
        add_common(command)
        if name in VERBS:
            add_verbs(command, VERBS[name], "NAME" if name == "experiment" else "VERB")
        else:
            importlib.import_module(f"mt_nodes.cli.{name}_command").add_arguments(command)
    return parser, command


def _overview() -> str:
    """Return the commands in their groups."""
    lines = ["Metamorphic testing of a driving stack while it runs."]
    for group, commands in GROUPS.items():
        lines += ["", f"{group}:", *(f"  {name:<11}{summary}" for name, summary in commands.items())]
    return "\n".join(lines)


def _verb_first(words: Sequence[str]) -> list[str]:
    """Return the words with a verb, or the name of an experiment, before its options, which may be typed first."""
    command, *others = words or ("",)
    if command == "replay" and others[:1] == ["failures"] and others[1:2] and others[1] in FAILURES_VERBS:
        return ["failures", *others[1:]]
    if command in ("experiment", "models", "rules"):
        first = next((at for at, word in enumerate(others) if word in VERBS[command]), 0)
        others = [*others[first : first + 1], *others[:first], *others[first + 1 :]]
    return [command, *others] if words else []


if __name__ == "__main__":
    sys.exit(main())
