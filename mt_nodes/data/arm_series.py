# SPDX-License-Identifier: Apache-2.0
"""Outputs of both arms over a sequence of inputs, as columns of numbers with a row for each input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Ints

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: Values of a command that can be stored, as :class:`~mt_nodes.data.outputs.Control` names them.
COMMANDED = ("steering_rad", "yaw_rate_radps", "speed_mps", "acceleration_mps2", "throttle", "brake")
#: Time from an input to its answer, in ms.
ANSWER_MS = "answer_ms"


@dataclass(frozen=True, eq=False)
class ArmSeries:
    """Outputs of one arm.

    Attributes:
        asked: (N,) whether it received an input that it had to answer.
        answered: (N,) whether it did.
        numbers: by name, of :data:`COMMANDED` and :data:`ANSWER_MS`: (N,), NaN where unknown.
        errors: diagnostic statuses at ERROR, by name, each with the first row; None: it publishes no diagnostics.
    """

    asked: Flags
    answered: Flags
    numbers: Mapping[str, Numbers]
    errors: Mapping[str, int] | None = None

    def __getitem__(self, name: str) -> Numbers:
        return self.numbers[name]


@dataclass(frozen=True, eq=False)
class SeriesWindow:
    """Outputs of both arms for the same N instants.

    Attributes:
        stamp_ns: (N,) of the inputs. changed: (N,) whether the follow-up arm received a follow-up.
        source, followup: outputs of each arm; the source's steering is as expected of the follow-up, with the opposite
            sign where left and right are swapped.
        measured: by name, what the check measured of each pair of answers: (N,), NaN where an arm did not answer.
    """

    stamp_ns: Ints
    changed: Flags
    source: ArmSeries
    followup: ArmSeries
    measured: Mapping[str, Numbers] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.stamp_ns)

    @property
    def time_s(self) -> Numbers:
        """(N,) since the first instant."""
        return np.asarray((self.stamp_ns - self.stamp_ns[:1]) * 1e-9)

    @property
    def compared(self) -> Flags:
        """(N,) whether both arms received an input."""
        return self.source.asked & self.followup.asked
