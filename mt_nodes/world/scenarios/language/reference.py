# SPDX-License-Identifier: Apache-2.0
"""Writes the language reference from the grammar and the language's tables."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from mt_nodes.world.drive import maps
from mt_nodes.world.scenarios import open_scenario
from mt_nodes.world.scenarios.language import words
from mt_nodes.world.scenarios.language.functions import FUNCTIONS, Function
from mt_nodes.world.scenarios.language.kinds import KINDS
from mt_nodes.world.scenarios.language.plot_builder import PARTS
from mt_nodes.world.scenarios.language.script_draws import DRAWN
from mt_nodes.world.scenarios.language.tokenizer import GRAMMAR, grammar

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]
_RULE = re.compile(r"(?P<docs>(?:^//[^\n]*\n)*)(?P<rule>^\??_?[a-z]\w*:.*(?:\n +\|.*)*)", re.MULTILINE)

_BEGINNING = """# The scenario language

Made by `scripts/make_docs.py` from the grammar. A script says where, who and when; `mt scenario FILE` plays it. The
language is that of SCENEST and AVUnit with what the paper on moral testing shows of it; what is marked *ours* was
added: attributes of people and animals, groups, parameters, distributions, imports, signals. This is a whole script,
one of those that are shipped in `config/scenarios`:"""

_MEANING = """## What is meant by what is not said

- Metres, seconds, metres a second, kilograms; angles have their unit. x is east, y is north; heights are the ground's.
- A state without a speed stands. A speed holds from its state on, and on the way to the first state that says one.
- A heading without `related to` counts from the lane: that of a place on a lane, else the nearest one. Vehicles look at
  lanes for vehicles only. People on foot without a heading who stand within 3 m of a crossing look across it, to the
  left of the nearest lane; from beside the road, onto it.
- The ego's position is that of the middle of its rear axle; everybody else's is that of their middle.
- Vehicles follow the lanes from one place on a lane to another, and their own lane when no motion is given. A change of
  lanes is a straight line between two states, one on each. Everybody else goes straight, and stops at their last place.
- Without a target the ego is to keep to its lanes. A scenario lasts 20 s unless `Duration` says otherwise.
- A name is defined once, before it is used. Every `CreateScenario` of a file is played, but none of imported files.
- Whoever is younger than 13 has the mesh of a child, from 65 on of an elderly person; `kind: adult` keeps the mesh that
  everybody else has, for comparisons of an attribute alone."""

_MODES = """## Strict and lenient

Strict reading takes what is described here. Lenient reading, the default, also takes what scripts in papers look like;
it warns of each repair, and `mt scenario FILE --format` prints the script with them carried out:

- a `;` that is missing before a line that begins with `name =`, or at the end;
- round brackets, or one of each sort, around the parts of `CreateScenario`;
- `...` for any number of slots: what follows it is aligned from the right, by kind. Where it leaves out the type of
  `ped1` and there is an unused name `ped1_model`, that is the type;
