# SPDX-License-Identifier: Apache-2.0
"""A bag through mutations into another bag: what is not mutated is copied byte for byte."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rosbags.interfaces import Connection, MessageDefinitionFormat

from mt_nodes.base.errors import InfrastructureError, NotApplicable, UsageError
from mt_nodes.base.plugins import name_of
from mt_nodes.data.bags.bundles import BagSource, sensors_of
from mt_nodes.data.bags.reader import RecordedWire, qos_of
from mt_nodes.data.bags.recording import RecordingReader
from mt_nodes.data.bags.topic_roles import SENSORS
from mt_nodes.data.bags.writer import BagWriter, Ros1BagWriter, open_writer
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.wire import encode_message, wire_for
from mt_nodes.data.datasets.dataset_name import DatasetName, is_dataset
from mt_nodes.data.datasets.dataset_reader import DatasetReader
from mt_nodes.data.datasets.folder_copy import FolderCopy
from mt_nodes.data.datasets.tree_copy import TreeCopy
from mt_nodes.data.intensity.sensor_reading import Intensities
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import Transform, TransformTree
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.pipeline import MutationPipeline

#: Stands for the relation in the seeds of draws that no relation asked for.
RELATION = "mutate"


@dataclass
class MutationSummary:
    """What became of a bag: bundles read, those mutated, those passed as they were (reason -> how many), messages."""

    bundles: int = 0
    mutated: int = 0
    not_applicable: Counter[str] = field(default_factory=Counter)
    messages: int = 0
    #: What became of the labels of a data set, empty for a bag.
    labels: str = ""
    #: Topic -> what its intensities were taken for.
    intensities: dict[str, str] = field(default_factory=dict)
    #: Whether a mutation changed which objects are there, or where.
    truth_changed: bool = False


def mutate_bag(
    bag: Path,
    mutations: Sequence[Mutation],
    out: Path,
    seed: int = 0,
    topics: Mapping[str, str] | None = None,
    transforms: TransformTree | None = None,
    storage: str = "mcap",
    limit: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    intensities: Intensities | None = None,
) -> MutationSummary:
    """Write ``out`` with every message of ``bag``, sensor messages mutated bundle by bundle.

    Topics, types, definitions, QoS and times of reception stay; delayed follow-ups are received later by their delay.
    A bundle that a mutation cannot be applied to passes as it is and is counted.
    Raises UsageError: ``out`` exists, no such bag, topics are missing or unclear, a type cannot go into a ROS 1 bag.
    InfrastructureError: a guarantee is broken (nothing is written), or the bag is damaged (what could be read is).

    Args:
        bag: any bag that :class:`BagSource` reads.
        mutations: applied one after the other; their sensors must be in the bag (of several kinds at least one).
        out: bag directory, a ROS 1 bag when it ends in ``.bag``, or a data set such as ``kitti:DIR``.
        topics: role -> topic where there are several candidates.
        transforms: the user's, above the bag's.
        storage: ``mcap`` or ``sqlite3``.
        progress: called with the number of bundles that are done, and of all.
        intensities: topic -> intensity convention, where it is not to be recognised.
    """
    _refuse_transforms(mutations, out)
    pipeline, summary = MutationPipeline(mutations, seed, RELATION), MutationSummary()
    damage: InfrastructureError | None = None
    require = changed_in(bag, mutations, topics or {})
    with BagSource(bag, topics, transforms, limit=limit, require=require, intensities=intensities) as source:
        copy = _copy(source.reader, out, storage, summary, limit)
        with copy.bag:
            copy.announce()
            bundles, total = iter(source), min(source.info[source.lead].count, limit or sys.maxsize)
            while True:
                try:
                    bundle = next(bundles)
                except StopIteration:
                    break
                except InfrastructureError as error:
                    damage = error
                    break
                copy.write(bundle, _derived(pipeline, bundle, summary))
                if not summary.bundles:
                    summary.intensities = bundle.intensity_assumptions
                summary.bundles += 1
                if progress is not None:
                    progress(summary.bundles, total)
        summary.messages = copy.messages
    summary.labels = copy.labels
    if damage is not None:
        raise InfrastructureError(f"{damage}; what was readable ({summary.bundles} bundles) is in {out}") from damage
    return summary


def _refuse_transforms(mutations: Sequence[Mutation], out: Path) -> None:
    """Refuse changed transforms in a data set, whose calibration files are copied as they are. Raises UsageError."""
    if is_dataset(out) and (names := [name_of(type(m)) for m in mutations if m.about_transforms]):
        raise UsageError(f"--out {out}: {names[0]} changes transforms, which a data set has in files; write a bag")


class _Copies(Protocol):
    """Writes bundles; ``labels`` tells what became of those of a data set, ``messages`` how many were written."""

    messages: int
    labels: str

    @property
    def bag(self) -> AbstractContextManager[Any]:
        """What is written, complete when it is left without an error."""

    def announce(self) -> None:
        """Begin."""

    def write(self, bundle: Bundle, followups: tuple[tuple[int, Bundle], ...]) -> None:
        """Write a bundle as its follow-ups."""


def _copy(reader: RecordingReader, out: Path, storage: str, summary: MutationSummary, limit: int | None) -> _Copies:
    if not is_dataset(out):
        return _Copy(open_writer(out, storage, definitions=_definitions(reader)), reader)
    name = DatasetName.parse(out)
    if isinstance(reader, DatasetReader) and reader.recording.name.dataset == name.dataset:
        return TreeCopy(reader.recording, name, lambda: summary.truth_changed, whole=limit is None)
    if name.dataset == "folder":
        return FolderCopy(name)
    raise UsageError(
        f"--out {out}: {reader.path} cannot be written as {name.dataset}; expected a recording of {name.dataset}, or "
        "--out folder:DIR, or a bag"
    )


class _Copy:
    """Writes bundles and their follow-ups over the connections of the bag that they come from."""

    def __init__(self, bag: BagWriter, reader: RecordingReader) -> None:
        self.bag, self._reader = bag, reader
        self._connections: dict[tuple[int, str, str], Connection] = {}
        self._raw = reader.ros1 and isinstance(bag, Ros1BagWriter)
        self._wrong: dict[str, Transform] = {}
        self.messages, self.labels = 0, ""

    def announce(self) -> None:
        """Make every topic of the source, with or without messages."""
        for c in self._reader.connections:
            kind = self._reader.topics[c.topic].type
            connection = self.bag.add(c.topic, kind, qos_of(c), self._reader.definition(c), c)
            self._connections[_key(c)] = connection

    def write(self, bundle: Bundle, followups: tuple[tuple[int, Bundle], ...]) -> None:
        """Write all of a bundle's wires; sensor messages once for each follow-up that has them."""
        sensors = {id(wire_for(m, bundle.wires)): m for m in bundle.messages}
        self._write_transforms(bundle, followups)
        others = {(w.topic, w.stamp_ns): w for _, followup in followups for w in followup.wires if w.changed}
        for wire in bundle.wires:
            if id(wire) not in sensors:
                other = others.get((wire.topic, wire.stamp_ns))
                self._write(wire, 0, self._rewritten(wire) if other is None else other.cdr)
                continue
            before = sensors[id(wire)]
            for delay_ns, followup in followups:
                after = [m for m in followup.messages if m.topic == wire.topic]
                for message in after:
                    self._write(wire, delay_ns, None if message is before else encode_message(message, wire))

    def _write_transforms(self, bundle: Bundle, followups: tuple[tuple[int, Bundle], ...]) -> None:
        """Write static transforms anew where those that are published in place of the true ones have changed."""
        tree = next((f.transforms.wrong for _, f in followups), None)
        wrong = {} if tree is None else {t.child: t for t in tree.other_than(bundle.transforms)}
        if tree is None and not self._wrong:
            return
        known = {t.child: t for t in bundle.transforms.transforms}
        rows = [wrong.get(child, known[child]) for child in {**self._wrong, **wrong} if known[child].static]
        same = {c: t.matrix.tolist() for c, t in wrong.items()} == {
            c: t.matrix.tolist() for c, t in self._wrong.items()
        }
        self._wrong = wrong
        if same or not rows:
            return
        topic = next((c for c in self._connections.values() if c.topic == "/tf_static"), None)
        if topic is None or self._raw:
            raise UsageError(
                f"the recording has no /tf_static of ROS 2 to publish '{rows[0].child}' on; write a bag that has one"
            )
        self.bag.write(topic, bundle.stamp_ns, codec.encode_transforms(TransformTree(rows), bundle.stamp_ns))
        self.messages += 1

    def _rewritten(self, wire: Any) -> bytes | None:
        """Return a recorded message of transforms with those that are published in place of them; None: as it is."""
        if not self._wrong or wire.type != codec.TF:
            return None
        rows = codec.transforms_from_msg(codec.decode(wire.type, wire.cdr), wire.topic == "/tf_static")
        if not any(t.child in self._wrong for t in rows):
            return None
        return codec.encode_transforms(TransformTree(self._wrong.get(t.child, t) for t in rows), rows[0].stamp_ns)

    def _write(self, wire: Any, delay_ns: int, changed: bytes | None = None) -> None:
        recorded: RecordedWire = wire
        connection = self._connections[_key(recorded.connection)]
        stamp_ns = recorded.received_ns + delay_ns
        if changed is None and self._raw and isinstance(self.bag, Ros1BagWriter):
            self.bag.write_raw(connection, stamp_ns, recorded.raw)
        else:
            self.bag.write(connection, stamp_ns, changed or recorded.cdr)
        self.messages += 1


