# SPDX-License-Identifier: Apache-2.0
"""The driving stack under test, described by a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build, param
from mt_nodes.base.process_limits import ProcessLimits, read_limits
from mt_nodes.base.yaml_files import read_mapping, refuse_unknown
from mt_nodes.data.detector_coverage import DetectorCoverage, read_coverage
from mt_nodes.data.intensity.intensity_conventions import read_intensities
from mt_nodes.data.output_traits import OutputTraits, Thresholds, read_classes, read_thresholds
from mt_nodes.data.stack_topics import (
    DEFAULT_INPUTS,
    DEFAULT_OUTPUTS,
    DIAGNOSTICS,
    LEADING_ROLES,
    PERCEPTION,
    Input,
    OutputTopic,
    WorldTopic,
    read_inputs,
    read_outputs,
    read_topic,
    topics_of,
)
from mt_nodes.stacks.box_conventions import CENTRE, CONVENTIONS, KITTI
from mt_nodes.stacks.driver_file import driver_file
from mt_nodes.stacks.network_settings import read_network, with_network
from mt_nodes.stacks.stack_settings import read_camera, read_domains, read_environment, read_reset, with_setting

#: The reference stack that is hosted as five nodes.
PIPELINE = "mt_nodes.stacks.reference.node_pipeline:Pipeline"


@dataclass(frozen=True)
class Stack:
    """A stack file. Exactly one of ``callable``, ``command``, ``start: external`` and a network's file starts it."""

    name: str = param("", help="name in results")
    summary: str = param("", help="one line for `mt list stacks`")
    callable: str = param("", help="package.module:name of a Python callable, which a node of this package hosts")
    params: dict[str, Any] = param({}, help="keyword arguments for a callable that is a class or factory")
    onnx: str = param("", help="file of a network, relative to this file, as the whole stack; needs mt_nodes[onnx]")
    torchscript: str = param("", help="the same for PyTorch; needs mt_nodes[models]")
    network: dict[str, Any] = param(
        {}, convert=read_network, help="output: name of its output format; picture or cloud: its input; labels, …"
    )
    directory: str = param(
        "", help="folder of the callable's module (default that of this file), besides the working directory"
    )
    points_frame: str = param("", help="frame to which points are transformed for a callable; empty: the cloud's")
    command: tuple[str, ...] = param((), help="program and arguments; {arm}, {domain} and {remap} are filled in")
    start: str = param("", choices=("", "external"), help="external: you start it yourself, in the domains of domain")
    env: dict[str, str] = param(
        {}, convert=read_environment, help="environment variables for command and callable, except ROS_DOMAIN_ID"
    )
    domain: dict[str, int] = param({}, convert=read_domains, help="fixed ROS domains of the arms; default: free ones")
    isolation: str = param(
        "domain", choices=("domain", "remap"), help="remap: both arms in one domain, with a prefix on their topics"
    )
    inputs: dict[str, Input] = param(
        {"lidar": DEFAULT_INPUTS["lidar"]},
        convert=read_inputs,
        help="subscribed topics by role; a list for several, the leading one first; topic and type for inputs of a "
        "simulated world",
    )
    outputs: dict[str, OutputTopic] = param(
        {"detections": OutputTopic(**DEFAULT_OUTPUTS["detections"])},
        convert=read_outputs,
        help="published topics and types by role; params of the adapter, or fields: paths in any message type; for "
        "control a list of topics with parts of it",
    )
    camera: dict[str, Any] = param(
        {},
        convert=read_camera,
        help="simulated camera: width, height, field_of_view_deg, forward_m, height_m; default: behind a windscreen, "
        "1280 by 720 pixels and 70 degrees",
    )
    intensities: dict[str, Any] = param(
        {},
        convert=read_intensities,
        help="intensity convention by LiDAR topic, such as {/points: ouster_signal}, or by field of it; with @ and the "
        "value of a white surface where that is no constant; default: recognised from the data",
    )
    needs: tuple[str, ...] = param((), help="other topics of the bag that it needs, such as /tf")
    answer: tuple[str, ...] = param((), help="outputs that form the answer to a bundle; empty: all but diagnostics")
    match: str = param(
        "stamp",
        choices=("stamp", "order", "arrival"),
        help="how an answer is matched to its input: by stamp, by order, or (live) by arrival",
    )
    stateless: bool = param(False, help="an answer depends on its own bundle alone: several follow-ups share a source")
    map_free: bool = param(False, help="detections use no map, localisation or other knowledge of the place")
    full_360: bool = param(False, help="detects all around the ego vehicle, not only in a part of it")
    scores: dict[str, Thresholds] = param(
        {},
        convert=read_thresholds,
        help="score thresholds of outputs with scores: source objects from high on are demanded, follow-up objects "
        "from low on match them; default 0.9 and 0.5 for boxes, 0.5 and 0.3 for others",
    )
    classes: dict[str, str] = param(
        {},
        convert=read_classes,
        help="names of its classes (names or numbers), {1: car, 2: pedestrian}, '*' all others; or a list of those "
        "that it reports, [car]: an added object of another class is not demanded",
    )
    coverage: dict[str, DetectorCoverage] = param(
        {},
        convert=read_coverage,
        help="range_m, field_of_view_deg, recall, precision by output: when finding nothing means that all is absent",
    )
    boxes: str = param(
        CENTRE,
        choices=CONVENTIONS,
        help="position of a callable's boxes: their centre; the centre of their bottom; or KITTI's in a camera frame, "
        "arrays as x y z length height width rotation_y",
    )
    boxes_frame: str = param("", help="the camera's optical frame, for boxes: kitti_camera")
    tracks: bool = param(False, help="detections have track ids")
    publishes_when_empty: bool = param(True, help="publishes an empty message if it detects nothing; false: is silent")
    reset: str = param(
        "restart",
        convert=read_reset,
        help="how its state is reset: restart, none if stateless, or (external) its service, std_srvs Trigger or Empty",
    )
    deadline_s: float = param(10.0, low=0.01, high=600.0, unit="s", help="wall time limit for an answer")
    ready_timeout_s: float = param(
        60.0, low=0.1, high=3600.0, unit="s", help="time limit for it to subscribe and advertise"
    )
    stop_timeout_s: float = param(
        5.0, low=0.1, high=60.0, unit="s", help="time limit to end after SIGINT, and after SIGTERM"
    )
    sync_s: float = param(
        0.02,
        low=0.0,
        high=1.0,
        unit="s",
        help="largest time between the inputs of one instant of a callable, and between the topics of one command",
    )
    clock_step_s: float = param(0.01, low=0.0001, high=1.0, unit="s", help="largest step of /clock")
    limits: ProcessLimits = param(
        ProcessLimits(),
        convert=read_limits,
        help="what all its processes together may take, in process those of both arms: processes, memory_mb, "
        "open_files, log_mb, niceness, cpu_weight; reaching one ends the run",
    )
    nodes: tuple[str, ...] = param((), help="full names of the stack's nodes; needed if it is external")
    allow_nodes: tuple[str, ...] = param((), help="other nodes that may be in an arm's domain")

    @property
    def traits(self) -> OutputTraits:
        """Thresholds, classes and coverage of its detections and boxes."""
        return OutputTraits(self.scores, tuple(dict.fromkeys(self.classes.values())), self.coverage)

    @property
    def reading(self) -> dict[str, Any]:
        """How its outputs are read: see :class:`~mt_nodes.nodes.output_listener.OutputListener`."""
        # The host of a callable has renamed the classes already.
        return {"within_ns": self.sync_ns, "classes": {} if self.callable else self.classes}

    @property
    def answers(self) -> tuple[str, ...]:
        """Roles of the outputs that form the answer."""
        return self.answer or tuple(role for role in self.outputs if role != DIAGNOSTICS)

    @property
    def sync_ns(self) -> int:
        """``sync_s`` in whole nanoseconds."""
        return round(self.sync_s * 1e9)

    @property
    def external(self) -> bool:
        """Whether the user starts and stops it."""
        return self.start == "external"

    @property
    def forgets(self) -> bool:
        """Whether its state can be reset: by a restart, or by the service of its file."""
        return not self.external or self.reset.startswith("/")

    @property
    def topics(self) -> dict[str, tuple[str, ...]]:
        """Topics that the stack subscribes, by role, in the order of its file."""
        return {role: topics_of(given) for role, given in self.inputs.items()}

    @property
    def world_inputs(self) -> dict[str, WorldTopic]:
        """Its inputs that only a simulated world has, by role."""
        return {role: given for role, given in self.inputs.items() if isinstance(given, WorldTopic)}

    @property
    def published(self) -> tuple[OutputTopic, ...]:
        """All topics that it publishes."""
        return tuple(row for leading in self.outputs.values() for row in leading.rows)

    @property
    def output_topics(self) -> dict[str, str]:
        """Topic by role of output, the leading one of several with one command."""
        return {role: output.topic for role, output in self.outputs.items()}

    @property
    def message_types(self) -> dict[str, str]:
        """Topic -> message type, of its outputs, and of the transforms that it needs."""
        transforms = {topic: "tf2_msgs/msg/TFMessage" for topic in ("/tf", "/tf_static") if topic in self.needs}
        return transforms | {row.topic: row.type for row in self.published}

    @property
    def joins(self) -> bool:
        """Whether it takes more than one topic."""
        return len(self.inputs) > 1 or any(len(topics) > 1 for topics in self.topics.values())

    @property
    def leading_input(self) -> str:
        """Role of the input that bundles follow: a sensor, or the objects of a world."""
        return next(role for role in LEADING_ROLES if role in self.inputs)

    @property
    def fault_kinds(self) -> tuple[str, ...]:
        """Kinds of faults that it takes if it is a reference stack; see ``reference.faults.base.Fault``."""
        if self.callable == PIPELINE:
            return ("pipeline",)
        if PERCEPTION & set(self.outputs):
            return (self.leading_input, "perception")
        if "lidar" in self.inputs and (beside := {"camera", "radar"} & set(self.inputs)):
            return ("lidar", "camera", "fusion") if "camera" in beside else ("lidar", "radar")
        if self.world_inputs:
            return ("planner",) if self.leading_input in self.world_inputs else (self.leading_input, "planner")
        kinds = ("driver",) if self.leading_input == "lidar" and "control" in self.outputs else ()
        return (self.leading_input, *kinds)

    @property
    def leading_topic(self) -> str:
        """Topic of the sensor that bundles follow, the first of its role."""
        return self.topics[self.leading_input][0]

    @property
    def sensor_topics(self) -> list[str]:
        """Return the topics that sensors publish for it, the leading one first."""
        return list(dict.fromkeys((self.leading_topic, *(t for topics in self.topics.values() for t in topics))))


