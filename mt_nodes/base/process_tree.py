# SPDX-License-Identifier: Apache-2.0
"""Processes by parent, as ``/proc`` shows them; signals to several; what has ended. Only the standard library."""

import os


def read_process_file(pid: int | str, name: str) -> str:
    """Return the text of a file of ``/proc/PID``; raises OSError.

    Not by ``pathlib``: CPython 3.11's interns each part of a path, and a process that reads about others for hours so
    fills its table of interned strings with ids, until it gets a new one of 1 to 2 MB.
    """
    with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        return file.read()


def processes() -> dict[int, tuple[int, str]]:
    """Return parent and state by id of process."""
    found = {}
    for pid in (entry.name for entry in os.scandir("/proc") if entry.name.isdigit()):
        try:
            state, parent = read_process_file(pid, "stat").rpartition(")")[2].split(None, 2)[:2]
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
