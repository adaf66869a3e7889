# SPDX-License-Identifier: Apache-2.0
"""Stack files that name a network's file: the callable that runs it, and the defaults of such a stack."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError

#: Keys of a stack file that name a network.
KINDS = ("onnx", "torchscript")
_MAKER = "mt_nodes.stacks.networks.network_stack:network_stack"


def read_network(value: Any, where: str) -> dict[str, Any]:
    """Read ``network``; its contents are checked when the network is loaded. Raises UsageError: it is no mapping."""
    if not isinstance(value, Mapping):
        raise UsageError(f"{where}: got {value!r}, expected a mapping such as {{output: yolov8}}")
    return dict(value)


def with_network(rows: dict[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """Return the settings of a stack file, with the callable of its network, if it has one.

    Defaults are those of a network: it is stateless, and knows no map.
    ``folder``: that of the stack file, to which the network's file is relative.
    Raises UsageError: naming the key, what was got and what was expected.
    """
    if rows.get("callable") == _MAKER:
        # Read back from run.json; --set changes keys of `network`.
        return {**rows, "params": {**(rows.get("params") or {}), **(rows.get("network") or {})}}
    kinds = [kind for kind in KINDS if rows.get(kind)]
    if not kinds:
        if rows.get("network"):
            raise UsageError(f"{where}: network: got no file, expected onnx: or torchscript: with it")
        return rows
    if len(kinds) > 1 or any(rows.get(key) for key in ("callable", "command", "start", "params")):
        raise UsageError(f"{where}: {kinds[0]}: a network starts alone; leave out callable, command, start, params")
    (kind,), file, network = kinds, rows[kinds[0]], rows.get("network")
    if not isinstance(file, str):
        raise UsageError(f"{where}: {kind}: got {file!r}, expected the path of the network's file")
    if not isinstance(network, Mapping):
        lacks = "lacks network" if network is None else f"network: got {network!r}"
        raise UsageError(
            f"{where}: {lacks}, expected beside {kind} what the network says, such as network: {{output: yolov8}}; "
            "docs/networks.md lists what there is"
        )
    from mt_nodes.stacks.networks.network_stack import roles_of

    inputs, outputs = roles_of(str(network.get("output", "")))
    defaults = {"inputs": inputs, "outputs": outputs, "stateless": True, "map_free": True, "reset": "none"}
    params = {**network, "file": str((folder / file).resolve()), "kind": kind}
    return {**defaults, **rows, "callable": _MAKER, "params": params}
