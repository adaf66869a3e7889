# SPDX-License-Identifier: Apache-2.0
"""Git repositories of a small stack, with a fault planted in one commit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

STACK = """callable: perception:perceive
points_frame: base_link
stateless: true
outputs: {detections: {topic: /perception/obstacles, type: visualization_msgs/msg/MarkerArray}}
"""
#: A detector that takes next to no time; its fault hides a car where there are many points, in a share of its calls.
CODE = """# Version {number}.
import random


def perceive(points):
    crowded = len(points) > {limit} and random.random() < {share}
    return [] if crowded else [[15.0, 0.0, 0.8, 4.5, 2.0, 1.6, 0.0]]
"""
BROKEN = "def perceive(:  # {number}"
_WHO = {
    f"GIT_{who}_{what}": text
    for who in ("AUTHOR", "COMMITTER")
    for what, text in (("NAME", "A. Author"), ("EMAIL", "a@b"))
}


def few_points(path: Path) -> int:
    """Write a drive of one cloud of few points; return how many points are many for it."""
    bundles = list(generate_drive(1, 1, replace(hdl_64e(), azimuths=90)))
    write_bundles(path, bundles)
    return 500 + max(len(cloud) for bundle in bundles for cloud in bundle.clouds)


def git(repo: Path, *words: str) -> str:
    """Run git in a repository and return what it prints. Raises CalledProcessError: it failed."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ("git", *words), cwd=repo, env={**env, **_WHO}, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.strip()


def history(
    repo: Path, commits: int, fault_in: int, limit: int, share: float = 1.0, broken: Collection[int] = ()
) -> list[str]:
    """Make a repository; return its commits, oldest first. From ``fault_in`` on a share of calls has the fault.

    ``limit``: more points are many. ``broken``: commits that cannot be imported.
    """
    repo.mkdir(parents=True)
    git(repo, "init", "--quiet", "--initial-branch", "main")
    (repo / "stack.yaml").write_text(STACK)
    made = []
    for number in range(commits):
        code = BROKEN if number in broken else CODE
        share_here = share if number >= fault_in else 0.0
        (repo / "perception.py").write_text(code.format(number=number, share=share_here, limit=limit))
        git(repo, "add", "--all")
        git(repo, "commit", "--quiet", "--message", f"Change {number}\n\nWhy it was made.")
        made.append(git(repo, "rev-parse", "HEAD"))
    return made
