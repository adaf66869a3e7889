# SPDX-License-Identifier: Apache-2.0
"""Where an arm runs and what it publishes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rclpy.qos import QoSProfile

from mt_nodes.engine.plan import ReplayedTopic


@dataclass(frozen=True)
class ArmInputs:
    """What an arm publishes to its stack.

    Attributes:
        topics: topic of the bag -> how the stack receives it.
        required: topics of the bag to which the stack must subscribe.
        profiles: QoS by topic of the stack, where the user wants another one than :mod:`~mt_nodes.nodes.qos` has.
    """

    topics: Mapping[str, ReplayedTopic]
    required: frozenset[str]
    profiles: Mapping[str, QoSProfile] = field(default_factory=dict)


@dataclass(frozen=True)
class ArmDomain:
    """The ROS domain of an arm; ``exclusive`` if nobody else can be in it, or if that was checked already."""

    number: int
    exclusive: bool = True
