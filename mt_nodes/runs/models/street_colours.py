# SPDX-License-Identifier: Apache-2.0
"""Colours, grain and light of a made-up street, drawn anew for each picture.

A network that learned from one town's colours knows that town. So paint, clothes, facades, leaves, the sun and the sky
all vary by more than they do outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Ints, Mask, Singles
from mt_nodes.runs.models.labelled_streets import StreetObject
from mt_nodes.world.scene import paint
from mt_nodes.world.scene.appearance import Surface, main_colour, paint_of
from mt_nodes.world.scene.meshes import GLASS
from mt_nodes.world.scene.objects import mesh_of

Colour = tuple[float, float, float]

#: Surfaces -> linear albedos to choose from.
_SURFACES: dict[str, tuple[Colour, ...]] = {
    "asphalt": ((0.07, 0.07, 0.07), (0.13, 0.13, 0.13), (0.2, 0.19, 0.18)),
    "paving": ((0.14, 0.14, 0.14), (0.3, 0.28, 0.26), (0.08, 0.14, 0.04), (0.2, 0.22, 0.1)),
    "facade": ((0.5, 0.45, 0.36), (0.36, 0.18, 0.13), (0.55, 0.54, 0.5), (0.3, 0.3, 0.3), (0.6, 0.5, 0.3)),
    "wall": ((0.3, 0.3, 0.3), (0.35, 0.2, 0.15), (0.15, 0.1, 0.06), (0.5, 0.48, 0.44)),
    "leaves": ((0.04, 0.1, 0.02), (0.09, 0.15, 0.03), (0.05, 0.07, 0.03), (0.16, 0.17, 0.06)),
    "bark": ((0.1, 0.07, 0.05), (0.18, 0.16, 0.13), (0.05, 0.04, 0.03)),
    "soil": ((0.08, 0.14, 0.04), (0.2, 0.2, 0.08), (0.2, 0.14, 0.09)),
    "post": ((0.25, 0.25, 0.26), (0.05, 0.05, 0.05), (0.45, 0.45, 0.45), (0.15, 0.1, 0.06)),
}
#: How strong the grain of a surface is: coarse, fine.
_GRAIN = {"leaves": (0.5, 0.9), "soil": (0.4, 0.5), "bark": (0.3, 0.3), "asphalt": (0.15, 0.15)}
_USUAL_GRAIN = (0.15, 0.12)
_CAR_PAINTS: tuple[Colour, ...] = (
    *((0.7, 0.7, 0.7), (0.45, 0.46, 0.48), (0.25, 0.26, 0.27), (0.1, 0.1, 0.105), (0.03, 0.03, 0.03)),
    *((0.02, 0.05, 0.18), (0.3, 0.02, 0.02), (0.05, 0.1, 0.06), (0.1, 0.3, 0.5), (0.4, 0.33, 0.2)),
)
_TILE = 512
_GAMMA = 2.2


@dataclass(frozen=True, eq=False)
class PixelHits:
    """What the rays of a picture meet.

    ``any``: (H·W,) whether a ray meets anything. Of those that do (N,): triangle, place (N, 3), direction (N, 3) with a
    step of 1 m ahead, normal (N, 3) on the side that is looked at, whether the sun shines there, reflectivity.
    """

    any: Mask
    triangle: Ints
    place: Singles
    along: Singles
    normal: Singles
    lit: Mask
    reflectivity: Singles

    @property
    def range_m(self) -> Singles:
        """(N,) how far ahead it is."""
        return np.maximum(self.place[:, 0], np.float32(0.1))


@dataclass(frozen=True, eq=False)
class Daylight:
    """Sun and sky.

    ``to_sun``: (3,) unit vector. ``sun``: radiance of the sun, 0 under clouds. ``zenith``, ``horizon``: (3,) of the
    sky. ``haze_m``: at which distance a third of what is seen is air.
    """

    to_sun: Singles
    sun: float
    zenith: Singles
    horizon: Singles
    haze_m: float

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Daylight:
        """Draw a time of day and a weather."""
        azimuth, up = rng.uniform(-np.pi, np.pi), np.radians(rng.uniform(12.0, 70.0))
        to_sun = np.array([np.cos(up) * np.cos(azimuth), np.cos(up) * np.sin(azimuth), np.sin(up)], np.float32)
        cloudy = rng.random() < 0.35
        blue = rng.uniform(0.0, 0.15) if cloudy else rng.uniform(0.2, 1.0)
        grey = np.array([0.75, 0.78, 0.82], np.float32) * np.float32(rng.uniform(0.7, 1.1))
        zenith = (1.0 - blue) * grey + blue * np.array([0.25, 0.42, 0.75], np.float32)
        sun = 0.0 if cloudy else float(rng.uniform(0.8, 3.5))
        return cls(to_sun, sun, zenith, grey, float(np.exp(rng.uniform(np.log(150.0), np.log(3000.0)))))

    def sky(self, along: Singles, rng: np.random.Generator) -> Singles:
        """Return what rays (N, 3) see that meet nothing (N, 3)."""
        up = along[:, 2] / np.sqrt(np.einsum("ij,ij->i", along, along))
        share = np.sqrt(np.clip(up, 0.0, 1.0))[:, None]
        clouds = _grain()[_lattice(along[:, 1] / (0.2 + np.abs(up)), 40.0), _lattice(1.0 / (0.2 + np.abs(up)), 40.0)]
        bright = 1.0 + rng.uniform(0.0, 0.5) * clouds[:, None]
        return np.asarray(((1.0 - share) * self.horizon + share * self.zenith) * bright, np.float32)

    def on(self, albedo: Singles, shine: Singles, hits: PixelHits) -> Singles:
        """Return what is seen of surfaces (N, 3): Lambert's law, a mirror's share of sky, and air before all."""
        above = (0.5 + 0.5 * hits.normal[:, 2])[:, None]
        light = above * (0.5 * self.zenith + 0.5 * self.horizon) + (1.0 - above) * np.float32(0.25)
        sun = np.where(hits.lit, hits.normal @ self.to_sun, np.float32(0.0)) * np.float32(self.sun)
        radiance = albedo * (light + sun[:, None])
        back = np.einsum("ij,ij->i", hits.along, hits.normal)[:, None]
        mirrored = hits.along - 2.0 * back * hits.normal
        up = mirrored[:, 2:] / np.sqrt(np.einsum("ij,ij->i", mirrored, mirrored))[:, None]
        around = np.where(up > 0.03, self.horizon + (self.zenith - self.horizon) * np.sqrt(np.abs(up)), 0.12)
        radiance += shine[:, None] * (around - radiance)
        air = 1.0 - np.exp(-hits.range_m / np.float32(2.5 * self.haze_m))[:, None]
        return np.asarray(radiance + air * (self.horizon - radiance), np.float32)


class StreetColours:
    """The colours of one street's pieces: first the things, then what surrounds them."""

    def __init__(
        self, rng: np.random.Generator, turn_rad: float, things: list[StreetObject], names: list[str], focal_px: float
    ) -> None:
        self._rng, self._turn, self._things, self._names, self._focal = rng, turn_rad, things, names, focal_px
        self._lane = float(rng.uniform(-3.0, 3.0)) if rng.random() < 0.7 else None
        base = np.array([self._surface(name) for name in names], dtype=np.float32).reshape(-1, 3)
        self._base = np.clip(base * np.exp(rng.normal(0.0, 0.25, (len(names), 1))), 0.01, 0.85)
        self._strength = np.array([_GRAIN.get(name, _USUAL_GRAIN) for name in names], np.float32)
        self._strength *= np.float32(rng.uniform(0.5, 1.5))

    def _surface(self, name: str) -> Colour:
        choice = _SURFACES.get(name, ((0.2, 0.2, 0.2),))
        return choice[int(self._rng.integers(len(choice)))]

    def albedo(self, hits: PixelHits, owner: Ints) -> Singles:
        """Return the colours (N, 3) of places of pieces (N,)."""
        colours = self._base[owner].astype(np.float32)
        around = owner >= len(self._things)
        colours[around] = self._grained(colours[around], hits, around, owner[around])
        order = np.argsort(owner, kind="stable")
        edges = np.searchsorted(owner[order], np.arange(len(self._things) + 1))
        for number, thing in enumerate(self._things):
            rows = order[edges[number] : edges[number + 1]]
            if len(rows):
                colours[rows] = self._dressed(thing, hits, rows)
        return colours

    def shine(self, hits: PixelHits, owner: Ints) -> Singles:
        """Return which share of a place is a mirror (N,)."""
        share = np.zeros(len(owner), np.float32)
        vehicle = np.array([thing.name in ("car", "van", "truck", "bus") for thing in self._things], dtype=bool)
        of_vehicle = owner < len(self._things)
        of_vehicle[of_vehicle] = vehicle[owner[of_vehicle]]
        share[of_vehicle] = self._rng.uniform(0.02, 0.25)
        share[of_vehicle & (np.abs(hits.reflectivity - GLASS) < 1e-4)] = self._rng.uniform(0.1, 0.8)
        return share

    def _grained(self, colours: Singles, hits: PixelHits, around: Mask, owner: Ints) -> Singles:
        """Put grain, windows and lines over what surrounds things (n, 3)."""
        x, y, z = hits.place[around].T
        c, s = np.float32(np.cos(self._turn)), np.float32(np.sin(self._turn))
        along, across = c * x + s * y, c * y - s * x
        level = np.abs(hits.normal[around, 2]) > 0.7
        u, v = np.where(level, along, along + across), np.where(level, across, z)
        range_m = hits.range_m[around]
        for share, step_m, gone_m in zip(self._strength[owner].T, (1.2, 0.06), (200.0, 25.0), strict=True):
            grain = _grain()[_lattice(u, 16.0 / step_m), _lattice(v, 16.0 / step_m)]
            colours *= np.maximum(1.0 + share * grain / (1.0 + range_m / np.float32(gone_m)), 0.05)[:, None]
        kinds = np.array(self._names)[owner]
        house = np.flatnonzero((kinds == "facade") & ~level)
        painted = colours[house]
        paint.panes(painted, (along + across)[house], np.zeros(len(house), np.float32), z[house])
        colours[house] = painted
        if self._lane is not None:
            road = np.flatnonzero(kinds == "asphalt")
            painted = colours[road]
            px_m = range_m[road] / np.float32(self._focal)
            paint.painted_ground(painted, along[road], across[road] - np.float32(self._lane), range_m[road], px_m)
            colours[road] = painted
        return colours

    def _dressed(self, thing: StreetObject, hits: PixelHits, rows: Ints) -> Singles:
        """Return the paint of the catalogue (n, 3) in colours of its own."""
        own = hits.place[rows] - np.array([thing.x_m, thing.y_m, 0.0], np.float32)
        c, s = np.float32(np.cos(thing.yaw_rad)), np.float32(np.sin(thing.yaw_rad))
        own[:, 0], own[:, 1] = c * own[:, 0] + s * own[:, 1], c * own[:, 1] - s * own[:, 0]
        # Paint knows places on the thing as the catalogue has it; this one has a size of its own.
        own *= (_reach(mesh_of(thing.name).vertices_m) / _reach(thing.mesh.vertices_m)).astype(np.float32)
        pixel_m = float(hits.range_m[rows].mean()) / self._focal
        painted = paint_of(thing.name)(Surface(own, hits.reflectivity[rows], pixel_m)).albedo
        kinds, which = np.unique(painted, axis=0, return_inverse=True)
        main = (np.abs(kinds - np.array(main_colour(thing.name), np.float32)) < 1e-4).all(axis=1)
        varied = kinds * np.exp(self._rng.normal(0.0, 0.3, (len(kinds), 1)) + self._rng.normal(0.0, 0.08, kinds.shape))
        varied[main] = self._paint(thing.name)
        if thing.name not in ("car", "van") and self._rng.random() < 0.6:
            clothes = np.flatnonzero(~main & (kinds.max(axis=1) < 0.16))
            varied[clothes] = self._paint("adult") * 0.5
        return np.asarray(np.clip(varied, 0.005, 0.9)[which.reshape(-1)], np.float32)

    def _paint(self, name: str) -> Singles:
        """Draw a paint, or the colour of clothes."""
        if name in ("car", "van") and self._rng.random() < 0.85:
            chosen = np.array(_CAR_PAINTS[int(self._rng.integers(len(_CAR_PAINTS)))])
            return np.asarray(chosen * np.exp(self._rng.normal(0.0, 0.2)), np.float32)
        grey, colour = self._rng.uniform(0.02, 0.7), self._rng.uniform(0.0, 1.0, 3) ** 2
        return np.asarray(grey * (1.0 - 0.8 * self._rng.random() * (1.0 - colour)), np.float32)


