# SPDX-License-Identifier: Apache-2.0
"""A violated pair as an MCAP file: both inputs and both outputs, to look at in Foxglove, to play, to make again."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.errors import InfrastructureError, MtError
from mt_nodes.data.bags.bundles import DECODERS
from mt_nodes.data.bags.reader import BagReader
from mt_nodes.data.bags.writer import SENSOR_QOS, STATIC_QOS, BagWriter, open_writer
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.radar_codec import radar_from_msg
from mt_nodes.data.cdr.wire import wires_of_bundle
from mt_nodes.data.intensity.sensor_reading import SensorReading
from mt_nodes.data.messages import Bundle, Cloud, Wire
from mt_nodes.data.transforms import Transform, TransformTree
from mt_nodes.data.verdict import Pair

#: Topic of all that was known of frames, to the last digit.
TRANSFORMS = "/mt/transforms"
#: Topic of which frames belong to no instant (:attr:`Bundle.loose`), where there are any: rows of topic and stamp.
BETWEEN = "/mt/between"
#: Topic of how the intensities of LiDARs are read, by the first cloud of their episode.
READINGS = "/mt/intensities"
#: Topic of the names of radars' topics, where there are any: fields alone may not tell their clouds from a LiDAR's.
RADARS = "/mt/radars"
#: The same of those that the follow-up arm was given, where they are not the true ones.
GIVEN_TRANSFORMS = "/mt/followup_transforms"


@dataclass(frozen=True, eq=False)
class EvidenceContents:
    """What evidence holds: what each arm was given, topics as evidence names them, and all else that is there of it."""

    source: Bundle
    followup: Bundle
    answers: Mapping[str, tuple[Wire, ...]]


def evidence_name(pair: Pair) -> str:
    """Return the file name of a pair's evidence."""
    return f"{str(pair).replace('/', '_')}.mcap"


def evidence_path(results_dir: Path, pair: Pair) -> Path:
    """Return the path of a pair's evidence."""
    return results_dir / "evidence" / evidence_name(pair)


def write_evidence(
    path: Path,
    pair: Pair,
    source: Bundle,
    followup: Bundle,
    outputs: Mapping[str, Iterable[Wire]],
    baseline: Bundle | None = None,
    sent: Sequence[tuple[int, Bundle]] = (),
) -> None:
    """Write one MCAP file (zstd) with topics ``/mt/source/<topic>`` and ``/mt/followup/<topic>``, and ``/tf_static``.

    Every known transform goes into ``/tf_static`` as it is at that instant, and to the last digit, which quaternions
    lose, into ``/mt/transforms`` (``std_msgs/String``, JSON rows parent, child, matrix); wrong ones that the follow-up
    arm was given into ``/mt/followup_transforms``. ``/mt/intensities`` says how intensities are read, ``/mt/radars``
    which topics are radars', ``/mt/between`` which frames are of no instant, ``/mt/pair`` which pair it is. Messages
    are received at their stamps, those of ``sent`` when they went out.

    Args:
        path: file to make; an existing one is replaced.
        outputs: arm (``source``, ``followup``) -> what the stack answered; types unknown to ROS 2 Jazzy are kept
            without their definition.
        baseline: what the source arm was given in place of the source, if it was.
        sent: all that went to the follow-up arm, as it went out, with delays in ns after the source's instant; empty
            where that was ``followup`` alone, at once.
    """
    path.unlink(missing_ok=True)
    with open_writer(path, compress=True) as bag:
        stamp_ns = source.stamp_ns
        frames = bag.add("/tf_static", codec.TF, [STATIC_QOS])
        bag.write(frames, stamp_ns, codec.encode_transforms(source.transforms, stamp_ns))
        bag.write(bag.add("/mt/pair", codec.STRING, [STATIC_QOS]), stamp_ns, codec.encode_text(str(pair)))
        bag.write(
            bag.add(TRANSFORMS, codec.STRING, [STATIC_QOS]), stamp_ns, codec.encode_text(_rows(source.transforms))
        )
        if (wrong := followup.transforms.wrong) is not None:
            connection = bag.add(GIVEN_TRANSFORMS, codec.STRING, [STATIC_QOS])
            bag.write(connection, stamp_ns, codec.encode_text(_rows(wrong)))
        readings = json.dumps({cloud.topic: cloud.reading.as_plain() for cloud in source.clouds})
        bag.write(bag.add(READINGS, codec.STRING, [STATIC_QOS]), stamp_ns, codec.encode_text(readings))
        if source.radars:
            radars = json.dumps([radar.topic for radar in source.radars])
            bag.write(bag.add(RADARS, codec.STRING, [STATIC_QOS]), stamp_ns, codec.encode_text(radars))
        if source.loose:
            rows = json.dumps([[wire.topic, wire.stamp_ns] for wire in source.loose])
            bag.write(bag.add(BETWEEN, codec.STRING, [STATIC_QOS]), stamp_ns, codec.encode_text(rows))
        given = baseline or source
        _write_arm(bag, "source", [*_sensors(given, given.changed_topics(source)), *outputs.get("source", ())])
        _write_arm(bag, "followup", [*_sent(source, sent or ((0, followup),)), *outputs.get("followup", ())])


