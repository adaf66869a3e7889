# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.verdict import Judgement, Outcome, Pair, Verdict
from mt_nodes.engine.journal import Journal, read_journal


def verdict(bundle: int, **detail: object) -> Verdict:
    judgement = Judgement(Outcome.HOLDS, 7, 7.0, 0, "obstacles", "ä reason", detail=detail)
    return Verdict(Pair(0, bundle, "identity", "0@noise"), 1000 + bundle, judgement)


def journal(path: Path, bundles: int) -> Path:
    with Journal(path) as made:
        made.condition({"seed": 7, "bags": ["a"]})
        for i in range(bundles):
            made.verdict(verdict(i))
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    lines = list(read_journal(journal(tmp_path / "run" / "result.jsonl", 3)))
    assert lines[0] == {"schema": 1, "type": "condition", "seed": 7, "bags": ["a"]}
    assert [Verdict.from_plain(line) for line in lines[1:]] == [verdict(i) for i in range(3)]


def test_the_checksum_is_what_the_format_says(tmp_path: Path) -> None:
    for line in journal(tmp_path / "result.jsonl", 2).read_text(encoding="utf-8").splitlines():
        body, crc = line.rsplit(', "crc32": "', 1)
        assert crc == f'{zlib.crc32((body + "}").encode()):08x}"}}'
        assert list(json.loads(line))[-1] == "crc32"


def test_equal_runs_have_equal_bytes_and_lines_are_there_at_once(tmp_path: Path) -> None:
    a = journal(tmp_path / "a.jsonl", 3)
    with Journal(tmp_path / "b.jsonl") as b:
        b.condition({"seed": 7, "bags": ["a"]})
        for i in range(3):
            text = b.verdict(verdict(i))
            assert (tmp_path / "b.jsonl").read_text(encoding="utf-8").splitlines()[-1] == text
    assert a.read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_numbers_of_numpy_and_those_that_json_lacks(tmp_path: Path) -> None:
    with Journal(tmp_path / "r.jsonl") as made:
        made.verdict(verdict(0, a=np.int64(3), b=np.float32(np.nan), c=np.arange(2), d=float("inf")))
    (line,) = read_journal(tmp_path / "r.jsonl")
    assert line["detail"] == {"a": 3, "b": None, "c": [0, 1], "d": None}


def test_a_pair_ends_exactly_once(tmp_path: Path) -> None:
    path = journal(tmp_path / "r.jsonl", 2)
    with Journal(path) as resumed:
        assert len(resumed) == 2
        assert verdict(1).pair in resumed and verdict(2).pair not in resumed
        resumed.condition({"seed": 7, "bags": ["a"]})
        with pytest.raises(ValueError, match="pair 0/1/identity/0@noise has a verdict already"):
            resumed.verdict(verdict(1))
        resumed.verdict(verdict(2))
    assert path.read_bytes() == journal(tmp_path / "whole.jsonl", 3).read_bytes()


def test_a_run_is_not_resumed_under_another_condition(tmp_path: Path) -> None:
    with Journal(journal(tmp_path / "r.jsonl", 1)) as resumed, pytest.raises(UsageError, match="seed: was 7, is 8"):
        resumed.condition({"seed": 8, "bags": ["a"]})


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_a_torn_last_line_is_dropped_and_written_over(tmp_path: Path, cut: int) -> None:
    path = journal(tmp_path / "r.jsonl", 3)
    path.write_bytes(path.read_bytes()[:-cut])
    assert len(list(read_journal(path))) == 3
    with Journal(path) as resumed:
        assert len(resumed) == 2
        resumed.verdict(verdict(2))
    assert path.read_bytes() == journal(tmp_path / "whole.jsonl", 3).read_bytes()


def test_a_damaged_line_is_an_error_that_says_where(tmp_path: Path) -> None:
    path = journal(tmp_path / "r.jsonl", 3)
    path.write_bytes(path.read_bytes().replace(b'"stamp_ns": 1001', b'"stamp_ns": 1009'))
    lines = read_journal(path)
    assert [next(lines)["type"], next(lines)["type"]] == ["condition", "verdict"]
    with pytest.raises(InfrastructureError, match=r"r\.jsonl:3: damaged or edited"):
        next(lines)
    with pytest.raises(InfrastructureError, match=r"r\.jsonl:3"):
        Journal(path)


def test_no_journal(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no journal"):
        list(read_journal(tmp_path / "nothing.jsonl"))
