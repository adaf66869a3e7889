# SPDX-License-Identifier: Apache-2.0
"""Edits of a recording by a model that edits videos: clip by clip, stored as ``image_instructed`` looks for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.camera.diffusion_edit import ImageInstructed
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.world.camera.diffusion import EditCache, Rgb, edit_clip


@dataclass(eq=False)
class _Pictures:
    """The latest pictures of one topic, and the edits of the first of them."""

    rgb: list[Rgb] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    edited: list[Rgb] = field(default_factory=list)

    @property
    def new(self) -> int:
        """Number of pictures without an edit."""
        return len(self.rgb) - len(self.edited)


@dataclass(frozen=True)
class VideoEditor:
    """Edits clips of ``length`` pictures, of which ``overlap`` are faded over from one clip to the next.

    ``edits``: model, instruction and settings, and the cache that the pictures go into: those of the single pictures'
    edits, so that ``image_instructed`` with the same settings finds them.
    Raises UsageError: the overlap leaves nothing new in a clip.
    """

    edits: ImageInstructed
    length: int = 16
    overlap: int = 4

    def __post_init__(self) -> None:
        if not 0 <= self.overlap < self.length:
            raise UsageError(f"overlap: got {self.overlap} of {self.length} pictures, expected 0 to {self.length - 1}")

    def edit(self, bag: Path, topics: dict[str, str], limit: int | None = None) -> Iterator[int]:
        """Edit every picture of a recording; yield how many are stored by now, after each clip.

        Raises UsageError: there are no pictures, one cannot be edited, or the model is of another kind.
        """
        latest: dict[str, _Pictures] = {}
        stored = 0
        with BagSource(bag, topics, limit=limit, require=("camera",)) as source:
            for _, view in pictures_of(source):
                pictures = latest.setdefault(view.image.topic, _Pictures())
                pictures.rgb.append(view.picture.rgb8())
                pictures.keys.append(self.edits.key(view))
                if pictures.new == self.length - (self.overlap if pictures.edited else 0):
                    stored += self._store(pictures)
                    yield stored
        stored += sum(self._store(pictures) for pictures in latest.values() if pictures.new)
        if not stored:
            raise UsageError(f"{bag}: got no picture to edit")
        yield stored

    def _store(self, pictures: _Pictures) -> int:
        """Edit the latest clip, store it, forget what was before it; return the number of new pictures.

        The last one of a recording has as many pictures, too, where there are: many models take certain lengths only.
        """
        new, clip = pictures.new, slice(max(0, len(pictures.rgb) - self.length), None)
        rgb, keys, known = pictures.rgb[clip], pictures.keys[clip], pictures.edited[clip]
        made = faded(known, edit_clip(self.edits.request(), rgb))
        cache = EditCache.at(self.edits.cache)
        for key, picture in zip(keys, made, strict=True):
            cache.put(key, picture)
        pictures.rgb, pictures.keys, pictures.edited = rgb, keys, made
        return new


def pictures_of(source: Iterable[Bundle]) -> Iterator[tuple[Bundle, View]]:
    """Yield every picture of a recording, decoded. Raises UsageError: one cannot be edited."""
    for bundle in source:
        for image in bundle.images:
            try:
                yield bundle, View.of(bundle, image)
            except NotApplicable as why:
                raise UsageError(str(why)) from why


def faded(before: Sequence[Rgb], after: Sequence[Rgb]) -> list[Rgb]:
    """Return the pictures of a clip, the first of them faded over from those of the clip before, step by step."""
    steps = len(before) + 1
    mixed = [
        np.rint(old + (new.astype(np.float32) - old) * (number / steps)).astype(np.uint8)
        for number, (old, new) in enumerate(zip(before, after, strict=False), start=1)
    ]
    return [*mixed, *after[len(mixed) :]]
