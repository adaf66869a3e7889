# SPDX-License-Identifier: Apache-2.0
"""Metamorphic testing of a driving stack while it runs.

``import mt_nodes as mt`` gives the names of :data:`PUBLIC`, documented in ``docs/python.md``; ``__init__.pyi`` has
their types. Each is imported when it is first used.

Rooms, from the bottom: :mod:`~mt_nodes.base`, :mod:`~mt_nodes.data`, :mod:`~mt_nodes.world`, :mod:`~mt_nodes.relations`
beside :mod:`~mt_nodes.stacks`, :mod:`~mt_nodes.engine`, :mod:`~mt_nodes.rules` beside :mod:`~mt_nodes.report`,
:mod:`~mt_nodes.runs`, :mod:`~mt_nodes.api` beside :mod:`~mt_nodes.plugin`, :mod:`~mt_nodes.cli`,
:mod:`~mt_nodes.nodes`. Each imports from those below it alone.
"""

from __future__ import annotations

import sys

from mt_nodes.base.moved import tell_where_modules_are

# Supervisors of processes import the package, and nothing that takes long: to import `typing` would double their start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

#: Public name -> its module. docs/python.md says which changes of it need a new major version.
PUBLIC = {
    **{"replay": "api.replays", "load": "api.replays", "assert_holds": "api.assertion"},
    "assert_frame_holds": "api.frame_assertion",
    "demo_drive": "api.demo_drive",
    **{"frames": "api.frames", "mutate": "api.mutate", "judge": "api.judge"},
    **{"Result": "api.result", "RelationVerdict": "api.verdicts", "ViolatedPair": "api.verdicts"},
    **{"Frame": "api.frames", "ChangedFrame": "api.mutate", "FrameVerdict": "api.judge"},
    **{"Place": "api.verdict_places", "ImagePlace": "api.verdict_places", "PairRow": "engine.summary.verdict_rows"},
    **dict.fromkeys(("Detections", "ImageBoxes", "Control", "Path", "Output"), "data.outputs"),
    **dict.fromkeys(("Outcome", "RelationOutcome", "Judgement"), "data.verdict"),
    **dict.fromkeys(("ExitCode", "MtError", "UsageError", "InfrastructureError"), "base.errors"),
    **dict.fromkeys(("StackError", "IsolationError", "NotApplicable"), "base.errors"),
}

__all__ = [*PUBLIC, "__version__"]  # noqa: PLE0604

tell_where_modules_are()
if sys.argv[:1] == ["-m"] and any(word.startswith("mt_nodes.") for word in sys.orig_argv):
    from mt_nodes.base.garbage import spare_modules  # `python -m mt_nodes.…`: this process is ours

    spare_modules()


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        from mt_nodes.base.errors import suggest

        raise AttributeError(f"module 'mt_nodes' has no attribute '{name}'{suggest(name, PUBLIC)}")
    from importlib import import_module

    globals()[name] = found = getattr(import_module(f"mt_nodes.{PUBLIC[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})
