# SPDX-License-Identifier: Apache-2.0
"""Arms without topics for tests of run loops: started, and ended when nobody has them any more."""

from __future__ import annotations

from collections.abc import Mapping

from mt_nodes.engine.arm import start
from mt_nodes.engine.callable_arm import CallableArm
from mt_nodes.stacks.stack import Stack


def started_arm(name: str, stack: Stack, topics: Mapping[str, str] | frozenset[str]) -> CallableArm:
    """Make an arm whose callable is ready."""
    arm = CallableArm(name, stack, topics)
    start(arm)
    return arm
