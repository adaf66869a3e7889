# SPDX-License-Identifier: Apache-2.0
"""One short run of each kind, for attacks on it: what is under attack is given, what came of it is returned."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from mt_process import Mt

from mt_nodes.base.environment import free_domains, ros_environment
from mt_nodes.base.errors import ExitCode, MtError
from mt_nodes.base.jsonl import read_result
from mt_nodes.base.processes import Child, Process, uninterrupted, wait_until
from mt_nodes.data.stack_topics import WORLD_TYPES
from mt_nodes.world.scene.drive import CLOUD_TOPIC

PROGRAMS = Path(__file__).with_name("attack_programs")
#: The kinds of run, as columns of the table.
KINDS = ("replay in process", "replay over topics", "closed loop", "live in shadow", "inline", "campaign", "moral")
#: In the environment of every run: a key that may stand in no file that it writes.
KEY = "sk-mt-attack-0123456789abcdef"
KEYS = dict.fromkeys(("MT_LLM_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"), KEY)
END_S = 180.0
#: Instead of an exit code, of a run that did not end in time.
LATE = -1
#: Documented exit codes; a command that is killed, be it by a plugin, ends by the same signal.
CODES = (*map(int, ExitCode), -signal.SIGKILL)
BOXES = {"topic": "/perception/obstacles", "type": "visualization_msgs/msg/MarkerArray"}
RELATION = {
    **{"id": "noise", "kind": "necessary", "because": "for attacks", "min_decided": 1},
    **{"mutate": [{"noise_outside_roi": {"points": 9}}], "check": {"obstacles_kept": {}}},
}
#: Callables: one car in each cloud; a car that brakes; or whatever takes their place.
STACKS = """
import os, time
import numpy as np
from mt_nodes.data.outputs import Control, Output

def detect(points):
    {}
    return np.array([[12.0, 3.0, 0.5, 4.0, 2.0, 1.5, 0.0]])

def drive(inputs):
    {}
    return Control(None, acceleration_mps2=-4.0, steering_rad=0.0)
