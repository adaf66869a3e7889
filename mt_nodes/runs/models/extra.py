# SPDX-License-Identifier: Apache-2.0
"""What needs PyTorch, and what is said where it is not installed."""

from __future__ import annotations

import importlib
from types import ModuleType

from mt_nodes.base.errors import UsageError


def torch_module(name: str = "torch") -> ModuleType:
    """Return ``torch``, or a package that builds on it; called before anything that imports it by itself.

    Raises UsageError: it is not installed; says what to type.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"{error}; trained models need the extra: pip install 'mt_nodes[models]'") from error


def device_of(name: str) -> str:
    """Return a device that is there, ``cpu``, ``cuda`` or ``cuda:N``, and have it compute the same every time.

    A processor is told to compute with one thread: sums of floats depend on how they are shared out.
    Raises UsageError: PyTorch is not installed, does not know the device, or does not find it.
    """
    torch = torch_module()
    try:
        device = torch.device(name)
        if device.type not in ("cpu", "cuda"):
            raise RuntimeError("expected cpu, cuda or cuda:N")
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        what = str(error).strip().splitlines()[0]
        raise UsageError(f"device '{name}' cannot be used: {what}; choose cpu, or look at `nvidia-smi`") from error
    torch.set_num_threads(1)
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    return name
