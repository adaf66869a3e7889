# SPDX-License-Identifier: Apache-2.0
"""Messages that a change of the world does not reach: they stay, and the follow-up says why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import NoEffect, NotApplicable
from mt_nodes.data.messages import Bundle, Cloud, Image
from mt_nodes.relations.mutations.base import Draw

SENSORS = ("lidar", "camera", "radar")
#: Name in a message's draw: why it stays as it is.
UNTOUCHED = "untouched"
#: So much is compared at a time.
_BLOCK_BYTES = 65536


def drawn(topic: str, draw: Callable[[], Draw]) -> Draw:
    """Return what is drawn for one message, its names after ``<topic>|``; the reason where nothing reaches it.

    Raises NotApplicable: there is no honest follow-up of it.
    """
    try:
        of_message = draw()
    except NoEffect as reason:
        of_message = {UNTOUCHED: str(reason)}
    return {f"{topic}|{name}": value for name, value in of_message.items()}


def refuse_without_effect(draw: Draw, topics: Collection[str]) -> None:
    """Refuse a change that reaches none of the messages of these topics.

    Raises NotApplicable: with the reason of each.
    """
    reasons = reasons_in(draw)
    if topics and reasons.keys() >= set(topics):
        raise NotApplicable("; ".join(reasons[topic] for topic in topics))


def reasons_in(draw: Draw) -> dict[str, str]:
    """Return why messages stay as they are, by topic."""
    tail = f"|{UNTOUCHED}"
    return {name.removesuffix(tail): str(value) for name, value in draw.items() if name.endswith(tail)}


def unchanged(source: Iterable[Any], followup: Iterable[Any]) -> list[str]:
    """Return the topics of messages that a follow-up shows byte for byte as the source does, in the source's order."""
    after = {message.topic: message for message in followup}
    return [message.topic for message in source if message.topic in after and _same(message, after[message.topic])]


def without_reason(source: Bundle, followup: Bundle, sensors: Collection[str], reasons: Mapping[str, str]) -> str:
    """Return what breaks the promise that each of some sensors shows a change or says why not; empty if it holds."""
    for sensor in sensors:
        before, after = messages_of(source, sensor), messages_of(followup, sensor)
        if silent := [topic for topic in unchanged(before, after) if not reasons.get(topic)]:
            return f"{', '.join(silent)} of the {sensor} shows nothing of it, without a reason"
    return ""


def unmet_need(source: Bundle, followup: Bundle, requires: Iterable[str], reasons: Mapping[str, str]) -> str:
    """Return why a relation cannot be judged by a follow-up that leaves sensors untouched; empty if it can.

    A relation about a sensor (``requires``; of ``lidar or camera`` one suffices) needs one that shows the change, and
    every relation needs some message that does.
    """
    if not reasons:
        return ""
    untouched = {
        sensor
        for sensor in SENSORS
        if (before := messages_of(source, sensor))
        and {m.topic for m in before} <= reasons.keys() & set(unchanged(before, messages_of(followup, sensor)))
    }
    for need in requires:
        sensors = {role.removesuffix("_only") for role in need.split(" or ")} & {*SENSORS}
        if sensors and sensors <= untouched:
            return _why(source, sensors, reasons)
    present = {sensor for sensor in SENSORS if messages_of(source, sensor)}
    return _why(source, present, reasons) if present <= untouched else ""


def messages_of(bundle: Bundle, sensor: str) -> tuple[Cloud | Image, ...]:
    """Return the messages of the LiDARs (``lidar``), cameras (``camera``) or radars (``radar``)."""
    if sensor == "camera":
        return bundle.images
    return {"lidar": bundle.clouds, "radar": bundle.radars}.get(sensor, ())


def _why(source: Bundle, sensors: Collection[str], reasons: Mapping[str, str]) -> str:
    topics = [m.topic for sensor in sorted(sensors) for m in messages_of(source, sensor)]
    return f"no {' and no '.join(sorted(sensors))} shows the change: " + "; ".join(reasons[topic] for topic in topics)


def _same(old: Any, new: Any) -> bool:
    if old is new:
        return True
    if isinstance(old, Image):
        same_pixels = old.pixels.shape == new.pixels.shape and _same_rows(old.pixels, new.pixels)
        return old.compressed == new.compressed and old.encoding == new.encoding and same_pixels
    return old.points.dtype == new.points.dtype and _same_rows(old.raw, new.raw)


def _same_rows(old: npt.NDArray[Any], new: npt.NDArray[Any]) -> bool:
    """Compare in blocks, so that a change near the beginning ends it."""
    step = max(1, _BLOCK_BYTES * len(old) // max(1, old.nbytes))
    pieces = (slice(start, start + step) for start in range(0, len(old), step))
    return len(old) == len(new) and all(_same_bytes(old[piece], new[piece]) for piece in pieces)


def _same_bytes(old: npt.NDArray[Any], new: npt.NDArray[Any]) -> bool:
    first, second = (np.ascontiguousarray(rows).view(np.uint8) for rows in (old, new))
    return first.shape == second.shape and bool((first == second).all())
