# SPDX-License-Identifier: Apache-2.0
"""Problems of a script and their places, and repairs of lenient reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mt_nodes.base.errors import UsageError, printable

#: An error's text lists so many problems; for the rest it gives the number.
_MOST_LISTED = 50


@dataclass(frozen=True)
class Span:
    """A range of a script's text.

    Attributes:
        start, end: offsets of characters, end exclusive. line, column: of its start, from 1.
        file: the script's name.
    """

    start: int
    end: int
    line: int
    column: int
    file: str


@dataclass(frozen=True)
class Problem:
    """A problem, or (as a warning) a repair or a probable mistake.

    Attributes:
        got, expected: what is there and what should be; expected is empty if nothing else would do.
        hint: what to do about it.
    """

    at: Span
    got: str
    expected: str = ""
    hint: str = ""

    def __str__(self) -> str:
        expected = f", expected {self.expected}" if self.expected else ""
        hint = f"; {self.hint.removeprefix('; ')}" if self.hint else ""
        return printable(f"{self.at.file}:{self.at.line}:{self.at.column}: got {self.got}{expected}{hint}")


@dataclass(frozen=True)
class Edit:
    """A range of the text, by offsets of characters, and its replacement."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Repair:
    """A repair of lenient reading: a problem in strict reading, else a warning."""

    problem: Problem
    edits: tuple[Edit, ...] = ()


class ValueRefusal(Exception):
    """Raised for a value that cannot be used; carries the problems, or none if they are reported already."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


class ScenarioError(UsageError):
    """Raised if a script cannot be used; ``problems`` lists all errors in the order of the lines."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems]
        head = f"{lines[0].partition(':')[0]}: {len(lines)} problems"
        more = [f"and {len(lines) - _MOST_LISTED} more"] if len(lines) > _MOST_LISTED else []
        super().__init__(lines[0] if len(lines) == 1 else "\n    | ".join([head, *lines[:_MOST_LISTED], *more]))


@dataclass
class Findings:
    """Problems and warnings of reading a script; repairs are problems if ``strict``.

    ``edits``: turn the text of the script itself into strict form.
    """

    strict: bool
    problems: dict[Problem, None] = field(default_factory=dict)  # each once
    warnings: list[Problem] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)

    def repaired(self, repair: Repair) -> None:
        """Record a repair."""
        if self.strict:
            self.problems[repair.problem] = None
        else:
            self.warnings.append(repair.problem)
        self.edits.extend(repair.edits)

    def refused(self, refusal: ValueRefusal) -> None:
        """Record the unreported problems of a refusal."""
        self.problems.update(dict.fromkeys(refusal.problems))

    @property
    def in_order(self) -> list[Problem]:
        """The problems by file, in the order of lines."""
        return sorted(self.problems, key=lambda problem: (problem.at.file, problem.at.line, problem.at.column))
