# SPDX-License-Identifier: Apache-2.0
"""``make bench``: the stopwatch counts every second once, and a tiny run of each part gives its figures."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_bundles import made_bundle, made_cloud
from made_runs import sparse_drive

from mt_nodes.base import plugins
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.stream.identity import Identity

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


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


def test_many_drives_with_violations_are_summed_up_in_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the drives that the benchmark has: its tests were worse than quadratic in them.

    One thread, so that its seconds of a processor are those that it takes when nothing else runs.
    """
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import bench_summary

    part = bench_summary.measure(10_000)
    assert (part["drives"], part["lines"]) == (10_000, 150_000)
    assert part["cpu_s"] < bench_summary.GOAL_S / 2 and part["beyond_mib"] < bench_summary.GOAL_MIB / 10


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


def test_ratios_are_of_what_is_added(bench_relay: Any, tmp_path: Path) -> None:
    times = {
        "direct": [1.0, 1.0],
        "relay": [3.0, 3.0, None],
        "copy": [3.2, 3.2],
        "noise": [4.0, 4.0],
        "fog": [3.4, 3.4],
    }
    rows = bench_relay.figures(times, [0.5, 0.7])
    assert (rows["relay"]["added_p50_ms"], rows["noise"]["added_p50_ms"]) == (2.0, 3.0)
    assert rows["noise"]["ratio_p50"] == rows["noise"]["ratio_p99"] == 1.5
    assert rows["relay"]["lost"] == 1 and rows["relay"]["publish_p50_ms"] == pytest.approx(0.6)
    goals = {cells[0]: cells[-2] for cells in bench_relay.cells(rows)}
    assert goals["noise"] == "missed: p50" and goals["fog"] == "met" and goals["bare relay"] == ""
    machine = {"cpu": "a cpu", "cores": 2, "load_1min": 1.0, "python": "3", "numpy": "2"}
    part = {"repeats": 1, "rounds": 2, "payloads": {"cloud of 2 MB": rows}}
    bench_relay.write_docs(tmp_path / "page.md", machine, part)
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    figures = page.partition("## Where")[0]
    lines = [line.count("|") for line in figures.splitlines() if line.startswith("|")]
    assert set(lines) == {len(bench_relay.COLUMNS) + 1} and "0.60 ms" in page and "a cpu" in page


def test_a_way_by_which_nothing_came_is_no_figure(bench_relay: Any) -> None:
    with pytest.raises(SystemExit, match="no message came by way of fog"):
        bench_relay.figures({"direct": [1.0], "relay": [2.0], "fog": [None]})


