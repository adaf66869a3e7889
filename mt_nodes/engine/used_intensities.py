# SPDX-License-Identifier: Apache-2.0
"""What the intensities of LiDARs were taken for, where a change used them (``used_intensities.json``)."""

from __future__ import annotations

import json
from pathlib import Path

from mt_nodes.base.directories import write_whole
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.messages import Bundle

FILE = "used_intensities.json"


class UsedIntensities:
    """Keeps what changes took intensities for, as soon as the first one uses those of a topic.

    A file of its own, because a run that is resumed does not make again what it has judged, and because the process
    that prints the outcome need not be the one that makes the changes.
    """

    def __init__(self, directory: Path) -> None:
        """Go on with what the results directory has.

        Raises:
            InfrastructureError: it is damaged.
        """
        self._directory, self._known = directory, read_used_intensities(directory)

    def note(self, bundle: Bundle) -> None:
        """Take in the topics of a bundle whose intensities were used so far; the first episode decides the words."""
        known = bundle.used_intensities | self._known
        if known != self._known:
            self._known = known
            write_whole(self._directory / FILE, json.dumps(known, indent=2, sort_keys=True) + "\n")


def read_used_intensities(directory: Path) -> dict[str, str]:
    """Return LiDAR topic -> what its intensities were taken for; nothing where no change used any.

    Raises:
        InfrastructureError: the file is damaged.
    """
    path = directory / FILE
    if not path.is_file():
        return {}
    try:
        return {str(topic): str(text) for topic, text in json.loads(path.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, AttributeError) as error:
        raise InfrastructureError(
            f"{path}: {error}; expected topics and what their intensities were taken for"
        ) from error
