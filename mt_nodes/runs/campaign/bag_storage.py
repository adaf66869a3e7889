# SPDX-License-Identifier: Apache-2.0
"""Where bags lie: on a disk here, or behind a URL (through fsspec, which a disk does not need)."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from mt_nodes.base.errors import InfrastructureError, UsageError, needs_extra

#: How the names of bags of one file end.
SUFFIXES = (".mcap", ".db3", ".bag")
#: Bytes read at a time.
CHUNK_BYTES = 1 << 20
#: What HTTP answers where nothing is.
_NOT_FOUND = (404, 410)
#: What file systems call that which changes with a file's content, beside its size.
_IDENTITY = (
    *("ETag", "etag", "e_tag", "Content-MD5", "Digest", "md5Hash", "md5", "crc32c", "generation", "VersionId"),
    *("version_id", "Last-Modified", "LastModified", "last_modified", "mtime", "updated", "modified", "created"),
)


class RemoteFolder(Protocol):
    """Files and folders by name."""

    def glob(self, pattern: str) -> list[str]:
        """Return what matches, sorted."""

    def exists(self, place: str) -> bool:
        """Whether there is such a file or folder."""

    def is_bag_file(self, place: str) -> bool:
        """Whether it is a bag of one file (of a URL: by its name)."""

    def files(self, folder: str) -> list[str]:
        """Return the files in a folder but for hidden ones, sorted."""

    def folders(self, folder: str) -> list[str]:
        """Return the folders in a folder but for hidden ones, sorted."""

    def identity(self, file: str) -> str:
        """Return what changes when a file does; empty: nothing is known that does."""

    def chunks(self, file: str) -> Iterator[bytes]:
        """Yield the content of a file."""


class Disk:
    """Paths of this machine."""

    def glob(self, pattern: str) -> list[str]:
        """Return what matches, sorted; ``**`` is any depth."""
        return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207  pathlib knows no absolute patterns

    def exists(self, place: str) -> bool:
        """Whether there is such a file or folder."""
        return Path(place).exists()

    def is_bag_file(self, place: str) -> bool:
        """Whether it is a bag of one file."""
        return Path(place).suffix in SUFFIXES and Path(place).is_file()

    def files(self, folder: str) -> list[str]:
        """Return the files in a folder but for hidden ones, sorted."""
        return self._within(folder, Path.is_file)

    def folders(self, folder: str) -> list[str]:
        """Return the folders in a folder but for hidden ones, sorted."""
        return self._within(folder, Path.is_dir)

    def identity(self, file: str) -> str:
        """Return size, time of change in nanoseconds, and inode."""
        with _readable_errors(file):
            found = Path(file).stat()
        return f"{found.st_size}:{found.st_mtime_ns}:{found.st_dev}:{found.st_ino}"

    def chunks(self, file: str) -> Iterator[bytes]:
        """Yield the content of a file."""
        with _readable_errors(file), Path(file).open("rb", buffering=0) as opened:
            while chunk := opened.read(CHUNK_BYTES):
                yield chunk

    def _within(self, folder: str, accepts: Any) -> list[str]:
        if not Path(folder).is_dir():
            return []
        with _readable_errors(folder):
            return sorted(str(p) for p in Path(folder).iterdir() if accepts(p) and not p.name.startswith("."))


class Web:
    """URLs of one protocol, through fsspec; what it needs to know of accounts is in its own configuration files.

    Raises UsageError: the protocol is unknown or needs a package.
    """

    def __init__(self, url: str) -> None:
        with needs_extra("cluster", f"{url}: URLs need fsspec; type"):
            import fsspec
        self.protocol = urlsplit(url).scheme
        try:
            self._fs: Any = fsspec.filesystem(self.protocol)
        except (ImportError, ValueError) as error:
            raise UsageError(f"{url}: {_missing(self.protocol, error)}") from error

    def glob(self, pattern: str) -> list[str]:
        """Return what matches but for hidden ones, sorted; by HTTP what the page of the folder links to."""
        with _readable_errors(pattern):
            return self._urls(path for path in self._fs.glob(pattern) if not name_of(path).startswith("."))

    def exists(self, place: str) -> bool:
        """Whether there is such a file or folder."""
        try:
            with _readable_errors(place):
                self._fs.info(place)  # unlike its exists() this tells "not there" from "not reached"
        except UsageError:
            return False
        return True

    def is_bag_file(self, place: str) -> bool:
        """Whether it has the name of a bag of one file."""
        return name_of(place).endswith(SUFFIXES)

    def files(self, folder: str) -> list[str]:
        """Return the files in a folder but for hidden ones, sorted."""
        return self._within(folder, "file")

    def folders(self, folder: str) -> list[str]:
        """Return the folders in a folder but for hidden ones, sorted."""
        return self._within(folder, "directory")

    def identity(self, file: str) -> str:
        """Return size and whatever the file system knows that changes with the content."""
        with _readable_errors(file):
            info = self._fs.info(file)
        known = [f"{name}={info[name]}" for name in _IDENTITY if info.get(name) is not None]
        return ":".join([str(info.get("size")), *known]) if known else ""

    def chunks(self, file: str) -> Iterator[bytes]:
        """Yield the content of a file, by HTTP as one stream: not every server knows ranges, nor are they needed."""
        whole = {"block_size": 0} if self.protocol in ("http", "https") else {}
        with _readable_errors(file), self._fs.open(file, "rb", **whole) as opened:
            while chunk := opened.read(CHUNK_BYTES):
                yield chunk

    def _within(self, folder: str, kind: str) -> list[str]:
        try:
            with _readable_errors(folder):
                found = self._fs.ls(folder, detail=True)
        except UsageError:
            return []
        return self._urls(
            row["name"] for row in found if row["type"] == kind and not name_of(row["name"]).startswith(".")
        )

    def _urls(self, paths: Any) -> list[str]:
        return sorted(str(self._fs.unstrip_protocol(path)) for path in paths)


def places_of(place: str) -> RemoteFolder:
    """Return the file system of a path or URL. Raises UsageError: see :class:`Web`."""
    return Web(place) if is_url(place) else Disk()


def is_url(place: str) -> bool:
    """Whether it must be fetched; ``file://`` is of this machine, see :func:`local_path`."""
    return "://" in place


