# SPDX-License-Identifier: Apache-2.0
"""Scripts of a report, and the content security policy that allows these and no others."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

_TEMPLATES = Path(__file__).parent / "templates"
#: Files of the script that shows pairs, in order of dependency.
_PAIRS = ("copying.js", "unpacking.js", "cloud_view.js", "pair_views.js", "pairs.js")


class PageScript(NamedTuple):
    """A script, and its source in a content security policy."""

    text: str
    source: str


@lru_cache
def script_of(*names: str) -> PageScript:
    """Return files of the templates folder as one script."""
    text = "".join((_TEMPLATES / name).read_text(encoding="utf-8") for name in names)
    return PageScript(text, f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'")


def of_report(*, drives: bool, pairs: bool) -> list[PageScript]:
    """Return the scripts of a page that shows drives, pairs or both."""
    return [*([script_of("episode.js")] if drives else []), *([script_of(*_PAIRS)] if pairs else [])]
