# SPDX-License-Identifier: Apache-2.0
"""Whether the sensors of a bundle are close enough in time to count as one instant."""

from __future__ import annotations

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Bundle

#: At 20 m/s a car moves a metre in 50 ms, more than an added object may be out of place. Drives at 10 Hz are joined
#: within half a period anyway.
SYNC_NS = 50_000_000


def refuse_out_of_sync(bundle: Bundle, bound_ns: int = SYNC_NS) -> None:
    """Refuse a bundle in which any two sensors are further apart in time than a bound.

    Clouds that serve as additional input only (``bundle.extra_clouds``) count, too.
    Raises NotApplicable: naming both topics, how far apart they are, and the bound.
    """
    skew_ns = bundle.skew_ns
    if not skew_ns:
        return
    first, last = min(skew_ns, key=skew_ns.__getitem__), max(skew_ns, key=skew_ns.__getitem__)
    apart_ns = skew_ns[last] - skew_ns[first]
    if apart_ns > bound_ns:
        raise NotApplicable(
            f"{first} and {last} of bundle {bundle.index} are {apart_ns / 1e6:.1f} ms apart, expected at most "
            f"{bound_ns / 1e6:g} ms"
        )
