# SPDX-License-Identifier: Apache-2.0
"""Splits a script into the tokens of its statements; repairs brackets and missing ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from mt_nodes.world.scenarios.language.problems import Edit, Findings, Problem, Repair, Span

if TYPE_CHECKING:
    from lark import Lark, Token

GRAMMAR = Path(__file__).with_name("scenario.lark")
KEYWORDS = (
    "IMPORT",
    "PARAMETER",
    "RANGE",
    "DEG",
    "RAD",
    "RELATED",
    "TO",
    "PI",
    "ALWAYS",
    "EVENTUALLY",
    "NEXT",
    "UNTIL",
)
"""Tokens that are names wherever the grammar has no place for the word itself."""
_WORDS = ("NAME", *KEYWORDS)
OPENING, CLOSING = ("OPEN", "LBRACE"), ("CLOSE", "RBRACE")
SCENARIO = "CreateScenario"


class _WithOthers:
    """Keeps ``OTHER``, which no rule has: any other character is a token, and the statement with it is refused."""

    always_accept: Iterable[str] = ("OTHER",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """Return the tokens as they are."""
        return stream


@lru_cache(maxsize=1)
def grammar() -> Lark:
    """Return the parser, cached."""
    from lark import Lark

    text, others = GRAMMAR.read_text(encoding="utf-8"), _WithOthers()
    return Lark(text, parser="lalr", postlex=others, propagate_positions=True, maybe_placeholders=True)


def span_of(token: Token, name: str) -> Span:
    """Return the place of a token."""
    start = token.start_pos or 0
    return Span(start, start + len(token), token.line or 1, token.column or 1, name)


def split(text: str, name: str, findings: Findings) -> list[list[Token]]:
    """Return the tokens of each statement, including its ``;``.

    A statement ends at a ``;`` outside of brackets, and before a line that begins with ``name =``: neither occurs
    within one, so that an error in a statement does not affect the next.
    """
    tokens = list(grammar().lex(text))
    statements: list[list[Token]] = []
    current: list[Token] = []
    depth = 0
    for i, token in enumerate(tokens):
        if current and _begins(tokens, i):
            statements.append(current if depth else [*current, _ended(current[-1], name, findings)])
            current, depth = [], 0
        current.append(token)
        depth = max(0, depth + (token.type in OPENING) - (token.type in CLOSING))
        if token.type == "SEMICOLON" and depth == 0:
            statements.append(current)
            current = []
    if current:
        statements.append(current if depth else [*current, _ended(current[-1], name, findings)])
    return [_bracketed(statement, name, findings) for statement in statements]


def _begins(tokens: Sequence[Token], i: int) -> bool:
    """Return whether a statement begins here: a name and ``=`` at the beginning of a line."""
    if tokens[i].type not in _WORDS or tokens[i].line == tokens[i - 1].end_line:
        return False
    following = [token.type for token in tokens[i + 1 : i + 3]]
    if following[:1] == ["STRING"]:
        return bool(tokens[i].type == "IMPORT")
    if following[:1] and following[0] in _WORDS:
        following = following[1:]
    return following[:1] in (["EQUAL"], ["CLAIM"])


def _ended(last: Token, name: str, findings: Findings) -> Token:
    from lark import Token

    end = (last.start_pos or 0) + len(last)
    at = Span(end, end, last.end_line or 1, last.end_column or 1, name)
    problem = Problem(at, f"no ';' after '{last}'", "';' at the end of a statement")
    findings.repaired(Repair(problem, (Edit(end, end, ";"),)))
    return Token("SEMICOLON", ";", end, at.line, at.column, at.line, at.column + 1, end + 1)


def _bracketed(tokens: list[Token], name: str, findings: Findings) -> list[Token]:
    """Return a statement with its scenario in braces, as in the grammar, whatever brackets it had."""
    k = next((i for i, token in enumerate(tokens) if token == SCENARIO), None)
    if k is None or k + 1 >= len(tokens) or tokens[k + 1].type not in OPENING:
        return tokens
    close = _closing(tokens, k + 1)
    for i, kind, mark in ((k + 1, "LBRACE", "{"), (close, "RBRACE", "}")):
        if i is not None and tokens[i].type != kind:
            tokens = [*tokens[:i], _instead(tokens[i], kind, mark, name, findings), *tokens[i + 1 :]]
    return tokens


def _closing(tokens: Sequence[Token], opening: int) -> int | None:
    depth = 0
    for i, token in enumerate(tokens[opening:], opening):
        depth += (token.type in OPENING) - (token.type in CLOSING)
        if depth == 0:
            return i
    return None


def _instead(token: Token, kind: str, mark: str, name: str, findings: Findings) -> Token:
    from lark import Token

    at = span_of(token, name)
    problem = Problem(at, f"'{token}'", f"'{mark}' around the parts of {SCENARIO}")
    findings.repaired(Repair(problem, (Edit(at.start, at.end, mark),)))
    return Token.new_borrow_pos(kind, mark, token)
