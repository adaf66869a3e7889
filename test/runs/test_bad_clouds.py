# SPDX-License-Identifier: Apache-2.0
"""Clouds that are not as they should be: each ends in an outcome with its reason, and the run goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import snapshots
from bad_bags import KITTI_POINT, POINTS, bag, fields, message, replay, scan, scans, static
from recordings import Recorded, stamp

from mt_nodes.data.messages import Cloud

COORDINATES = (("x", 0, 7), ("y", 4, 7), ("z", 8, 7))
NOTHING = np.empty(0, np.uint8)
HUGE = 2**32 - 1


def as_type(kind: str, **layout: Any) -> Cloud:
    """The second scan in another layout."""
    dtype = np.dtype({"names": [*"xyz"], "formats": [kind] * 3, **layout})
    points = np.zeros(POINTS, dtype)
    for axis in "xyz":
        points[axis] = scan(1).points[axis]
    return replace(scan(1), points=points)


def spoilt(height: int = 1) -> Cloud:
    """The second scan with points that are no points, and an intensity that is none."""
    points = scan(1).points.copy()
    points["x"][900:950], points["y"][950:960], points["z"][960:970] = np.nan, np.inf, -np.inf
    points["intensity"][980:990] = np.nan
    return replace(scan(1), points=points, height=height)


def everywhere(value: float) -> Cloud:
    points = np.full(POINTS, value, np.dtype([(n, "<f4") for n in KITTI_POINT.names or ()]))
    return replace(scan(1), points=points)


Case = tuple[dict[str, Any], dict[str, int]]
KEPT = {"HOLDS": 9}
#: What is wrong with the second cloud of three -> how the nine pairs end. Six are those of its neighbours.
CASES: dict[str, Case] = {
    "as it should be": ({}, KEPT),
    "float64": ({"cloud": as_type("<f8")}, KEPT),
    "big-endian": ({"cloud": as_type(">f4")}, KEPT),
    "padding": ({"cloud": as_type("<f4", offsets=[4, 12, 20], itemsize=32)}, KEPT),
    "NaN and infinite points": ({"cloud": spoilt()}, KEPT),
    "organised, with empty returns": ({"cloud": spoilt(height=20)}, KEPT),
    "organised, without empty returns": ({"cloud": replace(scan(1), height=20)}, {"NOT_APPLICABLE": 1}),
    "no points": ({"width": 0, "row_step": 0, "data": NOTHING}, {"NOT_APPLICABLE": 3}),
    "no rows": ({"height": 0, "data": NOTHING}, {"NOT_APPLICABLE": 3}),
    "no rows, though there is data": ({"height": 0}, {"ERROR": 3}),
    "no point is finite": ({"cloud": everywhere(np.nan)}, {"NOT_APPLICABLE": 3}),
    "every point is too far": ({"cloud": everywhere(1e38)}, {"NOT_APPLICABLE": 3}),
    "no fields": ({"fields": []}, {"ERROR": 3}),
    "no z": ({"fields": fields(*COORDINATES[:2])}, {"ERROR": 3}),
    "a field twice": ({"fields": fields(*COORDINATES, ("x", 12, 7))}, {"ERROR": 3}),
    "coordinates that overlap": ({"fields": fields(("x", 0, 7), ("y", 2, 7), ("z", 8, 7))}, {"ERROR": 3}),
    "coordinates in one place": ({"fields": fields(("x", 0, 7), ("y", 0, 7), ("z", 0, 7))}, {"ERROR": 3}),
    "a field over a coordinate": ({"fields": fields(*COORDINATES, ("rgb", 8, 7))}, {"ERROR": 3}),
    "other fields that overlap": ({"fields": fields(*COORDINATES, ("rgb", 12, 7), ("rgba", 12, 6))}, KEPT),
    "a coordinate of two elements": ({"fields": fields(("x", 0, 7, 2), ("y", 8, 7), ("z", 12, 7))}, {"ERROR": 3}),
    "a field of four elements": ({"fields": fields(*COORDINATES, ("normal", 12, 2, 4))}, KEPT),
    "a field of no element": ({"fields": fields(*COORDINATES, ("ring", 12, 6, 0))}, KEPT),
    "a field of four billion elements": ({"fields": fields(*COORDINATES, ("a", 12, 7, HUGE))}, {"ERROR": 3}),
    "a field far beyond the point": ({"fields": fields(*COORDINATES, ("a", HUGE, 7))}, {"ERROR": 3}),
    "a field without a name": ({"fields": fields(*COORDINATES, ("", 12, 7))}, KEPT),
    "a datatype that is none": ({"fields": fields(*COORDINATES, ("a", 12, 9))}, {"ERROR": 3}),
    "point_step of nothing": ({"point_step": 0}, {"ERROR": 3}),
    "point_step too small": ({"point_step": 12}, {"ERROR": 3}),
    "point_step too large": ({"point_step": 20}, {"ERROR": 3}),
    "point_step of four billion": ({"point_step": HUGE, "width": 0, "row_step": 0, "data": NOTHING}, {"ERROR": 3}),
    "row_step too small": ({"row_step": 100}, {"ERROR": 3}),
    "row_step too large": ({"row_step": 100_000}, {"ERROR": 3}),
    "less data than points": ({"data": np.zeros(100, np.uint8)}, {"ERROR": 3}),
    "four billion points declared": ({"width": HUGE}, {"ERROR": 3}),
    "a square of them": ({"width": HUGE, "height": HUGE, "row_step": HUGE}, {"ERROR": 3}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_cloud_ends_in_an_outcome_and_the_run_goes_on(tmp_path: Path, name: str) -> None:
    changes, ends = CASES[name]
    made = bag(tmp_path / "bag", [message(0), message(1, **changes), message(2)])
    ended = replay(tmp_path / "out", made)
    assert ended.reconciles(9)
    others = sum(n for outcome, n in ends.items() if outcome != "HOLDS")
    assert dict(ended.outcomes) == ({**ends, "HOLDS": 9 - others} if others else KEPT), ended.told
    assert ended.code == (4 if "ERROR" in ends else 3), "too few pairs for more than INCONCLUSIVE"
    assert not ended.error and (ended.directory / "report.html").is_file()
    assert snapshots.matches(f"cloud: {name}", ended.told, tmp_path)


def torn(to: int) -> Recorded:
    whole = message(1)
    return whole._replace(cdr=whole.cdr[:to])


def stamped(*stamps: float | int) -> list[Recorded]:
    """Clouds in a row with these stamps: periods of the recording, or whole nanoseconds."""
    named = [stamp(s) if isinstance(s, float) else s for s in stamps]
    return [message(i, stamp_ns=s) for i, s in enumerate(named)]


#: Recordings -> how many bundles they come to.
RECORDINGS: dict[str, tuple[Callable[[], list[Recorded]], int]] = {
    "a message cut in its header": (lambda: [message(0), torn(3), message(2)], 3),
    "an empty message": (lambda: [message(0), torn(0), message(2)], 3),
    "a message cut in its data": (lambda: [message(0), torn(400), message(2)], 3),
    "the first message cut": (lambda: [message(0)._replace(cdr=message(0).cdr[:50]), message(1)], 2),
    "stamps that repeat": (lambda: stamped(0.0, 1.0, 1.0, 1.0, 2.0), 5),
    "stamps that go back": (lambda: stamped(3.0, 4.0, 1.0, 2.0, 5.0), 5),
    "stamps of zero": (lambda: stamped(0, 0, 0, 0), 4),
    "stamps before 1970": (lambda: stamped(-(10**9), -5, 0.0), 3),
    "stamps that jump by a day": (lambda: stamped(0.0, 1.0, 864_001.0, 864_002.0), 4),
    "clouds without a point": (lambda: scans(3, width=0, row_step=0, data=NOTHING), 3),
    "a frame with a slash": (lambda: scans(3, frame_id="/lidar"), 3),
    "a frame that is unknown in mid-run": (lambda: [message(0), message(1, frame_id="nowhere"), message(2)], 3),
    "the transform comes last": (lambda: [*scans(3), static(2.5)], 3),
}


@pytest.mark.parametrize("name", RECORDINGS)
def test_each_bundle_is_judged_once(tmp_path: Path, name: str) -> None:
    make, bundles = RECORDINGS[name]
    ended = replay(tmp_path / "out", bag(tmp_path / "bag", make(), transforms="transform" not in name))
    assert ended.reconciles(3 * bundles)
    assert ended.code in (3, 4) and not ended.error
    assert snapshots.matches(f"cloud: {name}", ended.told, tmp_path)


#: What cannot be gone on with: nothing is written when it is so from the beginning, otherwise there is a summary.
REFUSED: dict[str, tuple[Callable[[], list[Recorded]], bool, int]] = {
    "no cloud has a z": (lambda: scans(2, fields=fields(*COORDINATES[:2])), True, 0),
    "every message is cut": (lambda: [row._replace(cdr=row.cdr[:50]) for row in scans(2)], True, 0),
    "no transform at all": (lambda: scans(3), False, 0),
    "no transform to the cloud's frame": (lambda: scans(3, frame_id="nowhere"), True, 0),
    "no frame": (lambda: scans(3, frame_id=""), True, 0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_gone_on_with_is_told(tmp_path: Path, name: str) -> None:
    make, transforms, judged = REFUSED[name]
    ended = replay(tmp_path / "out", bag(tmp_path / "bag", make(), transforms))
    assert ended.code == (4 if "cut" in name else 2) and "Traceback" not in ended.error
    assert len(ended.lines) == judged and bool(ended.summary) == bool(judged)
    if ended.summary:
        assert ended.summary["exit_code"] == 2 and ended.summary["usage"] in ended.summary["exit_why"]
        assert "--transforms FILE" in ended.out and (ended.directory / "report.html").is_file()
    assert snapshots.matches(f"cloud: {name}", ended.told, tmp_path)


@pytest.mark.long  # smaller ones are judged each day
def test_five_million_points_are_judged(tmp_path: Path) -> None:
    many = np.concatenate([scan(i / 1000, 50_000).points for i in range(100)])
    ended = replay(tmp_path / "out", bag(tmp_path / "bag", [message(0, replace(scan(0), points=many))]))
    assert ended.reconciles(3) and ended.outcomes == {"HOLDS": 3}, ended.told


def test_no_snapshot_is_left_over() -> None:
    assert not snapshots.stale("cloud", (f"cloud: {name}" for name in (*CASES, *RECORDINGS, *REFUSED)))
