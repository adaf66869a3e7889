# SPDX-License-Identifier: Apache-2.0
"""Depth from one picture by a network of the user's own, in the scale of the LiDAR.

The network is an ONNX file, named by the environment variable ``MT_DEPTH_NETWORK``: a picture in (1, 3, height, width),
red, green, blue with ImageNet's mean and deviation, and inverse depth out, of any scale and offset (as MiDaS: R. Ranftl
et al., "Towards Robust Monocular Depth Estimation", TPAMI 2022).
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats, Mask, Singles
from mt_nodes.base.errors import UsageError
from mt_nodes.base.network_file import NetworkFile, load_network
from mt_nodes.data.images.codecs import Picture

VARIABLE = "MT_DEPTH_NETWORK"
#: Mean and standard deviation of ImageNet's pictures, in shares of full scale.
_MEAN, _DEVIATION = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
#: Size of the longer side where the network takes any, and what its sides are multiples of (that of MiDaS).
_SIDE_PX, _MULTIPLE_PX = 384, 32
#: Repetitions of the fit, each without what was off by more than this many times the median.
_FITS, _OUTLIER = 4, 3.0
_FEWEST = 50
#: Errors of so many of the returns of the upper part are kept to, and what is as far as the sky, in metres.
_QUANTILE, _SKY_M = 0.9, 500.0


def monocular_m(picture: Picture, range_m: Singles, measured: Mask, ahead: Floats) -> tuple[Singles, float] | None:
    """Return the range (h, w) of the cells by the network, and by which share it is off; None if none is set.

    Scale and offset of its inverse depth are fitted to the returns, robustly. The share is the 90 % quantile of the
    errors at the uppermost third of the returns, which lie next to what no beam reaches.
    Raises UsageError: the file is no such network, or ONNX Runtime is not installed.

    Args:
        range_m: (h, w) of the returns. measured: (h, w) which cells have one.
        ahead: (h, w) cosine of the angle between a cell's ray and the camera's axis.
    """
    path = os.environ.get(VARIABLE, "")
    if not path:
        return None
    found = _inverse_depth(_network(path), picture, measured.shape)
    given, inverse = found[measured], 1.0 / (range_m * ahead)[measured]
    scale, offset = _fitted(given, inverse)
    if scale <= 0.0:
        raise UsageError(f"{VARIABLE}={path}: what it finds nearer the LiDAR finds farther; expected inverse depth")
    fitted_m = 1.0 / np.maximum((scale * found + offset) * ahead, 1.0 / _SKY_M)
    error = np.abs(fitted_m - range_m)[measured] / range_m[measured]
    upper = np.nonzero(measured)[0] <= np.quantile(np.nonzero(measured)[0], 1.0 / 3.0)
    return fitted_m.astype(np.float32), float(np.quantile(error[upper], _QUANTILE))


@lru_cache(maxsize=2)
def _network(path: str) -> NetworkFile:
    if not Path(path).is_file():
        raise UsageError(
            f"{VARIABLE}: got '{path}', which is no file; expected the path of an ONNX network, or nothing"
        )
    network = load_network(path, "onnx")
    shapes = [port.shape for port in network.inputs]
    if len(shapes) != 1 or len(shapes[0]) != 4 or shapes[0][1] not in (3, None):
        raise UsageError(f"{VARIABLE}={path}: got inputs {shapes}, expected one of (1, 3, height, width)")
    return network


def _inverse_depth(network: NetworkFile, picture: Picture, shape: tuple[int, ...]) -> Singles:
    """Return what the network says of each cell (h, w)."""
    height, width = network.inputs[0].shape[2:]
    if height is None or width is None:
        share = _SIDE_PX / max(picture.size)
        height, width = (max(1, round(n * share / _MULTIPLE_PX)) * _MULTIPLE_PX for n in picture.size)
    small = cv2.resize(picture.rgb8(), (width, height), interpolation=cv2.INTER_AREA) / 255.0
    tensor = np.ascontiguousarray(((small - _MEAN) / _DEVIATION).transpose(2, 0, 1)[None], np.float32)
    said = next(iter(network([tensor]).values()))
    flat = np.asarray(said, np.float32).squeeze()
    if flat.ndim != 2:
        raise UsageError(f"{VARIABLE}={network.path}: got an output of {said.shape}, expected one value a pixel")
    return np.asarray(cv2.resize(flat, (shape[1], shape[0]), interpolation=cv2.INTER_AREA))


def _fitted(given: Singles, inverse: Floats) -> tuple[float, float]:
    """Return scale and offset of least squares, again without outliers."""
    use = np.ones(len(given), bool)
    scale = offset = 0.0
    for _ in range(_FITS):
        columns = np.column_stack([given[use], np.ones(int(use.sum()))])
        scale, offset = np.linalg.lstsq(columns, inverse[use], rcond=None)[0].tolist()
        off = np.abs(scale * given + offset - inverse)
        inlier = off <= max(_OUTLIER * float(np.median(off)), 1e-6)
        use = inlier if inlier.sum() >= _FEWEST else use
    return scale, offset