@pytest.fixture
def bench_mutations(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import bench_mutations

    return bench_mutations


@pytest.fixture
def bench_images(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import bench_images

    return bench_images


#: They change some numbers of a message, in microseconds, and no cloud or picture.
NUMBERS_ALONE = {"gnss_drifted", "imu_drifted", "intrinsics_drifted", "odometry_drifted"}


def test_peers_and_goals_are_of_what_there_is(bench_mutations: Any, bench_images: Any) -> None:
    for bench in (bench_mutations, bench_images):
        measured = bench.measured()
        assert set(bench.PEERS) <= set(measured)
        assert {type(m).__module__.split(".")[-2] for m in measured.values()} <= set(bench.GOALS_MS)
    assert set(bench_images.SETTINGS) | set(bench_images.GOALS_MS_OF) <= set(bench_images.measured())


def test_the_usual_cloud_has_120_000_points(bench_mutations: Any) -> None:
    *earlier, bundle = bench_mutations._frames(None)
    assert len(earlier) == 1 and abs(len(bundle.cloud()) - 120_000) < 1_000


def test_every_mutation_is_measured_with_what_it_changes(bench_mutations: Any, bench_images: Any) -> None:
    clouds, images = set(bench_mutations.measured()), set(bench_images.measured())
    assert "noise_outside_roi" in clouds - images and "image_defocused" in images - clouds
    assert {"fog", "object_added"} <= clouds & images
    left = set(plugins.catalogue("mutations")) - clouds - images - NUMBERS_ALONE
    assert all(plugins.catalogue("mutations")[name].extra or name == "pixels_dithered" for name in left), left


def test_goals_of_images_are_told(bench_images: Any, tmp_path: Path) -> None:
    fast, slow = ({"p50_ms": ms, "proof_p50_ms": 0.25, "with_clouds": None} for ms in (4.96, 5.04))
    small = {"p50_ms": 1.0, "proof_p50_ms": 0.5, "with_clouds": {"p50_ms": 7.0, "proof_p50_ms": 2.0}}
    unfit = {"not applicable": "no wall", "with_clouds": None}
    part = {
        "rounds": 3,
        "points": 120_000,
        "sizes": [[1920, 1280], [640, 480]],
        "albumentations": {"fast": [9.25, 1.5]},
        "by_name": {
            name: {"goal_ms": goal, "sizes": [size, small]}
            for name, size, goal in (
                ("fast", fast, 5.0),
                ("slow", slow, 5.0),
                ("own", slow, None),
                ("unfit", unfit, 5.0),
            )
        },
    }
    rows = {name: rest for name, *rest in bench_images.cells(part)}
    assert rows["fast"] == [
        "5.0",
        "0.2",
        "",
        "1.0",
        "0.5",
        "7.0",
        "5",
        "met",
        "albumentations here 9.25/1.5: 1.9/1.5 times ours",
    ]
    assert (rows["slow"][6:8], rows["own"][6:8], rows["unfit"][6:]) == (["5", "missed"], ["", ""], ["", "", "no wall"])
    assert [row[-3:-1] for row in bench_images.cells(part | {"sizes": [[640, 480]]})] == [("", "")] * 4
    machine = {"cpu": "a cpu", "cores": 2, "load_1min": 1.0, "python": "3", "numpy": "2"}
    bench_images.write_docs(tmp_path / "page.md", machine, part)
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    lines = [line.count("|") for line in page.splitlines() if line.startswith("|")]
    assert set(lines) == {len(bench_images.columns(part)) + 1} and "120,000 points" in page and "a cpu" in page


def spend(cpu_s: float) -> None:
    """Compute for so long by the clock of the process: on some machines that moves in steps of milliseconds."""
    end_s = time.process_time() + cpu_s
    while time.process_time() < end_s:
        pass


def test_a_broken_guarantee_is_not_timed(bench_images: Any) -> None:
    class Broken(Spending):
        def guarantee(self, *_: Any) -> str:  # type: ignore[override]
            return "a hole"

    frames = [made_bundle(made_cloud(count=10))]
    with pytest.raises(SystemExit, match="broken: a hole"):
        bench_images._of(Broken(), frames, 1)
    assert bench_images._of(Spending(fits=False), frames, 1) == {"not applicable": "no wall"}
    assert set(bench_images._of(Spending(), frames, 1)) == {"p50_ms", "proof_p50_ms"}
    beside = bench_images._of(Spending(), frames, 1, {"peer": lambda: spend(0.005)})
    assert beside["peers_ms"]["peer"] >= 5.0


def test_a_slow_peer_is_timed_once_after_its_warm_up(bench_images: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: dict[str, int] = {"slow": 0, "fast": 0}

    def peer(name: str) -> None:
        runs[name] += 1
        sum(range(400_000 if name == "slow" else 10))

    monkeypatch.setattr(bench_images, "SLOW_NS", 1_000_000)
    peers = {name: partial(peer, name) for name in runs}
    bench_images._of(Spending(), [made_bundle(made_cloud(count=10))], 5, peers)
    assert runs == {"slow": 2, "fast": 6}


@dataclass(frozen=True)
class Spending(Identity):
    """Costs so much memory, in clouds, and proves with so much; or is not applicable."""

    made: int = 0
    proved: int = 0
    fits: bool = True

    def draw(self, rng: Any, bundle: Bundle, state: Any) -> Any:
        if not self.fits:
            raise NotApplicable("no wall")
        return {"spent": np.ones(self.made * bundle.cloud().points.nbytes, np.uint8).sum()}

    def guarantee(self, source: Bundle, *_: Any) -> None:
        np.ones(self.proved * source.cloud().points.nbytes, np.uint8).sum()


def test_memory_and_goals_are_told(bench_mutations: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {
        "frugal": Spending(2, 1),
        "greedy": Spending(4, 1),
        "unsure": Spending(1, 5),
        "unfit": Spending(fits=False),
    }
    monkeypatch.setattr(bench_mutations, "catalogue", lambda _: {n: lambda m=m: m for n, m in kinds.items()})
    monkeypatch.setattr(bench_mutations, "_frames", lambda _: [made_bundle(made_cloud(count=120_000))])
    part = bench_mutations.measure(2)
    rows = part["by_name"]
    assert rows["unfit"] == {"not applicable": "no wall"}
    assert [round(rows[n]["memory"]) for n in ("frugal", "greedy", "unsure")] == [2, 4, 1]
    assert [round(rows[n]["proof_memory"]) for n in ("frugal", "greedy", "unsure")] == [1, 1, 5]
    assert [rows[n]["missed"] for n in ("frugal", "greedy", "unsure")] == [[], ["memory"], ["proof's memory"]]
    assert list(bench_mutations._missed(rows["frugal"] | {"goal_ms": 5.0, "p50_ms": 5.1})) == ["time"]
    assert list(bench_mutations._missed(rows["frugal"] | {"p95_ms": 60.0, "proof_p95_ms": 50.0})) == ["10 Hz"]
    machine = {"cpu": "a cpu", "cores": 2, "load_1min": 1.0, "python": "3", "numpy": "2"}
    bench_mutations.write_docs(tmp_path / "page.md", machine, part)
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    lines = [line.count("|") for line in page.splitlines() if line.startswith("|")]
    assert set(lines) == {len(bench_mutations.COLUMNS) + 1} and "120,000 points" in page and "a cpu" in page


def measured(place: Path, *words: str) -> tuple[dict[str, Any], str]:
    """Return what a run of ``bench.py`` measured, and what it printed."""
    file = place / "bench.json"
    command = [sys.executable, str(SCRIPTS / "bench.py"), "--json", str(file), *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=place, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(file.read_text())
    assert found["machine"]["cores"] >= 1
    assert set(found) == {"machine", *(words[i + 1] for i, word in enumerate(words) if word == "--only")}
    return found, done.stdout


#: Parts whose figures mean something only when nothing else runs.
ALONE = ("transport", "relay", "rig")


@pytest.mark.long
def test_a_tiny_run_of_every_part_but_those(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a drive of half as many points; the generated one that it has by default is looked at above."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import bench

    parts = [word for part in bench.PARTS if part not in ALONE for word in ("--only", part)]
    drive = sparse_drive(tmp_path / "drive", 2, seed=5, columns=450)
    words = ("--bag", str(drive), "--bundles", "1", "--rounds", "1", "--stack", "reference_detector")
    found, said = measured(tmp_path, *parts, *words, "--size", "160x120", "--docs", str(tmp_path), "--drives", "200")
    assert found["mutations"]["by_name"]["noise_outside_roi"]["p50_ms"] > 0
    assert found["mutations"]["points"] < 60_000, "the clouds of the bag that was given"
    assert set(found["mutations"]["by_name"] | found["images"]["by_name"]) == {
        name for name, cls in plugins.catalogue("mutations").items() if not cls.extra and cls.role == "relation"
    } - NUMBERS_ALONE | {"identity", "points_permuted"}
    fog, noise = (found["images"]["by_name"][name]["sizes"][0] for name in ("fog", "sensor_noise"))
    assert fog["with_clouds"]["p50_ms"] > 0 and noise["p50_ms"] > 0 and noise["with_clouds"] is None
    assert {page.name for page in tmp_path.glob("*.md")} == {"performance.md", "performance_images.md"}
    assert "| `fog` |" in (tmp_path / "performance_images.md").read_text(encoding="utf-8")
    assert len(found["pairs"]) == 2
    for name, run in found["pairs"].items():
        assert (run["pairs"], run["followups"]) == (9, 5), name
        expected = {"read", "derive", "guarantee", "ledger", "hash", "stack", "judge", "journal"}
        assert expected <= set(run["ms_per_pair"]), name
        over_topics = {"encode", "publish", "live view"} <= set(run["ms_per_pair"]) and "decode" in run[
            "beside_ms_per_pair"
        ]
        assert over_topics == (run["transport"] == "ros"), name
    assert "read" in said


@pytest.mark.long  # one after the other: what the mutator adds to the bare way is told by two messages
def test_a_tiny_run_of_transport_relay_and_rig(tmp_path: Path) -> None:
    parts = [word for part in ALONE for word in ("--only", part)]
    words = ("--repeats", "1", "--rounds", "2", "--seconds", "4", "--docs", str(tmp_path))
    found, said = measured(tmp_path, *parts, *words)
    assert (tmp_path / "performance_inline.md").exists() and "p50 1.2" in said and "floor" in said
    for rows in found["relay"]["payloads"].values():
        assert all(row["lost"] == 0 for row in rows.values())
        assert all(row["added_p50_ms"] > 0 for way, row in rows.items() if way != "direct")
    for run in found["rig"]["runs"]:
        control, tested = run["turns"]["identity"], run["turns"][f"rig_{run['relation']}"]
        assert control["instants"] > 0 < tested["instants"] and control["topics"].keys() == tested["topics"].keys()
        assert all(row["sent"] > 0 and row["changed"] == 0 for row in control["topics"].values())
    assert "| rain |" in (tmp_path / "performance_rig.md").read_text(encoding="utf-8")


def test_a_rig_of_which_not_all_was_tested_misses_its_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import bench_rig_cost

    def part(lost: int, p99_ms: float, skipped: int) -> dict[str, Any]:
        outcomes = {"HOLDS": 100 - skipped, "SKIPPED": skipped}
        topics = {"/s/lidar/points": {"lost": lost, "added_p99_ms": p99_ms}}
        turn = {"topics": topics, "instants": 100, "outcomes": outcomes}
        return {"runs": [{"relation": "r", "turns": {"rig_r": turn}, "asked_hz": {"/s/lidar/points": 10.0}}]}

    assert list(bench_rig_cost.goals(part(0, 99.0, 0))) == ["r at 10 Hz met (100 of 100 tested, 0 lost, 99 of 100 ms)"]
    assert all(
        "missed" in next(bench_rig_cost.goals(part(*figures))) for figures in ((1, 9, 0), (0, 101, 0), (0, 9, 1))
    )
