# SPDX-License-Identifier: Apache-2.0
"""A campaign as its directory tells it while others work on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mt_nodes.base.jsonl import read_result
from mt_nodes.runs.campaign.campaign_store import FILE, CampaignProgress, CampaignStore

#: Held by who conducts a campaign, and touched when that begins.
LOCK = ".lock"


class WatchedCampaign:
    """What is known so far of a campaign; :meth:`look` reads on."""

    def __init__(self, directory: Path) -> None:
        """Look at the directory of a campaign. Raises UsageError: it is of another version of the package."""
        self.directory = directory
        with CampaignStore(directory / FILE, read_only=True) as store:
            self.drives, self.standing = len(store.plan().drives), store.standing()

    def look(self) -> bool:
        """Read how far it is; say whether that has changed."""
        before: CampaignProgress = self.standing
        with CampaignStore(self.directory / FILE, read_only=True) as store:
            self.standing = store.standing()
        return self.standing != before

    @property
    def finished(self) -> bool:
        """Whether it was summed up since somebody last began to conduct it."""
        try:
            return self._summary.stat().st_mtime_ns >= (self.directory / LOCK).stat().st_mtime_ns
        except FileNotFoundError:
            return False

    def summary(self) -> dict[str, Any] | None:
        """Return what it came to when it was last summed up, None where it never was."""
        return read_result(self._summary) if self._summary.exists() else None

    @property
    def _summary(self) -> Path:
        return self.directory / "summary.json"
