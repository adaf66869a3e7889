# SPDX-License-Identifier: Apache-2.0
"""A search over topics, as a user types it: the arms stay alive, trials are those of a search in process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from made_runs import sparse_drive
from ros_support import LIMIT_S, until

from mt_nodes.base.jsonl import read_lines, read_result
from mt_nodes.cli.main import main

NOISE = "noise_outside_roi_1000"


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sparse_drive(tmp_path_factory.mktemp("bag") / "drive", 1, columns=1800)  # full buffers


def begun(*words: str, cwd: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mt_nodes.cli.main", "search", *words]
    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = process.communicate(timeout=LIMIT_S)
    return process.returncode, said


def trials_of(out: Path) -> list[dict[str, Any]]:
    if not (out / "search.jsonl").exists():
        return []
    return [line for line in read_lines(out / "search.jsonl") if line["type"] == "trial"]


@pytest.mark.long  # three suites, one after the other, over real topics
def test_over_topics_trials_are_those_in_process_and_a_kill_loses_none(bag: Path, tmp_path: Path) -> None:
    words = (str(bag), "--relation", NOISE, "--fault", "point_buffer_cap", "--limit", "1", "--trials", "6", "--out")
    assert main(["search", *words, str(tmp_path / "here"), "--transport", "inprocess"]) == 1
    over = begun(*words, "over", cwd=tmp_path)
    until(lambda: len(trials_of(tmp_path / "over")) >= 3, "three trials")
    os.kill(over.pid, signal.SIGKILL)
    over.wait(timeout=LIMIT_S)
    over.communicate()
    left = len(trials_of(tmp_path / "over"))
    said: list[str] = []

    def gone_on() -> bool:
        """The suite of the one that was killed ends by itself, and lets go of its journal."""
        code, text = ended(begun("--resume", "over", cwd=tmp_path))
        said.append(text)
        return code == 1

    until(gone_on, f"to go on: {said}")
    summary = read_result(tmp_path / "over" / "summary.json")
    assert summary["found"] and left >= 3
    assert trials_of(tmp_path / "over") == trials_of(tmp_path / "here")
    assert all("another run is writing" in text for text in said[:-1]), said
