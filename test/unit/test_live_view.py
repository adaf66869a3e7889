# SPDX-License-Identifier: Apache-2.0
"""What RViz and Foxglove get while a run goes on, over real topics."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from made_bundles import made_bundle
from ros_support import Heard as Messages
from ros_support import until
from visualization_msgs.msg import Marker

from mt_nodes.data.effects import Effects
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.data.verdict import Judgement, Outcome, Pair, Verdict
from mt_nodes.engine.judging import Answer, AnswerStatus, Offer
from mt_nodes.engine.recorder import ExecutedPair
from mt_nodes.nodes import live_view, qos
from mt_nodes.nodes.convert import cloud_from_message
from mt_nodes.nodes.live_view import LiveView
from mt_nodes.nodes.spinning_context import SpinningContext, plain_node
from mt_nodes.relations.relation import load_relation

RELATION = "noise_outside_roi_1000"


def seen(frame: str, *places: tuple[float, float]) -> Answer:
    rows = [(x, y, 0.5) for x, y in places]
    said = Detections.make(frame, 1_000, rows, [(4.0, 2.0, 1.5)] * len(rows), None, ["car"] * len(rows))
    return Answer(AnswerStatus.ANSWERED, Output(detections=said))


@pytest.fixture
def case() -> ExecutedPair:
    """A pair whose source shows two cars (told in the sensor's frame) and whose follow-up lost one."""
    relation, source = load_relation(RELATION), made_bundle()
    cloud = source.cloud()
    followup = source.with_clouds([cloud.with_raw(cloud.raw[:100])])
    answers = (seen("velodyne", (10.0, 2.0), (20.0, -3.0)), seen("base_link", (10.0, 2.0)))
    return ExecutedPair(Offer(relation, (relation,)), source, followup, Effects(), *answers)


@pytest.fixture
def verdicts() -> list[Verdict]:
    lost = Judgement(Outcome.VIOLATED, 1, 2, -1, lost=1, detail={"lost_at": [[20.0, -3.0, "car"]], "gained_at": []})
    return [Verdict(Pair(0, 0, RELATION), 1_000, lost)]


@pytest.fixture
def ros(domains: tuple[int, ...], ending: ExitStack) -> Any:
    context = SpinningContext(domains[0])
    ending.callback(context.close)
    return context


def listen(ros: Any, view: LiveView, *topics: str) -> dict[str, Messages]:
    node, heard = ros.add(plain_node, "viewer"), {topic: Messages() for topic in topics}
    for topic in topics:
        node.create_subscription(live_view.TOPICS[topic][0], topic, heard[topic].take, qos.STATUS)
    until(lambda: all(view._topics[t].get_subscription_count() for t in topics), "for the viewer to be seen")
    return heard


def by_ns(array: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for marker in array.markers:
        found.setdefault(marker.ns, []).append(marker)
    return found


def test_both_arms_are_shown_in_the_region_s_frame(ros: Any, case: ExecutedPair, verdicts: list[Verdict]) -> None:
    view = LiveView(ros.add(plain_node, "shows"))
    heard = listen(ros, view, "/mt/source/markers", "/mt/followup/markers")
    view.show(verdicts, case)
    arms = [heard[f"/mt/{arm}/markers"].wait(1)[0] for arm in live_view.ARMS]
    for array, cars in zip(arms, (2, 1), strict=True):
        assert array.markers[0].action == Marker.DELETEALL
        assert {m.header.frame_id for m in array.markers} == {"base_link"}
        assert {(m.header.stamp.sec, m.header.stamp.nanosec) for m in array.markers} == {(0, 1_000)}
        found = by_ns(array)
        assert len(found["car"]) == cars
        (lost,) = found["lost"]
        assert (lost.pose.position.x, lost.pose.position.y, lost.text) == (20.0, -3.0, "lost car")
        region, keep = ([(p.x, p.y) for p in found[ns][0].points] for ns in ("region", "keep_zone"))
        assert {(0.0, -10.0), (40.0, 10.0)} <= set(region) and region[0] == region[-1]
        assert {(1.0, -9.0), (39.0, 9.0)} <= set(keep)
    # Told in the sensor's frame, 1.73 m up: shown above the ground.
    assert by_ns(arms[0])["car"][0].pose.position.z == pytest.approx(0.5 + 1.73)
    assert by_ns(arms[1])["car"][0].pose.position.z == pytest.approx(0.5)


def test_clouds_of_both_arms(ros: Any, case: ExecutedPair, verdicts: list[Verdict]) -> None:
    view = LiveView(ros.add(plain_node, "shows"))
    heard = listen(ros, view, "/mt/source/points", "/mt/followup/points")
    view.show(verdicts, case)
    for arm, bundle in zip(live_view.ARMS, (case.source, case.followup), strict=True):
        cloud = cloud_from_message("/x", heard[f"/mt/{arm}/points"].wait(1)[0])
        assert (cloud.frame_id, cloud.stamp_ns, len(cloud)) == ("base_link", 1_000, len(bundle.cloud()))
        np.testing.assert_allclose(cloud.xyz, bundle.cloud().xyz + np.float32([0, 0, 1.73]), rtol=1e-5)


def test_nothing_is_made_for_nobody(
    ros: Any, case: ExecutedPair, verdicts: list[Verdict], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr(live_view, "_points", lambda *a: made.append("points"))
    monkeypatch.setattr(live_view, "_outlines", lambda *a: made.append("outlines") or [])
    view = LiveView(ros.add(plain_node, "shows"))
    view.show(verdicts, case)
    assert made == []
    heard = listen(ros, view, "/mt/source/markers")
    view.show(verdicts, case)
    heard["/mt/source/markers"].wait(1)
    assert made == ["outlines"]


def test_a_silent_arm_shows_nothing_but_the_zones(ros: Any, case: ExecutedPair, verdicts: list[Verdict]) -> None:
    silent = ExecutedPair(
        case.offer, case.source, case.followup, case.effects, case.source_answer, Answer(AnswerStatus.SILENT, Output())
    )
    view = LiveView(ros.add(plain_node, "shows"))
    heard = listen(ros, view, "/mt/followup/markers")
    view.show(verdicts, silent)
    assert set(by_ns(heard["/mt/followup/markers"].wait(1)[0])) == {"", "region", "keep_zone", "lost"}
