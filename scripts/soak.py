# SPDX-License-Identifier: Apache-2.0
"""Runs ``mt live`` in shadow and a campaign beside each other, in real time, with stacks that die at random.

A run of this program is one piece; its figures are added to ``scripts/soak.json``, so that hours come about by pieces.
A sensor plays small clouds at 10 Hz to a stack in a domain of its own; ``mt live`` listens there and gives follow-ups
to an external instance of that stack. Both instances end by themselves, at random, every few minutes, in a way drawn at
random, and are started again, as a supervisor on a vehicle does. The callable of the campaign takes as long as a cloud
lasts and dies in the same ways. Meanwhile anonymous memory, open files and threads of each process are sampled.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml
from memory_watch import MemoryWatch
from mt_process import Mt

from mt_nodes.base.environment import clean_shared_memory, free_domains, leftovers, ros_environment
from mt_nodes.base.jsonl import read_lines, read_result
from mt_nodes.base.processes import Child, Process, uninterrupted
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.world.scene.drive import CLOUD_TOPIC, generate_drive
from mt_nodes.world.scene.lidar import LidarModel

FIGURES = Path(__file__).with_name("soak.json")
EVERY_S, END_S, LEAST_LIVE_S = 5.0, 300.0, 60.0
#: 16 beams of 180 columns: what is soaked is the suite, not the ray casting.
LIDAR = LidarModel(tuple(math.radians(-15.0 + 2.0 * beam) for beam in range(16)), 180, 0.9, 100.0, 0.02, 0.06)
HZ, LAP, BUNDLES, RELATION = 10.0, 200, 20, "noise_outside_roi_100"
BOXES = {"topic": "/perception/obstacles", "type": "visualization_msgs/msg/MarkerArray"}
#: What died is started again after so long: the domain has forgotten it by then (Fast DDS: 3 s by our profile).
RESPAWN_S = 8.0
#: A stack whose life is exponentially distributed, as of parts without wear.
MORTAL = """
import os, random, signal, time
from mt_nodes.stacks.reference.detector import Detector

WAYS = {
    "exit code 0": lambda: os._exit(0),
    "exit code 3": lambda: os._exit(3),
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "SIGSEGV": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "abort": os.abort,
}

class Mortal:
    def __init__(self, mean_s, takes_s, log):
        self.detector, self.takes_s, self.log = Detector(), takes_s, log
        self.ends_s = time.monotonic() + random.SystemRandom().expovariate(1.0 / mean_s)

    def __call__(self, points):
        began_s = time.monotonic()
        if began_s > self.ends_s:
            way = random.SystemRandom().choice(sorted(WAYS))
            with open(self.log, "a") as log:
                log.write(way + "\\n")
            WAYS[way]()
        boxes = self.detector(points)
        time.sleep(max(0.0, self.takes_s - (time.monotonic() - began_s)))
        return boxes
