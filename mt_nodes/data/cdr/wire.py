# SPDX-License-Identifier: Apache-2.0
"""Serialized messages of a bundle: recorded bytes, and those of changed or new messages."""

from __future__ import annotations

from mt_nodes.base.errors import UsageError
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.radar_codec import encode_radar
from mt_nodes.data.cdr.world_messages import encode_world_message
from mt_nodes.data.messages import Bundle, Cloud, Image, Message, Wire, WorldMessage
from mt_nodes.data.radar import Radar


def encode_message(message: Message, like: Wire | None = None) -> bytes:
    """Return the CDR bytes of a decoded message; ``like`` is the recorded one, for what core types do not hold.

    Raises UsageError: the message has another type than the recorded one, or is not what its encoding says.
    """
    if like is not None and like.type != codec.type_of(message):
        raise UsageError(f"{message.topic}: got a {codec.type_of(message)} to send where {like.type} was recorded")
    if isinstance(message, Radar):
        return encode_radar(message)
    if isinstance(message, Cloud):
        return codec.encode_cloud(message)
    if isinstance(message, Image):
        return codec.encode_image(message)
    if isinstance(message, WorldMessage):
        return encode_world_message(message)
    return codec.encode_camera_info(message, like)


def wire_for(message: Message, wires: tuple[Wire, ...]) -> Wire | None:
    """Return the wire that a decoded message came from: the nearest in stamp of its topic, None if there is none."""
    same_topic = [w for w in wires if w.topic == message.topic]
    return min(same_topic, key=lambda w: abs(w.stamp_ns - message.stamp_ns), default=None)


def wires_of_bundle(bundle: Bundle, changed: frozenset[str] = frozenset()) -> tuple[Wire, ...]:
    """Return the serialized messages of a bundle: recorded bytes, except for topics in ``changed``, which are encoded.

    A decoded message that was never recorded (a generated drive) is encoded, too; such come after the others.
    """
    out = {id(w): w for w in bundle.wires}
    for message in bundle.messages:
        old = wire_for(message, bundle.wires)
        if old is None or message.topic in changed:
            came_s = None if old is None else old.came_s
            encoded = encode_message(message, old)
            new = Wire(message.topic, codec.type_of(message), message.stamp_ns, encoded, came_s=came_s)
            out[id(old or new)] = new
    return tuple(out.values())
