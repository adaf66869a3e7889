# SPDX-License-Identifier: Apache-2.0
"""Completion of command lines in bash, zsh and fish, by ``argcomplete``.

The shell calls the command without arguments and passes the line in the environment. Names are found without importing
plugins, because people wait for them at every press of the tabulator.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from mt_nodes.base import resources
from mt_nodes.base.plugin_sources import shipped_rows

Names = Callable[[], Iterable[str]]
#: What ``argcomplete`` sets for a command that it calls; without all of these a line is carried out.
_SET = ("_ARGCOMPLETE", "COMP_LINE", "COMP_POINT")


def is_asked_for(argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Return whether a shell asks for completions.

    A call with arguments is never taken for one: exit code 0 of a completion must not stand for that of a run.
    """
    return len(argv) == 1 and all(name in environ for name in _SET)


def typed_words(environ: Mapping[str, str]) -> list[str]:
    """Return the words between the command and the cursor."""
    return environ["COMP_LINE"][: int(environ["COMP_POINT"])].split()[1:]


def complete(parser: argparse.ArgumentParser, hidden: Collection[str]) -> None:
    """Write the completions for the shell, and end the process."""
    import argcomplete

    for action in _actions(parser):
        completer = _completer(action)
        if completer is not None:
            action.completer = completer  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser, always_complete_options="long", exclude=list(hidden))


def _actions(parser: argparse.ArgumentParser) -> Iterable[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from _actions(sub)


def _completer(action: argparse.Action) -> Callable[..., list[str]] | None:
    """Return what completes the values of an action; None: files."""
    from argcomplete.completers import FilesCompleter

    if action.dest not in _NAMES or (action.nargs == 0):
        return None
    names, suffixes = _NAMES[action.dest]
    files: Any = FilesCompleter(suffixes) if suffixes is not None else lambda prefix: []

    def completions(prefix: str, **_: Any) -> list[str]:
        before, comma, last = prefix.rpartition(",")
        found = [name for name in names() if name.startswith(last)] + list(files(last))
        return [f"{before}{comma}{name}" for name in found]

    return completions


def relation_words() -> list[str]:
    """Return what ``--relations`` takes: names, suites, all."""
    return [*_shipped("relations"), *_shipped("loop_relations"), *_shipped("suites"), "all"]


def mutation_names() -> list[str]:
    """Return the names of the mutations that ship."""
    return [row["name"] for row in shipped_rows("mutations", ())]


def fault_names() -> list[str]:
    """Return the names of the faults that ship."""
    return [row["name"] for row in shipped_rows("faults", ())]


def _shipped(folder: str, suffix: str = ".yaml") -> list[str]:
    return list(resources.shipped(folder, suffix))


def _everything() -> list[str]:
    shown = [*relation_words(), *_shipped("stacks"), *_shipped("scenarios", ".scenario"), *_shipped("regions")]
    return [*shown, *mutation_names()]


def _kinds() -> Iterable[str]:
    from mt_nodes.cli.catalogue import kinds

    return kinds()


def _words(*words: str) -> Names:
    return lambda: words


#: Name of an argument -> names that it takes, and endings of files that it takes beside them (None: none).
_NAMES: dict[str, tuple[Names, tuple[str, ...] | None]] = {
    "relations": (relation_words, ("yaml", "yml")),
    "relation": (relation_words, ("yaml", "yml")),
    "filter": (relation_words, None),
    "stack": (lambda: _shipped("stacks"), ("yaml", "yml", "py")),
    "stacks": (lambda: _shipped("stacks"), ("yaml", "yml", "py")),
    "mutation": (mutation_names, None),
    "scenarios": (lambda: _shipped("scenarios", ".scenario"), ("scenario", "xosc")),
    "faults": (fault_names, None),
    "kind": (_kinds, None),
    "name": (_everything, ()),
    "mode": (_words("twin", "alternate", "two_pass"), None),
    "pace": (_words("lockstep", "realtime"), None),
    "transport": (_words("ros", "inprocess"), None),
}
