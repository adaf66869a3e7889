# SPDX-License-Identifier: Apache-2.0
"""Reads YAML files that people write: unknown keys and wrong types are errors that say what to write instead."""

from __future__ import annotations

import codecs
import re
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from mt_nodes.base.errors import UsageError, suggest

#: Files that people write are small; without libyaml, reading 10 MB of YAML takes about a minute.
LARGEST_BYTES = 4_000_000
#: Deepest nesting of lists and mappings: beyond, libyaml overflows its stack.
DEEPEST = 250
#: Most values, those of aliases counted each time: a few lines can stand for billions.
MOST_VALUES = 200_000
#: What PyYAML lets its constructors raise of values that do not fit their tag: ``!!timestamp foo``, ``!!int``.
_MISFITS = (ArithmeticError, AttributeError, LookupError, TypeError)
#: So many characters of a line are quoted.
_QUOTED = 80
#: What to do about the mistakes that people make most, by words of PyYAML's.
_HINTS = {
    "'\\t'": "indent with spaces, not tabs",
    "mapping values are not allowed": "does the line before lack its colon, or a text that contains ': ' its quotes?",
    "could not find expected ':'": "a key needs a colon and a space behind it",
    "expected <block end>": "lines of one list or mapping begin in the same column",
    "<stream end>": "close every bracket",
    "end of stream": "close every quotation mark",
    "cannot start any token": "quote a text that begins with such a character",
    "constructor for the tag": "write plain values only, and quote a text that begins with !",
}
#: Where PyYAML lets a line end (YAML 1.1).
_BREAKS = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_OTHER_ENCODINGS = ((codecs.BOM_UTF16_LE, "UTF-16"), (codecs.BOM_UTF16_BE, "UTF-16"))


def read_mapping(path: Path) -> dict[str, Any]:
    """Return the mapping at the top of a YAML file. Raises UsageError: unreadable, not YAML, or not a mapping."""
    data = read(path)
    if not isinstance(data, dict):
        raise UsageError(f"{path}: got {_kind(data)}, expected a mapping of keys to values")
    return data


def read_list(path: Path) -> list[Any]:
    """Return the list at the top of a YAML file; an empty file is an empty one.

    Raises UsageError: unreadable, not YAML, or not a list.
    """
    data = read(path)
    if data is None:
        return []
    if not isinstance(data, list):
        raise UsageError(f"{path}: got {_kind(data)}, expected a list (lines that begin with '- ')")
    return data


def read(path: Path) -> Any:
    """Return the content of a YAML file, None for an empty one.

    Raises UsageError: it cannot be read as UTF-8, is too large, is not YAML, has a key twice, or aliases that repeat
    more values than :data:`MOST_VALUES`.
    """
    return parse(read_text(path), str(path))


def parse(text: str, where: str) -> Any:
    """Return what a YAML text says, None for an empty one; ``where`` it is from begins the errors."""
    try:
        try:
            _refuse_depth(text)
            return _constructed(_FastLoader(text), where)
        except yaml.YAMLError:  # told by the loader that shows the line
            return _constructed(_Loader(text), where)
    except yaml.YAMLError as error:
        raise UsageError(f"{where}: not valid YAML{yaml_problem(error)}") from error
    except RecursionError as error:
        raise UsageError(f"{where}: not valid YAML: lists or mappings inside each other too deeply") from error
    except ValueError as error:  # such as a date with month 13
        raise UsageError(f"{where}: not valid YAML: {error}; quote what is meant as a text") from error
    except _MISFITS as error:
        raise UsageError(
            f"{where}: not valid YAML: a value does not fit the tag (!!…) before it; write plain values only"
        ) from error


def yaml_problem(error: yaml.YAMLError) -> str:
    """Return what PyYAML found wrong with a text, for the end of a sentence that names where the text is from.

    PyYAML itself calls every text "<unicode string>".
    """
    if isinstance(error, yaml.reader.ReaderError):
        return f": {error.reason}: #x{error.character:04x} at position {error.position}"
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    if mark is None or problem is None:
        return f": {' '.join(str(error).split())}"
    lines = [] if mark.buffer is None else _BREAKS.split(mark.buffer.rstrip("\0"))
    line = lines[mark.line].strip() if mark.line < len(lines) else ""
    quoted = f" '{line[:_QUOTED]}{'…' if len(line) > _QUOTED else ''}'" if line else ""
    hint = next((f"; {hint}" for words, hint in _HINTS.items() if words in problem), "")
    begun = getattr(error, "context_mark", None)
    since = f" in what begins in line {begun.line + 1}" if begun is not None and begun.line != mark.line else ""
    return f" in line {mark.line + 1}, column {mark.column + 1}{quoted}: {problem}{since}{hint}"


