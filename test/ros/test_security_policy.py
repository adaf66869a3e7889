# SPDX-License-Identifier: Apache-2.0
"""The SROS 2 policy allows our nodes what they do, and nothing else; where security cannot work, that is said."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from recordings import drive, write_bag
from ros_support import Peer, until

from mt_nodes.base.environment import ENCLAVE_VARIABLE, SECURITY_VARIABLE, enclave, use_enclave, user_environment
from mt_nodes.base.resources import config_dir
from mt_nodes.data.cdr import codec
from mt_nodes.data.transforms import TransformTree
from mt_nodes.nodes.callable_stack import CallableStack
from mt_nodes.nodes.clock_echo import ClockEcho
from mt_nodes.nodes.control import ControlNode
from mt_nodes.nodes.live_control import LiveControl
from mt_nodes.nodes.live_view import LiveView
from mt_nodes.nodes.message_classes import available
from mt_nodes.nodes.monitor import Monitor
from mt_nodes.nodes.mutator import Mutator
from mt_nodes.nodes.node_interfaces import NODES
from mt_nodes.nodes.replayer import Replayer
from mt_nodes.nodes.security_policy import Profile, StackTopics, policy, profiles
from mt_nodes.nodes.spinning_context import SpinningContext
from mt_nodes.runs.live.commands import Commands
from mt_nodes.runs.live.config import LiveConfig
from mt_nodes.runs.security_checkup import check_security
from mt_nodes.stacks.stack import load_stack

Made = Callable[..., Any]
STACK = load_stack("reference_detector")
TOPICS = StackTopics.of(STACK)
#: Heard where tf2_msgs is installed, which is no package of PyPI.
FRAMES: set[str] = set() if available(codec.TF) else {"subscribes /tf", "subscribes /tf_static"}


def of(executable: str, node: str) -> Profile:
    """Return the profile of a node."""
    [profile] = [row for row in profiles(TOPICS)[executable] if row.node == node]
    return profile


def seen(node: Any, name: str) -> dict[str, set[str]]:
    """Return what the graph has of a node, private names with ``~``."""
    found = {
        "publishes": node.get_publisher_names_and_types_by_node,
        "subscribes": node.get_subscriber_names_and_types_by_node,
        "replies": node.get_service_names_and_types_by_node,
        "requests": node.get_client_names_and_types_by_node,
    }
    return {does: {topic.replace(f"/{name}/", "~/") for topic, _ in look(name, "/")} for does, look in found.items()}


def allowed(profile: Profile, does: str, name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in getattr(profile, does))


def refused(node: Any, executable: str, name: str) -> list[str]:
    """Return what a running node does that its enclave may not."""
    profile = of(executable, name)
    return [
        f"{does} {each}"
        for does, names in seen(node, name).items()
        for each in names
        if not allowed(profile, does, each)
    ]


def idle(node: Any, executable: str, name: str) -> set[str]:
    """Return what its enclave may do but the running node does not."""
    profile, has = of(executable, name), seen(node, name)
    return {f"{does} {each}" for does, names in has.items() for each in getattr(profile, does) if each not in names}


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """A short recording."""
    return write_bag(tmp_path / "bag", drive(2))


def test_the_shipped_file_is_what_the_code_says() -> None:
    """``make docs`` writes it; every executable has an enclave, and the client of live runs."""
    file = config_dir() / "sros2" / "policy.xml"
    assert file.read_text() == policy(StackTopics())
    paths = [row.get("path") for row in ET.parse(file).iter("enclave")]
    assert sorted(map(str, paths)) == sorted(f"/mt_nodes/{name}" for name in (*NODES, "live_client", "live_tap"))


@pytest.mark.parametrize(
    ("executable", "cls", "unused"),
    [
        ("mutator", Mutator, {"publishes /mt/followup/sensing/lidar/points"} | FRAMES),
        ("monitor", Monitor, FRAMES),
        ("clock_echo", ClockEcho, set()),
    ],
)
def test_a_node_may_do_what_it_does_and_no_more(executable: str, cls: Any, unused: set[str], made: Made) -> None:
    """Follow-ups are published where live clouds come, frames are heard where tf2_msgs is installed."""
    node = made(cls)
    assert refused(node, executable, executable) == []
    assert idle(node, executable, executable) == unused


def test_the_replayer_may_play_what_a_stack_takes(made: Made, bag: Path) -> None:
    """Other topics of a bag are the user's to allow, so a recorded topic with another name is refused here."""
    node = made(Replayer, bag=bag)
    others = {row.split()[1] for row in refused(node, "replayer", "replayer")}
    assert others == {"/points", "/camera/image", "/camera/camera_info", "/note"}, "the topics of this bag"
    assert idle(node, "replayer", "replayer") == {
        "publishes /sensing/lidar/points",
        "publishes /tf",
        "publishes /tf_static",
    }


@pytest.fixture
def context(domains: tuple[int, ...]) -> Iterator[SpinningContext]:
    """Nodes of a suite process, in the user's domain."""
    with ExitStack() as ending:
        made = SpinningContext(domains[2])
        ending.callback(made.close)
        yield made


