# SPDX-License-Identifier: Apache-2.0
"""Makes the reference of ``import mt_nodes as mt`` for docs/python.md from signatures and docstrings."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

import mt_nodes as mt

#: Sections of docstrings whose entries are a list, and the heading that each gets.
SECTIONS = {"Args": "Arguments", "Attributes": "Attributes", "Raises": "Errors", "Returns": "Returns"}
#: What other pages describe, with the page.
ELSEWHERE = {
    **dict.fromkeys(("Detections", "ImageBoxes", "Control", "Path", "Output"), "stacks.md"),
    **dict.fromkeys(("Outcome", "RelationOutcome", "Judgement", "PairRow"), "verdicts.md"),
}
_ENTRY = re.compile(r"^    (\w[\w, *]*): (.*)$")


def reference() -> str:
    """Return the reference: functions, then classes, then names that are described elsewhere, then errors."""
    things = {name: getattr(mt, name) for name in mt.PUBLIC}
    functions = [name for name, thing in things.items() if inspect.isfunction(thing)]
    errors = [name for name, thing in things.items() if isinstance(thing, type) and issubclass(thing, Exception)]
    classes = [name for name in things if name not in (*functions, *errors, *ELSEWHERE)]
    parts = ["### Functions", *map(_function, functions), "### Classes", *map(_class, classes)]
    rows = [f"- `mt.{name}`: {_summary(things[name])} See [{page}]({page})." for name, page in ELSEWHERE.items()]
    rows += [f"- `mt.{name}`: {_summary(things[name])}" for name in errors]
    return "\n\n".join([*parts, "### Answers, verdicts and errors", "\n".join(rows)])


def _function(name: str) -> str:
    thing = getattr(mt, name)
    return "\n\n".join([f"#### `mt.{name}`", f"```python\n{_call(f'mt.{name}', thing)}\n```", *_text(thing)])


def _class(name: str) -> str:
    thing = getattr(mt, name)
    parts = [f"#### `mt.{name}`", *_text(thing)]
    if issubclass(thing, Enum):
        return "\n\n".join([*parts, ", ".join(f"`{one.name}`" for one in thing) + "."])
    rows = [f"- {shown}: {_summary(value)}" for shown, value in _members(thing)]
    return "\n\n".join([*parts, *(["\n".join(rows)] if rows else [])])


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield methods and properties, as they are written, and what has their docstring."""
    known = {
        n: v for base in reversed(cls.__mro__) for n, v in vars(base).items() if base.__module__[:9] == "mt_nodes."
    }
    fields = {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    for name, value in known.items():
        if name.startswith("_") or name in fields or not inspect.getdoc(value):
            continue
        if isinstance(value, classmethod):
            yield f"`{cls.__name__}.{_call(name, getattr(cls, name), one_line=True)}`", value
        elif inspect.isfunction(value):
            yield f"`.{_call(name, value, one_line=True)}`", value
        elif isinstance(value, property) or hasattr(value, "attrname"):
            yield f"`.{name}`", value


def _call(name: str, function: Any, *, one_line: bool = False) -> str:
    """Return a call with names and defaults, without types: those are in the stub, for editors."""
    signature = inspect.signature(function)
    shown = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name != "self"]
    text = f"{name}{signature.replace(parameters=shown, return_annotation=signature.empty)}"
    if one_line or len(text) <= 100:
        return text
    head, _, rest = text.partition("(")
    return f"{head}(\n    " + ",\n    ".join(rest[:-1].split(", ")) + ",\n)"


def _summary(thing: Any) -> str:
    return _plain((inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " "))


def _text(thing: Any) -> Iterator[str]:
    """Yield the paragraphs of a docstring as Markdown, its sections as lists."""
    for paragraph in (inspect.getdoc(thing) or "").split("\n\n"):
        head, _, rest = paragraph.partition("\n")
        if head.rstrip(":") not in SECTIONS:
            yield _plain(paragraph.replace("\n", " "))
            continue
        yield f"{SECTIONS[head.rstrip(':')]}:\n\n" + "\n".join(_entries(rest.splitlines()))


def _entries(lines: Iterable[str]) -> Iterator[str]:
    rows: list[str] = []
    for line in lines:
        if _ENTRY.match(line) or not rows:
            rows.append(line.strip())
        else:
            rows[-1] += f" {line.strip()}"
    for row in rows:
        name, colon, about = row.partition(": ")
        named = colon and re.fullmatch(r"[\w, *]+", name)
        yield f"- {', '.join(f'`{n}`' for n in name.split(', '))}: {_plain(about)}" if named else f"- {_plain(row)}"


def _plain(text: str) -> str:
    """Return text with references and code as Markdown."""
    short = re.sub(r":\w+:`~?(?:mt_nodes\.)?(?:[a-z_]+\.)*([\w.]+)`", r"`\1`", text)
    return short.replace("``", "`")
