# SPDX-License-Identifier: Apache-2.0
"""Message classes by type name; packages that are not installed are errors that say what to install."""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import Any

from rclpy.serialization import deserialize_message

from mt_nodes.base.errors import UsageError
from mt_nodes.base.message_packages import remedy


@lru_cache
def message_class(type_name: str) -> Any:
    """Return the class of ``package/msg/Name``. Raises UsageError."""
    parts = type_name.split("/")
    if len(parts) not in (2, 3):
        raise UsageError(f"got message type '{type_name}', expected package/msg/Name")
    package, name = parts[0], parts[-1]
    try:
        return getattr(importlib.import_module(f"{package}.msg"), name)
    except ImportError as error:
        raise UsageError(
            f"message type {type_name}: Python package {package} is missing; {remedy([type_name])}"
        ) from error
    except AttributeError as error:
        raise UsageError(f"message type {type_name}: package {package} has no message {name}") from error


def available(type_name: str) -> bool:
    """Whether the type can be used here."""
    try:
        message_class(type_name)
    except UsageError:
        return False
    return True


def decode(type_name: str, data: bytes) -> Any:
    """Read serialized bytes."""
    return deserialize_message(data, message_class(type_name))
