# SPDX-License-Identifier: Apache-2.0
"""The control: no change at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation


@dataclass(frozen=True)
class Identity(Mutation):
    """Sends the source again: any difference comes from the stack itself.

    Guaranteed: exactly one bundle is sent, without delay, with the same messages as the source.
    """

    sensors = ("lidar", "camera", "radar")
    role = "control"
    random = False

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Nothing is random."""
        return {}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Return the very same messages."""
        return Followup(((0, bundle),))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Prove that one bundle goes out, without delay, with the messages of the source."""
        if len(followup.bundles) != 1 or followup.bundles[0][0] != 0:
            return "the follow-up is not one bundle without delay"
        changed = followup.first.changed_topics(source)
        return f"changed {', '.join(sorted(changed))}" if changed else None
