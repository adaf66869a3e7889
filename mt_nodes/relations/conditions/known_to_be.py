# SPDX-License-Identifier: Apache-2.0
"""Given: what a traffic rule asks of the source is known to be so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.relations.conditions.base import Condition
from mt_nodes.relations.facts.condition import evaluate, missing, parse
from mt_nodes.relations.facts.derived_facts import with_derived
from mt_nodes.relations.facts.scene_ego import told_motion
from mt_nodes.relations.facts.scene_facts import Fact, first_known

#: Of a stack that tells a yaw rate in place of steering: that of a usual car, as checks of commands have it.
WHEELBASE_M = 2.7


def _condition(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{where}: got {value!r}, expected a condition such as 'speed_kmh > 50'")
    parse(value)
    return value


@dataclass(frozen=True)
class KnownToBe(Condition):
    """A condition on the ego-vehicle, such as ``speed_kmh > 50``, is true by all that is known.

    Odometry of the very frame counts before what is known of the case beforehand (``mt replay --cases``), and that
    before what the source commands. What nothing tells is unknown, and what is unknown is not met.
    """

    by_facts: ClassVar[bool] = True

    condition: str = param("moving", convert=_condition, help="in the language of mt_nodes.relations.facts.condition")

    def unmet(self, bundle: Bundle, source: Output) -> str | None:
        """Look at the speed and the steering that are told, and at what is known of the case."""
        by_topics, by_command = (told_motion((bundle,), outputs, WHEELBASE_M) for outputs in ((), (source,)))
        of_the_case = {name: Fact(value, "the case") for name, value in bundle.facts.items()}
        known = first_known(*map(with_derived, (by_topics, of_the_case, by_command)))
        facts = {name: fact.value for name, fact in known.items() if fact.known}
        holds = evaluate(self.condition, facts)
        if holds:
            return None
        if holds is None:
            return f"it is unknown whether {self.condition}: {', '.join(missing(self.condition, facts))} not told"
        told = [f"{name} {value:.1f}" for name, value in facts.items() if type(value) in (int, float)]
        return f"it is not so that {self.condition} ({', '.join(told)})"
