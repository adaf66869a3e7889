# SPDX-License-Identifier: Apache-2.0
"""Conditions of relations on the source: a small language in three-valued logic.

``speed_kmh > 50 and not has(red_light)`` is true, false or, if a deciding fact is missing, unknown (Kleene's strong
logic: ``false and unknown`` is false, ``true and unknown`` unknown). An unknown condition never counts as true.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from mt_nodes.base.errors import UsageError, suggest

if TYPE_CHECKING:
    from lark import Lark

KINDS = ("flag", "number", "name")
#: Known facts of a case by predicate. Of elements, ``has(red_light)`` is whether that one is present, and ``has`` the
#: names of all that are present, from a source that knows of all, or of those in ``looked_for``. A missing fact is
#: unknown: an element for which nobody looked is neither present nor absent.
Facts = Mapping[str, "bool | float | str | Collection[str]"]
HAS, LOOKED_FOR = "has", "looked_for"
_LONGEST, _DEEPEST = 2000, 40
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True)
class Predicate:
    """A name in conditions: its ``kind`` (of :data:`KINDS`), and phrases of rules that state or deny a flag."""

    name: str
    kind: str
    help: str = ""
    says: tuple[str, ...] = ()
    denies: tuple[str, ...] = ()


@dataclass(frozen=True)
class ConditionNode:
    """An operator and its operands: ``flag``, ``has``, ``compare``, ``not_``, ``both``, ``either``, ``true``…"""

    kind: str
    parts: tuple[Any, ...] = ()

    @property
    def names(self) -> Iterator[str]:
        """Names of the predicates in it, in order."""
        for part in self.parts:
            if isinstance(part, ConditionNode):
                yield from part.names
        if self.kind in ("flag", "name"):
            yield self.parts[0]

    @property
    def elements(self) -> Iterator[str]:
        """Names of the elements in it."""
        for part in self.parts:
            if isinstance(part, ConditionNode):
                yield from part.elements
        if self.kind == HAS:
            yield self.parts[0]


TRUE, FALSE = ConditionNode("true"), ConditionNode("false")


@lru_cache(maxsize=1024)
def parse(text: str) -> ConditionNode:
    """Parse a condition; an empty text is true. Raises UsageError."""
    from lark.exceptions import LarkError, UnexpectedInput

    if not text.strip():
        return TRUE
    if len(text) > _LONGEST or text.count("(") + text.count("not") > _DEEPEST:
        raise UsageError(f"condition: got {len(text)} characters; at most {_LONGEST}, and {_DEEPEST} '(' and 'not'")
    try:
        return _node(_grammar().parse(text))
    except UnexpectedInput as error:
        rest = text[error.pos_in_stream :][:20] if isinstance(error.pos_in_stream, int) else ""
        got = f"'{rest}' in column {error.column}" if rest and error.pos_in_stream >= 0 else "the end"
        raise UsageError(f"condition '{text}': got {got}, expected such as 'speed_kmh > 50 and not dark'") from error
    except LarkError as error:
        raise UsageError(f"condition '{text}': cannot be read: {error}") from error


def refuse_unknown_names(
    text: str, predicates: Mapping[str, Predicate], elements: Collection[str], where: str = "condition"
) -> None:
    """Refuse a condition with unknown names, or with comparisons between kinds that cannot be compared.

    Raises UsageError: names the place, the word and the nearest that exists.
    """
    try:
        tree = parse(text)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    for name in tree.elements:
        if name not in elements:
            raise UsageError(f"{where}: no element '{name}'{suggest(name, elements)}")
    for node in _leaves(tree):
        _refuse_leaf(node, predicates, where)


def _refuse_leaf(node: ConditionNode, predicates: Mapping[str, Predicate], where: str) -> None:
    for name in node.names:
        if name not in predicates:
            raise UsageError(f"{where}: no predicate '{name}'{suggest(name, predicates)}")
    if node.kind == "flag":
        kinds, fits = [predicates[node.parts[0]].kind], predicates[node.parts[0]].kind == "flag"
    else:
        kinds = [predicates[side.parts[0]].kind if side.kind == "name" else side.kind for side in node.parts[::2]]
        names = {"word": "name"}
        one, other = (names.get(kind, kind) for kind in kinds)
        fits = one == other and (one == "number" or (one == "name" and node.parts[1] in ("==", "!=")))
    if not fits:
        raise UsageError(
            f"{where}: '{written(node)}' has {' and '.join(kinds)}; flags stand alone, numbers are compared with "
            "numbers, names with == or != with names and 'words'"
        )


def evaluate(text: str, facts: Facts) -> bool | None:
    """Return whether a condition holds, None if the known facts do not decide it.

    Raises UsageError: it cannot be read.
    """
    left = known(parse(text), facts)
    return {"true": True, "false": False}.get(left.kind)


def missing(text: str, facts: Facts) -> tuple[str, ...]:
    """Return the names of predicates whose values would decide an unknown condition."""
    left = known(parse(text), facts)
    needed = (*left.names, *map(presence_of, left.elements))
    return tuple(dict.fromkeys(name for name in needed if name not in facts))


def known(node: ConditionNode, facts: Facts) -> ConditionNode:
    """Return a condition simplified by the known facts: only unknown facts are left."""
    if node.kind in ("both", "either"):
        ends, drops = ("false", "true") if node.kind == "both" else ("true", "false")
        parts = [known(part, facts) for part in node.parts]
        if any(part.kind == ends for part in parts):
            return ConditionNode(ends)
        left = tuple(part for part in parts if part.kind != drops)
        return ConditionNode(node.kind, left) if len(left) > 1 else left[0] if left else ConditionNode(drops)
    if node.kind == "not_":
        inner = known(node.parts[0], facts)
        return {"true": FALSE, "false": TRUE}.get(inner.kind) or ConditionNode("not_", (inner,))
    if node.kind == "compare":
        return _compared(node, facts)
    if node.kind == "flag" and isinstance(value := facts.get(node.parts[0]), bool):
        return TRUE if value else FALSE
    if node.kind == HAS and (present := _present(node.parts[0], facts)) is not None:
        return TRUE if present else FALSE
    return node


def presence_of(element: str) -> str:
    """Return the name of the fact whether an element is present."""
    return f"{HAS}({element})"


def element_of(fact: str) -> str:
    """Return the element whose presence a fact is about, empty for any other fact."""
    return fact[len(HAS) + 1 : -1] if fact.startswith(f"{HAS}(") and fact.endswith(")") else ""


def _present(element: str, facts: Facts) -> bool | None:
    """Return whether an element is present, None if nobody looked for it."""
    if isinstance(stated := facts.get(presence_of(element)), bool):
        return stated
    present, looked_for = facts.get(HAS), facts.get(LOOKED_FOR)
    if not _is_names(present):
        return None
    return True if element in present else None if _is_names(looked_for) and element not in looked_for else False


def _is_names(value: Any) -> TypeGuard[Collection[str]]:
    return isinstance(value, Collection) and not isinstance(value, str)


def conjunction(*texts: str) -> str:
    """Return the conjunction of conditions, each once, in their order."""
    parts: list[ConditionNode] = []
    for tree in map(parse, texts):
        parts += tree.parts if tree.kind == "both" else () if tree == TRUE else (tree,)
    distinct = tuple(dict.fromkeys(parts))
    return "" if not distinct else written(distinct[0] if len(distinct) == 1 else ConditionNode("both", distinct))


def written(node: ConditionNode) -> str:
    """Return the text of a condition, empty if it is always true."""
    return "" if node == TRUE else _text(node)


def _text(node: ConditionNode) -> str:
    if node.kind in ("both", "either"):
        word = " and " if node.kind == "both" else " or "
        return word.join(f"({_text(p)})" if p.kind in ("both", "either") else _text(p) for p in node.parts)
    if node.kind == "not_":
        inner = _text(node.parts[0])
        return f"not ({inner})" if node.parts[0].kind in ("both", "either", "compare") else f"not {inner}"
    if node.kind == "compare":
        left, sign, right = node.parts
        return f"{_text(left)} {sign} {_text(right)}"
    if node.kind == HAS:
        return f"has({node.parts[0]})"
    formats = {"number": "{:.10g}", "word": "'{}'"}
    return formats.get(node.kind, "{}").format(*(node.parts or (node.kind,)))


def _compared(node: ConditionNode, facts: Facts) -> ConditionNode:
    left, sign, right = node.parts
    a, b = _value(left, facts), _value(right, facts)
    if a is None or b is None or isinstance(a, str) != isinstance(b, str):
        return ConditionNode(
            "compare", (left if a is None else _constant(a), sign, right if b is None else _constant(b))
        )
    return TRUE if _COMPARE[sign](a, b) else FALSE


def _constant(value: float | str) -> ConditionNode:
    return ConditionNode("word" if isinstance(value, str) else "number", (value,))


def _value(node: ConditionNode, facts: Facts) -> float | str | None:
    if node.kind in ("number", "word"):
        return node.parts[0]  # type: ignore[no-any-return]
    value = facts.get(node.parts[0])
    if isinstance(value, str):
        return value
    usable = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    return float(value) if usable else None  # type: ignore[arg-type]


def _leaves(node: ConditionNode) -> Iterator[ConditionNode]:
    if node.kind in ("compare", "flag"):
        yield node
    elif node.kind in ("both", "either", "not_"):
        for part in node.parts:
            yield from _leaves(part)


@lru_cache(maxsize=1)
def _grammar() -> Lark:
    from lark import Lark

    return Lark(Path(__file__).with_name("condition.lark").read_text(encoding="utf-8"), parser="lalr")


def _node(tree: Any) -> ConditionNode:
    parts = tree.children
    if tree.data in ("flag", "name", HAS):
        return ConditionNode(str(tree.data), (str(parts[0]),))
    if tree.data == "number":
        return ConditionNode("number", (float(parts[0]),))
    if tree.data == "word":
        return ConditionNode("word", (str(parts[0])[1:-1],))
    if tree.data == "compare":
        return ConditionNode("compare", (_node(parts[0]), str(parts[1]), _node(parts[2])))
    return ConditionNode(str(tree.data), tuple(map(_node, parts)))
