# SPDX-License-Identifier: Apache-2.0
"""What a parameter does: which variants belong together, and where their rates are drawn."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from mt_nodes.report.effect import BOTTOM, LEFT, RIGHT, TOP, charts

CELLS = {"a-seed0": "a", "a-seed1": "a", "b-seed0": "b"}


def relation(violated: int, decided: int = 20) -> dict[str, Any]:
    rate = violated / decided if decided else None
    interval = None if rate is None else [max(0.0, rate - 0.1), min(1.0, rate + 0.1)]
    return {"violated": violated, "decided": decided, "rate": rate, "ci95": interval}


def over(violated: dict[str, int]) -> dict[str, dict[str, Any]]:
    return {cell: {name: relation(count) for name, count in violated.items()} for cell in CELLS}


def test_variants_that_differ_in_one_number_are_one_chart_a_stack() -> None:
    names = {"fog~visibility_m_200": 2, "fog~visibility_m_50": 10, "fog~visibility_m_100": 6, "noise": 1}
    first, second = charts(over(names), CELLS)
    assert [(c.relation, c.stack, c.parameter, c.fixed) for c in (first, second)] == [
        ("fog", "a", "visibility_m", ""),
        ("fog", "b", "visibility_m", ""),
    ]
    assert [label.text for label in first.values] == ["50", "100", "200"]
    assert (len(first.dots), len(second.dots)) == (6, 3), "one a cell and value"
    xs, ys = [dot.x for dot in second.dots], [dot.y for dot in second.dots]
    assert xs == sorted(xs) and LEFT < xs[0] < xs[-1] < RIGHT
    assert (xs[2] - xs[1]) / (xs[1] - xs[0]) == pytest.approx(2.0, rel=0.02), "values are not taken for ranks"
    assert ys == sorted(ys) and ys[0] >= TOP and ys[-1] <= BOTTOM, "a smaller rate is farther down"
    assert "b-seed0, visibility_m 50: 10 of 20 violated" in [dot.title for dot in second.dots]
    for dot in first.dots:
        assert dot.interval is not None and dot.interval[0] > dot.y > dot.interval[1]


def test_the_line_goes_through_all_cells_of_a_stack_together() -> None:
    cells = over({"fog~d_1": 0, "fog~d_2": 10})
    cells["a-seed1"]["fog~d_2"] = relation(0, 60)
    chart = charts(cells, CELLS)[0]
    assert [label.text for label in chart.rates] == ["0 %", "50 %", "100 %"]
    rate = 1.0 - (float(chart.line.split("L")[1].split()[1]) - TOP) / (BOTTOM - TOP)
    assert rate == pytest.approx(10 / 80, abs=0.01)


def test_of_a_product_all_others_stay_as_they_are() -> None:
    names = {f"fog~visibility_m_{v}~kind_{k}~gain_{g}": 1 for v in (10, 20) for k in ("low", "high") for g in (1, 2)}
    found = {(c.parameter, c.fixed) for c in charts(over(names), {**CELLS, "b-seed0": "a"})}
    kinds = {f"kind = {kind}" for kind in ("low", "high")}
    assert found == {("visibility_m", f"{kind}, gain = {g}") for kind in kinds for g in (1, 2)} | {
        ("gain", f"visibility_m = {v}, {kind}") for kind in kinds for v in (10, 20)
    }


@pytest.mark.parametrize("names", [{"fog~d_1": 1}, {"fog~kind_a": 1, "fog~kind_b": 2}, {"x_1": 1, "x_2": 1}, {}])
def test_where_nothing_is_varied_there_is_no_chart(names: dict[str, int]) -> None:
    assert charts(over(names), CELLS) == []


def test_what_was_not_decided_is_not_drawn() -> None:
    cells = {"a-seed0": {"fog~d_1": relation(1), "fog~d_2": relation(0, 0), "fog~d_3": relation(2)}, "b-seed0": {}}
    (chart,) = charts(cells, CELLS)
    assert [dot.title.split(":")[0] for dot in chart.dots] == ["a-seed0, d 1", "a-seed0, d 3"]


def test_a_wide_range_of_values_goes_by_its_logarithm() -> None:
    chart = charts(over({f"fog~d_{d}": 1 for d in (1, 10, 100)}), CELLS)[1 - 1]
    xs = sorted({label.at for label in chart.values})
    assert chart.logarithmic and xs[2] - xs[1] == pytest.approx(xs[1] - xs[0], abs=0.2)
    assert not charts(over({f"fog~d_{d}": 1 for d in (0, 10, 100)}), CELLS)[0].logarithmic


def test_labels_have_room() -> None:
    chart = charts(over({f"fog~d_{d}": 1 for d in range(10, 40)}), CELLS)[0]
    ats = [label.at for label in chart.values]
    assert all(b - a >= 34 for a, b in itertools.pairwise(ats))
    assert (chart.values[0].text, chart.values[-1].text) == ("10", "39")
