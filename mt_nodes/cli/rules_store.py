# SPDX-License-Identifier: Apache-2.0
"""What the verbs of ``mt rules`` share: which store, which words."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mt_nodes.rules.nearest_texts import Indexer
    from mt_nodes.rules.ontology import Ontology
    from mt_nodes.rules.rule_store import Store


def add_store(parser: argparse.ArgumentParser, otherwise: str = "", *, writes: bool = False) -> None:
    """Declare ``--store``, ``--ontology`` and, for those who write, ``--wait``.

    Args:
        otherwise: what happens without a store; empty: it is required.
    """
    help_ = f"SQLite file with relations ({otherwise})" if otherwise else "SQLite file with relations; made if need be"
    parser.add_argument("--store", type=Path, metavar="FILE", required=not otherwise, help=help_)
    parser.add_argument(
        "--ontology", type=Path, action="append", default=[], metavar="FILE", help="YAML file with words of your own"
    )
    if writes:
        wait = "seconds to wait for others who write the store (default %(default)s)"
        parser.add_argument("--wait", type=float, default=10.0, metavar="S", help=wait)


def ontology_of(args: argparse.Namespace) -> Ontology:
    """Return the words that relations may have.

    Raises:
        UsageError: a file of the user's own cannot be used.
    """
    from mt_nodes.rules.ontology import load_ontology

    return load_ontology(*args.ontology)


@contextmanager
def opened(args: argparse.Namespace, indexer: Indexer | None = None) -> Iterator[Store]:
    """Yield the store that is named, to be read, or that which ships.

    Args:
        indexer: what compares meanings; None: what needs no service.

    Raises:
        MtError: it cannot be opened.
    """
    from mt_nodes.rules.nearest_texts import Index
    from mt_nodes.rules.rule_store import Store
    from mt_nodes.rules.shipped_rules import scratch_store, shipped_entries

    ontology = ontology_of(args)
    if args.store is None:
        with scratch_store(shipped_entries(), ontology, indexer or Index) as made:
            yield made
    else:
        with Store(args.store, write=False, ontology=ontology, indexer=indexer or Index) as found:
            yield found


def named(args: argparse.Namespace) -> str:
    """Return the name of the store for people."""
    return f"store {args.store}" if args.store else "the shipped store"
