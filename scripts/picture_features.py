# SPDX-License-Identifier: Apache-2.0
"""What small windows of pictures look like in numbers, and how well a classifier tells two sets of them apart.

The numbers are those that find spliced and synthetic pictures: high-pass residuals with their histograms (J. Fridrich,
J. Kodovský, "Rich Models for Steganalysis of Digital Images", IEEE TIFS 7(3), 2012), their correlation between colours,
spectral bands and gradients, and colour. The classifier is extremely randomised trees (P. Geurts et al., Machine
Learning 63, 2006), each half of a cross-validation judged by trees that saw none of its groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Corners = npt.NDArray[np.int64]
GRAIN, EDGES, COLOUR = "grain", "edges", "colour"
#: Side and distance of windows, and the share of a window that must lie in a mask.
SIDE_PX, STEP_PX, WITHIN = 16, 8, 0.75
#: Fridrich and Kodovský's "SQUARE 5x5" and third-order filters.
_SQUARE = np.array(
    [[-1, 2, -2, 2, -1], [2, -6, 8, -6, 2], [-2, 8, -12, 8, -2], [2, -6, 8, -6, 2], [-1, 2, -2, 2, -1]], np.float32
)
_SQUARE /= 12.0
_THIRD = np.array([[1, -3, 3, -1]], np.float32) / 3.0
#: Residuals are counted up to this size, as the rich models do.
_TRUNCATED = 2
_BANDS = 4
_SMALL = 1e-3
#: Folds and trees, and how many windows of a class are enough: more only cost time.
_FOLDS, _TREES, _MOST = 5, 120, 3000


@dataclass(frozen=True, eq=False)
class Windows:
    """Features of windows.

    Attributes:
        features: (n, F). names: group of each of the F. group: (n,) number of what must not be learned from and judged
            by at once, such as the object that a window shows.
    """

    features: Floats
    names: tuple[str, ...]
    group: npt.NDArray[np.int64]

    def of(self, *groups: str) -> Floats:
        """Return the columns of some groups of features."""
        return self.features[:, [name in groups for name in self.names]]


def corners_in(mask: Mask, side: int = SIDE_PX, step: int = STEP_PX, within: float = WITHIN) -> Corners:
    """Return the upper left corners (n, 2), row and column, of windows that lie in a mask (H, W)."""
    share = cv2.boxFilter(mask.astype(np.float32), -1, (side, side), anchor=(0, 0), borderType=cv2.BORDER_CONSTANT)
    at = np.stack(np.meshgrid(*(np.arange(0, n - side, step) for n in mask.shape), indexing="ij"), -1).reshape(-1, 2)
    return np.asarray(at[share[at[:, 0], at[:, 1]] >= within])


def windows(rgb: Pixels, corners: Corners, group: int, alike: bool = False, side: int = SIDE_PX) -> Windows:
    """Return the features of windows of a picture (H, W, 3).

    Args:
        corners: (n, 2) of the windows.
        group: of all of them.
        alike: divide each window's deviations by their size, so that less contrast alone tells nothing.
        side: of the windows.
    """
    tiles = np.stack([rgb[r : r + side, c : c + side] for r, c in corners]) if len(corners) else _NOTHING(side)
    tiles = tiles.astype(np.float32)
    if alike:
        mean = tiles.mean(axis=(1, 2), keepdims=True)
        spread = tiles.mean(axis=-1).std(axis=(1, 2))[:, None, None, None]
        tiles = 128.0 + 40.0 * (tiles - mean) / np.maximum(spread, 1.0)
    columns = [*_grain(tiles), *_edges(tiles), *_colours(tiles)]
    names = tuple(name for name, _ in columns)
    return Windows(np.column_stack([c for _, c in columns]), names, np.full(len(tiles), group))


def _NOTHING(side: int) -> Pixels:  # noqa: N802
    return np.zeros((0, side, side, 3), np.uint8)


def _filtered(tiles: Singles, kernel: Singles) -> Singles:
    """Return the inner part of windows (n, h, w) filtered by a kernel."""
    h, w = kernel.shape
    view = np.lib.stride_tricks.sliding_window_view(tiles, (h, w), axis=(1, 2))
    return np.asarray(np.einsum("nijhw,hw->nij", view, kernel, optimize=True))


def _grain(tiles: Singles) -> Iterator[tuple[str, Floats]]:
    by_colour = [_filtered(tiles[..., i], _SQUARE) for i in range(3)]
    luma = tiles @ np.array([0.299, 0.587, 0.114], np.float32)
    square = _filtered(luma, _SQUARE)
    power = (square**2).mean(axis=(1, 2))
    yield GRAIN, np.log(power + _SMALL)
    yield GRAIN, (square**4).mean(axis=(1, 2)) / (power + _SMALL) ** 2
    for i, j in ((0, 1), (1, 2)):
        yield GRAIN, _correlation(by_colour[i], by_colour[j])
    for residual in (_filtered(luma, _THIRD), _filtered(luma, _THIRD.T)):
        whole = np.clip(np.rint(residual), -_TRUNCATED, _TRUNCATED)
        yield GRAIN, np.log(np.abs(residual).mean(axis=(1, 2)) + _SMALL)
        for size in range(_TRUNCATED + 1):
            yield GRAIN, (np.abs(whole) == size).mean(axis=(1, 2))
        yield GRAIN, (whole[:, :, 1:] * whole[:, :, :-1]).mean(axis=(1, 2))
        yield GRAIN, (whole[:, 1:] * whole[:, :-1]).mean(axis=(1, 2))


def _correlation(one: Singles, other: Singles) -> Floats:
    cov = (one * other).mean(axis=(1, 2))
    return np.asarray(cov / np.sqrt((one**2).mean(axis=(1, 2)) * (other**2).mean(axis=(1, 2)) + _SMALL))


def _edges(tiles: Singles) -> Iterator[tuple[str, Floats]]:
    luma = tiles.mean(axis=-1)
    slope = np.hypot(luma[:, 1:, 1:] - luma[:, 1:, :-1], luma[:, 1:, 1:] - luma[:, :-1, 1:]).reshape(len(tiles), -1)
    if not len(tiles):
        slope = np.zeros((0, 1), np.float32)
    for quantile in (0.5, 0.9, 1.0):
        yield EDGES, np.log(np.quantile(slope, quantile, axis=1) + _SMALL)
    side = luma.shape[1]
    spectrum = np.abs(np.fft.rfft2((luma - luma.mean(axis=(1, 2), keepdims=True)) * np.hanning(side)[:, None])) ** 2
    radius = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None])
    whole = spectrum.sum(axis=(1, 2)) + _SMALL
    for band in range(_BANDS):
        inside = (radius >= 0.5 * band / _BANDS) & (radius < 0.5 * (band + 1) / _BANDS)
        yield EDGES, np.log(spectrum[:, inside].sum(axis=1) / whole + 1e-6)


def _colours(tiles: Singles) -> Iterator[tuple[str, Floats]]:
    luma = tiles.mean(axis=-1)
    yield COLOUR, luma.mean(axis=(1, 2))
    yield COLOUR, luma.std(axis=(1, 2))
    for i, j in ((0, 1), (2, 1)):
        chroma = tiles[..., i] - tiles[..., j]
        yield COLOUR, chroma.mean(axis=(1, 2))
        yield COLOUR, chroma.std(axis=(1, 2))


def joined(parts: list[Windows]) -> Windows:
    """Return windows of several pictures as one set."""
    return Windows(
        np.concatenate([p.features for p in parts]), parts[0].names, np.concatenate([p.group for p in parts])
    )


def told_apart(first: Windows, second: Windows, groups: tuple[str, ...] = (GRAIN, EDGES, COLOUR)) -> float:
    """Return the area under the ROC curve with which trees tell two sets of windows apart: 0.5 not at all, 1 always.

    No window is judged by trees that saw one of its group. NaN if there are too few windows or groups.
    """
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    parts = [_thinned(one, rng) for one in (first, second)]
    if min(len(np.unique(p.group)) for p in parts) < 2 or min(len(p.group) for p in parts) < 2 * _FOLDS:
        return float("nan")
    x = np.concatenate([p.of(*groups) for p in parts])
    label = np.repeat([0, 1], [len(p.group) for p in parts])
    fold = np.concatenate([_folds(p.group) for p in parts])
    score = np.full(len(x), np.nan)
    for held in np.unique(fold):
        out = fold == held
        if len(np.unique(label[~out])) == 2:
            trees = ExtraTreesClassifier(_TREES, min_samples_leaf=3, class_weight="balanced", random_state=0)
            score[out] = trees.fit(x[~out], label[~out]).predict_proba(x[out])[:, 1]
    known = np.isfinite(score)
    return float(roc_auc_score(label[known], score[known]))


def _thinned(one: Windows, rng: np.random.Generator) -> Windows:
    if len(one.group) <= _MOST:
        return one
    chosen = rng.choice(len(one.group), _MOST, replace=False)
    return Windows(one.features[chosen], one.names, one.group[chosen])


def _folds(group: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the fold of each row: groups stay whole."""
    _, at = np.unique(group, return_inverse=True)
    return np.asarray(at % min(_FOLDS, int(at.max()) + 1))
