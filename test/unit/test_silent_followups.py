# SPDX-License-Identifier: Apache-2.0
"""Whether a silent follow-up tells of the stack or of the machine, by the control around it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.base.stats.intervals import fisher_p
from mt_nodes.engine.silent_followups import ALPHA, WAIT_S, PairAnswers, SilentFollowups, excess_p

#: What came of pairs, a letter each: c control, r relation, both answered; s the relation's follow-up silent; C control
#: silent; x no answer to the source, k none to that of control.
LETTERS = {
    "c": (True, True, True),
    "r": (False, True, True),
    "s": (False, True, False),
    "C": (True, True, False),
    "x": (False, False, True),
    "k": (True, False, True),
}


def counted(letters: str) -> list[int]:
    """Numbers of the pairs of which the silence counts; each pair comes out once."""
    silent, out = SilentFollowups[int](), list[tuple[int, bool]]()
    for number, letter in enumerate(letters):
        out += silent.take(PairAnswers(number, *LETTERS[letter]), 0.0)
    out += silent.expire(WAIT_S + 1.0)
    assert sorted(number for number, _ in out) == list(range(len(letters)))
    return sorted(number for number, counts in out if counts)


@pytest.mark.parametrize(
    ("letters", "counts"),
    [
        ("csc", []),  # that may be chance
        ("cssssc" + "ssssc", [6, 7, 8, 9]),
        ("s" + 20 * "c" + "rssrsc", [22, 23, 25]),
        ("c" * 20 + "sssss", []),  # no control after: nobody knows whether the arm still lives
        ("c" * 20 + "ssssC" * 9, []),  # the arm is dead, or the machine loses whatever comes
        ("c" * 20 + "ssssxc", []),  # the machine loses answers of the source arm, too
        ("c" * 20 + "sssskc", []),
        ("c" * 20 + "xssssc", []),
        ("c" * 20 + "Cssssc", []),
    ],
)
def test_silence_counts_between_answered_controls(letters: str, counts: list[int]) -> None:
    assert counted(letters) == counts


@given(st.text(alphabet="".join(LETTERS), max_size=80))
def test_every_pair_comes_out_once_and_only_silence_between_controls_counts(letters: str) -> None:
    for number in counted(letters):
        assert letters[number] == "s"
        assert next(letter for letter in reversed(letters[:number]) if letter in "cCxk") == "c"
        assert next(letter for letter in letters[number + 1 :] if letter in "cCxk") == "c"


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12), st.integers(0, 12))
def test_the_excess_is_the_smaller_side_of_fishers_test(hits: int, misses: int, control: int, whole: int) -> None:
    relation, beside = (hits, hits + misses), (control, control + whole)
    p = excess_p(relation, beside)
    assert 0.0 < p <= 1.0 and (p > 0.5 or p <= fisher_p(relation, beside) + 1e-9)


def test_a_pair_waits_for_its_control_so_long_and_no_longer() -> None:
    silent = SilentFollowups[int]()
    silent.take(PairAnswers(0, *LETTERS["c"]), 0.0)
    assert silent.take(PairAnswers(9, *LETTERS["s"]), 1.0) == []
    assert silent.expire(1.0 + WAIT_S) == [] and silent.expire(1.1 + WAIT_S) == [(9, False)]


def played(chance: random.Random, of_control: float, of_relation: float) -> str:
    """500 pairs, every fifth of them control, of which so many are silent by chance."""
    silent = {"c": ("C", of_control), "r": ("s", of_relation)}
    letters = ["cr"[bool(i % 5)] for i in range(500)]
    return "".join(silent[each][0] if chance.random() < silent[each][1] else each for each in letters)


@pytest.mark.parametrize("lost", [0.02, 0.1, 0.3])
def test_a_machine_that_loses_answers_is_not_taken_for_a_stack_that_falls_silent(lost: float) -> None:
    chance, runs = random.Random(7), 60
    wrong = [bool(counted(played(chance, lost, lost))) for _ in range(runs)]
    assert sum(wrong) <= 10 * ALPHA * runs, "it is looked at after each control"


@pytest.mark.parametrize("silent", [0.15, 1.0])
def test_a_stack_that_falls_silent_about_followups_alone_is_found(silent: float) -> None:
    letters = played(random.Random(7), 0.0, silent)
    assert len(counted(letters)) > 0.4 * letters.count("s")
