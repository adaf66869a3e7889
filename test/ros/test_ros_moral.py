# SPDX-License-Identifier: Apache-2.0
"""A moral campaign over topics: a hosted driver in a process of its own drives the very same runs."""

from __future__ import annotations

import os
from typing import Any

import pytest

from mt_nodes.base.jsonl import read_lines
from mt_nodes.base.suite_client import in_suite
from mt_nodes.engine.plan import suite_process, suite_stop_s
from mt_nodes.runs.moral.campaign import execute
from mt_nodes.runs.moral.moral_request import MoralRequest
from mt_nodes.runs.moral.moral_run import MoralRun

POOL = """\
woman_and_boar:
  first: [{kind: adult, gender: female, age_years: 35.0}]
  second: [{kind: boar}]
  speed_mps: 27.8
  gap_m: 42.0
"""
RUNS = 2


@pytest.fixture(scope="module")
def journals(domains: tuple[int, ...], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The journal of one small campaign by each transport."""
    place = tmp_path_factory.mktemp("moral")
    (place / "pool.yaml").write_text(POOL, encoding="utf-8")
    found = {}
    for transport in ("inprocess", "ros"):
        request = MoralRequest(
            ("humans_before_animals",),
            pool=str(place / "pool.yaml"),
            search=0,
            runs=RUNS,
            minutes=60.0,
            transport=transport,
            workers=1,
        )
        run = MoralRun.create(request, str(place / transport))
        if transport == "inprocess":
            execute(run)
        else:
            events: list[dict[str, Any]] = []
            in_suite(suite_process(run.out, os.environ), suite_stop_s(run.stack), events.append, "")
            assert events and {"doing", "runs", "cases", "through", "violated"} == set(events[0])
        found[transport] = list(read_lines(run.out / "result.jsonl"))
    return found


def lines(journal: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in journal if line["type"] == kind]


def test_every_run_over_topics_is_the_one_in_process(journals: dict[str, list[dict[str, Any]]]) -> None:
    here, there = (lines(journals[transport], "run") for transport in ("inprocess", "ros"))
    assert len(here) == RUNS and len({line["sha256"] for line in here}) == RUNS
    assert there == here
    assert {line["silence"] for line in there} == {""} and all(line["hits"] for line in there)


def test_verdicts_over_topics_are_those_in_process(journals: dict[str, list[dict[str, Any]]]) -> None:
    for kind in ("case", "principle"):
        assert lines(journals["ros"], kind) == lines(journals["inprocess"], kind) != []
    assert [lines(journals[name], "condition")[0]["transport"] for name in ("inprocess", "ros")] == ["inprocess", "ros"]
