# SPDX-License-Identifier: Apache-2.0
"""Clips in which one picture of a recording is edited and a video model invents what follows, for ``image_instructed``.

As AutoMT does with Vista (arXiv 2510.19438): the ego's speed goes to the model, and of each clip the first pictures are
kept. That a clip begins with the edited picture is measured; what follows is the model's, and no pair of it is judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from mt_nodes.base.errors import UsageError
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.camera.diffusion_edit import ImageInstructed
from mt_nodes.runs.models.video_edits import pictures_of
from mt_nodes.world.camera.diffusion import EditCache, Rgb, edit, invent_clip

#: Largest mean difference of the model's first picture from the edited one, as a share of full scale (assumed).
BEGINS_WITHIN = 0.1
#: Pictures a second that Stable Video Diffusion takes, and those that it takes for granted.
_FPS, _USUAL_FPS = (5, 30), 7


@dataclass(eq=False)
class _Clip:
    """Pictures of one topic that become a clip."""

    speed_mps: float | None
    rgb: list[Rgb] = field(default_factory=list)
    stamps_ns: list[int] = field(default_factory=list)

    @property
    def fps(self) -> int:
        took_s = (self.stamps_ns[-1] - self.stamps_ns[0]) * 1e-9
        return round(np.clip((len(self.rgb) - 1) / took_s, *_FPS)) if took_s > 0.0 else _USUAL_FPS

    @property
    def motion(self) -> int | None:
        """How much moves, as AutoMT's code tells Vista: 100, and 10 for each m/s; None: the speed is not known."""
        return None if self.speed_mps is None else round(min(255.0, 100.0 + 10.0 * abs(self.speed_mps)))


@dataclass(frozen=True)
class ClipInventor:
    """Makes clips of ``length`` pictures, of which the first ``kept`` stand for as many of the recording.

    ``edits``: the model that edits, its instruction and settings, the model that invents (``video``), and the cache.
    ``begins_within``: see :data:`BEGINS_WITHIN`. Raises UsageError: there is no clip of these lengths.
    """

    edits: ImageInstructed
    length: int = 25
    kept: int = 10
    begins_within: float = BEGINS_WITHIN

    def __post_init__(self) -> None:
        if not 2 <= self.kept <= self.length:
            raise UsageError(f"keep: got {self.kept} of {self.length} pictures, expected 2 to {self.length}")

    def edit(self, bag: Path, topics: dict[str, str], limit: int | None = None) -> Iterator[int]:
        """Make the clips of a recording; yield how many pictures are stored by now, after each.

        Raises UsageError: there are no pictures, a model is of another kind, or a clip does not begin with its picture.
        """
        open_clips: dict[str, _Clip] = {}
        stored = 0
        with BagSource(bag, topics, limit=limit, require=("camera",)) as source:
            for bundle, view in pictures_of(source):
                topic = view.image.topic
                clip = open_clips.setdefault(topic, _Clip(_speed_mps(bundle)))
                clip.rgb.append(view.picture.rgb8())
                clip.stamps_ns.append(bundle.stamp_ns)
                if len(clip.rgb) == self.kept:
                    stored += self._store(open_clips.pop(topic))
                    yield stored
        stored += sum(self._store(clip) for clip in open_clips.values())
        if not stored:
            raise UsageError(f"{bag}: got no picture to edit")
        yield stored

    def _store(self, clip: _Clip) -> int:
        cache = EditCache.at(self.edits.cache)
        first = self._edited(clip.rgb[0], cache)
        request = replace(self.edits.request(), model=self.edits.video)
        made = invent_clip(request, first, self.length, clip.fps, clip.motion)
        apart = float(np.mean(np.abs(made[0].astype(np.float32) - first))) / 255.0
        if apart > self.begins_within:
            raise UsageError(
                f"model '{self.edits.video}': its first picture differs from the edited one by {apart:.3f} of full "
                f"scale on average, expected at most {self.begins_within:g}: it does not go on from that"
            )
        # The edit comes last: where a recording repeats its picture, that one is no invention.
        pictures = [first, *made[1 : len(clip.rgb)]]
        for number in reversed(range(len(clip.rgb))):
            cache.put(self.edits.clip_key(clip.rgb[number], number > 0), pictures[number])
            cache.drop(self.edits.clip_key(clip.rgb[number], number == 0))
        return len(clip.rgb)

    def _edited(self, rgb: Rgb, cache: EditCache) -> Rgb:
        """Return the edit of a picture by itself, which may be cached already."""
        request = self.edits.request()
        edited = cache.get(request.key(rgb, None))
        if edited is None:
            edited = edit(request, rgb)
            cache.put(request.key(rgb, None), edited)
        return edited


def _speed_mps(bundle: Bundle) -> float | None:
    motion = bundle.motion or (bundle.track.at(bundle) if bundle.track is not None else None)
    return None if motion is None else motion.speed_mps
