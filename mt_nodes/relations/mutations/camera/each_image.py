# SPDX-License-Identifier: Apache-2.0
"""Base classes of mutations that change each image of a bundle, alone or together with clouds."""

from __future__ import annotations

import zlib
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import cv2
import numpy as np

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.data.effects import Effects
from mt_nodes.data.images.codecs import Picture, Pixels, decode, encode, lossy, spread_px
from mt_nodes.data.messages import Bundle, CameraInfo, Image
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.mutations.untouched import UNTOUCHED, drawn, refuse_without_effect
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.measures import Mask
from mt_nodes.world.camera.model import CameraModel, rectified

#: A follow-up whose pixels all differ by less than this share of full scale shows nothing new.
LEAST_VISIBLE = 1.0 / 255.0
#: A picture with less contrast between its darkest and brightest pixel shows nothing.
LEAST_CONTRAST = 8.0 / 255.0
#: Strides of the rows and columns that are checked first, which suffice for most pictures.
_PROBED_PX = (64, 16)
#: In smaller pictures nothing can be told from its surroundings.
LEAST_SIZE_PX = 16
#: Tolerance for the loss of a re-encoded JPEG in unchanged areas, in shares of full scale.
_CODEC_SLACK = 2.0 / 255.0


@dataclass(frozen=True, eq=False)
class View:
    """One image of a bundle, decoded."""

    bundle: Bundle
    image: Image
    picture: Picture

    @classmethod
    def of(cls, bundle: Bundle, image: Image) -> View:
        """Decode an image. Raises NotApplicable: it cannot be decoded, or is too small to show anything."""
        try:
            picture = decode(image)
        except UsageError as error:
            raise NotApplicable(str(error)) from error
        if min(picture.size) < LEAST_SIZE_PX:
            height, width = picture.size
            raise NotApplicable(
                f"{image.topic}: got {width} x {height} pixels, expected {LEAST_SIZE_PX} or more each way"
            )
        return cls(bundle, image, picture)

    @property
    def info(self) -> CameraInfo | None:
        """The image's calibration: by frame, or by a topic next to its own; None if there is none."""
        namespace = self.image.topic.rpartition("/")[0]
        found = [i for i in self.bundle.camera_infos if i.topic.rpartition("/")[0] == namespace]
        found += [i for i in self.bundle.camera_infos if i.frame_id == self.image.frame_id]
        return found[0] if found else None

    def camera(self) -> CameraModel:
        """Return the calibrated camera.

        Raises NotApplicable: there is no calibration of this image, or one that does not fit.
        """
        info = self.info
        if info is None:
            known = ", ".join(i.topic for i in self.bundle.camera_infos) or "none"
            raise NotApplicable(f"{self.image.topic}: no CameraInfo of frame '{self.image.frame_id}'; got {known}")
        try:
            return CameraModel.of(info, self.picture.size, rectified(self.image.topic))
        except UsageError as error:
            raise NotApplicable(str(error)) from error