def read_source(path: Path, pair: Pair, topics: Sequence[str]) -> Bundle:
    """Return the bundle that the source arm was given.

    Raises UsageError: there is no such file. InfrastructureError: it is damaged, or holds no message of the leading
    topic.
    ``path``: evidence of a pair. ``pair``: which one. ``topics``: of the stack's sensors, the leading one first; what
    is not there is left out.
    """
    with BagReader(path) as bag:
        rows = list(bag.wires())
    between = _between(rows)
    found = {wire.topic: wire for wire in rows if not between(wire)}
    placed = {_placed("source", topic): topic for topic in topics}
    loose = tuple(
        Wire(placed[row.topic], row.type, codec.header_stamp_ns(row.cdr) or 0, row.cdr)
        for row in rows
        if row.topic in placed and between(row)
    )
    wires = [
        Wire(topic, row.type, codec.header_stamp_ns(row.cdr) or 0, row.cdr)
        for topic in topics
        if (row := found.get(_placed("source", topic))) is not None
    ]
    if not wires or wires[0].topic != topics[0]:
        raise InfrastructureError(f"{path}: holds no {_placed('source', topics[0])}, which instants are told by")
    try:
        parts = _parts(wires, _radars(found.values()))
        tree = _tree(codec.decode(codec.STRING, found[TRANSFORMS].cdr).data)
        _read_as(parts["clouds"], codec.decode(codec.STRING, found[READINGS].cdr).data if READINGS in found else "{}")
    except (LookupError, TypeError, ValueError, MtError) as error:
        raise InfrastructureError(f"{path}: cannot be read: {type(error).__name__}: {error}") from error
    lists: dict[str, Any] = {part: tuple(messages) for part, messages in parts.items()}
    lists |= {"wires": (*loose, *wires), "loose": loose}
    return Bundle(pair.episode, pair.bundle or 0, wires[0].stamp_ns, transforms=tree, **lists)


def read_evidence(path: Path, pair: Pair) -> EvidenceContents:
    """Return all that evidence holds of a pair.

    Raises UsageError: there is no such file. InfrastructureError: it is damaged, or an arm was given nothing that a
    sensor sends.
    """
    with BagReader(path) as bag:
        wires = list(bag.wires())
    between = _between(wires)
    arms = {
        arm: [w for w in wires if w.topic.startswith(_placed(arm, "")) and not between(w)]
        for arm in ("source", "followup")
    }
    try:
        tree = _tree(next(codec.decode(codec.STRING, w.cdr).data for w in wires if w.topic == TRANSFORMS))
        radars = _radars(wires)
        placed = {arm: {_placed(arm, topic) for topic in radars} for arm in arms}
        source, followup = (_bundle(pair, rows, tree, placed[arm]) for arm, rows in arms.items())
    except (LookupError, StopIteration, TypeError, ValueError, MtError) as error:
        raise InfrastructureError(f"{path}: cannot be read: {type(error).__name__}: {error}") from error
    return EvidenceContents(
        source, followup, {a: tuple(w for w in rows if w.type not in DECODERS) for a, rows in arms.items()}
    )


