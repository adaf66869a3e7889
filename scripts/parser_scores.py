# SPDX-License-Identifier: Apache-2.0
"""How well rules are read without a language model: grammar, classifier, both. Prints totals only, never single rules.

    python scripts/parser_scores.py            # the table of docs/rules.md
    python scripts/parser_scores.py --write    # into docs/rules.md
    python scripts/parser_scores.py --sureness # weights of mt_nodes/rules/rule_classifier.py, and what they are worth

The classifier and both are measured on rules it learns from by cross-validation: five parts by lot, each read by what
the other four taught.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict

from mt_nodes.base import resources
from mt_nodes.rules.ontology import Ontology, load_ontology
from mt_nodes.rules.parser import Reading, read_rule
from mt_nodes.rules.rule_classifier import READINGS, Example, RuleClassifier, Triple, examples_of
from mt_nodes.rules.stats import Golden, Score, load_golden, score, words
from mt_nodes.rules.store_entry import LEAST_SURE

ROOT = Path(__file__).resolve().parents[1]
PAGE, BEGIN, END = ROOT / "docs" / "rules.md", "<!-- parser scores -->\n", "<!-- end of parser scores -->"
#: Sets with the actions of a strict reading; the others have those of the paper.
STRICT_SETS = ("ten_countries", "registers", "ten_countries_held_out")
#: Sets that the classifier learns from: each rule is read by one that has not.
LEARNED_SETS = ("ten_countries", "registers")
SETS = {
    "ten_countries": "100 of ten countries that the parser was made better with; the classifier by cross-validation",
    "registers": "445 of many registers, the grammar untouched since; the classifier by cross-validation",
    "ten_countries_held_out": "the other 100 of them, held out by lot",
    "unseen_3": "84 by another author (`unseen_3`)",
    "held_out": "68 never looked at one by one (`held_out`)",
}
FOLDS, SEED = 5, 28
_UNSURE = "classifier, however unsure"
#: How sure the classifier must be, of the readers of the table, and of the curve.
SURE, CURVE = (0.5, LEAST_SURE, 0.8), (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9)
Reads = Callable[[str, bool], Reading]


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the table into docs/rules.md")
    parser.add_argument("--sureness", action="store_true", help="fit the weights of how sure the classifier is")
    given = parser.parse_args()
    if given.sureness:
        print(sureness(load_ontology()))
        return
    text = table(load_ontology())
    if not given.write:
        print(text)
        return
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}{text}{END}{after}", encoding="utf-8")


def table(ontology: Ontology) -> str:
    """Return the table in Markdown: precision / recall by set, reader and level."""
    examples = list(examples_of(ontology))
    whole = RuleClassifier(examples, ontology)
    lines = ["| rules | read by | strict | as the paper | lenient |", "|---|---|---|---|---|"]
    for name, what in SETS.items():
        golden = load_golden(_path(name))
        for reader, got in _readings(name, golden, examples, whole, ontology).items():
            cells = [_cell(name, level, got[level == "strict"], golden, ontology) for level in LEVELS]
            lines.append(f"| {what} | {reader} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _readings(
    name: str, golden: Golden, examples: Sequence[Example], whole: RuleClassifier, ontology: Ontology
) -> dict[str, dict[bool, dict[str, Reading]]]:
    """Return the readings of a set by reader and by whether they are strict."""
    learned = _held_by_fold(golden, examples, ontology) if name in LEARNED_SETS else dict.fromkeys(golden, whole)

    def by_classifier(least_sure: float) -> Reads:
        return lambda text, strict: learned[text].read(text, "", strict, least_sure)

    readers: dict[str, Reads] = {
        "grammar": lambda text, strict: read_rule(text, ontology, strict=strict),
        _UNSURE: by_classifier(0.0),
        **{f"classifier, {least:g} sure": by_classifier(least) for least in SURE},
    }
    found = {
        reader: {strict: {text: reads(text, strict) for text in golden} for strict in (False, True)}
        for reader, reads in readers.items()
    }
    sure = f"classifier, {LEAST_SURE:g} sure"
    for name, other, chosen in ((f"grammar, then {sure}", sure, _first), ("both, where they agree", _UNSURE, _alike)):
        found[name] = {
            s: {text: chosen(one, found[other][s][text]) for text, one in found["grammar"][s].items()}
            for s in (False, True)
        }
    return found


def _first(grammar: Reading, classifier: Reading) -> Reading:
    """Return what ``--model parser --model classifier`` chooses: the grammar's reading, if there is one."""
    return grammar if grammar.statements else classifier


