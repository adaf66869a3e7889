# SPDX-License-Identifier: Apache-2.0
"""Parses a script into a syntax tree, and reports all syntax errors at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import suggest
from mt_nodes.world.scenarios.language import tree
from mt_nodes.world.scenarios.language.problems import Findings, Problem, ScenarioError, Span
from mt_nodes.world.scenarios.language.tokenizer import CLOSING, KEYWORDS, OPENING, grammar, span_of, split
from mt_nodes.world.scenarios.temporal.formula import SIGNALS, TEMPORAL

if TYPE_CHECKING:
    from lark import Token

DEEPEST = 50
"""Values inside each other: more than anybody writes, fewer than Python's stack bears."""
_READABLE = {"NAME": "a name", "NUMBER": "a number", "STRING": 'a text in "quotes"', "CLOCK": "a time of day"}
_READABLE |= {"$END": "the end of the statement", "DOTS": "'...'", "LBRACE": "'{'", "RBRACE": "'}'"}
_READABLE |= {"SEMICOLON": "';'", "EQUAL": "'='", "CLAIM": "'|='", "COMPARE": "a comparison", "OR": "'|'"}
_READABLE |= {"LSQB": "'['", "RSQB": "']'"}
_BEGINNINGS = {"NAME", "NUMBER", "STRING", "CLOCK", "OPEN", "LBRACE", "PLUS", "MINUS"}
_FORMULAS = {"NAME", "NUMBER", "OPEN", "PLUS", "MINUS", "NOT", "ALWAYS", "EVENTUALLY", "NEXT"}
_FORMULA_ONLY = {"COMPARE", "NOT", "OR", "LSQB"}
"""Tokens that no value has: the statement defines a formula, or a part of one."""
_OPERATORS = {"PLUS", "MINUS", "TIMES", "OVER"}
#: A scenario takes a thousand; so many statements of one value take some seconds.
MOST_CHARACTERS = 250_000
_REST = {"HIGH", "ARROW", "DEG", "RAD", "PI", "RANGE", "DOTS", "OTHER", "OPERATOR"}


def parse(text: str, name: str = "script", strict: bool = False) -> tree.Script:
    """Return the syntax tree of a script.

    ``name``: of the script, for messages. ``strict``: whether what lenient reading repairs is an error.
    Raises ScenarioError: with everything that is wrong.
    """
    findings = Findings(strict)
    statements = statements_of(text, name, findings)
    if findings.problems:
        raise ScenarioError(findings.in_order)
    return tree.Script(name, statements, tuple(findings.warnings), tuple(findings.edits))


def statements_of(text: str, name: str, findings: Findings) -> tuple[tree.Node, ...]:
    """Return the statements that can be parsed; findings report the others."""
    if len(text) > MOST_CHARACTERS:
        start = Span(0, 0, 1, 1, name)
        findings.problems[Problem(start, f"{len(text):,} characters", f"at most {MOST_CHARACTERS:,}")] = None
        return ()
    statements: list[tree.Node] = []
    formulas: set[str] = set()
    for tokens in split(text, name, findings):
        statement = _statement(_defining(tokens, formulas), name, findings)
        statements += [] if statement is None else [statement]
        formulas |= {statement.name} if isinstance(statement, tree.Definition) else set()
    return tuple(statements)


def _defining(tokens: list[Token], formulas: Collection[str]) -> list[Token]:
    """Return a statement with ``DEFINES`` for its ``=`` if a formula, or a part of one, follows.

    ``formulas``: names that stand for such.
    """
    if len(tokens) < 4 or tokens[1].type != "EQUAL" or any(token.type == "LBRACE" for token in tokens):
        return tokens
    calls = tokens[3].type == "OPEN" and str(tokens[2]) in (*SIGNALS, *TEMPORAL)
    if calls or any(token.type in _FORMULA_ONLY or str(token) in formulas for token in tokens[2:]):
        equal = tokens[1]
        return [tokens[0], type(equal).new_borrow_pos("DEFINES", str(equal), equal), *tokens[2:]]
    return tokens


