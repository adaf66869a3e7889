# SPDX-License-Identifier: Apache-2.0
"""Sheets on which people rate relations: what is drawn, what is refused, shares and agreement."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mt_nodes.cli.main import main

pytest.importorskip("krippendorff", reason="the extra agreement is not installed")


def mt(*words: Any) -> int:
    return main(["rules", "review", *map(str, words)])


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sheets") / "sheet.csv"
    assert mt("--sheet", path, "--count", 4) == 0
    return path


def rate(sheet: Path, name: str, valid: Sequence[object], clear: object = 4) -> Path:
    """Fill in a copy: the answers for the relations of each region in turn."""
    with sheet.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for i, row in enumerate(rows):
        row.update(valid=valid[i % len(valid)], clear=clear)
    path = sheet.with_name(name)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_a_sheet_holds_relations_of_each_region_beside_their_rules(sheet: Path) -> None:
    with sheet.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["region"] for row in rows) == ["california"] * 4 + ["germany"] * 4
    assert all(row["rule text"] and row["relation text"].startswith("Given") and not row["valid"] for row in rows)
    assert mt("--sheet", sheet) == 2, "a sheet that may hold ratings is not overwritten"


def test_shares_and_agreement_by_region(sheet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raters = [rate(sheet, "anna.csv", (5, 5, 2, 1)), rate(sheet, "ben.csv", (5, 4, 2, ""))]
    assert mt("--ratings", *raters, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    valid, clear = found["questions"][:2]
    assert (valid["answers"], valid["relations"]) == ([3, 1, 0, 2, 1], 3) and found["raters"] == ["anna", "ben"]
    assert 0.5 < valid["alpha"] < 1.0 and 0.0 < valid["kappa"] < valid["alpha"], "5 and 4 are near on an ordinal scale"
    assert (clear["shares"], clear["alpha"], clear["kappa"]) == ([0, 1, 0, 0, 0], None, None)
    assert mt("--ratings", *raters) == 0
    out = capsys.readouterr().out
    assert "valid, in the paper" in out and "74.4 %" in out


def test_sheets_that_cannot_be_used(sheet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    anna = rate(sheet, "anna.csv", (5,))
    other = sheet.with_name("other.csv")
    assert mt("--sheet", other, "--count", 3) == 0
    for files, why in (
        ((rate(sheet, "six.csv", (6,)),), "six.csv:2: valid: got '6', expected 1 to 5 or nothing"),
        ((anna, other), "its relations are not those of"),
        ((anna, anna), "got a second sheet of 'anna'"),
        ((rate(sheet, "none.csv", ("",), ""),), "no sheet has an answer under valid or clear"),
    ):
        assert mt("--ratings", *files) == 2 and why in capsys.readouterr().err
