# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import camera_info, cloud, image, stamp, tree

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.point_fields import DATATYPES
from mt_nodes.data.cdr.wire import encode_message, wires_of_bundle
from mt_nodes.data.messages import Bundle, Wire

HEADER = SimpleNamespace(stamp=SimpleNamespace(sec=12, nanosec=34), frame_id="lidar")


Fields = list[tuple[str, int, int, int]]


def message(fields: Fields, step: int, width: int = 2, height: int = 1, **over: object) -> object:
    """A PointCloud2 as a rosbags message; fields are (name, offset, datatype, count)."""
    types = codec.typestore().types
    data = np.random.default_rng(1).integers(0, 256, height * width * step, dtype=np.uint8)
    values = {
        "header": codec.header_of("lidar", 12_000_000_034),
        "height": height,
        "width": width,
        "fields": [types["sensor_msgs/msg/PointField"](*f) for f in fields],
        "is_bigendian": False,
        "point_step": step,
        "row_step": width * step,
        "data": data,
        "is_dense": True,
    }
    return types[codec.POINT_CLOUD](**{**values, **over})


XYZ = [("x", 0, 7, 1), ("y", 4, 7, 1), ("z", 8, 7, 1)]


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Fields, int]:
    names = ["x", "y", "z", *draw(st.lists(st.sampled_from(["i", "ring", "t", "desc"]), unique=True))]
    fields, at = [], 0
    for name in draw(st.permutations(names)):
        at += draw(st.integers(0, 5))
        datatype, count = draw(st.sampled_from(sorted(DATATYPES))), draw(st.integers(1, 3))
        count = 1 if name in "xyz" else count
        fields.append((name, at, datatype, count))
        at += np.dtype(DATATYPES[datatype]).itemsize * count
    return fields, at + draw(st.integers(0, 7))


@settings(max_examples=80, deadline=None)
@given(layouts(), st.booleans(), st.integers(0, 3), st.integers(1, 3))
def test_any_layout_comes_back_byte_for_byte(
    layout: tuple[Fields, int], big_endian: bool, width: int, height: int
) -> None:
    fields, step = layout
    # One-byte fields have no byte order to remember.
    big_endian = big_endian and any(np.dtype(DATATYPES[f[2]]).itemsize > 1 for f in fields)
    data = codec.encode(codec.POINT_CLOUD, message(fields, step, width, height, is_bigendian=big_endian))
    made = codec.cloud_from_msg("/points", codec.decode(codec.POINT_CLOUD, data))
    assert (len(made), made.height, made.points.dtype.itemsize) == (width * height, height, step)
    assert list(made.fields) == [f[0] for f in fields]
    assert codec.encode_cloud(made) == data


def test_all_datatypes_and_counts_are_read_as_they_are() -> None:
    others = [(f"f{number}", f"<{code}", (2,)) for number, code in DATATYPES.items()]
    dtype = np.dtype([("x", "<f8"), ("y", "<f8"), ("z", "<f8"), *others])
    points = np.zeros(3, dtype)
    for name in dtype.names or ():
        points[name] = 7
    made = codec.cloud_from_msg(
        "/p", codec.decode(codec.POINT_CLOUD, codec.encode_cloud(replace(cloud(0), points=points)))
    )
    assert made.points.dtype == dtype
    assert np.array_equal(made.points, points)


def test_a_cloud_is_a_view_of_the_bytes() -> None:
    msg = message(XYZ, 16)
    assert np.shares_memory(codec.cloud_from_msg("/p", msg).points, msg.data)  # type: ignore[attr-defined]


def test_row_padding_is_left_out() -> None:
    plain = message(XYZ, 12, width=3, height=2)
    rows = plain.data.reshape(2, 36)  # type: ignore[attr-defined]
    padded = message(XYZ, 12, 3, 2, row_step=40, data=np.hstack([rows, np.full((2, 4), 255, np.uint8)]).reshape(-1))
    a, b = codec.cloud_from_msg("/p", plain), codec.cloud_from_msg("/p", padded)
    assert codec.encode_cloud(a) == codec.encode_cloud(b)


