# SPDX-License-Identifier: Apache-2.0
"""Formulas of claims on drives, against an evaluator that does what the definitions say, word by word."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.base.errors import UsageError
from mt_nodes.world.drive.driven import ScenarioTrace
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Scenario, TraceClaim
from mt_nodes.world.drive.trace import Collision, Trace
from mt_nodes.world.scenarios.language import read
from mt_nodes.world.scenarios.language.claims import formula_of
from mt_nodes.world.scenarios.temporal import robustness
from mt_nodes.world.scenarios.temporal.formula import Atom, Formula, Join, Modal, Not, UntilFormula, Window
from mt_nodes.world.scenarios.temporal.robustness import ClaimFinding, judge

PERIOD_S = 0.1
SCRIPT = """
ego = AV(("lane_1" -> 50.0, , 8.0));
dog = Animal((100.0, 0.0), , , {species: dog});
box = Obstacle((150.0, -1.75), (box, 1, 1, 1));
s = CreateScenario {
    load("two_way");
    ego;
    {};
    {dog};
    {box};
};
Trace t = EXE(s);
"""


@cache
def scenario() -> Scenario:
    (found,) = read(SCRIPT).scenarios
    return found


@cache
def road() -> RoadMap:
    return load_map(scenario().road)


def drive(speeds: list[float], ended: str = "time", accelerations: list[float] | None = None) -> ScenarioTrace:
    """Return a drive along lane_1 with these speeds, the dog ten metres ahead of the ego's rear axle and as quick."""
    rows = len(speeds)
    x = 50.0 + np.concatenate([[0.0], np.cumsum(speeds[:-1])]) * PERIOD_S
    ego = np.zeros((rows, 6))
    ego[:, 0], ego[:, 1], ego[:, 3], ego[:, 4] = x, -1.75, speeds, accelerations or [0.0] * rows
    actors = np.zeros((rows, 1, 4))
    actors[:, 0, 0], actors[:, 0, 1], actors[:, 0, 3] = x + 10.0, -1.75, speeds
    nothing = np.full((rows, 3), np.nan)
    times = np.arange(rows) * PERIOD_S
    trace = Trace("s", times, ego, actors, ("dog",), nothing, np.ones(rows, dtype=bool), (), ended)
    return ScenarioTrace(trace, scenario())


def formula(text: str) -> Formula:
    return formula_of(TraceClaim(1, 1, text), scenario())


def finding(text: str, driven: ScenarioTrace) -> ClaimFinding:
    return judge(formula(text), driven, road())


class Definitions:
    """The value of a formula by its definition; rows from the end on are the best, or the worst, for it."""

    def __init__(self, driven: ScenarioTrace, exact: bool) -> None:
        self.trace, self.rows, self.exact = driven.trace, len(driven.trace), exact
        self.whole = driven.trace.ended == "time"

    def value(self, f: Formula, row: int, best: bool) -> float:
        unknown = math.inf if best else -math.inf
        if isinstance(f, Atom):
            return unknown if row >= self.rows else self.atom(f, row)
        if isinstance(f, Not):
            return -self.value(f.of, row, not best)
        if isinstance(f, Join):
            left = self.value(f.left, row, best if f.operator != "->" else not best)
            right = self.value(f.right, row, best)
            return {"&": min(left, right), "|": max(left, right), "->": max(-left, right)}[f.operator]
        if isinstance(f, Modal) and f.operator == "X":
            return self.value(f.of, row + 1, best)
        if f.window is None and row >= self.rows:
            return unknown
        ahead = self.window(f.window, row)
        open_end = [unknown] if f.window is None and not self.whole else []
        if isinstance(f, Modal):
            values = [self.value(f.of, k, best) for k in ahead] + open_end
            return min(values) if f.operator == "G" else max(values)
        assert isinstance(f, UntilFormula)
        found = [min(self.value(f.right, k, best), self.least(f.left, row, k, best)) for k in ahead]
        return max([*found, *(min(self.least(f.left, row, self.rows - 1, best), u) for u in open_end)])

    def least(self, f: Formula, first: int, last: int, best: bool) -> float:
        return min(self.value(f, k, best) for k in range(first, last + 1))

    def window(self, window: Window | None, row: int) -> list[int]:
        if window is None:
            return list(range(row, self.rows))
        last = row + round(window.high_s / PERIOD_S) + 2
        times = {k: (k - row) * PERIOD_S for k in range(row, last)}
        return [k for k, t in times.items() if window.low_s - 1e-9 <= t <= window.high_s + 1e-9]

    def atom(self, atom: Atom, row: int) -> float:
        signal = str(atom.left)
        column = {"spd(t[ego])": 3, "acc(t[ego])": 4}[signal]
        more = float(self.trace.ego[row, column]) - float(str(atom.right))
        value = more if atom.operator in (">", ">=") else -more
        if not self.exact:
            return value
        true = {">": more > 0, ">=": more >= 0, "<": more < 0, "<=": more <= 0}[atom.operator]
        return math.inf if true else -math.inf


