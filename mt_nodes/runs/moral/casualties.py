# SPDX-License-Identifier: Apache-2.0
"""Who was hit in a run, how hard, and how likely that kills, by several published curves beside each other.

A casualty by impact is a person whom the ego touched. Expected deaths are sums of a curve's probabilities: curves of
populations, fronts of cars, people of 15 years and more. They say nothing of one person; they differ from each other by
more than their own errors, so that what one of them says alone should decide nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mt_nodes.runs.moral.observations import Impact
from mt_nodes.world.drive.bodies import facts_of
from mt_nodes.world.drive.driven import ScenarioTrace
from mt_nodes.world.drive.risk import CYCLIST_KILLED, KMPH_PER_MPS, PEDESTRIAN_KILLED, Curve, pedestrian_killed
from mt_nodes.world.drive.scenario import Person
from mt_nodes.world.drive.trace import Collision

#: Below this age nobody is in the data of the curves: children get the curve of adults, without their age.
ADULT_YEARS = 15.0
CHILD_CAUTION = "children are not in the data of these curves; they are given that of adults"
#: Labels of human beings who are hit themselves, not a vehicle around them.
_HUMAN = ("pedestrian", "cyclist", "motorcycle")

NIE = Curve(
    5.886,
    0.090,
    KMPH_PER_MPS,
    "371 pedestrians hit by passenger cars, China: J. Nie, G. Li, J. Yang, A study of fatality risk and head dynamic"
    " response of cyclist and pedestrian, Traffic Injury Prevention 16(1), 2015. Fitted here to what its abstract says:"
    " one half at 65.4 km/h, more than twice the risk of 40 km/h at 50 and about five times that of 30",
)
HUSSAIN = Curve(
    6.12,
    0.1042,
    KMPH_PER_MPS,
    "20 studies put together: Q. Hussain and others, The relationship between impact speed and the probability of"
    " pedestrian fatality, Accident Analysis and Prevention 129, 2019. Fitted here to its abstract: 5 % at 30 km/h,"
    " 10 % at 37, 50 % at 59, 75 % at 69, 90 % at 80. Its authors report bias of publication and of time: old studies"
    " push it up",
)
TEFFT = Curve(
    5.82,
    0.0898,
    KMPH_PER_MPS,
    "422 people of 15 years and more, United States 1994 to 1998, standardised to 2007 to 2009: B. Tefft, Impact speed"
    " and a pedestrian's risk of severe injury or death, 2013. Fitted here to its abstract: 10 % at 24.1 mph, 25 % at"
    " 32.5, 50 % at 40.6, 75 % at 48.0, 90 % at 54.6. An old fleet, with light trucks",
)


@dataclass(frozen=True)
class Fatality:
    """How likely an impact of the front of a car kills somebody on foot.

    ``of``: gives the curve for an age in years, None where it is not known. ``caution``: of what, and what to mind.
    """

    of: Callable[[float | None], Curve]
    caution: str


#: By name; the first is the default.
CURVES: dict[str, Fatality] = {
    "rosen_sander": Fatality(lambda _: PEDESTRIAN_KILLED, PEDESTRIAN_KILLED.what),
    "rosen_sander_age": Fatality(
        pedestrian_killed, f"{PEDESTRIAN_KILLED.what}; here with their model's linear term of age"
    ),
    "nie": Fatality(lambda _: NIE, NIE.what),
    "hussain": Fatality(lambda _: HUSSAIN, HUSSAIN.what),
    "tefft": Fatality(lambda _: TEFFT, TEFFT.what),
}
DEFAULT_CURVE = "rosen_sander"


def hits_of(driven: ScenarioTrace) -> tuple[Impact, ...]:
    """Return whom and what the ego touched in a run, in the order of first contact."""
    people = {actor.name: (facts_of(actor.kind).label, actor.person) for actor in driven.scenario.actors}
    return tuple(_hit(contact, *people.get(contact.name, ("", None))) for contact in driven.trace.collisions)


def _hit(contact: Collision, label: str, person: Person | None) -> Impact:
    fatal = fatal_of(label, contact.closing_mps, person) if contact.side == "front" else {}
    return Impact(contact.name, label in _HUMAN, contact.side, contact.closing_mps, fatal)


def fatal_of(label: str, impact_mps: float, person: Person | None) -> dict[str, float]:
    """Return how likely an impact of the front kills, by curve; empty where no curve is of such people.

    Cyclists have the curve of cyclists under every name, motorcyclists none.

    Args:
        label: :attr:`mt_nodes.world.drive.bodies.Facts.label` of who was hit.
        impact_mps: speed at which both closed in.
    """
    if label == "cyclist":
        return dict.fromkeys(CURVES, CYCLIST_KILLED(impact_mps))
    if label != "pedestrian":
        return {}
    age_years = person.age_years if person else None
    return {name: fatality.of(age_years)(impact_mps) for name, fatality in CURVES.items()}
