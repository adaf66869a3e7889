# SPDX-License-Identifier: Apache-2.0
"""Messages: bytes of every type that is read, out of a bag or from a stack."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path as Directory
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fuzz import clouds
from fuzz.cases import Case, Target, edited
from fuzz.invariant import Broken, require
from mt_nodes.base import plugins
from mt_nodes.base.errors import MtError
from mt_nodes.data.cdr import codec
from mt_nodes.data.effects import Effects
from mt_nodes.data.lanes import OWN, Lanes, SignalStates, Strip
from mt_nodes.data.messages import Bundle, CameraInfo, Cloud, Image, Odometry
from mt_nodes.data.outputs import Control, Detections, Diagnostics, ImageBoxes, Output, Path
from mt_nodes.data.perception import FreeSpace, PredictedObjects, PredictedPath
from mt_nodes.data.transforms import TransformTree
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.judging import Answer, AnswerStatus, Engine, Offer
from mt_nodes.relations.relation import load_relation

TOPIC = "/sensor"
RELATION = "noise_outside_roi_count_1000"


def _cloud(message: Any) -> None:
    cloud = codec.cloud_from_msg(TOPIC, message)
    back = codec.cloud_from_msg(TOPIC, codec.decode(codec.POINT_CLOUD, codec.encode_cloud(cloud)))
    require(back.points.tobytes() == cloud.points.tobytes(), "points came back otherwise")
    require((back.stamp_ns, back.frame_id) == (cloud.stamp_ns, cloud.frame_id), "the header came back otherwise")


def _image(message: Any) -> None:
    image = codec.image_from_msg(TOPIC, message)
    back = codec.image_from_msg(TOPIC, codec.decode(codec.type_of(image), codec.encode_image(image)))
    require(back.pixels.tobytes() == image.pixels.tobytes(), "pixels came back otherwise")
    require((back.encoding, back.compressed) == (image.encoding, image.compressed), "the image came back otherwise")


def _camera_info(message: Any) -> None:
    info = codec.camera_info_from_msg(TOPIC, message)
    back = codec.camera_info_from_msg(TOPIC, codec.decode(codec.CAMERA_INFO, codec.encode_camera_info(info)))
    same = all(np.array_equal(getattr(info, n), getattr(back, n), equal_nan=True) for n in "dkrp")
    require(same and back.distortion_model == info.distortion_model, "intrinsics came back otherwise")


def _transforms(message: Any) -> None:
    for row in codec.transforms_from_msg(message, static=True):
        require(bool(np.isfinite(row.matrix).all()), "a transform that is not finite was accepted")
        turn = row.matrix[:3, :3]
        require(np.allclose(turn @ turn.T, np.eye(3), atol=1e-6), "a transform that is no rigid motion was accepted")
        tree = TransformTree([row])
        if row.parent != row.child:
            back = codec.decode(codec.TF, codec.encode_transforms(tree, 0))
            require(bool(np.isfinite(tree.lookup(row.parent, row.child)).all()), "a lookup that is not finite")
            codec.transforms_from_msg(back, static=True)


def _polygon(message: Any) -> None:
    frame, corners = codec.polygon_from_msg(message)
    require(isinstance(frame, str) and corners.shape == (len(message.polygon.points), 3), "corners were lost")


def _text(message: Any) -> None:
    require(isinstance(message.data, str), "a text that is none")
    codec.encode_text(message.data)


READERS: dict[str, Callable[[Any], None]] = {
    codec.POINT_CLOUD: _cloud,
    codec.IMAGE: _image,
    codec.COMPRESSED_IMAGE: _image,
    codec.CAMERA_INFO: _camera_info,
    codec.TF: _transforms,
    codec.POLYGON: _polygon,
    codec.STRING: _text,
}


@lru_cache
def _adapters() -> dict[str, list[Any]]:
    """Adapters by message type, of which a sound message can be made here; none without ROS."""
    try:
        from mt_nodes.nodes.message_classes import available
        from mt_nodes.stacks.message_adapter import Adapter
    except ImportError:
        return {}
    known: Any = plugins.catalogue("adapters").values()
    by_type: dict[str, list[Any]] = {}
    for cls in known:
        if available(cls.type) and cls.encode is not Adapter.encode:
            by_type.setdefault(cls.type, []).append(cls())
    return by_type


@lru_cache
def kinds() -> tuple[str, ...]:
    """Return the types that are read here, as folder names."""
    return tuple(name.replace("/msg/", ".") for name in (*READERS, *_adapters()))


def sound(kind: str) -> bytes:
    """Return a message with nothing wrong."""
    name = _type(kind)
    if name in _adapters():
        adapter = _adapters()[name][-1]
        return _serialized(adapter.encode(_said()[adapter.role]))
    return _SOUND[name]()


def _said() -> dict[str, Any]:
    """Return something that can be said in each role."""
    strip = Strip("lane_1", OWN, 3.5, np.array([[0.0, 0.0], [30.0, 0.5]]))
    objects = Detections.make("base_link", 5, [[12.0, 3.0, 0.5], [20.0, -4.0, 0.5]], [[4.0, 2.0, 1.5]] * 2)
    way = PredictedPath(1.0, np.array([0.5, 1.0]), np.array([[12.5, 3.0], [13.0, 3.0]]))
    return {
        "detections": objects,
        "tracks": objects,
        "predictions": PredictedObjects("base_link", 5, objects, ((way,), ())),
        "free_space": FreeSpace("base_link", 5, 0.5, (0.0, -5.0, 0.0), np.zeros((20, 40), np.int8)),
        "control": Control(5, speed_mps=3.0, yaw_rate_radps=0.1),
        "boxes": ImageBoxes.make("camera", 5, [[10.0, 20.0, 40.0, 90.0]], ["pedestrian"], [0.9]),
        "path": Path.make("base_link", 5, [[0.0, 0.0, 0.0], [5.0, 0.1, 0.02]]),
        "diagnostics": Diagnostics({"detector": "no road found"}),
        "odometry": Odometry("map", 5, 3.0, 1.0, 0.2, 8.0, 0.05),
        "signals": SignalStates.make("map", 5, ["south"], ["red"], [[30.0, 0.0, 0.0]]),
        "lanes": Lanes.make("map", 5, [strip]),
    }


def _serialized(message: Any) -> bytes:
    from rclpy.serialization import serialize_message

    return bytes(serialize_message(message))


def _compressed() -> bytes:
    return codec.encode_image(Image(TOPIC, 5, "camera", np.empty((0, 0), np.uint8), "jpeg", b"\xff\xd8\xff\xd9"))


def _sound_info() -> bytes:
    k = np.array([[9.0, 0, 4], [0, 9, 3], [0, 0, 1]])
    p = np.hstack([k, np.zeros((3, 1))])
    return codec.encode_camera_info(CameraInfo(TOPIC, 5, "camera", 8, 6, "plumb_bob", np.zeros(5), k, np.eye(3), p))


def _sound_polygon() -> bytes:
    types = codec.typestore().types
    corner, outline = types["geometry_msgs/msg/Point32"], types["geometry_msgs/msg/Polygon"]
    points = [corner(x=float(x), y=float(y), z=0.0) for x, y in ((0, 0), (9, 0), (9, 9))]
    message = types[codec.POLYGON](header=codec.header_of("base_link", 5), polygon=outline(points=points))
    return codec.encode(codec.POLYGON, message)


def _sound_cloud() -> bytes:
    told = json.loads(clouds.sound(clouds.KIND))
    return clouds.encoded(told)


_SOUND: dict[str, Callable[[], bytes]] = {
    codec.POINT_CLOUD: _sound_cloud,
    codec.IMAGE: lambda: codec.encode_image(Image(TOPIC, 5, "camera", np.zeros((2, 3, 3), np.uint8), "bgr8")),
    codec.COMPRESSED_IMAGE: _compressed,
    codec.CAMERA_INFO: _sound_info,
    codec.TF: lambda: codec.encode_transforms(clouds.TREE, 5),
    codec.POLYGON: _sound_polygon,
    codec.STRING: lambda: codec.encode_text("hello"),
}


def cases() -> st.SearchStrategy[Case]:
    """Draw a type, and its sound bytes with edits."""
    return st.sampled_from(kinds()).flatmap(lambda kind: edited(sound(kind)).map(lambda data: Case(kind, data)))


def check(case: Case, place: Directory) -> str:
    """Read a message as a bag's, or as a stack's output."""
    name = _type(case.kind)
    if name in _adapters():
        return "; ".join(_heard(adapter, case.data) for adapter in _adapters()[name])
    READERS[name](codec.decode(name, case.data))
    return "read"


def _type(kind: str) -> str:
    return kind.replace(".", "/msg/")


def _heard(adapter: Any, data: bytes) -> str:
    """Read an output as the listener of an arm does, which takes every error for the stack's."""
    from mt_nodes.nodes import message_classes

    try:
        message = message_classes.decode(adapter.type, data)
        stamp, said = adapter.stamp_ns(message), adapter.decode(message)
    except Exception as error:
        if isinstance(error, (MemoryError, MtError)):
            raise
        return "cannot be read"
    require(stamp is None or isinstance(stamp, int), f"stamp {stamp!r}")
    if isinstance(said, Detections):
        return _judged(said)
    require(
        isinstance(
            said, (Control, Diagnostics, ImageBoxes, Path, Odometry, SignalStates, Lanes, PredictedObjects, FreeSpace)
        ),
        f"an answer that is none: {said!r}",
    )
    return "read"


def _judged(said: Detections) -> str:
    """Numbers that mean nothing must not be judged as if they had not been said."""
    columns = {len(getattr(said, name)) for name in ("center_m", "size_m", "yaw_rad", "label", "score", "track_id")}
    require(len(columns) == 1, "columns of different length")
    relation = load_relation(RELATION)
    cloud = Cloud(TOPIC, 0, "base_link", np.zeros(1, np.dtype([(n, "<f4") for n in "xyz"])))
    bundle = Bundle(0, 0, 0, (cloud,), transforms=clouds.TREE)
    answer = Answer(AnswerStatus.ANSWERED, Output(detections=said))
    [verdict] = Engine(True).judge(Offer(relation, (relation,)), bundle, (answer, answer), Effects())
    if not said.finite.all():
        require(verdict.outcome is Outcome.ERROR, f"boxes that are not finite end as {verdict.outcome.value}")
    if verdict.outcome is Outcome.VIOLATED:
        raise Broken("an answer that equals itself is VIOLATED")
    return f"read, {verdict.outcome.value}"


TARGET = Target("messages", kinds(), cases, sound, check, "")
