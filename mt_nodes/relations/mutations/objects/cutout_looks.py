# SPDX-License-Identifier: Apache-2.0
"""Base of mutations whose object may be a recorded one: chosen for its place, shown from its recorded side alone."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.data.messages import Bundle, Cloud, Image
from mt_nodes.data.transforms import Matrix, inverse, move
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.lidar.each_cloud import of_cloud
from mt_nodes.relations.mutations.objects.changed_returns import replaced_and_added
from mt_nodes.relations.mutations.objects.ground_shadow import sun_over
from mt_nodes.relations.mutations.objects.in_pictures import camera_from
from mt_nodes.relations.mutations.objects.in_scene import ego_from
from mt_nodes.relations.mutations.objects.object_rendition import CloudAndPictureChange
from mt_nodes.world.scene.cutout_library import CutoutLibrary, HostCamera, refusal
from mt_nodes.world.scene.cutout_objects import Cutout
from mt_nodes.world.scene.placement_solver import Place

#: Share of the object's returns that must lie within its silhouette, the opacity that counts as such, within so many
#: pixels of its own picture, and fewest returns that prove anything.
_INSIDE, _OPAQUE, _REACH_PX, _FEWEST = 0.98, 0.1, 1, 10
#: Height of a camera over the road where there is none to ask, in metres.
_EYE_M = 1.6


def absolute_folder(value: Any, where: str) -> str:
    """Return the absolute path of a folder of cut-outs, empty for none. Raises UsageError: it is no text."""
    if not isinstance(value, str):
        raise UsageError(f"{where}: got {value!r}, expected a folder made by `mt models cutouts`")
    return str(Path(value).absolute()) if value else ""


class CutoutLooks(CloudAndPictureChange):
    """Base: with ``cutouts``, what is added is a recorded object of that folder."""

    cutouts: str
    kind: str
    variant: int
    yaw_rad: float | None

    @property
    @abstractmethod
    def variants(self) -> int:
        """Number of variants of its kind, 0 for one mesh."""

    def refuse_cutouts(self, moves: bool) -> None:
        """Refuse a folder without the kind, or that what was recorded at one instant moves. Raises UsageError."""
        if not self.cutouts:
            return
        if moves:
            raise UsageError("cutouts: shows what was recorded at one instant, which cannot move; leave out moves")
        CutoutLibrary.at(self.cutouts).of(self.kind)

    def cutout_in(self, draw: Draw) -> Cutout | None:
        """Return the cut-out of a draw, None for a rendered object."""
        return CutoutLibrary.at(self.cutouts).named(str(draw["cutout"])) if "cutout" in draw else None

    def draw_looks(self, rng: np.random.Generator, bundle: Bundle, places: list[Place]) -> tuple[Draw, list[Place]]:
        """Draw a variant, or choose the cut-out that fits the places best; return the places that it fits.

        Raises NotApplicable: none fits.
        """
        if self.cutouts:
            library, sun = CutoutLibrary.at(self.cutouts), sun_over(bundle, self.ego_frame_id)
            turns, host = self.yaw_rad is None, self._host(bundle)
            cutout, fit = library.choose(self.kind, places, turns, host, sun, self.variant)
            return {"cutout": cutout.digest}, fit
        return {"variant": self.variant or (int(rng.integers(1, self.variants + 1)) if self.variants else 1)}, places

    def _host(self, bundle: Bundle) -> HostCamera:
        if not bundle.images:
            return HostCamera((0.0, 0.0, _EYE_M))
        view = View.of(bundle, bundle.images[0])
        x, y, z = inverse(camera_from(view, self.ego_frame_id))[:3, 3].tolist()
        return HostCamera((x, y, z), float(view.camera().k[0, 0]))

    def cutout_refusal(self, bundle: Bundle, looks: Draw, pose: Matrix) -> str | None:
        """Return why a camera that has the object before it cannot be shown its cut-out; None if all can."""
        cutout = self.cutout_in(looks)
        if cutout is None:
            return None
        reasons = (self._refusal(View.of(bundle, image), cutout, pose) for image in bundle.images)
        return next(filter(None, reasons), None)

    def _refusal(self, view: View, cutout: Cutout, pose: Matrix) -> str | None:
        camera, to_camera = view.camera(), camera_from(view, self.ego_frame_id) @ pose
        middle = camera.project(to_camera[None, :3, 3])[0]
        with np.errstate(invalid="ignore"):
            if not ((middle >= 0.0) & (middle < (camera.width, camera.height))).all():
                return None
        return refusal(cutout, inverse(to_camera)[:3, 3], float(camera.k[0, 0]))

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Draw as for any object. Raises NotApplicable: the camera would see another side than the recorded one."""
        draw = super().draw_image(rng, view, state)
        cutout = self.cutout_in(draw)
        reason = None if cutout is None else self._refusal(view, cutout, draw["pose"])
        if reason is not None:
            raise NotApplicable(f"{view.image.topic}: the cut-out {reason}")
        return draw

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Prove as for any object, and that the returns of a cut-out lie within what is shown of it."""
        broken = super().guarantee(source, followup, draw)
        if broken is not None or not any(name.endswith("|cutout") for name in draw):
            return broken
        for old, new in zip(source.clouds, followup.first.clouds, strict=True):
            own = of_cloud(draw, old)
            if "pose" in own and (broken := self._hits_beside(source, followup.first, (old, new), draw)):
                return broken
        return None

    def _hits_beside(self, source: Bundle, changed: Bundle, clouds: tuple[Cloud, Cloud], draw: Draw) -> str | None:
        """Return what is wrong with where an object's returns lie, in its own picture and in the changed ones."""
        old, new = clouds
        own = of_cloud(draw, old)
        cutout = self.cutout_in(own)
        assert cutout is not None
        replaced, added, _ = replaced_and_added(old, new, own)
        to_ego = ego_from(source, old.frame_id, self.ego_frame_id, old.topic)
        hits = move(to_ego, np.concatenate([replaced, added]))
        if len(hits) < _FEWEST:
            return None
        inside = cutout.opacity(move(inverse(own["pose"]), hits), _REACH_PX) >= _OPAQUE
        if inside.mean() < _INSIDE:
            return f"only {inside.mean():.1%} of the object's returns lie within the outline of its cut-out"
        for image, after in zip(source.images, changed.images, strict=True):
            if f"{image.topic}|pose" in draw and (broken := self._unseen(source, image, after, hits, draw)):
                return broken
        return None

    def _unseen(self, source: Bundle, image: Image, after: Image, hits: Floats, draw: Draw) -> str | None:
        """Return what is wrong if a picture stays as it was at returns (n, 3) that it must show."""
        view = View.of(source, image)
        own = {name.rpartition("|")[2]: v for name, v in draw.items() if name.rpartition("|")[0] == image.topic}
        must, pixels = (
            self._sight(view, own).must,
            view.camera().project(move(camera_from(view, self.ego_frame_id), hits)),
        )
        with np.errstate(invalid="ignore"):
            inside = ((pixels >= 0.0) & (pixels < np.array(must.shape[::-1]) - 0.5)).all(axis=1)
        x, y = np.rint(pixels[inside]).astype(int).T
        shown = must[y, x] != 0
        if np.count_nonzero(shown) < _FEWEST:
            return None
        new = View.of(source, after).picture.pixels
        differs = (new != view.picture.pixels).reshape(*must.shape, -1).any(axis=2).astype(np.uint8)
        share = float(cv2.dilate(differs, np.ones((3, 3), np.uint8))[y[shown], x[shown]].mean())
        return None if share >= _INSIDE else f"{image.topic}: shows only {share:.1%} of the cut-out's returns in sight"