- `...` among the parts of a scenario: nothing more;
- sets of people, obstacles … whose empty predecessors were left out."""


def reference(table: Table, scenarios: Path, example: str) -> str:
    """Return the language reference as Markdown.

    Args:
        table: makes a table of column names and rows. scenarios: folder of the shipped ones. example: one of them.
    """
    parts = [_BEGINNING, _code((scenarios / f"{example}.scenario").read_text(encoding="utf-8"))]
    parts += ["## Grammar", *_rules()]
    parts.append(_NAMES)
    parts += ["## Kinds of values", "A kind may stand before a name, as in `State start = …;`, to demand it."]
    parts.append(table(("kind", "what"), [(f"`{name}`", kind.about) for name, kind in KINDS.items()]))
    parts += ["## Words that make things", table(("word", "slots", "what"), _functions())]
    parts += ["### Parts of a scenario", "`CreateScenario { map; ego; … }`, each part ended by `;`:"]
    parts.append(table(("part", "what"), PARTS.items()))
    parts += ["## Parameters and chance", _CHANCE, table(("word", "what"), [(f"`{k}`", v) for k, v in DRAWN.items()])]
    parts += ["## Attributes", "Of *protected* ones no decision may depend; the ego's are fields of its `Vehicle`."]
    parts.append(table(("attribute", "of", "takes", "what", "sort"), _attributes()))
    parts += ["## Words", table(("what", "words"), _words())]
    parts += ["## Maps", _code((inspect.getdoc(maps) or "").partition("\n\n")[2]), _MEANING, _MODES]
    parts += ["## Shipped scenarios", table(("scenario", "what"), _shipped(scenarios))]
    parts += ["## OpenSCENARIO", (inspect.getdoc(open_scenario) or "").partition("\n\n")[2]]
    return "\n\n".join(parts) + "\n"


_NAMES = """`//` and `/* … */` are comments. `NAME` is a letter or `_`, then letters, digits and `_`: the words of the
grammar are names, too, wherever they do not make sense as words."""
_CHANCE = """`parameter name = value;` may be given from outside, as a value of the language or a text without quotes;
`ego.speed` is a parameter of every script. What is drawn depends on the run's seed, the script's name, the name that is
being defined and the place in its statement; nothing else that is added to a script changes it."""


def _code(text: str) -> str:
    return f"```\n{text.rstrip()}\n```"


def _rules() -> Iterator[str]:
    """Yield each rule of the grammar after its comments, with terminals as written."""
    marks = {t.name: f'"{t.pattern.value}"' for t in grammar().terminals if t.pattern.type == "str"}
    text = GRAMMAR.read_text(encoding="utf-8")
    block: list[str] = []
    for match in _RULE.finditer(text):
        docs = " ".join(line.removeprefix("//").strip() for line in match["docs"].splitlines())
        rule = re.sub(r"\s+-> \w+$", "", match["rule"], flags=re.MULTILINE)
        rule = re.sub(r"\b[A-Z]+\b(?!\")", lambda word: marks.get(word[0], word[0]), rule)
        rule = re.sub(r"(?<![\w\"])[?_]+(?=[a-z])", "", rule)
        if docs and block:
            yield _code("\n".join(block))
            block = []
        if docs:
            yield docs
        block.append(rule)
    yield _code("\n".join(block))


def _functions() -> Iterator[tuple[str, str, str]]:
    spellings: dict[int, list[str]] = {}
    for name, function in FUNCTIONS.items():
        spellings.setdefault(id(function), []).append(f"`{name}`")
    by_id: dict[int, Function] = {id(function): function for function in FUNCTIONS.values()}
    for key, names in spellings.items():
        function = by_id[key]
        slots = [f"{slot.name}: {slot.kind}" + ("" if slot.needed else "?") for slot in function.slots]
        about = function.about if function.published else f"*ours*: {function.about}"
        yield ", ".join(names), ", ".join(slots) + (", …" if function.more else ""), about


def _attributes() -> Iterator[tuple[str, ...]]:
    for name, attribute in words.ATTRIBUTES.items():
        takes = attribute.takes if isinstance(attribute.takes, str) else ", ".join(attribute.takes)
        if attribute.high < float("inf"):
            takes = f"{attribute.low:g} … {attribute.high:g} {attribute.unit}".rstrip()
        yield f"`{name}`", ", ".join(attribute.of), takes, attribute.help, attribute.sort


def _words() -> Iterator[tuple[str, str]]:
    yield "vehicles", ", ".join(f"`{word}` ({kind})" for word, kind in words.VEHICLES.items())
    yield "the ego", ", ".join(f"`{word}`" for word in words.EGOS)
    yield "pedestrians", ", ".join(f"`{word}` ({gender or 'not said'})" for word, gender in words.PEOPLE.items())
    yield "animals", ", ".join(f"`{word}`" for word in words.ANIMALS)
    yield "colours", ", ".join(f"`{word}`" for word in words.COLOURS)
    yield "shapes", ", ".join(f"`{word}`" for word in words.SHAPES)
    yield "weather", ", ".join(f"`{word}`" for word in words.WEATHER)
    yield "how much of it", ", ".join(f"`{word}` = {level:g}" for word, level in words.LEVELS.items())
    yield "rules of crossing", ", ".join(f"`{word}`" for word in words.RULES)


def _shipped(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.glob("*.scenario")):
        lines = path.read_text(encoding="utf-8").splitlines()
        comments = [line.removeprefix("//").strip() for line in lines if line.startswith("//")]
        yield f"`{path.stem}`", " ".join(comments)
