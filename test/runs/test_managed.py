# SPDX-License-Identifier: Apache-2.0
"""The life cycle of the nodes that run alone: what they do in each state, and when it cannot be entered."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from made_bundles import TREE, made_cloud
from recordings import PERIOD_NS, drive, stamp, write_bag
from ros_support import LIMIT_S, Peer, asked, until

from mt_nodes.base.environment import ros_environment
from mt_nodes.base.processes import Child, Process
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Cloud
from mt_nodes.data.transforms import dump_transforms
from mt_nodes.nodes import qos, replayer
from mt_nodes.nodes.monitor import Monitor
from mt_nodes.nodes.mutator import Mutator
from mt_nodes.nodes.replayer import Replayer

Make = Callable[..., Any]
CONFIGURE, ACTIVATE = Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE
DEACTIVATE, CLEANUP = Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP


class Manager:
    """Leads a node through its life, by its services."""

    def __init__(self, peer: Peer, name: str) -> None:
        self._change = peer.node.create_client(ChangeState, f"/{name}/change_state")
        self._get = peer.node.create_client(GetState, f"/{name}/get_state")

    def do(self, transition: int) -> bool:
        """Change its state; it is asked first, so that the two have met."""
        assert self.state and self._change.wait_for_service(LIMIT_S)
        answer = self._change.call_async(ChangeState.Request(transition=Transition(id=transition)))
        until(answer.done)
        return bool(answer.result().success)

    @property
    def state(self) -> str:
        return str(asked(self._get, GetState.Request()).current_state.label)


@pytest.fixture
def peer(ending: ExitStack, domains: tuple[int, ...]) -> Peer:
    return Peer(ending, domains[1])


def opened(node: Any) -> list[str]:
    """Topics of the suite that a node has open."""
    endpoints = (*node.publishers, *node.subscriptions)
    mine = ("/points", "/out", "/mt/", "/perception", "/clock", "/note", "/camera")
    return sorted(e.topic_name for e in endpoints if e.topic_name.startswith(mine))


def test_a_mutator_takes_clouds_only_while_it_is_active(made: Make, peer: Peer, tmp_path: Path) -> None:
    dump_transforms(TREE, tmp_path / "transforms.yaml")
    given = {"relation": "noise_outside_roi_10", "input_topic": "/points", "output_topic": "/out"}
    manager = Manager(peer, "mutator")
    node = made(Mutator, **given, transforms=tmp_path / "transforms.yaml", autostart=False)
    followups = peer.listen(codec.POINT_CLOUD, "/out", qos.REPLAY)
    publisher = peer.publisher(codec.POINT_CLOUD, "/points", qos.REPLAY)
    assert manager.state == "unconfigured" and opened(node) == []
    assert manager.do(CONFIGURE) and manager.state == "inactive"
    assert "/points" in opened(node)
    sent = 0

    def send() -> None:
        nonlocal sent
        sent += 1
        cloud = made_cloud("velodyne", seed=sent)
        publisher.publish(codec.encode_cloud(Cloud("/points", stamp(sent), cloud.frame_id, cloud.points)))

    def matched() -> bool:
        return bool(publisher.get_subscription_count() and followups.matched())

    until(matched)
    send()
    assert manager.do(ACTIVATE)
    until(lambda: node._publisher().get_subscription_count())
    send()
    assert [codec.stamp_ns_of(m.header) for m in followups.wait(1)] == [stamp(2)], "the inactive one took nothing"
    assert manager.do(DEACTIVATE)
    send()
    assert manager.do(CLEANUP) and manager.state == "unconfigured" and opened(node) == []
    assert len(followups.messages) == 1
    assert manager.do(CONFIGURE) and manager.do(ACTIVATE)
    until(matched)
    until(lambda: node._publisher().get_subscription_count())
    send()
    followups.wait(lambda rows: codec.stamp_ns_of(rows[-1].header) == stamp(4))


def test_time_stands_still_while_a_replayer_is_inactive(
    made: Make, peer: Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead_ns = 0
    monkeypatch.setattr(replayer, "time", SimpleNamespace(monotonic_ns=lambda: time.monotonic_ns() + ahead_ns))
    bag = write_bag(tmp_path / "bag", drive(100))
    manager = Manager(peer, "replayer")
    node = made(Replayer, bag=bag, autostart=False)
    clouds = peer.listen(codec.POINT_CLOUD, "/points", qos.REPLAY)
    assert manager.do(CONFIGURE)
    until(clouds.matched)
    assert node.sent == 0
    assert manager.do(ACTIVATE)
    clouds.wait(2)
    assert manager.do(DEACTIVATE)
    before, clock_ns = node.sent, node._sim_clock.now_ns
    assert before < 90
    # A change of state goes through the executor that the timer is in: it has come round many times.
    for _ in range(30):
        assert manager.state == "inactive"
    assert (node.sent, node._sim_clock.now_ns) == (before, clock_ns)
    ahead_ns = 60 * 10**9
    began_s = time.monotonic()
    assert manager.do(ACTIVATE)
    clouds.wait(before + 3)
    assert time.monotonic() - began_s > 1.9 * PERIOD_NS / 1e9, "what was missed is not caught up"
    assert [codec.stamp_ns_of(m.header) for m in clouds.messages][:before] == [stamp(i) for i in range(before)]


def test_a_monitor_leaves_both_arms_when_it_is_cleaned_up(made: Make, peer: Peer, domains: Any) -> None:
    manager = Manager(peer, "monitor")
    node = made(Monitor, followup_domain=domains[2], autostart=False)
    assert opened(node) == []
    assert manager.do(CONFIGURE)
    assert {"/mt/ledger", "/mt/verdicts", "/perception/obstacles"} == set(opened(node))
    [context] = node._contexts
    assert manager.do(CLEANUP) and opened(node) == [] and not context._thread.is_alive()
    assert manager.do(CONFIGURE) and manager.do(ACTIVATE) and manager.state == "active"


def test_what_cannot_be_configured_says_why_and_may_be_tried_again(
    made: Make, peer: Peer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    manager = Manager(peer, "replayer")
    node = made(Replayer, bag=tmp_path / "bag", autostart=False)
    assert not manager.do(CONFIGURE) and manager.state == "unconfigured"
    assert f"no bag {tmp_path / 'bag'}" in capfd.readouterr().err
    write_bag(tmp_path / "bag", drive(2))
    assert manager.do(CONFIGURE) and manager.state == "inactive" and "/points" in opened(node)


def test_shutting_down_ends_the_process(ending: ExitStack, domains: Any, peer: Peer, tmp_path: Path) -> None:
    manager = Manager(peer, "mutator")
    argv = (sys.executable, "-m", "mt_nodes.nodes.mutator", "--ros-args", "-p", "autostart:=false")
    child = Child(Process("mutator", argv, ros_environment(os.environ, domains[1]), tmp_path / "log"))
    ending.callback(child.stop, 5.0)
    assert manager.state == "unconfigured"
    assert manager.do(Transition.TRANSITION_UNCONFIGURED_SHUTDOWN)
    until(lambda: child.code is not None)
    assert child.code == 0, (tmp_path / "log").read_text()
