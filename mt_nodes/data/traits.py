# SPDX-License-Identifier: Apache-2.0
"""Attributes of a person beside place, size and movement, as one text: ``age_years=7 compliance=crossing_on_red``.

Names are those of :class:`mt_nodes.world.drive.scenario.Person`; what is not known is left out. Blanks stand between
two traits and nowhere else: in a value they are told as ``_``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

COMPLIANCE, SKIN_TONE = "compliance", "skin_tone"
VIOLATING = ("crossing_on_red", "jaywalking")
"""Ways of crossing that break a rule; people with other values, or none, keep the rules."""


def text_of(traits: Mapping[str, object]) -> str:
    """Return traits as one text; those that are None or empty are left out, whole numbers have no decimal point."""
    return " ".join(f"{name}={_value_text(value)}" for name, value in traits.items() if value not in (None, ""))


def _value_text(value: object) -> str:
    plain = int(value) if isinstance(value, float) and value.is_integer() else value
    return "_".join(str(plain).split())


def trait(texts: Iterable[str], name: str) -> list[str]:
    """Return the value of a trait in each text; empty where it has none."""
    return [dict(part.split("=", 1) for part in text.split() if "=" in part).get(name, "") for text in texts]


def keeps_rules(text: str) -> bool:
    """Return whether a person with these traits keeps the rules."""
    return trait([text], COMPLIANCE)[0] not in VIOLATING
