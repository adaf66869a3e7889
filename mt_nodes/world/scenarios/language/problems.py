# SPDX-License-Identifier: Apache-2.0
"""What is wrong in a script, and where; what lenient reading repairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mt_nodes.base.errors import UsageError

#: Of more problems an error's text tells only the number.
_MOST_TOLD = 50


@dataclass(frozen=True)
class Span:
    """A stretch of a script.

    Attributes:
        start, end: offsets of characters, the end excluded. line, column: where it begins, from 1.
        file: the script's name.
    """

    start: int
    end: int
    line: int
    column: int
    file: str


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, or (of a warning) that was repaired or looks like a slip.

    Attributes:
        got, expected: what stands there and what should; expected is empty where nothing else would do.
        hint: what to do about it.
    """

    at: Span
    got: str
    expected: str = ""
    hint: str = ""

    def __str__(self) -> str:
        expected = f", expected {self.expected}" if self.expected else ""
        hint = f"; {self.hint.removeprefix('; ')}" if self.hint else ""
        return f"{self.at.file}:{self.at.line}:{self.at.column}: got {self.got}{expected}{hint}"


@dataclass(frozen=True)
class Edit:
    """A stretch of text, by offsets of characters, and what is to stand there instead."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Repair:
    """What lenient reading puts right: a problem in strict reading, a warning else."""

    problem: Problem
    edits: tuple[Edit, ...] = ()


class ValueRefusal(Exception):
    """Raised where a value cannot be used; carries the problems, or none where they have been told already."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


class ScenarioError(UsageError):
    """A script cannot be used; ``problems`` are all that is wrong with it, in the order of its lines."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems]
        head = f"{lines[0].partition(':')[0]}: {len(lines)} problems"
        more = [f"and {len(lines) - _MOST_TOLD} more"] if len(lines) > _MOST_TOLD else []
        super().__init__(lines[0] if len(lines) == 1 else "\n    | ".join([head, *lines[:_MOST_TOLD], *more]))


@dataclass
class Findings:
    """What reading a script brings to light; repairs are problems where ``strict``.

    Attributes:
        edits: that turn the text of the script itself into strict form.
    """

    strict: bool
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)

    def repaired(self, repair: Repair) -> None:
        """Take note of a repair."""
        (self.problems if self.strict else self.warnings).append(repair.problem)
        self.edits.extend(repair.edits)

    def refused(self, refusal: ValueRefusal) -> None:
        """Take note of what a refusal carries and has not been told yet."""
        self.problems += [problem for problem in refusal.problems if problem not in self.problems]

    @property
    def in_order(self) -> list[Problem]:
        """The problems by file, as their lines follow each other."""
        return sorted(self.problems, key=lambda problem: (problem.at.file, problem.at.line, problem.at.column))
