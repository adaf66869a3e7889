# SPDX-License-Identifier: Apache-2.0
"""Objects around the ego: from a world, else from the output of the stack under test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Detections, ImageBoxes, Output
from mt_nodes.relations.facts.scene_facts import Fact, unknown

#: Objects farther away do not count, nor detections with lower scores.
NEAR_M, SURE = 60.0, 0.5


def objects_of(bundle: Bundle, outputs: Sequence[Output]) -> Fact:
    """Return the number of near objects in the middle of a case by class, most frequent first."""
    detections = next((m.data for m in bundle.world_messages if isinstance(m.data, Detections)), None)
    if detections is not None:
        return Fact(_counts(detections), f"objects as the world tells them, within {NEAR_M:g} m")
    answer = outputs[len(outputs) // 2] if outputs else None
    if answer is not None and answer.detections is not None:
        return Fact(_counts(answer.detections), f"detections of the stack within {NEAR_M:g} m")
    if answer is not None and answer.boxes is not None:
        return Fact(_counts(answer.boxes), "boxes of the stack in the image")
    return unknown("neither a world nor the stack tells objects")


def _counts(detections: Detections | ImageBoxes) -> dict[str, int]:
    sure = detections.finite & (detections.score >= SURE)
    if isinstance(detections, Detections):
        sure &= np.hypot(detections.center_m[:, 0], detections.center_m[:, 1]) <= NEAR_M
    found = Counter(detections.label[sure].tolist())
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
