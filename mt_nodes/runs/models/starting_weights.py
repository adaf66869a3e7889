# SPDX-License-Identifier: Apache-2.0
"""Weights that a training of a detector begins with; import it only where PyTorch is wanted.

An exported network has no batch normalisation any more: its scale and shift have become those of the convolution before
it. A training that begins with weights goes on with the statistics that it has (frozen), as is usual where a network is
fine-tuned with few samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError
from mt_nodes.runs.models.torch_files import read_torch

Folded = tuple[torch.Tensor, torch.Tensor]


def start_from(network: nn.Module, weights: str) -> None:
    """Load weights into a network, as in the training that they are of.

    ``weights``: name of weights that ship, an ``.onnx`` or a ``.pt`` file of `mt models train-detector`.
    Raises UsageError: there is no such file, or it is of another network.
    """
    path = resources.find("weights", weights, (".onnx", ".pt"))
    try:
        if path.suffix == ".onnx":
            _load_exported(network, path)
        else:
            network.load_state_dict(read_torch(path))
    except (RuntimeError, ValueError) as error:
        raise UsageError(f"--start {weights}: are weights of another network: {str(error).splitlines()[0]}") from error


def freeze_statistics(network: nn.Module) -> None:
    """Have batch normalisation go on with the statistics that it has."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval()


def _load_exported(network: nn.Module, path: Path) -> None:
    named, folded = _exported(path)
    state, layers = network.state_dict(), dict(_normalised(network))
    own = {name: value for name, value in named.items() if name in state}
    inside = tuple(f"{at}." for convolution, (norm, _) in layers.items() for at in (convolution, norm))
    if {name for name in state if not name.startswith(inside)} - own.keys() or layers.keys() != folded.keys():
        raise ValueError(f"got {len(folded)} convolutions, expected {len(layers)} of the same names")
    network.load_state_dict({**state, **own})
    with torch.no_grad():
        for name, (_, norm) in layers.items():
            kernel, shift = folded[name]
            network.get_submodule(name).weight.copy_(kernel)
            norm.weight.fill_(1.0)
            norm.bias.copy_(shift)
            norm.running_mean.zero_()
            norm.running_var.fill_(1.0 - norm.eps)


def _exported(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Folded]]:
    """Return the arrays of an ONNX file that kept their names, and those of convolutions that did not, by module."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(path)).graph
    arrays = {row.name: torch.from_numpy(np.array(numpy_helper.to_array(row))) for row in graph.initializer}
    nameless = [node for node in graph.node if node.op_type == "Conv" and "::" in node.input[1]]
    return arrays, {_module_of(n.name): (arrays[n.input[1]], arrays[n.input[2]]) for n in nameless}


def _module_of(node: str) -> str:
    """Return the module that a node is of: ``down.0.0`` of ``/down.0/down.0.0/Conv``."""
    parts: list[str] = []
    for scope in node.strip("/").split("/")[:-1]:
        if parts and scope.startswith(f"{parts[-1]}."):
            parts.pop()
        parts.append(scope)
    return ".".join(parts)


def _normalised(network: nn.Module) -> Iterator[tuple[str, tuple[str, nn.BatchNorm2d]]]:
    """Yield the name of each convolution, and the normalisation behind it."""
    before = ""
    for name, module in network.named_modules():
        if isinstance(module, nn.BatchNorm2d):
            yield before, (name, module)
        if not list(module.children()):
            before = name
