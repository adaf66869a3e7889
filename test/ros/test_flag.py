# SPDX-License-Identifier: Apache-2.0
"""What a signal's handler sets can be set while it is being set."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from mt_nodes.base.processes import Flag

#: Tells by what is given, and has a second signal handled at every line that this takes.
REENTERED = """
import os, signal, sys, threading
from mt_nodes.base.processes import Flag
told, seconds = {made}, 0
def second(*_):
    global seconds
    seconds += 1
    told.set()
signal.signal(signal.SIGUSR1, second)
def at_each_line(frame, event, arg):
    if frame.f_code.co_name in ("set", "notify_all", "notify") and event == "line":
        sys.settrace(None)
        os.kill(os.getpid(), signal.SIGUSR1)
        sys.settrace(at_each_line)
    return at_each_line
def handle(*_):
    sys.settrace(at_each_line)
    told.set()
    sys.settrace(None)
signal.signal(signal.SIGTERM, handle)
print("ready", flush=True)
os.kill(os.getpid(), signal.SIGTERM)
print(told.is_set() and seconds > 0)
"""


def said(made: str, within_s: float) -> str:
    """Return what it says within a time, once it is about to be told."""
    code = [sys.executable, "-c", REENTERED.replace("{made}", made)]
    with subprocess.Popen(code, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        try:
            process.wait(within_s)
            # By the reader that read the first line: the rest may be in its buffer already.
            return process.stdout.read().strip()
        finally:
            process.kill()


def test_it_may_be_set_while_it_is_being_set() -> None:
    assert said("Flag()", 100.0) == "True"


def test_an_event_may_not() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        said("threading.Event()", 1.0)


def test_it_is_not_set_before() -> None:
    told = Flag()
    assert not told.is_set()
    before = signal.signal(signal.SIGUSR1, told.set)
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert told.is_set()


@pytest.mark.parametrize("module", ["suite_process", "relay", "inline_mutator", "box_inside", "box_outside"])
def test_no_handler_of_ours_sets_what_locks(module: str) -> None:
    """``threading.Event`` would hang in a handler that is interrupted by another signal."""
    import importlib
    import inspect

    source = inspect.getsource(importlib.import_module(f"mt_nodes.nodes.{module}"))
    assert "Flag" in source or ("flag_of_signals" in source and "ended = threading.Event()" not in source)
