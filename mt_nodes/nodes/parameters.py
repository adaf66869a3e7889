# SPDX-License-Identifier: Apache-2.0
"""ROS parameters from a node's dataclass: the one home of names, defaults, ranges and help."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from typing import Any, TypeVar

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import ParameterException
from rclpy.node import Node

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.params import build, plain, spec_of

T = TypeVar("T")


def read_parameters(node: Node, cls: type[T], live: Collection[str] = ()) -> T:
    """Declare every field of a frozen dataclass as a parameter and return the checked values.

    ``live``: fields that can be changed while the node runs; the others are read-only.
    Raises UsageError: a value has the wrong type or is out of range, or a parameter is set that there is not.
    """
    given: dict[str, Any] = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        default = plain(field.default)
        about = descriptor(field, read_only=field.name not in live)
        try:
            given[field.name] = node.declare_parameter(field.name, default, about).value
        except ParameterException as error:
            raise UsageError(f"{node.get_name()}: parameter {field.name}: {error}") from error
    _refuse_unknown(node, given)
    return build(cls, given, node.get_name())


def _refuse_unknown(node: Node, known: Iterable[str]) -> None:
    """Refuse parameters that were set and that nothing reads: rclpy would run with the default without a word."""
    names = {*known, "use_sim_time", "start_type_description_service"}
    for name in node._parameter_overrides:
        if name not in names and not name.startswith("qos_overrides."):
            raise UsageError(f"{node.get_name()}: unknown parameter '{name}'{suggest(name, names)}")


def descriptor(field: dataclasses.Field[Any], *, read_only: bool = True) -> ParameterDescriptor:
    """Return what ROS is told of a parameter: help, unit, range."""
    spec = spec_of(field)
    about = f"{spec.help}{f' [{spec.unit}]' if spec.unit else ''}"
    # Types are checked by the core: to ROS, 2 is no rate because it is not 2.0.
    parameter = ParameterDescriptor(description=about, read_only=read_only, dynamic_typing=True)
    if spec.choices:
        parameter.additional_constraints = f"one of {', '.join(spec.choices)}"
    if spec.low is None or spec.high is None:
        return parameter
    if isinstance(field.default, int):
        parameter.integer_range = [IntegerRange(from_value=int(spec.low), to_value=int(spec.high), step=1)]
    else:
        parameter.floating_point_range = [FloatingPointRange(from_value=float(spec.low), to_value=float(spec.high))]
    return parameter
