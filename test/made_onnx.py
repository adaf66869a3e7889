# SPDX-License-Identifier: Apache-2.0
"""Small networks in ONNX that find what is bright, or what is high: what they must say is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def _save(
    nodes: list[Any], constants: dict[str, Any], inputs: Any, outputs: dict[str, Any], path: Path, whole: bool = False
) -> Path:
    kept = [
        numpy_helper.from_array(np.asarray(value, np.int64 if isinstance(value, list) else np.float32), name)
        for name, value in constants.items()
    ]
    said = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()]
    numbers = TensorProto.UINT8 if whole else TensorProto.FLOAT
    taken = [helper.make_tensor_value_info(name, numbers, shape) for name, shape in inputs.items()]
    graph = helper.make_graph(nodes, "made", taken, said, kept)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
    return path


def bright_box(
    path: Path, size: tuple[Any, Any] = (64, 64), score: float = 0.9, level: float = 0.5, whole: bool = False
) -> Path:
    """Write a detector in the form of YOLOv8 with one class: one box around all values above a level.

    Args:
        size: width and height of its input; texts stand for any. whole: it takes bytes.
    """
    width, height = size
    make = helper.make_node
    nodes = [
        make("Cast", ["image"], ["numbers"], to=TensorProto.FLOAT),
        make("ReduceMax", ["numbers"], ["plane"], axes=[1], keepdims=0),
        make("Greater", ["plane", "level"], ["lit"]),
        make("Cast", ["lit"], ["ones"], to=TensorProto.FLOAT),
        make("ReduceMax", ["ones"], ["columns"], axes=[1], keepdims=0),
        make("ReduceMax", ["ones"], ["rows"], axes=[2], keepdims=0),
    ]
    for line, low, high in (("columns", "x0", "x1"), ("rows", "y0", "y1")):
        nodes += [
            make("ArgMax", [line], [f"{low}_whole"], axis=1, keepdims=1),
            make("ArgMax", [line], [f"{high}_whole"], axis=1, keepdims=1, select_last_index=1),
            make("Cast", [f"{low}_whole"], [low], to=TensorProto.FLOAT),
            make("Cast", [f"{high}_whole"], [f"{high}_last"], to=TensorProto.FLOAT),
            make("Add", [f"{high}_last", "one"], [high]),
            make("Sub", [high, low], [f"{line}_extent"]),
            make("Add", [high, low], [f"{line}_sum"]),
            make("Mul", [f"{line}_sum", "half"], [f"{line}_middle"]),
        ]
    # Where nothing is bright its score is 0.
    nodes += [
        make("ReduceMax", ["columns"], ["any"], axes=[1], keepdims=1),
        make("Mul", ["any", "score"], ["sure"]),
        make("Concat", ["columns_middle", "rows_middle", "columns_extent", "rows_extent", "sure"], ["flat"], axis=1),
        make("Unsqueeze", ["flat", "last"], ["output0"]),
    ]
    constants = {"half": 0.5, "level": level, "one": 1.0, "score": score, "last": [2]}
    return _save(nodes, constants, {"image": [1, 3, height, width]}, {"output0": [1, 5, 1]}, path, whole)


def high_places(path: Path, rows: int, columns: int) -> Path:
    """Write a detector in the form of CenterPoint: a car of 4 x 2 x 1.5 m in the middle of each high cell."""
    make = helper.make_node
    shape = [1, 1, rows, columns]
    nodes = [make("Slice", ["maps", "first", "second", "channel"], ["heatmap"])]
    constants: dict[str, Any] = {"first": [0], "second": [1], "channel": [1]}
    planes = {
        "reg": (0.5, 0.5),
        "height": (-0.9,),
        "dim": tuple(np.log((4.0, 2.0, 1.5)).tolist()),
        "rot": (np.sin(0.3), np.cos(0.3)),
    }
    for name, values in planes.items():
        constants[f"{name}_value"] = np.broadcast_to(
            np.array(values)[None, :, None, None], (1, len(values), *shape[2:])
        )
        nodes.append(make("Identity", [f"{name}_value"], [name]))
    outputs = {"heatmap": shape, **{name: [1, len(values), *shape[2:]] for name, values in planes.items()}}
    return _save(nodes, constants, {"maps": [1, 1, rows, columns]}, outputs, path)


def brightness(path: Path) -> Path:
    """Write a driving network: it says the mean red less the mean blue, and ten times the mean green."""
    make = helper.make_node
    nodes = [
        make("ReduceMean", ["image"], ["colours"], axes=[2, 3], keepdims=0),
        make("MatMul", ["colours", "weights"], ["command"]),
    ]
    weights = np.array([[1.0, 0.0], [0.0, 10.0], [-1.0, 0.0]], dtype=np.float32)
    return _save(nodes, {"weights": weights}, {"image": [1, 3, 48, 64]}, {"command": [1, 2]}, path)
