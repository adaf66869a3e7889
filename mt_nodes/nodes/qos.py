# SPDX-License-Identifier: Apache-2.0
"""Quality of service of every endpoint, by what it is for."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy


def _profile(reliability: ReliabilityPolicy, durability: DurabilityPolicy, depth: int) -> QoSProfile:
    return QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=depth, reliability=reliability, durability=durability)


#: Replayed sensor data: reliable and deep enough that lockstep loses nothing.
REPLAY = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 10)
#: Replayed latched data such as /tf_static.
LATCHED = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL, 10)
#: Taps on a live system: can never hold the publisher back.
LIVE_TAP = _profile(ReliabilityPolicy.BEST_EFFORT, DurabilityPolicy.VOLATILE, 1)
#: What a stack answers.
ANSWERS = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 100)
ANSWERS_BEST_EFFORT = _profile(ReliabilityPolicy.BEST_EFFORT, DurabilityPolicy.VOLATILE, 100)
#: /clock, as rclpy's own time source subscribes it.
CLOCK = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 100)
#: /mt/verdicts and /mt/ledger: a late reader still gets the run so far.
JOURNAL = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL, 1000)
#: /mt/diagnostics, /mt/metrics and markers.
STATUS = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 10)


def describe(profile: QoSProfile) -> str:
    """Return a profile in words, as the README's tables have it."""
    return f"{profile.reliability.name.lower()}, {profile.durability.name.lower()}, depth {profile.depth}"
