# SPDX-License-Identifier: Apache-2.0
"""Strategies of Hypothesis: streets, clouds and images as frames, which shrink to the plainest that still fails.

``from mt_nodes.api.strategies import street``; ``hypothesis`` comes with the extra ``property``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mt_nodes.api.frames import Frame
from mt_nodes.base.errors import UsageError
from mt_nodes.base.seeds import generator
from mt_nodes.data.intensity.sensor_reading import SensorReading
from mt_nodes.data.messages import Bundle, Cloud, Image
from mt_nodes.data.transforms import Transform, TransformTree, pose_matrix
from mt_nodes.world.scene import meshes
from mt_nodes.world.scene.drive import CAMERA_INFO_TOPIC, CLOUD_TOPIC, IMAGE_TOPIC, LIDAR_HEIGHT_M, START_NS
from mt_nodes.world.scene.lidar import LidarModel
from mt_nodes.world.scene.objects import KINDS
from mt_nodes.world.scene.raycast import INTENSITY_CONVENTION, scan
from mt_nodes.world.scene.street import GROUND, PERSON, VEHICLE, Piece

if TYPE_CHECKING:
    from mt_nodes.world.scene.camera_rendering import CameraSensor

#: Kinds of objects of a street, the plainest first.
STREET_KINDS = ("box", "adult", "child", "car", "cyclist", "van", "truck", "bus")
#: 32 beams from +2 to -25 degrees, twice as coarse as the HDL-64E: a scan takes some milliseconds.
_LIDAR = LidarModel(tuple(np.radians(np.linspace(2.0, -24.7, 32)).tolist()), 900, 0.9, 120.0, 0.02, 0.0)
_GROUND_M, _GROUND_REFLECTIVITY = 200.0, 0.2
_TURNS_DEG = (0, 90, 180, 270, 45, 135, 225, 315)


@dataclass(frozen=True, order=True)
class PlacedObject:
    """An object on the ground: where its middle is in ``base_link``, and how it is turned to the left."""

    kind: str
    ahead_m: int
    left_m: int = 0
    turned_deg: int = 0

    def __str__(self) -> str:
        aside = f", {abs(self.left_m)} m to the {'left' if self.left_m > 0 else 'right'}" if self.left_m else ""
        return (
            f"{self.kind} {self.ahead_m} m ahead{aside}{f', turned by {self.turned_deg}°' if self.turned_deg else ''}"
        )

    @property
    def mesh(self) -> meshes.Mesh:
        """Its triangles in ``base_link``."""
        return _built(self.kind).placed(self.ahead_m, self.left_m, math.radians(self.turned_deg))

    @property
    def radius_m(self) -> float:
        """Radius of the circle on the ground that contains it."""
        return float(np.hypot(*_built(self.kind).vertices_m[:, :2].T).max())


class StreetFrame(Frame):
    """A frame of a street; its text says what stands there."""

    things: tuple[PlacedObject, ...] = ()

    @classmethod
    def of(
        cls, things: Sequence[PlacedObject], lidar: LidarModel = _LIDAR, camera: CameraSensor | None = None
    ) -> StreetFrame:
        """Return the frame in which these things stand on level ground; equal things give equal bytes."""
        ground = meshes.box((2 * _GROUND_M, 2 * _GROUND_M, 0.1), (0.0, 0.0, -0.05), _GROUND_REFLECTIVITY)
        mesh = meshes.merged([ground, *(thing.mesh for thing in things)])
        mount = pose_matrix((0.0, 0.0, LIDAR_HEIGHT_M), (0.0, 0.0, 0.0, 1.0))
        frames = [Transform("base_link", "velodyne", mount)]
        points = scan(mesh, (0.0, 0.0, LIDAR_HEIGHT_M), lidar, generator(0, "street", 0, 0, "scan"))
        cloud = Cloud(CLOUD_TOPIC, START_NS, "velodyne", points)
        bundle = Bundle(0, 0, START_NS, (cloud.read_as(SensorReading.known(CLOUD_TOPIC, INTENSITY_CONVENTION)),))
        if camera is not None:
            frames.append(Transform("base_link", camera.name, camera.mount))
            pieces = [Piece(GROUND, ground), *(Piece(_piece(thing.kind), thing.mesh) for thing in things)]
            bundle = _with_picture(bundle, pieces, mesh, camera)
        street = cls(replace(bundle, transforms=TransformTree(frames)))
        object.__setattr__(street, "things", tuple(things))
        return street

    def __repr__(self) -> str:
        return f"<street with {'; '.join(map(str, self.things)) or 'nothing on it'}>"


def street(
    most: int = 4,
    *,
    kinds: Collection[str] = STREET_KINDS,
    ahead_m: tuple[int, int] = (6, 35),
    aside_m: int = 8,
    lidar: LidarModel = _LIDAR,
    camera: CameraSensor | None = None,
) -> st.SearchStrategy[StreetFrame]:
    """Return streets on which up to so many things stand, none within another one.

    They shrink to fewer things, of earlier kinds, nearer and straight ahead, not turned.

    Args:
        most: things.
        kinds: of :data:`mt_nodes.world.scene.objects.KINDS`, the plainest first.
        ahead_m, aside_m: where their middles may be, in whole metres.
        lidar: model of the LiDAR; fewer rays are quicker.
        camera: adds its picture and calibration.

    Raises:
        UsageError: no such kind, or nothing to draw from.
    """
    if unknown := sorted({*kinds} - {*KINDS}):
        raise UsageError(f"street: kinds: got {', '.join(unknown)}, expected some of {', '.join(KINDS)}")
    if most < 0 or not kinds or ahead_m[0] > ahead_m[1] or aside_m < 0:
        raise UsageError(f"street: got most {most}, {len(kinds)} kinds, ahead_m {ahead_m}, aside_m {aside_m}")
    thing = st.builds(
        PlacedObject,
        kind=st.sampled_from([*kinds]),
        ahead_m=st.integers(*ahead_m),
        left_m=st.integers(-aside_m, aside_m),
        turned_deg=st.sampled_from(_TURNS_DEG),
    )
    return _streets(st.lists(thing, max_size=most), lidar, camera)


@st.composite
def _streets(
    draw: st.DrawFn, things: st.SearchStrategy[list[PlacedObject]], lidar: LidarModel, camera: CameraSensor | None
) -> StreetFrame:
    # Composite, so that a failure shows what stands there and not how it was built.
    return StreetFrame.of(_apart(draw(things)), lidar, camera)


def clouds(most: int = 200, within_m: float = 40.0, frame_id: str = "base_link") -> st.SearchStrategy[Frame]:
    """Return frames of arbitrary clouds: up to so many points x, y, z within a cube, intensities 0 to 255.

    They shrink to fewer points, at round places. No physics holds in them: use them for what must hold of any cloud.
    """
    place = st.floats(-within_m, within_m, width=32, allow_nan=False)
    rows = st.lists(st.tuples(place, place, place, st.integers(0, 255)), min_size=1, max_size=most)
    return rows.map(lambda points: Frame.of_arrays(np.array(points, dtype=np.float32), frame_id=frame_id))


def images(height: int = 48, width: int = 64, frame_id: str = "camera") -> st.SearchStrategy[Frame]:
    """Return frames of arbitrary images, red, green, blue; they shrink to black. No scene is seen in them."""
    pixels = arrays.arrays(np.uint8, (height, width, 3), elements=st.integers(0, 255), fill=st.integers(0, 255))
    return pixels.map(lambda image: Frame.of_arrays(image=image, frame_id=frame_id))


def bundles(most: int = 200, height: int = 48, width: int = 64) -> st.SearchStrategy[Frame]:
    """Return frames of an arbitrary cloud and an arbitrary image of one instant."""

    def joined(cloud: Frame, image: Frame) -> Frame:
        return Frame(replace(cloud.bundle, images=image.bundle.images))

    return st.builds(joined, clouds(most), images(height, width))


def _apart(things: Sequence[PlacedObject]) -> list[PlacedObject]:
    """Return the things that stand within none before them."""
    placed: list[PlacedObject] = []
    for thing in things:
        away = [math.hypot(thing.ahead_m - o.ahead_m, thing.left_m - o.left_m) - o.radius_m for o in placed]
        if all(away_m > thing.radius_m for away_m in away):
            placed.append(thing)
    return placed


@lru_cache(maxsize=64)
def _built(kind: str) -> meshes.Mesh:
    return KINDS[kind].build(KINDS[kind].reflectivity)


def _piece(kind: str) -> str:
    return VEHICLE if KINDS[kind].label in ("car", "truck", "bus") else PERSON


def _with_picture(bundle: Bundle, pieces: list[Piece], mesh: meshes.Mesh, camera: CameraSensor) -> Bundle:
    from mt_nodes.world.scene.camera_rendering import photograph  # imports OpenCV

    pixels = photograph(pieces, mesh, 0.0, camera, generator(0, "street", 0, 0, "noise"))
    image = Image(IMAGE_TOPIC, START_NS, camera.name, pixels, "bgr8")
    return replace(bundle, images=(image,), camera_infos=(camera.info(CAMERA_INFO_TOPIC, START_NS, camera.name),))