"""
#: What is no answer, by name: of detectors, and of drivers.
_BOTH = {
    "a text": "return 'a car'",
    "a number": "return 7",
    "a class": "return int",
    "an exception": "raise RuntimeError('no idea')",
    "SystemExit": "raise SystemExit(0)",
    "slower than the deadline": "time.sleep(3)",
    "the end of its process": "os._exit(0)",
}
KIND_OF_ANSWER = {
    "detects": {
        **_BOTH,
        "NaN": "return np.full((1, 7), np.nan)",
        "six columns": "return np.zeros((1, 6))",
        "complex numbers": "return np.ones((1, 7)) * 1j",
        "objects": "return np.array([[None] * 7])",
        "a million boxes": "return np.ones((1_000_000, 7))",
    },
    "drives": {
        **_BOTH,
        "NaN": "return Control(None, acceleration_mps2=float('nan'), steering_rad=0.0)",
        "None": "return None",
        "no steering": "return Control(None, acceleration_mps2=1.0)",
        "a mapping of nothing": "return {}",
    },
}


@dataclass(frozen=True)
class Attack:
    """What is changed of an honest run.

    Attributes:
        bag: the drive, or what the sensor plays.
        code: what the callable does in place of its answer. program: how a stack over topics answers wrongly.
        plugins: a folder for ``--plugins``. jump_s: by how much the wall clock is moved in the middle.
        killed_after: lines of the journal after which all of its processes are killed; 0: never.
    """

    bag: Path
    code: str = ""
    program: str = ""
    plugins: Path | None = None
    jump_s: int = 0
    killed_after: int = 0


@dataclass(frozen=True)
class Ended:
    """What came of a run: its exit code, why, and what is wrong with how it ended (empty: nothing)."""

    code: int
    why: str
    wrong: str
    out: Path


class Runs:
    """Starts runs in a directory, each with its own folder."""

    def __init__(self, place: Path, clock: Path) -> None:
        """Take the directory, and the library that moves the clock."""
        self._place, self._clock, self._count = place, clock, 0
        self.files_searched = 0

    def run(self, kind: str, attack: Attack) -> Ended:
        """Carry out a short run of a kind under an attack."""
        self._count += 1
        place = self._place / f"run_{self._count}"
        place.mkdir(parents=True)
        (place / "honest.py").write_text(STACKS.replace("{}", attack.code or "pass"))
        self._write(place, kind, attack)
        env = self._environment(place, attack)
        with ExitStack() as ending:
            code = _STARTS[kind](place, attack, env, ending)
        said = (place / "said.txt").read_text(errors="replace")
        return Ended(code, _why(place / "out", said), self._wrong(place, code, said), place / "out")

    def _write(self, place: Path, kind: str, attack: Attack) -> None:
        drives = kind in ("closed loop", "moral")
        honest: dict[str, Any] = {"callable": "honest:drive" if drives else "honest:detect"}
        if attack.program:
            honest = {"command": [sys.executable, str(PROGRAMS / "their_stack.py"), attack.program]}
        topics: dict[str, Any] = {"inputs": {"lidar": CLOUD_TOPIC}, "outputs": {"detections": BOXES}}
        if drives:
            topics = {"inputs": dict.fromkeys(WORLD_TYPES), "outputs": {"control": None}}
        shared = {"stateless": True, "deadline_s": 1.0, "ready_timeout_s": 30.0}
        files = {"stack": {**honest, **topics, **shared}, "relation": RELATION}
        for name, content in files.items():
            (place / f"{name}.yaml").write_text(yaml.safe_dump(content))
        mount = {"parent": "base_link", "child": "velodyne", "translation_m": [0, 0, 1.73], "rpy_rad": [0, 0, 0]}
        (place / "transforms.yaml").write_text(yaml.safe_dump([mount]))

    def _environment(self, place: Path, attack: Attack) -> dict[str, str]:
        env = {**KEYS, "PYTHONPATH": os.pathsep.join(filter(None, (str(place), os.environ.get("PYTHONPATH"))))}
        if attack.jump_s:
            env |= {"LD_PRELOAD": str(self._clock), "CLOCK_JUMP_S": str(attack.jump_s)}
            env["CLOCK_JUMPED"] = str(place / "jumped")
        return env

    def _wrong(self, place: Path, code: int, said: str) -> str:
        """Return what may not be, whatever was attacked."""
        if code not in CODES:
            return f"exit code {code}"
        if re.search(r"^Traceback", said, re.MULTILINE):
            return f"a traceback: {said.strip().splitlines()[-1][:200]}"
        if _lines(place) and not (place / "out" / "summary.json").exists():
            made = subprocess.run(_mt("report", "out"), cwd=place, check=False, capture_output=True, text=True)
            if made.returncode or "Traceback" in made.stderr:
                return f"mt report of what a killed run left: exit code {made.returncode}: {made.stderr.strip()[-300:]}"
        if (place / "out" / "result.jsonl").exists() and (place / "out" / "summary.json").exists():
            told = subprocess.run(_mt("verify", "out"), cwd=place, check=False, capture_output=True, text=True)
            if told.returncode not in (ExitCode.PASS, ExitCode.UNDECIDED):  # undecided: some of it cannot be checked
                return f"mt verify: {(told.stdout + told.stderr).strip()[-300:]}"
        for path in (p for p in place.rglob("*") if p.is_file()):
            self.files_searched += 1
            if KEY.encode() in path.read_bytes():
                return f"the key of a language model stands in {path.relative_to(place)}"
        return ""


def _why(out: Path, said: str) -> str:
    """Return what a run says of its end: its summary, or its error."""
    try:
        summary = read_result(out / "summary.json")
        if summary.get("type") == "inline":
            return ", ".join(
                f"{row['originals']} clouds, {row['replaced']} replaced" for row in summary["topics"].values()
            )
        return str(summary["exit_why"])
    except (MtError, KeyError):
        lines = [row for row in said.splitlines() if row.startswith("mt: ")]
        return lines[-1][4:] if lines else ""


def _mt(*words: str) -> list[str]:
    return [sys.executable, "-m", "mt_nodes.cli.main", *words]


def _plugins(attack: Attack) -> tuple[str, ...]:
    return ("--plugins", str(attack.plugins)) if attack.plugins else ()


def _wait(place: Path, mt: Mt, attack: Attack) -> int:
    """Wait for the end; let the clock jump once something is judged."""
    if attack.jump_s:
        journals = lambda: list(place.glob("out/**/result.jsonl"))  # noqa: E731 - read again at each look
        wait_until(lambda: bool(journals()) or mt.process.poll() is not None, END_S, 0.2)
        (place / "jumped").touch()
    if attack.killed_after:
        wait_until(lambda: _lines(place) >= attack.killed_after or mt.process.poll() is not None, END_S, 0.05)
        return _kill(mt)
    try:
        return mt.process.wait(END_S)
    except subprocess.TimeoutExpired:
        _kill(mt)
        return LATE


def _lines(place: Path) -> int:
    """Return how many lines the journals of a run have, those of a campaign's items included."""
    return sum(path.read_bytes().count(b"\n") for path in place.glob("out/**/*.jsonl"))


def _kill(mt: Mt) -> int:
    """Kill every process of a run; return the exit code of the command."""
    for pid in mt.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return mt.process.wait(END_S)


def _replay(place: Path, attack: Attack, env: Mapping[str, str], ending: ExitStack, transport: str) -> int:
    words = ("--stack", "stack.yaml", "--relations", "relation.yaml", "--transport", transport, "--out", "out")
    return _wait(place, Mt.start(place, str(attack.bag), *words, *_plugins(attack), env=env), attack)


