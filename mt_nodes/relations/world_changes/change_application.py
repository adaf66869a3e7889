# SPDX-License-Identifier: Apache-2.0
"""Applies changes of a world with given draws, such as recorded ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.world_changes.base import ScenarioChange, Setting, WorldEffects
from mt_nodes.relations.world_changes.parts import left_of, restored

#: First instant at which a change of sensor data applies, and the one after the last; None: to the end.
Window = tuple[int, int | None]
WHOLE: Window = (0, None)


@dataclass(frozen=True, eq=False)
class ChangedWorld:
    """The follow-up's world, its differences from the source, and the draws.

    ``back``: parts of its world that are the source's again, see :mod:`mt_nodes.relations.world_changes.parts`.
    ``window``: first instant at which a change of sensor data applies, and the one after the last; None: to the end.
    """

    setting: Setting
    effects: WorldEffects
    draws: tuple[Draw, ...]
    back: tuple[str, ...] = ()
    window: Window = WHOLE


def applied(
    setting: Setting,
    changes: Sequence[ScenarioChange],
    draws: Sequence[Draw],
    back: Sequence[str] = (),
    window: Window = WHOLE,
) -> ChangedWorld:
    """Apply changes with given draws, one after the other, and revert parts of the world."""
    changed, effects = setting, WorldEffects()
    for change, draw in zip(changes, draws, strict=True):
        changed, more = change.apply(changed, draw)
        effects = effects.merged(more)
    return ChangedWorld(restored(setting, changed, back), left_of(effects, back), tuple(draws), tuple(back), window)
