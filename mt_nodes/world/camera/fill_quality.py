# SPDX-License-Identifier: Apache-2.0
"""How well a hole was filled, measured where the truth is known: in a hole of the same shape beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import cv2
import numpy as np

from mt_nodes.base.arrays import Singles
from mt_nodes.world.camera.behind import Scene, background_of, fill_hole
from mt_nodes.world.camera.fill import Fill
from mt_nodes.world.camera.silhouette import Silhouette, upsample
from mt_nodes.world.camera.standing_object import Flags

#: Bounds, from the calibration in docs/removal.md: largest error in linear light, least share of the hole that real
#: pixels fill, and range of the ratio of gradients.
MOST_LIGHT, LEAST_GIVEN, DETAIL = 0.10, 0.90, (0.5, 2.0)
#: Largest step across the border of a fill, in those around it.
MOST_SEAM = 2.0
_NOISE, _EDGE_PX = 0.01, 5
#: A like hole lies so many of its own widths aside, in the order of trial.
_ASIDE = (1.05, -1.05, 1.3, -1.3, 1.7, -1.7, 2.2, -2.2)
#: It is compared if at least this share of it is usable, and its share of ground differs by less than this.
_LEAST_USABLE, _GROUND = 0.7, 0.25
#: Largest number of like holes; pixels between them and the hole.
_TESTS, _APART_PX = 2, 8
_GAMMA = 2.2


@dataclass(frozen=True)
class FillError:
    """Differences of filled pixels from the true ones.

    Attributes:
        light: root mean square in linear light, as a share of full scale, over areas of 5 x 5 pixels.
        similarity: structural similarity of brightness (Z. Wang et al., IEEE Transactions on Image Processing 13,
            2004), mean over the hole.
        detail: ratio of the mean gradient of the filled pixels to that of the true ones.
    """

    light: float
    similarity: float
    detail: float


@dataclass(frozen=True)
class FillQuality:
    """Measured quality of a filled hole.

    Attributes:
        given: share of the hole that real pixels fill, shifted or of earlier pictures. recalled: of the latter alone.
        seam: steps of brightness across its border, in those between neighbours around it.
        tests: errors in holes of the same shape beside it, filled in the same way, whose true pixels are known.
    """

    given: float
    recalled: float
    seam: float
    tests: tuple[FillError, ...]

    @property
    def light(self) -> float:
        """Largest error in linear light."""
        return max((test.light for test in self.tests), default=float("nan"))

    def refusal(self) -> str | None:
        """Return why the fill is not clean enough, None if it is."""
        if self.given < LEAST_GIVEN:
            return (
                f"only {self.given:.0%} of what is behind it can be filled with real pixels, expected {LEAST_GIVEN:.0%}"
            )
        if self.seam > MOST_SEAM:
            return f"its border would show: steps of {self.seam:.1f} times those around it, allowed {MOST_SEAM}"
        if not self.tests:
            return "there is no place like it beside it to measure the fill on"
        if self.light > MOST_LIGHT:
            return f"beside it, the same fill is {self.light:.3f} of full light off, allowed {MOST_LIGHT:.3f}"
        off = next((t.detail for t in self.tests if not DETAIL[0] <= t.detail <= DETAIL[1]), None)
        return None if off is None else f"beside it, the same fill has {off:.2f} times the detail, allowed {DETAIL}"


def fill_measured(scene: Scene, silhouette: Silhouette) -> tuple[Fill, FillQuality]:
    """Fill the hole of a silhouette, and measure the same fill where the truth is known."""
    hole = silhouette.hole
    whole, recalled = fill_hole(scene, hole, silhouette.body)
    inside = float(np.count_nonzero(hole))
    given = float(np.count_nonzero(whole.given & hole)) / inside
    seam = seam_of(whole.pixels, hole, scene.usable)
    tests = tuple(_tests(scene, hole, recalled)) if given >= LEAST_GIVEN and seam <= MOST_SEAM else ()
    return whole, FillQuality(given, float(np.count_nonzero(recalled)) / inside, seam, tests)


def seam_of(pixels: Singles, hole: Flags, usable: Flags) -> float:
    """Return the mean step of brightness across the border of a hole, in mean steps between neighbours beside it.

    Both are taken between neighbours in a row and in a column; next to what is not usable there is no border. A step of
    1 % of full scale, the noise of a camera by day, is the least that counts.
    """
    luma = pixels.mean(axis=2)
    near = cv2.dilate(hole.astype(np.uint8), np.ones((2 * _APART_PX + 1,) * 2, np.uint8)) != 0
    # The blurred edge of the object is not usable, and yet lies outside of the hole.
    outside = (cv2.dilate(usable.astype(np.uint8), np.ones((_EDGE_PX,) * 2, np.uint8)) != 0) & ~hole
    across: list[Singles] = []
    beside: list[Singles] = []
    for a, b in ((np.s_[:, :-1], np.s_[:, 1:]), (np.s_[:-1], np.s_[1:])):
        step = np.abs(luma[a] - luma[b])
        across.append(step[(hole[a] & outside[b]) | (outside[a] & hole[b])])
        beside.append(step[outside[a] & outside[b] & near[a]])
    one, other = np.concatenate(across), np.concatenate(beside)
    if not len(one) or not len(other):
        return float("inf")
    return float(one.mean() / max(float(other.mean()), _NOISE))


def _tests(scene: Scene, hole: Flags, recalled: Flags) -> Iterator[FillError]:
    """Yield the errors of fills of like holes, at most two."""
    rest = replace(scene, usable=scene.usable & ~hole)
    columns = np.flatnonzero(hole.any(axis=0))
    width, ground, found = columns[-1] - columns[0] + 1, _ground_share(scene, hole), 0
    for share in _ASIDE:
        shift = round(share * width + np.sign(share) * _APART_PX)
        like, from_earlier = (_shifted(mask, shift) for mask in (hole, recalled))
        true = like & scene.usable
        if np.count_nonzero(true) < _LEAST_USABLE * np.count_nonzero(hole):
            continue
        if abs(_ground_share(rest, like) - ground) > _GROUND:
            continue
        again, _ = fill_hole(rest, like, from_earlier)
        yield errors_of(np.clip(again.pixels, 0.0, 1.0), scene.pixels, true)
        found += 1
        if found == _TESTS:
            return


def _ground_share(scene: Scene, hole: Flags) -> float:
    _, cells = background_of(scene, hole)
    return (
        float((upsample(cells.astype(np.uint8), scene.step_px, scene.window) != 0)[hole].mean()) if hole.any() else 0.0
    )


def _shifted(mask: Flags, columns: int) -> Flags:
    shifted = np.zeros_like(mask)
    if columns > 0:
        shifted[:, columns:] = mask[:, :-columns]
    else:
        shifted[:, :columns] = mask[:, -columns:]
    return shifted


def errors_of(filled: Singles, true: Singles, where: Flags) -> FillError:
    """Compare pixels (h, w, c), shares of full scale, within a mask (h, w)."""
    apart = cv2.blur(filled**_GAMMA - true**_GAMMA, (5, 5)).reshape(filled.shape)
    light = float(np.sqrt((apart[where] ** 2).mean()))
    a, b = (p.mean(axis=2) for p in (filled, true))
    detail = (_gradient(a)[where].mean() + 1e-3) / (_gradient(b)[where].mean() + 1e-3)
    return FillError(light, float(_similarity(a, b)[where].mean()), float(detail))


def _gradient(luma: Singles) -> Singles:
    x, y = (cv2.Sobel(luma, cv2.CV_32F, *d, scale=0.125) for d in ((1, 0), (0, 1)))
    return np.asarray(cv2.magnitude(x, y))


def _similarity(a: Singles, b: Singles) -> Singles:
    def mean(x: Singles) -> Singles:
        return np.asarray(cv2.GaussianBlur(x, (11, 11), 1.5))

    ma, mb = mean(a), mean(b)
    va, vb, both = mean(a * a) - ma * ma, mean(b * b) - mb * mb, mean(a * b) - ma * mb
    c1, c2 = np.float32(0.01**2), np.float32(0.03**2)
    return np.asarray((2 * ma * mb + c1) * (2 * both + c2) / ((ma * ma + mb * mb + c1) * (va + vb + c2)))
