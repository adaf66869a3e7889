# SPDX-License-Identifier: Apache-2.0
"""Whether this user wrote a results directory; whoever did not may not have code executed by going on with it.

A record names code: directories of plugins, and files of stacks, which name callables and commands. It is sealed with a
key that only this user reads. Commands that have to execute what a record names (``--resume``, ``mt shrink``, …) refuse
one without the seal, unless the user says ``--trust``, or named the same code on the command line.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mt_nodes.base import plugins, resources
from mt_nodes.base.directories import cache_dir
from mt_nodes.base.errors import UsageError

#: What is sealed besides what a record says: the stack, and a callable that was passed as an object.
_FILES = ("stack.yaml", "callable.pkl")
#: Set for this process and its suite processes.
_TRUST, _KEY = "MT_NODES_TRUST", "MT_NODES_RECORD_KEY"
_known: list[frozenset[str]] = []


def trust_all() -> None:
    """Have this process and those that it starts execute what records name, whoever wrote them (``--trust``)."""
    os.environ[_TRUST] = "1"


@contextmanager
def knowing(request: Mapping[str, Any]) -> Iterator[None]:
    """Allow in the block the code that a request of our own names: a worker goes on with the item it was given."""
    _known.append(frozenset(code_named(request)))
    try:
        yield
    finally:
        _known.pop()


def seal(out: Path, said: Mapping[str, Any]) -> str:
    """Return the seal of what a record says, and of the files beside it that name code.

    ``out``: results directory. ``said``: what it says, as JSON has it.
    """
    digest = hmac.new(_key(), json.dumps(said, sort_keys=True).encode(), hashlib.sha256)
    for name in _FILES:
        path = out / name
        digest.update(hashlib.sha256(path.read_bytes()).digest() if path.is_file() else b"-")
    return digest.hexdigest()


def refuse_foreign(out: Path, said: Mapping[str, Any], sealed: Any, request: Mapping[str, Any]) -> None:
    """Refuse to execute what a directory names if this user has not written it.

    ``out``: results directory. ``said``: what was sealed. ``sealed``: the seal that is there. ``request``: what names
    code.
    Raises UsageError: naming the code.
    """
    told = {f"plugins {path}" for path in plugins.directories()}.union(*_known)
    named = [code for code in code_named(request) if code not in told]
    if not named or os.environ.get(_TRUST) or hmac.compare_digest(str(sealed), seal(out, said)):
        return
    raise UsageError(
        f"{out}: was not written by you here, or was changed, and names code that would be executed: "
        f"{', '.join(named)}; read it, and type the same with --trust if you want that (docs/security.md)"
    )


def code_named(request: Mapping[str, Any]) -> list[str]:
    """Return what code of others a request names: plugins, stacks that do not ship, settings that replace theirs."""
    named = []
    for key, value in request.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        if isinstance(value, Mapping) and key != "stack_settings":
            named += code_named(value)
        elif key == "plugins":
            named += [f"plugins {Path(str(path)).resolve()}" for path in values]
        elif key in ("stack", "stacks"):
            named += [f"stack {name}" for name in values if name and str(name) not in resources.shipped("stacks")]
        elif key in ("build", "repo") and value:  # of a bisection
            named.append(f"{key} {value}")
        elif key == "stack_settings" and value:
            named.append(f"settings of its stack {json.dumps(value, default=str)}")
    return named


def _key() -> bytes:
    """Return this user's key; make it. Where nothing can be stored it lives as long as this run's processes."""
    if text := os.environ.get(_KEY):
        return text.encode()
    path = cache_dir() / "record.key"
    try:
        if not path.is_file():
            _make_key(path)
        return path.read_bytes()
    except OSError:
        key = secrets.token_hex(32)
        os.environ[_KEY] = key
        return key.encode()


def _make_key(path: Path) -> None:
    """Make the file of the key; whole from the start, and the first of several processes that make it wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent) as new:  # of mode 0600
        new.write(secrets.token_hex(32).encode())
        new.flush()
        with suppress(FileExistsError):
            os.link(new.name, path)
