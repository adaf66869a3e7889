# SPDX-License-Identifier: Apache-2.0
"""SHA-256 of bundles and follow-ups: of what a stack is given, whatever bytes carry it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mt_nodes.data.messages import Bundle, CameraInfo, Cloud, Image, Message, WorldMessage
from mt_nodes.data.radar import Radar
from mt_nodes.relations.mutations.base import Followup

#: What stands for the kind of a message in a digest, whatever its class is called: equal follow-ups keep their digests.
_KINDS: Mapping[type, str] = {cls: cls.__name__ for cls in (Cloud, Radar, Image, CameraInfo)} | {WorldMessage: "Told"}


def sha256_of(bundle: Bundle, topics: Iterable[str] | None = None) -> str:
    """Return the SHA-256 (hex) of a bundle's sensor messages, or of those of some topics.

    Covers topic, stamp, frame, layout and data, in the order of topics; not the CDR bytes, whose padding is nobody's.
    Transforms that the stack is given in place of the true ones are covered, too, and other messages that were changed.
    """
    digest, topics_to_hash = hashlib.sha256(), None if topics is None else set(topics)
    for message in sorted(bundle.messages, key=lambda m: m.topic):
        if topics_to_hash is None or message.topic in topics_to_hash:
            head, data = _content(message)
            head = [_KINDS[type(message)], message.topic, message.stamp_ns, message.frame_id, *head]
            digest.update(json.dumps(head).encode() + b"\n")
            digest.update(data)
    for wire in (wire for wire in bundle.wires if wire.changed and topics is None):
        digest.update(json.dumps(["wire", wire.topic, wire.type, wire.stamp_ns]).encode())
        digest.update(wire.cdr)
    if (wrong := bundle.transforms.wrong) is not None and topics is None:
        rows = [[t.parent, t.child, t.matrix.tolist()] for t in wrong.transforms]
        digest.update(json.dumps(["transforms", rows]).encode())
    return digest.hexdigest()


def sha256_of_followup(followup: Followup) -> str:
    """Return the SHA-256 (hex) over all bundles of a follow-up and their delays."""
    parts = [[delay_ns, sha256_of(bundle)] for delay_ns, bundle in followup.bundles]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _content(message: Message) -> tuple[list[Any], bytes | memoryview]:
    """Return what a hash covers beside topic, stamp and frame: the layout as JSON, the data as bytes."""
    if isinstance(message, Cloud):
        dtype = message.points.dtype
        fields = [[name, *_field(dtype, name)] for name in dtype.names or ()]
        size = [message.height, message.width, message.is_dense]
        return [fields, dtype.itemsize, *size], np.ascontiguousarray(message.raw).view(np.uint8).data
    if isinstance(message, Image):
        if message.compressed is not None:
            return [message.encoding], message.compressed
        pixels = np.ascontiguousarray(message.pixels)
        return [message.encoding, pixels.dtype.str, pixels.shape], pixels.reshape(-1).view(np.uint8).data
    if isinstance(message, WorldMessage):
        return _world_content(message)
    data = b"".join(np.ascontiguousarray(getattr(message, n), dtype="<f8").tobytes() for n in "dkrp")
    return [message.width, message.height, message.distortion_model, message.d.size], data


def _world_content(message: WorldMessage) -> tuple[list[Any], bytes]:
    values = [(name, value) for name, value in vars(message.data).items() if name not in ("stamp_ns", "frame_id")]
    arrays = [(name, value) for name, value in values if isinstance(value, np.ndarray)]
    others = [[name, value] for name, value in values if not isinstance(value, np.ndarray)]
    layout = [[name, value.dtype.str, value.shape] for name, value in arrays]
    return [message.role, others, layout], b"".join(np.ascontiguousarray(value).tobytes() for _, value in arrays)


def _field(dtype: np.dtype[np.void], name: str) -> list[Any]:
    kind, offset = dtype.fields[name][:2]  # type: ignore[index]
    return [int(offset), kind.base.str, math.prod(kind.shape)]
