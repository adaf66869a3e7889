# SPDX-License-Identifier: Apache-2.0
"""Errors meant for people, and the exit codes of the command line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """What the process says to its caller."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    UNDECIDED = 3
    INFRASTRUCTURE = 4
    ISOLATION = 5
    INTERRUPTED = 130


_LOG_LINE = "\n    | "
#: Who quotes a whole file in an error hides what is wrong with it.
_HEAD_CHARACTERS, _END_CHARACTERS = 1000, 500


class MtError(Exception):
    """A known error: printed as one line, without a traceback; only lines of a log may follow, each behind a bar.

    What the text quotes of files and messages may hold anything: control characters are escaped, and what is too long
    to read is cut in its middle.
    """

    exit_code: ExitCode = ExitCode.INFRASTRUCTURE

    def __init__(self, text: str = "") -> None:
        line, bar, log = text.partition(_LOG_LINE)
        if not line.isprintable():
            line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
        if len(line) > _HEAD_CHARACTERS + _END_CHARACTERS:
            line = f"{line[:_HEAD_CHARACTERS]} … {line[-_END_CHARACTERS:]}"
        super().__init__(line + bar + log)


class UsageError(MtError):
    """What the user typed or wrote in a file cannot be used."""

    exit_code = ExitCode.USAGE


class InfrastructureError(MtError):
    """A stack died or never got ready, a bag is damaged, a disk is full."""

    exit_code = ExitCode.INFRASTRUCTURE


class StackError(InfrastructureError):
    """The stack under test died, hung, never got ready, or said what nobody can use: no run is clean after that.

    Attributes:
        pairs: identities of the pairs that it struck, empty where it was at none.
    """

    pairs: tuple[str, ...] = ()


class IsolationError(MtError):
    """Running here could reach something that must not be reached."""

    exit_code = ExitCode.ISOLATION


class NotApplicable(Exception):
    """Raised by a mutation that has no honest follow-up for this bundle; the text is the reason."""


def headline(error: InfrastructureError) -> str:
    """What went wrong, without the tail of a log (which has wall times in it) and the advice."""
    return str(error).partition("; ")[0]


def suggest(got: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a hint such as ``; did you mean 'fog'?``, else ``otherwise`` or, without that, the list of what exists."""
    names = sorted(known)
    close = difflib.get_close_matches(got, names, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    if otherwise:
        return f"; {otherwise}"
    return f"; known: {', '.join(names) if names else '(none)'}"
