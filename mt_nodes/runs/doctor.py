# SPDX-License-Identifier: Apache-2.0
"""Looks at this machine and says what is wrong with it and what to type. Imports no ROS: a child process does that."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mt_nodes.base import environment
from mt_nodes.base.child_probe import ask_child, last_line
from mt_nodes.base.control_group import Delegation, find_delegation
from mt_nodes.base.errors import MtError, UsageError
from mt_nodes.base.message_packages import is_missing, remedy
from mt_nodes.stacks.stack import load_stack

Level = Literal["ok", "info", "warn", "error"]

MIB = 2**20
#: Shared memory of one participant with the shipped profile.
SEGMENT_BYTES = 64 * MIB
#: Participants of a default run: the suite's three contexts and two stacks.
PARTICIPANTS = 5
REQUIRED = ("numpy", "scipy", "shapely", "yaml", "jinja2", "rich", "matplotlib", "open3d", "rclpy")
#: Namespace packages have no file of their own; a module inside tells that they are there.
REQUIRED_INSIDE = {"rosbags": "rosbags.highlevel.anyreader"}
#: Module -> what is missing without it, and the Debian package that has it.
OPTIONAL = {
    "sensor_msgs_py": ("an equal module of our own is used", "ros-jazzy-sensor-msgs-py"),
    "tf2_msgs": ("no live /tf; transforms come from the bag or a YAML file", "ros-jazzy-tf2-msgs"),
    "launch": ("no ros2 launch; mt starts the same processes", "ros-jazzy-launch"),
    "launch_ros": ("no ros2 launch; mt starts the same processes", "ros-jazzy-launch-ros"),
}
_LEVELS: tuple[Level, ...] = ("ok", "info", "warn", "error")
_SLOW_MS = 100.0


@dataclass(frozen=True)
class Finding:
    """One thing looked at: ``fix`` is what to type or do, empty when there is nothing to do."""

    level: Level
    title: str
    detail: str
    fix: str = ""


def diagnose(base: Mapping[str, str] | None = None, probe: bool = True, stack: str = "") -> list[Finding]:
    """Look at everything a run depends on; prints nothing.

    Raises UsageError: there is no such stack, or its file is wrong.
    ``base``: the environment looked at, by default that of this process. ``probe``: also start two ROS nodes and send 2
    MB messages between them (some seconds). ``stack``: name or file of a stack whose message types are looked for, too.
    """
    env = os.environ if base is None else base
    findings = [
        check_python(),
        *check_packages(),
        check_profile(env),
        check_discovery(env),
        check_domain(env),
        check_malloc(env),
        check_shared_memory(_free_bytes(environment.SHARED_MEMORY)),
        check_leftovers(environment.leftovers()),
        check_limits(find_delegation()),
        check_clock(time.time(), time.get_clock_info("monotonic").resolution),
        *([check_stack(stack)] if stack else []),
    ]
    return [*findings, *check_open3d(), *check_transport(env)] if probe else findings


def worst(findings: Iterable[Finding]) -> Level:
    """Return the gravest level; ``error`` is what an exit code should tell of."""
    return max((f.level for f in findings), key=_LEVELS.index, default="ok")


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> Finding:
    """Open3D has wheels for 3.10 to 3.12."""
    got = ".".join(map(str, version))
    if (3, 10) <= version <= (3, 12):
        return Finding("ok", "Python", got)
    return Finding("error", "Python", f"got {got}, expected 3.10 to 3.12", "make clean && make PYTHON=python3.12 demo")


def check_packages() -> Iterator[Finding]:
    """One finding for what must be there, one for each optional package that is not."""
    inside = {**dict.fromkeys(REQUIRED), **REQUIRED_INSIDE}
    missing = [name for name, module in inside.items() if not _present(module or name)]
    if missing:
        fix = "make demo (or, beside a ROS 2 installation: rosdep install --from-paths . -y)"
        yield Finding("error", "packages", f"missing: {', '.join(missing)}", fix)
    else:
        yield Finding("ok", "packages", f"{len(inside)} of {len(inside)} present")
    for name, (consequence, package) in OPTIONAL.items():
        if not _present(name):
            yield Finding("info", name, f"not here: {consequence}", f"apt-get install {package}")


def check_stack(name: str) -> Finding:
    """The message types of what a stack says, and of transforms that it needs, must be installed."""
    stack = load_stack(name)
    types = sorted(set(stack.message_types.values()))
    title, absent = f"stack '{stack.name}'", [one for one in types if is_missing(one)]
    if absent:
        return Finding("error", title, f"message types are not installed here: {', '.join(absent)}", remedy(absent))
    return Finding("ok", title, f"its message types are installed: {', '.join(types)}")


def check_profile(env: Mapping[str, str]) -> Finding:
    """The DDS profile in force must carry large messages through shared memory."""
    title, rmw = "DDS profile", env.get("RMW_IMPLEMENTATION", "") or "rmw_fastrtps_cpp"
    if not rmw.startswith("rmw_fastrtps"):
        return Finding("warn", title, f"RMW_IMPLEMENTATION={rmw}: the shipped profile is for Fast DDS and not used")
    name = next((n for n in environment.PROFILE_VARIABLES if env.get(n)), None)
    if name is None:
        return Finding("ok", title, f"mt uses the shipped one, {environment.profile_path()}")
    fix = f"unset {name}"
    try:
        segment = _segment_bytes(Path(env[name]))
    except (OSError, ET.ParseError, ValueError) as error:
        return Finding("error", title, f"{name}={env[name]} cannot be used: {error}", fix)
    if segment < SEGMENT_BYTES:
        small = (
            f"{name}={env[name]} has {segment / MIB:g} MiB of shared memory a participant, expected 64: clouds get lost"
        )
        return Finding("warn", title, small, fix)
    return Finding("ok", title, f"{name}={env[name]}, {segment / MIB:g} MiB of shared memory a participant")


def check_discovery(env: Mapping[str, str]) -> Finding:
    """Test traffic should stay on this machine."""
    title = "discovery range"
    if env.get("ROS_LOCALHOST_ONLY"):
        return Finding("warn", title, "ROS_LOCALHOST_ONLY is set; ROS 2 has deprecated it", "unset ROS_LOCALHOST_ONLY")
    value = env.get(environment.DISCOVERY_VARIABLE) or "LOCALHOST"
    if value == "LOCALHOST":
        return Finding("ok", title, "LOCALHOST: test traffic stays on this machine")
    fix = f"unset {environment.DISCOVERY_VARIABLE}"
    return Finding("warn", title, f"{environment.DISCOVERY_VARIABLE}={value}: test traffic may leave this machine", fix)


def check_domain(env: Mapping[str, str]) -> Finding:
    """The user's own domain is a number, and runs find others beside it."""
    title = "ROS domains"
    try:
        own = environment.user_domain(env)
        with environment.free_domains(PARTICIPANTS, exclude={own}) as lease:
            free = ", ".join(map(str, sorted(lease.domains)))
    except UsageError as error:
        return Finding("error", title, str(error), "unset ROS_DOMAIN_ID")
    except MtError as error:
        return Finding("error", title, str(error))
    if own > environment.DOMAINS[-1]:
        detail = (
            f"ROS_DOMAIN_ID={own}: above {environment.DOMAINS[-1]} its ports are those that Linux hands out to anybody"
        )
        return Finding("warn", title, detail, "export ROS_DOMAIN_ID=<0 to 101>")
    return Finding("ok", title, f"yours is {own}; free for arms: {free} and others")


