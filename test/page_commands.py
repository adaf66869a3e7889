# SPDX-License-Identifier: Apache-2.0
"""Runs what a page tells its reader to type: commands of its code blocks, and files that the blocks hold."""

from __future__ import annotations

import contextlib
import os
import re
import runpy
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from bad_bags import typed
from failing_plugins import plugins_as_before
from made_runs import no_pages, sparse_drive

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: First words of lines that set up what a test has: the package, and the drive of the demo.
SET_UP = ("make ", "source ", "mt demo", "pip ")


class Typed(NamedTuple):
    """A command, and how it ended."""

    command: str
    code: int
    said: str


def files_of(page: Path) -> dict[str, str]:
    """Return the files that a page holds: blocks whose first line is a comment with a name."""
    found = {}
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        head, _, rest = text.partition("\n")
        if language in ("python", "yaml") and re.fullmatch(r"# [\w/]+\.(py|yaml)", head):
            found[head.removeprefix("# ")] = rest
    return found


def steps_of(page: Path) -> Iterator[tuple[str, str]]:
    """Yield what a reader does, in order: ("write", name) and ("type", command); set-up and output are left out."""
    files = files_of(page)
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        head = text.partition("\n")[0].removeprefix("# ")
        if head in files:
            yield "write", head
        elif not language:
            lines = [line.partition("   #")[0].rstrip() for line in text.splitlines()]
            yield from (("type", line) for line in lines if line.startswith(("mt ", "python ")) and not _set_up(line))


def _set_up(line: str) -> bool:
    return line.startswith(SET_UP)


def follow(page: Path, here: Path, *, by_topics: bool, limit: int = 3) -> list[Typed]:
    """Do what a page says, in a directory; of replays those over topics alone, or all others (without topics).

    Stop at a command that cannot go on.
    """
    files, done = files_of(page), []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        patch.syspath_prepend(str(here))
        for kind, what in steps_of(page):
            if kind == "write":
                (here / what).write_text(files[what])
            elif (over := _over_topics(what)) is None or over is by_topics:
                done.append(_type(what, "" if by_topics or over is None else " --transport inprocess", limit))
    return done


def _over_topics(command: str) -> bool | None:
    """Tell of a replay whether it needs topics; None of other commands."""
    if not command.startswith("mt replay"):
        return None
    return any(word in command for word in ("command.yaml", "--stack stack.yaml", "points_stack.yaml"))


def _type(command: str, more: str, limit: int) -> Typed:
    program, *words = (command + more).split()
    if command.startswith("mt replay") and "--limit" not in words:
        words += ["--limit", str(limit)]
    with plugins_as_before(), no_pages():
        if program == "mt":
            code, said, error = typed(*words)
            return Typed(command, code, said + error)
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(None):
            patch.setattr(sys, "argv", words)
            runpy.run_path(words[0], run_name="__main__")
    return Typed(command, 0, "")


def copy_of(folder: str, place: Path) -> Path:
    """Copy an example, with a short drive where its README has that of the demo."""
    here = place / folder
    shutil.copytree(EXAMPLES / folder, here)
    sparse_drive(place / "demo" / "drive", 3)
    return here
