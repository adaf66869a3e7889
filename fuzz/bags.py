# SPDX-License-Identifier: Apache-2.0
"""Bags: files of every storage with bytes, records, chunks and rows changed, read and replayed in process."""

from __future__ import annotations

import json
import struct
import tempfile
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.rosbag2.enums import CompressionFormat, CompressionMode
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from fuzz import clouds
from fuzz.cases import Case, Span, Target, edited
from fuzz.invariant import require
from mt_nodes.base.errors import ExitCode, InfrastructureError
from mt_nodes.data.bags.bundles import BagSource, Unreadable
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Cloud
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.runs.replay.execute import execute, in_process_arms
from mt_nodes.runs.replay.replay_run import Run

NAME = "fuzzed"
RELATION = "noise_outside_roi_10"
JUDGED = 3  # the relation itself, control and sham
BUNDLES, POINTS = 4, 12
PERIOD_NS = 100_000_000
STACK = {"callable": "fuzz.bags:detect", "stateless": True, "points_frame": "base_link"}
SUFFIXES = {"mcap": ".mcap", "mcap_compressed": ".mcap", "sqlite3": ".db3", "ros1": ".bag", "metadata": ".yaml"}
_PAGE = 4096


def detect(points: Any) -> Any:
    """Report one car ahead of the ego: a stack that cannot be wrong and takes no time."""
    return np.array([[12.0, 3.0, 0.5, 4.0, 2.0, 1.5, 0.0]])


def cases() -> st.SearchStrategy[Case]:
    """Draw a storage, and a sound file of it with edits."""
    return st.sampled_from(tuple(SUFFIXES)).flatmap(
        lambda kind: edited(sound(kind), _spans(kind)).map(lambda data: Case(kind, data))
    )


@lru_cache
def sound(kind: str) -> bytes:
    """Return the file of a small drive (of ``metadata``: what stands beside an MCAP file)."""
    with tempfile.TemporaryDirectory(prefix="mt_fuzz_") as place:
        path = Path(place) / NAME
        if kind == "ros1":
            _write_ros1(path.with_suffix(".bag"))
            return path.with_suffix(".bag").read_bytes()
        _write(path, kind)
        return (path / "metadata.yaml" if kind == "metadata" else path / f"{NAME}{SUFFIXES[kind]}").read_bytes()


def _drive() -> list[tuple[str, str, int, bytes]]:
    """Static transforms, then one cloud a period: topic, type, time of reception, bytes."""
    rng = np.random.default_rng(1)
    rows = [("/tf_static", codec.TF, 0, codec.encode_transforms(clouds.TREE, 0))]
    for i in range(BUNDLES):
        points = np.zeros(POINTS, np.dtype([(name, "<f4") for name in ("x", "y", "z", "intensity")]))
        for name in "xyz":
            points[name] = rng.uniform(-20, 20, POINTS)
        cloud = Cloud(clouds.TOPIC, (i + 1) * PERIOD_NS, "lidar", points)
        rows.append((cloud.topic, codec.POINT_CLOUD, cloud.stamp_ns, codec.encode_cloud(cloud)))
    return rows


def _write(path: Path, kind: str) -> None:
    bag = Writer(path, version=8, storage_plugin=StoragePlugin.SQLITE3 if kind == "sqlite3" else StoragePlugin.MCAP)
    if kind == "mcap_compressed":
        bag.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    with bag:
        topics: dict[str, Any] = {}
        for topic, name, received_ns, data in _drive():
            if topic not in topics:
                topics[topic] = bag.add_connection(topic, name, typestore=codec.typestore())
            bag.write(topics[topic], received_ns, data)


def _write_ros1(path: Path) -> None:
    noetic = get_typestore(Stores.ROS1_NOETIC)
    noetic.register(get_types_from_msg("geometry_msgs/TransformStamped[] transforms\n", codec.TF))
    with Writer1(path) as bag:
        topics: dict[str, Any] = {}
        for topic, name, received_ns, data in _drive():
            if topic not in topics:
                topics[topic] = bag.add_connection(topic, name, typestore=noetic)
            bag.write(topics[topic], received_ns, codec.typestore().cdr_to_ros1(data, name))


