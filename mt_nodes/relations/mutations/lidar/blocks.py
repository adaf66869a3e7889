# SPDX-License-Identifier: Apache-2.0
"""A cloud's returns in parts: work in double precision takes little memory and stays in the processor's cache."""

from __future__ import annotations

from collections.abc import Iterator

from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.lidar.rays import At, at_rows, pieces, returns


def blocks(cloud: Cloud) -> Iterator[At]:
    """Yield the returns of a cloud, some thousands at a time: slices when every point is one, else row numbers (n,).

    Raises:
        NotApplicable: no point is a return.
    """
    yield from pieces(at_rows(cloud, returns(cloud)), len(cloud))
