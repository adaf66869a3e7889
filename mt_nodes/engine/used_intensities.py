# SPDX-License-Identifier: Apache-2.0
"""What the intensities of LiDARs were taken for, where a change used them (``used_intensities.json``)."""

from __future__ import annotations

from pathlib import Path

from mt_nodes.base.jsonl import read_result, write_result
from mt_nodes.data.messages import Bundle

FILE = "used_intensities.json"


class UsedIntensities:
    """Keeps what changes took intensities for, as soon as the first one uses those of a topic.

    A file of its own, because a run that is resumed does not make again what it has judged, and because the process
    that prints the outcome need not be the one that makes the changes.
    """

    def __init__(self, directory: Path) -> None:
        """Go on with what the results directory has. Raises InfrastructureError: it is damaged."""
        self._directory, self._known = directory, read_used_intensities(directory)

    def note(self, bundle: Bundle) -> None:
        """Take in the topics of a bundle whose intensities were used so far; the first episode decides the words."""
        known = bundle.used_intensities | self._known
        if known != self._known:
            self._known = known
            write_result(self._directory / FILE, dict(sorted(known.items())))


def read_used_intensities(directory: Path) -> dict[str, str]:
    """Return LiDAR topic -> what its intensities were taken for; nothing where no change used any.

    Raises InfrastructureError: the file is damaged.
    """
    path = directory / FILE
    if not path.is_file():
        return {}
    return read_result(path)
