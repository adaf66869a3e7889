# SPDX-License-Identifier: Apache-2.0
"""Resolves the names of a script, and evaluates its statements."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatchmethod
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.yaml_files import read_text
from mt_nodes.world.scenarios.language import kinds, slots, tree
from mt_nodes.world.scenarios.language.claims import PendingClaim
from mt_nodes.world.scenarios.language.evaluator import Evaluator
from mt_nodes.world.scenarios.language.parsing import DEEPEST, statements_of
from mt_nodes.world.scenarios.language.problems import Findings, Problem, Span, ValueRefusal
from mt_nodes.world.scenarios.language.script_draws import Draws
from mt_nodes.world.scenarios.language.slot_binding import Model
from mt_nodes.world.scenarios.language.values import Item, Plot, TraceName, Word, described, named
from mt_nodes.world.scenarios.language.words import WORDS

EGO_SPEED = "ego.speed"
"""The parameter that every script has: the ego's speed at the start, in m/s."""
_TRACE = "Trace"


@dataclass
class _Known:
    """A name: its value (None if its definition has a problem), the place of its definition, and whether it is used."""

    value: Any
    at: Span
    used: bool = False


@dataclass
class Resolver:
    """The names of a script, and those of its imports.

    ``path``: of the script, to find imports; None for a text, which has none. ``given``: parameters from outside, as
    text. ``importing``: scripts being read, outermost first, to find circles. ``imported``: scripts read. ``plots``:
    the scenarios. ``parameters``: where each is declared. ``claims``: of the script itself, about its scenarios.
    """

    name: str
    path: Path | None
    findings: Findings
    given: Mapping[str, str]
    seed: int
    importing: tuple[Path, ...] = ()
    imported: dict[Path, Resolver] = field(default_factory=dict)
    plots: list[Plot] = field(default_factory=list)
    parameters: dict[str, Span] = field(default_factory=dict)
    claims: list[PendingClaim] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._names: dict[str, _Known] = {}
        self._draws = Draws(self.seed, Path(self.name).stem)
        self._values = Evaluator(self.findings, self._draws, self._look_up, self._model)
        self._defining = ""

    def run(self, statements: Sequence[tree.Node]) -> None:
        """Process the statements; problems and repairs go to the findings."""
        for statement in statements:
            try:
                self._do(statement)
            except ValueRefusal as refusal:
                self.findings.refused(refusal)

    def warn_of_unused(self) -> None:
        """Warn of each unused name of the script itself."""
        for name, known in self._names.items():
            if not known.used and known.at.file == self.name and not isinstance(known.value, Plot | None):
                self.findings.warnings.append(Problem(known.at, f"'{name}', which nothing uses", hint="is it a slip?"))

    @singledispatchmethod
    def _do(self, statement: tree.Node) -> None:
        raise TypeError(statement)

    @_do.register
    def _(self, statement: tree.Import) -> None:
        if self.path is None:
            raise ValueRefusal(
                Problem(statement.at, "an import in a text", "it in a file", "imports are found beside it")
            )
        if not statement.path.isprintable():
            raise ValueRefusal(Problem(statement.at, f"an import of {statement.path!r}", "the name of a file"))
        path = (self.path.parent / statement.path).resolve()
        circle = (*self.importing, self.path.resolve())
        if path in circle or len(circle) > DEEPEST:
            raise ValueRefusal(Problem(statement.at, f"an import of '{statement.path}' in a circle", "another script"))
        if path not in self.imported:
            self.imported[path] = self._imported(statement, path, circle)
        inner = self.imported[path]
        for name, known in inner._names.items():
            self._define(name, known.value, known.at, used=True)
        self.parameters |= inner.parameters
        for problem in inner.findings.problems:
            self.findings.refused(ValueRefusal(problem))
        self.findings.warnings.extend(inner.findings.warnings)

    def _imported(self, statement: tree.Import, path: Path, circle: tuple[Path, ...]) -> Resolver:
        try:
            text = read_text(path)
        except UsageError as error:
            why = str(error).removeprefix(f"{path}: ")
            near = [other.name for other in path.parent.glob("*.scenario") if other != self.path]
            got = f"an import of '{statement.path}', which {why}"
            raise ValueRefusal(
                Problem(statement.at, got, hint=suggest(path.name, near, "is it beside this script?"))
            ) from error
        findings, name = Findings(self.findings.strict), os.path.relpath(path, circle[0].parent)
        inner = Resolver(name, path, findings, self.given, self.seed, circle, self.imported)
        inner.run(statements_of(text, name, findings))
        return inner

    @_do.register
    def _(self, statement: tree.Assignment) -> None:
        if statement.type == _TRACE or (isinstance(statement.value, tree.Call) and statement.value.name == "EXE"):
            self._trace(statement)
        else:
            self._assign(statement.name, statement.value, statement.at, statement.type)

    @_do.register
    def _(self, statement: tree.Parameter) -> None:
        self.parameters[statement.name] = statement.at
        value = statement.value
        if statement.name in self.given:
            value = self._given(statement.name, statement.at)
        self._assign(statement.name, value, statement.at, "")

    @_do.register
    def _(self, statement: tree.Broken) -> None:
        self._define(statement.name, None, statement.at)

    @_do.register
    def _(self, statement: tree.Definition) -> None:
        self._define(statement.name, statement, statement.at)

    @_do.register
    def _(self, statement: tree.Claim) -> None:
        trace = self._look_up(tree.Name(statement.at, statement.trace))
        if not isinstance(trace, TraceName):
            raise slots.refused(Item(trace, statement.at), "a trace before '|='")
        if trace.scenario not in {plot.name for plot in self.plots}:
            got = f"a claim about '{trace.scenario}', which another script creates"
            raise ValueRefusal(Problem(statement.at, got, "a scenario of this script: only those are run"))
        self.claims.append(PendingClaim(statement, trace.scenario, self._look_up))

    def _trace(self, statement: tree.Assignment) -> None:
        """Process ``Trace t = EXE(scenario);``: the trace of a run of the scenario."""
        value = statement.value
        if not isinstance(value, tree.Call) or value.name != "EXE" or len(value.items) != 1:
            raise ValueRefusal(Problem(value.at, "another value of a Trace", "EXE(scenario)"))
        self._define(statement.name, None, statement.at)
        plot = kinds.KINDS["Scenario"].make(self._values.item(value.items[0]))
        self._define(statement.name, TraceName(plot.name), statement.at, used=True)

    def _given(self, name: str, at: Span) -> tree.Node:
        """Return the outside value of a parameter, or a text without its quotes."""
        findings = Findings(strict=True)
        where = f"parameter {name}"
        statements = statements_of(f"{name} = {self.given[name]};", where, findings)
        if not findings.problems and len(statements) == 1 and isinstance(statements[0], tree.Assignment):
            value = statements[0].value
            if not isinstance(value, tree.Name) or value.name in self._names or value.name in WORDS:
                return value
        return tree.Text(at, self.given[name])

    def _assign(self, name: str, value: tree.Node, at: Span, demanded: str) -> None:
        self._draws.begin(name)
        self._defining = name
        try:
            data = named(self._values.evaluate(value), name)
            if demanded:
                data = self._demanded(demanded, Item(data, value.at), at)
        except ValueRefusal:
            self._define(name, None, at)
            raise
        if isinstance(data, Word) and data.unknown:
            self._define(name, None, at)
            raise slots.refused(Item(data, value.at), "a value")
        self._define(name, data, at)
        if isinstance(data, Plot):
            self.plots.append(data)

    def _demanded(self, demanded: str, item: Item, at: Span) -> Any:
        if demanded not in kinds.KINDS:
            raise ValueRefusal(Problem(at, f"the type '{demanded}'", "a type", suggest(demanded, kinds.KINDS)))
        try:
            return kinds.KINDS[demanded].make(item)
        except ValueRefusal as refusal:
            about = kinds.KINDS[demanded].about.replace("`", "'")
            raise ValueRefusal(Problem(item.at, described(item.data), f"{demanded}: {about}")) from refusal

    def _define(self, name: str, value: Any, at: Span, used: bool = False) -> None:
        earlier = self._names.get(name)
        if earlier and earlier.at != at:
            where = f"line {earlier.at.line}" if earlier.at.file == at.file else f"{earlier.at.file}:{earlier.at.line}"
            self.findings.refused(
                ValueRefusal(Problem(at, f"'{name}' a second time", "a new name", f"first in {where}"))
            )
        self._names[name] = _Known(value, at, used)

    def _look_up(self, node: tree.Name) -> Any:
        known = self._names.get(node.name)
        if known is None:
            if node.name == "pi":
                return math.pi
            if node.name in WORDS:
                return Word(node.name)
            return Word(node.name, suggest(node.name, {*self._names, *WORDS}, "names are defined before they are used"))
        known.used = True
        if known.value is None:
            raise ValueRefusal  # its definition has been told to be wrong
        return known.value

    def _model(self) -> Model | None:
        """Return the type implied by a name like that of the current definition: ``ped1_model`` for ``ped1``."""
        name = f"{self._defining}_model"
        known = self._names.get(name)
        if known is None or known.used or known.value is None:
            return None
        return Model(name, Item(known.value, known.at), lambda: setattr(known, "used", True))
