# SPDX-License-Identifier: Apache-2.0
"""A rig of many sensors beside ``mt live`` in mode shadow: what is lost, how late it comes, what it takes of the cores.

A LiDAR of 128 beams, two cameras of 1920 x 1080 pixels and a radar of a generated street publish at their rates from
one process. A stack that only counts and answers listens to them, and a second instance of it to what the suite makes
of them: one draw over all sensors of an instant. Every message counts, from its publication on.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import bench_rig_cost
import numpy as np
import yaml

from mt_nodes.base.environment import free_domains, ros_environment
from mt_nodes.base.process_tree import descendants_of
from mt_nodes.base.processes import Child, Process, wait_until
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.wire import encode_message
from mt_nodes.data.messages import Bundle, Message
from mt_nodes.data.transforms import dump_transforms
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import LidarModel, hdl_64e
from mt_nodes.world.scene.radar_model import front_radar

ENDS = Path(__file__).with_name("rig_ends.py")
#: Rates of LiDAR, cameras and radar in full.
LIDAR_HZ, CAMERA_HZ, RADAR_HZ = 20.0, 30.0, 20.0
CAMERAS = tuple(CameraSensor(1920, 1080, left_m=left_m, name=name) for name, left_m in (("left", 0.6), ("right", -0.6)))
#: So many different frames are made, and published in turn.
FRAMES = 4
KEEP = {"obstacles_kept": {"region": "front_40m", "within_m": 20}}
#: What is measured: changes that reach all sensors in one draw.
RELATIONS: dict[str, list[dict[str, Any]]] = {
    "light": [
        {"points_dropped": {"share": 0.1}},
        {"brightness_changed": {}},
        {"radar_detections_dropped": {"share": 0.1}},
    ],
    "rain": [{"rain": {"rain_mm_per_h": 10}}],
}
#: What is measured if nothing else is asked: relation, and share of the full rates.
RUNS = (("light", 0.5), ("rain", 0.5), ("light", 1.0))
#: What publishes and listens, beside the suite.
BESIDE = ("sensors", "stack")
DELAY_S, READY_S, STOP_S = 1.0, 90.0, 20.0
_TICKS_HZ = os.sysconf("SC_CLK_TCK")
Row = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """One measurement: a relation at a share of the full rates, for so long, with changes of the configuration."""

    relation: str
    rate: float
    seconds: float
    changes: Sequence[str] = ()

    @property
    def id(self) -> str:
        """Name of the relation."""
        return f"rig_{self.relation}"

    def hz(self, topic: str) -> float:
        """Return the rate at which a topic is published."""
        full = CAMERA_HZ if "image" in topic or "camera_info" in topic else RADAR_HZ if "radar" in topic else LIDAR_HZ
        return full * self.rate


def lidar_128() -> LidarModel:
    """Return a LiDAR of 128 beams and 1,800 columns: some 220,000 returns, 5 MB a cloud."""
    model = hdl_64e()
    elevations = np.radians(np.linspace(2.0, -24.8, 128))
    return replace(model, elevations_rad=tuple(elevations.tolist()), azimuths=1_800, dropout=0.0)


def messages_of(bundle: Bundle) -> tuple[Message, ...]:
    """Return what sensors publish of an instant, the LiDAR's first."""
    return (*bundle.clouds, *bundle.images, *bundle.camera_infos, *bundle.radars)


def write_rig(place: Path) -> Bundle:
    """Write the messages of :data:`FRAMES` instants, as serialized bytes; return the last one's bundle."""
    frames = list(generate_drive(FRAMES, lidar=lidar_128(), camera=CAMERAS, radar=front_radar()))
    rows: list[Row] = []
    for at, first in enumerate(messages_of(frames[0])):
        files = []
        for number, frame in enumerate(frames):
            files.append(f"{at}_{number}.cdr")
            (place / files[-1]).write_bytes(encode_message(messages_of(frame)[at]))
        rows.append({"topic": first.topic, "type": codec.type_of(first), "files": files})
    (place / "messages.json").write_text(json.dumps(rows))
    dump_transforms(frames[0].transforms, place / "transforms.yaml")
    return frames[-1]


