# SPDX-License-Identifier: Apache-2.0
"""Intervals and tests against their formulas, enumeration and the paper's own figures."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.statistics import (
    BLOCK_BUNDLES,
    ClusterSums,
    cluster_sums,
    holm,
    mcnemar_p,
    proportion_interval,
    sign_flip_p,
    sign_test_p,
    wilson_interval,
)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_the_closed_formula(case: tuple[int, int]) -> None:
    hits, trials = case
    z, p = 1.959963984540054, hits / trials
    middle = (p + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    assert wilson_interval(hits, trials) == pytest.approx((middle - half, middle + half), abs=1e-9)


def test_wilson_of_the_contracts_example_and_of_nothing() -> None:
    assert wilson_interval(1, 26) == pytest.approx((0.007, 0.189), abs=5e-4)
    assert wilson_interval(0, 0) is None


def test_sign_test_gives_the_papers_figures() -> None:
    assert sign_test_p(27, 22) == pytest.approx(0.57, abs=0.005)
    assert sign_test_p(335, 132) < 1e-12
    assert sign_test_p(0, 0) == 1.0


def test_mcnemar_is_one_sided_and_exact() -> None:
    assert mcnemar_p(1, 0) == 0.5
    assert mcnemar_p(6, 0) == pytest.approx(1 / 64)
    assert mcnemar_p(0, 6) == pytest.approx(1.0)
    assert mcnemar_p(3, 1) == pytest.approx((4 + 1) / 16)
    assert mcnemar_p(0, 0) == 1.0


@settings(deadline=None)
@given(st.lists(st.integers(-4, 4), max_size=9), st.booleans())
def test_sign_flip_equals_enumeration(differences: list[int], two_sided: bool) -> None:
    sums = [sum(s * abs(d) for s, d in zip(signs, differences, strict=True)) for signs in _signs(len(differences))]
    observed = sum(differences)
    extreme = [abs(s) >= abs(observed) if two_sided else s >= observed for s in sums]
    assert sign_flip_p(differences, two_sided=two_sided) == pytest.approx(sum(extreme) / len(extreme))


def _signs(count: int) -> list[tuple[int, ...]]:
    return list(itertools.product((-1, 1), repeat=count))


def test_sign_flip_over_many_clusters_stays_exact() -> None:
    assert sign_flip_p([3] * 40 + [2] * 40) == pytest.approx(2.0**-80)
    assert sign_flip_p([3, -2] * 200) > 1e-6
    assert sign_flip_p([5, -5, 2, -2], two_sided=True) == 1.0


def test_holm_steps_down_and_never_falls() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([0.2]) == [0.2]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_makes_smaller_and_keeps_the_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= a <= 1 for p, a in zip(p_values, adjusted, strict=True))
    by_p = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [adjusted[i] for i in by_p] == sorted(adjusted)


def test_clusters_are_drives_then_blocks_then_frames() -> None:
    drives = {(e, b): 1 for e in range(6) for b in range(3)}
    assert cluster_sums(drives, 1) == ([3] * 6, "sign-flip test over 6 drives")
    one_drive = {(0, b): 1 for b in range(6 * BLOCK_BUNDLES)}
    assert cluster_sums(one_drive, 1) == (
        [BLOCK_BUNDLES] * 6,
        f"sign-flip test over 6 blocks of {BLOCK_BUNDLES} frames",
    )
    short = {(0, b): 1 for b in range(5 * BLOCK_BUNDLES)}
    assert cluster_sums(short, 1) == ([1] * 50, "exact McNemar test over 50 frames")


def test_more_relations_need_more_clusters() -> None:
    """Six drives can reach 1/64 at best: too little for Holm over ten relations, so the next finer level is used."""
    drives = {(e, b): 1 for e in range(6) for b in range(2 * BLOCK_BUNDLES)}
    assert cluster_sums(drives, 3)[1].endswith("6 drives")
    sums, test = cluster_sums(drives, 10)
    assert len(sums) == 12 and "blocks" in test
    assert 10 * sign_flip_p(sums) < 0.05


def test_violations_in_one_stretch_are_one_event() -> None:
    burst = {(0, b): int(b < BLOCK_BUNDLES) for b in range(20 * BLOCK_BUNDLES)}
    spread = {(0, b): int(b % BLOCK_BUNDLES == 0) for b in range(20 * BLOCK_BUNDLES)}
    assert sign_flip_p(cluster_sums(burst, 1)[0]) == 0.5
    assert sign_flip_p(cluster_sums(spread, 1)[0]) < 1e-5


def test_whole_episodes_are_units_too() -> None:
    assert cluster_sums({(e, None): 1 for e in range(7)}, 1)[0] == [1] * 7
    assert cluster_sums({}, 1) == ([], "exact McNemar test over 0 frames")


def test_whole_episodes_are_called_drives_not_frames() -> None:
    def method(drives: int, trials: int, bundle: int | None = None) -> str:
        interval = proportion_interval({(drive, bundle): (0, trials) for drive in range(drives)})
        assert interval is not None
        return interval.method

    assert method(1, 20) == "Wilson, cluster-robust over 1 drive"
    assert method(3, 7) == "Wilson, cluster-robust over 3 drives"
    assert method(3, 1) == "Wilson, 3 drives taken as independent"
    assert method(6, 1) == "Wilson, cluster-robust over 6 drives"
    assert method(3, 7, 0) == "Wilson, cluster-robust over 3 frames"
    assert cluster_sums({(drive, None): 1 for drive in range(3)}, 1) == ([1] * 3, "exact McNemar test over 3 drives")
    both = {(0, None): 1, (0, 4): 1}
    assert cluster_sums(both, 1)[1] == "exact McNemar test over 2 frames"


@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(0, 14), st.none() | st.integers(0, 200), st.integers(-3, 3)), max_size=80),
)
def test_sums_are_those_of_the_coarsest_clusters_that_are_enough(
    needed: int, rows: list[tuple[int, int | None, int]]
) -> None:
    """Whatever the order: all units at once tell which clusters are enough, and each comes in its turn."""
    levels: list[Callable[[int, int | None], Hashable]] = [
        lambda drive, bundle: drive,
        lambda drive, bundle: (drive, None if bundle is None else bundle // BLOCK_BUNDLES),
        lambda drive, bundle: (drive, bundle),
    ]
    enough = (key for key in levels if len({key(drive, bundle) for drive, bundle, _ in rows}) >= needed)
    key = next(enough, levels[-1])
    expected: dict[Hashable, list[int]] = {}
    sums = ClusterSums(needed)
    for drive, bundle, number in rows:
        sums.add((drive, bundle), number, 1)
        known = expected.setdefault(key(drive, bundle), [0, 0])
        known[0], known[1] = known[0] + number, known[1] + 1
    assert sums.rows == list(expected.values())
    assert sums.single == (key is levels[-1])


def test_sums_over_many_drives_keep_nothing_of_their_bundles() -> None:
    sums = ClusterSums(6)
    for drive in range(20):
        for bundle in range(1000):
            sums.add((drive, bundle), 1)
    assert sums.rows == [[1000]] * 20 and len(sums._sums) == 20
