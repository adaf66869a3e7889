# SPDX-License-Identifier: Apache-2.0
"""What the leader of a campaign wants of those who do its items, wherever they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from mt_nodes.runs.campaign.item import CampaignItem, ItemResult


@dataclass(frozen=True)
class LostItem:
    """An item whose worker died; it goes back."""

    key: str
    why: str


class Pool(Protocol):
    """Workers; one item each at a time."""

    def submit(self, item: CampaignItem) -> None:
        """Have an item done."""

    def finished(self, timeout_s: float) -> Iterator[ItemResult | LostItem]:
        """Yield what ended; waits so long for the first at most."""

    @property
    def free(self) -> int:
        """How many more items it wants."""

    def close(self) -> None:
        """End the workers; what they are at can be gone on with."""
