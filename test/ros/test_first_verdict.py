# SPDX-License-Identifier: Apache-2.0
"""How long it takes over topics from typing a command to its first verdict."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mt_nodes.base.environment import free_domains
from mt_nodes.base.processes import wait_until
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.world.scene.drive import generate_drive

MOST_S, TRIES = 3.0, 3


@pytest.mark.alone
def test_the_first_pair_is_judged_within_three_seconds(tmp_path: Path) -> None:
    """The quickest of a few tries: others may use this machine, too."""
    write_bundles(tmp_path / "bag", generate_drive(25))
    with free_domains(1) as lease:
        env = {**os.environ, "ROS_DOMAIN_ID": str(lease.domains[0])}
        took_s = [first_verdict_s(tmp_path / "bag", tmp_path / f"out_{number}", env) for number in range(TRIES)]
    assert min(took_s) <= MOST_S, took_s


def first_verdict_s(bag: Path, out: Path, env: dict[str, str]) -> float:
    journal, began_s = out / "result.jsonl", time.monotonic()
    command = [sys.executable, "-m", "mt_nodes.cli.main", "replay", str(bag), "--out", str(out)]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        judged = wait_until(lambda: journal.exists() and '"verdict"' in journal.read_text(), 60.0)
        took_s = time.monotonic() - began_s
        run.send_signal(signal.SIGINT)
    assert judged
    return took_s
