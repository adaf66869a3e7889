# SPDX-License-Identifier: Apache-2.0
"""A violated pair as an MCAP file: both inputs and both outputs, to look at in Foxglove or to play."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
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
    sent: Sequence[tuple[int, Bundle]] = (),
) -> None:
    """Write one MCAP file (zstd) with topics ``/mt/source/<topic>`` and ``/mt/followup/<topic>``, and ``/tf_static``.

    Every known transform goes into ``/tf_static`` as it is at that instant; ``/mt/pair`` (``std_msgs/String``) says
    which pair it is. Messages are received at their stamps, those of ``sent`` when they went out.

    Args:
        path: file to make; an existing one is replaced.
        pair: whose evidence it is.
        source: bundle of the source arm.
        followup: bundle of the follow-up arm.
        outputs: arm (``source``, ``followup``) -> what the stack answered; types unknown to ROS 2 Jazzy are kept
            without their definition.
        baseline: what the source arm was given in place of the source, if it was.
        sent: all that went to the follow-up arm, as it went out, with delays in ns after the source's instant; empty
            where that was ``followup`` alone, at once.
    """
    path.unlink(missing_ok=True)
    with open_writer(path, compress=True) as bag:
        stamp_ns = source.stamp_ns
        frames = bag.add("/tf_static", cdr.TF, [STATIC_QOS])
        bag.write(frames, stamp_ns, cdr.encode_transforms(source.transforms, stamp_ns))
        bag.write(bag.add("/mt/pair", cdr.STRING, [STATIC_QOS]), stamp_ns, cdr.encode_text(str(pair)))
        given = baseline or source
        _write_arm(bag, "source", [*_sensors(given, given.changed_topics(source)), *outputs.get("source", ())])
        _write_arm(bag, "followup", [*_sent(source, sent or ((0, followup),)), *outputs.get("followup", ())])


def _sent(source: Bundle, sent: Sequence[tuple[int, Bundle]]) -> list[Wire]:
    """Return the sensor messages of bundles, received when each went out: of those due at once the next 1 ns later."""
    wires, out_ns = [], -1
    for delay_ns, made in sent:
        out_ns = max(source.stamp_ns + delay_ns, out_ns + 1)
        wires += [
            replace(wire, stamp_ns=wire.stamp_ns - made.stamp_ns + out_ns)
            for wire in _sensors(made, made.changed_topics(source))
        ]
    return wires


def _sensors(bundle: Bundle, changed: frozenset[str]) -> list[Wire]:
    """Return what sensors sent, those that nobody decoded, for the stack does not take them, included."""
    topics = {m.topic for m in bundle.messages} | {w.topic for w in bundle.wires if w.type in cdr.SENSOR_TYPES}
    return [w for w in cdr.wires_of(bundle, changed) if w.topic in topics]


def _write_arm(bag: BagWriter, arm: str, wires: Iterable[Wire]) -> None:
    for wire in wires:
        connection = bag.add(f"/mt/{arm}/{wire.topic.lstrip('/')}", wire.type, [SENSOR_QOS])
        bag.write(connection, wire.stamp_ns, wire.cdr)