def load_stack(name: str, settings: Mapping[str, Any] | None = None) -> Stack:
    """Read a shipped stack by name, or the user's own file by path; a Python file is a driver of the closed loop.

    Raises UsageError: naming the file, the key, what was got and what was expected.
    ``name``: of either, or ``file.py:callable`` (default ``drive``). ``settings``: values that override those of the
    file, by ``key`` or ``key.part``.
    """
    path, rows = driver_file(name) or _stack_file(name)
    where = str(path)
    for key, value in (settings or {}).items():
        rows, where = with_setting(rows, key.split("."), value, f"--set {key}"), f"{path} (with --set)"
    rows = with_network(rows, path.parent, where)
    stack = build(Stack, {"name": path.stem, **rows}, where)
    _consistent(stack, where)
    return stack


def _stack_file(name: str) -> tuple[Path, dict[str, Any]]:
    path = resources.find("stacks", name)
    users = {} if path.name != Path(name).name else {"directory": str(path.parent.resolve())}
    return path, {**users, **read_mapping(path)}


def refuse_world_inputs(stack: Stack) -> None:
    """Refuse a stack with inputs that only a simulated world has. Raises UsageError: naming these inputs."""
    if stack.world_inputs:
        raise UsageError(
            f"stack '{stack.name}' takes {', '.join(stack.world_inputs)}, which only a simulated world has, not a bag "
            "or a live system: drive it with `mt scenario`, or remove these inputs"
        )


