# SPDX-License-Identifier: Apache-2.0
"""Generators that answer beforehand give the numbers of plain ones, whatever they are asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.seeds import ForeseenGenerator, Request, generator

Ask = Callable[[np.random.Generator], Any]

ASKED: list[Ask] = [
    lambda g: g.permutation(50),
    lambda g: g.permutation(51),
    lambda g: g.permutation(np.arange(50) * 2),
    lambda g: g.permutation(np.arange(50).reshape(25, 2), axis=1),
    lambda g: g.standard_normal(50),
    lambda g: g.standard_normal(51),
    lambda g: g.standard_normal((50,)),
    lambda g: g.standard_normal(),
    lambda g: g.standard_normal(50, dtype=np.float32),
    lambda g: g.standard_normal(out=np.empty(50)),
    lambda g: g.integers(0, 1000, 3, dtype=np.uint32),
    lambda g: g.random(3),
]
EXPECTED = [Request("permutation", 50), Request("standard_normal", 50)]


@given(st.sampled_from(EXPECTED), st.lists(st.sampled_from(ASKED), max_size=5), st.integers(0, 5))
def test_what_was_foreseen_changes_no_number(expected: Request, asked: list[Ask], bundle: int) -> None:
    plain = generator(7, "r", 0, bundle, "0")
    foreseeing = ForeseenGenerator(generator(7, "r", 0, bundle, "0"), expected)
    for ask in asked:
        one, other = np.asarray(ask(plain)), np.asarray(ask(foreseeing))
        assert one.dtype == other.dtype and np.array_equal(one, other)
    assert plain.bit_generator.state == foreseeing.bit_generator.state


@pytest.mark.parametrize("expected", EXPECTED)
def test_what_was_foreseen_is_not_made_again(expected: Request) -> None:
    foreseeing = ForeseenGenerator(generator(7, "r", 0, 0, "0"), expected)
    made = foreseeing._answer
    assert getattr(foreseeing, expected.method)(expected.size) is made
    assert getattr(foreseeing, expected.method)(expected.size) is not made, "numbers that were given are gone"


@pytest.mark.parametrize("expected", EXPECTED)
def test_numbers_that_were_given_cannot_come_again_changed(expected: Request) -> None:
    """Not even where a generator is taken back to its beginning."""
    plain, foreseeing = generator(7, "r", 0, 0, "0"), ForeseenGenerator(generator(7, "r", 0, 0, "0"), expected)
    begin = foreseeing.bit_generator.state
    getattr(foreseeing, expected.method)(expected.size)[:] = 0
    foreseeing.bit_generator.state = begin
    again = getattr(foreseeing, expected.method)(expected.size)
    assert np.array_equal(again, getattr(plain, expected.method)(expected.size))
