# SPDX-License-Identifier: Apache-2.0
"""Makes the arrays of a pair's picture from its evidence, for pairs that were not among the worst in the run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base import plugins
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.params import build
from mt_nodes.base.yaml_files import read_mapping
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.markers import ADD, CUBE, IMAGE_MARKER, LINES, MARKERS, PATH
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Wire
from mt_nodes.data.outputs import Detections, ImageBoxes, Output
from mt_nodes.data.outputs import Path as OutputPath
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.evidence import EvidenceContents, evidence_name, read_evidence
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.pair_pictures import write_view
from mt_nodes.engine.pair_view import evidence_file
from mt_nodes.engine.run_record import STACK_FILE, read_record
from mt_nodes.engine.series_tables import series_file
from mt_nodes.relations.checks.base import Check
from mt_nodes.stacks.message_adapter import READ_AS


def write_views(results_dir: Path, pairs: Iterable[str]) -> None:
    """Write the arrays of the pairs that have evidence but no arrays yet.

    Obstacles are read from ``MarkerArray``, boxes from ``ImageMarker``, paths from ``Path``; outputs in other messages
    are not drawn. Pairs of drives and sequences have pictures of another kind.
    Raises UsageError: a pair has no evidence. InfrastructureError: its evidence is damaged.
    """
    missing = [pair for pair in map(Pair.parse, pairs) if _lacks(results_dir, pair)]
    if not missing:
        return
    record, roles = read_record(results_dir), _roles(results_dir)
    details = _details(results_dir, {str(pair) for pair in missing})
    for pair in missing:
        evidence = results_dir / "evidence" / evidence_name(pair)
        if not evidence.is_file():
            raise UsageError(f"{results_dir}: pair '{pair}' cannot be shown, it has no evidence: no {evidence}")
        recorded = read_evidence(evidence, pair)
        write_view(
            evidence_file(results_dir, pair),
            *(recorded.source, recorded.followup),
            outputs=_outputs(recorded, roles),
            effects=Effects(),
            check=_check(record, pair),
            detail=details.get(str(pair), {}),
        )


def recorded_outputs(results_dir: Path, pair: Pair) -> tuple[Output, Output]:
    """Return what both arms said of a pair, by its evidence, as far as it can be read: see :func:`write_views`.

    Raises UsageError: it has no evidence. InfrastructureError: that is damaged.
    """
    return _outputs(read_evidence(results_dir / "evidence" / evidence_name(pair), pair), _roles(results_dir))


def _outputs(recorded: EvidenceContents, roles: Mapping[str, str]) -> tuple[Output, Output]:
    return _output(recorded.answers["source"], roles), _output(recorded.answers["followup"], roles)


def _lacks(results_dir: Path, pair: Pair) -> bool:
    files = (evidence_file(results_dir, pair), series_file(results_dir, pair))
    return pair.bundle is not None and not any(path.exists() for path in files)


def _details(results_dir: Path, pairs: set[str]) -> dict[str, dict[str, Any]]:
    lines = (line for line in read_journal(results_dir / "result.jsonl") if line.get("pair") in pairs)
    return {line["pair"]: line.get("detail", {}) for line in lines}


def _check(record: Mapping[str, Any], pair: Pair) -> Check | None:
    """Return the check that judged a pair, as recorded by the run: it has the region."""
    plugins.add_directories(map(Path, record["request"].get("plugins", ())))
    recorded = next((row["check"] for row in record["relations"] if row["id"] == pair.judged_for), None)
    if not recorded:
        return None
    ((name, params),) = recorded.items()
    where = f"check of relation '{pair.judged_for}'"
    check: Check = build(plugins.find("checks", name, where), params, where)
    return check.background if "@" in pair.draw else check


def _roles(results_dir: Path) -> dict[str, str]:
    """Return the role of each topic that the stack publishes; lanes and traffic lights are markers, too."""
    file = results_dir / STACK_FILE
    outputs = read_mapping(file).get("outputs", {}) if file.is_file() else {}
    return {row["topic"]: role for role, row in outputs.items()}


def _output(messages: Iterable[Wire], roles: Mapping[str, str]) -> Output:
    """Return the output of an arm, as far as it can be drawn."""
    fields: dict[str, Any] = {}
    for wire in messages:
        topic = "/" + wire.topic.removeprefix("/mt/").partition("/")[2]
        if wire.type in _READ:
            name, read = _READ[wire.type]
            role = roles.get(topic, name)
            if READ_AS.get(role, role) != name:
                continue
            try:
                fields[name] = read(codec.decode(wire.type, wire.cdr))
            except (LookupError, TypeError, ValueError) as error:
                raise InfrastructureError(f"{wire.topic}: cannot be read as {wire.type}: {error}") from error
    return Output(**fields)


def _detections(message: Any) -> Detections:
    cubes = [marker for marker in message.markers if (marker.action, marker.type) == (ADD, CUBE)]
    turns = [2.0 * math.atan2(m.pose.orientation.z, m.pose.orientation.w) for m in cubes]
    frame = next((marker.header.frame_id for marker in message.markers), "")
    return Detections.make(
        frame,
        None,
        [[getattr(m.pose.position, k) for k in "xyz"] for m in cubes],
        [[getattr(m.scale, k) for k in "xyz"] for m in cubes],
        turns,
        [m.ns or "unknown" for m in cubes],
        [_score(m.text) for m in cubes],
    )


def _score(text: str) -> float:
    """Return the score that a marker's text has, 1 where it has none."""
    notes = dict(note.partition("=")[::2] for note in text.split())
    return float(notes.get("score", 1.0))


def _boxes(message: Any) -> ImageBoxes:
    places = np.array([[p.x, p.y] for p in message.points]).reshape(-1, len(LINES), 2)
    # The first and the fourth of the eight ends of a box's lines are opposite corners.
    labels = message.ns.split(",") if message.ns else []
    # A score of 0.9 is a little less in 32 bits, and would not reach a threshold of 0.9.
    scores = [round(float(colour.a), 6) for colour in message.outline_colors[:: len(LINES)]]
    known = scores if len(scores) == len(places) else None
    return ImageBoxes.make(message.header.frame_id, None, np.hstack([places[:, 0], places[:, 3]]), labels, known)


def _path(message: Any) -> OutputPath:
    poses = [[p.pose.position.x, p.pose.position.y, 0.0] for p in message.poses]
    return OutputPath.make(message.header.frame_id, None, poses)


_READ: dict[str, tuple[str, Callable[[Any], Any]]] = {
    MARKERS: ("detections", _detections),
    IMAGE_MARKER: ("boxes", _boxes),
    PATH: ("path", _path),
}