@lru_cache
def _spans(kind: str) -> tuple[Span, ...]:
    """Where the parts of a sound file begin and end: records, pages, lines."""
    data = sound(kind)
    if kind.startswith("mcap"):
        return tuple(_mcap_records(data))
    if kind == "ros1":
        return tuple(_ros1_records(data))
    if kind == "sqlite3":
        return tuple((at, at + _PAGE) for at in range(0, len(data), _PAGE))
    ends = np.cumsum([len(line) for line in data.splitlines(keepends=True)]).tolist()
    return tuple(zip([0, *ends], ends, strict=False))


def _mcap_records(data: bytes) -> list[Span]:
    """Records of the MCAP specification: operation code, length, content; between two magic words."""
    spans, at = [], 8
    while at < len(data) - 8:
        end = at + 9 + int.from_bytes(data[at + 1 : at + 9], "little")
        spans.append((at, end))
        at = end
    return spans


def _ros1_records(data: bytes) -> list[Span]:
    """Records of the ROS 1 bag format 2.0: header length, header, data length, data."""
    spans, at = [], data.index(b"\n") + 1
    while at < len(data):
        end = at
        for _ in range(2):
            end += 4 + struct.unpack_from("<I", data, end)[0]
        spans.append((at, end))
        at = end
    return spans


def check(case: Case, place: Path) -> str:
    """Read all there is, replay it, and hold the totals against what was read."""
    path = _put(case, place)
    readable, unreadable, damage = _read(path)
    stack = place / "stack.yaml"
    stack.write_text(json.dumps(STACK), encoding="utf-8")
    request = ReplayRequest((str(path),), (RELATION,), str(stack), transport="inprocess")
    run = Run.create(request, str(place / "out"))
    summary = execute(run, lambda ending: in_process_arms(run, ending), lambda line: None, lambda verdicts: None)
    _reconciles(run, summary, readable, unreadable, damage)
    return f"replayed, exit {summary['exit_code']}"


def _put(case: Case, place: Path) -> Path:
    if case.kind != "metadata":
        path = (place / NAME).with_suffix(SUFFIXES[case.kind])
        path.write_bytes(case.data)
        return path
    path = place / NAME
    path.mkdir()
    (path / f"{NAME}.mcap").write_bytes(sound("mcap"))
    (path / "metadata.yaml").write_bytes(case.data)
    return path


def _read(path: Path) -> tuple[set[int], set[int], str]:
    """Return numbers of bundles that can be read, of those that cannot, and what of the bag is damaged."""
    numbers: dict[bool, set[int]] = {True: set(), False: set()}
    with BagSource(path) as source:
        counted = source.info[source.lead].count
        try:
            for found in source.readings():
                bad = isinstance(found, Unreadable)
                numbers[not bad].add((found.bundle if isinstance(found, Unreadable) else found).index)
        except InfrastructureError as error:
            return numbers[True], numbers[False], str(error)
        read = len(numbers[True]) + len(numbers[False])
        require(read >= counted, f"{read} of {counted} clouds that the bag counts were read, and nobody is told")
    return numbers[True], numbers[False], ""


def _reconciles(run: Run, summary: dict[str, Any], readable: set[int], unreadable: set[int], damage: str) -> None:
    lines = [line for line in read_journal(run.out / "result.jsonl") if line["type"] == "verdict"]
    pairs = [line["pair"] for line in lines]
    require(len(set(pairs)) == len(pairs), "a pair has two verdicts")
    outcomes = Counter(line["outcome"] for line in lines)
    told = {name: count for name, count in summary["outcomes"].items() if count}
    require(dict(outcomes) == told and summary["offered"] == len(pairs), f"{told} told of {dict(outcomes)}")
    ended_early = "usage" in summary["exit_why"] or summary["exit_code"] == ExitCode.USAGE
    owed = JUDGED * (len(readable) + len(unreadable))
    require(len(pairs) == owed or ended_early, f"{len(pairs)} verdicts of {owed} pairs offered")
    for line in lines:
        bundle = int(line["pair"].split("/")[1])
        require(bundle in readable or line["outcome"] == "ERROR", f"{line['pair']} is {line['outcome']}, unread")
    if damage or unreadable:
        require(summary["exit_code"] != ExitCode.PASS, "exit 0 although something could not be read")
        require(summary["exit_code"] == ExitCode.INFRASTRUCTURE or ended_early, f"exit {summary['exit_code']}")


TARGET = Target("bags", tuple(SUFFIXES), cases, sound, check, NAME)
