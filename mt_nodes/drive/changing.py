# SPDX-License-Identifier: Apache-2.0
"""Makes the setting of a follow-up: the one place that draws and applies changes of scenarios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mt_nodes.drive.checking import checked
from mt_nodes.mutations.base import Draw
from mt_nodes.relations import Relation
from mt_nodes.scenarios.changes.base import Setting, WorldEffects
from mt_nodes.seeds import generator

if TYPE_CHECKING:
    from mt_nodes.drive.run import Planned


@dataclass(frozen=True, eq=False)
class Changed:
    """What a follow-up drives through, how it differs from the source, and how it was drawn."""

    setting: Setting
    effects: WorldEffects
    draws: tuple[Draw, ...]


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
