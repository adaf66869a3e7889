# SPDX-License-Identifier: Apache-2.0
"""``mt rules export FILE``."""

from __future__ import annotations

import argparse
from pathlib import Path

from mt_nodes.cli.rules_store import add_store, named, opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt rules export relations.feature --store my_rules.sqlite"
    parser.add_argument("file", type=Path, metavar="FILE", help="to write: .csv as in the paper, .yaml or .feature")
    parser.add_argument("--region", default="", help="only the relations of this region")
    parser.add_argument("--origin", action="append", default=[], help="only what this read; may be given again")
    add_store(parser, "without: the store that ships")


def run(args: argparse.Namespace) -> int:
    """Write the file whole, or not at all."""
    from mt_nodes.base.errors import UsageError
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import text
    from mt_nodes.rules.store_files import write

    with opened(args) as store:
        entries = store.entries(args.region, args.origin)
    if not entries:
        raise UsageError(f"{named(args)}: got no relation to write; `mt rules list` shows regions and origins")
    write(entries, args.file)
    text(f"{counted(len(entries), 'relation')} of {named(args)} written to {args.file}")
    return 0
