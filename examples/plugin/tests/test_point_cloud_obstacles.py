# SPDX-License-Identifier: Apache-2.0
"""Test of the adapter."""

from __future__ import annotations

import numpy as np
import pytest
from example_plugin.point_cloud_obstacles import CHANNELS, PointCloudObstacles

from mt_nodes.plugin import Detections
from mt_nodes.plugin.testing import obstacles


def test_what_is_written_is_read() -> None:
    said = obstacles((10.0, 2.0), (20.0, -1.0), score=0.75).detections
    assert said is not None
    adapter = PointCloudObstacles()
    read = adapter.decode(adapter.encode(said))
    assert (read.frame_id, read.stamp_ns) == (said.frame_id, said.stamp_ns)
    for name in ("center_m", "size_m", "yaw_rad", "score"):
        assert np.allclose(getattr(read, name), getattr(said, name))


def test_nothing_detected_is_an_answer_with_a_stamp() -> None:
    adapter = PointCloudObstacles()
    message = adapter.encode(Detections.none("base_link", 5))
    assert len(adapter.decode(message)) == 0 and adapter.stamp_ns(message) == 5


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_message_without_a_channel_is_refused(channel: str) -> None:
    said = obstacles((10.0, 2.0)).detections
    assert said is not None
    adapter = PointCloudObstacles()
    message = adapter.encode(said)
    message.channels = [one for one in message.channels if one.name != channel]
    with pytest.raises(ValueError, match=f"channels {channel}: expected one value"):
        adapter.decode(message)
