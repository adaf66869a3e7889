# SPDX-License-Identifier: Apache-2.0
"""`mt doctor --live-config FILE --cost`: what relations take of a rig's messages, and where that is too much."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.wire import encode_message
from mt_nodes.data.messages import Wire
from mt_nodes.data.transforms import dump_transforms
from mt_nodes.runs.live.config import live_config
from mt_nodes.runs.live.cost_checkup import HeardRig, _judged, judge_cost
from mt_nodes.runs.live.live_run import LiveRun
from mt_nodes.runs.live.rig_cost import FollowupCost, RigLoad
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

STACK = {
    "callable": "no:thing",
    "inputs": {
        "lidar": "/sensing/lidar/points",
        "camera": "/sensing/camera/image",
        "camera_info": "/sensing/camera/camera_info",
    },
    "sync_s": 0.02,
    "stateless": True,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> LiveRun:
    place = tmp_path_factory.mktemp("rig")
    bundle = next(generate_drive(1, lidar=replace(hdl_64e(), azimuths=900), camera=CameraSensor(160, 120)))
    dump_transforms(bundle.transforms, place / "transforms.yaml")
    (place / "stack.yaml").write_text(yaml.safe_dump(STACK))
    given = {"stack": str(place / "stack.yaml"), "transforms": str(place / "transforms.yaml"), "live_domain": 41}
    relations = ["points_dropped_10_percent", "fog_keeps_near_obstacles"]
    return LiveRun.make(live_config({**given, "relations": relations}, "test"), place)


@pytest.fixture(scope="module")
def heard() -> HeardRig:
    """A camera of 20 Hz beside a LiDAR of 10 Hz: every second frame is between two instants."""
    wires = []
    for bundle in generate_drive(5, lidar=replace(hdl_64e(), azimuths=900), camera=CameraSensor(160, 120)):
        for message in bundle.messages:
            wires.append(Wire(message.topic, codec.type_of(message), message.stamp_ns, encode_message(message)))
            if "camera" in message.topic:
                between = replace(message, stamp_ns=message.stamp_ns + 50_000_000)
                wires.append(Wire(between.topic, codec.type_of(between), between.stamp_ns, encode_message(between)))
    rates_hz = {wire.topic: 20.0 if "camera" in wire.topic else 10.0 for wire in wires}
    return HeardRig(wires, rates_hz)


def test_what_each_relation_needs_is_measured_on_what_was_heard(run: LiveRun, heard: HeardRig) -> None:
    rig, *relations = judge_cost(run, heard, cores=4)
    assert rig.level == "ok" and rig.detail.startswith("10 instants, 50 messages, ")
    assert [f.title for f in relations] == [f"cost of {r.id}" for r in run.suite.relations]
    assert all("ms a follow-up; all 10 instants a second need " in f.detail for f in relations)
    assert all("here are 4" in f.detail for f in relations)


def test_what_does_not_fit_is_a_warning_with_the_rate_that_does(run: LiveRun, heard: HeardRig) -> None:
    fast = HeardRig(heard.wires, {topic: 1000.0 * hz for topic, hz in heard.rates_hz.items()})
    found = [f for f in judge_cost(run, fast, cores=2) if f.title.startswith("cost of ")]
    assert found and all(f.level == "warn" and "the others end as SKIPPED" in f.fix for f in found)


def test_processes_are_proposed_where_they_would_test_more() -> None:
    load = RigLoad(20.0, 50.0, 280.0)
    alone, two, six = (
        _judged("a", FollowupCost(200.0), load, row, (1.0, 0.0)) for row in ((8, 0, 6), (2, 0, 0), (8, 6, 6))
    )
    assert "some 5.0 instants" in alone.fix and "; some 20.0 with workers: 6, if these cores are idle" in alone.fix
    assert "one thread makes follow-ups" in two.detail and "with workers" not in two.fix
    assert six.level == "ok" and "6 processes make follow-ups" in six.detail


def test_what_was_not_heard_is_not_taken_for_cheap(run: LiveRun, heard: HeardRig) -> None:
    [silent] = judge_cost(run, HeardRig(heard.wires, {"/sensing/lidar/points": 10.0}))
    assert silent.level == "error" and "too little came on /sensing/camera/image" in silent.detail
    shifted = [replace(w, stamp_ns=w.stamp_ns + 25_000_000 * ("lidar" in w.topic)) for w in heard.wires]
    [apart] = judge_cost(run, HeardRig(shifted, heard.rates_hz))
    assert apart.level == "error" and "messages made 0 instants" in apart.detail


def test_processes_that_make_follow_ups_test_more_as_far_as_there_are_cores() -> None:
    load = RigLoad.of({"/lidar": 20.0, "/camera": 30.0}, {"/lidar": 5e6, "/camera": 6e6}, "/lidar")
    slow, quick = FollowupCost(200.0), FollowupCost(10.0)
    rates = [slow.tested_hz(load, 16, workers) for workers in (0, 1, 2, 3, 16)]
    assert rates[0] == pytest.approx(5.0) and rates[1] == pytest.approx(5.0, rel=0.05)
    assert rates[2:4] == pytest.approx([2 * rates[1], 3 * rates[1]]) and rates[4] == 20.0
    few = slow.tested_hz(load, load.passing_cores + 1.0, 8)
    assert 4.0 < few < 5.0, "processes bring no cores, and handing over costs"
    assert quick.tested_hz(load, 16, 8) == quick.tested_hz(load, 16), "what is cheap is not handed over"


def test_one_thread_makes_follow_ups_whatever_cores_there_are() -> None:
    load = RigLoad.of({"/lidar": 20.0, "/camera": 30.0}, {"/lidar": 5e6, "/camera": 6e6}, "/lidar")
    assert (load.instants_hz, load.messages_hz, load.mb_per_s) == (20.0, 50.0, 280.0)
    slow, quick = FollowupCost(200.0), FollowupCost(10.0)
    assert slow.cores(load) == pytest.approx(load.passing_cores + 4.0)
    assert slow.tested_hz(load, 12) == slow.tested_hz(load, 4) == pytest.approx(5.0)
    assert quick.tested_hz(load, 4) == 20.0 and quick.tested_hz(load, load.passing_cores + 0.1) == pytest.approx(10.0)
    assert quick.tested_hz(load, 0.1) == 0.0
