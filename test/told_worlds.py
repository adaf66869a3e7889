# SPDX-License-Identifier: Apache-2.0
"""What a small world would tell: a street to the east, a person, a light, and a bundle of all of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mt_nodes.data.lanes import ALONG, ONCOMING, OWN, Lanes, SignalStates, Strip
from mt_nodes.data.messages import Bundle, Odometry, WorldMessage
from mt_nodes.data.outputs import Detections, Path
from mt_nodes.data.stack_topics import DEFAULT_INPUTS

START_NS, PERIOD_NS = 1_700_000_000_000_000_000, 100_000_000


def street(length_m: float = 120.0, begin_m: float = -5.0) -> Path:
    """The middle of a lane along x, a place each metre."""
    x = np.arange(begin_m, begin_m + length_m)
    return Path.make("map", None, np.column_stack([x, np.zeros((len(x), 2))]))


def people(
    *rows: tuple[float, float, float, float], size_m: tuple[float, float, float] = (0.5, 0.6, 1.75)
) -> Detections:
    """People at x, y with velocities over the ground, in ``base_link``."""
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    center = np.column_stack([table[:, :2], np.full(len(table), size_m[2] / 2.0)])
    velocity = np.column_stack([table[:, 2:], np.zeros(len(table))])
    names = [f"person_{i}" for i in range(len(table))]
    sizes = np.tile(size_m, (len(table), 1))
    return Detections.make(
        "base_link", None, center, sizes, label=["pedestrian"] * len(table), track_id=names, velocity_mps=velocity
    )


def lights(*rows: tuple[str, float]) -> SignalStates:
    """Lights on the street: colour, and where one stops."""
    names = [f"light_{i}" for i in range(len(rows))]
    return SignalStates.make("map", None, names, [c for c, _ in rows], [(x, 0.0, 0.0) for _, x in rows])


def lanes_of(**left_m: float) -> Lanes:
    """Lanes along the street: so far to the left of its middle; those that begin with ``back`` come towards one."""
    x = np.arange(-5.0, 116.0, 2.0)
    strips = []
    for name, left in left_m.items():
        back = name.startswith("back")
        middle = np.column_stack([x, np.full(len(x), left)])
        direction = ONCOMING if back else OWN if left == 0.0 else ALONG
        strips.append(Strip(name, direction, 3.5, middle[::-1] if back else middle))
    return Lanes.make("map", None, strips)


def told_bundle(
    index: int = 0,
    objects: Detections | None = None,
    odometry: Odometry | None = None,
    signals: SignalStates | None = None,
    lanes: Lanes | None = None,
) -> Bundle:
    """Everything a world tells of one instant, on the usual topics."""
    stamp_ns = START_NS + index * PERIOD_NS
    data = {
        "objects": people((30.0, 4.0, 0.0, 0.0)) if objects is None else objects,
        "odometry": odometry or Odometry("map", None, 1.0, 0.25, 0.125, 8.0, 0.0625),
        "route": street(),
        "signals": lights(("red", 60.0), ("green", 90.0)) if signals is None else signals,
        "lanes": lanes_of(here=0.0, beside=3.5) if lanes is None else lanes,
    }
    told = tuple(WorldMessage(DEFAULT_INPUTS[role], role, stamp_ns, said.frame_id, said) for role, said in data.items())
    return Bundle(0, index, stamp_ns, world_messages=told)


def without(bundle: Bundle, role: str) -> Bundle:
    """The bundle without one of them."""
    return replace(bundle, world_messages=tuple(message for message in bundle.world_messages if message.role != role))
