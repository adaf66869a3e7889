# SPDX-License-Identifier: Apache-2.0
"""Result directories: one for each run, and a link to the newest."""

from __future__ import annotations

import datetime
import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mt_nodes.base.errors import InfrastructureError, UsageError

DEFAULT_ROOT = Path("mt_results")
#: Names of directories that are written aside begin with this; who is killed meanwhile leaves them.
ASIDE = ".mt_"
#: A directory that holds one of these files has results already, of this kind.
_HELD = {
    "result.jsonl": "a run",
    "campaign.sqlite": "a campaign",
    "search.jsonl": "a search",
    "bisect.jsonl": "a bisection",
    "watch.jsonl": "a watch-only run",
    "shrink.json": "a reduction",
    "proposals.json": "an AutoMT experiment",
}
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DISK = (*_FULL, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.ENAMETOOLONG)


def new_directory(out: str | None, now: datetime.datetime | None = None) -> Path:
    """Create the directory of a new run, and the link ``latest`` beside it if the location is the default one.

    Raises UsageError: the directory holds the results of another run. InfrastructureError: it cannot be created.
    """
    stamp = (now or datetime.datetime.now()).strftime("%Y%m%d_%H%M%S")
    path = Path(out) if out else unused(DEFAULT_ROOT / stamp)
    if path.exists() and not path.is_dir():
        raise UsageError(f"--out {path}: got a file, expected a directory; choose another one")
    try:
        if existing := next((name for name in _HELD if (path / name).exists()), None):
            held = _HELD[existing]
            raise UsageError(f"--out {path}: holds the results of {held} already; choose another directory")
        path.mkdir(parents=True, exist_ok=True)
        (path / "evidence").mkdir(exist_ok=True)
        if not out:
            _link_latest(path)
    except OSError as error:
        raise cannot_write(path, error) from error
    return path


@contextmanager
def staged_directory(path: Path) -> Iterator[Path]:
    """Yield a directory beside ``path`` that becomes it when the block ends without an exception."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=ASIDE, dir=path.parent) as folder:
        staged = Path(folder) / path.name
        staged.mkdir()
        yield staged
        staged.replace(path)


def cache_dir() -> Path:
    """Return where this package remembers things for all runs of this user; it may not exist yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mt_nodes"


def own_temporary_directory(name: str) -> Path:
    """Return a directory of this user alone below the temporary one, where others may write, too; make it if needed.

    Raises InfrastructureError: somebody else made it, or others may write to it.
    """
    path = Path(tempfile.gettempdir()) / f"{name}-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    about = path.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InfrastructureError(
            f"{path}: belongs to another user, or others may write to it; remove it, or set TMPDIR to a directory of "
            "your own"
        )
    return path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically: even if a process is killed, readers see the old content until the new one is complete.

    Bytes of paths in a text that are not UTF-8 are escaped.
    """
    fresh = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        fresh.write_bytes(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error


def as_stored(path: str) -> str | bytes:
    """Return a path as SQLite stores it: as text if it is UTF-8, else as bytes, which ``os.fsdecode`` reads."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


def of_the_disk(error: OSError) -> bool:
    """Whether an error says that the disk or the file system cannot take the file."""
    return error.errno in _DISK


def cannot_write(path: Path, error: OSError) -> InfrastructureError:
    """Return the error that names the file that cannot be written and, if the disk is full, the space left."""
    if error.errno in _FULL:
        left = f"; {_room(path)}; make room or choose another --out. What was judged is kept"
    else:
        left = "; choose another --out"
    what = f"{error.filename}: " if error.filename else ""
    return InfrastructureError(f"cannot write results to {path}: {what}{error.strerror or error}{left}")


def _room(path: Path) -> str:
    place = next(p for p in (path, *path.resolve().parents) if p.exists())
    disk = place.resolve()
    while not disk.is_mount():
        disk = disk.parent
    usage = shutil.disk_usage(place)
    return f"the disk at {disk} has {usage.free / 1e6:.1f} MB of {usage.total / 1e6:.1f} MB free"


def unused(path: Path) -> Path:
    """Return the path, or if it exists the first of ``<path>_2``, ``<path>_3``… that does not."""
    candidates = (path, *(path.with_name(f"{path.name}_{i}") for i in range(2, 1000)))
    return next(c for c in candidates if not c.exists())


def natural_order(name: str) -> list[int | str]:
    """Return a key that sorts names by the numbers in them: ``epoch_9`` before ``epoch_10``."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _link_latest(path: Path) -> None:
    link = path.parent / "latest"
    fresh = path.parent / f".latest-{os.getpid()}"
    fresh.symlink_to(path.name)
    fresh.replace(link)