def measure(settings: Sequence[Setting]) -> Row:
    """Return the figures of each setting, what operators take on such messages, and what goes on beside the suite."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        write_rig(place)
        topics = [row["topic"] for row in json.loads((place / "messages.json").read_text())]
        full = Setting("light", 1.0, 0.0)
        runs = [_run(place, one) for one in settings]
        _write_config(place, full, topics)
        cost = bench_rig_cost.measure(place, KEEP, RELATIONS, {topic: full.hz(topic) for topic in topics})
    busiest = max(runs, key=lambda run: run["rate"])
    beside = [sum(turn["cores"].get(name, 0.0) for name in BESIDE) for turn in busiest["turns"].values()]
    return {"runs": runs, "cost": cost, "delay_s": DELAY_S, "beside_cores": max(beside) / busiest["rate"]}


def _run(place: Path, setting: Setting) -> Row:
    rows = json.loads((place / "messages.json").read_text())
    rows = [row | {"hz": setting.hz(row["topic"])} for row in rows]
    (place / "rig.json").write_text(json.dumps(rows))
    config = _write_config(place, setting, [row["topic"] for row in rows])
    with tempfile.TemporaryDirectory() as out, ExitStack() as ending:
        [domain] = ending.enter_context(free_domains(1)).domains
        env = ros_environment(os.environ, domain)
        for role in ("play", "hear"):
            child = Child(Process(role, (sys.executable, str(ENDS), role, str(place)), env, place / f"{role}.log"))
            ending.callback(child.stop, STOP_S)
        windows = _suite(Path(out), config, env, setting)
        ending.close()
        return _figures(place, Path(out), windows, setting, domain)


def _write_config(place: Path, setting: Setting, topics: Sequence[str]) -> Path:
    def of(part: str) -> list[str]:
        return [topic for topic in topics if part in topic]

    relation = {"id": setting.id, "kind": "expected", "because": "A measurement.", "check": KEEP}
    relation |= {"requires": ["lidar", "camera", "radar"], "mutate": RELATIONS[setting.relation]}
    inputs = {"lidar": of("/lidar/"), "camera": of("/image"), "camera_info": of("/camera_info"), "radar": of("/radar/")}
    stack = {
        "command": [sys.executable, str(ENDS), "hear", str(place)],
        "env": ros_environment({}),
        "inputs": inputs,
        "outputs": {"detections": {"topic": "/perception/obstacles", "type": "visualization_msgs/msg/MarkerArray"}},
        "stateless": True,
        "deadline_s": 3.0,
        # Half a period of the cameras: each instant has the nearest picture.
        "sync_s": round(0.5 / setting.hz("image") + 1e-4, 4),
    }
    config = {
        "stack": str(place / "stack.yaml"),
        "transforms": str(place / "transforms.yaml"),
        "relations": [str(place / "relation.yaml")],
        "delay_s": DELAY_S,
        # Its answers come later than what it is given, and what is measured is within a turn.
        "segments": {"settle_bundles": 2, "test_bundles": math.ceil((setting.seconds + 8.0) * setting.hz("/lidar/"))},
    }
    for name, content in {"relation": relation, "stack": stack, "live": config}.items():
        (place / f"{name}.yaml").write_text(yaml.safe_dump(content))
    return place / "live.yaml"


@dataclass
class Window:
    """What was measured from outside: its bounds, and the processor time (s) of each process by name."""

    began_s: float = 0.0
    ended_s: float = 0.0
    cpu_s: dict[str, float] = field(default_factory=dict)

    @classmethod
    def watched(cls, seconds: float) -> Window:
        """Return what all processes take in so many seconds from now on."""
        window, before, busy_s = cls(time.perf_counter()), _cpu_s(), _busy_s()
        threading.Event().wait(seconds)
        window.ended_s, after = time.perf_counter(), _cpu_s()
        busy_s = _busy_s() - busy_s
        for pid, (name, took_s) in after.items():
            window.cpu_s[name] = window.cpu_s.get(name, 0.0) + took_s - before.get(pid, (name, 0.0))[1]
        window.cpu_s["elsewhere"] = max(0.0, busy_s - sum(window.cpu_s.values()))
        return window


def _suite(out: Path, config: Path, env: Mapping[str, str], setting: Setting) -> dict[str, Window]:
    """Have the suite test control and relation for so long each; return the windows in which it did."""
    words = [word for change in setting.changes for word in ("--set", change)]
    argv = [sys.executable, "-m", "mt_nodes.cli.main", "live", "--config", str(config), "--out", str(out), *words]
    with (config.parent / "suite.log").open("w") as log:
        suite = subprocess.Popen(argv, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        windows = {}
        for relation in ("identity", setting.id):
            began = wait_until(lambda: _turn(out, relation) or suite.poll() is not None, READY_S)  # noqa: B023
            if not began or suite.poll() is not None:
                raise SystemExit(f"{relation} was not tested:\n" + (config.parent / "suite.log").read_text()[-3000:])
            windows[relation] = Window.watched(setting.seconds)
        return windows
    finally:
        suite.send_signal(signal.SIGINT)
        suite.wait()


def _turn(out: Path, relation: str) -> bool:
    """Tell whether the turn of a relation has come: anything of it was judged, or was skipped."""
    return any(line["relation"] == relation and line["outcome"] != "SETTLING" for line in _verdicts(out))


def _verdicts(out: Path) -> Iterator[Row]:
    journal = out / "result.jsonl"
    lines = journal.read_text().splitlines(keepends=True) if journal.exists() else []
    whole = (json.loads(line) for line in lines if line.endswith("\n"))
    return (line for line in whole if line["type"] == "verdict")


_NAMES = {
    **{"rig_ends.py play": "sensors", "rig_ends.py hear": "stack", "live_suite": "suite"},
    **{"followup_process": "workers", "cli.main live": "mt live"},
}


def _cpu_s() -> dict[int, tuple[str, float]]:
    """Return name and seconds of each process that came of this one."""
    found = {}
    for pid in descendants_of(os.getpid()):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        name = next((name for part, name in _NAMES.items() if part in words), "other")
        found[pid] = name, (int(fields[11]) + int(fields[12])) / _TICKS_HZ
    return found


def _busy_s() -> float:
    """Return the seconds that all processors of the machine have worked."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(fields[:8]) - fields[3] - fields[4]) / _TICKS_HZ  # but for idle and waiting for disks


