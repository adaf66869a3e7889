# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
from ros_support import Peer, until
from std_msgs.msg import String

from mt_nodes.data.cdr import codec
from mt_nodes.nodes import qos
from mt_nodes.nodes.raw_subscription import subscribe_raw


class FakeNode:
    """Keeps what it is asked to subscribe with."""

    def create_subscription(self, kind: type, topic: str, take: Any, profile: object, **more: Any) -> str:
        self.asked = (kind, topic, profile, more)
        self.take = take
        return "subscription"


@pytest.mark.parametrize("with_info", [False, True])
def test_what_has_no_bytes_is_no_message(with_info: bool) -> None:
    node, taken = FakeNode(), list[tuple[Any, ...]]()
    more = {"event_callbacks": object()}
    made = subscribe_raw(node, codec.STRING, "/a", lambda *got: taken.append(got), 10, with_info=with_info, **more)  # type: ignore[arg-type]
    assert made == "subscription" and node.asked == (String, "/a", 10, {"raw": True, **more})
    info = ({"source_timestamp": 0},) if with_info else ()
    node.take(b"", *info)
    node.take(b"\0\1\0\0", *info)
    assert taken == [(b"\0\1\0\0", *info)]


@pytest.mark.parametrize("with_info", [False, True])
def test_messages_come_as_they_were_serialized(with_info: bool, ending: ExitStack, domains: Any) -> None:
    peer, taken = Peer(ending, domains[0], "peer"), list[tuple[Any, ...]]()
    publisher = peer.publisher(codec.STRING, "/said", qos.REPLAY)
    subscribe_raw(peer.node, codec.STRING, "/said", lambda *got: taken.append(got), qos.REPLAY, with_info=with_info)
    until(publisher.get_subscription_count)
    publisher.publish(String(data="hello"))
    until(lambda: taken)
    ((data, *info),) = taken
    assert (
        codec.decode(codec.STRING, data).data == "hello"
        and [i["source_timestamp"] > 0 for i in info] == [True] * with_info
    )