def _alike(grammar: Reading, classifier: Reading) -> Reading:
    """Return the statements that both read."""
    return Reading(tuple(one for one in classifier.statements if words(one) in set(map(words, grammar.statements))))


def sureness(ontology: Ontology) -> str:
    """Fit how sure the classifier is, and say which share of its readings is right at what it must be sure of.

    On the rules of :data:`LEARNED_SETS`, each read by a classifier that has not learned from it; the curve is of
    weights that were fitted without the rule, too.
    """
    examples = list(examples_of(ontology))
    meant = {one.text: one for one in examples_of(ontology, *LEARNED_SETS)}
    held = _held_by_fold(meant, examples, ontology)
    read = {text: held[text].choose(text) for text in meant}
    read = {text: one for text, one in read.items() if one.element != "-"}
    leads = np.array([one.leads for one in read.values()])
    right = np.array([_parts(one) == _parts(meant[text]) for text, one in read.items()])
    scale = leads.std(axis=0)
    fit, folds = LogisticRegression(C=0.3, max_iter=1000), KFold(10, shuffle=True, random_state=SEED)
    sure = cross_val_predict(fit, leads / scale, right, cv=folds, method="predict_proba")[:, 1]
    fit.fit(leads / scale, right)
    weights = ", ".join(f"{weight:.3f}" for weight in fit.coef_[0] / scale)
    expected = sum(one.element != "-" for one in meant.values())
    lines = [f"_SURE_WEIGHTS, _SURE_OFFSET = ({weights}), {fit.intercept_[0]:.3f}", ""]
    lines += ["| sure of it at least | of all readings | precision | recall |", "|---|---|---|---|"]
    for least in CURVE:
        taken = sure >= least
        shares = f"{taken.mean():.0%} | {right[taken].mean():.2f} | {right[taken].sum() / expected:.2f}"
        lines.append(f"| {least:g} | {shares} |")
    return "\n".join(lines)


def _parts(one: Example | Triple) -> tuple[str, str, str]:
    return one.road, one.element, one.behaviour


def _held_by_fold(golden: Iterable[str], examples: Sequence[Example], ontology: Ontology) -> dict[str, RuleClassifier]:
    """Return for each rule a classifier that has not learned from it."""
    texts = list(golden)
    random.Random(SEED).shuffle(texts)
    found: dict[str, RuleClassifier] = {}
    for fold in range(FOLDS):
        out = texts[fold::FOLDS]
        learned = RuleClassifier([one for one in examples if one.text not in out], ontology)
        found |= dict.fromkeys(out, learned)
    return found


def _cell(name: str, level: str, got: dict[str, Reading], golden: Golden, ontology: Ontology) -> str:
    if level == "strict" and name not in STRICT_SETS:
        return "-"
    form = LEVELS[level]
    read = {text: frozenset(form(words(one), ontology) for one in reading.statements) for text, reading in got.items()}
    meant = {text: frozenset(form(one, ontology) for one in says) for text, says in golden.items()}
    found: Score = score(read, meant)
    return f"{found.precision or 0.0:.2f} / {found.recall or 0.0:.2f}"


def as_paper(text: str, ontology: Ontology) -> str:
    """Return a statement in the form of golden sets with the paper's behaviour for a finer one."""
    *rest, behaviour = text.split()
    return " ".join([*rest, ontology.behaviours[behaviour].reads_as or behaviour])


def _strict(one: str, _: Ontology) -> str:
    return one


def _lenient(one: str, ontology: Ontology) -> str:
    """Return it without its road, and with the manipulations of its element: signs of two names are alike."""
    _, verb, element, behaviour = as_paper(one, ontology).split()
    shown = ontology.elements[element].manipulation_for("germany") or element
    return f"{verb} {shown} {behaviour}"


LEVELS: dict[str, Callable[[str, Ontology], str]] = {"strict": _strict, "paper": as_paper, "lenient": _lenient}


def _path(name: str) -> Path:
    return resources.shipped(READINGS).get(name) or ROOT / "test" / "golden" / f"{name}.yaml"


if __name__ == "__main__":
    main()
