# SPDX-License-Identifier: Apache-2.0
"""Over topics as well, an exception in a plugin, a callable or an adapter ends its pair, not the run."""

from __future__ import annotations

from pathlib import Path

from failing_plugins import RELATIONS, drive, replay, write_relations, write_stack
from made_runs import no_pages

SECOND = "stamp_ns == 1_700_000_000_100_000_000"
ADAPTER = """
import numpy as np
from geometry_msgs.msg import PolygonStamped
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.message_adapter import StampedAdapter


class FailingPolygons(StampedAdapter):
    \"\"\"Reads no obstacle, and fails at one instant.\"\"\"

    type = "geometry_msgs/msg/PolygonStamped"
    role = "detections"

    def decode(self, message):
        if message.header.stamp.nanosec == 100_000_000:
            raise KeyError("no key")
        return Detections.none(message.header.frame_id, self.stamp_ns(message))

    def encode(self, said):
        message = PolygonStamped()
        message.header.frame_id = said.frame_id
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(said.stamp_ns, 10**9)
        return message
"""


def test_plugins_and_a_callable_end_the_pairs_that_they_fail_at(tmp_path: Path) -> None:
    """The callable raises at the third of four inputs, plugins fail at the second."""
    third = SECOND.replace("100", "200", 1)
    names = ("holds", "draw", "apply", "guarantee", "judge", "unmet", "series_of_failing")
    assert set(names) <= set(RELATIONS)
    with no_pages():
        stack = write_stack(tmp_path, "raises_at_third", third)
        files = write_relations(tmp_path, names)
        code, said, lines = replay(tmp_path, drive(tmp_path, 4), stack, files, "--transport", "ros")
    assert code == 4, said
    for name in names[:-1]:
        second = "HOLDS" if name == "holds" else "ERROR"
        assert [lines[name][f"0/{i}/{name}/0"]["outcome"] for i in range(4)] == ["HOLDS", second, "ERROR", "HOLDS"]
        assert "raised ValueError: no idea (raises_at_third.py:4)" in lines[name][f"0/2/{name}/0"]["reason"]
    assert [line["outcome"] for line in lines["series_of_failing"].values()] == ["ERROR"]
    assert "mutation 'failing' failed in apply (mine.py:" in lines["apply"]["0/1/apply/0"]["reason"]


def test_an_adapter_that_fails_ends_the_pairs_of_that_input(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "polygons.py").write_text(ADAPTER)
    outputs = {"detections": {"topic": "/polygons", "type": "geometry_msgs/msg/PolygonStamped"}}
    with no_pages():
        stack = write_stack(tmp_path, "never_raises", "False", outputs=outputs)
        files = write_relations(tmp_path, ("holds",))
        code, said, lines = replay(tmp_path, drive(tmp_path), stack, files, "--transport", "ros")
    assert code == 4, said
    for name in ("holds", "identity", "points_permuted"):
        assert [line["outcome"] for line in lines[name].values()] == ["HOLDS", "ERROR", "HOLDS"]
    reason = lines["holds"]["0/1/holds/0"]["reason"]
    assert reason.startswith("adapter 'failing_polygons' failed in decode (polygons.py:") and "no key" in reason
