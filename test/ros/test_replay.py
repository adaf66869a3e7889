# SPDX-License-Identifier: Apache-2.0
"""Whole runs as a user types them, over real topics: what they decide, and how they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from bad_bags import typed
from made_runs import sparse_drive
from recordings import cloud, drive, recorded, stamp, tree, write_bag
from ros_support import LIMIT_S, Peer, until

from mt_nodes.base.environment import ros_environment
from mt_nodes.base.jsonl import read_lines, read_result
from mt_nodes.base.process_tree import signal_all
from mt_nodes.base.processes import Child, Process
from mt_nodes.data.cdr import codec
from mt_nodes.data.transforms import dump_transforms, move
from mt_nodes.engine.ledger import load_draws, read_ledger
from mt_nodes.nodes import qos

ROOT = Path(__file__).resolve().parents[2]
NOISE = ("--relations", "noise_outside_roi_10", "--limit", "3")
#: Somebody's model in five lines. HOLD, if there is such a file, stops it at the third instant.
MODEL = """
import os, time
from mt_nodes.data.outputs import Control

def detect(points, stamp_ns):
    while stamp_ns >= 1_700_000_000_200_000_000 and os.path.exists(os.environ.get("HOLD", "")):
        time.sleep(0.01)
    front = points[(points[:, 0] > 5) & (points[:, 0] < 35) & (abs(points[:, 1]) < 5)]
    return [[*front[:, :3].mean(axis=0), 4, 2, 1.5, 0.0]] if len(front) else []

def brake(image):
    return Control(None, speed_mps=float(image.mean()))
"""
#: Somebody's stack as a program: it answers each cloud with a box; its first argument says what goes wrong when.
PROGRAM = """
import os, sys, time
import rclpy
from sensor_msgs.msg import PointCloud2
from visualization_msgs.msg import Marker, MarkerArray

wrong, at = sys.argv[1], int(sys.argv[2])
rclpy.init()
node = rclpy.create_node("their_stack")
boxes = node.create_publisher(MarkerArray, "/perception/obstacles", 10)
count = 0

def received(cloud):
    global count
    count += 1
    if wrong == "crash" and count == at:
        print("out of memory, of all things", flush=True)
        os._exit(7)
    if wrong == "hang" and count >= at:
        while True:
            time.sleep(1)
    box = Marker(type=Marker.CUBE, action=Marker.ADD, ns="car", header=cloud.header)
    box.header.frame_id = "base_link"
    box.pose.position.x, box.scale.x, box.scale.y, box.scale.z = 10.0, 4.0, 2.0, 1.5
    boxes.publish(MarkerArray(markers=[Marker(action=Marker.DELETEALL, header=box.header), box]))

if wrong != "deaf":
    node.create_subscription(PointCloud2, "/points", received, 10)
try:
    rclpy.spin(node)
except (KeyboardInterrupt, rclpy.executors.ExternalShutdownException):
    pass
