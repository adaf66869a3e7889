# SPDX-License-Identifier: Apache-2.0
"""``run.json``: what was asked of a run, what that came to, with which versions, on which machine."""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import yaml

from mt_nodes import __version__
from mt_nodes.base.control_group import delegation
from mt_nodes.base.directories import cannot_write, new_directory
from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import jsonable, read_result, write_result
from mt_nodes.base.params import plain
from mt_nodes.base.plain_data import PlainData
from mt_nodes.base.record_shapes import NUMBER, Shape, expect_shape
from mt_nodes.base.yaml_files import read_mapping
from mt_nodes.engine.provenance import refuse_foreign, seal
from mt_nodes.stacks.stack import Stack

FILE, STACK_FILE = "run.json", "stack.yaml"
#: What the record of a run of any kind holds.
SHAPE: Shape = {
    **{
        "request": {"bags?": [str], "relations?": [str], "stack?": str, "faults?": [str], "plugins?": [str]},
        "started?": str,
        "directory?": str,
        "stack?": str,
        "topics?": {"*": {}},
        "versions?": {"*": str},
    },
    "pairs?": (int, type(None)),
    "relations": [
        {
            **{"id": str, "kind?": str, "because?": str, "requirement?": [str], "requires?": [str]},
            **{"min_decided?": int, "tolerated_rate?": (*NUMBER, type(None))},
            **{key: [{"*": ({}, type(None))}] for key in ("mutate?", "scenario?")},
        }
    ],
}
VERSIONS_OF = ("numpy", "scipy", "shapely", "open3d-cpu", "open3d", "rosbags", "ros-rclpy", "ros-rmw-fastrtps-cpp")

Record = dict[str, Any]
R = TypeVar("R")


class Judge(Protocol):
    """What judges a run: a relation, or a principle; its plain form has an ``id``."""

    def as_plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        ...


def in_directory(out: str | None, run_at: Callable[[Path], R], save: Callable[[R], None]) -> R:
    """Return a run in a directory of its own, a new one below ``mt_results`` when ``out`` is empty, and save it there.

    Raises UsageError: the directory holds another run. InfrastructureError: it cannot be written.
    """
    place = new_directory(out)
    run = run_at(place)
    try:
        save(run)
    except OSError as error:
        raise cannot_write(place, error) from error
    return run


def write_record(
    out: Path, request: PlainData, relations: Sequence[Judge], stack: Stack, topics: Mapping[str, Any], **more: Any
) -> None:
    """Write stack and record; the record last and whole, so that a directory that has one can be resumed.

    ``relations``: all that are offered, control and sham included. ``stack``: what is under test, faults planted.
    ``topics``: bag -> role -> topic. ``more``: what else is to be kept, by key.
    """
    (out / STACK_FILE).write_text(yaml.safe_dump(plain(stack), sort_keys=False), encoding="utf-8")
    description = {"relations": [r.as_plain() for r in relations], "stack": stack.name, "topics": topics}
    write_request(out, request, {**more, **description})


def write_request(out: Path, request: PlainData, about: Mapping[str, Any]) -> None:
    """Write the record, whole: what was asked, what else is to be kept about it, versions and machine."""
    record = {
        "schema": 1,
        "started": _now(),
        "command": sys.argv,
        "directory": str(Path.cwd()),
        "request": request.as_plain(),
        **about,
        "versions": versions(),
        "machine": {
            "system": platform.platform(),
            "cpu": platform.machine(),
            "cores": os.cpu_count(),
            "host": platform.node(),
            "limits": str(delegation()),
        },
    }
    write_sealed(out, record)


def write_sealed(out: Path, record: Record) -> None:
    """Write a record with the seal of this user: what it names may be executed from now on."""
    write_result(out / FILE, {**record, "seal": seal(out, _sealed(_as_json(record)))})


def _sealed(record: Record) -> Record:
    """Return what of a record is sealed: what names code, and where relative paths begin."""
    return {key: record.get(key) for key in ("request", "directory")}


def refuse_foreign_record(out: Path, record: Record) -> None:
    """Refuse to execute what the record of a directory names if this user has not written it. Raises UsageError."""
    refuse_foreign(out, _sealed(record), record.get("seal", ""), record["request"])


def read_record(out: Path) -> Record:
    """Return the record of a results directory.

    Raises UsageError: there is none. InfrastructureError: it is damaged.
    """
    path = out / FILE
    if not path.is_file():
        if cells := sorted(p.parent for p in out.glob(f"cells/*/{FILE}")):
            raise UsageError(f"{out}: holds a campaign, expected one of its cells: {', '.join(map(str, cells))}")
        raise UsageError(f"{path}: there is no such file; expected a results directory of `mt replay`")
    record = read_result(path, "start the run anew with another --out")
    expect_shape(record, SHAPE, str(path))
    return record


def request_of(out: Path, key: str, command: str) -> Record:
    """Return what was asked of the run in a directory, to execute it; its key, which no other kind has, tells the kind.

    Raises UsageError: there is none, or it is of another command, or names code and this user has not written it.
    """
    record = read_record(out)
    request: Record = record["request"]
    if key not in request:
        raise UsageError(f"{out}: holds another kind of run, expected one of `{command}`")
    refuse_foreign_record(out, record)
    return request


def note_resumed(out: Path, relations: Sequence[Judge], stack: Stack) -> None:
    """Note in the record that the run goes on, and take away what it was summed up to.

    Raises UsageError: it would not be the same run any more: a relation or the stack has changed.
    """
    record = read_record(out)
    before = {r["id"]: r for r in record["relations"]}
    now = {r["id"]: r for r in _as_json([r.as_plain() for r in relations])}
    changed = [f"relation '{name}'" for name in {**before, **now} if before.get(name) != now.get(name)]
    if _as_json(plain(stack)) != _as_json(read_mapping(out / STACK_FILE)):
        changed.append(f"stack '{stack.name}'")
    if changed:
        raise UsageError(
            f"{out}: cannot be resumed, changed since: {', '.join(changed)}; start anew with another --out"
        )
    record.setdefault("resumed", []).append({"at": _now(), "versions": versions()})
    write_sealed(out, record)  # whoever goes on with it was allowed to, and its suite process has to know
    # What was summed up before the run goes on is none of it any more.
    (out / "summary.json").unlink(missing_ok=True)


def versions() -> dict[str, str]:
    """Return the versions of everything that a result may depend on."""
    from importlib.metadata import PackageNotFoundError, version  # takes long, and only who makes a record asks

    found = {"mt_nodes": __version__, "python": platform.python_version()}
    for name in VERSIONS_OF:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def _as_json(value: Any) -> Any:
    """Return what a value is after a way through a file: no tuples, no types of NumPy."""
    return json.loads(json.dumps(jsonable(value)))
