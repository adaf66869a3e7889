# SPDX-License-Identifier: Apache-2.0
"""What users are told when something is wrong, word for word: ``snapshots/errors.txt``, one block a case.

``UPDATE_SNAPSHOTS=1 python -m pytest -k test_bad_`` makes the blocks anew; look at the
difference before keeping it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

FILE = Path(__file__).parent / "snapshots" / "errors.txt"
_HEAD = "=== "


def matches(name: str, text: str, *places: Path) -> bool:
    """Compare a text with the block of this name, paths that differ between machines left out."""
    for place in sorted({*places, Path(__file__).parents[1]}, key=lambda p: -len(str(p))):
        text = text.replace(str(place), "<REPOSITORY>" if place == Path(__file__).parents[1] else "<DIR>")
    known, text = _read(), text.strip("\n")
    if os.environ.get("UPDATE_SNAPSHOTS"):
        _write({**known, name: text})
        return True
    assert name in known, f"no block '{name}' in {FILE}; make it with UPDATE_SNAPSHOTS=1"
    assert text == known[name], (
        f"block '{name}' of {FILE.name}: told otherwise than before; if rightly so, UPDATE_SNAPSHOTS=1"
    )
    return True


def stale(prefix: str, names: Iterable[str]) -> set[str]:
    """Return the blocks of a group that no case makes any more."""
    return {name for name in _read() if name.startswith(f"{prefix}: ")} - set(names)


def _read() -> dict[str, str]:
    text = FILE.read_text(encoding="utf-8") if FILE.exists() else ""
    blocks = f"\n{text}".split(f"\n{_HEAD}")[1:]
    return {name: body.strip("\n") for name, _, body in (block.partition("\n") for block in blocks)}


def _write(blocks: dict[str, str]) -> None:
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text("\n".join(f"{_HEAD}{n}\n{blocks[n]}\n" for n in sorted(blocks)), encoding="utf-8")
