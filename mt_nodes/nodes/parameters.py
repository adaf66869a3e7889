# SPDX-License-Identifier: Apache-2.0
"""ROS parameters from a node's dataclass: the one home of names, defaults, ranges and help."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import ParameterException
from rclpy.node import Node

from mt_nodes.errors import UsageError
from mt_nodes.params import build, plain, spec_of

T = TypeVar("T")


def read_parameters(node: Node, cls: type[T]) -> T:
    """Declare every field of a frozen dataclass as a read-only parameter and return the checked values.

    Raises:
        UsageError: a value has the wrong type or is out of range.
    """
    given: dict[str, Any] = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        default = plain(field.default)
        try:
            given[field.name] = node.declare_parameter(field.name, default, _descriptor(field)).value
        except ParameterException as error:
            raise UsageError(f"{node.get_name()}: parameter {field.name}: {error}") from error
    return build(cls, given, node.get_name())


def _descriptor(field: dataclasses.Field[Any]) -> ParameterDescriptor:
    spec = spec_of(field)
    about = f"{spec.help}{f' [{spec.unit}]' if spec.unit else ''}"
    # Types are checked by the core: to ROS, 2 is no rate because it is not 2.0.
    descriptor = ParameterDescriptor(description=about, read_only=True, dynamic_typing=True)
    if spec.choices:
        descriptor.additional_constraints = f"one of {', '.join(spec.choices)}"
    if spec.low is None or spec.high is None:
        return descriptor
    if isinstance(field.default, int):
        descriptor.integer_range = [IntegerRange(from_value=int(spec.low), to_value=int(spec.high), step=1)]
    else:
        descriptor.floating_point_range = [FloatingPointRange(from_value=float(spec.low), to_value=float(spec.high))]
    return descriptor
