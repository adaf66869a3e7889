# SPDX-License-Identifier: Apache-2.0
"""Quality of service of every endpoint, by what it is for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from mt_nodes.base.errors import UsageError
from mt_nodes.base.yaml_files import read_mapping, refuse_unknown


def _profile(reliability: ReliabilityPolicy, durability: DurabilityPolicy, depth: int) -> QoSProfile:
    return QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=depth, reliability=reliability, durability=durability)


#: Replayed sensor data: reliable and deep enough that lockstep loses nothing.
REPLAY = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 10)
#: Replayed latched data such as /tf_static, of which a robot has one message a broadcaster.
LATCHED = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL, 100)
#: Taps on a live system: can never hold the publisher back.
LIVE_TAP = _profile(ReliabilityPolicy.BEST_EFFORT, DurabilityPolicy.VOLATILE, 1)
#: The same where every message counts: so many may come while nobody takes one, be it for a fifth of a second.
SENSOR_TAP = _profile(ReliabilityPolicy.BEST_EFFORT, DurabilityPolicy.VOLATILE, 6)
#: Taps of what a live system publishes in bursts (/tf) or in several messages at once: best effort as well.
LIVE_BURSTS = _profile(ReliabilityPolicy.BEST_EFFORT, DurabilityPolicy.VOLATILE, 100)
#: What a stack answers.
ANSWERS = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 100)
ANSWERS_BEST_EFFORT = LIVE_BURSTS
#: /clock, as rclpy's own time source subscribes it.
CLOCK = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 100)
#: /mt/verdicts and /mt/ledger: a late reader still gets the run so far.
JOURNAL = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL, 1000)
#: /mt/diagnostics, /mt/metrics and markers.
STATUS = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 10)


_KEYS = ("history", "depth", "reliability", "durability")
_POLICIES: dict[str, dict[str, Any]] = {
    "history": {"keep_last": HistoryPolicy.KEEP_LAST, "keep_all": HistoryPolicy.KEEP_ALL},
    "reliability": {"reliable": ReliabilityPolicy.RELIABLE, "best_effort": ReliabilityPolicy.BEST_EFFORT},
    "durability": {"volatile": DurabilityPolicy.VOLATILE, "transient_local": DurabilityPolicy.TRANSIENT_LOCAL},
}


def load_overrides(path: Path) -> dict[str, QoSProfile]:
    """Read profiles by topic from YAML in rosbag2's format for ``--qos-profile-overrides-path``.

    ``history`` (keep_last, keep_all), ``depth``, ``reliability`` (reliable, best_effort) and ``durability`` (volatile,
    transient_local) are taken; what is left out is as in :data:`REPLAY`.
    Raises UsageError: naming the topic, what was got and what was expected.
    """
    return {str(topic): _override(row, f"{path}: {topic}") for topic, row in read_mapping(path).items()}


def _override(row: Any, where: str) -> QoSProfile:
    if not isinstance(row, Mapping):
        raise UsageError(f"{where}: got {row!r}, expected a mapping such as {{reliability: best_effort, depth: 5}}")
    refuse_unknown(row, _KEYS, where)
    depth = row.get("depth", REPLAY.depth)
    if not isinstance(depth, int) or isinstance(depth, bool) or depth < 1:
        raise UsageError(f"{where}.depth: got {depth!r}, expected a whole number of at least 1")
    chosen = {name: getattr(REPLAY, name) for name in _POLICIES}
    for name, known in _POLICIES.items():
        if name in row:
            refuse_unknown({str(row[name]): None}, known, f"{where}.{name}")
            chosen[name] = known[str(row[name])]
    return QoSProfile(depth=depth, **chosen)


def describe(profile: QoSProfile) -> str:
    """Return a profile in words, as the tables of docs/nodes.md have it."""
    return f"{profile.reliability.name.lower()}, {profile.durability.name.lower()}, depth {profile.depth}"
