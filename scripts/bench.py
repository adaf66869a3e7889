# SPDX-License-Identifier: Apache-2.0
"""Times on this machine: every LiDAR mutation on one cloud, and large messages between two processes."""

from __future__ import annotations

import os
import time

import numpy as np
from rich.console import Console
from rich.table import Table

from mt_nodes import doctor
from mt_nodes.errors import NotApplicable
from mt_nodes.frames import Bundle, Cloud
from mt_nodes.mutations.base import Mutation
from mt_nodes.plugins import catalogue
from mt_nodes.seeds import generator

POINTS, ROUNDS = 130_000, 30


def cloud(points: int) -> Cloud:
    """Return a flat disc of returns around the sensor, 80 m in radius."""
    rng = np.random.default_rng(0)
    rows = np.zeros(points, dtype=[(name, np.float32) for name in ("x", "y", "z", "intensity")])
    radius, angle = 80.0 * np.sqrt(rng.random(points)), 2.0 * np.pi * rng.random(points)
    rows["x"], rows["y"], rows["z"] = radius * np.cos(angle), radius * np.sin(angle), rng.uniform(-2.0, 3.0, points)
    rows["intensity"] = rng.random(points)
    return Cloud("/points", 0, "base_link", rows)


def milliseconds(mutation: Mutation, bundle: Bundle) -> list[float]:
    """Return the time of each round of draw and apply."""
    state, times = mutation.begin(generator(0, "bench", 0, None, 0), bundle), []
    for number in range(ROUNDS):
        start = time.perf_counter()
        mutation.apply(bundle, mutation.draw(generator(0, "bench", 0, number, 0), bundle, state))
        times.append((time.perf_counter() - start) * 1e3)
    return times


def main() -> None:
    """Print two tables."""
    console, bundle = Console(), Bundle(0, 0, 0, (cloud(POINTS),))
    table = Table("mutation", "p50 ms", "p95 ms", title=f"draw and apply, {POINTS:,} points, {ROUNDS} rounds, defaults")
    for name, cls in catalogue("mutations").items():
        try:
            times = milliseconds(cls(), bundle)
            table.add_row(name, *(f"{q:.2f}" for q in np.percentile(times, (50, 95))))
        except NotApplicable as reason:
            table.add_row(name, "-", f"not applicable: {reason}")
    console.print(table)
    transport = Table("transport", "", title="messages to a second process and back")
    for finding in doctor.check_transport(os.environ):
        transport.add_row(finding.title, finding.detail)
    console.print(transport)


if __name__ == "__main__":
    main()
