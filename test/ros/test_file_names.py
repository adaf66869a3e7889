# SPDX-License-Identifier: Apache-2.0
"""File names that are no UTF-8 (PEP 383): journals, tables, pages and the terminal hold them all the same."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import FOG, NOISE, in_process, made_run, sparse_drive, verdicts

from mt_nodes.base.directories import write_whole
from mt_nodes.base.jsonl import LineFile, in_utf8, read_lines, read_result, seal, unseal
from mt_nodes.cli.main import main
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.journal import read_journal
from mt_nodes.runs.campaign.campaign_plan import Plan
from mt_nodes.runs.campaign.campaign_store import CampaignStore
from mt_nodes.runs.campaign.failures import FailureCase, Failures
from mt_nodes.runs.campaign.item import Drive

ODD = os.fsdecode(b"dr\xffive")
NAME = "noise_outside_roi_1000"
STRICT = {"PYTHONIOENCODING": "utf-8:strict"}


def test_a_line_with_any_file_name_is_sealed_written_and_read(tmp_path: Path) -> None:
    line = {"type": "condition", "bags": [f"/data/{ODD}", "/data/ü"]}
    assert unseal(seal(line), "here") == line
    assert '"/data/ü"' in seal(line) and '"/data/dr\\udcffive"' in seal(line)
    file = LineFile(tmp_path / "result.jsonl")
    file.append(line)
    file.close()
    assert list(read_lines(tmp_path / "result.jsonl")) == [line]


@given(st.binary(max_size=20))
def test_whatever_bytes_a_name_has_come_back(name: bytes) -> None:
    line = {"bag": os.fsdecode(name)}
    assert unseal(seal(line), "here") == line
    assert os.fsencode(unseal(seal(line), "here")["bag"]) == name


@given(st.text())
def test_what_is_utf8_is_as_it_was(text: str) -> None:
    assert in_utf8(text) == text


def test_a_whole_run_of_such_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bag, out = sparse_drive(tmp_path / ODD, 2), tmp_path / os.fsdecode(b"o\xfeut")
    in_process(bag, out, NAME, faults=("grid_index_wrap",))
    assert next(read_journal(out / "result.jsonl"))["bags"] == [str(bag)]
    assert read_result(out / "run.json")["request"]["bags"] == [str(bag)]
    assert list(csv.reader((out / "pairs.csv").open(encoding="utf-8")))
    ET.parse(out / "junit.xml")
    assert "dr\\udcffive" in (out / "report.html").read_text(encoding="utf-8")
    assert main(["report", str(out)]) == 0
    assert main(["watch", str(out)]) in (0, 1, 3)
    assert "o\\udcfeut" in capsys.readouterr().out


def test_the_terminal_shows_such_names(tmp_path: Path) -> None:
    out = made_run(tmp_path / ODD, verdicts("noise"), NOISE)
    words = [sys.executable, "-m", "mt_nodes.cli.main", "report", str(out)]
    told = subprocess.run(words, capture_output=True, check=True, env={**os.environ, **STRICT})
    assert b"dr\\udcffive" in told.stdout


def test_a_trend_of_such_directories_is_drawn_and_linked(tmp_path: Path) -> None:
    runs = [made_run(tmp_path / f"{ODD}{i}", [*verdicts("noise"), *verdicts("fog")], NOISE, FOG) for i in range(3)]
    assert main(["compare", *map(str, runs), "--html", str(tmp_path / "trend.html")]) == 0
    page = (tmp_path / "trend.html").read_text(encoding="utf-8")
    assert "dr%FFive2/report.html" in page


def test_a_campaign_remembers_such_drives(tmp_path: Path) -> None:
    drives = (Drive(0, f"/data/{ODD}", "0" * 64, 3), Drive(1, "/data/ü", "1" * 64, None))
    with CampaignStore(tmp_path / "campaign.sqlite") as store:
        store.begin(Plan(drives, (), {}, ()), {"campaign": {}})
    with CampaignStore(tmp_path / "campaign.sqlite") as store:
        assert store.plan().drives == drives


def test_a_database_of_failing_cases_remembers_such_bags(tmp_path: Path) -> None:
    case = FailureCase(f"/data/{ODD}", "0" * 64, "stack", Pair.parse("0/1/noise/0"), 0, "{}", "1" * 64)
    with Failures(tmp_path / "failures.sqlite") as failures:
        assert failures.failed([case]) == 1
    with Failures(tmp_path / "failures.sqlite") as failures:
        assert [kept.bag for kept in failures.cases()] == [case.bag]


def test_what_is_written_whole_may_name_them(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.json", json.dumps({"bag": ODD}, ensure_ascii=False))
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"bag": ODD}
