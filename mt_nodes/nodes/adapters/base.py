# SPDX-License-Identifier: Apache-2.0
"""What every adapter is: the reading (and, for hosted callables, the writing) of one message type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from mt_nodes import plugins
from mt_nodes.errors import UsageError
from mt_nodes.outputs import Control, Detections, ImageBoxes, Path

Said = Detections | Control | ImageBoxes | Path


class Adapter(ABC):
    """Reads one message type. Stateless; one file each."""

    type: ClassVar[str]
    #: Part of :class:`~mt_nodes.outputs.Output` that it fills: ``detections``, ``control``, ``boxes`` or ``path``.
    role: ClassVar[str]

    @abstractmethod
    def stamp_ns(self, message: Any) -> int | None:
        """Return the stamp that says which input this answers; None when the message carries none."""

    @abstractmethod
    def decode(self, message: Any) -> Said:
        """Return what the message says."""

    def encode(self, said: Said) -> Any:
        """Return the message for an output of a hosted callable.

        Raises:
            UsageError: this type is read only.
        """
        raise UsageError(f"{self.type} can be read but not published for a callable; choose another type")


def adapter_for(role: str, type_name: str, name: str = "") -> Adapter:
    """Return the adapter of a message type, or the one named.

    Raises:
        UsageError: there is none; names those that exist.
    """
    known = plugins.catalogue("adapters")
    if name:
        adapter: Adapter = plugins.find("adapters", name, role)()
        if (adapter.type, adapter.role) != (type_name, role):
            raise UsageError(
                f"adapter '{name}' reads {adapter.role} from {adapter.type}; the stack file has {role} as {type_name}"
            )
        return adapter
    for cls in known.values():
        if cls.type == type_name and cls.role == role:  # type: ignore[attr-defined]
            return cls()
    types = sorted(f"{c.type} ({c.role})" for c in known.values())  # type: ignore[attr-defined]
    raise UsageError(f"no adapter reads {role} from {type_name}; there are {', '.join(types)}; see `mt list adapters`")
