# SPDX-License-Identifier: Apache-2.0
"""The bags of an experiment: what is known of them, which sensors all have, how stacks count their frames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mt_nodes.base.errors import UsageError
from mt_nodes.base.wording import counted
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.transforms import load_transforms
from mt_nodes.rules.bag_cases import Recording, facts
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.scene_by_model import SceneReader
from mt_nodes.rules.scene_detector import SceneDetector
from mt_nodes.runs.automt.automt_request import AutomtRequest
from mt_nodes.runs.automt.model_pool import ModelPool
from mt_nodes.stacks.stack import Stack


def recordings_of(request: AutomtRequest, ontology: Ontology, pool: ModelPool) -> list[Recording]:
    """Return the bags with what is known of them beforehand, and who describes their frames.

    Raises UsageError: a fact, the file of transforms, a detector or the scene model is none.
    """
    tree = load_transforms(Path(request.transforms)) if request.transforms else None
    known_facts = facts(request.facts, ontology)
    detectors = tuple(map(SceneDetector.named, request.detectors))
    seen_by = None
    if request.scene_model:
        seen_by = SceneReader(pool.named(request.scene_model, "scenes"), ontology, request.scene_samples)
    return [
        Recording(Path(bag), request.topics, tree, known_facts, seen_by=seen_by, detectors=detectors)
        for bag in request.bags
    ]


def shared_sensors(recordings: Sequence[Recording]) -> tuple[str, ...]:
    """Return the kinds of sensors that every bag has."""
    return tuple(sorted(set.intersection(*(set(recording.sensors) for recording in recordings))))


def refuse_discord(recordings: Sequence[Recording], stacks: Sequence[Stack]) -> None:
    """Refuse bags whose frames another sensor counts for a stack than for the cases.

    Raises UsageError: names the bag and both counts.
    """
    for recording in recordings:
        for stack in stacks:
            with BagSource(recording.bag, recording.topics, recording.transforms, require=stack.topics) as source:
                count = source.info[source.lead].count
            if count != recording.count:
                raise UsageError(
                    f"{recording.bag}: {counted(recording.count, 'frame')}, and {count} as stack '{stack.name}' counts "
                    "them by its sensors; cases of both cannot be compared, record the sensors at one rate"
                )
