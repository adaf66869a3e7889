# SPDX-License-Identifier: Apache-2.0
"""Speed of the ego vehicle for mutations: as given, as it moves, or assumed."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw

#: Names in a draw.
SPEED, RATE, SOURCE = "ego_speed_mps", "ego_yaw_rate_radps", "ego_motion"


def speed_in(draw: Draw, given_mps: float | None) -> float:
    """Return the ego's speed in m/s: as given, else as drawn."""
    return float(draw[SPEED] if given_mps is None else given_mps)


@dataclass(frozen=True)
class EgoSpeed:
    """Forward speed in m/s and yaw rate in rad/s of the ego, and where they come from, for people."""

    speed_mps: float
    yaw_rate_radps: float
    source: str

    def draw(self) -> Draw:
        """Return them as a part of a draw: ``apply`` needs no motion."""
        return {SPEED: self.speed_mps, RATE: self.yaw_rate_radps, SOURCE: self.source}

    @classmethod
    def drawn(cls, bundle: Bundle, given_mps: float | None, default_mps: float) -> Draw:
        """Return the part of a draw that holds them; nothing where the speed is given."""
        return {} if given_mps is not None else cls.of(bundle, None, default_mps).draw()

    @classmethod
    def of(cls, bundle: Bundle, given_mps: float | None, default_mps: float) -> EgoSpeed:
        """Return the speed of the ego at a bundle.

        ``given_mps``: the parameter of a mutation, None where it is not set: then the bundle's motion counts.
        ``default_mps``: what is assumed where the motion is unknown, and said so in ``source``.
        """
        motion = bundle.motion
        rate = 0.0 if motion is None or motion.yaw_rate_radps is None else motion.yaw_rate_radps
        if given_mps is not None:
            return cls(given_mps, 0.0, "as given")
        if motion is None or motion.speed_mps is None:
            reason = bundle.track.reason if bundle.track is not None else ""
            return cls(default_mps, rate, f"assumed: {reason or 'the ego motion is unknown'}")
        return cls(motion.speed_mps, rate, motion.source)