def check_malloc(env: Mapping[str, str]) -> Finding:
    """Memory settings that halve the latency of large messages."""
    other = {n: env[n] for n, value in environment.MALLOC_SETTINGS.items() if env.get(n) not in (None, "", value)}
    if not other:
        return Finding("ok", "memory settings", "mt sets " + ", ".join(environment.MALLOC_SETTINGS))
    listed = ", ".join(f"{n}={value}" for n, value in other.items())
    return Finding(
        "info", "memory settings", f"yours stay: {listed}; latency may be higher", f"unset {' '.join(other)}"
    )


def check_shared_memory(free_bytes: int) -> Finding:
    """``/dev/shm`` must hold a segment of every participant, or Fast DDS falls back to UDP without saying so."""
    need = PARTICIPANTS * SEGMENT_BYTES
    detail = (
        f"/dev/shm has {free_bytes / MIB:.0f} MiB free, a default run needs {PARTICIPANTS} x 64 = {need // MIB} MiB"
    )
    if free_bytes >= need:
        return Finding("ok", "shared memory", detail)
    fix = "mount -o remount,size=2G /dev/shm (in a container: docker run --shm-size=2g or --ipc=host)"
    return Finding("error", "shared memory", detail, fix)


def check_leftovers(segments: list[Path]) -> Finding:
    """Killed processes leave their segments behind."""
    if not segments:
        return Finding("ok", "leftovers", "no shared memory of killed runs")
    size = sum(path.stat().st_size for path in segments if path.exists())
    detail = f"{len(segments)} segments, {size / MIB:.0f} MiB of killed runs in /dev/shm; the next run removes them"
    return Finding("warn", "leftovers", detail, "mt doctor --clean")


