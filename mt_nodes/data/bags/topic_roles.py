# SPDX-License-Identifier: Apache-2.0
"""Roles of the topics of a bag."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.further_messages import RADAR_SCAN, RADAR_TRACKS

if TYPE_CHECKING:  # a stack's process reads no bag, and what reads one takes long to import
    from mt_nodes.data.bags.reader import Topic

#: role -> its message types
ROLES = {
    "lidar": (codec.POINT_CLOUD,),
    "camera": (codec.IMAGE, codec.COMPRESSED_IMAGE),
    "radar": (codec.POINT_CLOUD, RADAR_SCAN, RADAR_TRACKS),
    "camera_info": (codec.CAMERA_INFO,),
    "region": (codec.POLYGON,),
}
#: Roles whose messages a stack can be tested by alone.
SENSORS = ("lidar", "camera", "radar")
Roles = dict[str, tuple[str, ...]]


class MissingSensor(UsageError):
    """A bag has no topic for a sensor that is required. ``roles``: the roles for which it has some."""

    def __init__(self, text: str, roles: Collection[str] = ()) -> None:
        super().__init__(text)
        self.roles = frozenset(roles)


def candidates(role: str, topics: Mapping[str, Topic]) -> list[str]:
    """Return the topics that fit a role and have messages; the fields of a point cloud tell a radar from a LiDAR."""
    return sorted(
        name
        for name, topic in topics.items()
        if topic.type in ROLES[role]
        and topic.count
        and (topic.type != codec.POINT_CLOUD or bool(topic.radar) == (role == "radar"))
    )


def split(given: Mapping[str, str]) -> Roles:
    """Return the topics of each role from ``TOPIC`` or ``TOPIC,TOPIC``: no name of a topic has a comma."""
    return {role: tuple(name.strip() for name in names.split(",") if name.strip()) for role, names in given.items()}


def choose(
    topics: Mapping[str, Topic],
    given: Mapping[str, str],
    require: Collection[str] | Mapping[str, Sequence[str]],
    bag: str,
    frame_of: Callable[[str], str | None] = lambda topic: None,
) -> Roles:
    """Return the topics of each role: those given, else the only candidate.

    A stack that takes several topics of a role is given as many: those of its own names, where nothing else is said
    and the bag has all of them; which of others is which is never guessed. A camera's info topic is found beside it
    (``…/camera_info``), or by the frame that both are in. Roles that are not required and have no or several
    candidates stay out.
    Raises UsageError: a given role or topic does not exist or does not fit; a required role has no or several
    candidates, or another number of topics than the stack takes.

    Args:
        given: role -> ``TOPIC`` or ``TOPIC,TOPIC``, the leading one first.
        require: roles that must be there; as a mapping also the topics that the stack takes, by role, in its order.
        frame_of: tells the frame of a topic's first message; asked only where names do not tell.
    """
    taken: Mapping[str, Sequence[str]] = require if isinstance(require, Mapping) else {}
    chosen = split(given)
    for role, names in chosen.items():
        _refuse_misfit(role, names, topics, bag)
    for role in (r for r in ROLES if r not in chosen):
        found = candidates(role, topics)
        if role == "camera_info" and "camera" in chosen:
            chosen[role] = _infos(chosen["camera"], found, frame_of)
        elif len(taken.get(role, ())) > 1 and set(taken[role]) <= set(found):
            chosen[role] = tuple(taken[role])
        elif len(found) == 1:
            chosen[role] = (found[0],)
    chosen = {role: names for role, names in chosen.items() if names}
    for role in require:
        if len(chosen.get(role, ())) != len(taken.get(role, "1")) and not (role in chosen and not taken):
            text = _unclear(role, chosen.get(role, ()), taken.get(role, ()), topics, bag)
            if role not in SENSORS or candidates(role, topics):
                raise UsageError(text)
            raise MissingSensor(text, [each for each in ROLES if candidates(each, topics)])
    return chosen


def _infos(cameras: Sequence[str], found: Sequence[str], frame_of: Callable[[str], str | None]) -> tuple[str, ...]:
    """Return the info topics of cameras, in their order, without those that have none: the only one, else by name,
    else by frame.
    """
    if len(cameras) == 1 and len(found) == 1:
        return tuple(found)
    left = {camera: [t for t in found if t.rpartition("/")[0] == camera.rpartition("/")[0]] for camera in cameras}
    frames: dict[str, str | None] = {}
    for camera in (c for c, infos in left.items() if len(infos) != 1):
        frames = frames or {topic: frame_of(topic) for topic in found}
        frame = frame_of(camera)
        left[camera] = [topic for topic in found if frame and frames[topic] == frame]
    return tuple(infos[0] for infos in left.values() if len(infos) == 1)


def _refuse_misfit(role: str, names: Sequence[str], topics: Mapping[str, Topic], bag: str) -> None:
    if role not in ROLES:
        raise UsageError(f"--topic {role}={','.join(names)}: no role '{role}'{suggest(role, ROLES)}")
    if not names or len(set(names)) < len(names):
        raise UsageError(f"--topic {role}={','.join(names)}: expected one topic or several different ones")
    for topic in names:
        if topic not in topics:
            close = difflib.get_close_matches(topic, topics, n=1)
            hint = f"; did you mean '{close[0]}'" if close else ""
            raise UsageError(f"--topic {role}={topic}: {bag} has no such topic{hint}; it has {_listed(topics)}")
        if topics[topic].type not in ROLES[role]:
            expected = " or ".join(ROLES[role])
            fitting = ", ".join(candidates(role, topics)) or "none of the bag's topics"
            raise UsageError(
                f"--topic {role}={topic}: got type {topics[topic].type}, expected {expected}; of that type: {fitting}"
            )


def _unclear(role: str, chosen: Sequence[str], taken: Sequence[str], topics: Mapping[str, Topic], bag: str) -> str:
    found = candidates(role, topics)
    listed = _listed({name: topics[name] for name in found})
    if not found:
        return f"{bag}: no messages of type {' or '.join(ROLES[role])} for the {role}; the bag has {_listed(topics)}"
    if len(taken) > 1 or len(chosen) > 1:
        got = f"got {len(chosen)} ({', '.join(chosen) or 'none chosen'})"
        order = f"; name them in its order with --topic {role}=TOPIC,TOPIC out of {listed}"
        return f"{bag}: the stack takes {len(taken)} topics as {role} ({', '.join(taken)}), {got}{order}"
    return f"{bag}: several topics can be the {role}: {listed}; choose with --topic {role}=TOPIC"


def _listed(topics: Mapping[str, Topic]) -> str:
    return ", ".join(f"{name} ({topic.type})" for name, topic in sorted(topics.items())) or "no topic at all"


def by_recorded_topic(
    given: Mapping[str, Any], topics: Mapping[str, Topic], roles: Roles, names: Sequence[str], bag: Path
) -> dict[str, Any]:
    """Return what is given by topic, by the names of the recording: a stack's own names of its LiDARs stand for them.

    ``names``: the stack's, of ``roles["lidar"]``, in order.
    Raises UsageError: a topic is neither the recording's nor the stack's.
    """
    own = dict(zip(roles.get("lidar", ()), names, strict=False))
    known = {topic: given[name] for topic in topics for name in (topic, own.get(topic)) if name and name in given}
    if unknown := sorted(set(given) - set(known) - set(names)):
        lidars = ", ".join(candidates("lidar", topics)) or "no LiDAR"
        raise UsageError(f"intensities: {bag} has no topic {unknown[0]}; it has {lidars}")
    return known
