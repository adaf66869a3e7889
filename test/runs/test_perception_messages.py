# SPDX-License-Identifier: Apache-2.0
"""Tracks, predicted paths, traffic lights, lanes and free space in messages: Autoware's, Apollo's, standard ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Point32, PolygonStamped, Pose, PoseStamped
from nav_msgs.msg import OccupancyGrid, Path
from ros_types import installed, make, message_type, wired
from visualization_msgs.msg import Marker

from mt_nodes.base.errors import UsageError
from mt_nodes.data.message_headers import set_header, set_stamp
from mt_nodes.data.output_fields import OutputFields
from mt_nodes.data.perception import UNKNOWN_CELL
from mt_nodes.data.stack_topics import OutputTopic
from mt_nodes.nodes.adapter_choice import adapter_of
from mt_nodes.nodes.orientation import set_planar
from mt_nodes.stacks.message_adapter import adapter_for
from mt_nodes.stacks.stack import load_stack

STAMP = 1_700_000_000_500_000_000


@pytest.fixture(autouse=True, scope="module")
def _packages() -> Iterator[None]:
    with installed():
        yield


def decoded(role: str, message: Any, type_name: str, **params: Any) -> Any:
    return adapter_for(role, type_name, params=params).decode(wired(message))


# --- Apollo -----------------------------------------------------------------------------------------------------------


def test_apollo_obstacles_are_read_by_the_fields_of_its_stack_file() -> None:
    """No message of Apollo's was at hand: one is made of a definition with these fields."""
    row = load_stack("apollo").outputs["detections"]
    adapter = adapter_of("detections", row)
    message = make(row.type)
    message.apolloheader.timestampsec = 1_700_000_000.5
    obstacle = make(row.type.removesuffix("s"))
    obstacle.id, obstacle.type, obstacle.theta, obstacle.confidence = 42, 3, 0.5, 0.75
    obstacle.position.x, obstacle.position.y, obstacle.position.z = 586_392.25, 4_140_673.5, 1.0
    obstacle.velocity.x, obstacle.velocity.y = 1.5, -0.25
    obstacle.length, obstacle.width, obstacle.height = 0.5, 0.625, 1.75
    message.perceptionobstacle = [obstacle, make(row.type.removesuffix("s"))]
    said = adapter.decode(wired(message))
    assert (said.frame_id, said.stamp_ns) == ("world", STAMP)
    assert said.label.tolist() == ["pedestrian", "unknown"] and said.track_id.tolist() == ["42", "0"]
    assert said.center_m[0].tolist() == [586_392.25, 4_140_673.5, 1.0]
    assert (said.size_m[0].tolist(), said.yaw_rad[0], said.score[0]) == ([0.5, 0.625, 1.75], 0.5, 0.75)
    assert said.velocity_mps[0].tolist() == [1.5, -0.25, 0.0]


def test_apollo_says_that_it_never_ran() -> None:
    assert "never run" in load_stack("apollo").summary


# --- Autoware ---------------------------------------------------------------------------------------------------------

LIGHTS = "autoware_perception_msgs/msg/TrafficLightGroupArray"


def lamp(colour: str, shape: str = "CIRCLE", status: str = "SOLID_ON", confidence: float = 0.875) -> Any:
    kind = message_type("autoware_perception_msgs/msg/TrafficLightElement")
    return kind(
        color=getattr(kind, colour), shape=getattr(kind, shape), status=getattr(kind, status), confidence=confidence
    )


def group(number: int, *lamps: Any) -> Any:
    kind = message_type("autoware_perception_msgs/msg/TrafficLightGroup")
    return kind(traffic_light_group_id=number, elements=list(lamps))


def test_groups_of_traffic_lights() -> None:
    message = make(LIGHTS)
    set_stamp(message.stamp, STAMP)
    message.traffic_light_groups = [
        group(1, lamp("RED"), lamp("GREEN", "LEFT_ARROW", confidence=0.5)),
        group(2, lamp("AMBER"), lamp("GREEN", status="SOLID_OFF")),
        group(3, lamp("UNKNOWN")),
        group(4, lamp("RED", status="SOLID_OFF")),
        group(5),
    ]
    said = decoded("signals", message, LIGHTS)
    assert said.stamp_ns == STAMP and said.name.tolist() == ["1", "2", "3", "4", "5"]
    assert said.colour.tolist() == ["green_left_arrow+red", "yellow", "unknown", "off", "unknown"]
    assert said.score.tolist() == [0.5, 0.875, 0.875, 0.875, 0.0]


