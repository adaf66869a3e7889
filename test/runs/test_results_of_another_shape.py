# SPDX-License-Identifier: Apache-2.0
"""Results whose checksums fit and whose content is none of ours, as of another version: one line, no traceback."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from campaign_runs import carried_out, drives

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.jsonl import read_lines, read_result, seal, write_result
from mt_nodes.cli.main import main
from mt_nodes.runs.moral.report_files import read_summary
from mt_nodes.runs.moral.report_journal import MoralJournal


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("campaign")
    return carried_out(place, drives(place, 1, bundles=1))


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = read_result(path)
    change(document)
    write_result(path, document)


def lines_changed(path: Path, kind: str, change: Callable[[dict[str, Any]], object]) -> None:
    lines = list(read_lines(path))
    for line in lines:
        if line["type"] == kind:
            change(line)
    path.write_text("".join(f"{seal(line)}\n" for line in lines))


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    code, error = main(words), capsys.readouterr().err
    assert "Traceback" not in error
    return code, error


def test_summaries_and_costs_of_a_campaign(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong: dict[str, Callable[[dict[str, Any]], object]] = {
        "cells": lambda document: document["campaign"]["cells"].update(a={"stack": "s", "seed": 0}),
        "rate": lambda document: [
            row.update(rate={}) for cell in document["cells"].values() for row in cell["relations"].values()
        ],
        "control": lambda document: [
            row.update(control={"decided": {}}) for c in document["cells"].values() for row in c["relations"].values()
        ],
    }
    for name, change in wrong.items():
        out = Path(shutil.copytree(whole, tmp_path / name))
        changed(out / "summary.json", change)
        for command in ("show", "report"):
            code, error = said([command, str(out)], capsys)
            assert code == 4 and f"{out / 'summary.json'}: not as mt_nodes writes it: " in error and name in error
    out = Path(shutil.copytree(whole, tmp_path / "cost"))
    changed(out / "cost.json", lambda document: document["cells"].update(a=["pairs"]))
    code, error = said(["show", str(out)], capsys)
    assert code == 4 and f"{out / 'cost.json'}: not as mt_nodes writes it: " in error


def test_journals_and_records_of_a_run(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [cell] = (whole / "cells").iterdir()
    out = Path(shutil.copytree(cell, tmp_path / "journal"))
    lines_changed(out / "result.jsonl", "verdict", lambda line: [line.pop(key) for key in ("reason", "margin")])
    assert said(["report", str(out)], capsys)[0] == 0
    out = Path(shutil.copytree(cell, tmp_path / "record"))
    changed(out / "run.json", lambda document: document.update(relations=[7]))
    (out / "summary.json").unlink()
    assert said(["watch", str(out)], capsys)[0] in (0, 4)
    out = Path(shutil.copytree(cell, tmp_path / "summary"))
    changed(out / "summary.json", lambda document: document.pop("relations"))
    code, error = said(["show", str(out)], capsys)
    assert code == 4 and "is no summary of a run" in error


def test_a_moral_campaign(tmp_path: Path) -> None:
    condition = {"schema": 1, "type": "condition", "experiment": "moral", "principles": []}
    case = {"type": "case", "case": "p/d", "principle": "p", "outcome": "HOLDS", "reason": "", "changed": ""}
    sound = {**case, "stream": "decide", "source": {"name": "d"}, "runs": 3, "numbers": {}}
    path = tmp_path / "result.jsonl"
    path.write_text("".join(f"{seal(line)}\n" for line in (condition, sound)))
    assert MoralJournal.load(tmp_path).cases["p/d"]["runs"] == 3
    path.write_text("".join(f"{seal(line)}\n" for line in (condition, {**sound, "source": {}})))
    with pytest.raises(InfrastructureError, match=r"result.jsonl:2: .*source: no name"):
        MoralJournal.load(tmp_path)
    write_result(tmp_path / "summary.json", {"offered": 1, "outcomes": {}})
    with pytest.raises(InfrastructureError, match=r"summary.json: not as mt_nodes writes it: no exit_code"):
        read_summary(tmp_path)
