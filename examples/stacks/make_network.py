# SPDX-License-Identifier: Apache-2.0
"""Writes high_cells.onnx, a network with the outputs of CenterPoint: a car in the middle of each high cell."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

#: Cells of 2 m: rows from 10 m to the right to 10 m to the left, columns from 0 to 40 m ahead.
ROWS, COLUMNS = 10, 20
#: Constant outputs: the middle of the cell, z of the centre, logarithm of length, width and height, no yaw.
HEADS = {"reg": (0.5, 0.5), "height": (0.75,), "dim": tuple(np.log((4.0, 2.0, 1.5)).tolist()), "rot": (0.0, 1.0)}


def write_network(path: Path) -> Path:
    """Write it: the heatmap is the map of heights, everything else is constant."""
    values = {name: np.array(v, np.float32)[None, :, None, None] for name, v in HEADS.items()}
    grids = {name: np.broadcast_to(v, (1, v.shape[1], ROWS, COLUMNS)) for name, v in values.items()}
    nodes = [helper.make_node("Identity", ["maps"], ["heatmap"])]
    nodes += [helper.make_node("Identity", [f"{name}_value"], [name]) for name in grids]
    inputs = [helper.make_tensor_value_info("maps", TensorProto.FLOAT, [1, 1, ROWS, COLUMNS])]
    shapes = {"heatmap": (1, 1, ROWS, COLUMNS), **{name: grid.shape for name, grid in grids.items()}}
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    constants = [numpy_helper.from_array(np.ascontiguousarray(grid), f"{name}_value") for name, grid in grids.items()]
    graph = helper.make_graph(nodes, "high_cells", inputs, outputs, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


if __name__ == "__main__":
    print(write_network(Path(*sys.argv[1:2] or ["high_cells.onnx"])))