def check_limits(found: Delegation) -> Finding:
    """What enforces ``limits`` of a stack file: control groups at once, resource limits and a watch a second late."""
    if found.directory is None:
        fix = f"run mt in a group of its own: {found.remedy}" if found.remedy else ""
        return Finding("info", "limits of stacks", str(found), fix)
    return Finding("ok", "limits of stacks", str(found))


def check_clock(now_s: float, resolution_s: float) -> Finding:
    """Stamps and latencies need a set wall clock and a fine monotonic one.

    ``now_s``: wall time, seconds since 1970. ``resolution_s``: of the monotonic clock.
    """
    if now_s < 1.7e9:
        date = time.strftime("%Y-%m-%d", time.gmtime(now_s))
        return Finding("error", "clocks", f"wall clock says {date}: not set", "timedatectl set-ntp true")
    if resolution_s > 1e-5:
        return Finding("warn", "clocks", f"monotonic clock ticks every {resolution_s * 1e3:g} ms: latencies are coarse")
    return Finding("ok", "clocks", f"wall clock set, monotonic clock ticks every {resolution_s * 1e9:g} ns")


def check_open3d() -> Iterator[Finding]:
    """Import Open3D in a child: a missing system library shows only then."""
    if not _present("open3d"):
        return
    done = subprocess.run(
        [sys.executable, "-c", "import open3d; print(open3d.__version__)"], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        yield Finding("ok", "Open3D", done.stdout.strip())
    else:
        yield Finding("error", "Open3D", f"does not import: {last_line(done.stderr)}", "scripts/system_packages.sh")


def check_transport(env: Mapping[str, str]) -> Iterator[Finding]:
    """Send large messages between two processes with the settings of a run."""
    if not _present("rclpy"):
        return
    try:
        yield from judge_transport(_probe(env))
    except (MtError, OSError) as error:
        yield Finding("error", "transport", f"the probe failed: {error}", "python -m mt_nodes.nodes.doctor_probe")


def judge_transport(result: Mapping[str, Any]) -> Iterator[Finding]:
    """Judge what the probe saw: ``rmw``, ``segment_bytes``, ``bytes`` of a message, ``sent``, ``round_trips_ms``."""
    yield Finding("ok", "rclpy", f"starts a node, with {result['rmw']}")
    if str(result["rmw"]).startswith("rmw_fastrtps"):
        yield _judge_segment(result["segment_bytes"])
    trips = sorted(result["round_trips_ms"])
    size = f"{result['bytes'] / 1e6:g} MB"
    if len(trips) < result["sent"]:
        yield Finding(
            "error", "transport", f"{len(trips)} of {result['sent']} messages of {size} came back", "mt doctor -v"
        )
        return
    level: Level = "warn" if trips[len(trips) // 2] > _SLOW_MS else "ok"
    middle = f"{len(trips)} of {len(trips)} messages of {size} came back, median {trips[len(trips) // 2]:.1f} ms"
    yield Finding(level, "transport", middle, "end other programs that load this machine" if level == "warn" else "")


def _judge_segment(size: int) -> Finding:
    title, fix = "shared memory in use", "see the findings on the DDS profile and /dev/shm; in a container --ipc=host"
    if size >= SEGMENT_BYTES:
        return Finding("ok", title, f"{size / MIB:.0f} MiB a participant")
    if size:
        return Finding("warn", title, f"only {size / MIB:.1f} MiB a participant, expected 64: clouds may get lost", fix)
    return Finding("error", title, "none: Fast DDS has fallen back to UDP", fix)


def _probe(env: Mapping[str, str]) -> dict[str, Any]:
    with environment.free_domains(1) as lease:
        return ask_child("mt_nodes.nodes.doctor_probe", environment.ros_environment(env, lease.domains[0]))


def _present(module: str) -> bool:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # of the package around it
        return False
    return spec is not None and spec.origin is not None  # a mere directory of that name has no origin


def _free_bytes(directory: Path) -> int:
    return shutil.disk_usage(directory).free if directory.is_dir() else 0


def _segment_bytes(profile: Path) -> int:
    """Return the segment of a profile's shared-memory transport in bytes; 512 KiB, the default, when it sets none."""
    for transport in ET.parse(profile).iter():
        parts = {part.tag.rpartition("}")[2]: (part.text or "").strip() for part in transport}
        if parts.get("type") == "SHM":
            return int(parts.get("segment_size", 512 * 1024))
    return 512 * 1024
