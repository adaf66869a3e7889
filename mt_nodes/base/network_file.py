# SPDX-License-Identifier: Apache-2.0
"""A network in a file: what it takes, what it gives, and how it is computed."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import InfrastructureError, UsageError, needs_extra

Tensor = npt.NDArray[Any]

#: Types of tensors in ONNX's words.
_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(uint8)": np.uint8,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
}


@dataclass(frozen=True)
class TensorPort:
    """One input of a network: its name, its shape with None where any size will do, its type of numbers."""

    name: str
    shape: tuple[int | None, ...]
    dtype: npt.DTypeLike


class NetworkFile(ABC):
    """A network that is ready to be asked."""

    #: Empty where the file does not say.
    inputs: tuple[TensorPort, ...]

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, given: Sequence[Tensor]) -> dict[str, Tensor]:
        """Return every output by name, in the network's order.

        Raises InfrastructureError: the network cannot be computed with what it is given, or says what is no number.
        """
        shapes = ", ".join(str(tensor.shape) for tensor in given)
        try:
            outputs = self._computed(given)
        except Exception as error:
            what = str(error).strip().splitlines()
            reason = f"{type(error).__name__}: {what[-1] if what else ''}"
            raise InfrastructureError(f"network {self.path}: given {shapes} it fails: {reason:.400}") from error
        for name, tensor in outputs.items():
            # Boxes that are no numbers would be dropped, and a network that fails would have seen nothing.
            if tensor.dtype.kind == "f" and (bad := int(np.isnan(tensor).sum())):
                raise InfrastructureError(f"network {self.path}: {bad} of {tensor.size} numbers of '{name}' are NaN")
        return outputs

    @abstractmethod
    def _computed(self, given: Sequence[Tensor]) -> dict[str, Tensor]: ...


class OnnxFile(NetworkFile):
    """A network in ONNX, computed by ONNX Runtime on the processor."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        runtime = _module("onnxruntime", "onnx")
        options = runtime.SessionOptions()
        options.log_severity_level = 3  # errors: of older exports it warns a line a weight
        # Threads that spin between two layers take twice the processor time, from the other arm and the mutator.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise UsageError(f"onnx: {path}: no network can be read from it: {str(error).strip():.400}") from error
        self.inputs = tuple(
            TensorPort(
                port.name,
                tuple(size if isinstance(size, int) and size > 0 else None for size in port.shape),
                _TYPES.get(port.type, np.float32),
            )
            for port in self._session.get_inputs()
        )
        self._outputs = [port.name for port in self._session.get_outputs()]

    def _computed(self, given: Sequence[Tensor]) -> dict[str, Tensor]:
        fed = {p.name: _cast(t, p) for p, t in zip(self.inputs, given, strict=True)}
        return dict(zip(self._outputs, self._session.run(self._outputs, fed), strict=True))


class TorchScriptFile(NetworkFile):
    """A network in TorchScript, computed by PyTorch on the processor; its outputs are named if it names them."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._torch = _module("torch", "models")
        try:
            self._network = self._torch.jit.load(str(path), map_location="cpu").eval()
        except Exception as error:
            what = str(error).strip().splitlines()[0]
            raise UsageError(f"torchscript: {path}: no network can be read from it: {what:.400}") from error
        self.inputs = ()

    def _computed(self, given: Sequence[Tensor]) -> dict[str, Tensor]:
        torch = self._torch
        with torch.inference_mode():
            outputs = self._network(*(torch.from_numpy(np.ascontiguousarray(tensor)) for tensor in given))
        return _named(outputs)


def _cast(tensor: Tensor, port: TensorPort) -> Tensor:
    """Return a tensor in the type of an input."""
    cast = np.ascontiguousarray(tensor, dtype=port.dtype)
    if cast.dtype.kind in "iu" and not np.array_equal(cast, tensor):
        raise ValueError(f"'{port.name}' takes whole numbers, and is given fractions: picture: {{spread: [1]}}?")
    return cast


def _named(outputs: Any, prefix: str = "output") -> dict[str, Tensor]:
    """Return tensors by name, however deep they lie in tuples, lists and mappings; two of one name are one too many."""
    if hasattr(outputs, "detach"):
        return {prefix: outputs.detach().cpu().numpy()}
    inside = (
        outputs.items() if isinstance(outputs, Mapping) else ((f"{prefix}{i}", part) for i, part in enumerate(outputs))
    )
    found = [named for key, part in inside for named in _named(part, str(key)).items()]
    if len(named := dict(found)) < len(found):
        raise ValueError(f"several of its outputs have one name: {', '.join(name for name, _ in found)}")
    return named


def load_network(file: str, kind: str) -> NetworkFile:
    """Return the network of a file of a kind, ``onnx`` or ``torchscript``.

    Raises UsageError: there is no such file, it is none, or what computes it is not installed.
    """
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"{kind}: no file {path}; expected a path, beside the stack file unless it is absolute")
    return OnnxFile(path) if kind == "onnx" else TorchScriptFile(path)


def _module(name: str, extra: str) -> ModuleType:
    with needs_extra(extra, "such networks need the extra"):
        return importlib.import_module(name)