"""


class Vehicle:
    """A sensor, the live stack, and the external instance; what ends by itself is started again."""

    def __init__(self, place: Path, live: int, arm: int, ending: ExitStack) -> None:
        hosted = ("mt_nodes.nodes.callable_stack", "--stack", "hosted.yaml", "--transforms", "transforms.yaml")
        played = ("bag:=lap", "loop:=true")
        sensor = ("mt_nodes.nodes.replayer", "--ros-args", *(word for row in played for word in ("-p", row)))
        self._processes = [
            _process(place, name, domain, words)
            for name, domain, words in (("sensor", live, sensor), ("live", live, hosted), ("arm", arm, hosted))
        ]
        self._children: dict[str, Child] = {}
        self._due_s: dict[str, float] = {}
        self.started: Counter[str] = Counter()
        ending.callback(self._stop)
        self.keep_going()

    def keep_going(self) -> None:
        """Start what ended a while ago."""
        now_s = time.monotonic()
        for process in self._processes:
            child = self._children.get(process.name)
            if child is not None and child.code is None:
                continue
            if child is None or now_s >= self._due_s.setdefault(process.name, now_s + RESPAWN_S):
                self._due_s.pop(process.name, None)
                with uninterrupted():
                    self._children[process.name] = Child(process)
                self.started[process.name] += 1

    def _stop(self) -> None:
        for child in self._children.values():
            child.stop(5.0)


def _process(place: Path, name: str, domain: int, words: tuple[str, ...]) -> Process:
    there = f"import os, sys; os.chdir({str(place)!r}); os.execv(sys.executable, sys.argv[1:])"
    argv = (sys.executable, "-c", there, sys.executable, "-m", *words)
    return Process(name, argv, ros_environment(os.environ, domain), place / f"{name}.log")


def write_inputs(place: Path, live: int, arm: int, minutes: float, death_s: float) -> None:
    """Write drives, stacks, and the files of both runs."""
    drives = max(2, round(minutes * 60.0 / (BUNDLES * 4 / HZ)))
    street = list(generate_drive(max(LAP, drives + BUNDLES), 1, LIDAR))
    for number in range(drives):
        write_bundles(place / "drives" / f"drive_{number}", street[number : number + BUNDLES])
    write_bundles(place / "lap", street[:LAP])
    (place / "mortal.py").write_text(MORTAL)
    shared = {"inputs": {"lidar": CLOUD_TOPIC}, "outputs": {"detections": BOXES}, "stateless": True, "map_free": True}
    hosted = {"callable": "mortal:Mortal", "points_frame": "base_link", **shared}
    external = {"start": "external", "domain": {"source": live, "followup": arm}, "nodes": ["/callable_stack"]}
    files: dict[str, Any] = {
        "hosted": {**hosted, "params": {"mean_s": death_s, "takes_s": 0.0, "log": "vehicle.deaths"}},
        "paced": {**hosted, "params": {"mean_s": death_s, "takes_s": 1 / HZ, "log": str(place / "campaign.deaths")}},
        "external": {**external, **shared, "deadline_s": 2.0, "publishes_when_empty": False},
        "transforms": [{"parent": "base_link", "child": "velodyne", "translation_m": [0, 0, 1.73], "rpy_rad": [0] * 3}],
        "live": {
            **{"mode": "shadow", "stack": "external.yaml", "transforms": "transforms.yaml", "relations": [RELATION]},
            **{"live_domain": live, "delay_s": 0.3, "duration_s": minutes * 60.0},
        },
        "campaign": {
            **{"bags": ["drives/*"], "relations": [RELATION], "stacks": ["paced.yaml"], "transport": "inprocess"},
            **{"budget": {"minutes": minutes}, "retries": 3},
        },
    }
    for name, content in files.items():
        (place / f"{name}.yaml").write_text(yaml.safe_dump(content))


def accounts(runs: Sequence[Path]) -> dict[str, Any]:
    """Return the pairs of results directories: those offered, and those whose line is missing or doubled."""
    found: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    for out in runs:
        summary = read_result(out / "summary.json")
        rows = [row["pair"] for row in read_lines(out / "result.jsonl") if row["type"] == "verdict"]
        outcomes.update({name: count for name, count in summary["outcomes"].items() if count})
        found["offered"] += summary["offered"]
        found["unaccounted"] += abs(summary["offered"] - sum(summary["outcomes"].values()))
        found["journal_missing"] += max(0, summary["offered"] - len(set(rows)))
        found["journal_doubled"] += len(rows) - len(set(rows))
    return {**found, "outcomes": dict(outcomes), "exit_codes": [_exit_code(out) for out in runs]}


def _exit_code(out: Path) -> int:
    return int(read_result(out / "summary.json")["exit_code"])


def deaths(path: Path) -> dict[str, int]:
    """Return how often the stacks died in which way, by their own log."""
    return dict(sorted(Counter(path.read_text().splitlines()).items())) if path.exists() else {}


class LiveRuns:
    """``mt live`` for as long as a piece lasts: where a run ends before, the next one begins."""

    def __init__(self, place: Path, until_s: float) -> None:
        self._place, self._until_s = place, until_s
        self.runs: list[Mt] = []
        self.go_on()

    def go_on(self) -> bool:
        """Start a run where none goes on and time is left for one; return whether one goes on."""
        if self.runs and self.runs[-1].process.poll() is None:
            return True
        left_s = self._until_s - time.monotonic()
        if left_s < LEAST_LIVE_S:
            return False
        words = ("--config", "live.yaml", "--set", f"duration_s={left_s:.0f}", "--out", f"live_{len(self.runs)}")
        self.runs.append(Mt.start(self._place, *words, command="live"))
        return True

    @property
    def out(self) -> list[Path]:
        """Results directories."""
        return [self._place / f"live_{number}" for number in range(len(self.runs))]

    def processes(self) -> dict[int, str]:
        """Ids and command lines."""
        return {pid: command for run in self.runs[-1:] for pid, command in run.processes().items()}


def piece(place: Path, minutes: float, death_s: float) -> dict[str, Any]:
    """Soak for a while; return the figures."""
    with ExitStack() as ending:
        live, arm = ending.enter_context(free_domains(2)).domains
        write_inputs(place, live, arm, minutes, death_s)
        clean_shared_memory()
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(place), os.environ.get("PYTHONPATH"))))
        watch, vehicle = MemoryWatch(), Vehicle(place, live, arm, ending)
        began_s, ends = time.monotonic(), time.time() + minutes * 60.0
        beside = LiveRuns(place, began_s + minutes * 60.0)
        campaign = Mt.start(place, "campaign.yaml", "--out", "campaign", command="campaign")
        ending.callback(lambda: [run.process.terminate() for run in (*beside.runs, campaign)])
        while beside.go_on() or campaign.process.poll() is None:
            vehicle.keep_going()
            watch.look({**beside.processes(), **campaign.processes()})
            if time.monotonic() - began_s > minutes * 60.0 + END_S:
                raise SystemExit(f"no end after {minutes:g} minutes: see {place}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                (beside.runs[-1] if beside.go_on() else campaign).process.wait(EVERY_S)
        took_s = time.monotonic() - began_s
    killed_left, _ = len(leftovers()), clean_shared_memory()
    cells = sorted(path.parent for path in (place / "campaign" / "cells").glob("*/summary.json"))
    return {
        "minutes": round(took_s / 60.0, 2),
        "live": {
            **accounts(beside.out),
            **{"deaths": deaths(place / "vehicle.deaths"), "started": dict(vehicle.started)},
        },
        "campaign": {**accounts(cells), "deaths": deaths(place / "campaign.deaths")},
        "processes": watch.lines(ends),
        "segments_of_killed": killed_left,
        "segments_left": len(leftovers()),
        "doctor": Mt.start(place, command="doctor").process.wait(END_S),
        "left_running": len({**beside.processes(), **campaign.processes()}),
    }


def wrong(found: dict[str, Any]) -> list[str]:
    """Return what may not be: pairs unaccounted for, memory or processes left behind."""
    rows = [
        f"{name}: {count} pairs {what}"
        for name in ("live", "campaign")
        for what in ("unaccounted", "journal_missing", "journal_doubled")
        if (count := found[name][what])
    ]
    rows += [f"{name}: nothing offered" for name in ("live", "campaign") if not found[name]["offered"]]
    return rows + [f"{what}: {found[what]}" for what in ("segments_left", "doctor", "left_running") if found[what]]


def main() -> None:
    """Soak, add the figures to those before, exit 1 when a pair is unaccounted for or something is left behind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="length of this piece")
    parser.add_argument("--death-minutes", type=float, default=4.0, help="mean life of a stack")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="JSON file that the piece is added to")
    parser.add_argument("--keep", type=Path, help="directory for what the runs write")
    given = parser.parse_args()
    with contextlib.ExitStack() as ending:
        place = given.keep or Path(ending.enter_context(tempfile.TemporaryDirectory()))
        place.mkdir(parents=True, exist_ok=True)
        found = piece(place.resolve(), given.minutes, 60.0 * given.death_minutes)
    figures = json.loads(given.figures.read_text()) if given.figures.exists() else {"pieces": []}
    given.figures.write_text(json.dumps({**figures, "pieces": [*figures["pieces"], found]}, indent=1) + "\n")
    print(json.dumps(found, indent=2))
    if problems := wrong(found):
        print("\n".join(problems), file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
