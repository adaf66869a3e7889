# SPDX-License-Identifier: Apache-2.0
"""Which topic of a bag plays which part."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping

from mt_nodes import cdr
from mt_nodes.bag_reader import Topic
from mt_nodes.errors import UsageError, suggest

#: role -> message types that can play it
ROLES = {
    "lidar": (cdr.POINT_CLOUD,),
    "camera": (cdr.IMAGE, cdr.COMPRESSED_IMAGE),
    "camera_info": (cdr.CAMERA_INFO,),
    "region": (cdr.POLYGON,),
}


def candidates(role: str, topics: Mapping[str, Topic]) -> list[str]:
    """Return the topics that can play a role and have messages."""
    return sorted(name for name, topic in topics.items() if topic.type in ROLES[role] and topic.count)


def choose(topics: Mapping[str, Topic], given: Mapping[str, str], require: Collection[str], bag: str) -> dict[str, str]:
    """Return the topic of each role: the one given, else the only candidate.

    A camera info topic may also be found beside the chosen camera topic (``…/camera_info``). Roles that are not
    required and have no or several candidates stay out.

    Raises:
        UsageError: a given role or topic does not exist or does not fit; a required role has no or several candidates.
    """
    for role, topic in given.items():
        _refuse_misfit(role, topic, topics, bag)
    chosen = dict(given)
    for role in ROLES:
        found = candidates(role, topics)
        if role == "camera_info" and "camera" in chosen and len(found) > 1:
            found = [t for t in found if t.rpartition("/")[0] == chosen["camera"].rpartition("/")[0]] or found
        if role not in chosen and len(found) == 1:
            chosen[role] = found[0]
        if role in require and role not in chosen:
            raise UsageError(_unclear(role, found, topics, bag))
    return chosen


def _refuse_misfit(role: str, topic: str, topics: Mapping[str, Topic], bag: str) -> None:
    if role not in ROLES:
        raise UsageError(f"--topic {role}={topic}: no role '{role}'{suggest(role, ROLES)}")
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


def _unclear(role: str, found: Collection[str], topics: Mapping[str, Topic], bag: str) -> str:
    listed = _listed({name: topics[name] for name in found})
    if found:
        return f"{bag}: several topics can be the {role}: {listed}; choose with --topic {role}=TOPIC"
    return f"{bag}: no messages of type {' or '.join(ROLES[role])} for the {role}; the bag has {_listed(topics)}"


def _listed(topics: Mapping[str, Topic]) -> str:
    return ", ".join(f"{name} ({topic.type})" for name, topic in sorted(topics.items())) or "no topic at all"
