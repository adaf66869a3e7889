# SPDX-License-Identifier: Apache-2.0
"""Builds the parts of a claim's formula that are no formulas: numbers, signals, states and places."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from mt_nodes.base.errors import suggest
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.scenario import Scenario
from mt_nodes.world.scenarios.language import tree
from mt_nodes.world.scenarios.language.problems import Problem, Span, ValueRefusal
from mt_nodes.world.scenarios.language.values import Coordinate, TraceName, Values, Word
from mt_nodes.world.scenarios.temporal.formula import (
    COLOURS,
    EGO,
    SIGNALS,
    TIME,
    Argument,
    Arithmetic,
    Atom,
    Constant,
    FixedPlace,
    Formula,
    Join,
    Modal,
    Not,
    Signal,
    StateRef,
    Term,
    UntilFormula,
)

LookUp = Callable[[tree.Name], Any]
Built = Formula | Term | Argument | TraceName
"""What a part of a claim can be; ``trace[truth]`` is a :class:`TraceName` with a key."""

#: What the arguments of a signal are, in turn; ``?`` ends those that can be left out.
_STATE, _EGO, _LIGHT = "a state", "the state of the ego", "the name of a traffic light"
_PLACED, _MOVING, _PACE = "a state or a place (x, y)", "a state or a velocity (x, y)", "a state or a speed"
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "dis": (_PLACED, _PLACED),
    "spd": (_PACE, _PACE + "?"),
    "vel": (_MOVING, _MOVING),
    "acc": (_EGO,),
    "ttc": (_STATE, _STATE),
    "offset": (_EGO,),
    "light": (_LIGHT,),
}


class TermBuilder(ABC):
    """Turns parts of a syntax tree into terms, states and places.

    ``look_up``: returns the value of a name. ``scenario``: whose trace they are of.
    """

    def __init__(self, look_up: LookUp, scenario: Scenario) -> None:
        self._look_up, self._scenario = look_up, scenario

    @abstractmethod
    def built(self, node: tree.Node) -> Built:
        """Return what a node is. Raises ValueRefusal: it is nothing that a formula can have."""

    def _name(self, node: tree.Name) -> Built:
        value = self._look_up(node)
        if isinstance(value, tree.Definition):
            return self.built(value.formula)
        if isinstance(value, Word):
            if node.name == TIME:
                return Signal(TIME)
            if node.name in COLOURS:
                return Constant(node.name)
            hint = value.unknown or suggest(node.name, SIGNALS)
            raise ValueRefusal(Problem(node.at, f"the unknown name '{node.name}'", "a part of a formula", hint))
        if isinstance(value, Coordinate) and value.frame == "ENU":
            return FixedPlace(value.x_m, value.y_m)
        if isinstance(value, Values) and [type(item.data) for item in value.items] == [float, float]:
            return FixedPlace(*(item.data for item in value.items))
        if isinstance(value, TraceName):
            return value
        if isinstance(value, int | float):
            return Constant(float(value))
        raise ValueRefusal(Problem(node.at, f"'{node.name}'", "a number, a place (x, y) or a part of a formula"))

    def _term(self, node: tree.Node) -> Term:
        if isinstance(node, tree.Number):
            return Constant(node.value)
        if isinstance(node, tree.SignedValue):
            value = self._numeric(node.value)
            if node.sign == "+":
                return value
            return Constant(-float(value.value)) if isinstance(value, Constant) else Arithmetic(Constant(0), "-", value)
        if isinstance(node, tree.Binary):
            return Arithmetic(self._numeric(node.left), node.operator, self._numeric(node.right))
        raise refused(node.at, node, "a part of a formula")

    def _numeric(self, node: tree.Node) -> Term:
        """Return a term of numbers. Raises ValueRefusal: it is none."""
        built = self.built(node)
        light = isinstance(built, Signal) and built.name == "light"
        colour = isinstance(built, Constant) and isinstance(built.value, str)
        if isinstance(built, Constant | Signal | Arithmetic) and not light and not colour:
            return built
        hint = "the speed of a state is spd(state), its distance dis(state, state)" if _is_state(built) else ""
        raise refused(node.at, built, "a number", hint)

    def _number(self, node: tree.Node, what: str) -> float:
        value = _constant(self.built(node))
        if value is None:
            raise refused(node.at, node, what)
        return value

    def _state(self, node: tree.Subscript) -> Built:
        base = node.value
        keys = [node.key]
        if isinstance(base, tree.Subscript):
            keys, base = [base.key, node.key], base.value
        owner = self.built(base)
        if isinstance(owner, TraceName) and owner.keys:  # a name that stands for trace[truth]
            keys = [*owner.keys, *keys]
        if not isinstance(owner, TraceName) or len(keys) > 2:
            raise ValueRefusal(Problem(node.at, "a bracket", "trace[ego] or trace[truth][name]"))
        if owner.scenario != self._scenario.name:
            got = f"a trace of '{owner.scenario}' in a claim about '{self._scenario.name}'"
            raise ValueRefusal(Problem(node.at, got, "one trace in a claim"))
        if keys == [EGO]:
            return StateRef(EGO, ego=True)
        if keys[0] == "perception":
            hint = "traces hold the truth; what a stack perceives is judged by relations"
            raise ValueRefusal(Problem(node.at, "a perceived state", "trace[truth][name]", hint))
        if keys[0] != "truth":
            raise ValueRefusal(
                Problem(node.at, f"'{keys[0]}' of a trace", "ego or truth", suggest(keys[0], (EGO, "truth")))
            )
        return TraceName(owner.scenario, ("truth",)) if len(keys) == 1 else self._body(node, keys[1])

    def _body(self, node: tree.Subscript, name: str) -> StateRef:
        known = [*(one.name for one in self._scenario.actors), *(one.name for one in self._scenario.obstacles)]
        if name in known:
            return StateRef(name)
        hint = suggest(name, known, f"in it are {', '.join(known) or 'none'}")
        raise ValueRefusal(Problem(node.at, f"'{name}'", f"somebody in '{self._scenario.name}'", hint))

    def _signal(self, node: tree.Call) -> Built:
        if node.name not in SIGNALS:
            if node.name == "diff":
                raise ValueRefusal(Problem(node.at, "'diff'", "another signal", "traces hold no perceived states"))
            raise ValueRefusal(Problem(node.at, f"'{node.name}'", "a signal", suggest(node.name, SIGNALS)))
        wanted = ARGUMENTS[node.name]
        least = sum(not what.endswith("?") for what in wanted)
        if not least <= len(node.items) <= len(wanted):
            numbers = f"{least}" if least == len(wanted) else f"{least} or {len(wanted)}"
            raise ValueRefusal(Problem(node.at, f"{node.name} of {len(node.items)}", f"{numbers} arguments"))
        pairs = zip(node.items, wanted, strict=False)
        return Signal(node.name, tuple(self._argument(item, what.removesuffix("?")) for item, what in pairs))

    def _argument(self, node: tree.Node, what: str) -> Argument:
        if what == _LIGHT:
            return self._light(node)
        built = self.built(node)
        speed = _constant(built) if what == _PACE else None
        if speed is not None:
            return Constant(speed)
        if isinstance(built, StateRef) and (built.ego or what != _EGO):
            return built
        if isinstance(built, FixedPlace) and what in (_PLACED, _MOVING):
            return built
        hint = "the trace holds accelerations and lanes of the ego only" if what == _EGO and _is_state(built) else ""
        raise refused(node.at, built, what, hint)

    def _light(self, node: tree.Node) -> Constant:
        known = [one.name for one in load_map(self._scenario.road).signals]
        name = node.name if isinstance(node, tree.Name) else node.value if isinstance(node, tree.Text) else ""
        if name in known:
            return Constant(name)
        hint = suggest(name, known, f"the map '{self._scenario.road}' has {', '.join(known) or 'none'}")
        raise ValueRefusal(Problem(node.at, f"'{name}'", _LIGHT, hint))


def _constant(built: Built) -> float | None:
    """Return the number that a part of a formula is, None if it is none."""
    if isinstance(built, Constant) and not isinstance(built.value, str):
        return float(built.value)
    if isinstance(built, Arithmetic):
        left, right = _constant(built.left), _constant(built.right)
        if left is not None and right is not None and (built.operator != "/" or right != 0.0):
            values = {"+": left + right, "-": left - right, "*": left * right}
            return values.get(built.operator, left / right if built.operator == "/" else None)
    return None


def _is_state(built: Any) -> bool:
    return isinstance(built, StateRef | TraceName)


def _described(built: Any) -> str:
    kinds: tuple[tuple[Any, str], ...] = (
        ((Atom, Not, Join, Modal, UntilFormula), "a formula"),
        ((StateRef, TraceName), "a state"),
        (FixedPlace, "a place (x, y)"),
        (Constant, f"'{getattr(built, 'value', '')}'"),
        ((Signal, Arithmetic), "a number of the trace"),
    )
    return next((what for kind, what in kinds if isinstance(built, kind)), "something else")


def refused(at: Span, built: Any, expected: str, hint: str = "") -> ValueRefusal:
    """Return the refusal of a part of a claim that is something else than expected."""
    return ValueRefusal(Problem(at, _described(built), expected, hint))
