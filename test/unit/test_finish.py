# SPDX-License-Identifier: Apache-2.0
"""The end of a run: one pass over the journal serves summary, waivers and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from made_runs import verdicts

from mt_nodes.base.jsonl import read_result
from mt_nodes.engine import finish
from mt_nodes.engine.journal import Journal, read_journal
from mt_nodes.engine.summary.summary import RelationInfo


class Counted:
    """Tables that count the lines and keep the summary."""

    def __init__(self) -> None:
        self.lines = 0
        self.summary: Mapping[str, Any] = {}

    def passing(self, lines: Iterable[finish.Line]) -> Iterator[finish.Line]:
        for line in lines:
            self.lines += 1
            yield line

    def write(self, summary: Mapping[str, Any]) -> None:
        self.summary = summary


def test_the_journal_is_read_once_for_summary_waivers_and_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = verdicts("noise", range(0, 30, 3))
    with Journal(tmp_path / "result.jsonl") as journal:
        for row in rows:
            journal.verdict(row)
    (tmp_path / "waivers.yaml").write_text("[{relation: noise, reason: known, expires: 2999-01-01}]")
    reads: list[Path] = []
    monkeypatch.setattr(finish, "read_journal", lambda path: (reads.append(path), read_journal(path))[1])
    tables, infos = Counted(), [RelationInfo("noise", "necessary")]
    summary = finish.finish(tmp_path, infos, tables=tables, waivers=tmp_path / "waivers.yaml")
    assert reads == [tmp_path / "result.jsonl"] and tables.lines == len(rows)
    assert summary["relations"]["noise"]["outcome"] == "FAIL" and summary["relations"]["noise"]["waived"]
    assert tables.summary == summary == read_result(tmp_path / "summary.json")
