# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import yaml
from mutations_for_tests import Shuffle
from recordings import bundles, drive, stamp, write_bag
from rosbags.highlevel import AnyReader

from mt_nodes import cdr
from mt_nodes.bag_reader import BagReader
from mt_nodes.bag_writer import SENSOR_QOS, STATIC_QOS, open_writer
from mt_nodes.bags import BagSource
from mt_nodes.evidence import evidence_name, write_evidence
from mt_nodes.frames import Bundle, Wire
from mt_nodes.pipeline import MutationPipeline
from mt_nodes.verdict import Pair

PAIR = Pair(0, 0, "shuffle", "0@keeps")
OUTPUTS = {
    "source": [Wire("/obstacles", cdr.STRING, stamp(0), cdr.encode_text("a car"))],
    "followup": [Wire("/obstacles", "my_msgs/msg/Obstacles", stamp(0), b"\0\1\0\0nothing")],
}


def evidence(path: Path, source: Bundle) -> tuple[dict[str, Wire], Bundle]:
    followup = MutationPipeline([Shuffle(drop=5)], 7, "shuffle").derive(source).followup.first
    write_evidence(path, PAIR, source, followup, OUTPUTS)
    with BagReader(path) as reader:
        return {w.topic: w for w in reader.wires()}, followup


def test_both_inputs_and_both_outputs_are_there(tmp_path: Path) -> None:
    with BagSource(write_bag(tmp_path / "bag", drive(1))) as bag:
        (source,) = bag
    path = tmp_path / "evidence" / evidence_name(PAIR)
    found, followup = evidence(path, source)
    sensors = ("points", "camera/image", "camera/camera_info", "obstacles")
    assert set(found) == {"/tf_static", "/mt/pair"} | {
        f"/mt/{arm}/{t}" for arm in ("source", "followup") for t in sensors
    }
    recorded = {w.topic: w.cdr for w in source.wires}
    assert found["/mt/source/points"].cdr == recorded["/points"]
    assert found["/mt/followup/camera/image"].cdr == recorded["/camera/image"]
    assert found["/mt/followup/points"].cdr == cdr.encode_cloud(followup.cloud())
    assert cdr.decode(cdr.STRING, found["/mt/pair"].cdr).data == str(PAIR)
    assert found["/mt/source/obstacles"].cdr == OUTPUTS["source"][0].cdr
    assert (found["/mt/followup/obstacles"].type, found["/mt/followup/obstacles"].cdr) == (
        "my_msgs/msg/Obstacles",
        OUTPUTS["followup"][0].cdr,
    )
    (frames,) = cdr.transforms_from_msg(cdr.decode(cdr.TF, found["/tf_static"].cdr), static=True)
    assert np.allclose(frames.matrix, source.transforms.lookup("base_link", "lidar"))
    assert {w.received_ns for w in found.values()} == {stamp(0)}  # type: ignore[attr-defined]
    assert [p.name for p in path.parent.iterdir()] == ["0_0_shuffle_0@keeps.mcap"]


def test_made_bundles_and_a_second_writing(tmp_path: Path) -> None:
    (source,) = bundles(1)
    first, _ = evidence(tmp_path / "e.mcap", source)
    second, _ = evidence(tmp_path / "e.mcap", source)
    assert {t: w.cdr for t, w in first.items()} == {t: w.cdr for t, w in second.items()}
    assert cdr.encode_cloud(source.cloud()) == first["/mt/source/points"].cdr


def test_what_both_arms_have_in_common_is_kept_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    noise = [cdr.encode_text(rng.bytes(1_500_000).hex()) for _ in range(2)]
    with open_writer(tmp_path / "e.mcap", compress=True) as bag:
        for arm in ("source", "followup"):
            for i, data in enumerate(noise):
                bag.write(bag.add(f"/mt/{arm}/{i}", cdr.STRING, [SENSOR_QOS]), stamp(0), data)
    assert (tmp_path / "e.mcap").stat().st_size < 1.2 * 2 * 1_500_000
    with BagReader(tmp_path / "e.mcap") as reader:
        assert {w.topic: w.cdr for w in reader.wires()} == {
            f"/mt/{arm}/{i}": noise[i] for arm in ("source", "followup") for i in (0, 1)
        }


def test_a_bare_file_says_of_itself_what_a_bag_directory_says(tmp_path: Path) -> None:
    """The metadata record is made here and not by ``rosbags``: it must be the same, but for the name of the file."""
    for path in (tmp_path / "bag", tmp_path / "bare.mcap"):
        with open_writer(path, compress=True) as bag:
            for i, (topic, qos) in enumerate((("/a", SENSOR_QOS), ("/b", STATIC_QOS), ("/c", SENSOR_QOS))):
                connection = bag.add(topic, cdr.STRING, [qos])
                bag.write(connection, stamp(i), cdr.encode_text(topic))
    written = yaml.safe_load((tmp_path / "bag" / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    (tmp_path / "bag" / "bag.mcap").rename(tmp_path / "theirs.mcap")
    told = []
    for path in (tmp_path / "theirs.mcap", tmp_path / "bare.mcap"):
        with BagReader(path) as reader:
            told.append([(w.topic, w.type, w.stamp_ns, w.cdr) for w in reader.wires()])
        with AnyReader([path]) as again:
            told[-1] += [(c.topic, c.msgtype, c.msgdef, c.digest, c.ext) for c in again.connections]
    assert told[0] == told[1] and len(told[0]) == 6
    text = (tmp_path / "bare.mcap").read_bytes().partition(b"serialized_metadata")[2]
    size = int.from_bytes(text[:4], "little")
    recorded = json.loads(text[4 : 4 + size])
    assert recorded == {**written, "relative_file_paths": ["bare.mcap"], "files": recorded["files"]}
    assert recorded["files"] == [{**written["files"][0], "path": "bare.mcap"}]
