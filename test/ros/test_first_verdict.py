# SPDX-License-Identifier: Apache-2.0
"""How long it takes over topics from typing a command to its first verdict."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from busy_machine import spent_in_turn

from mt_nodes.base.environment import free_domains
from mt_nodes.base.processes import wait_until
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.world.scene.drive import generate_drive

MOST_S, TRIES = 3.0, 3
#: Longest wait for a verdict; a busy machine may take its time.
LIMIT_S = 90.0


@pytest.mark.alone
def test_the_first_pair_is_judged_within_three_seconds(tmp_path: Path) -> None:
    """In one of a few tries, less what its processes waited for a processor: others may use this machine, too."""
    write_bundles(tmp_path / "bag", generate_drive(25))
    took_s: list[float] = []
    with free_domains(1) as lease:
        env = {**os.environ, "ROS_DOMAIN_ID": str(lease.domains[0])}
        while min(took_s, default=math.inf) > MOST_S and len(took_s) < TRIES:
            took_s.append(first_verdict_s(tmp_path / "bag", tmp_path / f"out_{len(took_s)}", env))
    assert min(took_s) <= MOST_S, took_s


def first_verdict_s(bag: Path, out: Path, env: dict[str, str]) -> float:
    journal, began_s = out / "result.jsonl", time.monotonic()
    command = [sys.executable, "-m", "mt_nodes.cli.main", "replay", str(bag), "--out", str(out)]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        judged = wait_until(lambda: journal.exists() and '"verdict"' in journal.read_text(), LIMIT_S)
        took_s, spent = time.monotonic() - began_s, spent_in_turn(run.pid)
        run.send_signal(signal.SIGINT)
    assert judged
    # Who waits while another one waits is counted twice: it is never less than half of what the work itself takes.
    return max(took_s - spent.waiting_s, spent.running_s / 2.0)
