# SPDX-License-Identifier: Apache-2.0
"""Pictures of made-up streets of which it is known what is where: what a camera network is trained and tried on.

Each street is another one (:mod:`~mt_nodes.runs.models.labelled_streets`), and so are camera, light and colours. One
ray a pixel finds what is seen; boxes are those of the projected vertices, so they are exact, and how much of an object
is hidden is known by its pixels.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Ints, Singles
from mt_nodes.base.open3d_late import open3d, tensor
from mt_nodes.base.seeds import generator
from mt_nodes.data.messages import Image
from mt_nodes.runs.models.labelled_streets import StreetObject, StreetRoad, without_collisions
from mt_nodes.runs.models.street_colours import Daylight, PixelHits, StreetColours, developed
from mt_nodes.stacks.reference.cell_objects import CLASSES
from mt_nodes.world.scene import meshes
from mt_nodes.world.scene.meshes import Mesh

#: What a camera network finds, in its order; the other things of a street are nothing to it.
PICTURE_CLASSES = tuple(name for name in CLASSES if name != "unknown")
WIDTH_PX, HEIGHT_PX = 640, 320
#: Fewer pixels than these are nobody.
_LEAST_PX = 12
#: What is nearer to the plane of the lens has no place in the picture.
_NEAR_M = 0.3


@dataclass(frozen=True, eq=False)
class LabelledPicture:
    """A picture, and what is in it.

    Attributes:
        rgb: (H, W, 3) uint8.
        box_px: (M, 4) x0, y0, x1, y1 around each object, hidden or not, cut at the edges of the picture; centres of
            pixels are at whole numbers.
        kind: (M,) place in :data:`PICTURE_CLASSES`.
        visible: (M,) share of its pixels in the picture that nothing hides.
        owner: (H, W) row of the object that a pixel shows, −1 for none of them.
    """

    rgb: npt.NDArray[np.uint8]
    box_px: Floats
    kind: Ints
    visible: Floats
    owner: Ints

    def message(self, topic: str = "/sensing/camera/image") -> Image:
        """Return the picture as a message."""
        return Image(topic, 0, "camera", self.rgb, "rgb8")


@dataclass(frozen=True)
class _Camera:
    """A camera that looks ahead: focal length, principal point in pixels, height in metres, roll in radians."""

    focal_px: float
    x_px: float
    y_px: float
    height_m: float
    roll_rad: float

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> _Camera:
        focal = float(np.exp(rng.uniform(np.log(260.0), np.log(620.0))))
        y = HEIGHT_PX * rng.uniform(0.3, 0.6)
        return cls(focal, (WIDTH_PX - 1) / 2.0, float(y), float(rng.uniform(1.2, 2.0)), float(rng.normal(0.0, 0.015)))

    def rays(self) -> Singles:
        """Return rays (H·W, 6) in the frame of the ego vehicle: x ahead, y left, z up; unit steps are along x."""
        u, v = np.meshgrid(np.arange(WIDTH_PX) - self.x_px, np.arange(HEIGHT_PX) - self.y_px)
        c, s = np.cos(self.roll_rad), np.sin(self.roll_rad)
        rays = np.zeros((WIDTH_PX * HEIGHT_PX, 6), dtype=np.float32)
        rays[:, 2], rays[:, 3] = self.height_m, 1.0
        rays[:, 4] = -(c * u + s * v).ravel() / self.focal_px
        rays[:, 5] = -(c * v - s * u).ravel() / self.focal_px
        return rays

    def project(self, xyz_m: Floats) -> Floats:
        """Return pixels (N, 2) of points (N, 3) before the camera."""
        right, down = -xyz_m[:, 1] / xyz_m[:, 0], (self.height_m - xyz_m[:, 2]) / xyz_m[:, 0]
        c, s = np.cos(self.roll_rad), np.sin(self.roll_rad)
        u, v = c * right - s * down, c * down + s * right
        return self.focal_px * np.column_stack([u, v]) + (self.x_px, self.y_px)


def labelled_picture(seed: int, index: int) -> LabelledPicture:
    """Return one picture of :data:`WIDTH_PX` × :data:`HEIGHT_PX`; the same numbers give the same one."""
    rng = generator(seed, "labelled_picture", 0, index, "street")
    road = StreetRoad.drawn(rng)
    things = without_collisions([*road.parked(rng), *road.anywhere(rng)])
    camera, light = _Camera.drawn(rng), Daylight.drawn(rng)
    things = [thing for thing in things if thing.x_m > -6.0]
    pieces = [*((thing.name, thing.placed) for thing in things), *road.ground(), *road.roadside(rng)]
    rays = camera.rays()
    hits = _hits(meshes.merged(mesh for _, mesh in pieces), rays, light)
    owner = np.repeat(np.arange(len(pieces)), [len(mesh.triangles) for _, mesh in pieces])[hits.triangle]
    colours = StreetColours(rng, road.turn_rad, things, [name for name, _ in pieces], camera.focal_px)
    radiance = light.sky(rays[:, 3:], rng)
    radiance[hits.any] = light.on(colours.albedo(hits, owner), colours.shine(hits, owner), hits)
    rgb = developed(radiance.reshape(HEIGHT_PX, WIDTH_PX, 3), rng)
    return _labelled(rgb, things, camera, _owners(hits, owner))


def _hits(scene_mesh: Mesh, rays: Singles, light: Daylight) -> PixelHits:
    scene = open3d().t.geometry.RaycastingScene()
    scene.add_triangles(tensor(scene_mesh.vertices_m.astype(np.float32)), tensor(scene_mesh.triangles))
    answer = scene.cast_rays(tensor(rays))
    depth = answer["t_hit"].numpy()
    hit = np.isfinite(depth)
    along, normal = rays[hit, 3:], answer["primitive_normals"].numpy()[hit]
    normal *= -np.sign(np.einsum("ij,ij->i", normal, along))[:, None]
    place = rays[hit, :3] + along * depth[hit, None]
    lit = normal @ light.to_sun > 0.0
    if light.sun > 0.0:
        to_sun = np.empty((int(lit.sum()), 6), dtype=np.float32)
        to_sun[:, :3] = place[lit] + 0.02 * normal[lit]
        to_sun[:, 3:] = light.to_sun
        lit[lit] = ~scene.test_occlusions(tensor(to_sun)).numpy()
    triangle = answer["primitive_ids"].numpy()[hit].astype(np.int64)
    reflectivity = scene_mesh.reflectivity[triangle].astype(np.float32)
    return PixelHits(hit, triangle, place, along, normal, lit, reflectivity)


def _owners(hits: PixelHits, owner: Ints) -> Ints:
    """Return (H, W) which piece a pixel shows, −1 for the sky."""
    plane = np.full(HEIGHT_PX * WIDTH_PX, -1, dtype=np.int64)
    plane[hits.any] = owner
    return plane.reshape(HEIGHT_PX, WIDTH_PX)


def _labelled(rgb: npt.NDArray[np.uint8], things: list[StreetObject], camera: _Camera, piece: Ints) -> LabelledPicture:
    """Return a picture with what is seen of those that are to be found; ``piece`` (H, W) tells what pixels show."""
    pixels = np.bincount(piece[piece >= 0], minlength=len(things))
    listed = [
        number
        for number, thing in enumerate(things)
        if pixels[number] >= _LEAST_PX and CLASSES[thing.kind] in PICTURE_CLASSES
    ]
    row_of = np.full(len(pixels) + 1, -1, dtype=np.int64)
    row_of[listed] = np.arange(len(listed))
    boxes = [_box(things[number], camera) for number in listed]
    visible = [min(1.0, pixels[number] / max(whole, 1)) for number, (_, whole) in zip(listed, boxes, strict=True)]
    return LabelledPicture(
        rgb,
        np.array([box for box, _ in boxes]).reshape(-1, 4),
        np.array([PICTURE_CLASSES.index(CLASSES[things[number].kind]) for number in listed], dtype=np.int64),
        np.array(visible, dtype=np.float64),
        row_of[piece],
    )


def _box(thing: StreetObject, camera: _Camera) -> tuple[Floats, int]:
    """Return the box (4,) around a thing, cut at the edges of the picture, and how many pixels it covers there."""
    mesh = thing.placed
    corners = mesh.vertices_m[mesh.triangles]
    corners = corners[(corners[:, :, 0] > _NEAR_M).all(axis=1)]
    places = camera.project(corners.reshape(-1, 3))
    high = np.array([WIDTH_PX, HEIGHT_PX]) - 0.5
    box = np.concatenate([np.maximum(places.min(axis=0), -0.5), np.minimum(places.max(axis=0), high)])
    return box, _area(places.reshape(-1, 3, 2), box)


def _area(triangles_px: Floats, box: Floats) -> int:
    """Return how many pixels triangles (T, 3, 2) cover together within a box."""
    x0, y0, x1, y1 = np.rint(box).astype(int)
    mask = np.zeros((max(y1 - y0 + 1, 1), max(x1 - x0 + 1, 1)), dtype=np.uint8)
    scaled = np.clip(np.rint((triangles_px - (x0, y0)) * 16.0), -1e6, 1e6).astype(np.int32)
    for triangle in scaled:
        cv2.fillConvexPoly(mask, triangle, 1, cv2.LINE_8, 4)
    return int(mask.sum())