def test_predicted_paths_of_autoware() -> None:
    type_name = "autoware_perception_msgs/msg/PredictedObjects"
    message = make(type_name)
    set_header(message.header, "map", STAMP)
    path = make("autoware_perception_msgs/msg/PredictedPath")
    path.confidence, path.time_step.nanosec = 0.625, 500_000_000
    path.path = [Pose(), Pose(), Pose()]
    for i, pose in enumerate(path.path):
        set_planar(pose, 2.0 * i, 1.0, 0.0)
    row = make("autoware_perception_msgs/msg/PredictedObject")
    row.kinematics.predicted_paths = [path]
    message.objects = [row, make("autoware_perception_msgs/msg/PredictedObject")]
    said = decoded("predictions", message, type_name)
    assert (said.frame_id, len(said), [len(rows) for rows in said.paths]) == ("map", 2, [1, 0])
    own = said.paths[0][0]
    assert (own.probability, own.time_s.tolist()) == (0.625, [0.0, 0.5, 1.0])
    assert own.place_m.tolist() == [[0.0, 1.0], [2.0, 1.0], [4.0, 1.0]]


def test_tracks_are_read_by_the_adapters_of_detections() -> None:
    row = load_stack("autoware_perception").outputs["tracks"]
    assert type(adapter_of("tracks", row)).__name__ == "AutowareTrackedObjects"
    with pytest.raises(UsageError, match="no adapter reads tracks from std_msgs/msg/String"):
        adapter_of("tracks", OutputTopic("/tracks", "std_msgs/msg/String"))


# --- standard packages ------------------------------------------------------------------------------------------------


def test_detections_whose_classes_are_states() -> None:
    boxes = make("vision_msgs/msg/Detection2DArray")
    set_header(boxes.header, "camera", STAMP)
    one = make("vision_msgs/msg/Detection2D")
    result = make("vision_msgs/msg/ObjectHypothesisWithPose")
    result.hypothesis.class_id, result.hypothesis.score = "red", 0.75
    one.results, one.bbox.size_x, one.bbox.size_y = [result], 8.0, 10.0
    one.bbox.center.position.x, one.bbox.center.position.y = 100.0, 50.0
    boxes.detections = [one]
    said = decoded("signals", boxes, "vision_msgs/msg/Detection2DArray")
    assert (said.colour.tolist(), said.score.tolist()) == (["red"], [0.75])
    assert said.box_px.tolist() == [[96.0, 45.0, 104.0, 55.0]] and said.in_image.all()
    assert said.renamed({"red": "stop"}).colour.tolist() == ["stop"]


def path_of(*places: tuple[float, float], step_ns: int = 0) -> Path:
    message = Path()
    set_header(message.header, "base_link", STAMP)
    for i, (x, y) in enumerate(places):
        stamped = PoseStamped()
        set_header(stamped.header, "base_link", STAMP + i * step_ns)
        set_planar(stamped.pose, x, y, 0.0)
        message.poses.append(stamped)
    return message


def test_a_path_is_a_lane_or_a_predicted_path_as_the_stack_file_says() -> None:
    lanes = decoded("lanes", path_of((1.0, 2.0), (3.0, 4.0)), "nav_msgs/msg/Path")
    (strip,) = lanes.strips
    assert (strip.direction, strip.middle_m.tolist()) == ("own", [[1.0, 2.0], [3.0, 4.0]])
    assert len(decoded("lanes", path_of(), "nav_msgs/msg/Path")) == 0
    said = decoded("predictions", path_of((1.0, 2.0), (3.0, 4.0), step_ns=500_000_000), "nav_msgs/msg/Path")
    assert said.objects.center_m.tolist() == [[1.0, 2.0, 0.0]] and said.paths[0][0].time_s.tolist() == [0.0, 0.5]
    assert len(decoded("predictions", path_of(), "nav_msgs/msg/Path")) == 0


def test_a_grid_of_another_size_than_it_says_is_refused() -> None:
    message = OccupancyGrid()
    message.info.width, message.info.height, message.data = 2, 2, [0, 0, 100]
    with pytest.raises(ValueError, match="got 3 cells, expected width x height = 2 x 2"):
        decoded("free_space", message, "nav_msgs/msg/OccupancyGrid")


