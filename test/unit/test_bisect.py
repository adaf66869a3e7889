# SPDX-License-Identifier: Apache-2.0
"""The search of ``mt bisect``: the right version or the smallest range, and a flaky one within the stated error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted_histories import git, history

from mt_nodes.base.errors import UsageError
from mt_nodes.base.stats.sequential import RateTest, least_rate, step_error
from mt_nodes.cli.main import main
from mt_nodes.data.verdict import Outcome
from mt_nodes.runs.bisect.bisection import Bisection, CannotTest, Certainty, EndsAlike, StopRule, Tally
from mt_nodes.runs.bisect.stack_versions import (
    GitVersions,
    ValueVersions,
    commit_of,
    filled,
    refuse_unrelated,
    values_of,
)
from mt_nodes.runs.bisect.version_search import VersionGraph, VersionSearch, VersionState


def searched(graph: VersionGraph, states: Mapping[str, VersionState]) -> tuple[VersionSearch, int]:
    search, tests = VersionSearch(graph), 0
    while (version := search.next()) is not None:
        search.mark(version, states[version])
        tests += 1
    return search, tests


@settings(max_examples=200, deadline=None)
@given(st.data(), st.integers(1, 120))
def test_the_first_bad_of_a_row_is_found_or_the_smallest_range_that_can_be(data: st.DataObject, count: int) -> None:
    versions = [f"v{number}" for number in range(count)]
    first = data.draw(st.integers(0, count - 1))
    skipped = data.draw(st.sets(st.integers(0, count - 2), max_size=count // 2)) if count > 1 else set()
    states = {v: VersionState.BAD if at >= first else VersionState.GOOD for at, v in enumerate(versions)}
    states |= {versions[at]: VersionState.SKIP for at in skipped}
    search, tests = searched(VersionGraph.in_a_row(versions), states)
    goods = [at for at, v in enumerate(versions) if states[v] is VersionState.GOOD]
    bads = [at for at, v in enumerate(versions) if states[v] is VersionState.BAD]
    low, high = max(goods, default=-1), min([*bads, count - 1])
    assert search.candidates == tuple(versions[low + 1 : high + 1])
    assert versions[first] in search.candidates
    if not skipped:
        assert search.candidates == (versions[first],) and tests <= math.ceil(math.log2(count))
        assert search.last_good == (versions[first - 1] if goods and tests else "")


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(2, 40))
def test_the_first_bad_commit_of_any_graph_is_among_the_candidates(data: st.DataObject, count: int) -> None:
    """Merges and branches: bad is whatever descends from one commit, the last commit among them."""
    parents = [sorted(data.draw(st.sets(st.integers(0, at - 1), max_size=3))) if at else [] for at in range(count - 1)]
    parents.append(list(range(count - 1)))
    first = data.draw(st.integers(0, count - 1))
    bad = {first}
    for at in range(count):
        bad |= {at} if bad & set(parents[at]) else set()
    skipped = data.draw(st.sets(st.integers(0, count - 2), max_size=count // 3))
    states = {str(at): VersionState.BAD if at in bad else VersionState.GOOD for at in range(count)}
    states |= {str(at): VersionState.SKIP for at in skipped}
    search, tests = searched(VersionGraph({str(at): list(map(str, of)) for at, of in enumerate(parents)}), states)
    assert str(first) in search.candidates and tests <= count
    if not skipped:
        assert search.candidates == (str(first),)
    assert not {v for v in search.candidates if states[v] is VersionState.GOOD}


def test_a_long_stretch_that_does_not_build_is_crossed_in_few_tests() -> None:
    versions = [str(number) for number in range(1000)]
    states = {v: VersionState.BAD if int(v) >= 850 else VersionState.GOOD for v in versions}
    states |= {v: VersionState.SKIP for v in versions if 400 <= int(v) < 800}
    search, tests = searched(VersionGraph.in_a_row(versions), states)
    assert search.candidates == ("850",) and tests < 40


def wrong_probability(test: RateTest, rate: float, wrong: bool, plays: int = 400) -> float:
    """The exact probability of a wrong decision within so many plays."""
    alive, total = {0: 1.0}, 0.0
    for play in range(1, plays + 1):
        fresh: dict[int, float] = {}
        for violated, weight in alive.items():
            for more, share in ((1, rate), (0, 1.0 - rate)):
                fresh[violated + more] = fresh.get(violated + more, 0.0) + weight * share
        alive = {}
        for violated, weight in fresh.items():
            decision = test.decision(play - violated, violated)
            total += weight if decision is wrong else 0.0
            alive |= {violated: weight} if decision is None else {}
    return total


@pytest.mark.parametrize("rates", [(0.05, 0.5), (0.017, 0.17), (0.1, 0.98)])
@pytest.mark.parametrize("error", [0.05, 0.001])
def test_a_decision_is_wrong_as_rarely_as_stated_whatever_the_rate_beyond_the_bounds(
    rates: tuple[float, float], error: float
) -> None:
    test = RateTest(*rates, error)
    for good in (rates[0], rates[0] / 3):
        assert 0.0 <= wrong_probability(test, good, True) <= error
    for bad in (rates[1], (1 + rates[1]) / 2):
        assert wrong_probability(test, bad, False) <= error
    # It can fail: halfway between both rates one of the decisions is wrong far more often.
    assert max(wrong_probability(test, sum(rates) / 2, wrong) for wrong in (True, False)) > error


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_the_lower_bound_of_a_rate_holds_for_plays_until_ten_violations(rate: float) -> None:
    """The exact coverage over the number of plays, a negative binomial, cut off at 300."""
    missed = 0.0
    for plays in range(10, 301):
        chance = math.comb(plays - 1, 9) * rate**10 * (1 - rate) ** (plays - 10)
        missed += chance if least_rate(10, plays, 0.05) > rate else 0.0
    assert missed <= 0.05 and least_rate(0, 20, 0.05) == 0.0


@given(st.integers(1, 40), st.floats(0.0001, 0.4))
def test_all_tests_together_have_the_stated_error_at_most(expected: int, total: float) -> None:
    assert sum(step_error(step, expected, total) for step in range(1, 400)) <= total * (1 + 1e-12)


class Simulated:
    """Versions that fail by chance. ``rates``: of each version, None: it does not build."""

    def __init__(self, rates: Mapping[str, float | None], rng: np.random.Generator) -> None:
        self.rates, self.rng, self.plays = rates, rng, 0

    def tally(self, phase: str, version: str, pair: str, rule: StopRule) -> Tally:
        rate, tally = self.rates[version], Tally()
        if rate is None:
            raise CannotTest("it does not build")
        while not rule.done(tally):
            self.plays += 1
            tally = tally.plus(Outcome.VIOLATED if self.rng.random() < rate else Outcome.HOLDS)
        return tally


def bisected(rates: Sequence[float | None], seed: int, **certainty: Any) -> Bisection:
    names = [str(number) for number in range(len(rates))]
    bench = Simulated(dict(zip(names, rates, strict=True)), np.random.default_rng(seed))
    return Bisection(VersionGraph.in_a_row(names[1:]), names[0], ["0/0/a/0"], bench, Certainty(**certainty).checked())


@pytest.mark.parametrize(("good", "bad"), [(0.0, 1.0), (0.0, 0.3), (0.03, 0.9)])
def test_flaky_histories_are_answered_wrongly_no_more_often_than_stated(good: float, bad: float) -> None:
    """150 histories of 30 versions, some of which cannot be tested; with 5 % each, 14 wrong ones have p < 0.02."""
    wrong = refused = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        first = int(rng.integers(1, 30))
        rates: list[float | None] = [bad if at >= first else good for at in range(30)]
        for at in rng.integers(1, 29, 4):
            rates[at] = None
        bisection = bisected(rates, seed, error=0.05)
        try:
            finding = bisection.run()
        except EndsAlike:
            refused += 1
            continue
        assert finding.search is not None
        wrong += str(first) not in finding.search.candidates
    assert wrong <= 13 and refused <= 3


@pytest.mark.parametrize("rates", [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.5, 1.0, 1.0]])
def test_ends_that_do_not_differ_end_with_an_error(rates: list[float]) -> None:
    with pytest.raises(EndsAlike):
        bisected(rates, 1).run()


@pytest.mark.parametrize("end", [0, 2])
def test_an_end_that_does_not_build_ends_with_an_error(end: int) -> None:
    rates: list[float | None] = [0.0, 1.0, 1.0]
    rates[end] = None
    with pytest.raises(CannotTest, match="does not build"):
        bisected(rates, 1).run()


def test_what_decides_nothing_is_never_good() -> None:
    class Undecided(Simulated):
        def tally(self, phase: str, version: str, pair: str, rule: StopRule) -> Tally:
            tally = Tally()
            if version not in ("2", "3"):
                return super().tally(phase, version, pair, rule)
            while not rule.done(tally):
                tally = tally.plus(Outcome.UNPAIRED_FOLLOWUP, "it said nothing")
            return tally

    names = [str(number) for number in range(6)]
    bench = Undecided(dict(zip(names, (0.0, 0.0, 0.0, 0.0, 1.0, 1.0), strict=True)), np.random.default_rng(0))
    finding = Bisection(VersionGraph.in_a_row(names[1:]), "0", ["0/0/a/0"], bench, Certainty()).run()
    assert finding.search is not None and finding.search.candidates == ("2", "3", "4") and not finding.found
    assert {t.state for t in finding.tests if t.version in "23"} == {"skip"} and "said nothing" in str(finding.tests)
    assert all(t.tally.plays <= 3 for t in finding.tests if t.version in "23")


@pytest.mark.parametrize(
    ("given_rates", "why"),
    [
        ({"error": 0.0}, "--error"),
        ({"bad_rate": 1.0}, "--bad-rate"),
        ({"bad_rate": 0.2, "good_rate": 0.3}, "--good-rate"),
    ],
)
def test_rates_that_do_not_fit_are_refused(given_rates: dict[str, float], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Certainty(**given_rates).checked()


def test_placeholders_are_filled_in_also_where_yaml_reads_a_mapping() -> None:
    rows = {"command": ["run", "image:{version}", "{arm}"], "params": {"weights": {"version": None}, "x": 1}}
    assert filled(rows, {"{version}": "1.10"}) == {
        "command": ["run", "image:1.10", "{arm}"],
        "params": {"weights": "1.10", "x": 1},
    }


def test_values_keep_their_order_or_take_the_natural_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number in (1, 2, 10):
        Path(f"epoch_{number}.pt").touch()
    Path("list.txt").write_text("b\na\n\n")
    assert values_of(["epoch_*.pt"]) == ("epoch_1.pt", "epoch_2.pt", "epoch_10.pt")
    assert values_of([str(tmp_path / "epoch_*.pt")])[-1].endswith("epoch_10.pt")
    assert values_of(["@list.txt", "c"]) == ("b", "a", "c")
    with pytest.raises(UsageError, match="got 0"):
        values_of(["nothing_*"])
    stack = "reference_detector"
    versions = ValueVersions(("a", "b", "c"), "", "", stack, {"params.x": "{version}"})
    assert versions.opened("b").settings == {"params.x": "b"} and versions.graph.versions == ("b", "c")
    for wrong, why in ((("c", "a"), "expected good to come before bad"), (("d", ""), "expected one of")):
        with pytest.raises(UsageError, match=why):
            ValueVersions(("a", "b", "c"), *wrong, stack, {"params.x": "{version}"})
    with pytest.raises(UsageError, match="in it or in --set"):
        ValueVersions(("a", "b"), "", "", stack, {"params.x": 1})


def test_commits_are_checked_out_elsewhere_and_built(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    made = history(repo, 4, 2, 1000)
    git(repo, "checkout", "--quiet", "-b", "side", made[1])
    git(repo, "commit", "--quiet", "--allow-empty", "--message", "Side")
    git(repo, "merge", "--quiet", "--no-edit", made[3])
    (repo / "perception.py").write_text("half written")
    head, merged = git(repo, "rev-parse", "HEAD"), commit_of(repo, "side", "--bad")
    versions = GitVersions(repo, made[0], merged, str(repo / "stack.yaml"), {"env.X": "{repo}"}, tmp_path / "out")
    assert len(versions.graph.versions) == 5 and versions.graph.versions[-1] == merged
    assert versions.graph.up_to(merged).bit_count() == 5 and versions.graph.up_to(made[3]).bit_count() == 3
    versions.build = "test -f perception.py && touch built && ! grep -q 'Version 2' perception.py"
    place = versions.opened(made[3])
    assert (place.directory / "built").is_file() and place.settings == {"env.X": str(place.directory)}
    assert (
        Path(place.stack) == place.directory / "stack.yaml"
        and "Version 3" in (place.directory / "perception.py").read_text()
    )
    with pytest.raises(CannotTest, match="the build ended with exit code 1"):
        versions.opened(made[2])
    assert not place.directory.exists()  # no more than one is kept beside both ends
    assert versions.about(made[2])["title"] == "Change 2" and versions.about(made[2])["author"] == "A. Author"
    versions.close()
    assert git(repo, "worktree", "list").count("\n") == 0
    assert git(repo, "rev-parse", "HEAD") == head and (repo / "perception.py").read_text() == "half written"
    git(repo, "checkout", "--quiet", "--force", "-b", "other", made[0])
    git(repo, "commit", "--quiet", "--allow-empty", "--message", "Other")
    with pytest.raises(UsageError, match=f"--good {made[0][:12]}"):
        refuse_unrelated(repo, git(repo, "rev-parse", "other"), merged)


@pytest.mark.parametrize("words", [["--failures", "nowhere"], ["--typo"], ["--good", "a"], []])
def test_no_error_of_a_step_looks_like_a_bad_or_a_good_version(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["bisect", "step", *words]) >= 128
    assert main(["bisect", *words]) in (2, 4)
