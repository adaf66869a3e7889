# SPDX-License-Identifier: Apache-2.0
"""What was understood of the last message is never taken for what the next one says."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_bundles import LAYOUTS, made_cloud

from mt_nodes.base.errors import MtError
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Cloud
from mt_nodes.nodes.live_inputs import CloudReader

TOPIC = made_cloud().topic
FRAME = replace(made_cloud(count=12), frame_id="lidar")


def plainly(data: bytes) -> Cloud:
    return codec.cloud_from_msg(TOPIC, codec.decode(codec.POINT_CLOUD, data))


def seen(cloud: Cloud) -> tuple[Any, ...]:
    about = cloud.topic, cloud.stamp_ns, cloud.frame_id, cloud.height, cloud.is_dense, cloud.points.dtype
    return *about, cloud.points.tobytes()


@given(
    messages=st.lists(
        st.tuples(
            st.sampled_from(sorted(LAYOUTS)),
            st.sampled_from([(0, 1), (1, 1), (6, 1), (6, 2), (6, 3)]),
            st.sampled_from(["lidar", "lidar2", "lidaŕ", ""]),
            st.integers(0, 2**31 * 10**9 - 1),
            st.booleans(),
        ),
        min_size=2,
        max_size=4,
    )
)
def test_whatever_came_before_a_message_is_read_as_if_alone(messages: list[Any]) -> None:
    reader = CloudReader(TOPIC)
    for layout, (count, height), frame_id, stamp_ns, dense in messages:
        cloud = made_cloud(layout, count, seed=stamp_ns % 1000, height=height)
        data = codec.encode_cloud(replace(cloud, frame_id=frame_id, stamp_ns=stamp_ns, is_dense=dense))
        for _ in range(2):
            assert seen(reader.read(data)) == seen(plainly(data))


@pytest.mark.parametrize("value", [0, 1, 2, 12, 128, 255])
def test_a_damaged_message_is_read_or_refused_as_ever(value: int) -> None:
    """Any one byte of what stands before the points, or behind them, is another one."""
    reader, data = CloudReader(TOPIC), codec.encode_cloud(FRAME)
    for at in (*range(len(data) - FRAME.points.nbytes), len(data) - 1):
        reader.read(data)
        damaged = data[:at] + bytes([value]) + data[at + 1 :]
        try:
            expected: Any = seen(plainly(damaged))
        except (MtError, UnicodeDecodeError) as error:
            expected = str(error)
        try:
            got: Any = seen(reader.read(damaged))
        except (MtError, UnicodeDecodeError) as error:
            got = str(error)
        assert got == expected, at


@pytest.mark.parametrize("change", [-1, 1, 22])
def test_a_message_that_is_cut_or_goes_on_is_not_taken_for_whole(change: int) -> None:
    reader, data = CloudReader(TOPIC), codec.encode_cloud(FRAME)
    reader.read(data)
    other = data[:change] if change < 0 else data + bytes(change)
    try:
        expected = seen(plainly(other))
    except MtError:
        with pytest.raises(MtError):
            reader.read(other)
    else:
        assert seen(reader.read(other)) == expected


def test_padded_rows_are_left_out() -> None:
    step, size_at = FRAME.points.dtype.itemsize, 16 + 8
    data = bytearray(codec.encode_cloud(replace(FRAME, height=2)))
    assert struct.unpack_from("<II", data, size_at) == (2, 6)
    struct.pack_into("<I", data, size_at + 4, 5)  # six points a row, of which the last is padding
    padded = bytes(data)
    reader = CloudReader(TOPIC)
    reader.read(codec.encode_cloud(replace(FRAME, height=2)))
    assert len(reader.read(padded)) == 10 and seen(reader.read(padded)) == seen(plainly(padded))
    assert reader.read(padded).points.nbytes == 10 * step


def test_points_of_like_messages_are_views_of_their_bytes_and_the_head_is_understood_once(monkeypatch: Any) -> None:
    reader, calls, decode = CloudReader(TOPIC), [], codec.decode
    monkeypatch.setattr(codec, "decode", lambda *args: (calls.append(1), decode(*args))[1])
    for index in range(3):
        data = codec.encode_cloud(replace(made_cloud(count=10 + index), stamp_ns=index))
        cloud = reader.read(data)
        assert (cloud.stamp_ns, len(cloud)) == (index, 10 + index)
        assert not cloud.points.flags.owndata and not cloud.points.flags.writeable
    assert len(calls) == 1
