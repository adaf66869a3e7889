# SPDX-License-Identifier: Apache-2.0
"""What every adapter is: the reading (and, for hosted callables, the writing) of one message type."""

from __future__ import annotations

import dataclasses
import difflib
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.message_packages import origin
from mt_nodes.base.params import build
from mt_nodes.data.lanes import Lanes, SignalStates
from mt_nodes.data.message_headers import stamp_of
from mt_nodes.data.messages import Odometry
from mt_nodes.data.outputs import Control, Detections, Diagnostics, ImageBoxes, Path
from mt_nodes.data.perception import FreeSpace, PredictedObjects

PerceptionPart = Detections | ImageBoxes | PredictedObjects | SignalStates | Lanes | FreeSpace
OutputPart = PerceptionPart | Control | Path | Diagnostics | Odometry
#: Role of an output -> role of the adapters that read it, where these differ.
READ_AS = {"tracks": "detections"}


class Adapter(ABC):
    """Reads one message type. Stateless. A dataclass, when it has parameters."""

    type: ClassVar[str]
    #: Part of :class:`~mt_nodes.data.outputs.Output` that it fills: ``detections`` (``tracks`` as well), ``control``,
    #: ``boxes``, ``path``, ``signals``, ``lanes``, ``free_space``, ``predictions`` or ``diagnostics``; or what a world
    #: alone tells: ``odometry``.
    role: ClassVar[str]
    #: Whether its messages can say which input they answer; those of a headerless type are paired by their arrival.
    stamped: ClassVar[bool] = True

    @abstractmethod
    def stamp_ns(self, message: Any) -> int | None:
        """Return the stamp that says which input this answers; None when the message carries none."""

    @abstractmethod
    def decode(self, message: Any) -> OutputPart:
        """Return what the message says."""

    def encode(self, said: OutputPart) -> Any:
        """Return the message for an output of a hosted callable. Raises UsageError: this type is read only."""
        raise UsageError(f"{self.type} can be read but not published for a callable; choose another type")

    @classmethod
    def properties(cls) -> dict[str, str]:
        """Return what `mt list adapters` says beside type and role."""
        return {
            "confidence": "stamped" if cls.stamped else "headerless",
            "use": "read" if cls.encode is Adapter.encode else "read, publish",
            "package": origin(cls.type),
        }


class StampedAdapter(Adapter):
    """Base of adapters of messages that bear the stamp of what they answer, in the header or beside it."""

    def stamp_ns(self, message: Any) -> int | None:
        """Stamp of the message."""
        return stamp_of(message)


def adapter_for(role: str, type_name: str, name: str = "", params: Mapping[str, Any] | None = None) -> Adapter:
    """Return the adapter of a message type, or the one named, with its parameters.

    Raises UsageError: there is none (names those that exist), or it does not take the parameters.
    """
    cls = _class_for(role, type_name, name)
    if dataclasses.is_dataclass(cls):
        return build(cls, params, f"outputs.{role}.params")
    if params:
        names = ", ".join(map(str, params))
        raise UsageError(f"outputs.{role}.params: got {names}, but the adapter of {type_name} takes none")
    return cls()


def _class_for(role: str, type_name: str, name: str) -> type[Adapter]:
    known, said = plugins.catalogue("adapters"), role
    role = READ_AS.get(role, role)
    if name:
        adapter: type[Adapter] = plugins.find("adapters", name, role)
        if (adapter.type, adapter.role) != (type_name, role):
            raise UsageError(
                f"adapter '{name}' reads {adapter.role} from {adapter.type}; the stack file has {role} as {type_name}"
            )
        return adapter
    for cls in known.values():
        if cls.type == type_name and cls.role == role:  # type: ignore[attr-defined]
            return cls
    types = {c.type for c in known.values() if c.role == role}  # type: ignore[attr-defined]
    whole = re.sub(r"^(\w+)/(\w+)$", r"\1/msg/\2", type_name)  # as ROS 1 writes it
    if whole in types or difflib.get_close_matches(type_name, types, n=1, cutoff=0.8):
        raise UsageError(f"no adapter reads {said} from {type_name}{suggest(whole, types)}")
    raise UsageError(
        f"no adapter reads {said} from {type_name}; there are {', '.join(sorted(types))}; see `mt list adapters`, or "
        f"name the fields that hold it: outputs: {{{said}: {{topic: …, type: {type_name}, fields: {{…}}}}}}"
    )
