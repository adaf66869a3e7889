# SPDX-License-Identifier: Apache-2.0
"""Small networks in Caffe's two files, of the layers that Apollo's segmentation network has."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

#: Outputs after the last layer: name -> channels, in Apollo's order.
PARTS = {"category_pt": 1, "instance_pt": 2, "confidence_pt": 1, "classify_pt": 5, "heading_pt": 2, "height_pt": 1}


def _number(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def _bytes(place: int, data: bytes) -> bytes:
    return _number(place << 3 | 2) + _number(len(data)) + data


def _blob(values: Floats) -> bytes:
    """A BlobProto: data in field 5, shape in field 7."""
    shape = _bytes(1, b"".join(_number(n) for n in values.shape))
    return _bytes(5, struct.pack(f"<{values.size}f", *values.ravel().tolist())) + _bytes(7, shape)


@dataclass
class MadeCaffe:
    """The text of a network, layer by layer, and its weights."""

    seed: int = 0
    text: list[str] = field(default_factory=list)
    model: bytes = b""

    def layer(self, kind: str, name: str, bottom: tuple[str, ...], top: tuple[str, ...], more: str = "") -> None:
        """Add a layer; names are written as clang-format leaves them in Apollo's file."""
        ends = "".join(f' bottom : "{b}"' for b in bottom) + "".join(f'\n   top : "{t}"' for t in top)
        self.text.append(f'layer {{\nname:\n  "{name}" type\n      : "{kind}"{ends} {more}\n}}')

    def convolution(self, kind: str, name: str, bottom: str, widths: tuple[int, int], kernel: int, stride: int) -> None:
        """Add one with random weights, and a ReLU behind it unless it is the last."""
        pad = 0 if kernel == 1 else 1
        numbers = f"num_output:\n    {widths[1]} bias_term : true pad : {pad} kernel_size : {kernel} stride : {stride}"
        self.layer(kind, name, (bottom,), (name,), f"convolution_param {{\n  {numbers}\n}}")
        rng = np.random.default_rng((self.seed, len(self.text)))
        shape = widths[::-1] if kind == "Convolution" else widths
        weights = rng.normal(0.0, (2.0 / (widths[0] * kernel**2)) ** 0.5, (*shape, kernel, kernel))
        blobs = _bytes(7, _blob(weights.astype(np.float32))) + _bytes(7, _blob(np.zeros(widths[1], np.float32)))
        self.model += _bytes(100, _bytes(1, name.encode()) + _bytes(2, kind.encode()) + blobs)
        if name != "deconv0":
            self.layer("ReLU", f"relu_{name}", (name,), (name,))

    def write(self, folder: Path) -> Path:
        """Write both files, and return the path of the prototxt file."""
        (folder / "deploy.caffemodel").write_bytes(self.model)
        (folder / "deploy.prototxt").write_text('name : "made"\n' + "\n".join(self.text))
        return folder / "deploy.prototxt"


def made_cnnseg(cells: int, seed: int = 0, parts: dict[str, int] = PARTS) -> MadeCaffe:
    """Return a network of Apollo's form that halves the grid once."""
    net = MadeCaffe(seed)
    shape = f"input_param {{ shape {{ dim:\n 1 dim : 8 dim : {cells} dim : {cells} }} }}"
    net.layer("Input", "input", (), ("data",), shape)
    net.layer(
        "Slice", "slice_[dump, mask]", ("data",), ("dump_blob", "mask"), "slice_param { slice_point:\n 7 axis : 1 }"
    )
    net.layer("Silence", "Silence_[dump_blob]", ("dump_blob",), ())
    net.convolution("Convolution", "conv0_1", "data", (8, 8), 1, 1)
    net.convolution("Convolution", "conv1", "conv0_1", (8, 12), 3, 2)
    net.convolution("Convolution", "conv1_1", "conv1", (12, 12), 3, 1)
    net.layer("Concat", "Concat_concat1", ("conv1", "conv1_1"), ("concat1",))
    net.convolution("Deconvolution", "deconv0", "concat1", (24, sum(parts.values())), 4, 2)
    points = " ".join(f"slice_point : {n}" for n in np.cumsum(list(parts.values()))[:-1].tolist())
    name = "Slice_[" + '"\n      "'.join(f"\\'{part}\\'" for part in parts) + "]"
    net.layer("Slice", name, ("deconv0",), tuple(parts), f"slice_param {{ {points} }}")
    net.layer("Sigmoid", "all_category_score", ("category_pt",), ("all_category_score",), "propagate_down : false")
    both = ("all_category_score", "mask")
    net.layer("Eltwise", "instance_ignore_layer", both, ("category_score",), "eltwise_param { operation:\n PROD }")
    net.layer("Sigmoid", "confidence_score", ("confidence_pt",), ("confidence_score",))
    net.layer("Sigmoid", "class_score", ("classify_pt",), ("class_score",))
    return net
