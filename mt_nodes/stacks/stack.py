# SPDX-License-Identifier: Apache-2.0
"""The driving stack under test, described by a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build, param
from mt_nodes.base.yaml_files import read_mapping, refuse_unknown
from mt_nodes.data.output_traits import OutputTraits, Thresholds, read_classes, read_thresholds
from mt_nodes.data.stack_topics import (
    DEFAULT_INPUTS,
    DEFAULT_OUTPUTS,
    DIAGNOSTICS,
    LEADING_ROLES,
    TOLD_TYPES,
    Input,
    OutputTopic,
    ToldTopic,
    read_inputs,
    read_outputs,
    read_topic,
    topics_of,
)
from mt_nodes.stacks.box_conventions import CENTRE, CONVENTIONS, KITTI
from mt_nodes.stacks.network_settings import read_network, with_network
from mt_nodes.stacks.stack_settings import read_camera, read_domains, read_environment, read_reset, with_setting


@dataclass(frozen=True)
class Stack:
    """One stack file. Exactly one of ``callable``, ``command``, ``start: external`` and a network's file starts it."""

    name: str = param("", help="name shown in results")
    summary: str = param("", help="one line for `mt list stacks`")
    callable: str = param("", help="package.module:name of a Python callable; hosted by the package as a node")
    params: dict[str, Any] = param({}, help="keyword arguments when the callable is a class or factory")
    onnx: str = param("", help="file of a network, beside this file; it is the whole stack, and needs mt_nodes[onnx]")
    torchscript: str = param("", help="the same of PyTorch; needs mt_nodes[models]")
    network: dict[str, Any] = param(
        {},
        convert=read_network,
        help="output: what it says, by name; picture or cloud: what it takes; labels, …",
    )
    directory: str = param("", help="where the callable's module may be, beside the directory of work; the file's own")
    points_frame: str = param("", help="frame the points are moved to before a callable sees them; empty: the cloud's")
    command: tuple[str, ...] = param((), help="program and arguments; {arm}, {domain} and {remap} are filled in")
    start: str = param("", choices=("", "external"), help="external: somebody else starts it, in the domains given")
    env: dict[str, str] = param(
        {}, convert=read_environment, help="environment variables for command and callable; not ROS_DOMAIN_ID"
    )
    domain: dict[str, int] = param({}, convert=read_domains, help="fixed ROS domains of the arms; otherwise free ones")
    isolation: str = param(
        "domain", choices=("domain", "remap"), help="remap: both arms in one domain, topics prefixed"
    )
    inputs: dict[str, Input] = param(
        {"lidar": DEFAULT_INPUTS["lidar"]},
        convert=read_inputs,
        help="topic that the stack subscribes, by role; a list of several, the leading one first; topic and type of "
        "what a world tells",
    )
    outputs: dict[str, OutputTopic] = param(
        {"detections": OutputTopic(**DEFAULT_OUTPUTS["detections"])},
        convert=read_outputs,
        help="topic and type that the stack publishes, by role; params of its adapter, or fields: paths in any type; "
        "of control a list of several, which tell parts of it",
    )
    camera: dict[str, Any] = param(
        {},
        convert=read_camera,
        help="the camera that a world has for it: width, height, field_of_view_deg, forward_m, height_m; what is not "
        "said is as behind a windscreen, 1280 by 720 pixels and 70 degrees",
    )
    needs: tuple[str, ...] = param((), help="other topics of the bag that it must get, such as /tf")
    answer: tuple[str, ...] = param(
        (), help="outputs that together are the answer to a bundle; empty: all but diagnostics"
    )
    match: str = param(
        "stamp",
        choices=("stamp", "order", "arrival"),
        help="how an answer finds its input: its stamp, its turn, or (live) when it comes",
    )
    stateless: bool = param(False, help="an answer depends on its own bundle alone: follow-ups are fanned out")
    map_free: bool = param(False, help="no map, localisation or other knowledge of the place decides what is seen")
    full_360: bool = param(False, help="looks all around the ego, not only at a part of it")
    scores: dict[str, Thresholds] = param(
        {},
        convert=read_thresholds,
        help="by output, detections or boxes: from which score on what it sees is demanded (high) and answers (low); "
        "unless said, 0.5 and 0.3 of detections, 0.9 and 0.5 of boxes",
    )
    classes: dict[str, str] = param(
        {},
        convert=read_classes,
        help="what its classes (names or numbers) are called here, {1: car, 2: pedestrian}, '*' all others; or a list "
        "of those it reports, [car]: an added object of another class is not demanded",
    )
    boxes: str = param(
        CENTRE,
        choices=CONVENTIONS,
        help="where a callable's obstacles are said to be: by their middles; by the middles of their bottoms; or as "
        "KITTI has them in a camera's frame, arrays as x y z length height width rotation_y",
    )
    boxes_frame: str = param("", help="the camera's optical frame, for boxes: kitti_camera")
    tracks: bool = param(False, help="obstacles bear the id of their track")
    publishes_when_empty: bool = param(True, help="says so when it sees nothing; otherwise silence means nothing")
    reset: str = param(
        "restart",
        convert=read_reset,
        help="how it forgets: restart, none for a stateless one, or (external) its service, std_srvs Trigger or Empty",
    )
    deadline_s: float = param(10.0, low=0.01, high=600.0, unit="s", help="wall time within which an answer is expected")
    ready_timeout_s: float = param(60.0, low=0.1, high=3600.0, unit="s", help="time to subscribe and advertise")
    stop_timeout_s: float = param(5.0, low=0.1, high=60.0, unit="s", help="time to end after SIGINT, and after SIGTERM")
    sync_s: float = param(
        0.02,
        low=0.0,
        high=1.0,
        unit="s",
        help="how far apart the inputs of one instant may be for a callable of several, and the topics of one command",
    )
    clock_step_s: float = param(0.01, low=0.0001, high=1.0, unit="s", help="largest step of /clock")
    nodes: tuple[str, ...] = param((), help="full names of the stack's nodes; needed when it is external")
    allow_nodes: tuple[str, ...] = param((), help="other nodes that may be in an arm's domain")

    @property
    def traits(self) -> OutputTraits:
        """What is known of its detections and boxes."""
        return OutputTraits(self.scores, tuple(dict.fromkeys(self.classes.values())))

    @property
    def reading(self) -> dict[str, Any]:
        """How what it publishes is read: see :class:`~mt_nodes.nodes.output_listener.OutputListener`."""
        # Of a callable the host has renamed the classes.
        return {"within_ns": self.sync_ns, "classes": {} if self.callable else self.classes}

    @property
    def answers(self) -> tuple[str, ...]:
        """Roles that together are the answer."""
        return self.answer or tuple(role for role in self.outputs if role != DIAGNOSTICS)

    @property
    def sync_ns(self) -> int:
        """``sync_s`` in whole nanoseconds."""
        return round(self.sync_s * 1e9)

    @property
    def external(self) -> bool:
        """Whether somebody else starts and stops it."""
        return self.start == "external"

    @property
    def forgets(self) -> bool:
        """Whether we can make it forget: by starting it anew, or by the service that its file names."""
        return not self.external or self.reset.startswith("/")

    @property
    def topics(self) -> dict[str, tuple[str, ...]]:
        """Topics that the stack subscribes, by role, in the order of its file."""
        return {role: topics_of(given) for role, given in self.inputs.items()}

    @property
    def told(self) -> dict[str, ToldTopic]:
        """What only a world tells it, by role."""
        return {role: given for role, given in self.inputs.items() if isinstance(given, ToldTopic)}

    @property
    def said(self) -> tuple[OutputTopic, ...]:
        """Every topic that it says something on."""
        return tuple(row for leading in self.outputs.values() for row in leading.rows)

    @property
    def output_topics(self) -> dict[str, str]:
        """Topic by role of output, the leading one where several tell of one command."""
        return {role: output.topic for role, output in self.outputs.items()}

    @property
    def message_types(self) -> dict[str, str]:
        """Topic -> message type, of what it says, and of the transforms that it must get."""
        transforms = {topic: "tf2_msgs/msg/TFMessage" for topic in ("/tf", "/tf_static") if topic in self.needs}
        return transforms | {row.topic: row.type for row in self.said}

    @property
    def joins(self) -> bool:
        """Whether it takes more than one topic."""
        return len(self.inputs) > 1 or any(len(topics) > 1 for topics in self.topics.values())

    @property
    def leading_input(self) -> str:
        """Role of what a bundle follows: a sensor, or the objects of a world."""
        return next(role for role in LEADING_ROLES if role in self.inputs)

    @property
    def fault_kinds(self) -> tuple[str, ...]:
        """Kinds of faults that it takes when it is one of the package's own; see ``reference.faults.base.Fault``."""
        if {"lidar", "camera"} <= set(self.inputs):
            return ("lidar", "camera", "fusion")
        if self.told:
            return ("planner",) if self.leading_input in self.told else (self.leading_input, "planner")
        drives = self.leading_input == "lidar" and "control" in self.outputs
        return (self.leading_input, "driver") if drives else (self.leading_input,)

    @property
    def leading_topic(self) -> str:
        """Topic of the sensor that a bundle follows, the first of its role."""
        return self.topics[self.leading_input][0]


