# SPDX-License-Identifier: Apache-2.0
"""Reads traffic rules by a classifier: element, road and action are three choices among names of the ontology.

Complement naive Bayes (Rennie et al., ICML 2003) and a linear support vector machine over TF-IDF of words and word
pairs, of 3 to 5 letters, and over what the grammar (:mod:`mt_nodes.rules.parser`) finds in the text: names, roads,
demands, and its own reading. Of all triples, that with the largest sum of the three scores is chosen, and of the
logarithms of how often road and action occur with the element. It learns from the rules of ``config/readings`` and from
the phrases of the ontology, at first use. Names are chosen, never invented; the conditions come from the ontology, so
that a statement is as valid as one of the grammar's.

How sure it is of a triple is a logistic function of three numbers: by how much it leads over the best triple with
another road, over that with another element, and over that with another action. The weights were fitted on rules that
the classifier had not learned from (``scripts/parser_scores.py --sureness``): about seven of ten readings with a
sureness of 0.7 are right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base import resources
from mt_nodes.base.yaml_files import read_list
from mt_nodes.relations.facts.condition import conjunction
from mt_nodes.rules.cues import cues_in
from mt_nodes.rules.nouns import elements_ahead, nouns_in
from mt_nodes.rules.ontology import ANY_ROAD, Ontology
from mt_nodes.rules.parser import LONGEST, Reading, read_rule
from mt_nodes.rules.phrases import PUNCTUATION
from mt_nodes.rules.statement import Statement

READINGS = "readings"
_NONE = "-"
_NOTHING = "the classifier finds no element of the ontology in it"
_PARTS = ("road", "element", "behaviour")
#: Prefixes of the features that each part uses: of names, roads, cues, and of the grammar's reading.
_FEATURES = {
    "road": ("place:", "road:", "element:"),
    "element": ("name:", "ahead:", "first:", "element:"),
    "behaviour": ("cue:", "behaviour:", "element:"),
}
#: Weights against one of a rule's own words, chosen by cross-validation on ten_countries.yaml.
_GRAMMAR_WEIGHT, _PHRASE_WEIGHTS, _SMOOTHING = 0.7, {"road": 0.3, "element": 0.7, "behaviour": 0.2}, 0.1
#: Also by cross-validation: share of the support vector machine in a score, its cost of errors, and the weight and
#: smoothing of how often names occur together.
_SVM_SHARE, _COST, _TOGETHER_WEIGHT, _TOGETHER_SMOOTHING = 0.4, 0.3, 0.3, 0.5
#: Weight of rules whose actions are those of a strict reading, of files that are named here; of others, which have the
#: paper's, it is 1.
_STRICT_WEIGHT, _STRICT_FILES = 4.0, ("ten_countries", "many_countries", "registers")
#: Weights of the leads that tell how sure it is, and the constant.
_SURE_WEIGHTS, _SURE_OFFSET = (0.358, 0.267, 0.475), -4.538
_WORD = r"[a-z']+|\d+"
Features = dict[str, float]
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Example:
    """A rule and its meaning: road, element and behaviour, each ``-`` if it says nothing. ``weight``: in learning."""

    text: str
    road: str = _NONE
    element: str = _NONE
    behaviour: str = _NONE
    weight: float = 1.0


@dataclass(frozen=True)
class Triple:
    """What the classifier chose: names, each ``-`` for nothing.

    ``leads``: by how much each is ahead of the others of its part, in this order.
    """

    road: str
    element: str
    behaviour: str
    leads: tuple[float, ...]

    @property
    def sure(self) -> float:
        """Estimated probability that all three are right."""
        return float(1.0 / (1.0 + np.exp(-np.dot(_SURE_WEIGHTS, self.leads) - _SURE_OFFSET)))


class RuleClassifier:
    """A classifier for one ontology. ``examples``: what it learns from, beside the phrases of the ontology."""

    def __init__(self, examples: Sequence[Example], ontology: Ontology) -> None:
        self._ontology = ontology
        found = [features_of(one.text, ontology) for one in examples]
        self._choices = {part: _Choice(part, examples, found, ontology) for part in _PARTS}
        self._roads, self._actions = (self._together(part, examples) for part in ("road", "behaviour"))

    def read(self, text: str, rule: str = "", strict: bool = False, least_sure: float = 0.0) -> Reading:
        """Return the statement of a rule, or why there is none, as where the classifier is less sure than asked.

        Other arguments as of :func:`mt_nodes.rules.parser.read_rule`.
        """
        if not text.strip() or len(text) > LONGEST:
            return read_rule(text, self._ontology, rule)
        chosen = self.choose(text)
        if chosen.element == _NONE:
            return Reading(why=_NOTHING)
        if chosen.sure < least_sure:
            guess = f"{chosen.road} {chosen.element} {chosen.behaviour}"
            return Reading(why=f"the classifier guesses '{guess}', sure {chosen.sure:.2f}, least {least_sure:g}")
        return Reading((self._statement(chosen, rule, strict),))

    def _statement(self, chosen: Triple, rule: str, strict: bool) -> Statement:
        element = self._ontology.elements[chosen.element]
        behaviour = self._ontology.behaviours["slow_down" if chosen.behaviour == _NONE else chosen.behaviour]
        if behaviour.reads_as and not strict:
            behaviour = self._ontology.behaviours[behaviour.reads_as]
        moves = "not moving" if behaviour.name == "start_moving" else "moving"
        condition = conjunction(moves, element.needs)
        place = element.road or (ANY_ROAD if chosen.road == _NONE else chosen.road)
        return Statement(place, element.verb, element.name, behaviour.name, "", condition, (rule,) if rule else ())

    def choose(self, text: str) -> Triple:
        """Return road, element and action that fit a text and each other best."""
        features = features_of(text, self._ontology)
        road, element, action = (self._choices[part].scores(text, features) for part in _PARTS)
        sums = (element[:, None] + road + self._roads)[:, :, None] + (action + self._actions)[:, None, :]
        i, j, k = np.unravel_index(int(np.argmax(sums)), sums.shape)
        best = dict(zip(_PARTS, (int(j), int(i), int(k)), strict=True))
        road_name, name, action_name = (self._choices[part].names[at] for part, at in best.items())
        rivals = {"road": sums[i].max(axis=1), "element": sums.max(axis=(1, 2)), "behaviour": sums[i].max(axis=0)}
        leads = tuple(_lead(rivals[part], at) for part, at in best.items())
        return Triple(road_name, name, action_name, leads)

    def _together(self, part: str, examples: Sequence[Example]) -> Scores:
        """Return (elements, names of a part) the weighted logarithm of how often a name occurs with an element."""
        elements, names = self._choices["element"].names, self._choices[part].names
        count = np.full((len(elements), len(names)), _TOGETHER_SMOOTHING)
        for one in examples:
            count[elements.index(one.element), names.index(getattr(one, part))] += one.weight
        return np.asarray(_TOGETHER_WEIGHT * np.log(count / count.sum(axis=1, keepdims=True)))


@lru_cache(maxsize=2)
def trained(ontology: Ontology) -> RuleClassifier:
    """Return the classifier that learned from all rules of ``config/readings``; it takes some seconds, once."""
    return RuleClassifier(list(examples_of(ontology)), ontology)


def examples_of(ontology: Ontology, *names: str) -> Iterator[Example]:
    """Yield the rules of files of ``config/readings``, by name; all without names.

    Files with the paper's behaviours get the finer ones of a strict reading by the grammar, where it agrees.
    """
    for name, path in resources.shipped(READINGS).items():
        if not names or name in names:
            for row in read_list(path):
                yield _example(row["text"], row["says"], ontology, name in _STRICT_FILES)


@lru_cache(maxsize=8192)
def features_of(text: str, ontology: Ontology) -> Features:
    """Return what the grammar finds in a text, as features; not to be changed."""
    tokens = ontology.lexicon.tokens(text)
    nouns = nouns_in(tokens, ontology)
    ahead = elements_ahead(tokens, nouns, ontology)
    free = [i not in nouns.taken and token.text not in PUNCTUATION for i, token in enumerate(tokens)]
    objects = [one.start for one in ahead if one.element.category == "objects"]
    found: Features = {f"name:{one.element.name}": 1.0 for one in nouns.things}
    found |= {f"ahead:{one.element.name}": 1.0 for one in ahead}
    found |= {f"first:{one.element.name}": 1.0 for one in ahead[:1]}
    found |= {f"place:{one.road.name}": 1.0 for one in nouns.places}
    found |= {f"cue:{cue.behaviour}:{cue.negated}": 1.0 for cue in cues_in(tokens, free, objects, ontology)}
    for one in _read_strictly(text, ontology).statements[:1]:
        found |= {f"{part}:{getattr(one, part)}": 2.0 for part in _PARTS}
    return found


@lru_cache(maxsize=8192)
def _read_strictly(text: str, ontology: Ontology) -> Reading:
    return read_rule(text, ontology, strict=True)


class _Choice:
    """The choice of one part among its names."""

    def __init__(self, part: str, examples: Sequence[Example], found: Sequence[Features], ontology: Ontology) -> None:
        from sklearn.feature_extraction import DictVectorizer
        from sklearn.naive_bayes import ComplementNB
        from sklearn.svm import LinearSVC

        self._part = part
        self._words = _TermWeights(ngram_range=(1, 2), token_pattern=_WORD)
        self._letters = _TermWeights(analyzer="char_wb", ngram_range=(3, 5), min_df=2)
        self._features = DictVectorizer()
        phrases = list(_phrases(part, ontology))
        texts = [one.text for one in examples] + [text for text, _ in phrases]
        features = [self._own(one) for one in found]
        features += [_of_phrase(part, name) for _, name in phrases]
        targets = [getattr(one, part) for one in examples] + [name for _, name in phrases]
        weights = [one.weight for one in examples] + [_PHRASE_WEIGHTS[part]] * len(phrases)
        matrix = _joined(
            self._words.fit_transform(texts),
            self._letters.fit_transform(texts),
            self._features.fit(features).transform(features),
        )
        bayes = ComplementNB(alpha=_SMOOTHING).fit(matrix, targets, weights)
        svm = LinearSVC(C=_COST, random_state=0).fit(matrix, targets, weights)
        self.names: list[str] = bayes.classes_.tolist()
        # Both are linear. Their own methods copy the weights, tens of megabytes, for each text.
        self._bayes = np.ascontiguousarray(bayes.feature_log_prob_.T)
        self._svm, self._svm_offset = np.ascontiguousarray(svm.coef_.T), svm.intercept_

    def scores(self, text: str, features: Features) -> Scores:
        """Return how well each of ``names`` fits a text, with mean 0 and standard deviation 1."""
        matrix = self._matrix([text], [self._own(features)])
        if not matrix.nnz:  # nothing in it has been learned
            return np.array([float(name == _NONE) for name in self.names])
        bayes, svm = (matrix @ self._bayes)[0], (matrix @ self._svm)[0] + self._svm_offset
        return np.asarray((1.0 - _SVM_SHARE) * _standard(bayes) + _SVM_SHARE * _standard(svm))

    def _own(self, features: Features) -> Features:
        return {name: value for name, value in features.items() if name.startswith(_FEATURES[self._part])}

    def _matrix(self, texts: Sequence[str], features: Sequence[Features]) -> Any:
        return _joined(self._words.transform(texts), self._letters.transform(texts), self._features.transform(features))


class _TermWeights:
    """TF-IDF with sublinear TF, as scikit-learn's ``TfidfVectorizer``, which splits what it learns from twice."""

    def __init__(self, **splitting: Any) -> None:
        from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

        self._counts, self._weights = (
            CountVectorizer(dtype=np.float64, **splitting),
            TfidfTransformer(sublinear_tf=True),
        )

    def fit_transform(self, texts: Sequence[str]) -> Any:
        """Learn the terms of texts and return their weights, sparse (texts, terms), as :meth:`transform` does."""
        counts = self._counts.fit_transform(texts)
        counts.sort_indices()  # sums come out as those of `transform` do, to the last bit
        return self._weights.fit(counts).transform(counts)

    def transform(self, texts: Sequence[str]) -> Any:
        """Return the weights of the learned terms in texts, sparse (texts, terms)."""
        return self._weights.transform(self._counts.transform(texts))


