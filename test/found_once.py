# SPDX-License-Identifier: Apache-2.0
"""Reference detectors that find once what is in a cloud or a picture, however many faults are planted around that step.

What they find depends on the cloud or picture and their parameters alone. A matrix asks them thousands of times, half
of them for what they have been asked before: each run has its source, its control and its sham.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference import camera
from mt_nodes.stacks.reference.detector import Detector


@contextmanager
def obstacles_found_once() -> Iterator[None]:
    """Find the obstacles in each cloud once for each set of a :class:`Detector`'s parameters but its faults."""
    search, known = Detector.found_in, dict[tuple[Any, ...], Detections]()

    def found_in(self: Detector, cloud: npt.NDArray[Any], min_points: int, stamp_ns: int | None) -> Detections:
        params = tuple(getattr(self, field.name) for field in fields(self) if field.name != "faults")
        key = (type(self), params, min_points, stamp_ns, *_contents(cloud))
        if key not in known:
            known[key] = search(self, cloud, min_points, stamp_ns)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Detector, "found_in", found_in)
        yield


@contextmanager
def people_found_once() -> Iterator[None]:
    """Search each picture for people once."""
    search, known = camera._windows, dict[tuple[Any, ...], npt.NDArray[np.float64]]()

    def windows(grey: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
        key = _contents(grey)
        if key not in known:
            known[key] = search(grey)
        return known[key].copy()  # whoever asks writes into them

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(camera, "_windows", windows)
        yield


def _contents(array: npt.NDArray[Any]) -> tuple[tuple[int, ...], str, bytes]:
    return array.shape, array.dtype.str, sha256(np.ascontiguousarray(array)).digest()
