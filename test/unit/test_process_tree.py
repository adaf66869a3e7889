# SPDX-License-Identifier: Apache-2.0
"""What is read about other processes for hours leaves nothing behind."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import pytest

from mt_nodes.base import limit_watch, process_tree, processes


def test_reading_about_processes_makes_no_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """``pathlib`` interns each part of a path, ids of processes included: the table of interned strings wears out."""
    made: list[tuple[Any, ...]] = []
    create = pathlib.Path.__new__

    def record(cls: type[pathlib.Path], *parts: Any, **more: Any) -> pathlib.Path:
        made.append(parts)
        return create(cls, *parts, **more)

    own = os.getpid()
    with monkeypatch.context() as context:
        context.setattr(pathlib.Path, "__new__", record)
        stopped, found = processes.is_stopped(own), process_tree.processes()
        sizes_mb = limit_watch._resident_mb(own), limit_watch._proportional_mb(own)
        assert pathlib.Path("/proc/1") and made.pop() == ("/proc/1",), "paths are recorded"
    assert not made
    assert not stopped and found[own] == (os.getppid(), "R") and min(sizes_mb) > 1.0


def test_a_process_that_is_gone_has_no_files() -> None:
    with pytest.raises(OSError, match="No such file"):
        process_tree.read_file(f"/proc/{2**22 + 1}/stat")
    assert not processes.is_stopped(2**22 + 1)
