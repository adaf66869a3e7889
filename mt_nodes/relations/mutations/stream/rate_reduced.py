# SPDX-License-Identifier: Apache-2.0
"""Fewer frames a second."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.stream.whole_stream import WholeStream, need_messages, passed


@dataclass(frozen=True)
class RateReduced(WholeStream):
    """Sends one frame of ``one_of``, evenly spaced, and nothing of the others: a sensor that turns more slowly.

    Sent is the frame, numbered from 0, that each multiple of ``one_of`` falls into: it need not be whole, and of 10 Hz
    1.25 makes 8 Hz.
    Each sweep keeps its own points and time, so it is assumed that a slower sensor sees what a fast one does. Pairs of
    frames that are not sent are SKIPPED. Guaranteed: of any first n frames n / one_of were sent, rounded up.
    """

    one_of: float = param(
        2.0, low=1.001, high=1000.0, unit="frames", neutral=1.001, help="of so many frames one is sent"
    )

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Leave nothing to chance."""
        need_messages(bundle)
        return {}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Send it if the next multiple comes before the next frame."""
        return Followup(((0, bundle),) if -bundle.index % Fraction(self.one_of) < 1 else ())

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Count how many frames are owed up to this one, and to the one before."""
        before, upto = (ceil(n / Fraction(self.one_of)) for n in (source.index, source.index + 1))
        if upto > before:
            return passed(source, followup)
        return f"{len(followup.bundles)} bundles of a frame that is left out" if followup.bundles else None
