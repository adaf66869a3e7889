# SPDX-License-Identifier: Apache-2.0
"""Makes the setting of a follow-up: draws the changes of a scenario and applies them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mt_nodes.base.plugins import name_errors
from mt_nodes.base.seeds import generator
from mt_nodes.relations.relation import Relation
from mt_nodes.relations.world_changes.base import WorldEffects
from mt_nodes.relations.world_changes.change_application import ChangedWorld
from mt_nodes.world.drive.scenario_checks import checked

if TYPE_CHECKING:
    from mt_nodes.runs.loop.scenario_run import PlannedEpisode


def changed(planned: PlannedEpisode, relation: Relation, seed: int, draw: int = 0) -> ChangedWorld:
    """Apply a relation's changes one after the other; each draws by seed, relation, episode and draw number only.

    Where a finished run is driven again, it is what was made then.
    Raises NotApplicable: a change has no honest follow-up of this scenario. PluginError: a change raised an exception.
    UsageError: what was made cannot be driven through; the text names all that is wrong.
    """
    if planned.recorded_world is not None:
        return planned.recorded_world
    setting, effects, draws = planned.setting, WorldEffects(), []
    for step, change in enumerate(relation.scenario):
        with name_errors(change, "draw"):
            drawn = change.draw(generator(seed, relation.id, planned.number, None, f"{draw}.{step}"), setting)
        with name_errors(change, "apply"):
            setting, more = change.apply(setting, drawn)
        effects = effects.merged(more)
        draws.append(drawn)
    checked(setting.scenario, setting.road)
    return ChangedWorld(setting, effects, tuple(draws))
