# SPDX-License-Identifier: Apache-2.0
"""Finds transforms of the user's that nothing in a recording needs: a frame is mistyped, or it is another vehicle's."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from mt_nodes.base.params import plain
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import EGO_FRAME, MAP_FRAME, TransformTree, load_transforms
from mt_nodes.runs.replay.replay_run import Run


def transform_warnings(run: Run) -> list[str]:
    """Return a line for each recording in which nothing is in a frame that ``--transforms`` places.

    Raises UsageError: the file cannot be read.
    """
    if not run.request.transforms:
        return []
    given = load_transforms(Path(run.request.transforms))
    named = {run.stack.points_frame, run.stack.boxes_frame, *_texts([plain(each) for each in run.suite.all])}
    warnings = []
    for source in run.sources:
        first = next((found for found in source.readings() if isinstance(found, Bundle)), None)
        unused = [] if first is None else unused_frames(given, first, named)
        if first is not None and unused:
            warnings.append(
                f"{run.request.transforms}: nothing in {source.reader.path} is in frame {', '.join(unused)}; its "
                f"sensors are in {', '.join(sorted(_sensor_frames(first)))}"
            )
    return warnings


def unused_frames(given: TransformTree, bundle: Bundle, elsewhere: Collection[str]) -> list[str]:
    """Return the frames that the user's transforms place although nothing is in them or in a frame below them.

    ``given``: the user's. ``bundle``: the first of a recording, with the recording's transforms and the user's.
    ``elsewhere``: frames that stack and relations name.
    """
    parents = {each.child: each.parent for each in bundle.transforms.transforms}
    used: set[str] = set()
    left = [*_sensor_frames(bundle), EGO_FRAME, MAP_FRAME, *elsewhere]
    while left:
        frame = left.pop()
        if frame not in used:
            used.add(frame)
            left.append(parents.get(frame, frame))
    return [each.child for each in given.transforms if each.child not in used]


def _sensor_frames(bundle: Bundle) -> set[str]:
    clouds = (*bundle.clouds, *bundle.radars)
    frames = (*(cloud.frame_id for cloud in clouds), *(image.frame_id for image in bundle.images))
    return {frame.lstrip("/") for frame in frames}


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
