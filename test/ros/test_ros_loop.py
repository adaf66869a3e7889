# SPDX-License-Identifier: Apache-2.0
"""The closed loop over topics: a hosted driver in its own process, in lockstep with a world."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bad_bags import typed

from mt_nodes.base.jsonl import read_lines, read_result

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
def runs(request: pytest.FixtureRequest, domains: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Results directories of one run each way that is looked at; most of their time is that of starting processes."""
    place = tmp_path_factory.mktemp("loop")
    (place / "short.scenario").write_text(FILE, encoding="utf-8")
    words = ("scenario", str(place / "short.scenario"), "--repeat", "1")
    relations = ("--relations", "pedestrian_nearer_brakes")

    def run(name: str) -> Path:
        code, said, error = typed(*words, *relations, *WAYS[name], "--out", place / name)
        logs = "".join(path.read_text() for path in (place / name).glob("*.log"))
        assert code == 3, f"{said}{error}{logs}"
        return place / name

    twin = any(item.name.endswith("[twin]") for item in request.session.items)
    return {name: run(name) for name in WAYS if twin or name != "twin"}


def verdicts(out: Path) -> list[dict[str, Any]]:
    lines = [line for line in read_lines(out / "result.jsonl") if line["type"] == "verdict"]
    return sorted(lines, key=lambda line: str(line["pair"]))


@pytest.mark.parametrize("way", ["two_pass", pytest.param("twin", marks=pytest.mark.long)])
def test_a_hosted_driver_drives_the_same_way_over_topics(way: str, runs: dict[str, Path]) -> None:
    here, there = verdicts(runs["inprocess"]), verdicts(runs[way])
    assert there == here
    assert len(there) == 3 and {line["outcome"] for line in there} == {"HOLDS"}
    record = read_result(runs[way] / "run.json")
    assert (record["request"]["transport"], record["request"]["mode"]) == ("ros", way)
    sources = {line["source"]["ended"] for line in read_lines(runs[way] / "ledger.jsonl")}
    assert sources == {"target"}


def test_a_command_over_topics_is_the_one_that_was_given(runs: dict[str, Path]) -> None:
    """All numbers of the message survive, so the drive is the very same."""
    hashes = {
        name: {line["pair"]: line["sha256"] for line in read_lines(out / "ledger.jsonl")} for name, out in runs.items()
    }
    assert len(hashes) >= 2 and all(found == hashes["inprocess"] for found in hashes.values())


def test_a_pair_is_driven_again_over_topics(runs: dict[str, Path]) -> None:
    out = runs["inprocess"]
    code, said, error = typed("reproduce", out, "0/-/pedestrian_nearer_brakes/0", "--transport", "ros", "--json")
    told = json.loads(said)
    assert code == 0 and told["same_drives"] and told["differs"] == [], error
    record = read_result(Path(told["results"]) / "run.json")
    assert record["request"]["transport"] == "ros"
