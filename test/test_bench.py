# SPDX-License-Identifier: Apache-2.0
"""``make bench``: the stopwatch counts every second once, and a tiny run of each part gives its figures."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"


@pytest.fixture
def bench_pairs(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import bench_pairs

    return bench_pairs


@pytest.fixture
def bench_relay(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import bench_relay

    return bench_relay


def test_a_stage_is_counted_without_those_within(bench_pairs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 3.0, 7.0, 10.0, 11.0])
    monkeypatch.setattr(bench_pairs.time, "perf_counter", lambda: next(clock))
    watch = bench_pairs.Stopwatch()
    with watch.stage("outer"), watch.stage("inner"):
        pass
    assert watch.main == {"inner": 2.0, "outer": 5.0}
    with watch.stage("outer"):
        pass
    assert watch.main["outer"] == 6.0


def test_other_threads_are_counted_by_themselves(bench_pairs: Any) -> None:
    watch = bench_pairs.Stopwatch()

    class Work:
        def do(self) -> int:
            return 3

        def __iter__(self) -> Any:
            return iter((1, 2))

    watch.watch(Work, "do", "done")
    watch.watch_iterator(Work, "__iter__", "given")
    with watch.stage("main"):
        thread = threading.Thread(target=Work().do)
        thread.start()
        thread.join()
    assert set(watch.main) == {"main"} and set(watch.beside) == {"done"}
    assert Work().do() == 3 and list(Work()) == [1, 2]
    assert set(watch.main) == {"main", "done", "given"}


def test_ratios_are_of_what_is_added(bench_relay: Any) -> None:
    found = bench_relay._figures({"direct": [1.0, 1.0], "relay": [3.0, 3.0, None], "mutator": [4.0, 4.0]})
    assert (found["relay_added_p50_ms"], found["mutator_added_p50_ms"]) == (2.0, 3.0)
    assert found["ratio_p50"] == found["ratio_p99"] == 1.5


def test_a_tiny_run_of_every_part(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    words = ("--bundles", "1", "--repeats", "1", "--rounds", "2", "--stack", "reference_detector", "--json", str(file))
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / "bench.py"), *words], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(file.read_text())
    assert set(found) == {"machine", "mutations", "transport", "relay", "pairs"}
    assert found["machine"]["cores"] >= 1
    assert found["mutations"]["by_name"]["noise_outside_roi"]["p50_ms"] > 0
    assert found["relay"]["lost"] == 0 and found["relay"]["mutator_p50_ms"] > found["relay"]["direct_p50_ms"]
    assert len(found["pairs"]) == 2
    for name, run in found["pairs"].items():
        assert (run["pairs"], run["followups"]) == (9, 5), name
        expected = {"read", "derive", "guarantee", "ledger", "hash", "stack", "judge", "journal"}
        assert expected <= set(run["ms_per_pair"]), name
        over_topics = {"encode", "publish", "live view"} <= set(run["ms_per_pair"]) and "decode" in run[
            "beside_ms_per_pair"
        ]
        assert over_topics == (run["transport"] == "ros"), name
    assert "goal 1.25" in done.stdout and "read" in done.stdout