def _derived(pipeline: MutationPipeline, bundle: Bundle, summary: MutationSummary) -> tuple[tuple[int, Bundle], ...]:
    try:
        derived = pipeline.derive(bundle)
    except NotApplicable as reason:
        summary.not_applicable[str(reason)] += 1
        return ((0, bundle),)
    if derived.broken is not None:
        raise InfrastructureError(f"bundle {bundle.index} at {bundle.stamp_ns} ns: guarantee broken: {derived.broken}")
    summary.mutated += 1
    summary.truth_changed |= derived.effects.change_truth
    return derived.followup.bundles


def changed_in(bag: Path, mutations: Sequence[Mutation], topics: Mapping[str, str]) -> list[str]:
    """Return the sensors that mutations can change and the bag has; all of them when it has none.

    Of mutations that change no sensor of a bundle, such as satellite navigation, the one that bundles follow.
    """
    changed = [s for s in SENSORS if any(s in m.changes for m in mutations)]
    return sensors_of(bag, changed, topics) if changed else sensors_of(bag, SENSORS, topics)[:1]


def _definitions(reader: RecordingReader) -> dict[str, str]:
    return {
        reader.topics[c.topic].type: c.msgdef.data
        for c in reader.connections
        if c.msgdef.format is MessageDefinitionFormat.MSG
    }


def _key(connection: Connection) -> tuple[int, str, str]:
    return connection.id, connection.topic, connection.msgtype
