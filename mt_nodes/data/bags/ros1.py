# SPDX-License-Identifier: Apache-2.0
"""Messages of ROS 1 as CDR with ROS 2 types, and back; byte by byte where both have the same wire format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from rosbags.convert.converter import is_same_wireformat, migrate_bytes
from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from mt_nodes.base.errors import UsageError

Convert = Callable[[bytes], bytes]
_RENAMED = {"tf/msg/tfMessage": "tf2_msgs/msg/TFMessage"}


def ros2_type(ros1_type: str) -> str:
    """Return the name that a ROS 1 type has in ROS 2."""
    return _RENAMED.get(ros1_type, ros1_type)


class Ros1ToCdr:
    """Turns recorded ROS 1 messages into CDR; types unknown to ROS 2 keep their definition, with a ROS 2 header."""

    def __init__(self, bag: Path, definitions: Mapping[str, str]) -> None:
        """Take the definitions (text) of the bag's types by ROS 1 name.

        Raises UsageError: a definition cannot be understood.
        """
        self._source = _registered(bag, Stores.EMPTY, definitions)
        self.types = get_typestore(Stores.ROS2_JAZZY)
        unknown = {ros2_type(t): d for t, d in definitions.items() if ros2_type(t) not in self.types.fielddefs}
        fields = _registered(bag, Stores.EMPTY, unknown).fielddefs
        self.types.register({name: f for name, f in fields.items() if name not in self.types.fielddefs})

    def converter(self, ros1_type: str) -> Convert:
        """Return the function that turns the bytes of one message into CDR."""
        return _converter(self._source, self.types, ros1_type, ros2_type(ros1_type), to_cdr=True)


class CdrToRos1:
    """Turns CDR into ROS 1 messages; types unknown to ROS 1 keep their definition, with a ROS 1 header."""

    def __init__(self, bag: Path, definitions: Mapping[str, str]) -> None:
        """Take the definitions (text) of the bag's types, by name, where they are known."""
        self._source = _registered(bag, Stores.ROS2_JAZZY, definitions)
        self.types = get_typestore(Stores.ROS1_NOETIC)
        fields = self._source.fielddefs
        self.types.register({name: fields[name] for name in fields if name not in self.types.fielddefs})

    def converter(self, type_name: str) -> Convert:
        """Return the function that turns the CDR bytes of one message into ROS 1 bytes.

        Raises UsageError: the type's definition is not known.
        """
        if type_name not in self._source.fielddefs:
            raise UsageError(f"message type '{type_name}' cannot go into a ROS 1 bag: the bag does not define it")
        return _converter(self._source, self.types, type_name, type_name, to_cdr=False)


def _registered(bag: Path, base: Stores, definitions: Mapping[str, str]) -> Typestore:
    store = get_typestore(base)
    for name, text in definitions.items():
        try:
            found = get_types_from_msg(text, name)
        except TypesysError as error:
            raise UsageError(f"{bag}: the definition of message type '{name}' is not understood: {error}") from error
        store.register({n: f for n, f in found.items() if n not in store.fielddefs})
    return store


def _converter(source: Typestore, target: Typestore, source_type: str, target_type: str, *, to_cdr: bool) -> Convert:
    if is_same_wireformat(source, target, source_type, target_type):
        direct = target.ros1_to_cdr if to_cdr else source.cdr_to_ros1
        return lambda raw: bytes(direct(raw, target_type))
    cache: dict[str, object] = {}
    types = source, target, source_type, target_type
    return lambda raw: bytes(migrate_bytes(*types, cache, raw, src_is2=not to_cdr, dst_is2=to_cdr))
