# SPDX-License-Identifier: Apache-2.0
"""What `mt shrink` came to, in one plain sentence: ``1,000 → 389 points``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mt_nodes.base.wording import counted
from mt_nodes.engine.summary.headline import INCONCLUSIVE, Headline

#: Its result, in the results directory.
FILE = "shrunk.json"
#: What it is called: the pair fails still, and nothing is said of any relation.
SHRUNK = "SHRUNK"
_COUNT = re.compile(r"[\d,]+")


def shrunk_headline(shrunk: Mapping[str, Any]) -> Headline:
    """Return the result of a shrinking in plain words, from its ``shrunk.json``."""
    notes = " ".join(f"{note[:1].upper()}{note[1:]}." for note in shrunk.get("notes", ()))
    if shrunk["exit_code"] != 0:
        first = shrunk.get("first") or {"failed": 0, "plays": 0}
        sentence = f"Nothing was reduced: the pair failed in {first['failed']} of {counted(first['plays'], 'replay')}."
        return Headline(INCONCLUSIVE, sentence, notes)
    ended = shrunk["before_after"].items()
    changed = [_change(name, **ends) for name, ends in ended if ends["before"] != ends["after"]]
    first, tried = shrunk["first"], len(shrunk.get("steps", ()))
    fails = f"The original fails in {first['failed']} of {counted(first['plays'], 'replay')}"
    rest = f"{fails}; {counted(tried, 'smaller form')} tried. {notes}".rstrip()
    if not changed:
        return Headline(SHRUNK, "No smaller change was found that still fails.", rest)
    return Headline(SHRUNK, f"{', '.join(changed)}: the stack still fails.", rest)


def _change(name: str, before: str, after: str) -> str:
    """Return what became of a part of the change: ``1,000 → 2 points added``, ``visibility m 80 → 310``."""
    words = name.rpartition(".")[2].replace("_", " ")
    if _COUNT.fullmatch(str(before)) and _COUNT.fullmatch(str(after)):
        return f"{_grouped(before)} → {_grouped(after)} {words}"
    return f"{words} {before} → {after}"


def _grouped(count: str) -> str:
    return f"{int(count.replace(',', '')):,}"
