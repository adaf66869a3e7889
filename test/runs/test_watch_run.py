# SPDX-License-Identifier: Apache-2.0
"""A whole run that only watches, in this process: its journal, summary and page."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_runs import sparse_drive

from mt_nodes.base.errors import UsageError
from mt_nodes.report.watch_page import write_watch_page
from mt_nodes.runs.watch.watch_request import WatchRequest, watch_settings
from mt_nodes.runs.watch.watch_run import WatchRecord, WatchRun, watch_callable


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("watch")
    bag = sparse_drive(place / "bag", 8, columns=450)
    request = WatchRequest("reference_driver", "inprocess", (str(bag),), watch=watch_settings({"min_frames": 4}, ""))
    run = WatchRun.create(request, str(place / "out"))
    assert WatchRun.load(run.out).request == run.request
    with WatchRecord(run) as record:
        watch_callable(run, record, lambda frames, events: None)
        record.finish()
    return run.out


def test_a_run_leaves_journal_summary_and_page(run_directory: Path) -> None:
    page = write_watch_page(run_directory).read_text()
    (run_directory / "report.html").unlink()
    for name in ("commands_possible", "speed_within_limit"):
        assert f"{name}: PASS" in page
    assert "Not watched: cameras_agree" in page


def test_the_page_is_made_from_the_journal_alone(run_directory: Path) -> None:
    summary = (run_directory / "summary.json").read_text()
    (run_directory / "summary.json").unlink()
    page = write_watch_page(run_directory).read_text()
    (run_directory / "summary.json").write_text(summary)
    assert "Exit code 4: the run goes on, or ended without a summary" in page and "speed_within_limit: PASS" in page


def test_a_run_that_never_began_has_a_page_that_says_so(run_directory: Path, tmp_path: Path) -> None:
    first = (run_directory / "watch.jsonl").read_text().splitlines()[0]
    (tmp_path / "watch.jsonl").write_text(f"{first}\n")
    assert "0 inputs, 0 answered. Exit code 4" in write_watch_page(tmp_path).read_text()


def test_a_directory_is_watched_into_once(run_directory: Path) -> None:
    with pytest.raises(UsageError, match="use a new --out"):
        WatchRecord(WatchRun.load(run_directory))