def test_an_outline_of_free_space_is_a_grid_that_knows_nothing_else() -> None:
    message = PolygonStamped()
    set_header(message.header, "base_link", STAMP)
    message.polygon.points = [Point32(x=x, y=y) for x, y in ((0.0, 0.0), (2.0, 0.0), (2.0, 1.0), (0.0, 1.0))]
    said = decoded("free_space", message, "geometry_msgs/msg/PolygonStamped", resolution_m=0.5)
    assert int((said.cells == 0).sum()) == 8 and set(np.unique(said.cells)) == {0, UNKNOWN_CELL}
    inside = said.values_at(np.array([[0.25, 0.25], [1.75, 0.75], [2.25, 0.25]]))
    assert inside.tolist() == [0, 0, UNKNOWN_CELL]
    message.polygon.points = message.polygon.points[:2]
    assert len(decoded("free_space", message, "geometry_msgs/msg/PolygonStamped")) == 0


def test_a_line_without_an_obstacle_is_refused() -> None:
    message = make("visualization_msgs/msg/MarkerArray")
    message.markers = [Marker(type=Marker.LINE_STRIP, text="of=0 times=0.0")]
    with pytest.raises(ValueError, match="N below 0"):
        decoded("predictions", message, "visualization_msgs/msg/MarkerArray")


# --- by fields --------------------------------------------------------------------------------------------------------


def by_fields(role: str, type_name: str, **fields: Any) -> Any:
    return adapter_of(role, OutputTopic("/any", type_name, fields=fields))


def test_predictions_by_fields_through_lists_in_lists() -> None:
    adapter = by_fields(
        "predictions",
        "autoware_perception_msgs/msg/PredictedObjects",
        each="objects",
        center="kinematics.initial_pose_with_covariance.pose.position",
        track="object_id",
        paths="kinematics.predicted_paths",
        probability="confidence",
        step_s="time_step",
        line="path",
        point="position",
    )
    message = make("autoware_perception_msgs/msg/PredictedObjects")
    set_header(message.header, "map", STAMP)
    path = make("autoware_perception_msgs/msg/PredictedPath")
    path.confidence, path.time_step.nanosec, path.path = 0.5, 250_000_000, [Pose(), Pose()]
    set_planar(path.path[1], 3.0, 4.0, 0.0)
    row = make("autoware_perception_msgs/msg/PredictedObject")
    row.kinematics.predicted_paths = [path]
    message.objects = [row]
    own = adapter.decode(wired(message)).paths[0][0]
    assert (own.probability, own.time_s.tolist(), own.place_m.tolist()) == (0.5, [0.0, 0.25], [[0.0, 0.0], [3.0, 4.0]])


def test_signals_lanes_and_grids_by_fields() -> None:
    message = make(LIGHTS)
    message.traffic_light_groups = [group(7, lamp("GREEN"))]
    fields = {
        "each": "traffic_light_groups",
        "name": "traffic_light_group_id",
        "state": {"path": "elements[0].color", "names": {1: "red", 3: "green"}},
        "score": "elements[0].confidence",
    }
    said = by_fields("signals", LIGHTS, **fields).decode(wired(message))
    assert (said.name.tolist(), said.colour.tolist(), said.score.tolist()) == (["7"], ["green"], [0.875])

    lines = make("visualization_msgs/msg/MarkerArray")
    lines.markers = [Marker(ns="left", points=[Pose().position, Pose().position])]
    type_name = "visualization_msgs/msg/MarkerArray"
    read = by_fields("lanes", type_name, each="markers", name="ns", line="points", point=".", frame="base_link")
    (strip,) = read.decode(wired(lines)).strips
    assert (strip.name, strip.middle_m.shape) == ("left", (2, 2))

    grid = OccupancyGrid()
    grid.info.width, grid.info.height, grid.info.resolution, grid.data = 2, 1, 0.5, [0, 100]
    info = {key: f"info.{key}" for key in ("width", "height")} | {"resolution_m": "info.resolution"}
    cells = by_fields("free_space", "nav_msgs/msg/OccupancyGrid", cells="data", origin="info.origin.position", **info)
    assert cells.decode(wired(grid)).cells.tolist() == [[0, 100]]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"each": "objects"}, "expected also center"),
        ({"each": "objects", "center": "x", "line": "path", "point": "p"}, "expected also step_s or time_s"),
        ({"each": "objects", "lines": "path"}, "lines"),
    ],
)
def test_fields_that_lack_a_key_are_refused(fields: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        OutputFields.parse("predictions", fields, "here")


def test_a_list_that_is_none_is_refused_with_its_type() -> None:
    with pytest.raises(UsageError, match=r"line: header is std_msgs/Header, expected a list"):
        by_fields("lanes", "visualization_msgs/msg/MarkerArray", each="markers", line="header", point="x")
