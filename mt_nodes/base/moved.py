# SPDX-License-Identifier: Apache-2.0
"""Old module names: importing one raises an error that names the new one, for users' plugins and stack files.

To be removed with the release after the next.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

#: Old names that plugins import and stack files name -> new names; a package stands for all its modules.
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


class MovedModules:
    """Import finder for old names; it comes last, so Python asks it only for modules that do not exist."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse an old name. Raises ModuleNotFoundError: naming the module to import instead."""
        for before, now in MOVED.items():
            # An updated checkout may still contain empty folders of old packages.
            if fullname == before or fullname.startswith(f"{before}."):
                new = now + fullname.removeprefix(before)
                raise ModuleNotFoundError(f"{fullname} is now {new}; import it from there", name=fullname)
        return None


def tell_where_modules_are() -> None:
    """Install :class:`MovedModules`."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())
