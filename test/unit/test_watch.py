# SPDX-License-Identifier: Apache-2.0
"""``mt watch``: a journal that grows, is torn, ends."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.jsonl import seal, write_result
from mt_nodes.cli.main import main
from mt_nodes.cli.watch_command import _totals
from mt_nodes.report.run_view import LAST, WatchedRun

RELATION = "noise_outside_roi_1000"
CONDITION = {
    **{"schema": 1, "type": "condition", "seed": 7, "mode": "twin", "pace": "lockstep", "bags": ["/some/drive"]},
    **{"stack": "reference_detector", "faults": [], "relations": [RELATION]},
}


def verdict(bundle: int, violated: bool = False) -> dict[str, Any]:
    return {
        **{
            "schema": 1,
            "type": "verdict",
            "pair": f"0/{bundle}/{RELATION}/0",
            "relation": RELATION,
            "stamp_ns": bundle,
        },
        **{"outcome": "VIOLATED" if violated else "HOLDS", "measured": 1, "bound": 1, "margin": -1 if violated else 0},
        **{"unit": "obstacles", "reason": f"lost car {bundle}" if violated else "", "lost": int(violated), "gained": 0},
    }


CONTROL = {**verdict(0), "pair": f"0/0/identity/0@{RELATION}", "relation": "identity"}


def append(directory: Path, *lines: dict[str, Any], end: str = "\n") -> None:
    with (directory / "result.jsonl").open("a") as file:
        file.write("\n".join(seal(line) for line in lines) + end)


def finish(directory: Path, watched: WatchedRun) -> None:
    summary = {**watched.summary(), "latency_ms": {"stack": {"p50": 9.5, "p99": 12.0}}}
    write_result(directory / "summary.json", summary)


def test_what_is_played_again_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    append(tmp_path, {**CONDITION, "bags": ["/some/drive", "other", "/some/drive"]}, verdict(0))
    assert main(["watch", str(tmp_path)]) == 0
    assert "on drive (2 times), other: twin" in capsys.readouterr().out


def test_a_run_that_was_not_begun_is_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watched = WatchedRun(tmp_path)
    assert not watched.look() and not watched.finished and watched.pairs_per_s is None
    assert main(["watch", str(tmp_path)]) == 0
    assert "nothing is judged yet" in capsys.readouterr().out


def test_the_time_that_is_left_is_told_where_the_number_of_pairs_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = iter((10.0, 12.0))
    monkeypatch.setattr("mt_nodes.report.run_view.time.monotonic", lambda: next(now_s))
    watched = WatchedRun(tmp_path)
    append(tmp_path, CONDITION, verdict(0))
    assert watched.look() and watched.left_s is None
    append(tmp_path, verdict(1), verdict(2))
    assert watched.look() and watched.pairs_per_s == 1.0 and watched.left_s is None, "there is no run.json"
    write_result(tmp_path / "run.json", {"relations": [], "pairs": 3 + 90})
    assert watched.left_s == 90.0
    assert "1.0 pairs/s, about 0:01:30 left" in _totals(watched, watched.summary())


def test_appended_lines_are_followed_and_torn_ones_waited_for(tmp_path: Path) -> None:
    watched = WatchedRun(tmp_path)
    append(tmp_path, CONDITION, verdict(0))
    assert watched.look() and watched.done == 1 and not watched.look()
    torn = seal(verdict(1, violated=True))
    with (tmp_path / "result.jsonl").open("a") as file:
        file.write(torn[:40])
    assert not watched.look() and watched.done == 1
    with (tmp_path / "result.jsonl").open("a") as file:
        file.write(torn[40:] + "\n")
    assert watched.look() and watched.done == 2
    assert [v["pair"] for v in watched.violations] == [f"0/1/{RELATION}/0"]
    relation = watched.summary()["relations"][RELATION]
    assert (relation["violated"], relation["decided"]) == (1, 2)
    assert watched.pairs_per_s is not None and watched.pairs_per_s > 0


def test_only_the_last_violations_are_kept(tmp_path: Path) -> None:
    append(tmp_path, CONDITION, *(verdict(i, violated=True) for i in range(LAST + 3)))
    watched = WatchedRun(tmp_path)
    watched.look()
    assert [v["stamp_ns"] for v in watched.violations] == list(range(3, LAST + 3))


def test_a_line_that_was_edited_is_told(tmp_path: Path) -> None:
    append(tmp_path, CONDITION)
    with (tmp_path / "result.jsonl").open("a") as file:
        file.write(seal(verdict(0)).replace("HOLDS", "ERROR") + "\n")
    with pytest.raises(InfrastructureError, match=r"result\.jsonl:2: damaged"):
        WatchedRun(tmp_path).look()


def test_the_kind_of_a_relation_comes_from_the_run(tmp_path: Path) -> None:
    append(tmp_path, CONDITION, CONTROL, verdict(0, violated=True))
    for kind, outcome in (("necessary", "FAIL"), ("expected", "INCONCLUSIVE")):
        write_result(tmp_path / "run.json", {"relations": [{"id": RELATION, "kind": kind, "min_decided": 20}]})
        watched = WatchedRun(tmp_path)
        watched.look()
        assert watched.summary()["relations"][RELATION]["outcome"] == outcome


def test_requirements_are_told_while_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    append(tmp_path, CONDITION, CONTROL, verdict(0))
    write_result(tmp_path / "run.json", {"relations": [{"id": RELATION, "requirement": ["REQ-7", "SYS-1"]}]})
    assert main(["watch", str(tmp_path)]) == 0
    assert f"{RELATION}: requirement REQ-7, SYS-1" in capsys.readouterr().out


def test_a_snapshot_tells_rates_violations_and_latency(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    append(tmp_path, CONDITION, CONTROL, verdict(0), verdict(1, violated=True))
    assert main(["watch", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    for words in ("reference_detector on drive", RELATION, "1/2", "FAIL", "lost car 1", "3 pairs: 2 HOLDS", "running"):
        assert words in said
    watched = WatchedRun(tmp_path)
    watched.look()
    finish(tmp_path, watched)
    assert main(["watch", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "p50 9.5 ms" in said and "exit code 1" in said and "running" not in said


def test_a_run_that_was_resumed_goes_on(tmp_path: Path) -> None:
    append(tmp_path, CONDITION, verdict(0))
    watched = WatchedRun(tmp_path)
    watched.look()
    finish(tmp_path, watched)
    assert watched.finished
    append(tmp_path, verdict(1))
    later = (tmp_path / "summary.json").stat().st_mtime_ns + 1_000_000
    os.utime(tmp_path / "result.jsonl", ns=(later, later))
    assert not watched.finished


def test_on_a_terminal_it_ends_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The journal grows while it is watched; the run's summary ends the watching."""
    from rich.console import Console

    from mt_nodes.cli import terminal, watch_command

    append(tmp_path, CONDITION, CONTROL, verdict(0))
    monkeypatch.setattr(terminal, "console", lambda: Console(force_terminal=True, width=160))
    looked = threading.Event()
    wait = iter([lambda: append(tmp_path, verdict(1, violated=True)), lambda: _end(tmp_path)])
    # The command's own clock only: other threads of the process sleep, too.
    asleep = SimpleNamespace(sleep=lambda seconds: (next(wait)(), looked.set()))
    monkeypatch.setattr(watch_command, "time", asleep)
    assert main(["watch", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert looked.is_set() and "lost car 1" in said and "exit code 1" in said


def _end(directory: Path) -> None:
    watched = WatchedRun(directory)
    watched.look()
    finish(directory, watched)


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="mt replay"):
        WatchedRun(tmp_path / "none")
