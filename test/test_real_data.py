# SPDX-License-Identifier: Apache-2.0
"""The page about a real drive says what the results say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from made_runs import FOG, NOISE, made_run, verdicts

from mt_nodes.verdict import Judgement, Outcome, Pair, Verdict

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import real_data  # noqa: E402

KEPT = [f"none of {n} things ahead has 30 returns" for n in (7, 9, 8)]
NO_ROOM = [f"no free ground for 'truck': of {n} places tried {n} occupied" for n in range(12)]


def undecided(relation: str, reasons: list[str]) -> list[Verdict]:
    judgements = (Judgement(Outcome.NOT_APPLICABLE, reason=reason) for reason in reasons)
    return [Verdict(Pair(0, 100 + i, relation, "0"), 10**17 + 100 + i, j) for i, j in enumerate(judgements)]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("real")
    rows = [*verdicts("noise", [3, 12]), *verdicts("fog", count=15), *undecided("fog", KEPT + NO_ROOM)]
    made_run(place / "one", rows, NOISE, FOG)
    made_run(place / "other", verdicts("noise"), NOISE)
    return real_data.page({stack: real_data.told(place / stack) for stack in ("one", "other")})


def test_it_counts_what_was_decided_and_violated(page: str) -> None:
    assert "| `noise` | necessary | 2 of 30 | 0 of 30 |" in page
    assert "| `fog` | necessary | 0 of 15 |  |" in page
    assert "on 30 frames" in page and "violated in 0 of 150 pairs" in " ".join(page.split())
    assert "| `noise` | `one` | 3, 12 |" in page and "1 of these are `necessary`" in page


def test_it_says_why_the_rest_was_not_decided(page: str) -> None:
    why = "12 times: no free ground for 'truck'; 3 times: none of the things ahead has 30 returns"
    assert f"| `fog` | `one` | 15 | 20 | {why} |" in page
    assert page.count("20 |") == 1, "what was decided often enough is not among them"


def test_the_page_names_relations_that_are_there() -> None:
    shipped = {path.stem for path in (ROOT / "config" / "relations").glob("*.yaml")}
    rows = [
        line.split("`")[1] for line in real_data.PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")
    ]
    assert len(set(rows)) > 80 and set(rows) <= shipped