def _consistent(stack: Stack, where: str) -> None:
    for i, topic in enumerate(stack.needs):
        read_topic(topic, f"{where}: needs[{i}]")
    refuse_unknown(dict.fromkeys(stack.answer), stack.outputs, f"{where}: answer")
    for contradictory, text in _contradictions(stack):
        if contradictory:
            raise UsageError(f"{where}: {text}")


def _contradictions(stack: Stack) -> Iterator[tuple[bool, str]]:
    """Yield whether settings contradict each other, and what to write instead."""
    ways = sum((bool(stack.callable), bool(stack.command), stack.external))
    text = f"got {ways} ways to start, expected one of callable, command, start: external, onnx, torchscript"
    yield ways != 1, text
    called, outputs = bool(stack.callable), stack.outputs.values()
    yield called and ":" not in stack.callable, f"callable: got {stack.callable!r}, expected package.module:name"
    text = f"boxes: {stack.boxes} is for a callable; for messages the adapter has the convention"
    yield stack.boxes != CENTRE and not called, text
    text = f"boxes_frame: got '{stack.boxes_frame}' with boxes: {stack.boxes}; only {KITTI} takes it, and needs it"
    yield (stack.boxes == KITTI) != bool(stack.boxes_frame), text
    yield called and any(row.beside for row in outputs), "outputs.control: got several topics; a callable has one"
    text = "outputs: got fields, which are for reading messages; a callable needs types that can be written"
    yield called and any(row.fields for row in outputs), text
    text = f"inputs: got {', '.join(stack.inputs)}, expected lidar, camera or radar among them, or objects"
    yield not set(LEADING_ROLES) & set(stack.inputs), text
    text = "an external stack needs domain: {source: …, followup: …} and nodes: [/its, /nodes]"
    yield stack.external and not (stack.domain and stack.nodes), text
    text = f"domain: got {stack.domain}, expected one for source (and one for followup)"
    yield "source" not in (stack.domain or ("source",)), text
    text = "answer: diagnostics answer no input; expected another of the outputs"
    yield DIAGNOSTICS in stack.answer or not stack.answers, text
    diagnostics = stack.outputs.get(DIAGNOSTICS)
    text = "outputs.diagnostics: got fields; only diagnostic_msgs/msg/DiagnosticArray can be read"
    yield bool(diagnostics and diagnostics.fields), text
    text = "reset: none is only for a stateless stack; write reset: restart"
    yield not stack.stateless and stack.reset == "none", text
    text = f"reset: got service {stack.reset}, which is for start: external; write reset: restart"
    yield stack.reset.startswith("/") and not stack.external, text
    text = "isolation: remap needs {remap} in command, where the remap rules go"
    yield stack.isolation == "remap" and bool(stack.command) and "{remap}" not in " ".join(stack.command), text
