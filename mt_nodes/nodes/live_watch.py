# SPDX-License-Identifier: Apache-2.0
"""Measures the live stack's own latency and rate from beside it: when an input passes, and when its answer does."""

from __future__ import annotations

import time
from collections import OrderedDict

from rclpy.node import Node

from mt_nodes.base.safety_settings import Guard
from mt_nodes.data.cdr import codec
from mt_nodes.nodes import qos
from mt_nodes.nodes.adapter_choice import adapter_of
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.runs.vehicle.live_guard import Health, LiveGuard
from mt_nodes.stacks.stack import Stack

#: Inputs whose answer is still awaited; older ones have none.
_MOST_AWAITED = 100


class LiveWatch:
    """Taps the leading input and the first output of a live stack best effort; nobody is held back by it.

    An answer that bears no stamp is taken for that of the last input.
    ``node``: in the live domain, spun by somebody else. ``input_topic``, ``input_type``: of the leading sensor.
    """

    def __init__(self, node: Node, stack: Stack, input_topic: str, input_type: str, settings: Guard) -> None:
        self._guard = LiveGuard(settings)
        self._came_s: OrderedDict[int, float] = OrderedDict()
        role = stack.answers[0]
        row = stack.outputs[role]
        self._adapter = adapter_of(role, row)
        node.create_subscription(message_class(input_type), input_topic, self._input, qos.LIVE_TAP, raw=True)
        node.create_subscription(message_class(row.type), row.topic, self._answered, qos.LIVE_BURSTS)

    def health(self) -> Health:
        """Return whether the live stack is as well as before the first test."""
        return self._guard.health(time.monotonic())

    @property
    def baseline(self) -> tuple[float, float] | None:
        """Rate in Hz and 95th percentile of the latency in s before the first test, None until it is known."""
        return self._guard.baseline

    def _input(self, data: bytes) -> None:
        self._came_s[codec.header_stamp_ns(data) or 0] = time.monotonic()
        while len(self._came_s) > _MOST_AWAITED:
            self._came_s.popitem(last=False)

    def _answered(self, message: object) -> None:
        now_s = time.monotonic()
        stamp_ns = self._adapter.stamp_ns(message) if self._adapter.stamped else next(reversed(self._came_s), None)
        if stamp_ns is not None and (came_s := self._came_s.pop(stamp_ns, None)) is not None:
            self._guard.answered(now_s, now_s - came_s)
