# SPDX-License-Identifier: Apache-2.0
"""Bundles on their way to another process and what is made of them on its way back, as pickles.

What comes back names the messages of the source by number, so that they are the same objects again: that a message is
the source's own object says that it was not changed.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import IO, Any

import numpy as np

from mt_nodes.data.cdr import codec
from mt_nodes.data.intensity.sensor_reading import SensorReading
from mt_nodes.data.messages import Bundle, Wire


def without_decoded(bundle: Bundle) -> Bundle:
    """Return a bundle without the serialized bytes of what is decoded, which is all that a mutation looks at.

    Camera infos keep theirs: some fields are in them alone.
    """
    decoded = {message.topic for message in bundle.messages}
    kept = set(map(id, bundle.loose))

    def light(wire: Wire) -> Wire:
        whole = id(wire) in kept or wire.topic not in decoded or wire.type == codec.CAMERA_INFO
        return wire if whole else replace(wire, cdr=b"")

    return replace(bundle, wires=tuple(map(light, bundle.wires)))


def source_pickler(*args: Any, **settings: Any) -> pickle.Pickler:
    """Return what pickles a bundle for another process."""
    return _BundlePickler(*args, **settings)


def source_unpickler(file: IO[bytes], *, buffers: Sequence[bytearray]) -> pickle.Unpickler:
    """Return what reads such a pickle; nothing can write to the arrays that it returns."""
    return pickle.Unpickler(file, buffers=[memoryview(buffer).toreadonly() for buffer in buffers])


def result_pickler(source: Bundle) -> Callable[..., pickle.Pickler]:
    """Return what makes picklers of what was made of a bundle that came from another process."""
    return partial(_BundlePickler, known={id(one): number for number, one in enumerate(_parts(source))})


def result_unpickler(source: Bundle) -> Callable[..., pickle.Unpickler]:
    """Return what makes readers of such pickles; ``source``: the bundle that was sent, with all its bytes."""
    return partial(_ResultUnpickler, known=_parts(source))


def _parts(bundle: Bundle) -> list[Any]:
    """Return the objects of a bundle that are the same ones on the way back, in an order that all processes know."""
    clouds = (*bundle.clouds, *bundle.extra_clouds)
    arrays = [message.points for message in (*clouds, *bundle.radars)] + [image.pixels for image in bundle.images]
    messages = (*bundle.messages, *bundle.extra_clouds, *bundle.wires)
    wholes = (bundle, bundle.transforms, bundle.wires, bundle.loose)
    return [*wholes, *messages, *arrays, *(cloud.reading for cloud in clouds)]


class _BundlePickler(pickle.Pickler):
    def __init__(self, *args: Any, known: dict[int, int] | None = None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._known = known or {}

    def persistent_id(self, value: Any) -> int | None:
        return self._known.get(id(value))

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Wire):  # its bytes are sent beside the pickle, as arrays are
            rest = value.came_s, value.changed
            return _wire, (value.topic, value.type, value.stamp_ns, pickle.PickleBuffer(value.cdr), *rest)
        if isinstance(value, SensorReading):  # without the cloud that it was recognised by
            return _reading, (value.fields, value.dual_return, value.used)
        return NotImplemented


class _ResultUnpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes], *, buffers: Any, known: Sequence[Any]) -> None:
        super().__init__(file, buffers=buffers)
        self._known_objects = known

    def persistent_load(self, number: int) -> Any:
        return self._known_objects[number]


def _wire(topic: str, kind: str, stamp_ns: int, cdr: Any, came_s: float | None, changed: bool) -> Wire:
    return Wire(topic, kind, stamp_ns, bytes(cdr), came_s=came_s, changed=changed)


def _reading(fields: Any, dual_return: bool, used: bool) -> SensorReading:
    reading = SensorReading("", np.empty(0))
    vars(reading).update(fields=fields, dual_return=dual_return, used=used)
    return reading
