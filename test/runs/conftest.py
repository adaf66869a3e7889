# SPDX-License-Identifier: Apache-2.0
"""Settings of tests of whole runs in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from started_arms import reference_stacks_here


@pytest.fixture(scope="module")
def stacks_here() -> Iterator[None]:
    """Reference stacks answer in this process: messages to one of their own and back are a third of short runs."""
    with reference_stacks_here():
        yield
