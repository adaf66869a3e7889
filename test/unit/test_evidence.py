# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from mutations_for_tests import Shuffle
from recordings import bundles, drive, stamp, write_bag
from rosbags.highlevel import AnyReader

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.bags.bundles import BagSource, write_bundles
from mt_nodes.data.bags.reader import BagReader
from mt_nodes.data.bags.writer import SENSOR_QOS, STATIC_QOS, open_writer
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Bundle, Wire
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.arm import start
from mt_nodes.engine.evidence import evidence_name, read_source, write_evidence
from mt_nodes.engine.lockstep import Lockstep
from mt_nodes.engine.message_digests import sha256_of
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.engine.recorder import Recorder
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.mutations.stream.frame_mutations import FramesDelayed, FramesReordered, FramesRepeated
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.runs.replay.execute import in_process_arms
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

PAIR = Pair(0, 0, "shuffle", "0@keeps")
OUTPUTS = {
    "source": [Wire("/obstacles", codec.STRING, stamp(0), codec.encode_text("a car"))],
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
    assert set(found) == {"/tf_static", "/mt/pair", "/mt/transforms", "/mt/intensities"} | {
        f"/mt/{arm}/{t}" for arm in ("source", "followup") for t in sensors
    }
    recorded = {w.topic: w.cdr for w in source.wires}
    assert found["/mt/source/points"].cdr == recorded["/points"]
    assert found["/mt/followup/camera/image"].cdr == recorded["/camera/image"]
    assert found["/mt/followup/points"].cdr == codec.encode_cloud(followup.cloud())
    assert codec.decode(codec.STRING, found["/mt/pair"].cdr).data == str(PAIR)
    assert found["/mt/source/obstacles"].cdr == OUTPUTS["source"][0].cdr
    assert (found["/mt/followup/obstacles"].type, found["/mt/followup/obstacles"].cdr) == (
        "my_msgs/msg/Obstacles",
        OUTPUTS["followup"][0].cdr,
    )
    (frames,) = codec.transforms_from_msg(codec.decode(codec.TF, found["/tf_static"].cdr), static=True)
    assert np.allclose(frames.matrix, source.transforms.lookup("base_link", "lidar"))
    assert {w.received_ns for w in found.values()} == {stamp(0)}  # type: ignore[attr-defined]
    assert [p.name for p in path.parent.iterdir()] == ["0_0_shuffle_0@keeps.mcap"]


def test_the_source_is_read_back_as_it_was(tmp_path: Path) -> None:
    with BagSource(write_bag(tmp_path / "bag", drive(1)), require=("lidar", "camera", "camera_info")) as bag:
        (source,) = bag
    evidence(tmp_path / "e.mcap", source)
    topics = [message.topic for message in source.messages]
    again = read_source(tmp_path / "e.mcap", replace(PAIR, episode=2, bundle=5), topics)
    assert sha256_of(again) == sha256_of(source) and len(again.messages) == 3
    assert (again.episode, again.index, again.stamp_ns) == (2, 5, source.stamp_ns)
    assert {w.topic: w.cdr for w in again.wires} == {w.topic: w.cdr for w in source.wires if w.topic in topics}
    places = [tree.lookup("base_link", "lidar") for tree in (source.transforms, again.transforms)]
    assert np.array_equal(*places)
    with pytest.raises(InfrastructureError, match=r"e\.mcap: holds no /mt/source/other"):
        read_source(tmp_path / "e.mcap", PAIR, ["/other", *topics])


def test_made_bundles_and_a_second_writing(tmp_path: Path) -> None:
    (source,) = bundles(1)
    first, _ = evidence(tmp_path / "e.mcap", source)
    second, _ = evidence(tmp_path / "e.mcap", source)
    assert {t: w.cdr for t, w in first.items()} == {t: w.cdr for t, w in second.items()}
    assert codec.encode_cloud(source.cloud()) == first["/mt/source/points"].cdr


@pytest.mark.parametrize(
    ("mutation", "struck", "sent"),
    [
        # Number of the bundle, when it goes out after the source's instant, how much later it is stamped, in ms.
        (FramesRepeated(every=1), 1, [(1, 0.0, 0), (1, 0.0, 0)]),
        (FramesReordered(every=4, burst=2), 3, [(3, 0.0, 0), (1, 0.0, 0), (2, 0.0, 0)]),
        (FramesDelayed(every=1, delay_s=0.05), 2, [(2, 50.0, 0)]),
        (FramesDelayed(every=1, delay_s=0.05, stamps="new"), 2, [(2, 50.0, 50)]),
        (FramesRepeated(every=1, after_s=0.02), 2, [(2, 0.0, 0), (2, 20.0, 0)]),
    ],
)
def test_all_that_went_out_is_there_when_it_did(
    mutation: Mutation, struck: int, sent: list[tuple[int, float, int]], tmp_path: Path
) -> None:
    made, pipeline = bundles(6), MutationPipeline([mutation], 2, "stream")
    derived = [pipeline.derive(bundle) for bundle in made]
    i = next(i for i, d in enumerate(derived) if i >= struck and len(d.followup.bundles) == len(sent))
    followup, ms = derived[i].followup, 1_000_000
    write_evidence(tmp_path / "e.mcap", PAIR, made[i], followup.first, {}, sent=followup.bundles)
    with BagReader(tmp_path / "e.mcap") as reader:
        found = [w for w in reader.wires() if w.topic == "/mt/followup/points"]
    assert [w.cdr for w in found] == [codec.encode_cloud(bundle.cloud()) for _, bundle in followup.bundles]
    stamps = [codec.cloud_from_msg("/points", codec.decode(w.type, w.cdr)).stamp_ns for w in found]
    wanted = [(made[i - struck + n].stamp_ns, at, later) for n, at, later in sent]
    assert stamps == [stamp_ns + later * ms for stamp_ns, _, later in wanted]
    out = [w.received_ns - made[i].stamp_ns for w in found]
    assert out == sorted(set(out)), "a player keeps their order"
    assert [round(ns / ms, 3) for ns in out] == [at for _, at, _ in wanted]


def test_a_run_keeps_every_bundle_of_a_violated_pair(tmp_path: Path) -> None:
    write_bundles(tmp_path / "drive", generate_drive(2, lidar=replace(hdl_64e(), azimuths=600)))
    twice = {"id": "twice", "kind": "expected", "because": "x", "check": "obstacles_equal"}
    (tmp_path / "twice.yaml").write_text(json.dumps({**twice, "mutate": [{"frames_repeated": {"every": 1}}]}))
    asked = ReplayRequest((str(tmp_path / "drive"),), (str(tmp_path / "twice.yaml"),), faults=("same_cloud_is_stuck",))
    made = Run.create(asked, str(tmp_path / "out"))
    with Recorder(made, lambda line: None) as recorder:
        loop = Lockstep(replace(made.settings, mode="two_pass", seed=0), recorder)
        with ExitStack() as ending:
            arms = in_process_arms(made, ending)
            start(*arms)
            loop.run(made.episodes, *arms)
    with BagReader(tmp_path / "out" / "evidence" / "0_1_twice_0.mcap") as reader:
        topics = Counter(w.topic for w in reader.wires())
    assert (topics["/mt/source/sensing/lidar/points"], topics["/mt/followup/sensing/lidar/points"]) == (1, 2)


def test_what_both_arms_have_in_common_is_kept_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    noise = [codec.encode_text(rng.bytes(1_500_000).hex()) for _ in range(2)]
    with open_writer(tmp_path / "e.mcap", compress=True) as bag:
        for arm in ("source", "followup"):
            for i, data in enumerate(noise):
                bag.write(bag.add(f"/mt/{arm}/{i}", codec.STRING, [SENSOR_QOS]), stamp(0), data)
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
                connection = bag.add(topic, codec.STRING, [qos])
                bag.write(connection, stamp(i), codec.encode_text(topic))
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
