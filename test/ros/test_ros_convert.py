# SPDX-License-Identifier: Apache-2.0
"""Clouds and images between messages and core types, and our stand-in for sensor_msgs_py."""

from __future__ import annotations

import array
import copy
from typing import Any

import numpy as np
import pytest
from made_bundles import LAYOUTS, made_cloud
from rclpy.serialization import deserialize_message, serialize_message
from recordings import camera_info, image
from sensor_msgs.msg import PointCloud2, PointField

from mt_nodes.base.errors import UsageError
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.wire import encode_message
from mt_nodes.data.message_headers import set_stamp, stamp_of
from mt_nodes.data.messages import CameraInfo, Cloud, Image
from mt_nodes.nodes import convert
from mt_nodes.nodes.convert import cloud_from_message, cloud_to_message, sensor_from_message
from mt_nodes.nodes.message_classes import available, decode, message_class


def message_of(cloud: Cloud, row_padding: int = 0) -> PointCloud2:
    """The message that carries a cloud, with so many bytes of rubbish after each row."""
    message = deserialize_message(codec.encode_cloud(cloud), PointCloud2)
    if row_padding:
        rows = np.frombuffer(message.data, np.uint8).reshape(cloud.height, -1)
        padded = np.full((cloud.height, rows.shape[1] + row_padding), 0xA5, np.uint8)
        padded[:, : rows.shape[1]] = rows
        message.data, message.row_step = array.array("B", padded.tobytes()), padded.shape[1]
    return message


def assert_same_values(read: Cloud, made: Cloud) -> None:
    assert (read.topic, read.stamp_ns, read.frame_id) == (made.topic, made.stamp_ns, made.frame_id)
    assert (read.height, read.width, read.is_dense) == (made.height, made.width, made.is_dense)
    assert read.fields == made.fields
    for name in made.fields:
        np.testing.assert_array_equal(read.points[name], made.points[name])


@pytest.mark.parametrize("row_padding", [0, 12])
@pytest.mark.parametrize("height", [1, 8])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_cloud_is_read_as_the_bag_reader_reads_it(layout: str, height: int, row_padding: int) -> None:
    made = made_cloud(layout, count=160, height=height, holes=0.2 if height > 1 else 0.0)
    message = message_of(made, row_padding)
    read = cloud_from_message(made.topic, copy.deepcopy(message))
    assert_same_values(read, made)
    assert_same_values(read, codec.cloud_from_msg(made.topic, message))


@pytest.mark.parametrize("height", [1, 8])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_cloud_there_and_back_is_the_same_message(layout: str, height: int) -> None:
    made = made_cloud(layout, count=160, height=height)
    message = message_of(made)
    back = cloud_to_message(cloud_from_message(made.topic, copy.deepcopy(message)), message)
    if layout == "big_endian":
        # Read into the machine's own order, and sent so.
        assert not back.is_bigendian and back.data != message.data
        assert_same_values(cloud_from_message(made.topic, back), made)
    else:
        assert back == message, "padding bytes included"
        # Byte for byte, but for what fills the gaps between the fields of a message: that is whatever was in memory.
        wire = bytes(serialize_message(back))
        assert len(wire) == len(codec.encode_cloud(made))
        assert codec.encode(codec.POINT_CLOUD, codec.decode(codec.POINT_CLOUD, wire)) == codec.encode_cloud(made)


def test_fewer_and_more_points_fit_the_same_layout() -> None:
    made = made_cloud("ouster", count=40)
    message = message_of(made)
    cloud = cloud_from_message(made.topic, message)
    for rows in (np.arange(7), np.r_[np.arange(40), np.arange(40)], np.arange(0)):
        sent = cloud_to_message(cloud.with_raw(cloud.raw[rows]), message)
        assert (sent.width, sent.height, sent.row_step, len(sent.data)) == (
            len(rows),
            1,
            48 * len(rows),
            48 * len(rows),
        )
        np.testing.assert_array_equal(cloud_from_message("/t", sent).points["ring"], made.points["ring"][rows])


