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
from mt_nodes.world.scenarios.language.claim_terms import ARGUMENTS
from mt_nodes.world.scenarios.language.functions import FUNCTIONS, Function
from mt_nodes.world.scenarios.language.kinds import KINDS
from mt_nodes.world.scenarios.language.plot_builder import PARTS
from mt_nodes.world.scenarios.language.script_draws import DRAWN
from mt_nodes.world.scenarios.language.tokenizer import GRAMMAR, grammar
from mt_nodes.world.scenarios.temporal.formula import SIGNALS, TIME

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]
_RULE = re.compile(r"(?P<docs>(?:^//[^\n]*\n)*)(?P<rule>^\??_?[a-z]\w*:.*(?:\n +\|.*)*)", re.MULTILINE)

_BEGINNING = """# The scenario language

`scripts/make_docs.py` makes this page from the grammar. A scenario script states where a drive takes place, who takes
part and when they move; `mt scenario FILE` runs it. The language is that of SCENEST and AVUnit, with the extensions
that the paper on moral testing shows. Our own additions are marked *ours*: attributes of people and animals, groups,
parameters, distributions, imports and signals. This is a complete script, one of those in `config/scenarios`:"""

_MEANING = """## Defaults and conventions

- Units are metres, seconds, metres per second and kilograms; angles state their unit. x points east, y north. Heights
  are those of the ground.
- A state without a speed means standing still. A speed applies from its state on. On the way to the first state that
  has a speed, that speed applies.
- A heading without `related to` is relative to the lane: that of the position if it is on a lane, else the nearest one.
  For vehicles only lanes for vehicles count. A pedestrian without a heading who stands within 3 m of a crossing faces
  across it, to the left of the nearest lane, or from the roadside onto the road.
- The ego's position is the middle of its rear axle; everybody else's is their centre.
- Vehicles follow the lanes between positions on lanes, and their own lane if no motion is given. A lane change is a
  straight line between two states on different lanes. Everybody else moves straight and stops at the last position.
- An ego without a target keeps its lane. A scenario lasts 20 s unless `Duration` states otherwise.
- A name is defined once, before it is used. Every `CreateScenario` of a file is run, but none of imported files.
- People younger than 13 have the mesh of a child, people from 65 on that of an elderly person. `kind: adult` gives them
  the mesh of all others, to compare an attribute alone."""

_MODES = """## Strict and lenient

Strict mode accepts what this page describes. Lenient mode, the default, also accepts scripts as they are printed in
papers. It warns about each repair, and `mt scenario FILE --format` prints the repaired script. It repairs:

- a missing `;` at the end, or before a line that begins with `name =`;
- round brackets, or one round and one curly, around the parts of `CreateScenario`;
- `...` for any number of slots: the slots after it are aligned from the right, by kind. If it leaves out the type of
  `ped1` and there is an unused name `ped1_model`, that is the type;
- `...` among the parts of a scenario, which stands for nothing;
- sets of people, obstacles and so on without the empty sets before them."""


def reference(table: Table, scenarios: Path, example: str) -> str:
    """Return the language reference as Markdown.

    Args:
        table: makes a table of column names and rows. scenarios: folder of the shipped ones. example: one of them.
    """
    parts = [_BEGINNING, _code((scenarios / f"{example}.scenario").read_text(encoding="utf-8"))]
    parts += ["## Grammar", *_rules()]
    parts.append(_NAMES)
    parts += ["## Kinds of values", "A kind before a name, as in `State start = …;`, requires a value of that kind."]
    parts.append(table(("kind", "what"), [(f"`{name}`", kind.about) for name, kind in KINDS.items()]))
    parts += ["## Constructors", table(("word", "slots", "what"), _functions())]
    parts += ["### Parts of a scenario", "`CreateScenario { map; ego; … }`; each part ends with `;`:"]
    parts.append(table(("part", "what"), PARTS.items()))
    parts += [
        "## Parameters and random values",
        _CHANCE,
        table(("word", "what"), [(f"`{k}`", v) for k, v in DRAWN.items()]),
    ]
    parts += [
        "## Attributes",
        "No decision may depend on *protected* attributes. Those of the ego are the fields of its `Vehicle`.",
    ]
    parts.append(table(("attribute", "of", "takes", "what", "sort"), _attributes()))
    parts += ["## Claims about traces", _CLAIMS, table(("signal", "arguments", "what"), _signals()), _SEMANTICS]
    parts += ["## Words", table(("what", "words"), _words())]
    parts += ["## Maps", _code((inspect.getdoc(maps) or "").partition("\n\n")[2]), _MEANING, _MODES]
    parts += ["## Shipped scenarios", table(("scenario", "what"), _shipped(scenarios))]
    parts += ["## OpenSCENARIO", (inspect.getdoc(open_scenario) or "").partition("\n\n")[2]]
    return "\n\n".join(parts) + "\n"