def _statement(tokens: Sequence[Token], name: str, findings: Findings) -> tree.Node | None:
    """Feed one statement to the parser, token by token."""
    from lark.exceptions import UnexpectedToken

    parser = grammar().parse_interactive()
    nesting = Nesting()
    for read, following in zip_longest(tokens, tokens[1:]):
        token = _named(read, following, parser.choices())
        nesting.enter(token.type)
        if nesting.depth > DEEPEST:
            problem = Problem(span_of(token, name), f"more than {DEEPEST} values inside each other", "fewer")
            return _broken(tokens, problem, name, findings)
        try:
            parser.feed_token(token)
        except UnexpectedToken:
            return _broken(tokens, _unexpected(parser, token, name, nesting.open), name, findings)
    last = tokens[-1]
    if last.type != "SEMICOLON" or nesting.open:
        end = span_of(last, name).end
        at = Span(end, end, last.end_line or 1, last.end_column or 1, name)
        problem = Problem(at, "the end of the statement", _expected(set(parser.accepts())))
        return _broken(tokens, problem, name, findings)
    return _node(parser.feed_eof(last), span_of(tokens[0], name), name)


def _named(token: Token, following: Token | None, choices: Collection[str]) -> Token:
    """Return a keyword as a name if the grammar has no place for the word there, or if it is defined there."""
    defined = following is not None and following.type in ("EQUAL", "DEFINES")
    if token.type in KEYWORDS and (token.type not in choices or defined):
        return type(token).new_borrow_pos("NAME", str(token), token)
    return token


def _broken(tokens: Sequence[Token], problem: Problem, name: str, findings: Findings) -> tree.Node | None:
    findings.problems[problem] = None
    defined = [token for token, equal in pairwise(tokens) if equal.type in ("EQUAL", "DEFINES")]
    return tree.Broken(span_of(defined[0], name), str(defined[0])) if defined else None


class Nesting:
    """Nesting depth, by brackets and by successive operators."""

    def __init__(self) -> None:
        self._operators = [0]

    @property
    def open(self) -> int:
        """Number of open brackets."""
        return len(self._operators) - 1

    @property
    def depth(self) -> int:
        """Open brackets, and the operators so far in each of them."""
        return self.open + sum(self._operators)

    def enter(self, kind: str) -> None:
        """Advance to a token of a kind."""
        if kind in OPENING:
            self._operators.append(0)
        elif kind in CLOSING and self.open:
            self._operators.pop()
        elif kind in ("COMMA", "SEMICOLON"):
            self._operators[-1] = 0
        elif kind in ("PLUS", "MINUS", "TIMES", "OVER", "HIGH"):
            self._operators[-1] += 1


def _unexpected(parser: Any, token: Token, name: str, deep: int) -> Problem:
    accepts = set(parser.accepts())
    got = "the beginning of a text without an end" if token == '"' else f"'{token}'"
    hint = ""
    if token == '"':
        hint = 'texts end with " on the same line'
    elif token.type in ("NAME", *KEYWORDS):
        words = {str(t.pattern.value) for t in grammar().terminals if t.name in accepts & set(KEYWORDS)}
        hint = suggest(str(token), words) if words and "did you mean" in suggest(str(token), words) else ""
    elif token.type == "EQUAL" and deep:
        hint = "is a bracket open?"
    return Problem(span_of(token, name), got, _expected(accepts), hint)


def _expected(accepts: set[str]) -> str:
    accepts = accepts - {"DEFINES"}
    for group, words in ((_BEGINNINGS, "a value"), (_FORMULAS, "a formula"), (_OPERATORS, "an operator")):
        if accepts >= group:
            accepts = (accepts - group - _REST) | {words}
    marks = {t.name: f"'{t.pattern.value}'" for t in grammar().terminals if t.pattern.type == "str"}
    names = sorted(_READABLE.get(kind) or marks.get(kind) or kind for kind in accepts)
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _node(item: Any, around: Span, name: str) -> tree.Node:
    """Convert a node of the parser; ``around`` is its place if it has no text of its own."""
    from lark import Token

    if isinstance(item, Token):
        return _LEAVES[item.type](span_of(item, name), str(item))
    at = _span(item, around, name)
    node: tree.Node = _BRANCHES[item.data](at, item.children, lambda child: _node(child, at, name))
    return node


def _span(item: Any, around: Span, name: str) -> Span:
    meta = item.meta
    if getattr(meta, "empty", True):
        return around
    return Span(meta.start_pos, meta.end_pos, meta.line, meta.column, name)


def _clock(at: Span, text: str) -> tree.Node:
    hour, minute = text.split(":")
    return tree.Clock(at, int(hour), int(minute))


_LEAVES: dict[str, Callable[[Span, str], tree.Node]] = {
    "NUMBER": lambda at, text: tree.Number(at, float(text)),
    "STRING": lambda at, text: tree.Text(at, text[1:-1]),
    "CLOCK": _clock,
    "NAME": tree.Name,
    "DOTS": lambda at, _: tree.Dots(at),
}