def test_a_field_of_several_elements_and_one_whose_count_was_left_at_nought() -> None:
    fields = [PointField(name=n, offset=4 * i, datatype=PointField.FLOAT32, count=0) for i, n in enumerate("xyz")]
    fields.append(PointField(name="rgb", offset=12, datatype=PointField.UINT8, count=3))
    data = np.arange(32, dtype=np.uint8)
    message = PointCloud2(height=1, width=2, fields=fields, point_step=16, row_step=32, data=data.tolist())
    cloud = cloud_from_message("/t", message)
    assert cloud.fields == ("x", "y", "z", "rgb_0", "rgb_1", "rgb_2")
    assert cloud.points["rgb_1"].tolist() == [13, 29]
    assert bytes(cloud_to_message(cloud, message).data) == data.tobytes()


def broken(**changes: Any) -> PointCloud2:
    message = message_of(made_cloud("kitti", count=6))
    for name, value in changes.items():
        setattr(message, name, value)
    return message


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (broken(row_step=90), "got rows of 90 bytes, expected at least 96"),
        (broken(width=7, row_step=112), "got 96 bytes of data, expected 1 rows of 112"),
        (broken(fields=[]), "got fields .none., expected also x, y, z"),
        (broken(fields=[PointField(name=n, offset=12, datatype=8, count=1) for n in "xyz"]), "does not fit point_step"),
        (broken(fields=[PointField(name=n, offset=0, datatype=9, count=1) for n in "xyz"]), "has datatype 9"),
    ],
)
def test_clouds_that_contradict_themselves_are_refused(message: PointCloud2, said: str) -> None:
    with pytest.raises(UsageError, match=f"/points: .*{said}"):
        cloud_from_message("/points", message)


def test_images_and_camera_infos_are_read_as_the_bag_reader_reads_them() -> None:
    sent: list[tuple[str, str, Image | CameraInfo]] = [
        ("camera", "sensor_msgs/msg/Image", image(1)),
        ("camera_info", "sensor_msgs/msg/CameraInfo", camera_info(1)),
    ]
    for role, type_name, made in sent:
        read = sensor_from_message(role, made.topic, decode(type_name, encode_message(made)))
        assert type(read) is type(made) and read.stamp_ns == made.stamp_ns
        for name, value in vars(made).items():
            np.testing.assert_array_equal(getattr(read, name), value)
    cloud = made_cloud()
    assert isinstance(sensor_from_message("lidar", cloud.topic, message_of(cloud)), Cloud)


def test_stamps() -> None:
    message = PointCloud2()
    set_stamp(message.header.stamp, 1_700_000_000_000_000_007)
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (1_700_000_000, 7)
    assert stamp_of(message) == 1_700_000_000_000_000_007
    assert stamp_of(message.header) == stamp_of(message)
    assert stamp_of(PointField()) is None


def test_types_that_are_not_here_say_what_to_install() -> None:
    assert message_class("sensor_msgs/msg/PointCloud2") is PointCloud2 and available("sensor_msgs/PointCloud2")
    assert not available("no_such_msgs/msg/A")
    for name, said in (
        ("no_such_msgs/msg/A", "Python package no_such_msgs is missing; apt install ros-jazzy-no-such-msgs"),
        ("sensor_msgs/msg/Pointcloud", "package sensor_msgs has no message Pointcloud"),
        ("PointCloud2", "got message type 'PointCloud2', expected package/msg/Name"),
    ):
        with pytest.raises(UsageError, match=said):
            message_class(name)


# --- our functions against the real ones, where ROS 2 brings those


@pytest.fixture(scope="module")
def real() -> Any:
    return pytest.importorskip(
        "sensor_msgs_py.point_cloud2", reason="sensor_msgs_py comes with a ROS 2 installation and is on no registry"
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_own_functions_do_what_sensor_msgs_py_does(layout: str, real: Any) -> None:
    message = message_of(made_cloud(layout, count=30))
    fields, step = message.fields, message.point_step
    assert convert.own_dtype_from_fields(fields, step) == real.dtype_from_fields(fields, step)
    assert convert.own_dtype_from_fields(fields) == real.dtype_from_fields(fields)
    points = convert.own_read_points(copy.deepcopy(message))
    expected = real.read_points(copy.deepcopy(message))
    assert points.dtype == expected.dtype and points.tobytes() == expected.tobytes()
    assert convert.own_create_cloud(message.header, fields, points, step) == real.create_cloud(
        message.header, fields, expected, step
    )


def test_the_real_ones_are_used_where_they_are(real: Any) -> None:
    assert convert.read_points is real.read_points and convert.create_cloud is real.create_cloud
