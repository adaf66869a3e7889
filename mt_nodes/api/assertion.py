# SPDX-License-Identifier: Apache-2.0
"""``mt_nodes.assert_holds``: a replay as an assertion, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mt_nodes.api.arguments_check import AnyPath
from mt_nodes.api.replays import AnyStack, replay
from mt_nodes.api.result import Result
from mt_nodes.base.errors import MtError


def assert_holds(
    bag: AnyPath | Sequence[AnyPath], stack: AnyStack, relation: AnyPath | Sequence[AnyPath], **options: Any
) -> Result:
    """Replay bags into a stack, and return the result if every relation is PASS.

    Args:
        bag, stack, relation, options: as of :func:`~mt_nodes.api.replays.replay`; ``relation`` may be several.

    Raises:
        AssertionError: a relation is not PASS, which INCONCLUSIVE and UNSTABLE are not, either; the text says what was
            lost where, which file has the picture, and what to type to reproduce it.
        MtError: nothing was judged, or the stack died.
    """
    __tracebackhide__ = True  # pytest shows the caller
    if not isinstance(relation, str) and isinstance(relation, Sequence) and not relation:
        raise ValueError("assert_holds: got no relation, expected the name of one, or several")
    try:
        result = replay(bag, stack, relation, **options)
    except MtError as error:  # a known error is its text: what lies between it and the test is nobody's business
        raise error.with_traceback(None) from None
    result.assert_holds()
    return result
