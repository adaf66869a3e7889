# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.data.verdict import Pair
from mt_nodes.engine.pair_table import PairTable

PAIRS = st.builds(
    Pair,
    st.integers(0, 2),
    st.one_of(st.none(), st.integers(0, 600), st.just(10**12)),
    st.sampled_from(("identity", "noise")),
    st.sampled_from(("0", "1", "0@noise")),
)


@given(st.lists(st.tuples(PAIRS, st.binary(min_size=2, max_size=2).filter(any))), PAIRS)
def test_it_is_a_dictionary_of_pairs(rows: list[tuple[Pair, bytes]], asked: Pair) -> None:
    table, known = PairTable(2), dict(rows)
    for pair, value in rows:
        table.put(pair, value)
    assert len(table) == len(known)
    assert all(table.get(pair) == value and pair in table for pair, value in known.items())
    assert table.get(asked) == known.get(asked) and (asked in table) == (asked in known)


@pytest.mark.parametrize("value", [b"", b"\0\0", b"abc"])
def test_what_says_nothing_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match="expected 2 bytes"):
        PairTable(2).put(Pair(0, 0, "identity"), value)


def test_a_pair_takes_no_more_than_its_bytes() -> None:
    pairs, table = 100_000, PairTable(32)
    tracemalloc.start()
    for bundle in range(pairs):
        table.put(Pair(0, bundle, "identity"), b"\1" * 32)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 40 * pairs


def test_pairs_of_short_episodes_take_little_more() -> None:
    pairs, table = 25_000, PairTable(32)
    tracemalloc.start()
    for number in range(pairs):
        table.put(Pair(number // 25, number % 25, "identity"), b"\1" * 32)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 80 * pairs


@given(st.lists(PAIRS), st.integers(0, 3), st.integers(0, 600))
def test_what_comes_later_is_not_forgotten(pairs: list[Pair], episode: int, bundle: int) -> None:
    table = PairTable(2)
    for pair in pairs:
        table.put(pair, b"ab")
    table.forget_before(episode, bundle)
    assert all(pair in table for pair in pairs if (pair.episode, pair.bundle or 0) >= (episode, bundle))
    assert all(pair in table for pair in pairs if pair.episode == episode and pair.bundle is None)
    assert not any(pair in table for pair in pairs if pair.episode < episode)


def test_who_forgets_does_not_grow() -> None:
    table = PairTable(8)
    tracemalloc.start()
    for number in range(100_000):
        episode, bundle = divmod(number, 30_000)
        table.put(Pair(episode, bundle, "identity"), b"\1" * 8)
        table.forget_before(episode, bundle)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 10_000
