# SPDX-License-Identifier: Apache-2.0
"""Writes the pool that ships, ``config/dilemmas/default.yaml``, from
:class:`mt_nodes.runs.moral.dilemma_generator.Ranges`.

It takes about two minutes, for each dilemma is checked to be one.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from mt_nodes.runs.moral.dilemma_generator import SORTS, Ranges, generated_pool
from mt_nodes.runs.moral.pool import as_plain

POOL = Path(__file__).resolve().parents[1] / "config" / "dilemmas" / "default.yaml"


def main() -> None:
    """Write the file."""
    ranges = Ranges()
    rows = yaml.safe_dump(as_plain(generated_pool(ranges)), sort_keys=False, default_flow_style=None, width=110)
    head = (
        f"# Dilemmas about {', '.join(SORTS)}, {ranges.each} each, made by scripts/make_dilemmas.py.\n"
        "# For a pool of your own copy what you want of it to a file and change it there.\n"
    )
    POOL.write_text(head + rows, encoding="utf-8")


if __name__ == "__main__":
    main()
