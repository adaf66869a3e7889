# SPDX-License-Identifier: Apache-2.0
"""Options of a command line that are the parameters of a recipe, one each."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from mt_nodes.base.params import describe


def add_options(parser: argparse.ArgumentParser, recipe: type, **defaults: str) -> None:
    """Declare an option for each parameter; what is not given stays None, so that a resumed training knows.

    Args:
        defaults: what the help says in place of a parameter's own default.
    """
    for row in describe(recipe):
        _add_option(parser, row, defaults.get(row["name"], row["default"]))


def given_of(recipe: type, args: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters that were given."""
    values = {row["name"]: getattr(args, row["name"]) for row in describe(recipe)}
    return {name: value for name, value in values.items() if value is not None}


def _add_option(parser: argparse.ArgumentParser, row: Mapping[str, Any], shown: Any) -> None:
    option = f"--{row['name'].replace('_', '-')}"
    if row["type"] == "bool":
        parser.add_argument(option, action="store_true", default=None, help=row["help"])
        return
    unit = f", {row['unit']}" if row["unit"] else ""
    choices = f": {' or '.join(row['choices'])}" if row["choices"] else ""
    kind = {"int": int, "float": float}.get(row["type"], str)
    metavar = {"int": "N", "float": "X"}.get(row["type"], "NAME")
    about = f"{row['help']}{choices}{unit} (default {shown})".replace("%", "%%")
    parser.add_argument(option, type=kind, default=None, metavar=metavar, help=about)
