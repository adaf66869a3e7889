# SPDX-License-Identifier: Apache-2.0
"""Segmentation networks from files: ours as ONNX, Apollo's as a pair of Caffe files; OpenCV evaluates both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError
from mt_nodes.stacks.reference.cell_features import FEATURES, CellGrid
from mt_nodes.stacks.reference.cell_objects import CATEGORY, CHANNELS, CLASS, CONFIDENCE, HEIGHT, OFFSET

Floats = npt.NDArray[np.float32]

#: Outputs of Apollo's that are needed -> channels; ours has all channels in one.
_CAFFE = {
    "category_score": slice(CATEGORY, CATEGORY + 1),
    "instance_pt": OFFSET,
    "confidence_score": slice(CONFIDENCE, CONFIDENCE + 1),
    "class_score": CLASS,
    "height_pt": slice(HEIGHT, HEIGHT + 1),
}


class CellNetwork:
    """Maps the features of a cloud to (12, cells, cells), with the channels of :mod:`cell_objects`."""

    def __init__(self, weights: str, grid: CellGrid) -> None:
        """Load a network.

        ``weights``: name of one that ships, path of an ONNX file, or of a prototxt file with a caffemodel file of the
        same name beside it. ``grid``: of the features.
        Raises UsageError: there is no such file, it cannot be read, or it is no segmentation network of such a grid.
        """
        path = resources.find("weights", weights, (".onnx", ".prototxt"))
        self._where, self._grid = str(path), grid
        self._outputs: dict[str, tuple[str, int]] = {}
        try:
            if path.suffix == ".prototxt":
                self._network, self._outputs = _caffe(path)
            else:
                self._network = cv2.dnn.readNetFromONNX(str(path))
            output = self(np.zeros((FEATURES, grid.cells, grid.cells), dtype=np.float32))
        except (cv2.error, ValueError) as error:
            what = getattr(error, "err", "") or error
            raise UsageError(f"weights {path}: no network can be read from it: {what}") from error
        if not np.isfinite(output).all():
            raise UsageError(f"weights {path}: says numbers that are not finite; the training failed, or it is damaged")

    def __call__(self, features: Floats) -> Floats:
        """Return the network's output for features (8, cells, cells).

        Raises UsageError: it is no segmentation network of such a grid.
        """
        self._network.setInput(features[None])
        if not self._outputs:
            return self._fitting(self._network.forward()[0], CHANNELS)
        layers = [layer for layer, _ in self._outputs.values()]
        out = np.zeros((CHANNELS, self._grid.cells, self._grid.cells), dtype=np.float32)
        blobs_by_layer = self._network.forwardAndRetrieve(layers)
        for (name, (_, place)), blobs in zip(self._outputs.items(), blobs_by_layer, strict=True):
            channels = _CAFFE[name]
            out[channels] = self._fitting(blobs[place][0], channels.stop - channels.start)
        return out

    def _fitting(self, output: Floats, channels: int) -> Floats:
        expected = (channels, self._grid.cells, self._grid.cells)
        if output.shape != expected:
            raise UsageError(f"weights {self._where}: got an output of shape {output.shape}, expected {expected}")
        return output


def _caffe(path: Path) -> tuple[cv2.dnn.Net, dict[str, tuple[str, int]]]:
    """Return a network and, for each required output, its layer and the index of the output in it."""
    model = path.with_suffix(".caffemodel")
    if not model.is_file():
        raise UsageError(f"weights {path}: expected its weights in {model}, which is not there")
    network = cv2.dnn.readNetFromCaffe(str(path), str(model))
    makers = _makers(path.read_text(encoding="utf-8", errors="replace"), network.getLayerNames())
    lacking = [name for name in _CAFFE if name not in makers]
    if lacking:
        raise UsageError(f"weights {path}: got no output {lacking[0]}, expected {', '.join(_CAFFE)}")
    return network, {name: makers[name] for name in _CAFFE}


def _makers(text: str, layers: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Return for each blob the layer that produces it and its index there: OpenCV only knows layers."""
    blocks = [block for block in re.split(r"\blayers?\s*\{", text)[1:] if not re.search(r'\btype\s*:\s*"Input"', block)]
    return {
        blob: (layer, place)
        for block, layer in zip(blocks, layers, strict=True)
        for place, blob in enumerate(re.findall(r'\btop\s*:\s*"([^"]*)"', block))
    }
