# SPDX-License-Identifier: Apache-2.0
"""What every node subscribes to and publishes, its parameters and an example: for ``--help`` and docs/nodes.md.

A test starts the nodes and compares these rows with the ROS graph.
"""

from __future__ import annotations

from dataclasses import dataclass

from rclpy.qos import QoSProfile

from mt_nodes.data.cdr import codec
from mt_nodes.data.ego.published_motion import ODOMETRY_TYPE
from mt_nodes.data.stack_topics import DEFAULT_INPUTS, DEFAULT_OUTPUTS, WORLD_TYPES
from mt_nodes.nodes import clock_echo, control, live_view, qos
from mt_nodes.nodes.convert import SENSOR_TYPES
from mt_nodes.nodes.monitor import MonitorParameters
from mt_nodes.nodes.mutator import MutatorParameters
from mt_nodes.nodes.replayer import ReplayerParameters
from mt_nodes.nodes.simulator import SimulatorParameters

CLOUD = SENSOR_TYPES["lidar"]
TEXT = "std_msgs/msg/String"
OUTPUTS = DEFAULT_OUTPUTS["detections"]


@dataclass(frozen=True)
class Endpoint:
    """One row: ``subscribes`` or ``publishes``, topic, type, quality of service, and what it is for."""

    does: str
    topic: str
    type: str
    profile: QoSProfile
    about: str


@dataclass(frozen=True)
class Interface:
    """One executable: what it is, its parameters (a dataclass, or None), its endpoints with default parameters.

    ``example`` is what to type.
    """

    about: str
    parameters: type | None
    endpoints: tuple[Endpoint, ...]
    example: str


def _type_name(message: type) -> str:
    return f"{message.__module__.split('.')[0]}/msg/{message.__name__}"


def _suite_endpoints() -> tuple[Endpoint, ...]:
    return tuple(
        Endpoint("publishes", topic, _type_name(kind), profile, about)
        for topic, (kind, profile, about) in {**control.TOPICS, **live_view.TOPICS}.items()
    )


FRAMES = Endpoint("subscribes", "/tf, /tf_static", codec.TF, qos.LIVE_BURSTS, "frames, where tf2_msgs is installed")

