# SPDX-License-Identifier: Apache-2.0
"""What tells a follow-up from what the source arm was given, as atoms that can be taken back one by one.

It knows nothing of the mutation: it looks at the two inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Mask
from mt_nodes.data.messages import PARTS, Bundle, Cloud, Image, Message, WorldMessage
from mt_nodes.data.outputs import Detections
from mt_nodes.data.radar import Radar
from mt_nodes.engine.message_digests import sha256_of
from mt_nodes.engine.reduction.row_matching import Bytes, RowEdit

#: Side of the blocks that changed pixels are taken back in.
BLOCK_PX = 16


@dataclass(frozen=True, eq=False)
class MessageDifference:
    """What differs in the message of one topic.

    ``kinds``: (atoms,) what each atom is, in words. ``reduced_message``: returns the message with only some atoms kept;
    None: there is none then.
    """

    topic: str
    kinds: npt.NDArray[np.str_]
    reduced_message: Callable[[Mask], Message | None]


@dataclass(frozen=True, eq=False)
class Difference:
    """All that differs between two bundles."""

    given: Bundle
    followup: Bundle
    parts: tuple[MessageDifference, ...]

    @classmethod
    def between(cls, given: Bundle, followup: Bundle) -> Difference:
        """Compare what the source arm was given with what the follow-up arm was."""
        old, new = ({m.topic: m for m in bundle.messages} for bundle in (given, followup))
        topics = [t for t in {**old, **new} if old.get(t) is not new.get(t)]
        parts = [_part(topic, old.get(topic), new.get(topic)) for topic in topics]
        return cls(given, followup, tuple(part for part in parts if len(part.kinds)))

    @property
    def kinds(self) -> npt.NDArray[np.str_]:
        """(N,) what each atom is."""
        return np.concatenate([np.empty(0, dtype="U1"), *(part.kinds for part in self.parts)])

    def counts(self, mask: Mask | None = None) -> dict[str, int]:
        """Return how many atoms there are of each kind, all or of those that are kept."""
        kinds = self.kinds if mask is None else self.kinds[mask]
        names, counts = np.unique(kinds, return_counts=True)
        return {str(name): int(count) for name, count in zip(names, counts, strict=True)}

    def reduced(self, mask: Mask) -> Bundle:
        """Return the follow-up with only some atoms kept; with all of them it is the follow-up itself."""
        if mask.all():
            return self.followup
        masks = np.split(mask, np.cumsum([len(part.kinds) for part in self.parts])[:-1])
        new = {part.topic: part.reduced_message(own) for part, own in zip(self.parts, masks, strict=True)}
        topics = list(dict.fromkeys([m.topic for b in (self.followup, self.given) for m in b.messages]))
        whole = {m.topic: m for m in self.followup.messages}
        messages = [m for topic in topics if (m := new[topic] if topic in new else whole.get(topic)) is not None]
        return replace(self.followup, **dict(_sorted(messages)))


def _sorted(messages: list[Message]) -> Iterator[tuple[str, Any]]:
    kinds = {Cloud: "clouds", Radar: "radars", Image: "images", WorldMessage: "world_messages"}
    for part in PARTS:
        yield part, tuple(m for m in messages if kinds.get(type(m), "camera_infos") == part)


def _part(topic: str, old: Message | None, new: Message | None) -> MessageDifference:
    if isinstance(old, Cloud) and isinstance(new, Cloud) and _alike(old, new) and old.points.dtype == new.points.dtype:
        found = _of_clouds(topic, old, new)
    elif isinstance(old, Image) and isinstance(new, Image) and _alike(old, new) and _same_pixels(old, new):
        found = _of_images(topic, old, new)
    elif isinstance(old, WorldMessage) and isinstance(new, WorldMessage) and _alike(old, new) and old.role == new.role:
        found = _of_world_messages(topic, old, new)
    else:
        found = None
    return found or _whole(topic, old, new)


def _alike(old: Message, new: Message) -> bool:
    return (old.stamp_ns, old.frame_id) == (new.stamp_ns, new.frame_id)


def _whole(topic: str, old: Message | None, new: Message | None) -> MessageDifference:
    """Return a difference that cannot be divided: the message as it was, or as it is; nothing where they are equal."""
    if old is not None and new is not None and _hash(old) == _hash(new):
        return MessageDifference(topic, np.empty(0, dtype="U1"), lambda mask: new)
    return MessageDifference(topic, np.array(["messages changed"]), lambda mask: new if mask[0] else old)


def _hash(message: Message) -> str:
    (part,) = [name for name, of in _sorted([message]) if of]
    return sha256_of(Bundle(0, 0, 0, **{part: (message,)}))  # type: ignore[arg-type]


def _of_clouds(topic: str, old: Cloud, new: Cloud) -> MessageDifference | None:
    """Points that were added, removed or changed; None: rows of an organised cloud, or their order, that changed."""
    if (old.organised or new.organised) and (old.height, len(old)) != (new.height, len(new)):
        return None
    edit = _edit(old, new)
    if not edit.atoms:
        return None
    rows = np.concatenate([old.raw, new.raw])

    def reduced(mask: Mask) -> Cloud:
        return new.with_raw(rows[edit.rows(mask)], height=new.height) if mask.any() else old

    return MessageDifference(topic, _kinds(edit, "points"), reduced)


def _edit(old: Cloud, new: Cloud) -> RowEdit:
    """Return the comparison that tells the two apart by fewer atoms; rows of an organised cloud stay where they are.

    Fields are compared: padding bytes, which copies need not keep, are nobody's change.
    """
    before, after = (_as_bytes([cloud.points[name] for name in cloud.fields], len(cloud)) for cloud in (old, new))
    if old.organised:
        return RowEdit.aligned(before, after)
    found = RowEdit.matched(before, after, (_places(old), _places(new)))
    if len(old) != len(new) or not found.atoms:
        return found
    by_row = RowEdit.aligned(before, after)
    return by_row if by_row.atoms <= found.atoms else found


def _places(cloud: Cloud) -> Bytes:
    return _as_bytes([cloud.points[name] for name in "xyz"], len(cloud))


def _as_bytes(columns: list[npt.NDArray[Any]], count: int) -> Bytes:
    """Return columns (N, …) as one opaque item a row."""
    wide = [np.ascontiguousarray(column).reshape(count, -1).view(np.uint8).reshape(count, -1) for column in columns]
    joined = np.ascontiguousarray(np.concatenate(wide, axis=1))
    return joined.view(f"V{joined.shape[1]}").reshape(-1)


def _kinds(edit: RowEdit, what: str) -> npt.NDArray[np.str_]:
    names = [f"{what} changed", f"{what} added", f"{what} removed"]
    return np.repeat(names, [len(edit.changed), len(edit.added), len(edit.removed)])


def _same_pixels(old: Image, new: Image) -> bool:
    layout = [(i.encoding, i.pixels.shape, i.pixels.dtype) for i in (old, new)]
    return old.compressed is None and new.compressed is None and layout[0] == layout[1]


def _of_images(topic: str, old: Image, new: Image) -> MessageDifference | None:
    """Blocks of pixels of which any was changed."""
    height, width = old.pixels.shape[:2]
    changed = (old.pixels != new.pixels).reshape(height, width, -1).any(axis=2)
    across = -(-width // BLOCK_PX)
    block = (np.arange(height) // BLOCK_PX)[:, None] * across + (np.arange(width) // BLOCK_PX)[None, :]
    blocks = np.unique(block[changed])
    if not len(blocks):
        return None

    def reduced(mask: Mask) -> Image:
        if not mask.any():
            return old
        back = np.isin(block, blocks[~mask])
        pixels = new.pixels.copy()
        pixels[back] = old.pixels[back]
        return replace(new, pixels=pixels)

    return MessageDifference(topic, np.repeat(["blocks of pixels changed"], len(blocks)), reduced)


def _of_world_messages(topic: str, old: WorldMessage, new: WorldMessage) -> MessageDifference | None:
    """Objects that were added, removed or changed; what is told in another form cannot be divided."""
    if not isinstance(old.data, Detections) or not isinstance(new.data, Detections):
        return None
    before, after = old.data, new.data
    columns = {f.name: np.concatenate([getattr(before, f.name), getattr(after, f.name)]) for f in fields(before)[2:]}
    both = Detections(after.frame_id, after.stamp_ns, **columns)
    items = _as_bytes(list(columns.values()), len(both))
    split = items[: len(before)], items[len(before) :]
    edit = RowEdit.aligned(*split) if len(before) == len(after) else RowEdit.matched(*split)
    if not edit.atoms:
        return None
    return MessageDifference(
        topic,
        _kinds(edit, "objects"),
        lambda mask: replace(new, data=both.take(edit.rows(mask))) if mask.any() else old,
    )
