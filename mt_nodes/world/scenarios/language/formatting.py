# SPDX-License-Identifier: Apache-2.0
"""Formats a script in strict form: repairs applied, one statement per line, comments kept in place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mt_nodes.world.scenarios.language.parsing import parse
from mt_nodes.world.scenarios.language.problems import Edit, Findings
from mt_nodes.world.scenarios.language.resolver import Resolver
from mt_nodes.world.scenarios.language.tokenizer import CLOSING, KEYWORDS, OPENING, SCENARIO, grammar, split

if TYPE_CHECKING:
    from lark import Token

WIDTH = 100
_INDENT = " " * 4
_ROUNDS = 5
_VALUES = ("NAME", "NUMBER", "STRING", "CLOCK", *KEYWORDS, *CLOSING)


def format_script(text: str, name: str = "script", path: Path | None = None) -> str:
    """Return a script in strict form.

    ``path``: of the script, to find its imports; without it, the meaning of ``...`` may stay unknown.
    Raises ScenarioError: its syntax is wrong, beyond the repairs of lenient reading.
    """
    for _ in range(_ROUNDS):  # a repair inside of what another repair moves comes in the next round
        edits = _edits(text, name, path)
        if not edits:
            break
        text = edited(text, edits)
    return _printed(text, name)


def _edits(text: str, name: str, path: Path | None) -> list[Edit]:
    script = parse(text, name)
    findings = Findings(strict=False)
    Resolver(name, path, findings, {}, 0).run(script.statements)
    return [*script.edits, *findings.edits]


def edited(text: str, edits: Sequence[Edit]) -> str:
    """Return a text after edits; of two that overlap, only the first applies."""
    parts, position = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start >= position:
            parts += [text[position : edit.start], edit.text]
            position = edit.end
    return "".join([*parts, text[position:]])


def _printed(text: str, name: str) -> str:
    """Return a text of strict syntax, reformatted."""
    lines: list[str] = []
    last_line = 0
    for part in _parts(text, name):
        begins, ends = part[0].line or 1, part[-1].end_line or 1
        if part[0].type == "COMMENT" and begins == last_line and lines:
            lines[-1] += f"  {part[0].rstrip()}"
        else:
            if lines and begins > last_line + 1:
                lines.append("")
            lines += [part[0].rstrip()] if part[0].type == "COMMENT" else _Printer(part).lines
        last_line = ends
    return "".join(f"{line}\n" for line in lines)


def _parts(text: str, name: str) -> Iterator[list[Token]]:
    """Yield each statement with the comments inside of it, and each comment between statements."""
    everything = [t for t in grammar().lex(text, dont_ignore=True) if not t.type.startswith("__")]
    ends = {statement[-1].start_pos for statement in split(text, name, Findings(strict=False))}
    statement: list[Token] = []
    for token in everything:
        if token.type == "COMMENT" and not statement:
            yield [token]
            continue
        statement.append(token)
        if token.start_pos in ends:
            yield statement
            statement = []


class _Printer:
    """Prints one statement: on one line if it is short, else with its outermost brackets on lines of their own."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.lines: list[str] = []
        spaces = list(_spaces(tokens))
        flat = "".join(space + token for space, token in zip(spaces, tokens, strict=True))
        if SCENARIO not in tokens and len(flat) <= WIDTH and all(token.type != "COMMENT" for token in tokens):
            self.lines.append(flat)
        else:
            self._open(tokens, spaces)

    def _open(self, tokens: Sequence[Token], spaces: Sequence[str]) -> None:
        depth, breaks, before = 0, True, None
        for token, space in zip(tokens, spaces, strict=True):
            opens, closes = token.type in OPENING, token.type in CLOSING
            if token.type == "COMMENT":
                self._comment(token, before)
                breaks = True
            elif closes and depth == 1 and before is not None and before.type not in OPENING:
                self.lines.append(token)
                breaks = False
            else:
                empty = closes and before is not None and before.type in OPENING
                self._add(token, space, breaks and not empty)
                breaks = depth + opens == 1 and (opens or token.type in ("COMMA", "SEMICOLON"))
            depth += opens - closes
            before = token

    def _add(self, token: str, space: str, breaks: bool) -> None:
        if not self.lines:
            self.lines.append(token)
        elif breaks:
            self.lines.append(_INDENT + token)
        else:
            self.lines[-1] += space + token

    def _comment(self, token: Token, before: Token | None) -> None:
        text = token.rstrip()
        if before is not None and before.end_line == token.line:
            self.lines[-1] += f"  {text}"
        else:
            self.lines.append(_INDENT + text)


def _spaces(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the whitespace before each token."""
    earlier: Token | None = None
    before: Token | None = None
    tight = True  # whether nothing may stand between the last token and the next
    for token in tokens:
        called = before is not None and (before.type == "NAME" or (before.type == "RANGE" and not _is_value(earlier)))
        joins = _joins(before, token) or (token.type == "OPEN" and called)
        yield "" if tight or joins else " "
        signed = token.type in ("PLUS", "MINUS") and not _is_value(before)
        tight = signed or token.type in OPENING or token == "["
        earlier, before = before, token


def _is_value(token: Token | None) -> bool:
    return token is not None and token.type in _VALUES


def _joins(before: Token | None, token: Token) -> bool:
    """Return whether a token joins any previous token except a comma."""
    if token.type == "COMMA":
        return before is not None and before.type != "COMMA"
    return token.type in ("SEMICOLON", "COLON", *CLOSING) or token in ("[", "]")
