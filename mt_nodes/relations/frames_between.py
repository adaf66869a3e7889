# SPDX-License-Identifier: Apache-2.0
"""Frames of a camera between two instants of a bundle: changed by the draw of the instant that they are sent with.

A camera at 30 Hz beside a LiDAR at 20 Hz has one for each two instants. What changes the camera or the air changes them
as it does the picture of the instant, with the clouds of that for the depth; everything else refuses them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from weakref import WeakKeyDictionary

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.wire import encode_message
from mt_nodes.data.messages import Bundle, Image, Wire
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation

_PICTURES = (codec.IMAGE, codec.COMPRESSED_IMAGE)
_decoded: WeakKeyDictionary[Bundle, dict[int, Image]] = WeakKeyDictionary()


def refuse_loose(mutation: Mutation, bundle: Bundle) -> None:
    """Refuse a bundle with frames of no instant, of a sensor that the mutation changes: they would pass unchanged.

    Raises NotApplicable: naming the topic and its time offset.
    """
    if mutation.role == "control":
        return
    for wire in _concerned(mutation, bundle):
        if not (mutation.for_frames_between and wire.type in _PICTURES):
            off_ms = (wire.stamp_ns - bundle.stamp_ns) / 1e6
            raise NotApplicable(
                f"{wire.topic}: a frame {off_ms:+.0f} ms off the leading sensor's is of no instant of that and would "
                "pass as it is"
            )


def change_between(mutation: Mutation, source: Bundle, followup: Followup, draw: Draw) -> Followup:
    """Return a follow-up of one bundle whose frames between instants are changed, too, as serialized messages.

    Raises NotApplicable: the mutation changes calibrations, which are published between instants as well.
    """
    if not (frames := list(_frames(mutation, source))):
        return followup
    first = followup.first
    if any(a is not b for a, b in zip(first.camera_infos, source.camera_infos, strict=True)):
        raise NotApplicable(f"{frames[0].topic}: frames of no instant, whose calibration would have to change, too")
    new = {id(wire): _changed(mutation, source, wire, draw) for wire in frames}
    wires, loose = (tuple(new.get(id(wire), wire) for wire in row) for row in (first.wires, first.loose))
    return replace(followup, bundles=((followup.bundles[0][0], replace(first, wires=wires, loose=loose)),))


def prove_between(mutation: Mutation, source: Bundle, followup: Followup, draw: Draw) -> str | None:
    """Prove of every frame between instants, from its bytes, what the mutation promises; None: nothing is broken."""
    after = {(wire.topic, wire.stamp_ns): wire for wire in followup.first.loose} if followup.bundles else {}
    for wire in _frames(mutation, source):
        if (new := after.get((wire.topic, wire.stamp_ns))) is None:
            return f"{wire.topic}: a frame of no instant is gone"
        old, image = _source_image(source, wire), _image(new)
        # The same object says that an image was to stay.
        changed = alone(source, image if new is not wire else old)
        if broken := mutation.guarantee(alone(source, old), Followup(((0, changed),)), draw):
            return f"a frame of no instant: {broken}"
    return None


def alone(bundle: Bundle, image: Image) -> Bundle:
    """Return a bundle of an image alone: the clouds of the instant serve for its depth only."""
    clouds = bundle.known_clouds
    return replace(bundle, images=(image,), clouds=(), extra_clouds=clouds, radars=(), world_messages=(), loose=())


def _concerned(mutation: Mutation, bundle: Bundle) -> Iterator[Wire]:
    """Yield the frames of no instant of sensors that a mutation changes."""
    for wire in bundle.loose:
        if ("radar" if wire.topic in bundle.radar_topics else codec.SENSOR_OF.get(wire.type)) in mutation.changes:
            yield wire


def _frames(mutation: Mutation, bundle: Bundle) -> Iterator[Wire]:
    if mutation.for_frames_between:
        yield from (wire for wire in _concerned(mutation, bundle) if wire.type in _PICTURES)


def _source_image(source: Bundle, wire: Wire) -> Image:
    """Return a source's frame, the same object for change and proof: its depth and light are found once."""
    known = _decoded.setdefault(source, {})
    if id(wire) not in known:
        known[id(wire)] = _image(wire)
    return known[id(wire)]


def _image(wire: Wire) -> Image:
    return codec.image_from_msg(wire.topic, codec.decode(wire.type, wire.cdr))


def _changed(mutation: Mutation, source: Bundle, wire: Wire, draw: Draw) -> Wire:
    old = _source_image(source, wire)
    [new] = mutation.apply(alone(source, old), draw).first.images
    return wire if new is old else replace(wire, cdr=encode_message(new, wire), changed=True)
