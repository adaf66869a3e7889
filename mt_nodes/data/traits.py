# SPDX-License-Identifier: Apache-2.0
"""What is told of a person beside place, size and movement, as one text: ``age_years=7 compliance=crossing_on_red``.

Names are those of :class:`mt_nodes.world.drive.scenario.Person`; what is not known is left out. Blanks stand between
two traits and nowhere else: in a value they are told as ``_``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

COMPLIANCE, SKIN_TONE = "compliance", "skin_tone"
VIOLATING = ("crossing_on_red", "jaywalking")
"""How people cross who break a rule by it; whoever does not is taken to keep the rules, and so is of whom nothing is
said."""


def text_of(traits: Mapping[str, object]) -> str:
    """Return traits as one text; those that are None or empty are left out, whole numbers are told as such."""
    return " ".join(f"{name}={_told(value)}" for name, value in traits.items() if value not in (None, ""))


def _told(value: object) -> str:
    plain = int(value) if isinstance(value, float) and value.is_integer() else value
    return "_".join(str(plain).split())


def trait(texts: Iterable[str], name: str) -> list[str]:
    """Return what is told of a trait in each of some texts, empty where nothing is."""
    return [dict(part.split("=", 1) for part in text.split() if "=" in part).get(name, "") for text in texts]


def keeps_rules(text: str) -> bool:
    """Tell whether a person of such traits keeps the rules."""
    return trait([text], COMPLIANCE)[0] not in VIOLATING
