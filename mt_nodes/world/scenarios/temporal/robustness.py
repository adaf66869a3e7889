# SPDX-License-Identifier: Apache-2.0
"""Judges formulas on the trace of a drive: `rtamt` computes truth and robustness, a drive's end is an open question.

A drive is finite, a formula may ask for more. So each formula is evaluated twice, beyond the end with the worst and
with the best for it: what is true even so is true however the drive would have gone on, what is false even so is false,
and anything else is undecided (the three values of Bauer, Leucker and Schallhart, *Runtime verification for LTL and
TLTL*, ACM TOSEM 20(4), 2011; for robustness, the interval of Deshmukh et al., *Robust online monitoring of signal
temporal logic*, Formal Methods in System Design 51(1), 2017). Operators without a window range over the drive, if it
came to its end; of one that broke off, as by a collision, nobody knows the rest, so they range over that, too.

Samples are the instants at which the stack got input. What happens between two of them is not seen, but for contacts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import needs_extra
from mt_nodes.world.drive.driven import ScenarioTrace
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.scenarios.temporal.formula import (
    Atom,
    Formula,
    Join,
    Modal,
    Not,
    Truth,
    UntilFormula,
    Window,
    implications,
    replaced,
)
from mt_nodes.world.scenarios.temporal.trace_signals import TraceSignals
from mt_nodes.world.scene.drive import PERIOD_NS

#: Ends of drives that came to their end, as the scenario says; see :class:`mt_nodes.world.drive.world.World`.
WHOLE_DRIVES = ("time", "target", "standstill", "end_of_road")
_EPSILON = 1e-6
_RTAMT = {"&": "and", "|": "or", "->": "implies", "G": "always", "F": "eventually"}


@dataclass(frozen=True)
class ClaimFinding:
    """What a formula comes to on a drive.

    Attributes:
        true: whether it is true of the drive; None: undecided, as the drive ends before that shows.
        vacuous: the condition that never was true, so that the formula demanded nothing; empty: it did.
        margin: robustness, in the unit of the comparison that decides; None if undecided or not measured in numbers.
        at_s: of a formula ``G(…)`` when its margin was least; None of others.
        robustness: the margin that a search can go by, also where nothing is decided: the most that may come of it.
    """

    true: bool | None
    vacuous: str = ""
    margin: float | None = None
    at_s: float | None = None
    robustness: float | None = None


def require_library() -> Any:
    """Return `rtamt`. Raises UsageError: it is not installed; says what to type."""
    with needs_extra("claims", "claims about traces need a library"):
        import rtamt
    return rtamt


def judge(formula: Formula, driven: ScenarioTrace, road: RoadMap) -> ClaimFinding:
    """Return what a formula comes to on a drive of at least one row.

    Raises UsageError: the library is missing. ValueError: a term is no number on this drive, samples are not at even
    times, or none lies in a window.
    """
    monitor = _Monitor(driven, road)
    most = monitor.margin(formula, best=True)
    if not monitor.truth(formula, best=True):
        return ClaimFinding(False, "", most, monitor.worst_s(formula, best=True), most)
    if not monitor.truth(formula, best=False):
        return ClaimFinding(None, robustness=most)
    for demand in implications(formula):
        unmet = replaced(formula, demand, Join(demand.left, "->", Truth(False)))
        if monitor.truth(unmet, best=False):
            return ClaimFinding(True, str(demand.left), robustness=most)
    return ClaimFinding(True, "", monitor.margin(formula, best=False), monitor.worst_s(formula, best=False), most)


class _Monitor:
    """Evaluates formulas on one drive."""

    def __init__(self, driven: ScenarioTrace, road: RoadMap) -> None:
        self._rtamt = require_library()
        self._signals, self._rows = TraceSignals(driven, road), len(driven.trace)
        self._time_s = driven.trace.time_s
        self._period_s = _period_s(self._time_s)
        self._whole = driven.trace.ended in WHOLE_DRIVES

    def truth(self, formula: Formula, best: bool) -> bool:
        """Tell whether a formula is true, beyond the end with the best or the worst for it."""
        return bool(self._values(formula, best, self._true)[0] > 0.0)

    def margin(self, formula: Formula, best: bool) -> float | None:
        """Return the robustness; None where it is not finite."""
        value = float(self._values(formula, best, self._signals.robustness)[0])
        return value if math.isfinite(value) else None

    def worst_s(self, formula: Formula, best: bool) -> float | None:
        """Return when the formula within ``G(…)`` was least robust."""
        if not isinstance(formula, Modal) or formula.operator != "G" or formula.window is not None:
            return None
        values = self._values(formula.of, best, self._signals.robustness)[: self._rows]
        return float(self._time_s[int(np.argmin(values))])

    def _true(self, atom: Atom) -> Floats:
        return np.where(self._signals.holds(atom), np.inf, -np.inf)

    def _values(self, formula: Formula, best: bool, value: Callable[[Atom], Floats]) -> Floats:
        """Return the values of a formula at every row, and beyond the end as far as it looks."""
        beyond = self._horizon(formula) + 1
        text = _Text(self._period_s, self._whole)
        spec = self._rtamt.StlDiscreteTimeSpecification()
        spec.spec = f"claim = {text.of(formula, best)}"
        columns = {name: value(atom) for name, (atom, _) in text.atoms.items()}
        columns = {name: np.append(c, np.full(beyond, text.atoms[name][1])) for name, c in columns.items()}
        columns["driving"] = np.append(np.full(self._rows, np.inf), np.full(beyond, -np.inf))
        for name in ("claim", *columns):
            spec.declare_var(name, "float")
        spec.parse()
        rows = {name: column.tolist() for name, column in columns.items()}
        return np.array(spec.evaluate({"time": list(range(self._rows + beyond)), **rows}))[:, 1]

    def _horizon(self, formula: Formula) -> int:
        """Return how many rows ahead the windows of a formula look."""
        if isinstance(formula, Not):
            return self._horizon(formula.of)
        if isinstance(formula, Join):
            return max(self._horizon(formula.left), self._horizon(formula.right))
        if isinstance(formula, Modal):
            ahead = 1 if formula.operator == "X" else _rows_of(formula.window, self._period_s)[1]
            return ahead + self._horizon(formula.of)
        if isinstance(formula, UntilFormula):
            both = max(self._horizon(formula.left), self._horizon(formula.right))
            return _rows_of(formula.window, self._period_s)[1] + both
        return 0


class _Text:
    """The text of a formula for `rtamt`, in which every occurrence of a comparison is a variable.

    ``atoms``: variable -> comparison, and its value beyond the end of the drive.
    """

    def __init__(self, period_s: float, whole: bool) -> None:
        self._period_s, self._whole = period_s, whole
        self.atoms: dict[str, tuple[Atom, float]] = {}

    def of(self, formula: Formula, best: bool) -> str:
        """Return the text; ``best``: whether what is unknown counts as true."""
        if isinstance(formula, Truth):
            return "(driving or not(driving))" if formula.value else "(driving and not(driving))"
        if isinstance(formula, Atom):
            name = f"p{len(self.atoms)}"
            self.atoms[name] = formula, math.inf if best else -math.inf
            return name
        if isinstance(formula, Not):
            return f"not({self.of(formula.of, not best)})"
        if isinstance(formula, Join):
            left = self.of(formula.left, best if formula.operator != "->" else not best)
            return f"(({left}) {_RTAMT[formula.operator]} ({self.of(formula.right, best)}))"
        if isinstance(formula, UntilFormula):
            return self._until(formula, best)
        return self._modal(formula, best)

    def _modal(self, formula: Modal, best: bool) -> str:
        inner = self.of(formula.of, best)
        if formula.operator == "X":
            return f"always[1:1]({inner})"
        operator = _RTAMT[formula.operator]
        if formula.window is not None:
            return f"{operator}{self._window(formula.window)}({inner})"
        if not self._whole and best is (formula.operator == "F"):
            return self.of(Truth(best), best)  # the rest of the drive may make it so
        guarded = f"driving implies ({inner})" if formula.operator == "G" else f"driving and ({inner})"
        return _within_drive(f"{operator}({guarded})", best)

    def _until(self, formula: UntilFormula, best: bool) -> str:
        left, right, again = (self.of(part, best) for part in (formula.left, formula.right, formula.left))
        goal = f"({right}) and ({again})"
        if formula.window is not None:
            return self._bounded_until(formula, formula.window, f"({left}) until ({goal})", best)
        text = f"({left}) until ({goal} and driving)"
        if best and not self._whole:  # the rest of the drive may bring it
            text = f"({text}) or (always(driving implies ({self.of(formula.left, best)})))"
        return _within_drive(text, best)

    def _bounded_until(self, formula: UntilFormula, window: Window, unbounded: str, best: bool) -> str:
        """Return ``left U[a, b] right`` by operators that take linear time: the library's own takes cubic time.

        It is left until a, and from a on, left until right without a bound, and right within b - a (Donzé, Ferrère and
        Maler, *Efficient robust monitoring for STL*, CAV 2013, Lemma 4, which holds for robustness, too).
        """
        low, high = _rows_of(window, self._period_s)
        within = f"eventually[0:{high - low}]({self.of(formula.right, best)})"
        text = f"always[{low}:{low}](({unbounded}) and ({within}))"
        return f"({text} and always[0:{low}]({self.of(formula.left, best)}))"

    def _window(self, window: Window) -> str:
        low, high = _rows_of(window, self._period_s)
        return f"[{low}:{high}]"


def _within_drive(text: str, best: bool) -> str:
    """Return a formula that is unknown, that is the best or the worst, at rows beyond the end."""
    return f"(({text}) or not(driving))" if best else f"(({text}) and driving)"


def _rows_of(window: Window | None, period_s: float) -> tuple[int, int]:
    """Return the first and the last row in a window, counted from now; (0, 0) without one."""
    if window is None:
        return 0, 0
    low, high = math.ceil(window.low_s / period_s - _EPSILON), math.floor(window.high_s / period_s + _EPSILON)
    if low > high:
        raise ValueError(f"in the bounds {window} lies no sample, of which there is one every {period_s:g} s")
    return low, high


def _period_s(time_s: Floats) -> float:
    """Return the time between two rows. Raises ValueError: it is not always the same."""
    steps = np.diff(time_s)
    if not len(steps):
        return PERIOD_NS * 1e-9
    if not np.allclose(steps, steps[0], rtol=0.0, atol=1e-4):
        raise ValueError(f"samples are {steps.min():g} to {steps.max():g} s apart, expected even times")
    return float(steps[0])