"""
#: A check on commands and a change of images: two plugins in one file.
PLUGINS = '''
from dataclasses import dataclass, replace
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.mutations.base import Followup, Mutation
from mt_nodes.data.verdict import Judgement, Outcome

@dataclass(frozen=True)
class SpeedKept(Check):
    """The commanded speed stays."""
    needs = ("control",)

    def judge(self, source, followup, effects, bundle):
        margin = 0.5 - abs(source.control.speed_mps - followup.control.speed_mps)
        outcome = Outcome.HOLDS if margin >= 0 else Outcome.VIOLATED
        return Judgement(outcome, measured=followup.control.speed_mps, margin=margin, unit="m/s")

@dataclass(frozen=True)
class Darker(Mutation):
    """Takes a share of the light."""
    share: float = 0.5
    sensors = ("camera",)

    def draw(self, rng, bundle, state):
        return {}

    def apply(self, bundle, draw):
        made = [replace(i, pixels=(i.pixels * (1 - self.share)).astype(i.pixels.dtype)) for i in bundle.images]
        return Followup(((0, replace(bundle, images=tuple(made))),))

    def guarantee(self, source, followup, draw):
        return None if followup.first.images[0].pixels.mean() <= source.images[0].pixels.mean() else "not darker"
'''


class Place:
    """A directory where a user works: bags, a model, stack files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "my_model.py").write_text(MODEL)
        (path / "their_stack.py").write_text(PROGRAM)
        (path / "plugins").mkdir()
        (path / "plugins" / "mine.py").write_text(PLUGINS)
        self.street = path / "street"
        sparse_drive(self.street, 3)
        self.small = write_bag(path / "small", drive(5))
        self.hold = path / "hold"
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        self.env = {**os.environ, "PYTHONPATH": path}

    def file(self, name: str, **rows: Any) -> str:
        (self.path / name).write_text(json.dumps(rows))
        return name

    def model(self, name: str, **rows: Any) -> str:
        given = {"callable": "my_model:detect", "points_frame": "base_link", "inputs": {"lidar": "/points"}}
        return self.file(f"{name}.yaml", **{**given, "stateless": True, "env": {"HOLD": str(self.hold)}, **rows})

    def program(self, wrong: str, at: int, *words: str, **rows: Any) -> str:
        command = [sys.executable, str(self.path / "their_stack.py"), wrong, str(at), *words]
        given = {"command": command, "inputs": {"lidar": "/points"}, "stateless": True}
        return self.file(f"{wrong}.yaml", **{**given, **rows})

    def start(self, out: str, *words: str | Path) -> Ran:
        return Ran(self, out, (*words, "--out", out))

    def resume(self, out: str) -> Ran:
        return Ran(self, out, ("--resume", out)).over()

    def camera(self) -> tuple[str, ...]:
        """A camera model that commands a speed, judged by a plugin after a plugin has changed the light."""
        mine = {"kind": "necessary", "because": "x", "requires": ["camera"], "check": "speed_kept"}
        changes = {name: [{"darker": {"share": share}}] for name, share in (("dim", 0.5), ("same", 0.0))}
        names = [self.file(f"{name}.yaml", id=name, mutate=mutate, **mine) for name, mutate in changes.items()]
        given = {"callable": "my_model:brake", "inputs": {"camera": "/camera/image"}, "outputs": "control"}
        stack = self.file("camera.yaml", **given, stateless=True)
        return (stack, "--relations", ",".join(names), "--plugins", "plugins", "--limit", "2")

    def replay(self, out: str, *words: str | Path) -> Ran:
        return self.start(out, *words).over()

    def replay_here(self, out: str, *words: str | Path) -> Ran:
        """The same command line in this process, where none of its own is needed: over topics that takes four fifths
        of the time, without them a fifth.
        """
        return RanHere(self, out, words)


