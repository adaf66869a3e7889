# SPDX-License-Identifier: Apache-2.0
"""Options of the command line: of every command, of several verbs, and made from the fields of a request."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib
import json
import os
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import Param, describe, spec_of

T = TypeVar("T")
Declare = Callable[[argparse.ArgumentParser], None]
#: verb -> module in mt_nodes.cli, and what the verb does; the module has ``add_<verb>_arguments`` and ``run_<verb>``
Verbs = Mapping[str, tuple[str, str]]
#: Python reads no numbers of more than 4,300 digits, and nobody means one of a hundred.
_MAX_DIGITS = 100
#: Options that are not called as their field is: given once for each of several values, or without the unit.
_OPTIONS = {
    **{
        name: f"--{name[:-1]}"
        for name in (
            *("faults", "topics", "facts", "stacks", "regions", "models", "readers", "judges", "detectors", "edits"),
        )
    },
    **{"models_file": "--models", "stack_settings": "--set", "parameters": "--set"},
    **{"push_mps2": "--push", "cruise_mps": "--cruise"},
}
#: Fields whose values are typed in one word, with commas between them.
_COMMA_SEPARATED = {"relations": "WORD,…", "principles": "ID,…"} | dict.fromkeys(
    ("regions", "methods", "over", "operators"), "NAME,…"
)
_METAVARS = {
    **{"bags": "BAG", "scenarios": "SCENARIO", "topics": "ROLE=TOPIC", "confirm": "K/N", "driver": "WEIGHTS"},
    **dict.fromkeys(("cases", "simulator_settings", "transforms", "qos", "waivers", "models_file", "plan"), "FILE"),
    **dict.fromkeys(("faults", "stacks", "models", "readers", "judges", "scene_model", "check_model", "embed"), "NAME"),
    **{"detectors": "STACK", "edits": "RELATION", "edit_model": "DIR", "least_agreement": "SHARE"},
    **{"minutes": "M", "push_mps2": "MPS2", "cruise_mps": "MPS"},
}


def add_common(parser: argparse.ArgumentParser) -> None:
    """Declare what every command takes."""
    parser.add_argument(
        "--plugins", type=Path, action="append", default=[], metavar="DIR", help="load plugins from DIR"
    )
    parser.add_argument(
        "--trust", action="store_true", help="execute the code that results which you have not written here name"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="print more")


def add_verbs(parser: argparse.ArgumentParser, verbs: Verbs, metavar: str) -> None:
    """Declare the command lines of all verbs, with the example and the usage of each in the help of the command."""
    names = parser.add_subparsers(dest="verb", required=True, metavar=metavar)
    examples, usages = [], []
    for verb, (_, summary) in verbs.items():
        sub = names.add_parser(verb, help=summary, description=f"{summary}.")
        add_common(sub)
        _function(verbs, verb, "add_{}_arguments")(sub)
        examples.append(str(sub.epilog))
        usages.append(sub.format_usage())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join((*examples, "", *usages))


def run_verb(args: argparse.Namespace, verbs: Verbs) -> int:
    """Carry out the verb that was typed and return its exit code."""
    return int(_function(verbs, args.verb, "run_{}")(args))


def _function(verbs: Verbs, verb: str, name: str) -> Callable[[Any], Any]:
    module = importlib.import_module(f"mt_nodes.cli.{verbs[verb][0]}")
    return typing.cast("Callable[[Any], Any]", getattr(module, name.format(verb.replace("-", "_"))))


def help_of(cls: type) -> dict[str, str]:
    """Return the help text of each field of a dataclass."""
    return {field.name: spec_of(field).help for field in dataclasses.fields(cls)}


def add_fields(parser: argparse.ArgumentParser, defaults: Any, *names: str, **changes: Mapping[str, Any]) -> None:
    """Declare an option, or an argument for ``bags`` and ``scenarios``, for each of these fields of a request.

    ``defaults``: a request, whose values are the defaults. changes: field -> what ``add_argument`` takes instead.
    """
    hints = typing.get_type_hints(type(defaults))
    specs = {field.name: spec_of(field) for field in dataclasses.fields(defaults)}
    for name in names:
        default = getattr(defaults, name)
        declared = {"help": specs[name].help, **_declaration(name, hints[name], specs[name], default)}
        declared |= changes.get(name, {})
        shown = _shown(declared.get("default", default))
        if shown and "(default" not in declared["help"]:
            declared["help"] += f" (default {shown})"
        if name in ("bags", "scenarios"):
            parser.add_argument(name, **{"nargs": "*", **declared})
        else:
            parser.add_argument(_OPTIONS.get(name, f"--{name.replace('_', '-')}"), dest=name, **declared)


def _declaration(name: str, hint: Any, spec: Param, default: Any) -> dict[str, Any]:
    """Return what ``add_argument`` takes for a field, but for its help."""
    types = get_args(hint) if type(None) in get_args(hint) else (hint,)
    metavar = {"metavar": _METAVARS[name]} if name in _METAVARS and int not in types else {}
    if name in ("bags", "scenarios"):
        return metavar
    if bool in types:
        return {"action": "store_true"}
    if name in _COMMA_SEPARATED:
        return {"type": comma_separated, "default": default, "metavar": _COMMA_SEPARATED[name]}
    if get_origin(hint) in (tuple, Mapping):
        return {"action": "append", "default": [], "metavar": "NAME=VALUE", **metavar}
    if int in types:
        return {"type": at_least_one if (spec.low or 0) >= 1 else whole_number, "default": default, "metavar": "N"}
    if float in types:
        return {"type": float, "default": default, "metavar": "X", **metavar}
    return {"default": default, **metavar}


def _shown(default: Any) -> str:
    if default is None or isinstance(default, bool) or default in ("", (), [], {}):
        return ""
    return (", ".join(default) if isinstance(default, tuple) else str(default)).replace("%", "%%")


def add_results(
    parser: argparse.ArgumentParser, resumes: str = "", prints: str = "summary.json", *, table: str
) -> None:
    """Declare ``--out``, ``--resume`` and ``--json``.

    ``resumes``: what can be resumed; empty: nothing. ``prints``: file that ``--json`` prints in place of ``table``.
    """
    parser.add_argument("--out", metavar="DIR", help="results directory (default mt_results/<time>)")
    if resumes:
        about = f"go on with the interrupted {resumes} in DIR; takes no other option but --json"
        parser.add_argument("--resume", type=Path, metavar="DIR", help=about)
    parser.add_argument("--json", action="store_true", help=f"print {prints} instead of {table}")


def request_of(cls: type[T], args: argparse.Namespace, **values: Any) -> T:
    """Return a request of the options that have the names of its fields, and of these values."""
    names = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    typed = {name: value for name, value in vars(args).items() if name in names}
    typed |= {name: tuple(value) for name, value in typed.items() if isinstance(value, list)}
    return cls(**{**typed, "plugins": tuple(str(p.resolve()) for p in args.plugins), **values})


def add_params(parser: argparse.ArgumentParser, recipe: type, **defaults: str) -> None:
    """Declare an option for each parameter of a dataclass; an option that is not given stays None.

    A resumed training so knows what was given.
    ``defaults``: what the help says in place of a parameter's own default.
    """
    for row in describe(recipe):
        add_param(parser, row, defaults.get(row["name"], row["default"]))


def params_given(recipe: type, args: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters that were given."""
    values = {row["name"]: getattr(args, row["name"]) for row in describe(recipe)}
    return {name: value for name, value in values.items() if value is not None}


