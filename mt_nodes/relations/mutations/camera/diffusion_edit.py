# SPDX-License-Identifier: Apache-2.0
"""Pictures edited by a diffusion model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import InfrastructureError, NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.base.wording import lateral_text
from mt_nodes.data.effects import Effects, ImageBox
from mt_nodes.data.images.codecs import Picture, Pixels
from mt_nodes.data.transforms import UnknownTransform
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.diffusion import EditCache, EditRequest, Rgb, edit
from mt_nodes.world.camera.measures import Mask
from mt_nodes.world.camera.segmentation import pixels_of

#: What a draw says of a picture that a video model invented.
INVENTED = "invented"


@dataclass(frozen=True)
class Edited(EachImage):
    """Base: asks a model once per picture, then uses the cached edit: equal picture and prompt give an equal edit."""

    steps: int = param(30, low=1, high=200, aspect="fixed", help="steps of denoising")
    seed: int = param(0, low=0, high=2**31 - 1, aspect="fixed", help="of the model's own noise")
    size_px: int = param(
        1024, low=64, high=4096, unit="pixels", aspect="fixed", help="longer side of what the model is given"
    )
    device: str = param("auto", help="auto (a GPU if there is one), cpu, cuda, cuda:1 …")
    cache: str = param("", help="directory of finished edits; empty: the user's cache directory")
    when_missing: str = param(
        "make", choices=("make", "refuse"), help="make: edit now, in minutes; refuse: leave the frame out, as in a loop"
    )
    segmenter: str = param("", help="segmentation model such as OneFormer, a directory or its id on the hub")
    random: ClassVar[bool] = False
    for_frames_between: ClassVar[bool] = False
    extra: ClassVar[str] = "diffusion"

    @abstractmethod
    def request(self) -> EditRequest:
        """Return the request to the model."""

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Nothing is random: the seed is a parameter, so that an edit made offline is the one of the loop.

        Raises NotApplicable: samples of 16 bits or no colours; no cached edit, and the model may not be asked.
        """
        if view.picture.pixels.dtype != np.uint8 or view.picture.order == "mono":
            raise NotApplicable(f"{view.image.topic}: {view.image.encoding} is not 8 bits of red, green and blue each")
        return self.found(view, EditCache.at(self.cache))

    def found(self, view: View, cache: EditCache) -> Draw:
        """Return what a picture's edit needs. Raises NotApplicable: there is none, and the model may not be asked."""
        if self.when_missing == "refuse" and not cache.has(self.key(view)):
            where = f"no edit of this picture in {cache.directory}"
            raise NotApplicable(f"{view.image.topic}: {where}; make it with `mt mutate`")
        return {}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Use the cached edit, or request and cache it; outside of the affected area the picture stays."""
        edited = self.edited(view, draw, EditCache.at(self.cache))
        pixels = edited if view.picture.order == "rgb" else edited[..., ::-1]
        where = self.affected(view, draw)
        if where is None:
            return np.ascontiguousarray(pixels)
        return np.where(where[..., None] != 0, pixels, view.picture.pixels)

    def edited(self, view: View, draw: Draw, cache: EditCache) -> Rgb:
        """Return the cached edit of a picture, or ask for it and cache it."""
        key = self.key(view)
        edited = cache.get(key)
        if edited is None:
            edited = edit(self.request(), view.picture.rgb8(), self.painted(view))
            cache.put(key, edited)
        return edited

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Check that the edit changes the affected area; no measure here can tell what it shows."""
        where: Mask | None = self.affected(old, draw)
        difference = measures.mean_difference(old.picture, new.picture, where)
        return (
            None
            if difference >= 0.01
            else f"samples differ by {difference:.4f} of full scale on average, expected 0.01"
        )

    def key(self, view: View) -> str:
        """Return the key of a picture's edit in the cache."""
        picture: Picture = view.picture
        return self.request().key(picture.rgb8(), self.painted(view))

    def painted(self, view: View) -> Mask | None:
        """Return where the model paints, nonzero; None: it edits the whole picture."""
        return None

    def shown(self, view: View, labels: Sequence[str]) -> Mask:
        """Return a mask, 255 where the segmenter sees one of the labels."""
        if not self.segmenter:
            raise UsageError(f"labels {', '.join(labels)}: got no segmenter, expected a segmentation model's directory")
        return pixels_of(self.segmenter, view.picture.rgb8(), labels, self.device)


