# SPDX-License-Identifier: Apache-2.0
"""Reads the structured values of a stack file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.yaml_files import refuse_unknown


def read_domains(value: Any, where: str) -> dict[str, int]:
    """Read ``domain``: ROS domains by arm. Raises UsageError: naming the key, what was got and what was expected."""
    if not isinstance(value, Mapping):
        raise UsageError(f"{where}: got {value!r}, expected {{source: 41, followup: 42}}")
    refuse_unknown(value, ("source", "followup"), where)
    for arm, domain in value.items():
        if not isinstance(domain, int) or isinstance(domain, bool) or not 0 <= domain <= 101:
            raise UsageError(f"{where}.{arm}: got {domain!r}, expected a ROS domain from 0 to 101")
    return dict(value)


def read_environment(value: Any, where: str) -> dict[str, str]:
    """Read ``env``: variables by name. Raises UsageError: naming the key, what was got and what was expected."""
    if not isinstance(value, Mapping):
        raise UsageError(f"{where}: got {value!r}, expected a mapping such as {{MODEL: small}}")
    if "ROS_DOMAIN_ID" in value:
        raise UsageError(f"{where}: ROS_DOMAIN_ID distinguishes the arms; set it with domain: instead")
    for name, text in value.items():
        if not isinstance(name, str) or isinstance(text, bool) or not isinstance(text, (str, int, float)):
            raise UsageError(f"{where}.{name}: got {text!r}, expected a text (quote it) or a number")
    return {name: str(text) for name, text in value.items()}


def read_camera(value: Any, where: str) -> dict[str, Any]:
    """Read ``camera``: numbers of :data:`CAMERA`. Raises UsageError."""
    if not isinstance(value, Mapping):
        raise UsageError(f"{where}: got {value!r}, expected a mapping such as {{width: 640, height: 360}}")
    refuse_unknown(value, CAMERA, where)
    for name, number in value.items():
        low, high = CAMERA[name]
        whole = isinstance(low, int)
        if isinstance(number, bool) or not isinstance(number, int if whole else (int, float)):
            raise UsageError(f"{where}.{name}: got {number!r}, expected a {'whole ' * whole}number")
        if not low <= number <= high:
            raise UsageError(f"{where}.{name}: got {number:g}, expected {low:g} to {high:g}")
    return dict(value)


def read_reset(value: Any, where: str) -> str:
    """Read ``reset``: a word or the name of a service. Raises UsageError."""
    if value in ("restart", "none") or (isinstance(value, str) and value.startswith("/")):
        return str(value)
    raise UsageError(f"{where}: got {value!r}, expected restart, none, or the name of a service such as /tracker/reset")


#: Settings of the simulated camera, with their bounds; whole numbers are pixels.
CAMERA: dict[str, tuple[float, float]] = {
    "width": (16, 4096),
    "height": (16, 4096),
    "field_of_view_deg": (10.0, 150.0),
    "forward_m": (-2.0, 4.0),
    "height_m": (0.3, 4.0),
}


def with_setting(rows: Mapping[str, Any], keys: Sequence[str], value: Any, where: str) -> dict[str, Any]:
    """Return a mapping with one value, at any depth, replaced or added."""
    first, *more = keys
    if not more:
        return {**rows, first: value}
    inner = rows.get(first) or {}
    if not isinstance(inner, Mapping):
        raise UsageError(f"{where}: {first} is {inner!r}, which has no parts")
    return {**rows, first: with_setting(inner, more, value, where)}
