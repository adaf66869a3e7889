# SPDX-License-Identifier: Apache-2.0
"""``pairs.parquet``: there with pyarrow, the same as ``pairs.csv``."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

import pytest
from made_runs import verdicts

from mt_nodes.data.verdict import Judgement, Outcome, Pair, Verdict
from mt_nodes.report.csv_pairs import COLUMNS, NUMBERS, pair_rows, write_pairs_csv, write_pairs_parquet

LINES = [
    *(v.as_plain() for v in verdicts("noise", [3], 5)),
    Verdict(Pair(1, None, "noise"), 0, Judgement(Outcome.SKIPPED, reason="paused")).as_plain(),
]


def test_without_pyarrow_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not write_pairs_parquet(tmp_path / "p.parquet", pair_rows(LINES))
    assert list(tmp_path.iterdir()) == []


def test_it_holds_what_the_csv_holds(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra 'parquet'")
    rows = pair_rows(LINES, {"noise": ("REQ-7", "REQ-9")})
    write_pairs_csv(tmp_path / "p.csv", rows)
    assert write_pairs_parquet(tmp_path / "p.parquet", rows)
    table = parquet.read_table(tmp_path / "p.parquet")
    assert tuple(table.column_names) == COLUMNS
    kinds = {name: "string" if name not in NUMBERS else NUMBERS[name].replace("float64", "double") for name in COLUMNS}
    assert {field.name: str(field.type) for field in table.schema} == kinds
    with (tmp_path / "p.csv").open(newline="", encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert len(written) == len(LINES) == table.num_rows
    for text, row in zip(written, table.to_pylist(), strict=True):
        assert row["requirement"] == "REQ-7;REQ-9"
        for name in COLUMNS:
            value = row[name]
            assert text[name] == "" if value is None else str(value) == text[name] or value == float(text[name])


def test_texts_of_any_kind_come_back_and_no_rows_are_a_table_too(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra 'parquet'")
    odd = ["", 'a, "b"\nc\r', "ü \N{SNOWMAN}", "not UTF-8: \udcff"]
    rows = [row._replace(reason=reason) for row, reason in zip(pair_rows(LINES), odd, strict=False)]
    assert write_pairs_parquet(tmp_path / "p.parquet", rows)
    told = parquet.read_table(tmp_path / "p.parquet").column("reason").to_pylist()
    assert told == [*odd[:-1], "not UTF-8: \\udcff"]
    assert write_pairs_parquet(tmp_path / "none.parquet", [])
    assert parquet.read_table(tmp_path / "none.parquet").num_rows == 0