@dataclass(frozen=True)
class ImageInstructed(Edited):
    """Edits the whole picture by a sentence ("make it night") with a model like InstructPix2Pix.

    AutoMT's "replaces". It is not proven that the picture shows what was requested: look at it. With ``video``, the
    clips of ``mt models edit-video`` are used: of each, the first picture is edited and a model invents the others from
    it. Those do not show what the recording's pictures show, so no pair of them is judged.

    Guaranteed: samples differ by 1 % of full scale or more on average; size, stamp and encoding do not change.
    """

    instruction: str = param("make it a snowy day", help="what is to be done to the picture")
    model: str = param("timbrooks/instruct-pix2pix", help="directory of a diffusers pipeline, or its id on the hub")
    guidance: float = param(7.5, low=0.0, high=50.0, aspect="fixed", help="how strictly the instruction is followed")
    only: tuple[str, ...] = param((), help="labels of the segmenter, such as road; empty: the whole picture changes")
    video: str = param("", help="model that makes a video of one picture; empty: each picture is edited by itself")

    def __post_init__(self) -> None:
        """Raise UsageError: labels are of no use where the whole picture is invented."""
        if self.video and self.only:
            raise UsageError(f"only: got {', '.join(self.only)} beside video; an invented picture changes as a whole")

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """As the base; raises NotApplicable, too, where the picture shows none of the labels."""
        if self.only and not self.shown(view, self.only).any():
            raise NotApplicable(f"{view.image.topic}: the segmenter sees no {' or '.join(self.only)}")
        return super().draw_image(rng, view, state)

    def found(self, view: View, cache: EditCache) -> Draw:
        """As the base; with ``video``, whether the picture is an invented one, and nothing is ever made here."""
        if not self.video:
            return super().found(view, cache)
        for invented in (True, False):
            if cache.has(self.clip_key(view.picture.rgb8(), invented)):
                return {INVENTED: invented}
        where = f"{view.image.topic}: no clip with this picture in {cache.directory}"
        raise NotApplicable(f"{where}; make it with `mt models edit-video`")

    def edited(self, view: View, draw: Draw, cache: EditCache) -> Rgb:
        """As the base; with ``video``, the picture of the clip. Raises InfrastructureError: it is gone."""
        if not self.video:
            return super().edited(view, draw, cache)
        picture = cache.get(self.clip_key(view.picture.rgb8(), bool(draw[INVENTED])))
        if picture is None:
            raise InfrastructureError(f"{view.image.topic}: the clip's picture is gone from {cache.directory}")
        return picture

    def clip_key(self, rgb: Rgb, invented: bool) -> str:
        """Return the key in the cache of a clip's first picture, or of an invented one in place of a picture."""
        place = f"{'invented' if invented else 'first'} in a clip of {self.video}"
        return replace(self.request(), place=place).key(rgb, None)

    def describe_images(self, views: Mapping[str, View], draws: Mapping[str, Draw]) -> Effects:
        """Tell where the follow-up does not show the source's instant."""
        topics = ", ".join(sorted(topic for topic, draw in draws.items() if draw.get(INVENTED)))
        return Effects(invented=f"{topics}: invented by a video model, not this instant" if topics else "")

    def affected(self, view: View, draw: Draw) -> Mask | None:
        """The labels' pixels; None: all."""
        return self.shown(view, self.only) if self.only else None

    def request(self) -> EditRequest:
        """Ask for the instruction."""
        return EditRequest(
            self.model, self.instruction, self.steps, self.guidance, self.seed, self.size_px, self.device
        )


#: Least width and height of the painted area, in pixels; less would show nothing.
_LEAST_PX = 16
#: Something stands on what this share of the lowest rows of its place shows, a so manieth part of its height (assumed).
_STANDS, _BELOW = 0.5, 10


