# SPDX-License-Identifier: Apache-2.0
"""The syntax tree of a script; equal trees say the same, wherever they stand."""

from __future__ import annotations

from dataclasses import dataclass, field

from mt_nodes.world.scenarios.language.problems import Edit, Problem, Span


@dataclass(frozen=True)
class Node:
    """Something written in a script, and where."""

    at: Span = field(compare=False)


@dataclass(frozen=True)
class Number(Node):
    """A number without a sign."""

    value: float


@dataclass(frozen=True)
class Text(Node):
    """What stands in double quotes."""

    value: str


@dataclass(frozen=True)
class Clock(Node):
    """A time of day."""

    hour: int
    minute: int


@dataclass(frozen=True)
class Name(Node):
    """The name of something defined before, or a word of the language."""

    name: str


@dataclass(frozen=True)
class Empty(Node):
    """A slot left empty: its default."""


@dataclass(frozen=True)
class Dots(Node):
    """``...``: any number of slots left empty."""


@dataclass(frozen=True)
class SignedValue(Node):
    """A sign before a value."""

    sign: str
    value: Node


@dataclass(frozen=True)
class TimesPi(Node):
    """A number times π, as ``0.5 pi``."""

    value: Node


@dataclass(frozen=True)
class Binary(Node):
    """Two values and what joins them."""

    left: Node
    operator: str
    right: Node


@dataclass(frozen=True)
class Row(Node):
    """Values in round brackets."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Braces(Node):
    """A set."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class AttributeNode(Node):
    """An attribute."""

    key: str
    value: Node


@dataclass(frozen=True)
class Attributes(Node):
    """Attributes of one thing."""

    pairs: tuple[AttributeNode, ...]


@dataclass(frozen=True)
class Call(Node):
    """A word and, in round brackets, what it is about."""

    name: str
    items: tuple[Node, ...]


@dataclass(frozen=True)
class Block(Node):
    """A scenario."""

    name: str
    items: tuple[Node, ...]


@dataclass(frozen=True)
class OnLane(Node):
    """A place on a lane, so far from its beginning."""

    lane: Node
    station: Node


@dataclass(frozen=True)
class Spread(Node):
    """A coordinate, and the ranges of what is added to its parts."""

    coordinate: Node
    x: Row
    y: Row


@dataclass(frozen=True)
class RelativeAngle(Node):
    """An angle, its unit, and what it is measured from."""

    angle: Node
    unit: str
    reference: Node | None


@dataclass(frozen=True)
class Import(Node):
    """Another script whose names are used."""

    path: str


@dataclass(frozen=True)
class Assignment(Node):
    """A name for a value; ``type`` is empty where none was demanded."""

    name: str
    value: Node
    type: str = ""


@dataclass(frozen=True)
class Parameter(Node):
    """A name for a value that may be given from outside."""

    name: str
    value: Node


@dataclass(frozen=True)
class Claim(Node):
    """What is claimed of a trace, as its words."""

    trace: str
    formula: tuple[str, ...]


@dataclass(frozen=True)
class Broken(Node):
    """A statement that cannot be read, and the name that it would define."""

    name: str


@dataclass(frozen=True)
class Script:
    """A script that was read.

    Attributes:
        warnings: what was repaired in reading, none in strict mode. edits: by which the text becomes strict.
    """

    name: str = field(compare=False)
    statements: tuple[Node, ...]
    warnings: tuple[Problem, ...] = field(default=(), compare=False)
    edits: tuple[Edit, ...] = field(default=(), compare=False)
