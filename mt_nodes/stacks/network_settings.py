# SPDX-License-Identifier: Apache-2.0
"""What a stack file that names a network's file means: the callable that runs it, and what such a stack is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError

#: Keys of a stack file that name a network.
KINDS = ("onnx", "torchscript")
_MAKER = "mt_nodes.stacks.networks.network_stack:network_stack"


def read_network(value: Any, where: str) -> dict[str, Any]:
    """Read ``network``; what is in it is checked where the network is loaded.

    Raises:
        UsageError: it is no mapping.
    """
    if not isinstance(value, Mapping):
        raise UsageError(f"{where}: got {value!r}, expected a mapping such as {{output: yolov8}}")
    return dict(value)


def with_network(rows: dict[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """Return what a stack file says, with the callable of the network that it names, if it names one.

    What the file does not say is what holds for a network: it remembers nothing, and knows no map.

    Args:
        folder: that of the stack file, where the network's file is looked for.

    Raises:
        UsageError: naming the key, what was got and what was expected.
    """
    if rows.get("callable") == _MAKER:
        # Saved, and read back; what --set changes is in network.
        return {**rows, "params": {**(rows.get("params") or {}), **(rows.get("network") or {})}}
    kinds = [kind for kind in KINDS if rows.get(kind)]
    if not kinds:
        if rows.get("network"):
            raise UsageError(f"{where}: network: got it without a file, expected onnx: or torchscript: beside it")
        return rows
    if len(kinds) > 1 or any(rows.get(key) for key in ("callable", "command", "start", "params")):
        raise UsageError(f"{where}: {kinds[0]}: a network is all that is started; take out what else starts something")
    (kind,), file, network = kinds, rows[kinds[0]], rows.get("network")
    if not isinstance(file, str) or not isinstance(network, Mapping):
        raise UsageError(
            f"{where}: got {kind}: {file!r} and network: {network!r}, expected a path and {{output: yolov8}}"
        )
    from mt_nodes.stacks.networks.network_stack import roles_of

    taken, said = roles_of(str(network.get("output", "")))
    usual = {"inputs": taken, "outputs": said, "stateless": True, "map_free": True, "reset": "none"}
    params = {**network, "file": str((folder / file).resolve()), "kind": kind}
    return {**usual, **rows, "callable": _MAKER, "params": params}
