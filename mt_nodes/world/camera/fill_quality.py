# SPDX-License-Identifier: Apache-2.0
"""How well a hole was filled, measured where the truth is known: in a hole of the same shape beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.world.camera.standing_object import Flags, Singles

#: A like hole lies so many of its own widths aside, in the order of trial.
_ASIDE = (1.05, -1.05, 1.3, -1.3, 1.7, -1.7, 2.2, -2.2)
#: It is compared if at least this share of it is usable, and its share of ground differs by less than this.
_LEAST_USABLE, _GROUND = 0.7, 0.25
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


def errors_of(filled: Singles, true: Singles, where: Flags) -> FillError:
    """Compare pixels (h, w, c), shares of full scale, within a mask (h, w)."""
    apart = cv2.blur(filled**_GAMMA - true**_GAMMA, (5, 5)).reshape(filled.shape)
    light = float(np.sqrt((apart[where] ** 2).mean()))
    a, b = (p.mean(axis=2) for p in (filled, true))
    inner = where
    detail = (_gradient(a)[inner].mean() + 1e-3) / (_gradient(b)[inner].mean() + 1e-3)
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
