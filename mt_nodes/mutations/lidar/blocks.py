# SPDX-License-Identifier: Apache-2.0
"""A cloud's returns in parts: work in double precision takes little memory and stays in the processor's cache."""

from __future__ import annotations

from collections.abc import Iterator

from mt_nodes.frames import Cloud
from mt_nodes.mutations.lidar.rays import At, returns

_SIZE = 8192


def blocks(cloud: Cloud) -> Iterator[At]:
    """Yield the returns of a cloud, some thousands at a time: slices when every point is one, else row numbers (n,).

    Raises:
        NotApplicable: no point is a return.
    """
    rows = returns(cloud)
    whole = len(rows) == len(cloud)
    for start in range(0, len(rows), _SIZE):
        part = slice(start, start + _SIZE)
        yield part if whole else rows[part]
