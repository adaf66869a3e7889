# SPDX-License-Identifier: Apache-2.0
"""Lists of English words that the rule parser goes by, from ``config/ontology/grammar.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.yaml_files import read_mapping
from mt_nodes.engine.entries import mapping, texts

#: Name of the file; all others in ``config/ontology`` hold terms.
GRAMMAR = "grammar"
_REPLACEMENTS = ("numbers", "contractions")


def words(name: str) -> frozenset[str]:
    """Return a list of words. Raises UsageError: the file has no such list, or cannot be used."""
    found: frozenset[str] = _entry(name)
    return found


def replacements(name: str) -> Mapping[str, str]:
    """Return texts that stand for others, in the order of the file: ``numbers`` or ``contractions``.

    Raises UsageError: the file has no such mapping, or cannot be used.
    """
    found: Mapping[str, str] = _entry(name)
    return found


def read_grammar(path: Path) -> dict[str, Any]:
    """Return the word lists of a file, and the mappings ``numbers`` and ``contractions``, by name.

    Raises UsageError: naming the file and the list, what was got and what was expected.
    """
    data = read_mapping(path)
    found: dict[str, Any] = {}
    for name in _REPLACEMENTS:
        found[name] = {str(key): str(value) for key, value in mapping(data.get(name), f"{path}: {name}").items()}
    return found | {name: _words(data, name, path) for name in data if name not in _REPLACEMENTS}


@lru_cache(maxsize=1)
def _shipped() -> dict[str, Any]:
    return read_grammar(resources.find("ontology", GRAMMAR))


def _entry(name: str) -> Any:
    if name not in _shipped():
        raise UsageError(f"{resources.find('ontology', GRAMMAR)}: no list '{name}'{suggest(name, _shipped())}")
    return _shipped()[name]


def _words(data: Mapping[str, Any], name: str, path: Path) -> frozenset[str]:
    row = texts(data, name, f"{path}: grammar")
    if twice := next((word for word in row if row.count(word) > 1), ""):
        raise UsageError(f"{path}: {name}: got '{twice}' twice, expected it once")
    return frozenset(row)
