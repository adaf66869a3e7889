# SPDX-License-Identifier: Apache-2.0
"""What the lines of journal, ledger and scores hold, by their type; lines of another shape are refused when read."""

from __future__ import annotations

from mt_nodes.base.file_shape import NUMBER, TEXT_OR_NULL, Shape
from mt_nodes.engine.summary.claim_sums import TYPE as CLAIM

_NUMBER_OR_NULL = (*NUMBER, type(None))
#: What the lines of a journal hold, by their type.
JOURNAL: dict[str, Shape] = {
    "condition": {"relations?": [str]},
    "verdict": {
        **{"pair": str, "relation": str, "stamp_ns": int, "outcome": str, "reason?": str, "unit?": str},
        **dict.fromkeys(("measured?", "bound?", "margin?"), _NUMBER_OR_NULL),
        **{"lost?": int, "gained?": int, "detail?": {}},
    },
    CLAIM: {
        **dict.fromkeys(("claim", "formula", "verdict", "reason"), str),
        **{"episode": int, "margin?": NUMBER, "at_s?": NUMBER},
    },
    "death": {"reason": str, "pairs": [str]},
}
#: What the lines of a ledger hold, by their type.
_FOLLOWUP: Shape = {
    **{"mutations": [{"name": str, "params": {}}], "draw": [{}], "arrays": TEXT_OR_NULL, "effects": {}},
    **{"stamps": [{}], "sha256": str},
}
LEDGER: dict[str, Shape] = {
    "followup": {"pair": str, "relation": str, **_FOLLOWUP, "baseline?": _FOLLOWUP},
    "episode": {"pair": str, "relation": str, "draw": [{}], "arrays": TEXT_OR_NULL, "sha256": str},
}
#: What the lines of the scores hold.
_COUNTS: Shape = {"*": {"*": int}}
SCORES: dict[str, Shape] = {
    "scores": {
        **{"bundle": [int, int], "thresholds": {"*": [NUMBER, NUMBER]}, "hundredths": _COUNTS, "classes": _COUNTS},
        "doubts?": [str],
    }
}