def test_the_nodes_of_suites_may_do_what_they_do_and_no_more(context: SpinningContext) -> None:
    """Those of `mt replay` and of `mt live`, with its services and parameters."""
    control: ControlNode = context.add(ControlNode)
    LiveView(control)
    live = context.add(LiveControl, Commands(LiveConfig(), ["noise"]))
    for executable, name, node in (
        ("suite", "mt_suite", control),
        ("live_suite", "mt_suite", control),
        ("live_suite", "mt_live", live),
    ):
        assert refused(node, executable, name) == []
        assert idle(node, executable, name) - {"publishes /rosout"} == set()


def test_a_hosted_stack_may_do_what_it_does_and_no_more(
    ending: ExitStack, domains: tuple[int, ...], made: Made
) -> None:
    """The enclave of callable stacks; their arm's nodes take and say the same topics."""
    node = made(lambda: CallableStack(STACK, TransformTree(), report_errors=True))
    assert refused(node, "callable_stack", "callable_stack") == []
    assert idle(node, "callable_stack", "callable_stack") == FRAMES
    peer = Peer(ending, domains[1])
    until(lambda: "callable_stack" in peer.node.get_node_names())
    [player] = [row for row in profiles(TOPICS)["suite"] if row.node == "mt_mutator"]
    [hearer] = [row for row in profiles(TOPICS)["suite"] if row.node == "mt_monitor_followup"]
    stack = seen(node, "callable_stack")
    assert stack["subscribes"] <= set(player.publishes)
    assert stack["publishes"] - set(hearer.subscribes) == {"/rosout", "/parameter_events"}


def test_a_node_uses_its_enclave_and_its_stack_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where security is on; what the user says stays."""
    monkeypatch.setenv("MT_NODES_ENVIRONMENT", "")
    monkeypatch.setenv(ENCLAVE_VARIABLE, "")  # so that it is gone after the test
    monkeypatch.delenv(ENCLAVE_VARIABLE)
    use_enclave("suite")
    assert ENCLAVE_VARIABLE not in os.environ
    monkeypatch.setenv(SECURITY_VARIABLE, "true")
    for name in ("suite", "callable_stack"):  # the second is a child of the first
        use_enclave(name)
        assert os.environ[ENCLAVE_VARIABLE] == f"/mt_nodes/{name}"
    with enclave("live_tap"):
        assert os.environ[ENCLAVE_VARIABLE] == "/mt_nodes/live_tap"
    assert os.environ[ENCLAVE_VARIABLE] == "/mt_nodes/callable_stack"
    assert ENCLAVE_VARIABLE not in user_environment(os.environ)
    monkeypatch.setenv("MT_NODES_ENVIRONMENT", "")
    monkeypatch.setenv(ENCLAVE_VARIABLE, "/mine")
    use_enclave("suite")
    assert os.environ[ENCLAVE_VARIABLE] == "/mine" == user_environment(os.environ)[ENCLAVE_VARIABLE]


@pytest.mark.parametrize(
    ("strategy", "named", "started"),
    [("Enforce", True, False), ("Permissive", True, False), ("Enforce", False, False), ("Permissive", False, True)],
)
def test_without_security_libraries_the_doctor_says_so(
    strategy: str, named: bool, started: bool, tmp_path: Path
) -> None:
    """As with the wheels of PyPI: a node with an enclave does not start; one without runs unprotected if permitted."""
    if named:
        (tmp_path / "enclaves").mkdir()  # that of "/"
    secured = {SECURITY_VARIABLE: "true", "ROS_SECURITY_STRATEGY": strategy, "ROS_SECURITY_KEYSTORE": str(tmp_path)}
    environment = {**os.environ, **secured}
    [finding] = check_security(environment)
    assert finding.level == "error"
    if "built without security" not in finding.detail:
        pytest.skip("the middleware here has security")
    code = "import rclpy; rclpy.init(); rclpy.create_node('x'); print('started')"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ("started" in done.stdout) == started == (done.returncode == 0)
    assert ("doesn't have the security libraries" in done.stderr) == named


def test_the_doctor_looks_at_keystore_and_strategy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the libraries are there."""
    monkeypatch.setattr("mt_nodes.runs.security_checkup._contains", lambda path, text: False)
    env = {SECURITY_VARIABLE: "true", "ROS_SECURITY_KEYSTORE": str(tmp_path), "ROS_SECURITY_STRATEGY": "Permissive"}
    levels = [[finding.level for finding in check_security(env)]]
    (tmp_path / "enclaves/mt_nodes/suite").mkdir(parents=True)
    (tmp_path / "enclaves/mt_nodes/suite/permissions.p7s").touch()
    levels += [[f.level for f in check_security(one)] for one in (env, {**env, "ROS_SECURITY_STRATEGY": "Enforce"}, {})]
    assert levels == [["error"], ["warn"], ["ok"], []]
