# SPDX-License-Identifier: Apache-2.0
"""Prints the verdict lines of a live run in a time of its own; see ``same_behaviour.py``.

It imports nothing of the package itself, so that it runs with the tests of any tree.
"""

from __future__ import annotations

import json

from fake_arms import FakeArm, Sent, answered, seen
from live_simulation import Simulation, arriving, drive, one, virtual_time


def loses_some(sent: Sent) -> object:
    """Answer with nothing in every fourth bundle."""
    return answered(seen(int(sent.bundle.stamp_ns // 10**8 % 4 != 0)))


def main() -> None:
    """Play two minutes of input."""
    with virtual_time() as time:
        arms = one("source"), FakeArm("followup", loses_some, 0.03)  # type: ignore[arg-type]
        recorder = Simulation(time, arms=arms).play(arriving(drive(300)))
    for verdict in recorder.lines.values():
        print(json.dumps(verdict.as_plain(), sort_keys=True))


if __name__ == "__main__":
    main()
