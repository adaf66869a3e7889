# SPDX-License-Identifier: Apache-2.0
"""Suites of relations: files with lists of words; those that ship have names."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError
from mt_nodes.base.yaml_files import read_mapping, refuse_unknown
from mt_nodes.relations.relation import CONTROL, LOOP_SHAM, SHAMS

#: Folder of the suites that ship.
SUITES = "suites"
#: Suites that together hold every relation that ships; one that is in several belongs to the first.
FAMILIES = ("noise", "weather", "objects", "geometry", "timing", "image", "radar", "sensor_faults")
#: Relations that every run offers: nobody asks for them.
BACKGROUND = frozenset({CONTROL, LOOP_SHAM, *SHAMS})
_YAML = (".yaml", ".yml")


def suites() -> Mapping[str, Path]:
    """Return the files of the named suites by name."""
    return resources.shipped(SUITES)


@lru_cache
def suite_words(suite: str) -> tuple[str, ...]:
    """Return the words of a named suite."""
    return tuple(names_from_suite_file(suites()[suite]))


@lru_cache
def relation_names(folder: str) -> tuple[str, ...]:
    """Return the names of the relations of a shipped folder, without control and sham."""
    return tuple(name for name in resources.shipped(folder) if name not in BACKGROUND)


def family_of(relation: str) -> str:
    """Return the first of :data:`FAMILIES` that a relation belongs to; empty for one of the user's."""
    matching = (f for f in FAMILIES if any(fnmatchcase(relation, word) for word in suite_words(f)))
    return next(matching, "")


def names_from_suite_file(path: Path) -> list[str]:
    """Read ``{relations: [word, …]}``; files are relative to the suite file.

    Raises UsageError: the file is invalid, or names no relation.
    """
    data = read_mapping(path)
    refuse_unknown(data, ("relations",), str(path))
    words = data.get("relations")
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        forms = "names, files, patterns such as 'noise_*', tag:fog or suites"
        raise UsageError(f"{path}: relations: got {words!r}, expected a list of texts: {forms}")
    return [str(path.parent / word) if word.endswith(_YAML) else word for word in words]