def test_big_endian_values() -> None:
    data = np.arange(6, dtype=">f4").view(np.uint8)
    made = codec.cloud_from_msg("/p", message(XYZ, 12, is_bigendian=True, data=data))
    assert made.xyz.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (message(XYZ, 11), "'z' at offset 8 does not fit point_step 11"),
        (message(XYZ, 12, row_step=20), "rows of 20 bytes, expected at least 24"),
        (message(XYZ, 12, row_step=30), "24 bytes of data, expected 1 rows of 30"),
        (message(XYZ, 12, data=np.zeros(23, np.uint8)), "23 bytes of data"),
        (message([*XYZ, ("i", 12, 9, 1)], 16), "'i' has datatype 9, expected 1 to 8"),
        (message(XYZ[:2], 12), "got fields x, y, expected also z"),
        (message([*XYZ, ("x", 0, 7, 1)], 12), "expected each name once"),
    ],
)
def test_a_cloud_that_does_not_fit_is_refused(made: object, says: str) -> None:
    with pytest.raises(UsageError, match=f"^/lidar/top: .*{says}"):
        codec.cloud_from_msg("/lidar/top", made)


def test_a_field_that_no_message_can_hold_is_refused() -> None:
    points = np.zeros(1, [("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("t", "<u8")])
    with pytest.raises(UsageError, match="'t' is uint64, expected int8 to uint32"):
        codec.encode_cloud(replace(cloud(0), points=points))
    with pytest.raises(UsageError, match="mix little and big endian"):
        codec.encode_cloud(replace(cloud(0), points=np.zeros(1, [("x", "<f4"), ("y", ">f4"), ("z", "<f4")])))


@pytest.mark.parametrize(
    ("encoding", "dtype", "shape"),
    [
        ("mono8", "u1", (4, 5)),
        ("bgra8", "u1", (4, 5, 4)),
        ("rgb16", "<u2", (4, 5, 3)),
        ("mono16", ">u2", (4, 5)),
        ("bayer_rggb8", "u1", (4, 5)),
        ("32FC1", "<f4", (4, 5)),
        ("16SC2", "<i2", (4, 5, 2)),
        ("64FC", "<f8", (4, 5)),
    ],
)
def test_images_come_back(encoding: str, dtype: str, shape: tuple[int, ...]) -> None:
    pixels = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    data = codec.encode_image(replace(image(0), pixels=pixels, encoding=encoding))
    made = codec.image_from_msg("/camera/image", codec.decode(codec.IMAGE, data))
    assert (made.pixels.dtype, made.encoding, made.stamp_ns) == (pixels.dtype, encoding, stamp(0))
    assert np.array_equal(made.pixels, pixels)
    assert codec.encode_image(made) == data
    later = codec.encode_image(replace(image(7), pixels=pixels[:2], encoding=encoding))
    for each in (data, later):
        assert codec.encode(codec.IMAGE, codec.decode(codec.IMAGE, each)) == each, "as a serializer of ROS makes it"
    assert codec.header_stamp_ns(later) == stamp(7)


def test_image_row_padding_is_left_out_and_misfits_are_refused() -> None:
    values = {"header": HEADER, "height": 2, "width": 2, "encoding": "mono16", "is_bigendian": 0}
    padded = SimpleNamespace(**values, step=6, data=bytes(range(12)))
    assert codec.image_from_msg("/i", padded).pixels.tobytes() == bytes([0, 1, 2, 3, 6, 7, 8, 9])
    with pytest.raises(UsageError, match="/i: got rows of 3 bytes, expected at least 4"):
        codec.image_from_msg("/i", SimpleNamespace(**values, step=3, data=bytes(6)))
    with pytest.raises(UsageError, match="got image encoding 'nv12'"):
        codec.image_from_msg("/i", SimpleNamespace(**{**values, "encoding": "nv12"}, step=4, data=bytes(8)))
    with pytest.raises(UsageError, match="bgr8 is \\(H, W, 3\\) of uint8"):
        codec.encode_image(replace(image(0), pixels=np.zeros((2, 2), np.uint8)))


def test_compressed_images_keep_their_bytes() -> None:
    packed = replace(image(0), compressed=b"\xff\xd8jpeg", encoding="jpeg", pixels=np.empty((0, 0), np.uint8))
    data = encode_message(packed)
    made = codec.image_from_msg("/c", codec.decode(codec.type_of(packed), data))
    assert (made.compressed, made.encoding) == (packed.compressed, "jpeg")


def test_camera_info_keeps_what_core_types_do_not_hold() -> None:
    msg = codec.decode(codec.CAMERA_INFO, codec.encode_camera_info(camera_info(0)))
    msg.binning_x, msg.roi.width = 2, 5
    like = Wire("/camera/camera_info", codec.CAMERA_INFO, stamp(0), codec.encode(codec.CAMERA_INFO, msg))
    made = codec.camera_info_from_msg(like.topic, codec.decode(like.type, like.cdr))
    assert np.array_equal(made.p, camera_info(0).p)
    assert codec.encode_camera_info(made, like) == like.cdr
    assert codec.encode_camera_info(made) != like.cdr


def test_transforms_come_back() -> None:
    (made,) = codec.transforms_from_msg(codec.decode(codec.TF, codec.encode_transforms(tree(), stamp(1))), static=True)
    (given_,) = tree().transforms
    assert (made.parent, made.child, made.stamp_ns) == ("base_link", "lidar", stamp(1))
    assert np.allclose(made.matrix, given_.matrix, atol=1e-12)


def test_a_rotation_that_is_none_is_refused() -> None:
    msg = codec.decode(codec.TF, codec.encode_transforms(tree(), 0))
    rotation = msg.transforms[0].transform.rotation
    rotation.x = rotation.y = rotation.z = rotation.w = 0.0
    with pytest.raises(UsageError, match="transform from 'lidar' to 'base_link'"):
        codec.transforms_from_msg(msg, static=True)


def test_damaged_and_unknown_messages() -> None:
    data = codec.encode_cloud(cloud(0))
    with pytest.raises(InfrastructureError, match="damaged message"):
        codec.decode(codec.POINT_CLOUD, data[: len(data) // 2])
    with pytest.raises(UsageError, match="'my_msgs/msg/Thing' is unknown"):
        codec.decode("my_msgs/msg/Thing", data)


def test_only_changed_topics_are_encoded_anew() -> None:
    messages = cloud(0), image(0)
    wires = tuple(Wire(m.topic, codec.type_of(m), m.stamp_ns, encode_message(m)) for m in messages)
    note = Wire("/note", codec.STRING, stamp(0), codec.encode_text("hello"))
    source = Bundle(0, 0, stamp(0), (messages[0],), (messages[1],), wires=(wires[0], note, wires[1]))
    fewer = source.with_clouds([replace(messages[0], points=messages[0].points[:10])])
    out = wires_of_bundle(fewer, fewer.changed_topics(source))
    assert [w.topic for w in out] == ["/points", "/note", "/camera/image"]
    assert out[1] is note and out[2] is wires[1]
    assert len(codec.cloud_from_msg("/points", codec.decode(out[0].type, out[0].cdr))) == 10
    assert wires_of_bundle(source) == source.wires


def test_a_topic_keeps_its_type() -> None:
    like = Wire("/camera/image", codec.COMPRESSED_IMAGE, 0, b"")
    with pytest.raises(UsageError, match="got a sensor_msgs/msg/Image to send where sensor_msgs/msg/CompressedImage"):
        encode_message(image(0), like)


def test_the_same_functions_read_and_match_rclpy() -> None:
    """An independent implementation of CDR and of the messages agrees."""
    serialization = pytest.importorskip("rclpy.serialization", reason="no ROS 2 here")
    messages = pytest.importorskip("sensor_msgs.msg", reason="no ROS 2 here")
    for made, kind, read in (
        (cloud(0), messages.PointCloud2, codec.cloud_from_msg),
        (image(0), messages.Image, codec.image_from_msg),
        (camera_info(0), messages.CameraInfo, codec.camera_info_from_msg),
    ):
        data = encode_message(made)
        ros = serialization.deserialize_message(data, kind)
        assert encode_message(read(made.topic, ros)) == data
        # What ROS writes is the same but for alignment bytes, which it leaves undefined.
        theirs = bytes(serialization.serialize_message(ros))
        assert len(theirs) == len(data)
        assert encode_message(read(made.topic, codec.decode(codec.type_of(made), theirs))) == data
