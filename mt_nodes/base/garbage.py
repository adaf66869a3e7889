# SPDX-License-Identifier: Apache-2.0
"""Garbage collection at the start and at the end of a process of ours: both looked through its modules for nothing."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Mapping
from typing import Any

#: About as many objects as the modules of a run, its plugins and its reports have: measured 50,000 to 160,000.
MODULE_OBJECTS = 150_000


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