def load_stack(name: str, settings: Mapping[str, Any] | None = None) -> Stack:
    """Read a shipped stack by name, or the user's own file by path; a Python file is a driver of the closed loop.

    Args:
        name: of either, or ``file.py:callable`` (``drive`` unless named).
        settings: what is to stand in place of what the file says, by ``key`` or ``key.part``.

    Raises:
        UsageError: naming the file, the key, what was got and what was expected.
    """
    path, rows = _driver_file(name) or _stack_file(name)
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


def _driver_file(name: str) -> tuple[Path, dict[str, Any]] | None:
    """Return what a Python file as a stack comes to, ``file.py`` or ``file.py:name``: a driver of the closed loop.

    Raises:
        UsageError: there is no such file, or it is no module's name.
    """
    file, _, attribute = name.partition(":")
    path = Path(file)
    if path.suffix != ".py":
        return None
    if not path.is_file():
        raise UsageError(f"no file {path}")
    if not path.stem.isidentifier():
        raise UsageError(f"{path}: got '{path.stem}', expected letters, digits and _, for it is imported as a module")
    module = {"callable": f"{path.stem}:{attribute or 'drive'}", "directory": str(path.parent.resolve())}
    return path, {**module, "inputs": dict.fromkeys(TOLD_TYPES), "outputs": {"control": None}}


