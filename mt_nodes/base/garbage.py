# SPDX-License-Identifier: Apache-2.0
"""The start and the end of a process of ours, without what Python does there for nothing."""

from __future__ import annotations

import atexit
import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

#: About as many objects as the modules of a run, its plugins and its reports have: measured 50,000 to 160,000.
MODULE_OBJECTS = 150_000
#: With what Python ends where the last of the output cannot be written.
_UNWRITTEN = 120


def spare_modules() -> None:
    """Begin to collect garbage only behind the objects of modules, and not at all as the process ends.

    A module is no garbage: while they are imported, hundreds of collections find nothing, and the one at the end of the
    process goes through all of them: one fifth of the processor time of a short run. After the first collection that
    is due, all is as Python has it, but for what is there by then, which is looked at no more.
    """
    usual = gc.get_threshold()

    def leave_modules_out(phase: str, info: Mapping[str, Any]) -> None:
        gc.callbacks.remove(leave_modules_out)
        gc.freeze()
        gc.set_threshold(*usual)

    gc.callbacks.append(leave_modules_out)
    gc.set_threshold(MODULE_OBJECTS, *usual[1:])
    atexit.register(gc.freeze)


def end_process(code: int) -> NoReturn:
    """End this process as Python does, but for freeing each object: the system frees all at once.

    So ``multiprocessing`` ends its processes. Not for one that uses ROS: Fast DDS cleans up in what is left out here.
    """
    import threading

    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except (OSError, ValueError):
            code = code or _UNWRITTEN
    os._exit(code)
