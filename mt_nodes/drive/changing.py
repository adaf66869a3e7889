# SPDX-License-Identifier: Apache-2.0
"""Makes the setting of a follow-up: the one place that draws and applies changes of scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mt_nodes.drive.checking import checked
from mt_nodes.drive.episode import WHOLE, Window
from mt_nodes.drive.world_parts import left_of, put_back
from mt_nodes.mutations.base import Draw
from mt_nodes.relations import Relation
from mt_nodes.scenarios.changes.base import ScenarioChange, Setting, WorldEffects
from mt_nodes.seeds import generator

if TYPE_CHECKING:
    from mt_nodes.drive.run import Planned


@dataclass(frozen=True, eq=False)
class Changed:
    """What a follow-up drives through, how it differs from the source, and how it was drawn.

    Attributes:
        back: parts of its world that are the source's again, see :mod:`mt_nodes.drive.world_parts`.
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
) -> Changed:
    """Apply changes with draws that were made before, one after the other, and put parts of the world back."""
    made, effects = setting, WorldEffects()
    for change, draw in zip(changes, draws, strict=True):
        made, more = change.apply(made, draw)
        effects = effects.merged(more)
    return Changed(put_back(setting, made, back), left_of(effects, back), tuple(draws), tuple(back), window)


def changed(planned: Planned, relation: Relation, seed: int, draw: int = 0) -> Changed:
    """Apply a relation's changes one after the other; each draws by seed, relation, episode and draw number only.

    Where a finished run is driven again, it is what was made then.

    Raises:
        NotApplicable: a change has no honest follow-up of this scenario.
        UsageError: what was made cannot be driven through; the text names all that is wrong.
    """
    if planned.again is not None:
        return planned.again
    setting, effects, draws = planned.setting, WorldEffects(), []
    for step, change in enumerate(relation.scenario):
        drawn = change.draw(generator(seed, relation.id, planned.number, None, f"{draw}.{step}"), setting)
        setting, more = change.apply(setting, drawn)
        effects = effects.merged(more)
        draws.append(drawn)
    checked(setting.scenario, setting.road)
    return Changed(setting, effects, tuple(draws))