ATOMS = st.builds(
    "{} {} {}".format,
    st.sampled_from(["spd(t[ego])", "acc(t[ego])"]),
    st.sampled_from(["<", "<=", ">", ">="]),
    st.integers(0, 3),
)
BOUNDS = st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda ab: f"[{ab[0] / 10}, {(ab[0] + ab[1]) / 10}]")
WINDOWS = st.one_of(st.just(""), BOUNDS)


def wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{}{}({})".format, st.sampled_from("GF"), WINDOWS, inner),
        st.builds("X({})".format, inner),
        st.builds("~({})".format, inner),
        st.builds("({}) {} ({})".format, inner, st.sampled_from(["&", "|", "->"]), inner),
        st.builds("({}) U{} ({})".format, inner, WINDOWS, inner),
    )


FORMULAS = st.recursive(ATOMS, wider, max_leaves=4)
SPEEDS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=7)


@settings(max_examples=100, deadline=None)
@given(FORMULAS, SPEEDS, st.sampled_from(["time", "collision"]))
def test_findings_are_those_of_the_definitions(text: str, rows: list[tuple[int, int]], ended: str) -> None:
    driven = drive([float(v) for v, _ in rows], ended, [float(a) for _, a in rows])
    parsed = formula(text)
    found = judge(parsed, driven, road())
    exact, measured = Definitions(driven, exact=True), Definitions(driven, exact=False)
    surely, perhaps = (exact.value(parsed, 0, best) > 0 for best in (False, True))
    assert found.true is (True if surely else None if perhaps else False)
    if found.true is None or found.vacuous:
        assert found.margin is None
        return
    margin = measured.value(parsed, 0, best=not found.true)
    assert found.margin == (pytest.approx(margin) if math.isfinite(margin) else None)
    assert found.margin is None or found.margin * (1 if found.true else -1) >= 0


@settings(max_examples=60, deadline=None)
@given(FORMULAS)
def test_the_text_of_a_formula_is_that_formula(text: str) -> None:
    parsed = formula(text)
    assert formula(str(parsed)) == parsed


@settings(max_examples=60, deadline=None)
@given(FORMULAS, SPEEDS, SPEEDS)
def test_what_is_decided_stays_so_however_the_drive_goes_on(
    text: str, rows: list[tuple[int, int]], more: list[tuple[int, int]]
) -> None:
    def found(values: list[tuple[int, int]], ended: str) -> bool | None:
        return finding(text, drive([float(v) for v, _ in values], ended, [float(a) for _, a in values])).true

    if (early := found(rows, "collision")) is not None:
        assert found([*rows, *more], "time") is early


# What a claim that demanded nothing comes to.


def test_an_implication_whose_condition_never_came_true_is_vacuous() -> None:
    found = finding("G(spd(t[ego]) > 5 -> acc(t[ego]) < 1)", drive([3.0] * 5))
    assert (found.true, found.vacuous, found.margin) == (True, "spd(t[ego]) > 5", None)


def test_a_disjunction_with_a_negation_is_an_implication_and_as_vacuous() -> None:
    for text in ("G(~(spd(t[ego]) > 5) | acc(t[ego]) < 1)", "G(acc(t[ego]) < 1 | ~(spd(t[ego]) > 5))"):
        assert finding(text, drive([3.0] * 5)).vacuous == "spd(t[ego]) > 5"


def test_an_implication_whose_condition_came_true_once_is_not_vacuous() -> None:
    found = finding("G(spd(t[ego]) > 5 -> acc(t[ego]) < 1)", drive([3.0, 6.0, 3.0]))
    assert (found.true, found.vacuous, found.margin) == (True, "", 1.0)


