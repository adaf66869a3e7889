# SPDX-License-Identifier: Apache-2.0
"""Measurements of pictures, independent of any mutation.

Mutations prove themselves by these, so nothing here may share code with a mutation. All results are shares of full
scale unless stated otherwise, so that 8 and 16 bits compare; ``where`` is a mask (H, W), uint8, nonzero where to
measure.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.data.images.codecs import Picture

Mask = npt.NDArray[np.uint8]


def brightness(picture: Picture, where: Mask | None = None) -> float:
    """Return the mean brightness (BT.601), 0 to 1."""
    return float(cv2.mean(picture.luma(), mask=where)[0]) / picture.full_scale


def contrast(picture: Picture, where: Mask | None = None) -> float:
    """Return the standard deviation of the brightness."""
    _, deviation = cv2.meanStdDev(picture.luma(), mask=where)
    return float(deviation[0, 0]) / picture.full_scale


def sharpness(picture: Picture, where: Mask | None = None) -> float:
    """Return the standard deviation of the Laplacian of the brightness: the amount of detail."""
    _, deviation = cv2.meanStdDev(_detail(picture.luma()), mask=where)
    return float(deviation[0, 0]) / picture.full_scale


def noise(picture: Picture, where: Mask | None = None) -> float:
    """Return an estimate of the noise's standard deviation: of pixels against the median of their 3 x 3 neighbours.

    The estimate is the median of the absolute differences, between whole samples by interpolation, scaled to the
    standard deviation of a normal distribution: edges do not count.
    """
    luma = picture.luma()
    difference_px = cv2.absdiff(luma, cv2.medianBlur(luma, 3))
    inside = difference_px if where is None else difference_px[where != 0]
    counts = np.bincount(inside.reshape(-1))
    half = np.cumsum(counts) / max(1, counts.sum())
    middle = int(np.searchsorted(half, 0.5))
    # Between integers the median is where the cumulative count crosses a half.
    below = half[middle - 1] if middle else 0.0
    exact = middle - 0.5 + (0.5 - below) / max(half[middle] - below, 1e-12)
    return 1.4826 * max(0.0, float(exact)) / picture.full_scale


def saturation(picture: Picture, where: Mask | None = None) -> float:
    """Return the mean distance between the largest and the smallest of red, green and blue."""
    if picture.order == "mono":
        return 0.0
    r, g, b = cv2.split(picture.pixels)
    span = cv2.subtract(cv2.max(cv2.max(r, g), b), cv2.min(cv2.min(r, g), b))
    return float(cv2.mean(span, mask=where)[0]) / picture.full_scale


def colour(picture: Picture, where: Mask | None = None) -> tuple[float, float, float]:
    """Return the mean red, green and blue, 0 to 1; all the same without colour."""
    means = cv2.mean(picture.pixels, mask=where)
    if picture.order == "mono":
        return (means[0] / picture.full_scale,) * 3
    red, green, blue = (means[picture.channel(c)] / picture.full_scale for c in "rgb")
    return red, green, blue


def ends(picture: Picture) -> tuple[float, float]:
    """Return the least and the largest brightness."""
    least, largest, _, _ = cv2.minMaxLoc(picture.luma())
    return least / picture.full_scale, largest / picture.full_scale


def share_at_least(picture: Picture, level: float, where: Mask | None = None) -> float:
    """Return the share of pixels whose brightness is at least ``level`` of full scale."""
    return _share(np.asarray(cv2.compare(picture.luma(), level * picture.full_scale, cv2.CMP_GE)), where)


def difference(old: Picture, new: Picture) -> npt.NDArray[Any]:
    """Return the largest difference of each pixel (H, W) over its channels, in samples."""
    difference_px = cv2.absdiff(old.pixels, new.pixels)
    return difference_px if difference_px.ndim == 2 else np.asarray(reduce(cv2.max, cv2.split(difference_px)))


def largest_difference(old: Picture, new: Picture, where: Mask | None = None) -> float:
    """Return the largest difference of a sample."""
    return float(cv2.norm(old.pixels, new.pixels, cv2.NORM_INF, mask=where)) / old.full_scale


def mean_difference(old: Picture, new: Picture, where: Mask | None = None) -> float:
    """Return the mean absolute difference of the samples."""
    mean = cv2.mean(cv2.absdiff(old.pixels, new.pixels), mask=where)
    return float(np.mean(mean[: 1 if old.order == "mono" else 3])) / old.full_scale


def share_changed(old: Picture, new: Picture, threshold: float, where: Mask | None = None) -> float:
    """Return the share of pixels that differ by more than ``threshold`` of full scale."""
    return _share(np.asarray(cv2.compare(difference(old, new), threshold * old.full_scale, cv2.CMP_GT)), where)


def blockiness(picture: Picture) -> float:
    """Return how much steeper brightness changes at the edges of 8 x 8 blocks than next to them; 1 for no blocks."""
    luma = picture.luma().astype(np.float32)
    steps = [np.abs(np.diff(luma, axis=axis)).mean(axis=1 - axis) for axis in (0, 1)]
    edges = [step[7::8].mean() / max(float(np.delete(step, np.s_[7::8]).mean()), 1e-6) for step in steps]
    return float(np.mean(edges))


def _detail(luma: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.asarray(cv2.Laplacian(luma, cv2.CV_16S if luma.dtype == np.uint8 else cv2.CV_32F))


def _share(hits: Mask, where: Mask | None) -> float:
    """Return the share of nonzero pixels (H, W)."""
    if where is None:
        return cv2.countNonZero(hits) / hits.size
    return cv2.countNonZero(cv2.bitwise_and(hits, hits, mask=where)) / max(1, cv2.countNonZero(where))
