# SPDX-License-Identifier: Apache-2.0
"""A violated pair as an MCAP file: both inputs and both outputs, to look at in Foxglove or to play."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from mt_nodes import cdr
from mt_nodes.bag_writer import SENSOR_QOS, STATIC_QOS, BagWriter, open_writer
from mt_nodes.frames import Bundle, Wire
from mt_nodes.verdict import Pair


def evidence_name(pair: Pair) -> str:
    """Return the file name of a pair's evidence."""
    return f"{str(pair).replace('/', '_')}.mcap"


def write_evidence(
    path: Path,
    pair: Pair,
    source: Bundle,
    followup: Bundle,
    outputs: Mapping[str, Iterable[Wire]],
    baseline: Bundle | None = None,
) -> None:
    """Write one MCAP file (zstd) with topics ``/mt/source/<topic>`` and ``/mt/followup/<topic>``, and ``/tf_static``.

    Every known transform goes into ``/tf_static`` as it is at that instant; ``/mt/pair`` (``std_msgs/String``) says
    which pair it is. Messages are received at their stamps.

    Args:
        path: file to make; an existing one is replaced.
        pair: whose evidence it is.
        source: bundle of the source arm.
        followup: bundle of the follow-up arm.
        outputs: arm (``source``, ``followup``) -> what the stack answered; types unknown to ROS 2 Jazzy are kept
            without their definition.
        baseline: what the source arm was given in place of the source, if it was.
    """
    path.unlink(missing_ok=True)
    with open_writer(path, compress=True) as bag:
        stamp_ns = source.stamp_ns
        frames = bag.add("/tf_static", cdr.TF, [STATIC_QOS])
        bag.write(frames, stamp_ns, cdr.encode_transforms(source.transforms, stamp_ns))
        bag.write(bag.add("/mt/pair", cdr.STRING, [STATIC_QOS]), stamp_ns, cdr.encode_text(str(pair)))
        for arm, given in (("source", baseline or source), ("followup", followup)):
            _write_arm(bag, arm, [*_sensors(given, given.changed_topics(source)), *outputs.get(arm, ())])


def _sensors(bundle: Bundle, changed: frozenset[str]) -> list[Wire]:
    topics = {m.topic for m in bundle.messages}
    return [w for w in cdr.wires_of(bundle, changed) if w.topic in topics]


def _write_arm(bag: BagWriter, arm: str, wires: Iterable[Wire]) -> None:
    for wire in wires:
        connection = bag.add(f"/mt/{arm}/{wire.topic.lstrip('/')}", wire.type, [SENSOR_QOS])
        bag.write(connection, wire.stamp_ns, wire.cdr)
