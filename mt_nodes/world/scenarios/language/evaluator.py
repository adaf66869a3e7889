# SPDX-License-Identifier: Apache-2.0
"""Evaluates the expressions of a script."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatchmethod
from typing import Any

from mt_nodes.base.errors import suggest
from mt_nodes.world.scenarios.language import slots, tree
from mt_nodes.world.scenarios.language.functions import FUNCTIONS
from mt_nodes.world.scenarios.language.parsing import DEEPEST
from mt_nodes.world.scenarios.language.plot_builder import plot
from mt_nodes.world.scenarios.language.problems import Findings, Problem, ValueRefusal
from mt_nodes.world.scenarios.language.script_draws import DRAWN, Draws
from mt_nodes.world.scenarios.language.slot_binding import ElidedItems, Model, bind
from mt_nodes.world.scenarios.language.tokenizer import SCENARIO
from mt_nodes.world.scenarios.language.values import (
    AttributeValues,
    Coordinate,
    Ego,
    Heading,
    Hours,
    Item,
    LanePlace,
    Members,
    Participant,
    Plot,
    Values,
    Word,
)


@dataclass(frozen=True)
class Evaluator:
    """Evaluates expressions, given the values of names.

    ``look_up``: returns the value of a name, or raises Refused. ``model``: returns the type that a name like that of
    the current definition implies.
    """

    findings: Findings
    draws: Draws
    look_up: Callable[[tree.Name], Any]
    model: Callable[[], Model | None]

    @singledispatchmethod
    def evaluate(self, node: tree.Node) -> Any:
        """Return the value of a node. Raises Refused: it has none."""
        raise TypeError(node)

    @evaluate.register
    def _(self, node: tree.Number) -> float:
        if not math.isfinite(node.value):
            raise ValueRefusal(Problem(node.at, "a number too large", "one that a computer can hold"))
        return node.value

    @evaluate.register
    def _(self, node: tree.Text) -> str:
        return node.value

    @evaluate.register
    def _(self, node: tree.Name) -> Any:
        return self.look_up(node)

    @evaluate.register
    def _(self, node: tree.Clock) -> Hours:
        if node.hour > 23 or node.minute > 59:
            raise ValueRefusal(Problem(node.at, f"the time {node.hour}:{node.minute:02d}", "0:00 to 23:59"))
        return Hours(node.hour + node.minute / 60.0)

    @evaluate.register
    def _(self, node: tree.Empty) -> None:
        return None

    @evaluate.register
    def _(self, node: tree.Dots) -> ElidedItems:
        return ElidedItems()

    @evaluate.register
    def _(self, node: tree.SignedValue) -> float:
        value = slots.number(self.item(node.value))
        return -value if node.sign == "-" else value

    @evaluate.register
    def _(self, node: tree.TimesPi) -> float:
        return math.pi * slots.number(self.item(node.value))

    @evaluate.register
    def _(self, node: tree.Binary) -> Any:
        left, right = self._all([node.left, node.right])
        return _joined(node, left, right)

    @evaluate.register
    def _(self, node: tree.Row) -> Any:
        items = self._all(node.items)
        for item in items:
            if isinstance(item.data, ElidedItems):
                raise ValueRefusal(Problem(item.at, "'...'", "a value", "it stands for slots of a word, as in AV(…)"))
        return items[0].data if len(items) == 1 and isinstance(items[0].data, float) else Values(tuple(items))

    @evaluate.register
    def _(self, node: tree.Braces) -> Members:
        items = self._all(node.items)
        unknown = [item for item in items if isinstance(item.data, Word) and item.data.unknown]
        if unknown:
            raise ValueRefusal(*(problem for item in unknown for problem in slots.refused(item, "a member").problems))
        return Members(tuple(items))

    @evaluate.register
    def _(self, node: tree.Attributes) -> AttributeValues:
        keys = [pair.key for pair in node.pairs]
        repeated = [pair for k, pair in enumerate(node.pairs) if pair.key in keys[:k]]
        if repeated:
            raise ValueRefusal(*(Problem(pair.at, f"'{pair.key}' a second time", "it once") for pair in repeated))
        return AttributeValues(dict(zip(keys, self._all([pair.value for pair in node.pairs]), strict=True)))

    @evaluate.register
    def _(self, node: tree.Call) -> Any:
        items = self._all(node.items)
        if node.name in DRAWN and not (node.name == "uniform" and len(items) == 1):
            return self.draws.draw(node.name, node.at, items)
        function = FUNCTIONS.get(node.name)
        if function is None:
            hint = suggest(node.name, {*FUNCTIONS, *DRAWN})
            raise ValueRefusal(Problem(node.at, f"the unknown word '{node.name}(…)'", hint=hint))
        slots = bind(function, node.name, node.at, items, self.findings, self.model())
        return function.make(node.at, slots)

    @evaluate.register
    def _(self, node: tree.Block) -> Plot:
        if node.name != SCENARIO:
            raise ValueRefusal(
                Problem(node.at, f"'{node.name}' before '{{'", f"'{SCENARIO}'", suggest(node.name, [SCENARIO]))
            )
        return plot(node.at, self._all(node.items), self.findings)

    @evaluate.register
    def _(self, node: tree.OnLane) -> LanePlace:
        lane, station = self._all([node.lane, node.station])
        return LanePlace(slots.text(lane), slots.number(station), node.at)

    @evaluate.register
    def _(self, node: tree.Spread) -> Coordinate:
        where = slots.place(self.item(node.coordinate))
        if not isinstance(where, Coordinate):
            raise ValueRefusal(Problem(node.coordinate.at, "a place on a lane", "a coordinate before 'range'"))
        sides = [self._all(side.items) for side in (node.x, node.y)]
        for side, items in zip((node.x, node.y), sides, strict=True):
            if len(items) != 2:
                raise ValueRefusal(Problem(side.at, f"{len(items)} bounds", "a lower and an upper one"))
        x, y = (self.draws.between(*items) for items in sides)
        return Coordinate(where.x_m + x, where.y_m + y, where.frame)

    @evaluate.register
    def _(self, node: tree.RelativeAngle) -> Heading:
        angle = slots.number(self.item(node.angle))
        rad = math.radians(angle) if node.unit == "deg" else angle
        return Heading(rad, None if node.reference is None else self._reference(node.reference))

    def _reference(self, node: tree.Node) -> Any:
        item = self.item(node)
        if isinstance(item.data, LanePlace):
            return item.data
        if isinstance(item.data, Ego | Participant):
            if _chain(item.data) > DEEPEST:
                raise ValueRefusal(Problem(node.at, f"more than {DEEPEST} headings related to each other", "fewer"))
            return item.data
        return slots.word(item, ("EGO", "EAST"), "EGO, EAST, a place on a lane, or the name of somebody")

    def item(self, node: tree.Node) -> Item:
        """Return the value of a node, and its place in the text."""
        return Item(self.evaluate(node), node.at)

    def _all(self, nodes: Sequence[tree.Node]) -> list[Item]:
        """Return the values of all nodes, or report every wrong one."""
        items = []
        for node in nodes:
            try:
                items.append(self.item(node))
            except ValueRefusal as refusal:
                self.findings.refused(refusal)
        if len(items) < len(nodes):
            raise ValueRefusal
        return items


def _chain(participant: Ego | Participant) -> int:
    """Return how many headings the heading of a participant depends on."""
    length = 1
    link: Any = participant
    while isinstance(link, Ego | Participant) and link.start.heading is not None:
        length, link = length + 1, link.start.heading.reference
    return length


def _joined(node: tree.Binary, left: Item, right: Item) -> Any:
    """Return two values combined: numbers by all operators, coordinates by + and -, texts by +."""
    if isinstance(left.data, str) and isinstance(right.data, str) and node.operator == "+":
        return left.data + right.data
    if isinstance(left.data, Coordinate | Values) and node.operator in "+-":
        a, b = slots.place(left), slots.place(right)
        if isinstance(a, Coordinate) and isinstance(b, Coordinate):
            sign = 1.0 if node.operator == "+" else -1.0
            return Coordinate(a.x_m + sign * b.x_m, a.y_m + sign * b.y_m, a.frame)
    try:
        value = _OPERATORS[node.operator](slots.number(left), slots.number(right))
    except ArithmeticError as error:
        raise ValueRefusal(Problem(node.at, "a sum that has no value", "a number")) from error
    if not isinstance(value, float) or not math.isfinite(value):
        raise ValueRefusal(Problem(node.at, "a sum that has no value", "a number"))
    return value


_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "^": operator.pow}
