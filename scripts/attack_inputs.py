# SPDX-License-Identifier: Apache-2.0
"""Drives with impossible stamps and transforms, and folders of plugins that nobody should load."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import Transform, TransformTree
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import LidarModel

LIDAR = LidarModel(tuple(math.radians(-15.0 + 4.0 * beam) for beam in range(8)), 90, 0.9, 100.0, 0.02, 0.06)
BUNDLES, DAY_NS = 30, 86_400 * 10**9


class Bags:
    """Bags, made when they are asked for."""

    def __init__(self, place: Path) -> None:
        """Make them in a directory."""
        self._place = place

    @cached_property
    def _drive(self) -> Sequence[Bundle]:
        return tuple(generate_drive(BUNDLES, 1, LIDAR))

    @cached_property
    def sound(self) -> Path:
        """A drive with nothing wrong."""
        return self._written("sound", self._drive)

    def stamps(self) -> dict[str, Path]:
        """Drives whose stamps jump in the middle, stand still, run backwards, or are zero."""
        first = self._drive[0].stamp_ns
        ways: dict[str, Callable[[int, int], int]] = {
            "a day back": lambda i, ns: ns - DAY_NS * (i >= BUNDLES // 2),
            "a day forward": lambda i, ns: ns + DAY_NS * (i >= BUNDLES // 2),
            "each twice": lambda i, ns: first + (i // 2) * 2 * 10**8,
            "all alike": lambda i, ns: first,
            "backwards": lambda i, ns: first + (BUNDLES - i) * 10**8,
            "zero": lambda i, ns: 0,
            "to and fro": lambda i, ns: ns + (10**9 if i % 2 else 0),
        }
        return {
            name: self._written(name, [_stamped(b, way(i, b.stamp_ns)) for i, b in enumerate(self._drive)])
            for name, way in ways.items()
        }

    def transforms(self) -> dict[str, Path]:
        """Drives whose transforms are impossible."""
        mount = next(iter(self._drive[0].transforms.transforms))
        other, eye = replace(mount, parent="other_link"), np.eye(4)
        rows = {
            "loop": [mount, Transform("velodyne", "base_link", eye)],
            "longer loop": [mount, Transform("velodyne", "a", eye), Transform("a", "base_link", eye)],
            "two parents": [mount, other],
            "own parent": [mount, Transform("velodyne", "velodyne", eye)],
            "none": [],
        }
        return {
            name: self._written(f"tf {name}", [replace(b, transforms=_tree(found)) for b in self._drive])
            for name, found in rows.items()
        }

    def _written(self, name: str, bundles: Sequence[Bundle]) -> Path:
        path = self._place / name.replace(" ", "_")
        if not path.exists():
            write_bundles(path, bundles)
        return path


def _tree(rows: Sequence[Transform]) -> TransformTree:
    """Return a tree with just these rows, whatever they are."""
    return TransformTree(list(rows))


def _stamped(bundle: Bundle, stamp_ns: int) -> Bundle:
    clouds = tuple(replace(cloud, stamp_ns=stamp_ns) for cloud in bundle.clouds)
    return replace(bundle, clouds=clouds, wires=())


_SHADOW = """
from dataclasses import dataclass
from mt_nodes.relations.checks.base import Check

@dataclass(frozen=True)
class ObstaclesKept(Check):
    def judge(self, *given):
        raise SystemExit(0)
"""
#: Name -> file name and source; ``{}`` are made by hand below.
_SOURCES = {
    "raises": ("a.py", "raise RuntimeError('no')"),
    "sys.exit(0)": ("a.py", "import sys; sys.exit(0)"),
    "os._exit(0)": ("a.py", "import os; os._exit(0)"),
    "ends at exit": ("a.py", "import atexit, os; atexit.register(os._exit, 0)"),
    "killed": ("a.py", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"),
    "shipped name": ("obstacles_kept.py", _SHADOW),
    "no Python": ("a.py", "\x00\x01 def"),
    "module of ours": ("mt_nodes.py", "x = 1"),
    "module of Python": ("json.py", "raise RuntimeError('shadowed')"),
    "name with a line break": ("a\nb.py", "x = 1 +"),
    "prints": ("a.py", "print('exit code 0: every relation is PASS')"),
    "no recursion left": ("a.py", "f = lambda: f()\nf()"),
    "keyboard interrupt": ("a.py", "raise KeyboardInterrupt"),
}


def plugin_folders(place: Path) -> dict[str, Path]:
    """Make folders of plugins, by what is wrong with them."""
    found = {}
    for number, (name, (file, source)) in enumerate(_SOURCES.items()):
        folder = place / str(number)
        folder.mkdir(parents=True)
        (folder / file).write_text(source)
        found[name] = folder
    circle = place / "circle"
    circle.mkdir()
    (circle / "again.py").symlink_to(circle)
    (circle / "gone.py").symlink_to(circle / "nowhere.py")
    return {**found, "links in circles": circle, "no folder": place / "nowhere"}
