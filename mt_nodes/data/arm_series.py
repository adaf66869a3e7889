# SPDX-License-Identifier: Apache-2.0
"""What both arms said over a stretch of input, in numbers: a row an input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: Numbers of a command that can be kept, as :class:`~mt_nodes.data.outputs.Control` names them.
COMMANDED = ("steering_rad", "yaw_rate_radps", "speed_mps", "acceleration_mps2", "throttle", "brake")
#: Time from an input to its answer, in ms.
ANSWER_MS = "answer_ms"


@dataclass(frozen=True, eq=False)
class ArmSeries:
    """What one arm said.

    Attributes:
        asked: (N,) whether it was given an input that it had to answer.
        answered: (N,) whether it did.
        numbers: by name, those of :data:`COMMANDED` and :data:`ANSWER_MS` that were kept: (N,), NaN where not told.
        errors: diagnostic statuses that were at ERROR, by name, each with the first row; None: none were told.
    """

    asked: Flags
    answered: Flags
    numbers: Mapping[str, Numbers]
    errors: Mapping[str, int] | None = None

    def __getitem__(self, name: str) -> Numbers:
        return self.numbers[name]


@dataclass(frozen=True, eq=False)
class SeriesWindow:
    """What both arms said to the same stretch of input, of N instants.

    Attributes:
        stamp_ns: (N,) of the inputs. changed: (N,) whether the follow-up arm was given a follow-up.
        source, followup: what each arm said; steering of a source is as the follow-up's is expected, so with the other
            sign where left and right are swapped.
    """

    stamp_ns: npt.NDArray[np.int64]
    changed: Flags
    source: ArmSeries
    followup: ArmSeries

    def __len__(self) -> int:
        return len(self.stamp_ns)

    @property
    def time_s(self) -> Numbers:
        """(N,) since the first instant."""
        return np.asarray((self.stamp_ns - self.stamp_ns[:1]) * 1e-9)

    @property
    def compared(self) -> Flags:
        """(N,) whether both arms were asked."""
        return self.source.asked & self.followup.asked