def add_param(parser: argparse.ArgumentParser, row: Mapping[str, Any], shown: Any) -> None:
    """Declare the option of a parameter, a row of :func:`~mt_nodes.base.params.describe`; ``shown`` is its default."""
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


def other_options(args: argparse.Namespace, declare: Declare, *allowed: str) -> list[str]:
    """Return the options and arguments that were given beside these, as they are typed.

    ``args``: what was typed. ``declare``: declares the command line.
    """
    parser = argparse.ArgumentParser()
    declare(parser)
    defaults = vars(parser.parse_args([]))
    actions = [action for action in parser._actions if action.dest in defaults and action.dest not in allowed]
    given = [action for action in actions if getattr(args, action.dest) != defaults[action.dest]]
    return [action.option_strings[-1] if action.option_strings else str(action.metavar) for action in given]


def resumed_directory(args: argparse.Namespace, declare: Declare) -> Path:
    """Return the directory that ``--resume`` names, having gone to where its run was started.

    A resumed run is the run that it was: its options are in its directory.
    Raises UsageError: more than ``--resume`` was given.
    """
    if more := other_options(args, declare, "resume", "json"):
        text = f"--resume {args.resume}: got {', '.join(more)}, too; the run goes on as {args.resume}/run.json says"
        raise UsageError(text)
    out: Path = args.resume.resolve()
    enter_start_directory(out)
    return out


def enter_start_directory(out: Path) -> None:
    """Go to the directory in which a run was started: paths in its request are relative to it."""
    from mt_nodes.base.errors import InfrastructureError
    from mt_nodes.base.jsonl import read_result

    with contextlib.suppress(OSError, InfrastructureError, KeyError):  # reported when the run is loaded
        os.chdir(read_result(out / "run.json")["directory"])


def settings(given: list[str], where: str = "--set") -> dict[str, Any]:
    """Read ``NAME=VALUE`` words of an option, the values as YAML. Raises UsageError: a word has another form."""
    from mt_nodes.base.yaml_files import parse

    settings: dict[str, Any] = {}
    for word in given:
        name, separator, value = word.partition("=")
        if not (separator and name):
            raise UsageError(f"{where}: got '{word}', expected PARAMETER=VALUE such as points=100")
        settings[name] = parse(value, f"{where} {name}: '{value:.80}'")
    return settings


def comma_separated(text: str) -> tuple[str, ...]:
    """Read names with commas between them, for argparse."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def at_least_one(text: str) -> int:
    """Read a whole number of at least 1, for argparse."""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < _MAX_DIGITS else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"got '{text:.30}', expected a whole number of at least 1")
    return number


def whole_number(text: str) -> int:
    """Read a whole number, for argparse."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < _MAX_DIGITS):
        raise argparse.ArgumentTypeError(f"got '{text:.30}', expected a whole number")
    return int(text)


def real_number(expected: str, fits: Callable[[float], bool]) -> Callable[[str], float]:
    """Return what reads a number, for argparse; ``expected`` says which ones fit."""

    def read(text: str) -> float:
        with contextlib.suppress(ValueError):
            if fits(value := float(text)):
                return value
        raise argparse.ArgumentTypeError(f"got '{text:.30}', expected {expected}")

    return read


share = real_number("a share from 0 to 1", lambda value: 0.0 <= value <= 1.0)


def put_out(as_json: bool, plain: Any, show: Callable[[], None]) -> None:
    """Print a result: plain data as JSON, for programs, or what ``show`` prints of it, for people."""
    if as_json:
        print(json.dumps(plain, indent=2))
    else:
        show()
