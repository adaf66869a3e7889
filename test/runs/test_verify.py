# SPDX-License-Identifier: Apache-2.0
"""``mt verify`` finds whatever in a results directory is not as it was written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from made_runs import in_process, sparse_drive

from mt_nodes.base.jsonl import read_result, seal, write_result
from mt_nodes.cli.main import main
from mt_nodes.engine.journal import read_journal

NAME = "noise_outside_roi_1000"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bag = sparse_drive(tmp_path_factory.mktemp("bag") / "drive", 3)
    return in_process(bag, tmp_path_factory.mktemp("done") / "run", NAME, faults=("grid_index_wrap",)).out


def verified(run: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    return main(["verify", str(run)]), capsys.readouterr().out.replace("\n", " ")


def test_an_untouched_run_is_as_it_was_written(done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = verified(done, capsys)
    assert code == 0, printed
    assert "totals: 9 checked, as written" in printed and "follow-ups: 9 checked, as written" in printed
    assert main(["verify", str(done), "--json"]) == 0
    assert {row["what"] for row in json.loads(capsys.readouterr().out)["checks"]} == {"files", "totals", "follow-ups"}


def test_what_a_kill_leaves_half_written_beside_results_is_none(done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    half = done / "evidence" / ".mt_bag_abc" / "0.mcap"
    half.parent.mkdir(parents=True)
    half.touch()
    try:
        assert verified(done, capsys)[0] == 0
        half.rename(done / "evidence" / "half.mcap")
        assert verified(done, capsys)[0] == 1, "anywhere else it is one"
    finally:
        (done / "evidence" / "half.mcap").unlink(missing_ok=True)
        half.unlink(missing_ok=True)
        half.parent.rmdir()


def flip(name: str) -> Callable[[Path], None]:
    """Change one bit in the middle of a file."""

    def change(run: Path) -> None:
        path = next(iter(sorted(run.rglob(name))))
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)

    return change


def cut(run: Path) -> None:
    path = run / "scores.jsonl"
    path.write_bytes(path.read_bytes()[:-5])


def forget_a_verdict(run: Path) -> None:
    rows = list(read_journal(run / "result.jsonl"))
    left = [row for row in rows if row.get("outcome") != "VIOLATED"]
    assert len(left) < len(rows)
    (run / "result.jsonl").write_text("".join(f"{seal(row)}\n" for row in left))


def claim_a_pass(run: Path) -> None:
    summary = read_result(run / "summary.json")
    summary["relations"][NAME] |= {"violated": 0, "outcome": "PASS"}
    write_result(run / "summary.json", summary)


def other_draws(run: Path) -> None:
    rows = [json.loads(line) for line in (run / "ledger.jsonl").read_text().splitlines()]
    for row in rows:
        row.pop("crc32")
    rows[-1]["sha256"] = "0" * 64
    (run / "ledger.jsonl").write_text("".join(f"{seal(row)}\n" for row in rows))


def lose(name: str) -> Callable[[Path], None]:
    return lambda run: (run / name).unlink()


def forget_a_follow_up(run: Path) -> None:
    rows = (run / "ledger.jsonl").read_text().splitlines(keepends=True)
    (run / "ledger.jsonl").write_text("".join(rows[:-1]))


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lose("result.jsonl"), "result.jsonl: is not there, and the summary is of it"),
        (lose("summary.json"), "summary.json: cannot be read"),
        (lose("run.json"), "run.json: there is no such file"),
        (lose("ledger.jsonl"), "ledger.jsonl: lacks 9 follow-ups that were judged"),
        (forget_a_follow_up, "ledger.jsonl: lacks 1 follow-ups that were judged"),
        (flip("summary.json"), "summary.json: "),
        (flip("run.json"), "run.json: "),
        (flip("ledger.jsonl"), "ledger.jsonl:"),
        (flip("evidence/*.npz"), ".npz"),
        (flip("draws/*.npz"), ".npz"),
        (flip("evidence/*.mcap"), ".mcap: bag is damaged"),
        (cut, "scores.jsonl: its last line is cut off"),
        (forget_a_verdict, "offered: 9, "),
        (claim_a_pass, f"{NAME}.violated: 0, 2 by the journal"),
        (other_draws, "made again it has another SHA-256"),
    ],
)
def test_whatever_is_damaged_is_named(
    done: Path, tmp_path: Path, damage: Callable[[Path], None], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(done, tmp_path / "run"))
    damage(run)
    code, printed = verified(run, capsys)
    assert code == 1 and what in printed.replace(str(run), ""), printed


def test_without_the_bag_the_follow_ups_are_not_checked(
    done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(done, tmp_path / "run"))
    record = read_result(run / "run.json")
    record["request"]["bags"] = [str(tmp_path / "gone")]
    write_result(run / "run.json", record)
    code, printed = verified(run, capsys)
    assert code == 3 and "follow-ups: not checked: 9: the bag" in printed


def test_a_directory_without_results_is_not_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = verified(tmp_path, capsys)
    assert code == 1 and "holds no file with a checksum" in printed