def refuse_told(stack: Stack) -> None:
    """Refuse a stack that takes what nothing but a world tells.

    Raises:
        UsageError: naming what that is.
    """
    if stack.told:
        raise UsageError(
            f"stack '{stack.name}' takes {', '.join(stack.told)}, which a world tells and neither a bag nor a live "
            "system: drive it with `mt scenario`, or take out these inputs"
        )


def _consistent(stack: Stack, where: str) -> None:
    ways = [bool(stack.callable), bool(stack.command), stack.external]
    if sum(ways) != 1:
        raise UsageError(
            f"{where}: got {sum(ways)} ways to start, expected one of callable, command, start: external, "
            "onnx, torchscript"
        )
    if stack.callable and ":" not in stack.callable:
        raise UsageError(f"{where}: callable: got {stack.callable!r}, expected package.module:name")
    if stack.boxes != CENTRE and not stack.callable:
        raise UsageError(
            f"{where}: boxes: {stack.boxes} is for a callable; of messages the adapter says where boxes are"
        )
    if (stack.boxes == KITTI) != bool(stack.boxes_frame):
        raise UsageError(
            f"{where}: boxes_frame: got '{stack.boxes_frame}' with boxes: {stack.boxes}; {KITTI} alone needs it"
        )
    if stack.callable and any(row.beside for row in stack.outputs.values()):
        raise UsageError(f"{where}: outputs.control: got several topics; a callable says its command on one")
    if stack.callable and any(row.fields for row in stack.outputs.values()):
        raise UsageError(f"{where}: outputs: fields say how a message is read; a callable needs types that are written")
    if not set(LEADING_ROLES) & set(stack.inputs):
        raise UsageError(
            f"{where}: inputs: got {', '.join(stack.inputs)}, expected lidar or camera among them, or objects"
        )
    if stack.external and not (stack.domain and stack.nodes):
        raise UsageError(
            f"{where}: an external stack needs domain: {{source: …, followup: …}} and nodes: [/its, /nodes]"
        )
    if stack.domain and "source" not in stack.domain:
        raise UsageError(f"{where}: domain: got {stack.domain}, expected one for source (and one for followup)")
    for i, topic in enumerate(stack.needs):
        read_topic(topic, f"{where}: needs[{i}]")
    refuse_unknown(dict.fromkeys(stack.answer), stack.outputs, f"{where}: answer")
    if DIAGNOSTICS in stack.answer or not stack.answers:
        raise UsageError(f"{where}: answer: diagnostics answer no input; expected another of the outputs")
    if DIAGNOSTICS in stack.outputs and stack.outputs[DIAGNOSTICS].fields:
        raise UsageError(f"{where}: outputs.diagnostics: got fields; only diagnostic_msgs/msg/DiagnosticArray is read")
    if not stack.stateless and stack.reset == "none":
        raise UsageError(f"{where}: reset: none is only for a stateless stack; write reset: restart")
    if stack.reset.startswith("/") and not stack.external:
        raise UsageError(
            f"{where}: reset: got service {stack.reset}, which is for start: external; write reset: restart"
        )
    if stack.isolation == "remap" and stack.command and not any("{remap}" in part for part in stack.command):
        raise UsageError(f"{where}: isolation: remap needs {{remap}} in command, where the remap rules go")
