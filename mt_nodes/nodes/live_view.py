# SPDX-License-Identifier: Apache-2.0
"""What both arms see, for RViz and Foxglove, in the user's domain while a run goes on.

Everything is in the frame of the region, so that no transforms are needed to look at it. What nobody listens to is
not made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import shapely
from geometry_msgs.msg import Point, Vector3
from rclpy.node import Node
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from mt_nodes.base.arrays import Floats
from mt_nodes.data.association import moved
from mt_nodes.data.cdr.codec import encode_cloud
from mt_nodes.data.message_headers import set_stamp
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.outputs import Detections
from mt_nodes.data.regions import Region, RegionUnavailable
from mt_nodes.data.verdict import Verdict
from mt_nodes.engine.recorder import ExecutedPair
from mt_nodes.nodes import qos
from mt_nodes.nodes.adapters.marker_adapters import MarkerArrayObstacles
from mt_nodes.relations.checks.obstacles import ObstacleComparison
from mt_nodes.stacks.callable_host import as_points

ARMS = ("source", "followup")
#: topic -> (type, QoS, what it carries); a table of docs/nodes.md is made from this.
TOPICS = {
    **{
        f"/mt/{a}/markers": (MarkerArray, qos.STATUS, "the arm's obstacles, lost ones, region, keep zone") for a in ARMS
    },
    **{f"/mt/{a}/points": (PointCloud2, qos.STATUS, "the arm's cloud in the region's frame") for a in ARMS},
}
#: Okabe-Ito: the region black, its keep zone grey, what was lost vermillion.
REGION, KEEP_ZONE, LOST = (0.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.84, 0.37, 0.0)
LINE_M, LOST_M = 0.1, (1.5, 1.5, 0.1)
_XYZI = np.dtype([(name, "<f4") for name in ("x", "y", "z", "intensity")])


class LiveView:
    """Publishes markers of both arms, and their clouds, while somebody subscribes."""

    def __init__(self, node: Node) -> None:
        self._topics = {
            name: node.create_publisher(kind, name.lstrip("/"), profile) for name, (kind, profile, _) in TOPICS.items()
        }

    def show(self, verdicts: Sequence[Verdict], case: ExecutedPair) -> None:
        """Publish one pair as it was judged; returns at once when nobody listens."""
        subscribed = {name for name, publisher in self._topics.items() if publisher.get_subscription_count()}
        if not subscribed:
            return
        region, keep_inset_m = _region(case)
        frame = region.frame_id if region else case.source.clouds[0].frame_id if case.source.clouds else ""
        around = [*_outlines(region, keep_inset_m), *_lost(verdicts)]
        both = ((case.given, case.source_answer), (case.followup, case.followup_answer))
        for arm, (bundle, answer) in zip(ARMS, both, strict=True):
            if f"/mt/{arm}/markers" in subscribed:
                detections = answer.output.detections or Detections.none(frame, None)
                self._topics[f"/mt/{arm}/markers"].publish(_markers(detections, around, case.source, frame))
            if f"/mt/{arm}/points" in subscribed and bundle.clouds:
                self._topics[f"/mt/{arm}/points"].publish(_points(bundle, frame))


def _region(case: ExecutedPair) -> tuple[Region | None, float]:
    """Return the region that the pair was judged in, and how far inside it the keep zone lies."""
    check = case.offer.judges[0].check
    if not isinstance(check, ObstacleComparison):
        return None, 0.0
    try:
        return check.region.resolve(case.source), check.keep_inset_m
    except RegionUnavailable:
        return None, 0.0


def _markers(detections: Detections, around: Iterable[Marker], bundle: Bundle, frame: str) -> MarkerArray:
    if frame and detections.frame_id != frame:
        detections = moved(detections, bundle.transforms.lookup(frame, detections.frame_id), frame)
    array: MarkerArray = MarkerArrayObstacles().encode(detections)
    header = Header(frame_id=frame)
    set_stamp(header.stamp, bundle.stamp_ns)
    array.markers.extend(around)
    for marker in array.markers:
        marker.header = header
    return array


def _outlines(region: Region | None, keep_inset_m: float) -> list[Marker]:
    if region is None:
        return []
    zones = (("region", region.geometry, REGION), ("keep_zone", region.buffered(-keep_inset_m), KEEP_ZONE))
    return [
        _marker(ns, i, Marker.LINE_STRIP, colour, (LINE_M, 0.0, 0.0), points=_corners(part))
        for ns, geometry, colour in zones
        for i, part in enumerate(shapely.get_parts(geometry))
    ]


def _lost(verdicts: Sequence[Verdict]) -> list[Marker]:
    """A disc on the ground at every obstacle that only the source arm saw, with its class as text."""
    places = [place for verdict in verdicts for place in verdict.judgement.detail.get("lost_at", ())]
    markers = []
    for i, (x, y, label) in enumerate(places):
        markers.append(_marker("lost", i, Marker.CYLINDER, LOST, LOST_M, text=f"lost {label}"))
        markers[-1].pose.position.x, markers[-1].pose.position.y = float(x), float(y)
    return markers


def _corners(polygon: Any) -> list[Point]:
    ring: Floats = shapely.get_coordinates(shapely.get_exterior_ring(polygon))
    return [Point(x=x, y=y) for x, y in ring.tolist()]


def _marker(
    ns: str, number: int, kind: int, colour: tuple[float, ...], size_m: tuple[float, ...], **more: Any
) -> Marker:
    scale, rgba = Vector3(**dict(zip("xyz", size_m, strict=True))), ColorRGBA(**dict(zip("rgb", colour, strict=True)))
    rgba.a = 0.9
    return Marker(ns=ns, id=number, type=kind, action=Marker.ADD, scale=scale, color=rgba, **more)


def _points(bundle: Bundle, frame: str) -> bytes:
    cloud = bundle.clouds[0]
    points = as_points(cloud, frame, bundle.transforms).view(_XYZI).reshape(-1)
    return encode_cloud(Cloud(cloud.topic, bundle.stamp_ns, frame, points))