def read_text(path: Path) -> str:
    """Return the text of a file that people write.

    Raises UsageError: it cannot be read, is larger than :data:`LARGEST_BYTES`, or is not UTF-8.
    """
    try:
        if path.stat().st_size > LARGEST_BYTES:
            size = f"{path.stat().st_size / 1e6:.1f} MB, expected at most {LARGEST_BYTES / 1e6:g} MB"
            raise UsageError(f"{path}: got a file of {size}; is it the right file?")
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    for mark, name in _OTHER_ENCODINGS:
        if data.startswith(mark):
            raise UsageError(f"{path}: got {name}, expected UTF-8; save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{path}: got byte 0x{data[error.start]:02x} in line {line}, expected UTF-8 text; save it as UTF-8"
        ) from error


def refuse_unknown(data: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """Refuse keys of a mapping that nothing reads."""
    names = list(known)
    for key in data:
        if key not in names:
            raise UsageError(f"{where}: unknown key '{key}'{suggest(str(key), names)}")


def read_identifier(value: Any, where: str) -> str:
    """Return a value that names something in files, command lines and pairs.

    Raises UsageError: it is no text, or has characters that none of these takes.
    """
    if isinstance(value, str) and value and value.isprintable() and not set(value) & set("/@ ,"):
        return value
    raise UsageError(f"{where}: id: got {value!r}, expected a text without '/', '@', ',' and spaces")


def named_items(value: Any, where: str) -> list[tuple[str, dict[str, Any]]]:
    """Read ``[{name: {parameter: value}}, name]`` as (name, parameters) rows; a single mapping is a list of one."""
    rows = value if isinstance(value, list) else [value]
    items: list[tuple[str, dict[str, Any]]] = []
    for i, row in enumerate(rows):
        if isinstance(row, str):
            items.append((row, {}))
        elif isinstance(row, dict) and len(row) == 1:
            name, params = next(iter(row.items()))
            items.append((str(name), {} if params is None else params))
        else:
            raise UsageError(f"{where}[{i}]: got {row!r}, expected 'name' or '{{name: {{parameter: value}}}}'")
    return items


class _EachKeyOnce:
    """Refuses duplicate keys in a mapping: YAML would silently take the last."""

    def construct_mapping(self: Any, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            # A merged mapping (<<) has lower priority than the mapping's own keys, so it may repeat one.
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"got key '{key}' twice, expected it once", key_node.start_mark
                )
            seen |= {key} if isinstance(key, Hashable) else set()
        return super().construct_mapping(node, deep=deep)  # type: ignore[misc,no-any-return]


class _Loader(_EachKeyOnce, yaml.SafeLoader):
    """Loads plain values only."""


class _FastLoader(_EachKeyOnce, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The same with libyaml, if available: eight times as fast, but its errors do not show the line."""


def _constructed(loader: Any, where: str) -> Any:
    try:
        node = loader.get_single_node()
        _refuse_bombs(node, where)
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def _refuse_depth(text: str) -> None:
    """Raise RecursionError if lists and mappings are nested more than :data:`DEEPEST` deep."""
    # A bracket adds one level, indentation one per two columns at most: this estimate spares most files the full count.
    if text.count("[") + text.count("{") + 2 * max(map(len, text.splitlines()), default=0) <= DEEPEST:
        return
    depth = 0
    for event in yaml.parse(text, Loader=_FastLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise RecursionError


def _refuse_bombs(node: yaml.Node | None, where: str) -> None:
    if node is not None and _values(node, {}, where) > MOST_VALUES:
        raise UsageError(
            f"{where}: its aliases (*name) stand for more than {MOST_VALUES:,} values; write out what is meant"
        )


def _values(node: yaml.Node, known: dict[yaml.Node, int], where: str) -> int:
    """Count the values below a node, those of aliases each time; every node is visited once."""
    if node in known:
        if not known[node]:
            raise UsageError(f"{where}: an alias (*name) stands for what it is part of; write out what is meant")
        return known[node]
    known[node] = 0  # while it is being counted
    parts = node.value if isinstance(node, yaml.CollectionNode) else ()
    inside = (part for row in parts for part in (row if isinstance(row, tuple) else (row,)))
    known[node] = 1 + sum(_values(part, known, where) for part in inside)
    return known[node]


def _kind(data: Any) -> str:
    return "an empty file" if data is None else type(data).__name__
