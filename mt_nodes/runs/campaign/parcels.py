# SPDX-License-Identifier: Apache-2.0
"""The directory of an item on its way home: one tar file, packed with zstd."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import IO, Any

from mt_nodes.base.directories import cannot_write
from mt_nodes.base.errors import InfrastructureError

#: zstd's level: journals shrink to a tenth with the fastest, and evidence is packed already.
_LEVEL = 1


def pack(directory: Path, target: IO[bytes]) -> None:
    """Write what a directory holds, but for hidden files (locks)."""
    from backports import zstd

    def visible(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if Path(member.name).name.startswith(".") and member.name != "." else member

    packed: Any = zstd.open(target, "wb", level=_LEVEL)
    with packed, tarfile.open(fileobj=packed, mode="w|") as archive:
        archive.add(directory, ".", filter=visible)


def unpack(source: IO[bytes], directory: Path) -> None:
    """Put a directory where it was packed from, in place of what is there; whole, or not at all.

    Raises InfrastructureError: the parcel is damaged, or it cannot be written.
    """
    from backports import zstd

    fresh, old = directory.with_name(f".{directory.name}.new"), directory.with_name(f".{directory.name}.old")
    for left in (fresh, old):  # by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    try:
        fresh.mkdir(parents=True)
        opened: Any = zstd.open(source, "rb")
        with opened, tarfile.open(fileobj=opened, mode="r|") as archive:
            archive.extractall(fresh, filter="data")  # nothing outside of it, no links out of it, no devices
        if directory.exists():
            directory.rename(old)
        fresh.rename(directory)
    except (tarfile.TarError, zstd.ZstdError, EOFError) as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise InfrastructureError(f"{directory.name}: what came from its worker is damaged: {error}") from error
    except OSError as error:
        raise cannot_write(directory, error) from error
    shutil.rmtree(old, ignore_errors=True)