def _loop(place: Path, attack: Attack, env: Mapping[str, str], ending: ExitStack) -> int:
    words = ("car_brakes", "--stack", "stack.yaml", "--relations", "far_object_same_trace", "--repeat", "1")
    mt = Mt.start(place, *words, "--out", "out", *_plugins(attack), command="scenario", env=env)
    return _wait(place, mt, attack)


def _campaign(place: Path, attack: Attack, env: Mapping[str, str], ending: ExitStack) -> int:
    asked = {
        **{"bags": [str(attack.bag)], "relations": ["relation.yaml"], "stacks": ["stack.yaml"]},
        **{"transport": "inprocess", "retries": 0},
    }
    (place / "campaign.yaml").write_text(yaml.safe_dump(asked))
    mt = Mt.start(place, "campaign.yaml", "--out", "out", *_plugins(attack), command="campaign", env=env)
    return _wait(place, mt, attack)


def _moral(place: Path, attack: Attack, env: Mapping[str, str], ending: ExitStack) -> int:
    words = ("moral", "--stack", "stack.yaml", "--cases", "1", "--search", "0", "--runs", "8", "--workers", "1")
    mt = Mt.start(place, *words, "--out", "out", *_plugins(attack), command="experiment", env=env)
    return _wait(place, mt, attack)


def _beside(place: Path, domain: int, env: Mapping[str, str], ending: ExitStack, **programs: Sequence[str]) -> None:
    """Start programs in a domain, for as long as the run lasts."""
    for name, words in programs.items():
        argv = (sys.executable, *words)
        with uninterrupted():
            child = Child(Process(name, argv, ros_environment({**os.environ, **env}, domain), place / f"{name}.log"))
        ending.callback(child.stop, 5.0)


def _sensor(attack: Attack) -> tuple[str, ...]:
    return ("-m", "mt_nodes.nodes.replayer", "--ros-args", "-p", f"bag:={attack.bag}", "-p", "loop:=true")


def _live(place: Path, attack: Attack, env: Mapping[str, str], ending: ExitStack) -> int:
    live = ending.enter_context(free_domains(1)).domains[0]
    hosted = ("-m", "mt_nodes.nodes.callable_stack", "--stack", "stack.yaml", "--transforms", "transforms.yaml")
    files = [str(place / word) if word.endswith(".yaml") else word for word in hosted]
    stack = (str(PROGRAMS / "their_stack.py"), attack.program) if attack.program else files
    _beside(place, live, env, ending, sensor=_sensor(attack), vehicle=stack)
    config = {
        **{"mode": "shadow", "stack": "stack.yaml", "relations": ["relation.yaml"], "transforms": "transforms.yaml"},
        **{"live_domain": live, "delay_s": 0.5, "bundles": 40, "duration_s": 20.0},
        **{"segments": {"settle_bundles": 2, "test_bundles": 8}, "use_sim_time": "false"},
        **({"plugins": [str(attack.plugins)]} if attack.plugins else {}),
    }
    (place / "live.yaml").write_text(yaml.safe_dump(config))
    return _wait(place, Mt.start(place, "--config", "live.yaml", "--out", "out", command="live", env=env), attack)


def _inline(place: Path, attack: Attack, env: Mapping[str, str], ending: ExitStack) -> int:
    domain = ending.enter_context(free_domains(1)).domains[0]
    _beside(place, domain, env, ending, sensor=_sensor(attack), operator=(str(PROGRAMS / "operator_panel.py"),))
    signal = {"type": "std_msgs/msg/Bool", "fresh_s": 2.0}
    config = {
        **{"topics": [{"raw": CLOUD_TOPIC, "topic": "/lidar/points"}], "relation": "relation.yaml", "hold_s": 0.08},
        **{"transforms": "transforms.yaml", "permits": [{"topic": "/engaged", "equals": False, **signal}]},
        "dead_man": {"topic": "/dead_man", "equals": True, **signal},
        **({"plugins": [str(attack.plugins)]} if attack.plugins else {}),
    }
    (place / "inline.yaml").write_text(yaml.safe_dump(config))
    words = ("--config", "inline.yaml", "--arm", "--duration", "12", "--out", "out")
    mt = Mt.start(place, *words, command="inline", env={**env, "ROS_DOMAIN_ID": str(domain)})
    return _wait(place, mt, attack)


Start = Callable[[Path, Attack, Mapping[str, str], ExitStack], int]
_STARTS: dict[str, Start] = {
    "replay in process": lambda *given: _replay(*given, "inprocess"),
    "replay over topics": lambda *given: _replay(*given, "ros"),
    "closed loop": _loop,
    "live in shadow": _live,
    "inline": _inline,
    "campaign": _campaign,
    "moral": _moral,
}


def clock_library(place: Path) -> Path:
    """Compile what moves the wall clock of a process.

    Raises:
        SystemExit: there is no C compiler.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("a moved clock needs a C compiler: install one, such as apt-get install gcc")
    made = place / "clock_jump.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", made, PROGRAMS / "clock_jump.c", "-ldl"], check=True)
    return made