def _bundle(pair: Pair, wires: Sequence[Wire], tree: TransformTree, radars: Collection[str]) -> Bundle:
    """Return what sensors sent an arm, the first message of each topic."""
    first = {wire.topic: wire for wire in reversed(wires) if wire.type in DECODERS}
    parts = _parts([wire for wire in wires if first.get(wire.topic) is wire], radars)
    lists: dict[str, Any] = {part: tuple(messages) for part, messages in parts.items()}
    stamp_ns = codec.header_stamp_ns(next(iter(first.values())).cdr) or 0
    return Bundle(pair.episode, pair.bundle or 0, stamp_ns, transforms=tree, wires=tuple(first.values()), **lists)


def _between(wires: Iterable[Wire]) -> Callable[[Wire], bool]:
    """Return what tells, of a message of either arm, whether it is a frame of no instant."""
    texts = (codec.decode(codec.STRING, wire.cdr).data for wire in wires if wire.topic == BETWEEN)
    rows = [(topic, stamp_ns) for text in texts for topic, stamp_ns in json.loads(text)]
    known = {(_placed(arm, topic), stamp_ns) for arm in ("source", "followup") for topic, stamp_ns in rows}
    return lambda wire: wire.type in DECODERS and (wire.topic, codec.header_stamp_ns(wire.cdr)) in known


def _radars(wires: Iterable[Wire]) -> frozenset[str]:
    """Return the topics of radars."""
    texts = (codec.decode(codec.STRING, wire.cdr).data for wire in wires if wire.topic == RADARS)
    return frozenset(topic for text in texts for topic in json.loads(text))


def _parts(wires: Iterable[Wire], radars: Collection[str]) -> dict[str, list[Any]]:
    """Return the decoded messages by part of a bundle."""
    parts: dict[str, list[Any]] = {part: [] for part, _ in DECODERS.values()}
    for wire in wires:
        part, decode = ("radars", radar_from_msg) if wire.topic in radars else DECODERS[wire.type]
        parts[part].append(decode(wire.topic, codec.decode(wire.type, wire.cdr)))
    return parts


def _read_as(clouds: Iterable[Cloud], readings: str) -> None:
    """Have the intensities of clouds read as in their episode; evidence of earlier versions does not say how."""
    known = json.loads(readings)
    for cloud in clouds:
        if cloud.topic in known:
            cloud.read_as(SensorReading.of_plain(cloud.topic, known[cloud.topic]))


def _rows(tree: TransformTree) -> str:
    return json.dumps([[row.parent, row.child, row.matrix.tolist()] for row in tree.transforms])


def _tree(rows: str) -> TransformTree:
    return TransformTree([Transform(parent, child, np.array(matrix)) for parent, child, matrix in json.loads(rows)])


def _placed(arm: str, topic: str) -> str:
    """Return under which topic evidence has what an arm was given or said."""
    return f"/mt/{arm}/{topic.lstrip('/')}"


def _sent(source: Bundle, sent: Sequence[tuple[int, Bundle]]) -> list[Wire]:
    """Return the sensor messages of bundles, received when each went out: of those due at once the next 1 ns later."""
    wires, out_ns = [], -1
    for delay_ns, part in sent:
        out_ns = max(source.stamp_ns + delay_ns, out_ns + 1)
        wires += [
            replace(wire, stamp_ns=wire.stamp_ns - part.stamp_ns + out_ns)
            for wire in _sensors(part, part.changed_topics(source))
        ]
    return wires


def _sensors(bundle: Bundle, changed: frozenset[str]) -> list[Wire]:
    """Return what sensors sent, those that nobody decoded, for the stack does not take them, included."""
    topics = {m.topic for m in bundle.messages} | {w.topic for w in bundle.wires if w.type in codec.SENSOR_TYPES}
    return [w for w in wires_of_bundle(bundle, changed) if w.topic in topics or w.changed]


def _write_arm(bag: BagWriter, arm: str, wires: Iterable[Wire]) -> None:
    for wire in wires:
        connection = bag.add(_placed(arm, wire.topic), wire.type, [SENSOR_QOS])
        bag.write(connection, wire.stamp_ns, wire.cdr)
