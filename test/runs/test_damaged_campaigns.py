# SPDX-License-Identifier: Apache-2.0
"""A campaign that was killed before its summary, and one whose file was damaged or edited since."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from campaign_runs import carried_out, drives, gone_on_with, results_of, summary_of

from mt_nodes.base.jsonl import write_result
from mt_nodes.cli.main import main
from mt_nodes.runs.again.verification import verify
from mt_nodes.runs.campaign.campaign_store import FILE


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("campaign")
    return carried_out(place, drives(place, 1, bundles=1))


@pytest.fixture
def out(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "out"))


def overwrite(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 32)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def edited(statement: str) -> Callable[[Path], None]:
    """Return what changes rows, as whoever has SQLite can."""

    def edit(path: Path) -> None:
        with sqlite3.connect(path) as db:
            db.execute(statement)
        db.close()

    return edit


def turned_bit(path: Path) -> None:
    """Change a bit of a number that is written as text, so that all pages and JSON stay sound."""
    data = bytearray(path.read_bytes())
    data[data.index(b'"decided": ') + len(b'"decided": ')] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (overwrite, "file is not a database"),
        (cut, "malformed"),
        (empty, "no such table: meta"),
        (edited("DROP TABLE drives"), "no such table: drives"),
        (edited("UPDATE meta SET value = '7' WHERE name = 'about'"), "digest"),
        (edited("UPDATE items SET judged = 7"), "digest"),
        (edited("UPDATE parts SET result = '{}'"), "digest"),
        (turned_bit, "digest"),
    ],
)
def test_a_damaged_campaign_file_is_named_and_not_gone_on_with(
    out: Path, damage: Callable[[Path], None], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(out / FILE)
    [problem] = next(verify(out)).wrong
    assert problem.startswith(f"{out / FILE}: ") and told in problem
    assert main(["campaign", "--resume", str(out), "--minutes", "0"]) == 4
    error = capsys.readouterr().err
    assert f"mt: {out / FILE}: " in error and "Traceback" not in error
    assert main(["watch", str(out)]) in (0, 4)
    assert "Traceback" not in capsys.readouterr().err


def test_a_sound_campaign_is_verified_and_gone_on_with(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(out)]) == 0
    assert "totals: 1 checked, as written" in capsys.readouterr().out
    before = results_of(out)
    gone_on_with(out)
    assert results_of(out) == before and main(["verify", str(out)]) == 0


def test_a_killed_campaign_has_a_report(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is killed before its first summary; nothing is merged yet either."""
    before = summary_of(out)
    (out / "summary.json").unlink()
    (out / "report.html").unlink()
    shutil.rmtree(out / "cells")
    edited("DELETE FROM meta WHERE name = 'digest'")(out / FILE)
    assert main(["verify", str(out)]) == 3, "there are no totals to check"
    assert "it was not summed up" in capsys.readouterr().out
    assert main(["report", str(out)]) == 0
    assert (out / "report.html").is_file()
    after = summary_of(out)
    assert (after["exit_code"], after["interrupted"]) == (130, True), "it may have been over, or not: it is no PASS"
    [cell] = before["cells"]
    assert after["cells"][cell]["outcomes"] == before["cells"][cell]["outcomes"]
    assert gone_on_with(out)["exit_code"] == before["exit_code"]


def test_other_counts_than_those_of_the_cells_are_found(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = summary_of(out)
    [cell] = summary["cells"].values()
    next(iter(cell["relations"].values()))["violated"] += 1
    write_result(out / "summary.json", {key: value for key, value in summary.items() if key != "crc32"})
    assert main(["verify", str(out)]) == 1
    assert "has other counts than its own summary.json" in capsys.readouterr().out
