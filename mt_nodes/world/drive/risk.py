# SPDX-License-Identifier: Apache-2.0
"""Probability that a collision kills or severely injures somebody, by published curves: P = 1 / (1 + exp(c - k x)).

These curves describe populations. They rank outcomes and give expected numbers; they say nothing about one person, and
studies differ by more than their curves' own errors. Outside of their data they are extrapolations: a verdict should be
checked with another curve.

We know of no curve for children alone: they get that of adults without age, so that no age below 15 years changes a
result.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

from mt_nodes.world.drive.scenario import Person

KMPH_PER_MPS = 3.6
_LEAST_AGE_YEARS = 15.0


@dataclass(frozen=True)
class Curve:
    """A logistic curve.

    Attributes:
        c, k: of the formula. per_mps: of the unit of x in 1 m/s: 3.6 for km/h.
        what: what it counts, of whom, and its source.
    """

    c: float
    k: float
    per_mps: float
    what: str

    def __call__(self, speed_mps: float) -> float:
        """Return the probability at a speed, or change of speed, in m/s."""
        return 1.0 / (1.0 + exp(self.c - self.k * self.per_mps * speed_mps))


PEDESTRIAN_KILLED = Curve(
    6.9,
    0.090,
    KMPH_PER_MPS,
    "deaths against impact speed: E. Rosén, U. Sander, Pedestrian fatality risk as a function of car impact speed,"
    " 2009: 490 people of 15 years and more, hit by fronts of passenger cars, Germany 1999 to 2007. Coefficients as"
    " others quote them; they give what its abstract says: more than twice the risk of 40 km/h at 50, five times that"
    " of 30. Its interval is wide above 60 km/h",
)
CYCLIST_KILLED = Curve(
    5.95,
    0.088,
    KMPH_PER_MPS,
    "deaths against impact speed: J. Nie, G. Li, J. Yang, A study of fatality risk and head dynamic response of cyclist"
    " and pedestrian, 2015: 67 cyclists hit by passenger cars, China. Fitted here to what its abstract says: one half"
    " at 67.6 km/h, more than twice the risk of 40 km/h at 50 and about five times that of 30. A small sample",
)
DRIVER_KILLED = Curve(
    9.32,
    0.1206,
    KMPH_PER_MPS,
    "deaths of belted drivers against the change of their car's speed in frontal impacts with cars: D. Richards, R."
    " Cuerden, The relationship between speed and car driver injury severity, 2009: United Kingdom since 1983. Fitted"
    " here to figures quoted of it: 3 % at 30 mph, 17 % at 40, 60 % at 50, 92 % at 60",
)
UNPROTECTED_INJURED = Curve(
    3.164,
    0.288,
    1.0,
    "injuries of MAIS 3 and more of people without a car around them, against the change of their speed in m/s:"
    " coefficients of the planner of M. Geisslinger and others (TUMFTM/EthicalTrajectoryPlanning), after accidents in"
    " the United States",
)
DRIVER_INJURED = Curve(
    4.591,
    0.185,
    1.0,
    "injuries of MAIS 3 and more of people in cars, against the change of their car's speed in m/s, whatever side it"
    " was hit on: coefficients of the same planner",
)


def pedestrian_killed(age_years: float | None) -> Curve:
    """Return the curve for pedestrians: from an age of 15 on, Rosén and Sander's with age.

    c = 9.1 - 0.040 age, k = 0.095 per km/h, as quoted by others; above some 90 years it is an extrapolation.
    """
    if age_years is None or age_years < _LEAST_AGE_YEARS:
        return PEDESTRIAN_KILLED
    return Curve(9.1 - 0.040 * age_years, 0.095, KMPH_PER_MPS, PEDESTRIAN_KILLED.what)


def change_mps(closing_mps: float, mass_kg: float, other_kg: float | None) -> float:
    """Return the change of speed of a body in a plastic impact; other mass None: the other does not give way.

    Conservation of momentum, plastic impact through both centres: dv = closing * other / (own + other).
    """
    return closing_mps if other_kg is None else closing_mps * other_kg / (mass_kg + other_kg)


def risks(
    label: str, side: str, closing_mps: float, ego_kg: float, other_kg: float | None, person: Person | None
) -> tuple[float | None, float | None]:
    """Return the probabilities that a collision kills, and that it severely injures.

    They refer to the person that was hit (pedestrian, cyclist, motorcyclist), else to the ego's driver. Curves of
    deaths are for frontal impacts, so there are none for other sides, nor for motorcyclists.

    Args:
        label: of the body that was hit, :attr:`mt_nodes.world.drive.bodies.Facts.label`. side: of the ego.
        other_kg: mass of the body that was hit; None: it does not give way.
    """
    if label in ("pedestrian", "cyclist", "motorcycle"):
        own_kg = 75.0 if other_kg is None else other_kg
        injured = UNPROTECTED_INJURED(change_mps(closing_mps, own_kg, ego_kg))
        curve = {"pedestrian": pedestrian_killed(person.age_years if person else None), "cyclist": CYCLIST_KILLED}.get(
            label
        )
        return (curve(closing_mps) if curve and side == "front" else None), injured
    change = change_mps(closing_mps, ego_kg, other_kg)
    return (DRIVER_KILLED(change) if side == "front" else None), DRIVER_INJURED(change)
