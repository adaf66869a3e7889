# SPDX-License-Identifier: Apache-2.0
"""Plugins and stacks that fail at one of three inputs, each in a place of its own, and runs that use them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from bad_bags import bag, scans, typed

from mt_nodes.base import plugins as registry
from mt_nodes.engine.journal import read_journal

#: Method of the plugin that fails -> the relation whose second pair ends with it.
MUTATIONS = ("begin", "draw", "apply", "guarantee")
PLUGINS = '''
from dataclasses import dataclass
from typing import ClassVar
from mt_nodes.data.arm_series import SeriesWindow
from mt_nodes.data.effects import Effects
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.base import Check, at_most
from mt_nodes.relations.checks.sequence import SequenceCheck
from mt_nodes.relations.conditions.base import Condition
from mt_nodes.relations.mutations.base import Followup, Mutation


def fail(bundle, here):
    if here and bundle.index == 1:
        {}["no such key"]  # fails here


@dataclass(frozen=True)
class Failing(Mutation):
    """Changes nothing, and fails where it is told to."""

    sensors = ("lidar",)
    where: str = ""

    def begin(self, rng, bundle):
        if self.where == "begin":
            raise RuntimeError("no state")  # fails in begin
        return None

    def draw(self, rng, bundle, state):
        fail(bundle, self.where == "draw")
        return {}

    def apply(self, bundle, draw):
        fail(bundle, self.where == "apply")
        return None if self.where == "returns_none" and bundle.index == 1 else Followup(((0, bundle),))

    def guarantee(self, source, followup, draw):
        fail(source, self.where == "guarantee")
        return True if self.where == "returns_true" and source.index == 1 else None


@dataclass(frozen=True)
class FailingCheck(Check):
    """Holds, and fails where it is told to."""

    where: str = ""

    def judge(self, source, followup, effects, bundle):
        if self.where == "background_returns" and bundle.index == 1:
            return True
        fail(bundle, self.where == "judge")
        return at_most(0.0, 1.0, "", "")


@dataclass(frozen=True)
class FailingCondition(Condition):
    """Is met, and fails where it is told to."""

    returns: bool = False

    def unmet(self, bundle, source):
        if self.returns:
            return False if bundle.index == 1 else None
        fail(bundle, True)
        return None


@dataclass(frozen=True)
class FailingSeries(SequenceCheck):
    """Holds over an episode, and fails if it is told to."""

    fails: bool = False

    def judge_series(self, stretch):
        if self.fails:
            raise ValueError("no series")
        return at_most(0.0, 1.0, "", "")
'''
STACK = """
def detect(points, stamp_ns):
    if {when}:
        raise ValueError("no idea")  # fails here
    return [[12.0, 3.0, 0.0, 4.0, 2.0, 1.5, 0.0]]
"""
#: What is changed in a relation that holds, by its name.
RELATIONS: dict[str, dict[str, Any]] = {
    "holds": {},
    **{where: {"mutate": [{"failing": {"where": where}}]} for where in (*MUTATIONS, "returns_none", "returns_true")},
    "judge": {"check": {"failing_check": {"where": "judge"}}},
    "judge_returns": {"check": {"failing_check": {"where": "background_returns"}}},
    "unmet": {"given": ["failing_condition"]},
    "unmet_returns": {"given": [{"failing_condition": {"returns": True}}]},
    "series": {"check": {"failing_series": {"fails": True}}},
    "series_of_failing": {"check": "failing_series", "mutate": [{"failing": {"where": "apply"}}]},
    "series_that_holds": {"check": "failing_series"},
    "series_unmet": {"check": "failing_series", "given": ["failing_condition"]},
}
Lines = dict[str, dict[str, dict[str, Any]]]


def write_relations(place: Path, names: tuple[str, ...]) -> list[str]:
    base = {"kind": "expected", "because": "x", "mutate": [{"failing": {}}], "check": "failing_check"}
    files = []
    for name in names:
        files.append(place / f"{name}.yaml")
        files[-1].write_text(yaml.safe_dump({**base, "id": name, "min_decided": 1, **RELATIONS[name]}))
    return list(map(str, files))


def write_stack(place: Path, name: str, when: str, **more: Any) -> str:
    (place / f"{name}.py").write_text(STACK.format(when=when))
    path = place / f"{name}.yaml"
    path.write_text(yaml.safe_dump({"callable": f"{name}:detect", "stateless": True, "deadline_s": 20.0, **more}))
    return str(path)


def drive(place: Path, count: int = 3) -> str:
    return str(bag(place / "drive", scans(count)))


def line_of(text: str, mark: str) -> int:
    """Number of the line that bears a mark, from 1."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.endswith(mark))


@contextmanager
def plugins_as_before() -> Iterator[None]:
    """Let other runs of this process not find the plugins of this one."""
    before = list(registry._directories)
    try:
        yield
    finally:
        registry._directories[:] = before
        registry.catalogue.cache_clear()


def replay(place: Path, drive: str, stack: str, relations: list[str], *more: str) -> tuple[int, str, Lines]:
    """Run it; return the exit code, what was printed, and the verdict lines by relation and pair."""
    plugins, out = place / "plugins", place / "out"
    plugins.mkdir(exist_ok=True)
    (plugins / "mine.py").write_text(PLUGINS)
    words = ("--stack", stack, "--relations", ",".join(relations), "--out", out, "--plugins", plugins, *more)
    with plugins_as_before():
        code, said, error = typed("replay", drive, *words)
    lines: Lines = defaultdict(dict)
    for line in read_journal(out / "result.jsonl"):
        if line["type"] == "verdict":
            lines[line["relation"]][line["pair"]] = line
    return code, said + error, lines
