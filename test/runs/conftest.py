# SPDX-License-Identifier: Apache-2.0
"""Settings of tests of whole runs in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from started_arms import reference_stacks_here


@pytest.fixture(scope="module", autouse=True)
def _stacks_here(request: pytest.FixtureRequest) -> Iterator[None]:
    """Reference stacks answer in this process, unless the module is about that of a stack (``own_process``).

    Messages to one of its own and back would be a third of what these tests take.
    """
    if request.node.get_closest_marker("own_process"):
        yield
        return
    with reference_stacks_here():
        yield