# Ends of drives.


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("G[0, 2](spd(t[ego]) > 1)", None),  # holds, but the drive is shorter
        ("G[0, 0.4](spd(t[ego]) > 1)", True),
        ("G[0, 2](spd(t[ego]) < 1)", False),
        ("F[0, 2](spd(t[ego]) > 9)", None),
        ("F[0, 0.4](spd(t[ego]) > 9)", False),
        ("F[0, 2](spd(t[ego]) > 1)", True),
        ("G(spd(t[ego]) > 1)", True),
        ("F(spd(t[ego]) > 9)", False),
        ("F[0, 2](G(spd(t[ego]) > 1))", True),
        ("G(F[0, 0.2](spd(t[ego]) > 1))", True),
        ("G(G[0, 0.2](spd(t[ego]) > 1))", None),  # of the last sample, the bound lies beyond the end
        ("X(spd(t[ego]) > 1)", True),
    ],
)
def test_a_drive_that_ends_before_a_bound_decides_only_what_is_decided(text: str, true: bool | None) -> None:
    assert finding(text, drive([3.0] * 5)).true is true


@pytest.mark.parametrize(("text", "true"), [("G(spd(t[ego]) > 1)", None), ("F(spd(t[ego]) > 9)", None)])
def test_of_a_drive_that_broke_off_nobody_knows_the_rest(text: str, true: bool | None) -> None:
    assert finding(text, drive([3.0] * 5, "collision")).true is true
    assert finding(text.replace("> 1", "< 1").replace("> 9", "> 1"), drive([3.0] * 5, "collision")).true is not None


# Signals.


def test_distances_and_speeds_are_those_of_the_bodies() -> None:
    driven = drive([10.0, 8.0])
    gap = 10.0 - 3.8 - 0.35  # front of the ego, half of a dog
    assert finding("G(dis(t[ego], t[truth][dog]) > 1)", driven).margin == pytest.approx(gap - 1.0, abs=0.2)
    assert finding("G(spd(t[ego], t[truth][dog]) <= 0)", driven) == ClaimFinding(True, "", 0.0, 0.0, 0.0)
    assert finding("G(spd(t[ego], 8) <= 1)", driven).margin == -1.0
    assert finding("G(vel(t[ego], (8, 0)) <= 1)", driven).margin == -1.0
    assert finding("G(offset(t[ego]) < 0.1)", driven).true is True
    assert finding("F(time >= 0.1)", driven).true is True


def test_time_to_collision_is_distance_by_closing_speed() -> None:
    driven = drive([10.0, 10.0])
    assert finding("G(ttc(t[ego], t[truth][dog]) >= 100)", driven).margin == 0.0  # as quick as the ego
    box_m = 150.0 - 0.5 - 50.0 - 3.8
    assert finding("F(ttc(t[ego], t[truth][box]) > 0)", driven).margin == pytest.approx(box_m / 10.0)


def test_a_contact_between_two_samples_is_no_distance() -> None:
    driven = drive([10.0] * 4, "collision")
    hit = Collision(0.25, "dog", "dog", 0.0, 0.0, "front", 10.0, 10.0)
    driven = replace(driven, trace=replace(driven.trace, collisions=(hit,)))
    found = finding("G(dis(t[ego], t[truth][dog]) > 0.1)", driven)
    assert (found.true, found.margin, found.at_s) == (False, -0.1, pytest.approx(0.3))


def test_a_light_is_true_or_false_and_leaves_the_margin_to_the_numbers() -> None:
    light = road().signals[0]
    first = light.programme[0][0]
    found = finding(f"G(light({light.name}) == {first} -> spd(t[ego]) < 5)", drive([3.0] * 3))
    assert (found.true, found.margin) == (True, 2.0)
    assert finding(f"G(light({light.name}) != {first})", drive([3.0] * 3)) == ClaimFinding(False, "", None, 0.0)


def test_a_division_by_zero_is_refused() -> None:
    with pytest.raises(ValueError, match=r"is no number at 0\.1 s, where spd"):
        finding("G(1 / spd(t[ego]) > 0)", drive([1.0, 0.0]))


def test_without_the_library_the_refusal_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rtamt", None)
    with pytest.raises(UsageError, match=r"pip install 'mt_nodes\[claims\]'"):
        robustness.require_library()
