# SPDX-License-Identifier: Apache-2.0
"""In a mirror the stack steers to the other side."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.relations.checks.steering_within import SteeringWithin


@dataclass(frozen=True)
class SteeringMirrored(SteeringWithin):
    """Where the mutation swaps left and right, the command is the source's with the other sign, within a tolerance.

    Where it does not, as with control and sham, the stack must steer as before: how much a stack wavers by itself is
    what its asymmetry is measured against.
    """