@dataclass(frozen=True)
class ImageInpainted(Edited):
    """Paints the object that a sentence names where it would stand, with a model like FLUX.1-Fill.

    AutoMT's "adds". The place is a box on flat ground, given by range and offset from the vehicle's path; the model
    paints freely within it. Camera only: no cloud shows the object.

    Guaranteed: inside the box, samples differ by 1 % of full scale or more on average; outside it, no pixel changes.
    """

    prompt: str = param("a pedestrian crossing the road", help="what is to be seen in the place")
    label: str = param("pedestrian", help="class that a detector would give it")
    model: str = param("black-forest-labs/FLUX.1-Fill-dev", help="directory of a diffusers pipeline, or its hub id")
    guidance: float = param(30.0, low=0.0, high=100.0, aspect="fixed", help="how strictly the sentence is followed")
    range_m: float = param(
        12.0, low=2.0, high=200.0, unit="m", aspect="place", help="how far ahead of base_link it stands"
    )
    left_m: float = param(0.0, low=-50.0, high=50.0, unit="m", aspect="place", help="how far to the left of the path")
    width_m: float = param(1.2, low=0.1, high=20.0, unit="m", aspect="fixed", help="width of the place")
    height_m: float = param(
        2.0, low=0.1, high=10.0, unit="m", aspect="fixed", help="height of the place, from the ground"
    )
    stands_on: tuple[str, ...] = param((), help="labels of the segmenter, such as road, of the ground below it")

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """As the base; raises NotApplicable, too, where the ground below the place shows none of the labels."""
        if self.stands_on:
            x0, y0, x1, y1 = self._box_px(view)
            below = self.shown(view, self.stands_on)[y1 - (y1 - y0) // _BELOW : y1 + 1, x0 : x1 + 1]
            if np.mean(below != 0) < _STANDS:
                what = " or ".join(self.stands_on)
                raise NotApplicable(f"{view.image.topic}: {np.mean(below != 0):.0%} of the place's ground is {what}")
        return super().draw_image(rng, view, state)

    def painted(self, view: View) -> Mask:
        """The place's box in the picture."""
        return self.affected(view, {})

    def request(self) -> EditRequest:
        """Ask for the sentence."""
        return EditRequest(self.model, self.prompt, self.steps, self.guidance, self.seed, self.size_px, self.device)

    def affected(self, view: View, draw: Draw) -> Mask:
        """The place's box in the picture."""
        x0, y0, x1, y1 = self._box_px(view)
        mask = np.zeros(view.picture.size, np.uint8)
        mask[y0 : y1 + 1, x0 : x1 + 1] = 255
        return mask

    def describe_images(self, views: Mapping[str, View], draws: Mapping[str, Draw]) -> Effects:
        """Report where it is expected to be seen."""
        boxes = {topic: np.array(self._box_px(view), np.float64) for topic, view in views.items()}
        return Effects(image_boxes=tuple(ImageBox(t, tuple(box.tolist()), 1.0, self.label) for t, box in boxes.items()))

    def _box_px(self, view: View) -> tuple[int, int, int, int]:
        """Return the first and last column and row (x0, y0, x1, y1) of the place, within the picture."""
        try:
            to_camera = view.bundle.transforms.lookup(view.image.frame_id, "base_link")
        except UnknownTransform as error:
            raise NotApplicable(f"{view.image.topic}: where the vehicle's front is, is not known: {error}") from error
        pixels = view.camera().project(self._corners() @ to_camera[:3, :3].T + to_camera[:3, 3])
        height, width = view.picture.size
        low, high = np.floor(pixels.min(axis=0)), np.ceil(pixels.max(axis=0))
        if np.isfinite(pixels).all():
            x0, y0 = np.clip(low, 0, (width, height)).astype(int).tolist()
            x1, y1 = np.clip(high, -1, (width - 1, height - 1)).astype(int).tolist()
            if min(x1 - x0, y1 - y0) >= _LEAST_PX:
                return x0, y0, x1, y1
        where = f"{self.range_m:g} m ahead and {lateral_text(self.left_m, 1)}"
        raise NotApplicable(f"{view.image.topic}: a place {where} is not seen at {_LEAST_PX} pixels or more each way")

    def _corners(self) -> Floats:
        left, right = self.left_m + self.width_m / 2.0, self.left_m - self.width_m / 2.0
        return np.array([[self.range_m, y, z] for y in (left, right) for z in (0.0, self.height_m)])