NODES = {
    "replayer": Interface(
        "plays the topics of a bag and /clock at the pace of the recording",
        ReplayerParameters,
        (
            Endpoint("publishes", "every topic of the bag", "as recorded", qos.REPLAY, "byte for byte"),
            Endpoint("publishes", "/clock", "rosgraph_msgs/msg/Clock", qos.CLOCK, "never further than one step on"),
        ),
        "ros2 run mt_nodes replayer --ros-args -p bag:=my_bag -p loop:=true",
    ),
    "simulator": Interface(
        "a world that a stack drives through (docs/simulators.md); says /tf and /tf_static where tf2_msgs is installed",
        SimulatorParameters,
        (
            *(
                Endpoint("publishes", DEFAULT_INPUTS[role], kind, qos.REPLAY, f"{role}; topics as the stack file says")
                for role, kind in WORLD_TYPES.items()
            ),
            Endpoint("publishes", "/clock", "rosgraph_msgs/msg/Clock", qos.CLOCK, "the world's time"),
            Endpoint(
                *("publishes", "/mt/diagnostics", "diagnostic_msgs/msg/DiagnosticArray", qos.STATUS),
                "how far it is; late and unanswered instants, collisions, how it ended",
            ),
            Endpoint(
                *("subscribes", DEFAULT_OUTPUTS["control"]["topic"], DEFAULT_OUTPUTS["control"]["type"], qos.ANSWERS),
                "commands; everything else that the stack says is heard and not used",
            ),
        ),
        "ros2 run mt_nodes simulator --ros-args -p scenario:=pedestrian_crosses -p stack:=my_stack.yaml",
    ),
    "mutator": Interface(
        "derives a follow-up of every instant of live clouds, images and camera infos; every n-th of them is control",
        MutatorParameters,
        (
            Endpoint(
                "subscribes",
                DEFAULT_INPUTS["lidar"],
                CLOUD,
                qos.LIVE_TAP,
                "live clouds, or what its publishers send; input_topic",
            ),
            FRAMES,
            Endpoint(
                *("subscribes", "every odometry", ODOMETRY_TYPE, qos.LIVE_BURSTS),
                "the ego's motion (docs/ego_motion.md)",
            ),
            Endpoint(
                *("publishes", f"/mt/followup{DEFAULT_INPUTS['lidar']}", CLOUD, qos.REPLAY),
                "follow-ups, with the live publisher's reliability and durability; output_topic",
            ),
            Endpoint("publishes", "/mt/ledger", TEXT, qos.JOURNAL, "what each follow-up was made of"),
        ),
        "ros2 run mt_nodes mutator --ros-args -p relation:=noise_outside_roi_100 -p output_domain:=42",
    ),
    "monitor": Interface(
        "judges the outputs of two arms while they run, and control by the same check; pairs them by stamp, within the "
        "deadline and a lap of a looped bag. A silent follow-up is VIOLATED only where control beside it is answered",
        MonitorParameters,
        (
            Endpoint("subscribes", "/mt/ledger", TEXT, qos.JOURNAL, "which pairs there are"),
            Endpoint(
                *("subscribes", OUTPUTS["topic"], OUTPUTS["type"], qos.ANSWERS),
                "outputs, once in each arm; topics and types as the stack file says",
            ),
            FRAMES,
            Endpoint("publishes", "/mt/verdicts", TEXT, qos.JOURNAL, "one verdict each"),
        ),
        "ros2 run mt_nodes monitor --ros-args -p relation:=noise_outside_roi_100 -p "
        "stack:=my_stack.yaml -p followup_domain:=42",
    ),
    "callable_stack": Interface(
        "hosts a Python callable as a stack; started with --stack FILE",
        None,
        (
            Endpoint("subscribes", DEFAULT_INPUTS["lidar"], CLOUD, qos.REPLAY, "the stack file's inputs"),
            Endpoint("publishes", OUTPUTS["topic"], OUTPUTS["type"], qos.ANSWERS, "the stack file's outputs"),
        ),
        "ros2 run mt_nodes callable_stack --stack my_stack.yaml --transforms mount.yaml",
    ),
    "suite": Interface(
        "all of it in lockstep, as `mt replay` starts it with --run DIR; its topics in your own domain",
        None,
        _suite_endpoints(),
        "ros2 run mt_nodes suite --run mt_results/latest",
    ),
    "live_suite": Interface(
        "all of it beside a running stack, as `mt live` starts it with --run DIR (docs/live.md); its topics, and its "
        "node `mt_live` with services and parameters, in the control domain. In the live domain it publishes nothing",
        None,
        (
            Endpoint(
                *("subscribes", DEFAULT_INPUTS["lidar"], CLOUD, qos.LIVE_TAP),
                "in the live domain; whatever the stack file names as its inputs and needs",
            ),
            Endpoint(*("subscribes", OUTPUTS["topic"], OUTPUTS["type"]), qos.LIVE_BURSTS, "the live stack's outputs"),
            *_suite_endpoints(),
            Endpoint("publishes", clock_echo.PING, TEXT, qos.LIVE_TAP, "asks for the time of other computers"),
        ),
        "ros2 run mt_nodes live_suite --run mt_results/latest",
    ),
    "watch_suite": Interface(
        "what `mt live --watch-only` starts with --run DIR (docs/watching.md): it publishes nothing anywhere",
        None,
        (
            Endpoint(*("subscribes", DEFAULT_INPUTS["lidar"], CLOUD, qos.LIVE_TAP), "the stack file's inputs"),
            Endpoint(*("subscribes", OUTPUTS["topic"], OUTPUTS["type"]), qos.LIVE_BURSTS, "the live stack's outputs"),
        ),
        "ros2 run mt_nodes watch_suite --run mt_results/latest",
    ),
    "clock_echo": Interface(
        "on another computer, in the control domain: tells what its clock shows",
        None,
        (
            Endpoint("subscribes", clock_echo.PING, TEXT, qos.LIVE_TAP, "who asks, and when it was asked"),
            Endpoint("publishes", clock_echo.PONG, TEXT, qos.LIVE_TAP, "the same with when it came and was answered"),
        ),
        "ROS_DOMAIN_ID=42 ros2 run mt_nodes clock_echo",
    ),
}
