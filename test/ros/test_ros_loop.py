# SPDX-License-Identifier: Apache-2.0
"""The closed loop over topics: a hosted driver in its own process, in lockstep with a world."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mt_nodes.base.jsonl import read_lines, read_result

ROOT = Path(__file__).resolve().parents[2]
FILE = """\
walker = Person((("lane_1" -> 52.0), , 0.0));
short_drive = CreateScenario {
    load("straight");
    AV(("lane_1" -> 20.0, , 10.0), ("lane_1" -> 36.0));
    {};
    {walker};
    {};
    {};
};
"""
WAYS = {
    "inprocess": ("--transport", "inprocess"),
    "two_pass": ("--transport", "ros"),
    "twin": ("--transport", "ros", "--mode", "twin"),
}


@pytest.fixture(scope="module")
def runs(domains: tuple[int, ...], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Results directories of one run each way; most of their time is that of starting processes."""
    place = tmp_path_factory.mktemp("loop")
    (place / "short.scenario").write_text(FILE, encoding="utf-8")
    words = (sys.executable, "-m", "mt_nodes.cli.main", "scenario", "short.scenario", "--repeat", "1")
    relations = ("--relations", "far_object_same_trace,pedestrian_nearer_brakes")

    def run(name: str) -> Path:
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        argv = [*words, *relations, *WAYS[name], "--out", name]
        done = subprocess.run(argv, cwd=place, env=env, capture_output=True, text=True, check=False)
        logs = "".join(path.read_text() for path in (place / name).glob("*.log"))
        assert done.returncode == 3, f"{done.stdout}{done.stderr}{logs}"
        return place / name

    with ThreadPoolExecutor(2) as pool:
        started: dict[str, Future[Path]] = {name: pool.submit(run, name) for name in WAYS}
        return {name: future.result() for name, future in started.items()}


def verdicts(out: Path) -> list[dict[str, Any]]:
    lines = [line for line in read_lines(out / "result.jsonl") if line["type"] == "verdict"]
    return sorted(lines, key=lambda line: str(line["pair"]))


@pytest.mark.parametrize("way", ["two_pass", "twin"])
def test_a_hosted_driver_drives_the_same_way_over_topics(way: str, runs: dict[str, Path]) -> None:
    here, there = verdicts(runs["inprocess"]), verdicts(runs[way])
    assert there == here
    assert len(there) == 6 and {line["outcome"] for line in there} == {"HOLDS"}
    record = read_result(runs[way] / "run.json")
    assert (record["request"]["transport"], record["request"]["mode"]) == ("ros", way)
    sources = {line["source"]["ended"] for line in read_lines(runs[way] / "ledger.jsonl")}
    assert sources == {"target"}


def test_a_command_over_topics_is_the_one_that_was_given(runs: dict[str, Path]) -> None:
    """All numbers of the message survive, so the drive is the very same."""
    hashes = {
        name: {line["pair"]: line["sha256"] for line in read_lines(out / "ledger.jsonl")} for name, out in runs.items()
    }
    assert hashes["two_pass"] == hashes["twin"] == hashes["inprocess"]


def test_a_pair_is_driven_again_over_topics(runs: dict[str, Path]) -> None:
    argv = (sys.executable, "-m", "mt_nodes.cli.main", "reproduce", "inprocess", "0/-/pedestrian_nearer_brakes/0")
    place, env = runs["inprocess"].parent, {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*argv, "--transport", "ros", "--json"], cwd=place, env=env, capture_output=True, check=False)
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["same_drives"] and told["differs"] == [], done.stderr
    record = read_result(place / told["results"] / "run.json")
    assert record["request"]["transport"] == "ros"