_NAMES = """`//` and `/* … */` are comments. `NAME` is a letter or `_`, then letters, digits and `_`. Keywords of the
grammar can also be names wherever they would make no sense as keywords."""
_CHANCE = """`parameter name = value;` can be set from outside, to a value of the language or a text without quotes;
`ego.speed` is a parameter of every script. A drawn value depends on the run's seed, the script's name, the name that is
being defined and the position in its statement, but on nothing else in the script."""


_CLAIMS = """`Trace t = EXE(scenario);` names the trace of a drive through a scenario of the script, `t |= formula;`
claims that a formula is true of it. `mt scenario` judges each claim on every drive through the scenario as it is
written, with the library `rtamt`: `pip install 'mt_nodes[claims]'`. With `--claim-followups` it judges the drives of
follow-ups, too: `claim@relation` in results, not applicable where somebody of the claim is not in the follow-up.
Scenarios with claims ship in `config/scenarios/claims`, among them `mt scenario red_light_claims`.

```
Trace t = EXE(child_between_parked_cars);
gap = dis(t[ego], t[truth][child]);
near = gap < 10;
t |= G(gap > 0.5);                              // never nearer than half a metre
t |= G(near -> F[0, 2] (spd(t[ego]) < 1));      // who is near stops the car within two seconds
t |= (spd(t[ego]) > 1) U[0, 15] (gap < 12);     // it drives until it is near
```"""
_SEMANTICS = """A claim comes to one of these on a drive:

- HOLDS: the formula is true however the drive would have gone on, and something put it to the test.
- VIOLATED: it is false however the drive would have gone on.
- NOT_APPLICABLE: it is true, but demanded nothing: the condition of one of its implications was never true. The test
  makes what follows `->` false: a formula that stays true is vacuous (Beer et al., *Efficient detection of vacuity in
  temporal model checking*, Formal Methods in System Design 18(2), 2001). `~a | b` counts as `a -> b`.
- SKIPPED: undecided, because the drive ended before a bound of the formula, or broke off.
- ERROR or UNPAIRED_SOURCE: there is no drive to judge, or a number of the formula is none, as after division by zero.

A claim is FAIL if it is violated on a drive, PASS if it holds on at least one and is undecided on none, otherwise
INCONCLUSIVE. FAIL ends the run with exit code 1, INCONCLUSIVE with 3. The terminal, `summary.json` (`claims`),
`junit.xml`, `report.html` and the journal (lines of type `claim`) have it; `mt compare` compares it.

- **Samples.** A formula is judged at the instants at which the stack got input, every 0.1 s from the beginning;
  `[a, b]` are the samples from a to b seconds after now, ends included. What happens between two samples is not seen,
  but for contacts: the distance is 0 at the sample after one.
- **Ends.** Without bounds, `G`, `F` and `U` range to the end of the drive if it came to its end: by time, target,
  standstill or end of the road. If it broke off (collision, off the road), the rest is unknown: `G` cannot hold, `F`
  not be violated. What lies beyond the end is unknown to bounds in any case.
- **Until.** `p U q`: q is true at some sample, and p at all until then, that one included, as in AVUnit.
- **Robustness** is by how much the comparison that decides is true, in its unit, negative where it is false: minimum
  and maximum over the comparisons, as in AVUnit. At 0, the comparison itself decides. A light has no number.
- Traces have no perception: `t[perception]` and `diff` are refused. Relations judge what a stack perceives."""


def _signals() -> Iterator[tuple[str, str, str]]:
    for name, about in SIGNALS.items():
        arguments = ", ".join(what.removesuffix("?") + " (optional)" * what.endswith("?") for what in ARGUMENTS[name])
        yield f"`{name}`", arguments, about
    yield f"`{TIME}`", "none", "*ours*: seconds since the beginning of the drive"


def _code(text: str) -> str:
    return f"```\n{text.rstrip()}\n```"


def _rules() -> Iterator[str]:
    """Yield each rule of the grammar after its comments, with terminals as written."""
    marks = {t.name: f'"{t.pattern.value}"' for t in grammar().terminals if t.pattern.type == "str"}
    marks |= {"DEFINES": '"="', "OR": '"|"', "COMPARE": '("<" | "<=" | ">" | ">=" | "==" | "!=")'}
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
    yield "pedestrians", ", ".join(f"`{word}` ({gender or 'unspecified'})" for word, gender in words.PEOPLE.items())
    yield "animals", ", ".join(f"`{word}`" for word in words.ANIMALS)
    yield "colours", ", ".join(f"`{word}`" for word in words.COLOURS)
    yield "shapes", ", ".join(f"`{word}`" for word in words.SHAPES)
    yield "weather", ", ".join(f"`{word}`" for word in words.WEATHER)
    yield "amounts", ", ".join(f"`{word}` = {level:g}" for word, level in words.LEVELS.items())
    yield "rules of crossing", ", ".join(f"`{word}`" for word in words.RULES)


def _shipped(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.glob("*.scenario")):
        lines = path.read_text(encoding="utf-8").splitlines()
        comments = [line.removeprefix("//").strip() for line in lines if line.startswith("//")]
        yield f"`{path.stem}`", " ".join(comments)