class ChangesImages(Mutation):
    """Draws, changes and proves image by image; draws have keys ``<topic>|<name>``.

    Topic, stamp, frame, size and encoding of each image stay, and so do all pixels outside of the affected area (except
    for the loss of a re-encoded JPEG, measured on this very image): this class proves that, so that subclasses prove
    only that the promised change is visible.
    """

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Make every random choice for one image; by default nothing is random.

        Raises NotApplicable: there is no honest follow-up of it. NoEffect: the change is out of its sight.
        """
        return {}

    @abstractmethod
    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Return the new pixels, shape and dtype as before; the same array if nothing changes.

        Never writes into the picture.
        """

    @abstractmethod
    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Measure both pictures (:mod:`mt_nodes.world.camera.measures`); return the broken promise, or None."""

    def affected(self, view: View, draw: Draw) -> Mask | None:
        """Return where (H, W) pixels may change, nonzero there; None: everywhere; all zero: the image stays."""
        return None

    def change_info(self, view: View, draw: Draw) -> CameraInfo | None:
        """Return the calibration of the changed picture; the same object if it stays."""
        return view.info

    def describe_images(self, views: Mapping[str, View], draws: Mapping[str, Draw]) -> Effects:
        """Return the effects on the world, from the source's views and the draws by topic."""
        return Effects()

    def draw_images(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw for every image, one after the other; where the change is out of its sight, why.

        Raises NotApplicable: an image has no valid follow-up, or no visible content.
        """
        draws: Draw = {}
        for image in bundle.images:
            view = View.of(bundle, image)
            _refuse_blank(view)
            draws |= drawn(image.topic, partial(self.draw_image, rng, view, state))
        return draws

    def apply_to_images(self, bundle: Bundle, draw: Draw) -> tuple[Bundle, Effects]:
        """Change every image, and its calibration where needed."""
        views = {image.topic: View.of(bundle, image) for image in bundle.images}
        draws = {topic: of_image(draw, view.image) for topic, view in views.items()}
        changing = {topic: view for topic, view in views.items() if UNTOUCHED not in draws[topic]}
        images = tuple(
            _coded(view, self.change_image(view, draws[topic])) if topic in changing else view.image
            for topic, view in views.items()
        )
        infos = {
            id(view.info): changed
            for topic, view in changing.items()
            if (changed := self.change_info(view, draws[topic])) is not None
        }
        camera_infos = tuple(infos.get(id(info), info) for info in bundle.camera_infos)
        effects = self.describe_images(changing, draws)
        reasons = {topic: why for topic, of_this in draws.items() if isinstance(why := of_this.get(UNTOUCHED), str)}
        effects = replace(effects, unchanged={**effects.unchanged, **reasons}) if reasons else effects
        return replace(bundle, images=images, camera_infos=camera_infos), effects

    def prove_images(self, source: Bundle, followup: Bundle, draw: Draw) -> str | None:
        """Prove of every image what was promised, and that nothing else changed."""
        after = {image.topic: image for image in followup.images}
        for image in source.images:
            if image.topic not in after:
                return f"{image.topic}: the image is gone"
            old, new = View.of(source, image), View.of(followup, after[image.topic])
            of_this = of_image(draw, image)
            if UNTOUCHED in of_this:
                if after[image.topic] is not image:
                    return f"{image.topic}: changed, and it was drawn to stay as it is"
                continue
            broken = _same_kind(old, new) or self._confined(old, new, of_this) or self.prove_image(old, new, of_this)
            if broken is not None:
                return f"{image.topic}: {broken}"
        return None

    def _confined(self, old: View, new: View, draw: Draw) -> str | None:
        """Prove that something changed visibly where pixels may change, and nothing elsewhere."""
        where = self.affected(old, draw)
        if where is not None and not where.any():
            return None if new.image is old.image else "the image changed, it was to stay"
        if measures.largest_difference(old.picture, new.picture, where) < 0.999 * LEAST_VISIBLE:
            return f"no pixel differs by {LEAST_VISIBLE:.1%} of full scale or more"
        if where is None:
            return None
        outside = _outside(where, spread_px(old.image))
        difference = measures.largest_difference(old.picture, new.picture, outside)
        bound = _loss(old, outside) + _CODEC_SLACK if lossy(old.image) else 0.0
        return (
            None
            if difference <= bound
            else f"a pixel that was to stay differs by {difference:.2%}, allowed {bound:.2%}"
        )


class EachImage(ChangesImages):
    """Base of mutations that change images alone: clouds and everything else stay."""

    sensors = ("camera",)
    for_frames_between = True

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw for every image."""
        if not bundle.images:
            raise NotApplicable(f"bundle {bundle.index} has no image")
        draws = self.draw_images(rng, bundle, state)
        refuse_without_effect(draws, [image.topic for image in bundle.images])
        return draws

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Change every image."""
        changed, effects = self.apply_to_images(bundle, draw)
        return Followup(((0, changed),), effects)

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Prove of every image what was promised, and that nothing else changed."""
        if len(followup.bundles) != 1:
            return f"{len(followup.bundles)} bundles, expected one"
        own = {image.topic for image in source.images} | {info.topic for info in source.camera_infos}
        if others := followup.first.changed_topics(source) - own:
            return f"{', '.join(sorted(others))} changed, too"
        return self.prove_images(source, followup.first, draw)


@dataclass(frozen=True)
class CameraKeys:
    """Keys of what each camera has of its own throughout a segment: that of the first is ``key``."""

    key: int
    first_topic: str

    def of(self, topic: str) -> int:
        """Return the key of a camera by the topic of its images, whichever others a bundle has."""
        return self.key if topic == self.first_topic else (self.key + zlib.crc32(topic.encode())) % 2**62


class OnEachCamera(EachImage):
    """Base of mutations of what is on a camera, or in it: another one on each, the same throughout a segment."""

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> CameraKeys:
        """Choose what is on the cameras in a segment: keys."""
        return CameraKeys(int(rng.integers(2**62)), bundle.images[0].topic if bundle.images else "")

    @staticmethod
    def key(rng: np.random.Generator, view: View, state: CameraKeys | None) -> int:
        """Return the key of a view's camera; one of its own without a segment."""
        return int(rng.integers(2**62)) if state is None else state.of(view.image.topic)


def of_image(draw: Draw, image: Image) -> Draw:
    """Return the part of a draw for one image, with the names of ``draw_image``."""
    head = f"{image.topic}|"
    return {name.removeprefix(head): value for name, value in draw.items() if name.startswith(head)}


def _refuse_blank(view: View) -> None:
    """Refuse a picture whose pixels are all alike: a covered lens, a sensor in the dark or saturated."""
    for step in (*_PROBED_PX, 1):
        some = np.ascontiguousarray(view.picture.pixels[::step, ::step])
        least, largest = measures.ends(view.picture.with_pixels(some))
        if largest - least >= LEAST_CONTRAST:
            return
    found = f"its brightness goes from {least:.3f} to {largest:.3f} of full scale"
    raise NotApplicable(f"{view.image.topic}: shows nothing: {found}, expected {LEAST_CONTRAST:.3f} between")


def _coded(view: View, pixels: Pixels) -> Image:
    """Return the image encoded from new pixels; the same image for the same pixels."""
    return view.image if pixels is view.picture.pixels else encode(view.picture.with_pixels(pixels), view.image)


def _same_kind(old: View, new: View) -> str | None:
    for what in ("stamp_ns", "frame_id", "encoding"):
        is_now, was = getattr(new.image, what), getattr(old.image, what)
        if is_now != was:
            return f"{what}: got {is_now!r}, was {was!r}"
    before, after = old.picture.pixels, new.picture.pixels
    if (after.shape, after.dtype) != (before.shape, before.dtype):
        return f"pixels: got {after.shape} of {after.dtype}, was {before.shape} of {before.dtype}"
    return None


def _outside(where: Mask, margin_px: int) -> Mask:
    """Return a mask (H, W) of the pixels outside of the affected area and a margin around it."""
    if margin_px:
        where = np.asarray(cv2.dilate(where, np.ones((2 * margin_px + 1,) * 2, np.uint8)))
    return np.asarray(where == 0, np.uint8)


def _loss(view: View, outside: Mask) -> float:
    """Return the largest change of a pixel by re-encoding the unchanged picture, as a share of full scale."""
    encoded = decode(encode(view.picture, view.image))
    return measures.largest_difference(view.picture, encoded, outside)
