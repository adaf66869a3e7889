# SPDX-License-Identifier: Apache-2.0
"""Tells whoever imports a module by a name of before where it is now: plugins and stack files of users know a few.

It goes with the release after the next.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

#: What plugins import and stack files name, by its name of before; a package stands for all that is in it.
MOVED = {
    "mt_nodes.models.stack": "mt_nodes.runs.models.driving_model",
    "mt_nodes.checks": "mt_nodes.relations.checks",
    "mt_nodes.conditions": "mt_nodes.relations.conditions",
    "mt_nodes.drive": "mt_nodes.world.drive",
    "mt_nodes.effects": "mt_nodes.data.effects",
    "mt_nodes.errors": "mt_nodes.base.errors",
    "mt_nodes.frames": "mt_nodes.data.messages",
    "mt_nodes.models": "mt_nodes.runs.models",
    "mt_nodes.mutations": "mt_nodes.relations.mutations",
    "mt_nodes.outputs": "mt_nodes.data.outputs",
    "mt_nodes.params": "mt_nodes.base.params",
    "mt_nodes.reference": "mt_nodes.stacks.reference",
    "mt_nodes.scene": "mt_nodes.world.scene",
    "mt_nodes.transforms": "mt_nodes.data.transforms",
}


class MovedModules(MetaPathFinder):
    """Comes last among the finders, so that it is asked for modules that are nowhere."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse a name of before.

        Raises:
            ModuleNotFoundError: naming the module to import in its place.
        """
        for before, now in MOVED.items():
            # Where a checkout was brought up to date, empty folders of packages of before may be left.
            if fullname == before or fullname.startswith(f"{before}."):
                new = now + fullname.removeprefix(before)
                raise ModuleNotFoundError(f"{fullname} is now {new}; import it from there", name=fullname)
        return None


def tell_where_modules_are() -> None:
    """Ask :class:`MovedModules` from now on."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())