def developed(radiance: Singles, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Return the picture (H, W, 3) of what is seen: exposure by its mean, white balance, lens blur, gamma, noise."""
    luma = float(np.minimum(radiance, 3.0).mean())
    radiance = (
        radiance
        * np.float32(rng.uniform(0.16, 0.42) / max(luma, 1e-3))
        * np.exp(rng.normal(0.0, 0.06, 3)).astype(np.float32)
    )
    radiance = np.asarray(cv2.GaussianBlur(radiance, (0, 0), float(rng.uniform(0.35, 0.9))))
    steps = 255.0 * np.clip(radiance, 0.0, 1.0) ** np.float32(1.0 / (_GAMMA * rng.uniform(0.6, 1.1)))
    noisy = steps + np.float32(rng.uniform(0.0, 5.0)) * rng.standard_normal(radiance.shape, dtype=np.float32)
    return np.asarray(np.clip(np.rint(noisy), 0.0, 255.0), dtype=np.uint8)


def _reach(vertices_m: Floats) -> Floats:
    return np.asarray(np.abs(vertices_m).max(axis=0))


def _lattice(metres: Singles, steps_per_m: float) -> Ints:
    return np.asarray(np.floor(metres * np.float32(steps_per_m)).astype(np.int64) % _TILE)


@lru_cache
def _grain() -> Singles:
    """A tile of noise of mean 0 and spread 1/3 or so, with patches of many sizes."""
    rng = np.random.Generator(np.random.PCG64(0))
    total = np.zeros((_TILE, _TILE), np.float32)
    for sigma in (0.7, 2.0, 6.0, 18.0):
        wide = np.pad(rng.standard_normal((_TILE, _TILE)).astype(np.float32), 64, mode="wrap")
        layer = cv2.GaussianBlur(wide, (0, 0), sigma)[64:-64, 64:-64]
        total += layer / layer.std()
    return np.asarray(np.clip(total / (3.0 * total.std()), -1.0, 1.0), np.float32)
