# SPDX-License-Identifier: Apache-2.0
"""The parser of every command: an error is one line that says what to type."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from mt_nodes.base.errors import ExitCode, suggest


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