def _figures(place: Path, out: Path, windows: Mapping[str, Window], setting: Setting, domain: int) -> Row:
    domains = json.loads((out / "live.json").read_text())
    sent = {(t, s): at for t, s, at in json.loads((place / "sent.json").read_text())}
    near, far = (_heard(place / f"heard_{number}.json") for number in (domain, domains["followup"]))
    summary, verdicts = json.loads((out / "summary.json").read_text()), list(_verdicts(out))
    turns = {}
    for relation, window in windows.items():
        # What was published as the window ended is still on its way through the delay.
        counted = {key: at for key, at in sent.items() if window.began_s <= at < window.ended_s - 2 * DELAY_S}
        lasted_s = window.ended_s - window.began_s
        turns[relation] = {
            **_pairs([line for line in verdicts if line["relation"] == relation], {stamp for _, stamp in counted}),
            "cores": {name: round(took_s / lasted_s, 3) for name, took_s in sorted(window.cpu_s.items())},
            "topics": {t: _topic(t, counted, near, far) for t in dict.fromkeys(topic for topic, _ in sent)},
            "lasted_s": round(lasted_s - 2 * DELAY_S, 3),
        }
    made_ms = summary["latency_ms"].get("mutator", {})
    asked_hz = {topic: setting.hz(topic) for topic, _ in sent}
    return {**asdict(setting), "turns": turns, "made_ms": made_ms, "asked_hz": asked_hz, "added_ms": summary["topics"]}


def _pairs(lines: Sequence[Row], stamps: set[int]) -> Row:
    """Return what became of the instants with these stamps."""
    within = [line for line in lines if line["stamp_ns"] in stamps]
    outcomes = Counter(line["outcome"] for line in within)
    reasons = Counter(_kind(line["reason"]) for line in within if line["outcome"] == "SKIPPED")
    return {"instants": outcomes.total(), "outcomes": dict(outcomes), "skipped": dict(reasons)}


def _kind(reason: str) -> str:
    """Return a reason without its figures."""
    return re.sub(r"\d+", "N", reason)


Heard = dict[tuple[str, int], tuple[float, int]]


def _heard(path: Path) -> Heard:
    return {(topic, stamp): (at, sample) for topic, stamp, at, sample in json.loads(path.read_text())}


def _topic(topic: str, counted: Mapping[tuple[str, int], float], near: Heard, far: Heard) -> Row:
    keys = [key for key in counted if key[0] == topic]
    both = [key for key in keys if key in near and key in far]
    added_ms = np.array([1e3 * (far[key][0] - near[key][0] - DELAY_S) for key in both])
    p50, p99, most = np.percentile(added_ms, (50, 99, 100)).round(1).tolist() if both else (None,) * 3
    return {
        "sent": len(keys),
        "live": sum(key in near for key in keys),
        "instance": sum(key in far for key in keys),
        "changed": sum(near[key][1] != far[key][1] for key in both),
        "lost": sum(key not in far for key in keys),
        "added_p50_ms": p50,
        "added_p99_ms": p99,
        "added_max_ms": most,
    }
