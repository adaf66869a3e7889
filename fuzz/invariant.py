# SPDX-License-Identifier: Apache-2.0
"""The invariant of every case: a known error that names where, or a result; in time, in little memory."""

from __future__ import annotations

import contextlib
import faulthandler
import resource
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from fuzz.cases import Case, Target
from mt_nodes.base.errors import ExitCode, MtError

LIMIT_S = 20.0
#: A case that waits may take so many times as long as one that works: on a busy machine every case waits.
WAITS = 6.0
#: What may be allocated beyond what the process holds when the first case begins.
MEMORY_BYTES = 2 << 30
LONGEST_TEXT = 2000


class Broken(AssertionError):
    """A case that came to neither a known error nor a result that proves itself."""


class _TooLong(BaseException):
    """No handler of ordinary errors may take this for one."""


def require(holds: bool, what: str) -> None:
    """Raise :class:`Broken` with ``what`` is wrong unless it holds."""
    if not holds:
        raise Broken(what)


def hold(target: Target, case: Case, limit_s: float = LIMIT_S) -> str:
    """Use a case; return in a word what came of it. ``limit_s``: of processor time, and of six times as much in all.

    Raises:
        Broken: a known error that is told badly, a result that does not prove itself, or no end within the limit.
        Exception: any other error of the code under test, as it was.
    """
    with tempfile.TemporaryDirectory(prefix="mt_fuzz_") as place:
        try:
            with _within(limit_s):
                return target.check(case, Path(place))
        except MtError as error:
            told_well(error, target.where)
            return f"refused with {int(error.exit_code)}"
        except _TooLong:
            raise Broken(f"no end within {limit_s:g} s") from None


@contextlib.contextmanager
def little_memory(more_bytes: int = MEMORY_BYTES) -> Iterator[None]:
    """Let the process allocate no more than so many bytes beyond what it has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def told_well(error: MtError, where: str) -> None:
    """Raise :class:`Broken` unless an error is one printable line that names where, with an exit code that fits."""
    text = str(error)
    require(error.exit_code in (ExitCode.USAGE, ExitCode.INFRASTRUCTURE), f"exit code {error.exit_code} of: {text!r}")
    require(bool(text) and text.isprintable(), f"an error that is not one line: {text!r}")
    require(len(text) <= LONGEST_TEXT, f"an error of {len(text)} characters: {text[:200]!r}")
    require(where in text, f"an error that does not name {where}: {text!r}")


@contextlib.contextmanager
def _within(limit_s: float) -> Iterator[None]:
    def ended(signum: int, frame: FrameType | None) -> None:
        raise _TooLong

    limits = ((signal.ITIMER_PROF, signal.SIGPROF, limit_s), (signal.ITIMER_REAL, signal.SIGALRM, WAITS * limit_s))
    before = [signal.signal(number, ended) for _, number, _ in limits]
    for timer, _, seconds in limits:
        signal.setitimer(timer, seconds)
    # Native code that does not come back cannot be interrupted: the process says where it is, and ends.
    faulthandler.dump_traceback_later(1.5 * WAITS * limit_s, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        for (timer, number, _), handler in zip(limits, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)
