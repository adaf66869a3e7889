# SPDX-License-Identifier: Apache-2.0
"""Processes by parent, as ``/proc`` shows them; signals to several; what has ended. Only the standard library."""

import os

_CHUNK = 1 << 16


def read_file(path: str) -> str:
    """Return a file of ``/proc``. Raises OSError: it is not there.

    Not by ``pathlib``, which takes several times as long, and of which CPython 3.11 interns each part of a path: a
    process that reads about others for hours would fill its table of interned strings with ids.
    """
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(number, _CHUNK):  # the kernel gives some files a page at a time
            parts.append(part)
        return b"".join(parts).decode(errors="replace")
    finally:
        os.close(number)


def processes() -> dict[int, tuple[int, str]]:
    """Return parent and state by id of process."""
    found = {}
    with os.scandir("/proc") as entries:
        for pid in (entry.name for entry in entries if entry.name.isdigit()):
            try:
                state, parent = read_file(f"/proc/{pid}/stat").rpartition(")")[2].split(None, 2)[:2]
            except (OSError, ValueError):  # it has just ended
                continue
            found[int(pid)] = (int(parent), state)
    return found


def children_of(pid: int) -> list[int]:
    """Return the direct children of a process, without zombies."""
    return [child for child, (parent, state) in processes().items() if parent == pid and state != "Z"]


def descendants_of(pid: int, spare: frozenset[int] = frozenset()) -> list[int]:
    """Return the descendants of a process, except the children in ``spare`` and theirs; without zombies."""
    children: dict[int, list[int]] = {}
    for child, (parent, state) in processes().items():
        if state != "Z":
            children.setdefault(parent, []).append(child)
    found = [child for child in children.get(pid, ()) if child not in spare]
    for child in found:
        found += children.get(child, ())
    return found


def signal_all(pids: list[int], number: int) -> None:
    """Send a signal to processes; skips those that are gone."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def reap() -> dict[int, int]:
    """Reap every child that has ended; return the status by process id."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if not pid:
            return ended
        ended[pid] = status