_Make = Callable[[Any], tree.Node]


def _slots(children: Sequence[Any], make: _Make) -> tuple[tree.Node, ...]:
    """Return the contents of slots; a single empty one is none."""
    slots = tuple(make(child) for child in children)
    return () if len(slots) == 1 and isinstance(slots[0], tree.Empty) else slots


def _slot(at: Span, children: list[Any], make: _Make) -> tree.Node:
    return tree.Empty(at) if children[0] is None else make(children[0])


def _values(children: list[Any], make: _Make) -> tuple[tree.Node, ...]:
    return tuple(make(child) for child in children if child is not None)


def _turned(at: Span, children: list[Any], make: _Make) -> tree.Node:
    reference = None if children[-1] is None else make(children[-1])
    return tree.RelativeAngle(at, make(children[0]), str(children[1]), reference)


_BRANCHES: dict[str, Callable[[Span, list[Any], _Make], Any]] = {
    "import_": lambda at, c, make: tree.Import(at, str(c[1])[1:-1]),
    "parameter": lambda at, c, make: tree.Parameter(at, str(c[1]), make(c[2])),
    "assignment": lambda at, c, make: tree.Assignment(at, str(c[1]), make(c[2]), str(c[0] or "")),
    "claim": lambda at, c, make: tree.Claim(at, str(c[0]), make(c[2])),
    "definition": lambda at, c, make: tree.Definition(at, str(c[0]), make(c[2])),
    "implication": lambda at, c, make: tree.Junction(at, "->", (make(c[0]), make(c[1]))),
    "conjunction": lambda at, c, make: tree.Junction(at, "&", tuple(map(make, c[::2]))),
    "disjunction": lambda at, c, make: tree.Junction(at, "|", tuple(map(make, c[::2]))),
    "until": lambda at, c, make: tree.Until(at, make(c[0]), _bounds(c[2], make), make(c[3])),
    "negation": lambda at, c, make: tree.Negation(at, make(c[1])),
    "temporal": lambda at, c, make: tree.Temporal(at, str(c[0]), _bounds(c[1], make), make(c[2])),
    "bounds": lambda at, c, make: tree.BoundsNode(at, make(c[0]), make(c[-1])),
    "comparison": lambda at, c, make: tree.ComparisonNode(at, make(c[0]), str(c[1]), make(c[2])),
    "state": lambda at, c, make: tree.Subscript(at, make(c[0]), str(c[1]).strip('"')),
    "signal": lambda at, c, make: tree.Call(at, str(c[0]), tuple(map(make, c[1:]))),
    "place": lambda at, c, make: tree.Row(at, tuple(map(make, c))),
    "name": lambda at, c, make: tree.Name(at, str(c[0])),
    "on_lane": lambda at, c, make: tree.OnLane(at, make(c[0]), make(c[1])),
    "spread": lambda at, c, make: tree.Spread(at, make(c[0]), make(c[2]), make(c[3])),  # type: ignore[arg-type]
    "turned": _turned,
    "binary": lambda at, c, make: tree.Binary(at, make(c[0]), str(c[1]), make(c[2])),
    "signed": lambda at, c, make: tree.SignedValue(at, str(c[0]), make(c[1])),
    "times_pi": lambda at, c, make: tree.TimesPi(at, make(c[0])),
    "call": lambda at, c, make: tree.Call(at, str(c[0]), _slots(c[1:], make)),
    "row": lambda at, c, make: tree.Row(at, _slots(c, make)),
    "braces": lambda at, c, make: tree.Braces(at, _values(c, make)),
    "attributes": lambda at, c, make: tree.Attributes(at, _values(c, make)),  # type: ignore[arg-type]
    "pair": lambda at, c, make: tree.AttributeNode(at, str(c[0]).strip('"'), make(c[1])),
    "block": lambda at, c, make: tree.Block(at, str(c[0]), _block(c[1:], make)),
    "slot": _slot,
}


def _bounds(child: Any, make: _Make) -> tree.BoundsNode | None:
    return None if child is None else make(child)  # type: ignore[return-value]


def _block(children: list[Any], make: _Make) -> tuple[tree.Node, ...]:
    """Return the parts of a scenario; a trailing ``;`` adds none."""
    parts = tuple(make(child) for child in children)
    return parts[:-1] if isinstance(parts[-1], tree.Empty) else parts
