# SPDX-License-Identifier: Apache-2.0
"""QoS profiles that users override, in rosbag2's format."""

from __future__ import annotations

from pathlib import Path

import pytest
from rclpy.qos import DurabilityPolicy, HistoryPolicy, ReliabilityPolicy

from mt_nodes.errors import UsageError
from mt_nodes.nodes.qos import REPLAY, describe, load_overrides


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "qos.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_profiles_are_read(tmp_path: Path) -> None:
    text = "/a: {history: keep_all, reliability: best_effort, durability: transient_local}\n/b: {depth: 3}\n"
    profiles = load_overrides(written(tmp_path, text))
    assert profiles["/a"].history is HistoryPolicy.KEEP_ALL
    assert profiles["/a"].reliability is ReliabilityPolicy.BEST_EFFORT
    assert profiles["/a"].durability is DurabilityPolicy.TRANSIENT_LOCAL
    assert describe(profiles["/b"]) == "reliable, volatile, depth 3"
    assert profiles["/b"].history is REPLAY.history


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/a: 3", "expected a mapping"),
        ("/a: {dept: 3}", "did you mean 'depth'"),
        ("/a: {depth: 0}", "at least 1"),
        ("/a: {reliability: besteffort}", "did you mean 'best_effort'"),
        ("[]", "expected a mapping of keys"),
    ],
)
def test_a_wrong_file_is_told(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load_overrides(written(tmp_path, text))
