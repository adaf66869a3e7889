# SPDX-License-Identifier: Apache-2.0
"""Applies changes of a world with draws that are given, as when a follow-up is made again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.world_changes.base import ScenarioChange, Setting, WorldEffects
from mt_nodes.relations.world_changes.parts import left_of, put_back

#: First instant at which a change of what sensors see is there, and the one behind the last; None: to the end.
Window = tuple[int, int | None]
WHOLE: Window = (0, None)


@dataclass(frozen=True, eq=False)
class ChangedWorld:
    """What a follow-up drives through, how it differs from the source, and how it was drawn.

    Attributes:
        back: parts of its world that are the source's again, see :mod:`mt_nodes.relations.world_changes.parts`.
        window: first instant at which a change of what sensors see is there, and the one behind the last; None: to the
            end.
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
    """Apply changes with draws that were made before, one after the other, and put parts of the world back."""
    made, effects = setting, WorldEffects()
    for change, draw in zip(changes, draws, strict=True):
        made, more = change.apply(made, draw)
        effects = effects.merged(more)
    return ChangedWorld(put_back(setting, made, back), left_of(effects, back), tuple(draws), tuple(back), window)
