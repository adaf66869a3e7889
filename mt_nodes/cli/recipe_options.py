# SPDX-License-Identifier: Apache-2.0
"""Options of a command line that are the parameters of a recipe, one each."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import describe


def add_options(parser: argparse.ArgumentParser, recipe: type, **defaults: str) -> None:
    """Declare an option for each parameter; what is not given stays None, so that a resumed training knows.

    Args:
        defaults: what the help says in place of a parameter's own default.
    """
    for row in describe(recipe):
        _add_option(parser, row, defaults.get(row["name"], row["default"]))


def add_shared_options(parser: argparse.ArgumentParser, recipes: Mapping[str, type]) -> None:
    """Declare an option for each parameter of several recipes, by the name of each; one that many have, once."""
    rows = {name: {row["name"]: row for row in describe(recipe)} for name, recipe in recipes.items()}
    for option in dict.fromkeys(option for row in rows.values() for option in row):
        having = {name: row[option] for name, row in rows.items() if option in row}
        first = next(iter(having.values()))
        defaults = {name: row["default"] for name, row in having.items()}
        alike = len(set(defaults.values())) == 1
        shown = first["default"] if alike else ", ".join(f"{name}: {value}" for name, value in defaults.items())
        only = "" if len(having) == len(recipes) else f"{', '.join(having)}: "
        _add_option(parser, {**first, "help": only + first["help"]}, shown)


def refuse_foreign(sensor: str, recipes: Mapping[str, type], args: argparse.Namespace) -> None:
    """Refuse parameters of another recipe than the one of this name.

    Raises:
        UsageError: naming the option.
    """
    own = {row["name"] for row in describe(recipes[sensor])}
    given = {name for recipe in recipes.values() for name in given_of(recipe, args)}
    for name in sorted(given - own):
        raise UsageError(f"--{name.replace('_', '-')}: got it with --sensor {sensor}, which has no such parameter")


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
