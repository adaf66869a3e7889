# SPDX-License-Identifier: Apache-2.0
"""A trained driving model as a stack: a picture in, speed and steering out."""

from __future__ import annotations

import math
import os
import re
from collections import deque
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError
from mt_nodes.data.outputs import Control, Output
from mt_nodes.runs.models.extra import device_of

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
#: Frames farther apart are of two drives.
_GAP_NS = 1_000_000_000
_DECIMALS = 6


class DrivingModel:
    """Says the speed that is wanted at the next frame, and the steering of the road wheels, positive to the left.

    No speed is below 0: a network is a little off, and what is backwards by a little is meant to stand.

    A network that looks at several frames says nothing until it has seen so many of a drive; a step of the stamps of
    more than a second, either way, begins another drive.
    """

    def __init__(self, weights: str, device: str = "cpu", wheelbase_m: float = 2.7) -> None:
        """Load a model. Raises UsageError: PyTorch is not installed, or there are no such weights.

        Args:
            weights: file, or the name of one that ships; ``${NAME}`` stands for an environment variable, and
                ``${NAME:-otherwise}`` for that or, where it is not set, for something else.
            device: ``cpu``, ``cuda`` or ``cuda:N``.
            wheelbase_m: by which the yaw rate is told, too, for messages that have no steering.
        """
        device_of(device)
        from mt_nodes.runs.models.answers import Answering
        from mt_nodes.runs.models.weights_file import load_weights

        model = load_weights(weights_path(weights))
        self.about = model.about
        self._answer = Answering(model, device)
        self._wheelbase_m = wheelbase_m
        self._frames: deque[npt.NDArray[np.uint8]] = deque(maxlen=self.about.architecture.frames)
        self._stamp_ns: int | None = None

    def __call__(self, image: npt.NDArray[np.uint8], stamp_ns: int | None = None) -> Output | None:
        """Return the command for a picture (H, W, 3) uint8, red, green, blue; None before it has seen enough.

        Raises ValueError: the picture has another shape.
        """
        if stamp_ns is not None:
            if self._stamp_ns is not None and abs(stamp_ns - self._stamp_ns) > _GAP_NS:
                self._frames.clear()
            self._stamp_ns = stamp_ns
        self._frames.append(self.about.prepared.planes(image))
        if len(self._frames) < (self._frames.maxlen or 1):
            return None
        speed, steering = self._answer(np.stack(self._frames)[None])[0].tolist()
        speed, steering = round(max(speed, 0.0), _DECIMALS), round(steering, _DECIMALS)
        turn = round(speed * math.tan(steering) / self._wheelbase_m, _DECIMALS)
        return Output(control=Control(None, steering, speed, yaw_rate_radps=turn))


def weights_path(text: str) -> Path:
    """Return the file that ``weights`` of a stack file means.

    Raises UsageError: an environment variable is not set, or there is no such file; says what to type.
    """
    found = _VARIABLE.fullmatch(text)
    if found:
        text = os.environ.get(found[1]) or found[2] or ""
        if not text:
            typed = f"`mt models train DATA --network NETWORK --out DIR`, then `export {found[1]}=DIR/weights.pt`"
            raise UsageError(f"no weights: {found[1]} is not set; type {typed}")
    return resources.find("weights", text, (".pt", ".pth"))