def _joined(words: Any, letters: Any, names: Any) -> Any:
    """Return sparse matrices with a row for each text side by side."""
    from scipy.sparse import hstack

    return hstack([words, letters, _GRAMMAR_WEIGHT * names]).tocsr()


def _lead(scores: Scores, best: int) -> float:
    """Return by how much a score is above the best of the others; 0 if there is no other."""
    others = np.delete(scores, best)
    return float(scores[best] - others.max()) if len(others) else 0.0


def _standard(scores: Scores) -> Scores:
    return np.asarray((scores - scores.mean()) / scores.std())


def _example(text: str, says: Sequence[str], ontology: Ontology, strict: bool) -> Example:
    weight = _STRICT_WEIGHT if strict else 1.0
    if not says:
        return Example(text, weight=weight)
    road, _, element, behaviour = says[0].split()
    if strict:
        return Example(text, road, element, behaviour, weight)
    finer = [one.behaviour for one in _read_strictly(text, ontology).statements]
    finer = [name for name in finer if ontology.behaviours[name].reads_as == behaviour]
    return Example(text, road, element, next(iter(finer), behaviour))


def _phrases(part: str, ontology: Ontology) -> Iterator[tuple[str, str]]:
    """Yield the phrases of the ontology as texts, with their names."""
    terms: Mapping[str, Mapping[str, Any]] = {
        "road": ontology.roads,
        "element": ontology.elements,
        "behaviour": ontology.behaviours,
    }
    for name, term in terms[part].items():
        for phrase in term.says if name != ANY_ROAD else ():
            yield re.sub(r"(\w+)(?:/\w+)+", r"\1", re.sub(r"@\w+|\+", "", phrase)), name


def _of_phrase(part: str, name: str) -> Features:
    """Return the features of a text that is nothing but a phrase of a name."""
    exact = {f"{prefix}{name}": 2.0 if prefix == f"{part}:" else 1.0 for prefix in _FEATURES[part]}
    exact.pop(f"element:{name}", None) if part != "element" else None
    return {f"{key}:False" if key.startswith("cue:") else key: value for key, value in exact.items()}
