# SPDX-License-Identifier: Apache-2.0
"""Formulas of signal temporal logic over the signals of a drive; ``str`` is their text in the scenario language."""

from __future__ import annotations

from dataclasses import dataclass

#: Signal -> what it is. Arguments are states, or what the text says.
SIGNALS = {
    "dis": "distance between the outlines of two states, or of a state and a place, in m; 0 in contact",
    "spd": "speed of a state in m/s; of two: the difference of their speeds, either of which can be a number",
    "vel": "length of the difference of two velocities in m/s; a place stands for a velocity (east, north)",
    "acc": "*ours*: acceleration of the ego along its heading in m/s², negative where it brakes",
    "ttc": "*ours*: time to collision of two states in s: distance by closing speed, at most 100",
    "offset": "*ours*: lateral offset of the ego's rear axle from the middle of the nearest lane in m, left positive",
    "light": "*ours*: colour of a traffic light of the map, compared by `==` or `!=` with `red`, `yellow`, `green`",
}
#: The time since the beginning of the drive, where no other thing has this name.
TIME = "time"
TEMPORAL = {"G": "always", "F": "eventually", "X": "next", "U": "until"}
COLOURS = ("red", "yellow", "green")
EGO = "ego"


@dataclass(frozen=True)
class Constant:
    """A number, or the colour of a light."""

    value: float | str

    def __str__(self) -> str:
        return self.value if isinstance(self.value, str) else _number(self.value)


@dataclass(frozen=True)
class StateRef:
    """The ego (``name`` is :data:`EGO`), or another body's true state."""

    name: str
    ego: bool = False

    def __str__(self) -> str:
        return f"t[{EGO}]" if self.ego else f't[truth]["{self.name}"]'


@dataclass(frozen=True)
class FixedPlace:
    """A place, or a velocity: east and north."""

    x: float
    y: float

    def __str__(self) -> str:
        return f"({_number(self.x)}, {_number(self.y)})"


Argument = StateRef | FixedPlace | Constant


@dataclass(frozen=True)
class Signal:
    """A signal of :data:`SIGNALS` or :data:`TIME`, with its arguments."""

    name: str
    arguments: tuple[Argument, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})" if self.arguments else self.name


@dataclass(frozen=True)
class Arithmetic:
    """Two terms and one of ``+ - * /``."""

    left: Term
    operator: str
    right: Term

    def __str__(self) -> str:
        return f"({self.left} {self.operator} {self.right})"


Term = Constant | Signal | Arithmetic


@dataclass(frozen=True)
class Atom:
    """A comparison of two terms."""

    left: Term
    operator: str
    right: Term

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True)
class Truth:
    """Always true or always false; no script has it, vacuity is tested with it."""

    value: bool


@dataclass(frozen=True)
class Not:
    """``~``."""

    of: Formula

    def __str__(self) -> str:
        return f"~({self.of})"


@dataclass(frozen=True)
class Join:
    """Two formulas joined by ``&``, ``|`` or ``->``."""

    left: Formula
    operator: str
    right: Formula

    def __str__(self) -> str:
        return f"{_bracketed(self.left)} {self.operator} {_bracketed(self.right)}"


@dataclass(frozen=True)
class Window:
    """Bounds of a temporal operator: seconds from now, both included."""

    low_s: float
    high_s: float

    def __str__(self) -> str:
        return f"[{_number(self.low_s)}, {_number(self.high_s)}]"


@dataclass(frozen=True)
class Modal:
    """``G``, ``F`` or ``X`` of a formula; without a window to the end of the drive."""

    operator: str
    window: Window | None
    of: Formula

    def __str__(self) -> str:
        return f"{self.operator}{self.window or ''}({self.of})"


@dataclass(frozen=True)
class UntilFormula:
    """``left U right``: right at some time, and left at every time until then, that time included (as in AVUnit)."""

    left: Formula
    window: Window | None
    right: Formula

    def __str__(self) -> str:
        return f"{_bracketed(self.left)} U{self.window or ''} {_bracketed(self.right)}"


Formula = Atom | Truth | Not | Join | Modal | UntilFormula


def size(formula: Formula) -> int:
    """Return how many comparisons are evaluated for a formula: an until evaluates its parts several times."""
    if isinstance(formula, Not | Modal):
        return size(formula.of)
    if isinstance(formula, Join):
        return size(formula.left) + size(formula.right)
    if isinstance(formula, UntilFormula):
        return 3 * size(formula.left) + 2 * size(formula.right)
    return 1


def implications(formula: Formula, positive: bool = True) -> list[Join]:
    """Return the implications of a formula that it gains by being true: those not under a negation."""
    if isinstance(formula, Not):
        return implications(formula.of, not positive)
    if isinstance(formula, Modal):
        return implications(formula.of, positive)
    if isinstance(formula, Join):
        own = [formula] if formula.operator == "->" and positive else []
        left = implications(formula.left, positive if formula.operator != "->" else not positive)
        return [*own, *left, *implications(formula.right, positive)]
    if isinstance(formula, UntilFormula):
        return [*implications(formula.left, positive), *implications(formula.right, positive)]
    return []


def replaced(formula: Formula, old: Formula, new: Formula) -> Formula:
    """Return a formula with one of its parts, found by identity, replaced."""
    if formula is old:
        return new
    if isinstance(formula, Not):
        return Not(replaced(formula.of, old, new))
    if isinstance(formula, Modal):
        return Modal(formula.operator, formula.window, replaced(formula.of, old, new))
    if isinstance(formula, Join):
        return Join(replaced(formula.left, old, new), formula.operator, replaced(formula.right, old, new))
    if isinstance(formula, UntilFormula):
        return UntilFormula(replaced(formula.left, old, new), formula.window, replaced(formula.right, old, new))
    return formula


def _bracketed(formula: Formula) -> str:
    return str(formula) if isinstance(formula, Atom | Not | Modal) else f"({formula})"


def _number(value: float) -> str:
    """Return a number as the language reads it, exactly."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
