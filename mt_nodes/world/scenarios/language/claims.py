# SPDX-License-Identifier: Apache-2.0
"""Builds the formulas of claims: names stand for what they are defined as, states for bodies of the scenario."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from mt_nodes.world.drive.scenario import Scenario, TraceClaim
from mt_nodes.world.scenarios.language import tree
from mt_nodes.world.scenarios.language.claim_terms import Built, LookUp, TermBuilder, refused
from mt_nodes.world.scenarios.language.problems import Findings, Problem, ValueRefusal
from mt_nodes.world.scenarios.language.values import TraceName, Word
from mt_nodes.world.scenarios.temporal.formula import (
    COLOURS,
    Atom,
    Constant,
    FixedPlace,
    Formula,
    Join,
    Modal,
    Not,
    Signal,
    UntilFormula,
    Window,
    size,
)
from mt_nodes.world.scene.drive import PERIOD_NS

_PERIOD_S = PERIOD_NS * 1e-9
#: Bounds and formulas beyond these take minutes to judge.
_LONGEST_S, _MOST_PARTS, _DEEPEST = 600.0, 300, 40


@dataclass(frozen=True)
class PendingClaim:
    """A claim of a script about the trace of a scenario, by that scenario's name."""

    statement: tree.Claim
    scenario: str
    look_up: LookUp


def claims_of(pending: list[PendingClaim], scenario: Scenario, findings: Findings) -> tuple[TraceClaim, ...]:
    """Return the claims about a scenario; what is wrong with one goes to the findings."""
    found = []
    for one in pending:
        if one.scenario == scenario.name:
            try:
                formula = _Builder(one.look_up, scenario).formula(one.statement.formula)
                found.append(TraceClaim(one.statement.at.line, one.statement.at.column, str(formula)))
            except ValueRefusal as refusal:
                findings.refused(refusal)
    return tuple(found)


def formula_of(claim: TraceClaim, scenario: Scenario) -> Formula:
    """Return the formula of a claim from its text.

    Raises ScenarioError: the text is no formula. ValueRefusal: it is about something that the scenario does not have.
    """
    from mt_nodes.world.scenarios.language.parsing import parse

    (statement,) = parse(f"t |= {claim.formula};", "claim", strict=True).statements
    assert isinstance(statement, tree.Claim), "it begins with a trace and |="
    return _Builder(lambda name: TraceName(scenario.name) if name.name == "t" else Word(name.name), scenario).formula(
        statement.formula
    )


class _Builder(TermBuilder):
    """Turns the syntax tree of a claim into a formula."""

    def __init__(self, look_up: LookUp, scenario: Scenario) -> None:
        super().__init__(look_up, scenario)
        self._depth = self._parts = 0

    def formula(self, node: tree.Node) -> Formula:
        """Return the formula of a node. Raises ValueRefusal: it is none, with the place of what is wrong."""
        built = self.built(node)
        if not isinstance(built, Atom | Not | Join | Modal | UntilFormula):
            raise refused(node.at, built, "a formula, such as a comparison")
        if (parts := size(built)) > _MOST_PARTS:
            raise ValueRefusal(Problem(node.at, f"{parts} comparisons to evaluate", f"at most {_MOST_PARTS}"))
        return built

    def built(self, node: tree.Node) -> Built:
        """Return what a node is, names replaced by what they stand for."""
        self._depth, self._parts = self._depth + 1, self._parts + 1
        if self._depth > _DEEPEST or self._parts > 10 * _MOST_PARTS:
            raise ValueRefusal(Problem(node.at, "a formula of too many parts", "a shorter one"))
        built = self._part(node)
        self._depth -= 1
        return built

    def _part(self, node: tree.Node) -> Built:
        if isinstance(node, tree.Name):
            return self._name(node)
        if isinstance(node, tree.ComparisonNode):
            return self._comparison(node)
        if isinstance(node, tree.Junction):
            return reduce(lambda left, right: _joined(left, node.operator, right), map(self.formula, node.items))
        if isinstance(node, tree.Negation):
            return Not(self.formula(node.value))
        if isinstance(node, tree.Temporal):
            if node.operator == "X" and node.bounds is not None:
                raise ValueRefusal(Problem(node.bounds.at, "bounds of X", "none: X is the next sample"))
            return Modal(node.operator, self._window(node.bounds), self.formula(node.value))
        if isinstance(node, tree.Until):
            return UntilFormula(self.formula(node.left), self._window(node.bounds), self.formula(node.right))
        if isinstance(node, tree.Subscript):
            return self._state(node)
        if isinstance(node, tree.Row):
            return FixedPlace(*(self._number(item, "a number") for item in node.items))
        if isinstance(node, tree.Call):
            return self._signal(node)
        return self._term(node)

    def _comparison(self, node: tree.ComparisonNode) -> Atom:
        lights = [side for side in (node.left, node.right) if _is_light(self.built(side))]
        if not lights:
            return Atom(self._numeric(node.left), node.operator, self._numeric(node.right))
        light = lights[0]
        other = node.right if light is node.left else node.left
        colour = self.built(other)
        if not isinstance(colour, Constant) or colour.value not in COLOURS:
            raise refused(other.at, colour, " or ".join(COLOURS))
        if node.operator not in ("==", "!="):
            raise ValueRefusal(Problem(node.at, f"'{node.operator}' of a colour", "== or !="))
        signal = self.built(light)
        assert isinstance(signal, Signal), "it is one of the lights"
        return Atom(signal, node.operator, colour)

    def _window(self, bounds: tree.BoundsNode | None) -> Window | None:
        if bounds is None:
            return None
        low, high = (self._number(node, "a bound in s") for node in (bounds.low, bounds.high))
        if not 0.0 <= low <= high <= _LONGEST_S:
            raise ValueRefusal(Problem(bounds.at, f"[{low:g}, {high:g}]", f"0 <= a <= b <= {_LONGEST_S:g} s"))
        if int(high / _PERIOD_S + 1e-6) < low / _PERIOD_S - 1e-6:
            got = f"[{low:g}, {high:g}], in which there is no sample"
            raise ValueRefusal(Problem(bounds.at, got, f"a multiple of {_PERIOD_S:g} s in it"))
        return Window(low, high)


def _is_light(built: Built) -> bool:
    return isinstance(built, Signal) and built.name == "light"


def _joined(left: Formula, operator: str, right: Formula) -> Join:
    """Return two formulas joined: ``~a | b`` is ``a -> b``, so that it is seen whether ``a`` ever was true."""
    if operator == "|":
        for negated, other in ((left, right), (right, left)):
            if isinstance(negated, Not):
                return Join(negated.of, "->", other)
    return Join(left, operator, right)
