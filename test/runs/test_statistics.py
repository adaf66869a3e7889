# SPDX-License-Identifier: Apache-2.0
"""Intervals and tests against their formulas, enumeration and the paper's own figures."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from mt_nodes.base.stats import exceedance as tests
from mt_nodes.base.stats.cluster_sums import BLOCK_BUNDLES, MIN_CLUSTERS, ClusterSums, Unit, sums_of
from mt_nodes.base.stats.exceedance import Exceedance, exceedance, excess_over, needed_in, sign_flip_p, upper_bound
from mt_nodes.base.stats.intervals import (
    at_least,
    effective_trials,
    holm,
    interval_of,
    mcnemar_p,
    proportion_interval,
    sign_test_p,
    wilson_interval,
)
from mt_nodes.base.wording import counted


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


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-30, 30), min_size=2, max_size=60))
def test_the_distribution_by_frequencies_is_that_by_sums(differences: list[int]) -> None:
    """The way of many clusters, held to the way of few."""
    sizes, counts = np.unique(np.abs([d for d in differences if d] or [1]), return_counts=True)
    reach = int(sizes @ counts)
    for observed in {sum(differences), reach, -reach + 2, 0, 1, reach // 2}:
        exact = tests._tail_by_sums(sizes, counts, observed) if -reach < observed <= reach else None
        if exact is not None:
            p = tests._tail_by_frequencies(sizes, counts, observed)
            assert p == pytest.approx(exact, abs=1e-9) or (exact <= 1e-8 and exact <= p <= 1e-3)


def test_many_clusters_are_tested_at_once() -> None:
    """Where the other way would take minutes; the normal distribution says about the same."""
    rng = np.random.default_rng(5)
    differences = rng.integers(-20, 21, 200_000)
    z = differences.sum() / math.sqrt(float(differences @ differences))
    assert sign_flip_p(differences) == pytest.approx(0.5 * math.erfc(z / math.sqrt(2)), abs=2e-3)
    assert sign_flip_p(differences + 5) < 1e-9


def exceeds(differences: dict[Unit, int], family: int = 1) -> Exceedance:
    return exceedance(sums_of(differences, needed_in(family)), family)


def test_clusters_are_drives_then_blocks_then_frames() -> None:
    drives = {(e, b): 1 for e in range(6) for b in range(3)}
    assert exceeds(drives)[:2] == (2**-6, "sign-flip test over 6 drives")
    one_drive = {(0, b): 1 for b in range(6 * BLOCK_BUNDLES)}
    assert str(sums_of(one_drive).finest) == f"6 blocks of {BLOCK_BUNDLES} frames"
    short = sums_of({(0, b): 1 for b in range(5 * BLOCK_BUNDLES)})
    assert str(short.finest) == "50 frames" and [str(clusters) for clusters in short.levels] == [
        "50 frames",
        f"5 blocks of {BLOCK_BUNDLES} frames",
        "1 drive",
    ]


def test_more_relations_need_more_clusters() -> None:
    """Six drives can reach 1/64 at best: too little for Holm over ten relations, so the next finer level is used."""
    drives = {(e, b): 1 for e in range(6) for b in range(2 * BLOCK_BUNDLES)}
    assert len(sums_of(drives, needed_in(3)).finest) == 6
    assert len(sums_of(drives, needed_in(10)).finest) == 12
    assert 10 * exceeds(drives, 10).p < 0.05


def test_violations_in_one_stretch_are_one_event() -> None:
    burst = {(0, b): int(b < BLOCK_BUNDLES) for b in range(20 * BLOCK_BUNDLES)}
    spread = {(0, b): int(b % BLOCK_BUNDLES == 0) for b in range(20 * BLOCK_BUNDLES)}
    assert exceeds(burst).p == 0.5
    assert exceeds(spread).p == 2**-6, "one drive is not more than the drives that it stands for"


def test_a_few_frames_in_a_row_do_not_stand_out_of_a_short_drive() -> None:
    """One fragment that lasts for nine frames was taken for nine observations."""
    burst = exceeds({(0, b): int(b < 9) for b in range(3 * BLOCK_BUNDLES)})
    assert burst == (2**-2, "sign-flip test over 3 blocks of 10 frames, each counted 2 times", burst.more)
    assert burst.more == "15 more blocks of 10 frames"
    spread = exceeds({(0, b): int(b % 4 == 0) for b in range(3 * BLOCK_BUNDLES)})
    assert spread.p == 2**-6


def replicated(differences: dict[Unit, int], times: int) -> dict[Unit, int]:
    """As many further drives with the same."""
    drives = 1 + max(drive for drive, _ in differences)
    return {(drive + again * drives, b): d for again in range(times) for (drive, b), d in differences.items()}


DRIVES = st.dictionaries(st.tuples(st.integers(0, 7), st.integers(0, 45)), st.integers(-1, 2), min_size=1, max_size=120)


@settings(deadline=None, max_examples=150)
@given(DRIVES, st.sampled_from([1, 3, 10, 40]), st.integers(2, 5))
def test_more_drives_of_the_same_sort_never_undo_what_few_have_shown(
    differences: dict[Unit, int], family: int, times: int
) -> None:
    """Before, two of three drives failed a relation by their frames, and four of six did not, by themselves."""
    few, many = exceeds(differences, family), exceeds(replicated(differences, times), family)
    if family * few.p < 0.05:
        assert family * many.p < 0.05, (few, many)


@settings(deadline=None, max_examples=150)
@given(DRIVES, st.sampled_from([1, 10]), st.data())
def test_a_violation_more_never_speaks_for_a_relation(
    differences: dict[Unit, int], family: int, data: st.DataObject
) -> None:
    worse = dict(differences)
    worse[data.draw(st.sampled_from(sorted(differences)))] += data.draw(st.integers(1, 3))
    assert exceeds(worse, family).p <= exceeds(differences, family).p * (1 + 1e-12)


@settings(deadline=None, max_examples=80)
@given(st.integers(1, 9), st.integers(1, 30), st.data(), st.sampled_from([1, 4, 17, 40]))
def test_so_many_clusters_more_would_decide(drives: int, frames: int, data: st.DataObject, family: int) -> None:
    """Of a stack whose control is clean: the number is exact for clusters of the sort that is too few."""
    violated = data.draw(st.sets(st.integers(0, drives - 1), min_size=1))
    few = {(e, b): int(e in violated) for e in range(drives) for b in range(frames)}
    found = exceeds(few, family)
    if family * found.p < 0.05:
        return
    more, *_, unit = found.more.split()
    if unit.startswith("drive"):
        share = len(violated) / drives
        enough = drives + int(more)
        many = {(e, b): int(e < math.ceil(share * enough)) for e in range(enough) for b in range(frames)}
        assert family * exceeds(many, family).p < 0.05
    else:
        assert int(more) > 0


def test_what_speaks_against_an_excess_needs_more_clusters() -> None:
    """Both directions: the normal approximation of how many would do, held to the test itself."""
    few = {(e, None): 1 if e % 4 else -1 for e in range(12)}
    found = exceeds(few)
    assert found.p > 0.05 and found.more
    enough = 12 + int(found.more.split()[0])
    assert exceeds({(e, None): 1 if e % 4 else -1 for e in range(enough + enough % 4)}).p < 0.05
    assert exceeds({(e, None): -1 for e in range(12)}).more == ""


def rated(hits: dict[Unit, int], trials: int = 1) -> ClusterSums:
    sums = ClusterSums(MIN_CLUSTERS, 2)
    for unit, hit in hits.items():
        sums.add(unit, hit, trials)
    return sums


def test_a_rate_is_exceeded_by_the_exact_binomial_test_where_frames_are_single() -> None:
    hits = {(0, b): int(b % 2) for b in range(20)}
    found = excess_over(rated(hits), 0.2)
    assert found.p >= special.betainc(10, 11, 0.2)
    assert excess_over(rated(dict.fromkeys(hits, 0)), 0.2).p == 1.0
    assert excess_over(rated(dict.fromkeys(hits, 1)), 0.2).p < 0.05
    assert excess_over(rated(dict.fromkeys(hits, 1)), 0.999).p > 0.05


@pytest.mark.parametrize("family", [1, 17])
@pytest.mark.parametrize("every", [3, 4, 10, 20])
def test_what_is_said_to_decide_about_a_rate_does(every: int, family: int) -> None:
    """So many of each frames: more than a tolerated fifth, or fewer."""

    def of(frames: int) -> ClusterSums:
        return rated({(0, b): int(b % every == 0) for b in range(frames)})

    found = excess_over(of(20), 0.2, family)
    more = int(found.more.split()[0])
    assert upper_bound(of(20)) > 0.2 and family * found.p > 0.05
    enough = of(20 + more)
    assert upper_bound(enough) <= 0.2 or family * excess_over(enough, 0.2, family).p < 0.05
    assert excess_over(rated({(0, b): int(b % 5 == 0) for b in range(20)}), 0.2).more == ""


def test_clusters_are_counted_in_words() -> None:
    block = ClusterSums(MIN_CLUSTERS, 1)
    for bundle in range(20):
        block.add((0, bundle), 1)
    assert [str(level) for level in block.levels] == ["20 frames", "2 blocks of 10 frames", "1 drive"]
    assert counted(1, "block of 10 frames") == "1 block of 10 frames"


@settings(deadline=None, max_examples=150)
@given(DRIVES, st.floats(0.01, 0.9), st.integers(2, 5))
def test_a_tolerated_rate_is_never_exceeded_and_kept_at_once_and_more_drives_keep_it(
    differences: dict[Unit, int], rate: float, times: int
) -> None:
    hits = {unit: int(d > 0) for unit, d in differences.items()}
    few, many = rated(hits), rated(replicated(hits, times))
    assert not (upper_bound(few) <= rate and excess_over(few, rate).p < 0.05)
    if upper_bound(few) <= rate:
        assert upper_bound(many) <= rate + 1e-9


def test_a_rate_is_kept_only_by_the_widest_of_the_intervals() -> None:
    """All that was hit lies in one of three drives: their blocks alone would say that far less was."""
    hits = {(e, b): int(e == 0 and b % 10 == 0) for e in range(3) for b in range(40)}
    blocks, drives = (interval_of(clusters.repeated(times)) for clusters, times in tests._levels(rated(hits), 6))
    assert blocks is not None and drives is not None and blocks.high < drives.high - 0.01
    assert upper_bound(rated(hits)) == drives.high


def test_up_to_three_drives_that_are_hit_do_not_show_how_alike_the_pairs_of_a_drive_are() -> None:
    def effective(hits: list[int]) -> float:
        sums = ClusterSums(MIN_CLUSTERS, 2)
        for drive, hit in enumerate(hits):
            sums.add((drive, None), hit, 100)
        return effective_trials(sums.finest)

    for few in ([0] * 8, [1] + [0] * 7, [1, 1, 1] + [0] * 5):
        assert effective(few) == effective([100 - hit for hit in few]) == 8.0
    assert effective([1, 1, 1, 1] + [0] * 4) > 400


def test_as_many_clusters_as_are_needed_are_enough() -> None:
    sums = ClusterSums(10)
    for drive, bundle in itertools.product(range(6), range(2 * BLOCK_BUNDLES)):
        sums.add((drive, bundle), 1)
    assert [str(sums.enough(needed)) for needed in (6, 7)] == ["6 drives", f"12 blocks of {BLOCK_BUNDLES} frames"]


def test_an_adjusted_p_value_is_never_below_its_own() -> None:
    assert (at_least(0.01, 0.02), at_least(0.03, 0.02)) == (0.02, 0.03)
    assert at_least(None, 0.02) is None and at_least(0.1, None) is None


def test_whole_episodes_are_units_too() -> None:
    assert len(sums_of({(e, None): 1 for e in range(7)}).finest) == 7
    assert exceeds({})[:2] == (1.0, "exact McNemar test over 0 frames")


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
    assert exceeds({(drive, None): 1 for drive in range(3)}).test == "exact McNemar test over 3 drives"
    assert exceedance(sums_of({(r, None): 1 for r in range(3)}), cluster="round").test.endswith("over 3 rounds")
    assert exceeds({(0, None): 1, (0, 4): 1}).test == "exact McNemar test over 2 frames"


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
    sums = ClusterSums(needed, 2)
    for drive, bundle, number in rows:
        sums.add((drive, bundle), number, 1)
        known = expected.setdefault(key(drive, bundle), [0, 0])
        known[0], known[1] = known[0] + number, known[1] + 1
    assert sums.finest.sums.tolist() == list(expected.values())
    assert sums.finest.single == (key is levels[-1])
    coarse: dict[Hashable, int] = {}
    for drive, _, number in rows:
        coarse[drive] = coarse.get(drive, 0) + number
    assert sums.levels[-1].sums[:, 0].sum() == sum(coarse.values())
    assert len(sums.levels[-1]) == len(coarse)


def test_sums_over_many_drives_keep_nothing_of_their_bundles() -> None:
    sums = ClusterSums(6)
    for drive in range(20):
        for bundle in range(1000):
            sums.add((drive, bundle), 1)
    assert sums.finest.sums.tolist() == [[1000]] * 20 and len(sums._row_of) == 20