class Ran:
    """A run of `mt replay`, and what it leaves behind."""

    def __init__(self, place: Place, out: str, words: tuple[str | Path, ...]) -> None:
        self.out = place.path / out
        self._mark = f"MT_TEST_{uuid4().hex}"
        argv = [sys.executable, "-m", "mt_nodes.cli.main", "replay", *map(str, words)]
        self.process = subprocess.Popen(
            argv,
            cwd=place.path,
            env={**place.env, self._mark: "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def over(self) -> Ran:
        """Wait for its end; nothing that it started may be left."""
        self.said, self.error = self.process.communicate(timeout=3 * LIMIT_S)
        assert self.running() == []
        return self

    def running(self) -> list[str]:
        """Command lines of its processes."""
        return list(self._processes().values())

    def pids(self) -> list[int]:
        """Ids of its processes, oldest first."""
        return sorted(self._processes())

    def _processes(self) -> dict[int, str]:
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if self._mark.encode() in (process / "environ").read_bytes():
                    found[int(process.name)] = (process / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
        return found

    @property
    def summary(self) -> dict[str, Any]:
        file = self.out / "summary.json"
        return json.loads(file.read_text()) if file.exists() else {}

    @property
    def journal(self) -> str:
        file = self.out / "result.jsonl"
        return file.read_text() if file.exists() else ""

    @property
    def lines(self) -> list[dict[str, Any]]:
        found = [line for line in read_lines(self.out / "result.jsonl") if line["type"] == "verdict"]
        return sorted(found, key=lambda line: str(line["pair"]))

    @property
    def drawn(self) -> dict[str, str]:
        return {line["pair"]: line["sha256"] for line in read_ledger(self.out)}

    def wholly(self, code: int, **outcomes: int) -> Ran:
        """Assert how it ended."""
        logs = "".join(f"\n{log.name}:\n{log.read_text()}" for log in self.out.glob("*.log"))
        assert self.process.returncode == code, f"{self.said}\n{self.error}{logs}"
        if self.summary:
            assert self.summary["exit_code"] == code
            assert self.summary["offered"] == len(self.lines) == sum(self.summary["outcomes"].values())
        if outcomes:
            assert self.summary["outcomes"] == outcomes
        return self


class RanHere(Ran):
    """A run in this process."""

    def __init__(self, place: Place, out: str, words: tuple[str | Path, ...]) -> None:
        self.out = place.path / out
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(place.path)
            code, self.said, self.error = typed("replay", *words, "--out", out)
        self.process = SimpleNamespace(returncode=code)  # type: ignore[assignment]


@pytest.fixture(scope="module")
def place(domains: tuple[int, ...], tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("place"))


# --- the same verdicts, however the run is carried out


INPROCESS = ("--transport", "inprocess")
TRACKER = ("--stack", "reference_tracker")
#: Each kind of stack in each mode, and in process.
STREET = [
    ("--mode", "twin"),
    (*TRACKER, "--mode", "two_pass"),
    INPROCESS,
    ("--mode", "two_pass"),
    (*TRACKER, "--mode", "twin"),
    (*TRACKER, *INPROCESS),
    ("--mode", "alternate"),
]
#: Each kind of stack in the mode that it has by default, and a kind that answers by turns.
LONG = [("--mode", "two_pass"), (*TRACKER, "--mode", "twin")]
Runs = Mapping[Any, Ran]


#: Relations about the stream, so that each strikes within three bundles; some stamps come twice, some delays pass over
#: the next bundle.
ABOUT_THE_STREAM: dict[str, dict[str, Any]] = {
    "frames_dropped": {"every": 2},
    "frames_frozen": {"every": 2, "stamps": "old"},
    "frames_repeated": {"every": 1, "after_s": 0.02},
    "frames_reordered": {"every": 3},
    "frames_delayed": {"every": 1, "delay_s": 0.15, "stamps": "new"},
    "stamps_jittered": {"jitter_s": 0.02},
    "clock_stepped": {"step_s": -0.05, "from_frame": 1},
    "rate_reduced": {"one_of": 2.0},
}
SENDS_NOTHING = {"0/1/frames_dropped/0", "0/1/frames_reordered/0", "0/1/rate_reduced/0"}


def changes_of(words: tuple[str, ...]) -> list[str]:
    """Which changes of the stream a run judges: each costs starts of a stack that remembers, in two passes of any."""
    names, two_passes = list(ABOUT_THE_STREAM), "two_pass" in words
    if TRACKER[0] not in words:
        return names[:4] if two_passes else names
    return names[:4] if INPROCESS[0] in words else names[3:4] if two_passes else names[:1]


@pytest.fixture(scope="module")
def street(request: pytest.FixtureRequest, place: Place) -> Runs:
    """Runs of reference stacks on the generated drive: a relation about clouds, and those about the stream."""
    head = {"kind": "expected", "because": "x", "min_decided": 1, "check": "obstacles_kept"}
    files = {
        name: str(place.file(f"{name}.yaml", id=name, mutate=[{name: given}], **head))
        for name, given in ABOUT_THE_STREAM.items()
    }

    def run(words: tuple[str, ...]) -> Ran:
        relations = ",".join(["noise_outside_roi_10", *(files[name] for name in changes_of(words))])
        return place.replay_here("run" + "".join(words), place.street, "--relations", relations, "--limit", "3", *words)

    looked_at = {item.name for item in request.session.items}
    runs = [
        words
        for words in STREET
        if words not in LONG or any(name.endswith(f"[{''.join(words)}]") for name in looked_at)
    ]
    return {words: run(words) for words in runs}


@pytest.mark.parametrize(
    "words",
    [pytest.param(row, marks=pytest.mark.long if row in LONG else ()) for row in STREET if INPROCESS[0] not in row],
    ids="".join,
)
def test_a_stack_gets_the_same_verdicts_over_topics_and_in_process(street: Runs, words: tuple[str, ...]) -> None:
    here, in_process = street[words], street[(*TRACKER, *INPROCESS) if TRACKER[0] in words else INPROCESS]
    assert here.process.returncode == here.summary["exit_code"]
    ended = {line["pair"]: line for line in here.lines}
    assert here.lines == [line for line in in_process.lines if line["pair"] in ended]
    assert here.drawn.keys() == {pair.partition("@")[0] for pair in ended}
    assert here.drawn.items() <= in_process.drawn.items()
    assert len(here.lines) == here.summary["offered"] == 3 * 3 * (1 + len(changes_of(words)))
    noise = {line["outcome"] for line in here.lines if line["relation"] == "noise_outside_roi_10"}
    assert noise == {"HOLDS"} or (TRACKER[0] in words and noise == {"HOLDS", "NOT_APPLICABLE"})
    skipped = {pair for pair, line in ended.items() if line["outcome"] == "SKIPPED"}
    assert skipped == SENDS_NOTHING & set(ended)
    assert {ended[pair]["reason"] for pair in skipped} == {"the follow-up sends nothing"}
    assert set(here.summary["outcomes"]) <= {"HOLDS", "VIOLATED", "NOT_APPLICABLE", "SKIPPED"}, "all were answered"
    for name in ("run.json", "result.jsonl", "ledger.jsonl", "summary.json", "pairs.csv", "junit.xml", "report.html"):
        assert (here.out / name).stat().st_size


def test_another_seed_draws_otherwise(place: Place) -> None:
    runs = [place.replay_here(f"seed{n}", place.street, *NOISE, *INPROCESS, "--seed", n) for n in ("0", "3")]
    one, other = (ran.wholly(3, HOLDS=9) for ran in runs)
    assert one.drawn.keys() == other.drawn.keys()
    same = {pair for pair in one.drawn if one.drawn[pair] == other.drawn[pair]}
    assert same == {pair for pair in one.drawn if "/identity/" in pair}


# --- a user's own stacks


def test_a_model_in_five_lines_passes_and_a_late_reader_hears_everything(
    place: Place, ending: ExitStack, domains: Any
) -> None:
    relation = {"id": "few", "kind": "necessary", "because": "x", "min_decided": 5, "check": "obstacles_kept"}
    few = place.file("few.yaml", **relation, mutate=[{"noise_outside_roi": {"points": 5}}])
    place.hold.touch()
    ran = place.start("five", place.small, "--stack", place.model("mine", deadline_s=60), "--relations", few)
    peer = Peer(ending, domains[0])
    until(lambda: ran.journal.count("verdict") >= 6, "two bundles are judged, one is held")
    texts = {t: peer.listen(codec.STRING, t, qos.JOURNAL) for t in ("/mt/verdicts", "/mt/ledger")}
    metrics = peer.listen(codec.STRING, "/mt/metrics", qos.STATUS)
    diagnostics = peer.listen("diagnostic_msgs/msg/DiagnosticArray", "/mt/diagnostics", qos.STATUS)
    for heard in texts.values():
        heard.wait(6)
    until(lambda: metrics.matched() and diagnostics.matched())
    place.hold.unlink()
    ran.over().wholly(0, HOLDS=15)
    assert [m.data for m in texts["/mt/verdicts"].wait(15)] == ran.journal.splitlines()[1:], "the very lines"
    assert {json.loads(m.data)["pair"] for m in texts["/mt/ledger"].wait(15)} == set(ran.drawn)
    last = json.loads(metrics.wait(1)[-1].data)
    assert last["outcomes"] == {"HOLDS": 15} and last["done"] == last["total"] == 15
    values = {v.key: v.value for v in diagnostics.wait(1)[-1].status[0].values}
    assert values["isolation_source"].endswith("nobody else's") and values["strays_unknown_source"] == "0"


def test_an_interrupted_run_keeps_what_was_judged_and_leaves_nobody_behind(place: Place) -> None:
    place.hold.touch()
    ran = place.start("interrupted", place.small, "--stack", place.model("mine", deadline_s=60), *NOISE)
    until(lambda: ran.journal.count("verdict") >= 6, "two bundles are judged, one is held")
    assert len(ran.running()) == 7, "command line and who waits for it, suite, two keepers, two stacks"
    ran.process.send_signal(signal.SIGINT)
    ran.process.send_signal(signal.SIGINT)
    ran.over().wholly(130, HOLDS=6)
    place.hold.unlink()
    assert ran.summary["interrupted"] and (ran.out / "report.html").exists()


def test_a_killed_command_line_takes_everybody_with_it_and_loses_nothing_judged(place: Place) -> None:
    place.hold.touch()
    ran = place.start("killed", place.small, "--stack", place.model("mine", deadline_s=60), *NOISE)
    until(lambda: ran.journal.count("verdict") >= 6, "two bundles are judged, one is held")
    ran.process.kill()
    ran.process.wait()
    until(lambda: not ran.running(), "suite and stacks have ended by themselves")
    place.hold.unlink()
    summary = read_result(ran.out / "summary.json")
    assert summary["interrupted"] and summary["outcomes"] == {"HOLDS": 6}


def test_a_run_whose_every_process_was_killed_goes_on_as_if_nothing_had_been(place: Place) -> None:
    words = (place.small, "--stack", place.model("mine", deadline_s=60), *NOISE)
    undisturbed = place.replay_here("undisturbed", *words).wholly(3, HOLDS=9)
    place.hold.touch()
    ran = place.start("torn", *words)
    until(lambda: ran.journal.count("verdict") >= 6, "two bundles are judged, one is held")
    busy = Ran(place, "torn", ("--resume", "torn"))
    busy.over().wholly(2)
    assert "result.jsonl: another run is writing to it; wait for its end, or stop it" in busy.error
    signal_all(ran.pids(), signal.SIGKILL)  # what only waited for another one may end before its turn
    until(lambda: not ran.running(), "the kernel has taken all of them away")
    ran.over()
    assert not ran.summary, "nobody could write one"
    place.hold.unlink()
    resumed = place.resume("torn").wholly(3, HOLDS=9)
    assert sorted(resumed.journal.splitlines()) == sorted(undisturbed.journal.splitlines())
    ledgers = [sorted((r.out / "ledger.jsonl").read_text().splitlines()) for r in (resumed, undisturbed)]
    assert ledgers[0] == ledgers[1]


def test_an_early_interruption_is_one_too(place: Place) -> None:
    place.hold.touch()  # else a run of three frames may be over before the signal comes
    ran = place.start("early", place.small, "--stack", place.model("mine", deadline_s=60), *NOISE)
    until(lambda: any("mt_nodes.nodes.suite" in line for line in ran.running()), "the suite is there")
    ran.process.send_signal(signal.SIGINT)
    try:
        ran.over().wholly(130)
    finally:
        place.hold.unlink()


@pytest.fixture(scope="module")
def waiting(place: Place) -> dict[str, Ran]:
    """Runs that do little but wait, as processes beside the other tests.

    Begun between two runs in this process: when one of these ends, it ends what was begun meanwhile.
    """
    # What it answers must come in time on a busy machine, too; it is heard out three times for this long.
    hangs = place.program("hang", 5, deadline_s=5, stop_timeout_s=0.5)
    deaf = place.program("deaf", 0, ready_timeout_s=30)  # it advertises well before, however slowly
    words = {"hang": (hangs, "--relations", "noise_outside_roi_10"), "deaf": (deaf, *NOISE)}
    return {name: place.start(name, place.small, "--stack", *given) for name, given in words.items()}


def test_somebody_elses_program_in_one_domain(place: Place, waiting: object) -> None:
    fine = place.program("fine", 0, "--ros-args", "{remap}", isolation="remap", nodes=["/their_stack"])
    ran = place.replay_here("fine", place.small, "--stack", fine, *NOISE).wholly(3, HOLDS=9)
    assert "9 pairs offered: 9 HOLDS" in ran.said and "INCONCLUSIVE" in ran.said


def test_a_stack_that_crashes_is_told_with_the_tail_of_its_log(place: Place) -> None:
    ran = place.replay_here("crash", place.small, "--stack", place.program("crash", 5), *NOISE)
    ran.wholly(4, HOLDS=4, ERROR=1)
    why = ran.summary["infrastructure"]
    assert "stack 'crash' (followup arm) ended with exit code 7" in why and "| out of memory, of all things" in why
    assert "ended with exit code 7" in ran.said
    assert [line["reason"] for line in ran.lines if line["outcome"] == "ERROR"] == [
        "stack 'crash' (followup arm) ended with exit code 7"
    ]


def test_a_callable_that_is_not_there_is_a_mistake(place: Place) -> None:
    typo = place.model("typo", callable="my_model:detct")
    ran = place.replay_here("typo", place.small, "--stack", typo, *NOISE).wholly(2)
    assert "callable my_model:detct cannot be imported: AttributeError" in ran.error and not ran.summary


def test_in_realtime_and_in_one_domain(place: Place) -> None:
    remapped = place.model("remapped", isolation="remap", deadline_s=60)
    words = ("--stack", remapped, *NOISE, "--pace", "realtime", "--rate", "0.5")
    ran = place.replay_here("realtime", place.small, *words).wholly(3)
    assert ran.summary["outcomes"].get("HOLDS", 0) >= 6
    assert read_result(ran.out / "run.json")["request"]["pace"] == "realtime"


def test_a_camera_model_that_commands_is_judged_by_somebodys_own_check(place: Place) -> None:
    ran = place.replay_here("camera", place.small, "--stack", *place.camera()).wholly(1)
    assert {n: r["outcome"] for n, r in ran.summary["relations"].items()} == {"dim": "FAIL", "same": "INCONCLUSIVE"}
    assert ran.summary["relations"]["dim"]["violated"] == 2
    assert len(list((ran.out / "evidence").glob("*.mcap"))) == 2
    here = place.replay_here("camera_here", place.small, "--stack", *place.camera(), *INPROCESS)
    assert here.wholly(1).lines == ran.lines


def test_a_stack_that_hangs_is_found_out(waiting: dict[str, Ran]) -> None:
    ran = waiting["hang"].over().wholly(4)
    assert "followup arm runs but has not answered 3 inputs in a row" in ran.summary["infrastructure"]
    assert ran.summary["outcomes"]["ERROR"] and ran.summary["outcomes"]["HOLDS"] == 4
    assert ran.summary["outcomes"]["VIOLATED"], "a stack that says when it sees nothing has lost everything"


def test_a_stack_that_never_listens_never_gets_ready(waiting: dict[str, Ran]) -> None:
    ran = waiting["deaf"].over().wholly(4)
    assert ran.summary["offered"] == 0
    assert "nobody subscribes to /points" in ran.summary["infrastructure"]
    assert "nobody publishes" not in ran.summary["infrastructure"]


def test_an_external_stack_and_then_a_stranger(place: Place, ending: ExitStack, domains: Any) -> None:
    file = place.path / "hosted.yaml"
    place.model("hosted")
    transforms = place.path / "transforms.yaml"
    dump_transforms(tree(), transforms)
    arms = dict(zip(("source", "followup"), domains[1:], strict=True))
    for arm, domain in arms.items():
        words = ("--stack", str(file), "--transforms", str(transforms))
        argv = (sys.executable, "-m", "mt_nodes.nodes.callable_stack", *words)
        child = Child(Process(arm, argv, ros_environment(os.environ, domain), place.path / f"{arm}.log"))
        ending.callback(child.stop, 5.0)
    rows = {"start": "external", "nodes": ["/callable_stack"], "domain": arms, "stateless": True}
    stack = place.file("external.yaml", **rows, inputs={"lidar": "/points"})
    place.replay_here("external", place.small, "--stack", stack, *NOISE).wholly(3, HOLDS=9)
    Peer(ending, domains[2], "planner")
    refused = place.replay_here("refused", place.small, "--stack", stack, *NOISE).wholly(5)
    assert "holds nodes that are not the stack's: /planner" in refused.said and refused.summary["offered"] == 0


# --- regions


def test_a_region_may_come_from_a_topic_of_the_bag(place: Place) -> None:
    types = codec.typestore().types
    corners = [(0.0, -90.0), (90.0, -90.0), (90.0, 90.0), (0.0, 90.0)]
    point = types["geometry_msgs/msg/Point32"]
    polygon = types["geometry_msgs/msg/Polygon"](points=[point(x=x, y=y, z=0.0) for x, y in corners])
    header = codec.decode(codec.POINT_CLOUD, recorded(cloud(0)).cdr).header
    header.frame_id = "base_link"
    message = codec.encode(codec.POLYGON, types[codec.POLYGON](header=header, polygon=polygon))
    rows = [*drive(3), recorded(cloud(0))._replace(topic="/roi", type=codec.POLYGON, cdr=message)]
    bag = write_bag(place.path / "with_region", sorted(rows, key=lambda r: r.received_ns))
    named = {"region": "topic:/roi"}
    mutate = [{"noise_outside_roi": {"points": 200, **named}}]
    relation = {"id": "roi", "kind": "necessary", "because": "x", "mutate": mutate, "check": {"obstacles_kept": named}}
    words = ("--relations", place.file("roi.yaml", **relation), "--stack", place.model("mine"), *INPROCESS)
    ran = place.replay_here("region", bag, *words).wholly(3, HOLDS=9)
    drawn = [load_draws(ran.out, line)[0] for line in read_ledger(ran.out) if line["relation"] == "roi"]
    assert len(drawn) == 3
    for draw in drawn:
        noise = move(tree().lookup("base_link", "lidar"), draw["/points|xyz"])
        ahead = (noise[:, 0] > 0) & (noise[:, 0] < 90) & (np.abs(noise[:, 1]) < 90)
        assert len(noise) == 200 and not ahead.any()


# --- how a run ends before it begins


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--relations", "noise_outside_roi_11"), "no relation 'noise_outside_roi_11'; did you mean"),
        (("--stack", "none.yaml"), "no file none.yaml"),
        (("--mode", "shadow"), "shadow needs a live stack"),
    ],
)
def test_mistakes_end_with_exit_code_2_and_one_line(place: Place, words: tuple[str, ...], said: str) -> None:
    ran = place.replay_here(f"mistake_{len(said)}", place.small, "--stack", place.model("mine"), *words).wholly(2)
    assert said in ran.error and "Traceback" not in ran.error and not ran.summary


def test_stamps_of_the_small_bag_are_what_the_model_waits_for() -> None:
    assert stamp(2) == 1_700_000_000_200_000_000
