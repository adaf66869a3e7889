# SPDX-License-Identifier: Apache-2.0
"""``mt new KIND NAME``: writes a working plugin, relation or stack, and a test of it."""

from __future__ import annotations

import argparse
import importlib.util
import keyword
import os
import re
from pathlib import Path
from string import Template

from mt_nodes.base import plugins, resources
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.cli.terminal import text

#: kind -> the files that are written: template -> name of the file.
FILES = {
    **{
        kind: {f"{kind}.py.txt": "{name}.py", f"{kind}_test.py.txt": "test_{name}.py"}
        for kind in ("mutation", "check", "condition", "adapter")
    },
    "relation": {"relation.yaml.txt": "{name}.yaml", "relation_test.py.txt": "test_{name}.py"},
    "stack": {"stack.py.txt": "{name}.py", "stack.yaml.txt": "{name}.yaml", "stack_test.py.txt": "test_{name}.py"},
}
#: Kinds that are found in a directory of plugins, which holds nothing else; the others go to the working directory.
PLUGINS = ("mutation", "check", "condition", "adapter")
DIRECTORY = Path("mt_plugins")
#: Parts of a new relation that are not named.
PARTS = {
    "given": "{obstacles_within: {range_m: 40, at_least: 1}}",
    "mutation": "{noise_outside_roi: {points: 100, region: front_40m}}",
    "check": "{obstacles_kept: {region: front_40m}}",
}
#: What to type next; {where} is the directory, {plugins} the option that has it searched.
NEXT = {
    "mutation": (
        "mt show {name}{plugins}",
        "mt show {name}{plugins} --bag BAG --out {name}.png",
        "mt new relation {name}_holds --mutation {name}{plugins}",
    ),
    "check": ("mt show {name}{plugins}", "mt new relation {name}_holds --check {name}{plugins}"),
    "condition": ("mt show {name}{plugins}", "mt new relation {name}_holds --given {name}{plugins}"),
    "adapter": ("mt show {name}{plugins}", "mt replay BAG --stack STACK.yaml{plugins}"),
    "relation": ("mt replay BAG --relations {file}{plugins}",),
    "stack": ("mt replay BAG --stack {file} --limit 20", "mt replay BAG --stack {file}"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt new mutation blind_zone"
    parser.add_argument("kind", metavar="KIND", choices=tuple(FILES), help=f"one of {', '.join(FILES)}")
    parser.add_argument("name", metavar="NAME", help="its name in files, such as blind_zone")
    about = f"directory to write to (default {DIRECTORY} for a plugin, else the working directory)"
    parser.add_argument("--dir", type=Path, metavar="DIR", help=about)
    for part in PARTS:
        parser.add_argument(f"--{part}", metavar="NAME", help=f"with relation: the {_kind(part)} that it uses")


def run(args: argparse.Namespace) -> int:
    """Write the files, and print what to type next."""
    directory = args.dir or (DIRECTORY if args.kind in PLUGINS else Path())
    _check_name(args.kind, args.name)
    values = {"name": args.name, "class_name": class_name(args.name), "title": _title(args.name)}
    values |= _parts(args, directory)
    files = {directory / name.format(name=args.name): source for source, name in FILES[args.kind].items()}
    written = {path: _filled(source, values) for path, source in files.items()}
    _write(written)
    for path in written:
        text(f"wrote {path}")
    text("next:")
    for command in _next(args, directory):
        text(f"  {command}")
    return 0


def class_name(name: str) -> str:
    """``blind_zone`` -> ``BlindZone``: the reverse of :func:`~mt_nodes.base.plugins.name_of`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _kind(part: str) -> str:
    return "condition" if part == "given" else part


def _check_name(kind: str, name: str) -> None:
    """Refuse a name that cannot be that of a module and a class, or that is taken. Raises UsageError."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UsageError(f"mt new: got NAME '{name}', expected small letters, digits and _, such as blind_zone")
    if kind in PLUGINS and (back := plugins.name_of(type(class_name(name), (), {}))) != name:
        raise UsageError(f"mt new: the class {class_name(name)} would be found as '{back}', not as '{name}'; type that")
    taken = kind in PLUGINS and plugins.get(f"{kind}s", name) is not None
    if taken or (kind == "relation" and name in _relations()):
        raise UsageError(f"mt new: there is a {kind} '{name}' already; see `mt show {name}`, and choose another name")
    if kind != "relation" and importlib.util.find_spec(name) is not None:
        raise UsageError(f"mt new: there is a Python module '{name}' already, which would hide it; choose another name")


def _relations() -> tuple[str, ...]:
    from mt_nodes.relations.relation import FOLDER, LOOP_FOLDER

    return (*resources.shipped(FOLDER), *resources.shipped(LOOP_FOLDER))


def _parts(args: argparse.Namespace, directory: Path) -> dict[str, str]:
    """Return the parts of a relation, as YAML, and the directories of plugins that they come from."""
    given = {part: name for part in PARTS if (name := getattr(args, part))}
    if given and args.kind != "relation":
        raise UsageError(f"mt new {args.kind}: does not take --{next(iter(given))}, which is for `mt new relation`")
    for part, name in given.items():
        found = plugins.find(f"{_kind(part)}s", name, f"--{part}")
        if part == "mutation" and "lidar" not in getattr(found, "sensors", ()):
            raise UsageError(f"--mutation {name}: got one that changes no point clouds, for which this file would be")
    directories = ", ".join(f'HERE / "{os.path.relpath(path, directory)}"' for path in args.plugins)
    parts = {part: f"{{{given[part]}: {{}}}}" if part in given else default for part, default in PARTS.items()}
    return {**parts, "plugins": _option(args), "directories": directories}


def _option(args: argparse.Namespace) -> str:
    return "".join(f" --plugins {path}" for path in args.plugins)


def _filled(template: str, values: dict[str, str]) -> str:
    """Return a file, its imports sorted as linters want them, whatever the name of the new module."""
    source = (Path(__file__).parent / "templates" / template).read_text(encoding="utf-8")
    blocks = Template(source).substitute(values).split("\n\n")
    return "\n\n".join(_sorted_imports(block) for block in blocks)


def _sorted_imports(block: str) -> str:
    imports = re.findall(r"^(?:from|import) [^(\n]*(?:\([^)]*\))?$", block, re.MULTILINE)
    if "\n".join(imports) != block.strip("\n"):
        return block
    return "\n".join(sorted(imports, key=lambda line: (line.startswith("from"), line.split()[1])))


def _write(files: dict[Path, str]) -> None:
    """Write new files, all or none."""
    for path in files:
        if path.exists():
            raise UsageError(f"mt new: {path} exists and is not overwritten; choose another NAME or --dir")
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(content)
    except OSError as error:
        what = error.strerror or error
        raise InfrastructureError(f"mt new: cannot write {path}: {what}; choose another --dir") from error


def _next(args: argparse.Namespace, directory: Path) -> list[str]:
    option = f" --plugins {directory}" if args.kind in PLUGINS else _option(args)
    values = {"name": args.name, "file": directory / f"{args.name}.yaml", "plugins": option}
    return [f"pytest {directory / f'test_{args.name}.py'}", *(line.format(**values) for line in NEXT[args.kind])]
