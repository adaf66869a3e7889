# SPDX-License-Identifier: Apache-2.0
"""The syntax tree of a script; nodes compare equal regardless of their places."""

from __future__ import annotations

from dataclasses import dataclass, field

from mt_nodes.world.scenarios.language.problems import Edit, Problem, Span


@dataclass(frozen=True)
class Node:
    """A node and its place in the script."""

    at: Span = field(compare=False)


@dataclass(frozen=True)
class Number(Node):
    """A number without a sign."""

    value: float


@dataclass(frozen=True)
class Text(Node):
    """A text in double quotes."""

    value: str


@dataclass(frozen=True)
class Clock(Node):
    """A time of day."""

    hour: int
    minute: int


@dataclass(frozen=True)
class Name(Node):
    """The name of an earlier definition, or a word of the language."""

    name: str


@dataclass(frozen=True)
class Empty(Node):
    """An empty slot: its default."""


@dataclass(frozen=True)
class Dots(Node):
    """``...``: any number of empty slots."""


@dataclass(frozen=True)
class SignedValue(Node):
    """A value with a sign."""

    sign: str
    value: Node


@dataclass(frozen=True)
class TimesPi(Node):
    """A number times π, as ``0.5 pi``."""

    value: Node


@dataclass(frozen=True)
class Binary(Node):
    """Two values and their operator."""

    left: Node
    operator: str
    right: Node


@dataclass(frozen=True)
class Row(Node):
    """Values in parentheses."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Braces(Node):
    """A set."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class AttributeNode(Node):
    """A single attribute."""

    key: str
    value: Node


@dataclass(frozen=True)
class Attributes(Node):
    """The attributes of a value."""

    pairs: tuple[AttributeNode, ...]


@dataclass(frozen=True)
class Call(Node):
    """A word with arguments in parentheses."""

    name: str
    items: tuple[Node, ...]


@dataclass(frozen=True)
class Block(Node):
    """A scenario."""

    name: str
    items: tuple[Node, ...]


@dataclass(frozen=True)
class OnLane(Node):
    """A place on a lane, by distance from its start."""

    lane: Node
    station: Node


@dataclass(frozen=True)
class Spread(Node):
    """A coordinate, and the ranges added to its components."""

    coordinate: Node
    x: Row
    y: Row


@dataclass(frozen=True)
class RelativeAngle(Node):
    """An angle, its unit, and its reference."""

    angle: Node
    unit: str
    reference: Node | None


@dataclass(frozen=True)
class Import(Node):
    """An import of another script's names."""

    path: str


@dataclass(frozen=True)
class Assignment(Node):
    """A definition; ``type`` is empty if none is required."""

    name: str
    value: Node
    type: str = ""


@dataclass(frozen=True)
class Parameter(Node):
    """A parameter with a default."""

    name: str
    value: Node


@dataclass(frozen=True)
class ComparisonNode(Node):
    """A comparison of two terms of a formula."""

    left: Node
    operator: str
    right: Node


@dataclass(frozen=True)
class Junction(Node):
    """Formulas joined by ``&``, ``|`` or ``->``."""

    operator: str
    items: tuple[Node, ...]


@dataclass(frozen=True)
class Negation(Node):
    """``~`` before a formula."""

    value: Node


@dataclass(frozen=True)
class BoundsNode(Node):
    """``[a, b]`` of a temporal operator."""

    low: Node
    high: Node


@dataclass(frozen=True)
class Temporal(Node):
    """``G``, ``F`` or ``X`` before a formula."""

    operator: str
    bounds: BoundsNode | None
    value: Node


@dataclass(frozen=True)
class Until(Node):
    """``U`` between two formulas."""

    left: Node
    bounds: BoundsNode | None
    right: Node


@dataclass(frozen=True)
class Subscript(Node):
    """``trace[ego]``, ``trace[truth]`` or ``trace[truth][name]``."""

    value: Node
    key: str


@dataclass(frozen=True)
class Claim(Node):
    """A claim of a formula about a trace."""

    trace: str
    formula: Node


@dataclass(frozen=True)
class Definition(Node):
    """A name for a formula, or for a part of one."""

    name: str
    formula: Node


@dataclass(frozen=True)
class Broken(Node):
    """A statement that cannot be parsed, and the name that it would define."""

    name: str


@dataclass(frozen=True)
class Script:
    """A parsed script.

    ``warnings``: repairs of lenient reading, none in strict mode. ``edits``: make the text strict.
    """

    name: str = field(compare=False)
    statements: tuple[Node, ...]
    warnings: tuple[Problem, ...] = field(default=(), compare=False)
    edits: tuple[Edit, ...] = field(default=(), compare=False)
