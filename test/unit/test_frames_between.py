# SPDX-License-Identifier: Apache-2.0
"""Frames of a camera between two instants: changed by the instant's draw, proved, made again, kept in evidence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.wire import encode_message
from mt_nodes.data.messages import Bundle, Image, Wire
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.evidence import read_evidence, read_source, write_evidence
from mt_nodes.engine.message_digests import sha256_of_followup
from mt_nodes.relations.frames_between import prove_between
from mt_nodes.relations.mutations.base import Followup, Mutation
from mt_nodes.relations.mutations.camera.image_tones import BrightnessChanged
from mt_nodes.relations.mutations.camera.image_warps import ImageMirrored
from mt_nodes.relations.mutations.camera.road_painted import RoadPainted
from mt_nodes.relations.mutations.joint.fog_dust_smoke import Fog
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.stacks.topic_sync import Joiner
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive

EARLIER_NS = 33_000_000


@pytest.fixture(scope="module")
def with_frame() -> Bundle:
    """An instant and the frame that its camera took before it: another picture."""
    first, bundle = generate_drive(2, camera=CameraSensor(160, 120))
    [now], [then] = bundle.images, first.images
    rows = [replace(then, stamp_ns=now.stamp_ns - EARLIER_NS), *bundle.messages]
    wires = tuple(Wire(m.topic, codec.type_of(m), m.stamp_ns, encode_message(m)) for m in rows)
    return replace(bundle, wires=wires, loose=wires[:1])


def _picture(wire: Wire) -> Image:
    return codec.image_from_msg(wire.topic, codec.decode(wire.type, wire.cdr))


@pytest.mark.parametrize("mutation", [BrightnessChanged(), Fog()])
def test_one_draw_changes_the_frame_between_as_it_does_the_instant_s(mutation: Mutation, with_frame: Bundle) -> None:
    pipeline = MutationPipeline([mutation], 3, "r")
    derived = pipeline.derive(with_frame)
    assert derived.broken is None
    [frame] = derived.followup.first.loose
    assert frame.changed and frame in derived.followup.first.wires
    before, after = _picture(with_frame.loose[0]), _picture(frame)
    assert after.stamp_ns == before.stamp_ns and (after.pixels != before.pixels).mean() > 0.5
    # As if it had been the picture of the instant.
    [alone] = mutation.apply(replace(with_frame, images=(before,), loose=()), derived.draws[0]).first.images
    assert (alone.pixels == after.pixels).all()
    assert sha256_of_followup(pipeline.rebuild(with_frame, derived.draws)) == sha256_of_followup(derived.followup)
    forgotten = Followup(((0, replace(derived.followup.first, loose=with_frame.loose)),))
    assert "a frame of no instant: " in str(prove_between(mutation, with_frame, forgotten, derived.draws[0]))
    gone = Followup(((0, replace(derived.followup.first, loose=())),))
    assert str(prove_between(mutation, with_frame, gone, derived.draws[0])).endswith("is gone")


@pytest.mark.parametrize(
    ("mutation", "says"),
    [(RoadPainted(), "-33 ms off .* would pass as it is"), (ImageMirrored(), "whose calibration would have to change")],
)
def test_what_does_not_hold_for_the_frame_between_is_refused(mutation: Mutation, says: str, with_frame: Bundle) -> None:
    with pytest.raises(NotApplicable, match=says):
        MutationPipeline([mutation], 3, "r").derive(with_frame)


def test_evidence_tells_the_frame_between_from_the_instant_s(tmp_path: Path, with_frame: Bundle) -> None:
    followup = MutationPipeline([BrightnessChanged()], 3, "r").derive(with_frame).followup
    path, pair = tmp_path / "pair.mcap", Pair(0, 1, "r", "0")
    write_evidence(path, pair, with_frame, followup.first, {})
    topics = [m.topic for m in with_frame.messages]
    source = read_source(path, pair, topics)
    assert [w.stamp_ns for w in source.loose] == [w.stamp_ns for w in with_frame.loose]
    assert (source.images[0].pixels == with_frame.images[0].pixels).all()
    again = MutationPipeline([BrightnessChanged()], 3, "r").derive(source).followup
    assert sha256_of_followup(again) == sha256_of_followup(followup)
    assert (read_evidence(path, pair).followup.images[0].pixels == followup.first.images[0].pixels).all()


def test_the_joiner_hands_out_what_it_passed_over() -> None:
    joiner = Joiner[Wire](["lidar", "camera"], 17)
    found = []
    for topic, stamp in (("lidar", 0), ("camera", 0), ("camera", 33), ("lidar", 100), ("camera", 67), ("camera", 100)):
        if joiner.take(topic, Wire(topic, "", stamp, b"")) is not None:
            found.append([wire.stamp_ns for wire in joiner.passed_over])
    assert found == [[], [33, 67]]