def local_path(place: str) -> str:
    """Return a ``file://`` URL as a path, anything else as it is."""
    return unquote(urlsplit(place).path) if place.startswith("file://") else place


def name_of(place: str) -> str:
    """Return the last part of a path or URL, without a query."""
    path = urlsplit(place).path if is_url(place) else place
    return os.path.basename(unquote(path).rstrip("/"))  # noqa: PTH119  a URL is no path


@contextmanager
def _readable_errors(place: str) -> Iterator[None]:
    """Turn errors of reading into those for people."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        # fsspec says so of HTTP whatever went wrong; what did is the cause.
        if error.__cause__ is not None and getattr(error.__cause__, "status", None) not in _NOT_FOUND:
            raise InfrastructureError(f"{place}: cannot be read: {error.__cause__}") from error
        raise UsageError(f"no bag {place}: there is no such file; expected a bag's path or URL") from error
    except OSError as error:
        raise InfrastructureError(f"{place}: cannot be read: {error.strerror or error}") from error
    except (InfrastructureError, UsageError, GeneratorExit):
        raise
    # Clients of networks raise errors of any kind.
    except Exception as error:
        if not is_url(place):
            raise
        raise InfrastructureError(f"{place}: cannot be read: {type(error).__name__}: {error}") from error


def _missing(protocol: str, error: Exception) -> str:
    """Say what a protocol needs, in fsspec's own words where it has any."""
    from fsspec.registry import known_implementations

    if protocol not in known_implementations:
        return f"unknown protocol '{protocol}'; expected a path, or a URL such as https://… or s3://…"
    hint = known_implementations[protocol].get("err") or str(error)
    return f"'{protocol}' URLs need another package: {hint}"
