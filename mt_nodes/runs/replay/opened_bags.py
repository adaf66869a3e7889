# SPDX-License-Identifier: Apache-2.0
"""Bags of a replay as they are opened: for the stack's sensors, and up to the first bundle that can be read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mt_nodes.base.errors import UsageError
from mt_nodes.data.bags.bundles import BagSource, Source, Unreadable
from mt_nodes.data.bags.topic_roles import MissingSensor
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import TransformTree
from mt_nodes.engine.compatibility import stack_for
from mt_nodes.stacks.stack import Stack


def source_for(
    stack: Stack, bag: Path, topics: Mapping[str, str], extra: TransformTree | None, *, episode: int, limit: int | None
) -> BagSource:
    """Open a bag for a stack; one without the stack's sensor is refused with a stack that takes what the bag has."""
    try:
        return BagSource(
            *(bag, topics, extra, episode, limit, stack.topics, bool(stack.callable)), intensities=stack.intensities
        )
    except MissingSensor as error:
        raise UsageError(f"{error}{stack_for(error.roles)}") from error


def first_readable(source: Source) -> Bundle | None:
    """Return the first bundle that can be understood, None of a bag without any.

    Raises MtError: there are bundles, and none can be understood; or the bag is damaged before its first one.
    """
    wrong: Unreadable | None = None
    for found in source.readings():
        if not isinstance(found, Unreadable):
            return found
        wrong = wrong or found
    if wrong is not None:
        raise wrong.error
    return None
