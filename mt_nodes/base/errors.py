# SPDX-License-Identifier: Apache-2.0
"""Errors that users see, and the exit codes of the command line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit code of the process."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    UNDECIDED = 3
    INFRASTRUCTURE = 4
    ISOLATION = 5
    INTERRUPTED = 130


_LOG_LINE = "\n    | "
#: An error that quotes a whole file hides what is wrong with it.
_HEAD_CHARACTERS, _END_CHARACTERS = 1000, 500


def printable(text: str, kept: str = "") -> str:
    """Return a text with its control characters escaped, but for those that are kept."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text)


class MtError(Exception):
    """A known error, printed as one line without a traceback; only lines of a log may follow, each after a bar.

    Quoted files and messages may hold anything: control characters are escaped, and long texts are cut in the middle.
    """

    exit_code: ExitCode = ExitCode.INFRASTRUCTURE

    def __init__(self, text: str = "") -> None:
        line, bar, log = text.partition(_LOG_LINE)
        line, log = printable(line), printable(log, "\n\t")
        if len(line) > _HEAD_CHARACTERS + _END_CHARACTERS:
            line = f"{line[:_HEAD_CHARACTERS]} … {line[-_END_CHARACTERS:]}"
        super().__init__(line + bar + log)


class UsageError(MtError):
    """A command-line argument or a file of the user's cannot be used."""

    exit_code = ExitCode.USAGE


class InfrastructureError(MtError):
    """A stack died or did not get ready, a bag is damaged, a disk is full."""

    exit_code = ExitCode.INFRASTRUCTURE


class StackError(InfrastructureError):
    """The stack under test died, hung, did not get ready, or published what cannot be used; the run is not clean.

    Attributes:
        pairs: ids of the pairs during which it happened; empty if there were none.
    """

    pairs: tuple[str, ...] = ()


class IsolationError(MtError):
    """Running here could reach what must not be reached."""

    exit_code = ExitCode.ISOLATION


class StackCallError(StackError):
    """The stack raised an exception at one input and goes on: that ends the pairs of this input, not the run."""


class PluginError(InfrastructureError):
    """A plugin raised an exception, or returned what it may not: that ends its pair as ERROR, not the run.

    The text names the plugin, the method, file and line; see :func:`mt_nodes.base.plugins.name_errors`.
    """


class NotApplicable(Exception):
    """Raised by a mutation that has no valid follow-up for this bundle; the text is the reason."""


class NoEffect(NotApplicable):
    """Raised by a mutation of several messages where the change does not reach this one; the text is the reason.

    The message stays, and the follow-up says why, if the change reaches another one.
    """


@contextmanager
def needs_extra(name: str, what: str) -> Iterator[None]:
    """Say what to type where an import of the block fails, for ``what`` needs an extra of the package.

    Raises UsageError.
    """
    try:
        yield
    except ImportError as error:
        raise UsageError(f"{what}: pip install 'mt_nodes[{name}]' ({error})") from error


def headline(error: InfrastructureError) -> str:
    """Return what went wrong, without the tail of a log (which holds wall times) and the advice.

    An exception of the stack that it survived has neither.
    """
    return str(error) if isinstance(error, StackCallError) else str(error).partition("; ")[0]


def suggest(got: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a hint such as ``; did you mean 'fog'?``; if nothing is close, ``otherwise`` or the known names."""
    names = sorted(known)
    close = difflib.get_close_matches(got, names, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    if otherwise:
        return f"; {otherwise}"
    return f"; known: {', '.join(names) if names else '(none)'}"
