# SPDX-License-Identifier: Apache-2.0
"""The arm that is pulled next is the one of which most is expected that nobody has seen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.base.stats.discovery import Discovery

#: How many items each arm of a test has, all equally likely: most arms have hardly any.
ITEMS = (400, 60, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1)
Pull = Callable[[Discovery, np.random.Generator, int], int]


def by_index(found: Discovery, rng: np.random.Generator, number: int) -> int:
    return number if number < len(ITEMS) else found.choose(range(len(ITEMS)))


def by_chance(found: Discovery, rng: np.random.Generator, number: int) -> int:
    return int(rng.integers(len(ITEMS)))


def items_found(pull: Pull, seed: int, pulls: int = 300) -> int:
    found, rng, seen = Discovery(len(ITEMS)), np.random.default_rng(seed), set()
    for number in range(pulls):
        arm = pull(found, rng, number)
        item = (arm, int(rng.integers(ITEMS[arm])))
        found.take(arm, {item: 1.0})
        seen.add(item)
    return len(seen)


def test_more_is_found_than_by_chance() -> None:
    chosen, chance = ([items_found(pull, seed) for seed in range(5)] for pull in (by_index, by_chance))
    assert min(chosen) > 2 * max(chance)


def test_what_is_expected_is_what_was_seen_once_and_by_this_arm_alone() -> None:
    found = Discovery(3)
    found.take(0, {"a": 1.0, "b": 0.5})
    found.take(0, {"a": 1.0})
    found.take(1, {"b": 0.5, "c": 1.0})
    assert found.unseen().tolist() == [0.0, 1.0, np.inf]


def test_an_arm_that_was_never_pulled_comes_first_and_of_equal_ones_the_first() -> None:
    found = Discovery(3)
    assert found.choose((1, 2)) == 1
    found.take(0, {"a": 1.0})
    found.take(1, {})
    assert found.choose((0, 1, 2)) == 2 and found.choose((0, 1)) == 0


def test_an_arm_that_is_pulled_in_vain_is_left_and_come_back_to() -> None:
    found, pulls = Discovery(2, exploration=0.5), [0, 0]
    for number in range(400):
        arm = found.choose((0, 1))
        pulls[arm] += 1
        found.take(arm, {number: 0.3} if arm == 0 else {})
    assert pulls[0] > pulls[1] > 4


@given(st.lists(st.tuples(st.integers(0, 2), st.sets(st.integers(0, 5), max_size=3)), max_size=40))
def test_the_estimate_is_that_of_good_and_turing(pulls: list[tuple[int, set[int]]]) -> None:
    found = Discovery(3)
    for arm, items in pulls:
        found.take(arm, dict.fromkeys(items, 1.0))
    for arm in range(3):
        own = [items for a, items in pulls if a == arm]
        if own:
            once = sum(sum(item in items for _, items in pulls) == 1 for items in own for item in items)
            assert found.unseen()[arm] == pytest.approx(once / len(own))
