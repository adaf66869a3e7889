# SPDX-License-Identifier: Apache-2.0
"""Recordings with something wrong in them, and runs over them as a user types them."""

from __future__ import annotations

import contextlib
import io
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from recordings import Recorded, stamp, write_bag

from mt_nodes.cli.main import main
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Cloud
from mt_nodes.data.transforms import Transform, TransformTree, pose_matrix
from mt_nodes.engine.journal import read_journal

INPROCESS = ("--transport", "inprocess", "--relations", "noise_outside_roi_10")
HEIGHT_M = 1.7
TREE = TransformTree([Transform("base_link", "lidar", pose_matrix((0.0, 0.0, HEIGHT_M), (0, 0, 0, 1)))])
POINTS = 2000
KITTI_POINT = np.dtype([(name, "<f4") for name in ("x", "y", "z", "intensity")])


@dataclass(frozen=True)
class Ended:
    """How a run ended: exit code, what was printed, and what is in its directory (None and empty where nothing is)."""

    code: int
    out: str
    error: str
    directory: Path
    summary: dict[str, Any] | None
    lines: tuple[dict[str, Any], ...]

    @property
    def outcomes(self) -> Counter[str]:
        return Counter(line["outcome"] for line in self.lines)

    @property
    def reasons(self) -> Counter[str]:
        """How many pairs ended how and why; those that hold are told together."""
        rows = [(line["outcome"], "" if line["outcome"] == "HOLDS" else line["reason"]) for line in self.lines]
        return Counter(f"{outcome}: {reason}".removesuffix(": ") for outcome, reason in rows)

    @property
    def told(self) -> str:
        """All that a user is told of it: exit code, error, why the run ended so, and what pairs came to."""
        rows = [f"exit {self.code}", *self.error.strip().splitlines()]
        rows += [self.summary["exit_why"]] if self.summary else []
        return "\n".join([*rows, *(f"  {count} {reason}" for reason, count in sorted(self.reasons.items()))])

    def reconciles(self, pairs: int) -> bool:
        """Whether every pair owed ended exactly once, and the summary says so."""
        named = {line["pair"] for line in self.lines}
        assert self.summary is not None, self.told
        return len(named) == len(self.lines) == pairs == self.summary["offered"] == sum(self.outcomes.values())


def typed(*words: object) -> tuple[int, str, str]:
    """Type a command; return exit code, standard output and standard error."""
    said, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(error):
        try:
            code = main([str(word) for word in words])
        except SystemExit as ended:
            code = int(ended.code or 0)
    return code, said.getvalue(), error.getvalue()


def replay(directory: Path, *words: object) -> Ended:
    """Run ``mt replay`` in process, into ``directory`` unless the words say otherwise."""
    asked = [str(word) for word in words]
    code, said, error = typed("replay", *asked, *INPROCESS, *(() if "--out" in asked else ("--out", directory)))
    summary, journal = directory / "summary.json", directory / "result.jsonl"
    lines = [line for line in read_journal(journal) if line["type"] == "verdict"] if journal.is_file() else []
    whole = None
    with contextlib.suppress(OSError, ValueError):  # not there, or cut short by a full disk
        whole = json.loads(summary.read_text())
    return Ended(code, said, error, directory, whole, tuple(lines))


def scan(i: float, count: int = POINTS) -> Cloud:
    """A level disc of returns around the sensor, and two obstacles ahead."""
    rng = np.random.default_rng(int(i * 1000))
    azimuth, ground = rng.uniform(-np.pi, np.pi, count), rng.uniform(3.0, 60.0, count)
    xyz = np.column_stack([ground * np.cos(azimuth), ground * np.sin(azimuth), np.full(count, -HEIGHT_M)])
    for rows, place in ((slice(0, count // 5), (12.0, 3.0)), (slice(count // 5, 2 * count // 5), (20.0, -4.0))):
        low = np.array([*place, -HEIGHT_M])
        xyz[rows] = rng.uniform(low, low + np.array([1.5, 1.0, 1.6]), (count // 5, 3))
    points = np.empty(count, KITTI_POINT)
    for axis, column in zip("xyz", xyz.T, strict=True):
        points[axis] = column
    points["intensity"] = rng.uniform(0, 1, count)
    return Cloud("/points", stamp(i), "lidar", points)


def message(i: float, cloud: Cloud | None = None, received: float | None = None, **changes: Any) -> Recorded:
    """A recorded cloud whose message says other things than it should; ``stamp_ns`` changes the header's."""
    msg = codec.decode(codec.POINT_CLOUD, codec.encode_cloud(cloud or scan(i)))
    stamp_ns = changes.pop("stamp_ns", msg.header.stamp.sec * 10**9 + msg.header.stamp.nanosec)
    msg.header.stamp.sec, msg.header.stamp.nanosec = divmod(int(stamp_ns), 10**9)
    msg.header.frame_id = changes.pop("frame_id", msg.header.frame_id)
    for name, value in changes.items():
        setattr(msg, name, value)
    return Recorded(
        "/points", codec.POINT_CLOUD, stamp(i if received is None else received), codec.encode(codec.POINT_CLOUD, msg)
    )


def fields(*rows: tuple[str, int, int] | tuple[str, int, int, int]) -> list[Any]:
    """Point fields: name, offset, datatype, elements."""
    make = codec.typestore().types["sensor_msgs/msg/PointField"]
    return [make(name=n, offset=o, datatype=d, count=c[0] if c else 1) for n, o, d, *c in rows]


def static(at: float = 0.0) -> Recorded:
    return Recorded("/tf_static", codec.TF, stamp(at), codec.encode_transforms(TREE, stamp(at)))


def bag(path: Path, rows: Iterable[Recorded], transforms: bool = True) -> Path:
    """A bag of these messages in order of reception, with the static transform unless told otherwise."""
    all_rows = [*([static()] if transforms else []), *rows]
    return write_bag(path, sorted(all_rows, key=lambda row: row.received_ns))


def scans(count: int, **changes: Any) -> list[Recorded]:
    return [message(i, **changes) for i in range(count)]
