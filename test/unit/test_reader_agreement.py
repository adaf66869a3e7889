# SPDX-License-Identifier: Apache-2.0
"""How far readers of rules agree: alpha and kappa of worked examples, rules without an answer, what is not defined."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mt_nodes.base.errors import UsageError
from mt_nodes.rules.extraction import CandidateReading, Extraction
from mt_nodes.rules.parser import Reading
from mt_nodes.rules.reader_agreement import agreements, pairs, reader_counts
from mt_nodes.rules.rule_sets import Rule
from mt_nodes.rules.statement import Statement

pytest.importorskip("krippendorff", reason="the extra agreement is not installed")
#: Krippendorff (Computing Krippendorff's Alpha-Reliability, 2011), example D, nominal data: alpha is 0.743.
EXAMPLE_D = (
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)


def extractions(readers: Sequence[str]) -> list[Extraction]:
    """Readers with these values: a dot for no answer, a dash for no relation, else the name of a road."""
    rows = [row.split() for row in readers]
    return [
        Extraction(Rule(f"R-{i}", "text"), tuple(candidate(f"model{n}", v) for n, v in enumerate(column)), None)
        for i, column in enumerate(zip(*rows, strict=True))
    ]


def candidate(name: str, value: str) -> CandidateReading:
    statements = () if value in ".-" else (Statement(value, "adds", "dog", "slow_down"),)
    return CandidateReading(name, Reading(statements), complete=value != ".")


def test_alpha_is_that_of_krippendorffs_example() -> None:
    found = {one.aspect: one for one in agreements(extractions(EXAMPLE_D))}
    assert found["relations"].alpha == found["road"].alpha == pytest.approx(0.743, abs=5e-4)
    assert (found["road"].rules, found["road"].alike) == (11, pytest.approx(8 / 11)), "rule 12 has one answer"
    assert (found["element"].alpha, found["element"].kappa, found["element"].alike) == (None, None, 1.0)


def test_no_relation_is_a_value_and_no_answer_is_none() -> None:
    found = extractions(("a - b .", "a - - b"))
    road = agreements(found)[1]
    assert (road.rules, road.alike) == (3, pytest.approx(2 / 3))
    assert pairs(found) == {("model0", "model1"): pytest.approx(2 / 3)}
    assert [(one.answered, one.read, one.agreement) for one in reader_counts(found)] == [(3, 2, None), (4, 2, None)]
    assert pairs(extractions((". .", "a b"))) == {("model0", "model1"): None}


def test_one_reader_agrees_with_nobody() -> None:
    with pytest.raises(UsageError, match="got 1 reader, expected two or more"):
        agreements(extractions(("a b",)))
