# SPDX-License-Identifier: Apache-2.0
"""Which trials a search plays: halving for one strength; else samples, then every strength turned down by itself.

Trials of several parameters at once, chosen by what former ones came to (TPE, by optuna); seeded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from mt_nodes.base.errors import UsageError
from mt_nodes.relations.strength import Strength
from mt_nodes.runs.campaign.search.trial import Trial
from mt_nodes.runs.campaign.search.trial_journal import TrialJournal, TrialsSpent

#: Plays fractions of all axes, for a stage of the search.
PlayAll = Callable[[Sequence[float], str], Trial]


def sample(play: PlayAll, axes: int, seed: int, trials: int, note: str = "") -> None:
    """Play so many trials, the strong ends of all axes first; the sampler learns of each before it asks for the next.

    Raises UsageError: optuna is not installed.
    ``play``: plays fractions of all axes; raises to end it early. ``seed``: of the sampler; with the same answers it
    asks for the same trials. ``note``: why the search goes on in this way, where it began in another.
    """
    try:
        import optuna  # heavy, and only here
    except ImportError as error:
        install = "type `pip install 'mt_nodes[search]'`"
        raise UsageError(
            f"{note}; to search on, {install}, then `mt search --resume DIR`"
            if note
            else f"several parameters are searched with optuna; {install}"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    names = [f"x{i}" for i in range(axes)]
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.enqueue_trial(dict.fromkeys(names, 1.0))
    for _ in range(trials):
        suggestion = study.ask()
        trial = play([suggestion.suggest_float(name, 0.0, 1.0) for name in names], "sample")
        if trial.objective is None:
            study.tell(suggestion, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(suggestion, trial.objective)


#: Plays one fraction, for a stage of the search.
Play = Callable[[float, str], Trial]
#: Whether nothing worth a trial lies between two fractions.
Near = Callable[[float, float], bool]
#: Looked at on either side of the threshold, at equal steps between it and the end.
PROBES = 2
#: Looked at where the strong end holds.
_INNER = (0.5, 0.75, 0.25)


@dataclass(frozen=True)
class BisectionResult:
    """What came of it.

    Attributes:
        least: the least fraction that violates, None where none did.
        most: the greatest fraction below it that does not, None where none was found below.
        contradiction: what shows that stronger is not worse here; empty where nothing did.
    """

    least: Trial | None
    most: Trial | None
    contradiction: str = ""


def bisect(play: Play, near: Near, probes: int = PROBES) -> BisectionResult:
    """Find the threshold between the fractions 0 and 1.

    Both ends are played first. A violation below one that does not violate is a contradiction, and ends the halving.
    ``near``: whether two fractions are near enough. ``probes``: how many fractions are looked at on either side of the
    threshold, for contradictions.
    """
    strong = play(1.0, "ends")
    if not strong.violated:
        found = next((trial for f in _INNER if (trial := play(f, "probe")).violated), None)
        against = f"{_in_words(found)} and {_in_words(strong)}" if found else ""
        return BisectionResult(found, None if found else strong, against)
    weak = play(0.0, "ends")
    if weak.violated:
        return BisectionResult(weak, None, _above(play, 0.0, probes))
    low, high, least, most = narrowed(play, near, "bisect", strong, weak)
    contradiction = _above(play, high, probes) or _below(play, low, least, probes)
    return BisectionResult(least, most, contradiction)


def narrowed(play: Play, near: Near, stage: str, strong: Trial, weak: Trial) -> tuple[float, float, Trial, Trial]:
    """Halve between a fraction 0 that does not violate and a 1 that does.

    Returns:
        The greatest fraction known not to violate, the least known to violate, and the trials: (low, high, at high,
        at low).
    """
    low, high, at_low, at_high = 0.0, 1.0, weak, strong
    while not near(low, high):
        middle = (low + high) / 2
        trial = play(middle, stage)
        if trial.violated:
            high, at_high = middle, trial
        else:
            low, at_low = middle, trial
    return low, high, at_high, at_low


def _above(play: Play, threshold: float, probes: int) -> str:
    """What contradicts that all above the threshold violates."""
    for i in range(1, probes + 1):
        trial = play(threshold + (1.0 - threshold) * i / (probes + 1), "probe")
        if not trial.violated:
            return f"a weaker change violates, and {_in_words(trial)}"
    return ""


def _below(play: Play, threshold: float, least: Trial, probes: int) -> str:
    """What contradicts that nothing below the threshold violates."""
    for i in range(probes, 0, -1):
        trial = play(threshold * i / (probes + 1), "probe")
        if trial.violated:
            return f"{_in_words(trial)}, and something between it and {_values(least)} does not"
    return ""


def _in_words(trial: Trial) -> str:
    return f"{_values(trial)} {'violates' if trial.violated else 'does not violate'}"


def _values(trial: Trial) -> str:
    return ", ".join(f"{name} {value:.6g}" for name, value in trial.values.items())


#: Of the trials so many are kept for making a violation weaker.
_KEPT_FOR_LESS = 0.4


@dataclass(frozen=True)
class SearchResult:
    """How a search went.

    ``method``: ``bisection``, ``sampling``, or ``bisection, then sampling``. ``note``: what is to be told of it, empty:
    nothing. ``spent``: whether it ended because its trials were spent.
    """

    method: str
    note: str = ""
    spent: bool = False


def seek(
    played: TrialJournal, axes: Sequence[Strength], places: Sequence[bool], seed: int, tolerance: float
) -> SearchResult:
    """Play trials until the least violating change is known to the tolerance, or the trials are spent.

    ``axes``: what is searched over. ``places``: which of them say where, and not how much. ``tolerance``: of a
    fraction; integers are found exactly where one parameter is searched.
    """
    method, note = "sampling", ""
    try:
        if len(axes) == 1 and not places[0]:
            method = "bisection"
            found = bisect(lambda f, stage: played.play((f,), stage), near(axes[0], tolerance))
            if not found.contradiction:
                return SearchResult(method)
            method, note = "bisection, then sampling", f"stronger is not always worse: {found.contradiction}"
        _sampled(played, axes, places, seed, tolerance, note)
    except TrialsSpent:
        return SearchResult(method, note, spent=True)
    return SearchResult(method, note)


def near(axis: Strength, tolerance: float) -> Near:
    """Return when two fractions of an axis are near enough: of integers, when none lies between them."""

    def enough(low: float, high: float) -> bool:
        if axis.whole:
            return abs(axis.value(high) - axis.value(low)) <= 1
        return high - low <= tolerance

    return enough


def _sampled(
    played: TrialJournal, axes: Sequence[Strength], places: Sequence[bool], seed: int, tolerance: float, note: str
) -> None:
    sample(played.play, len(axes), seed, max(1, round((1.0 - _KEPT_FOR_LESS) * played.left)), note)
    if played.best is None:
        sample(played.play, len(axes), seed + 1, played.left)
    if played.best is not None and not all(places):
        _turned_down(played, axes, places, tolerance)


def _turned_down(played: TrialJournal, axes: Sequence[Strength], places: Sequence[bool], tolerance: float) -> None:
    """Turn all strengths of the best violation down together, then each by itself."""
    steps = [("ray", tuple(not place for place in places))]
    steps += [("axis", tuple(j == i for j in range(len(axes)))) for i, place in enumerate(places) if not place]
    for stage, turned in steps:
        best = played.best
        assert best is not None
        _along(played, best, stage, partial(_scaled, best.fractions, turned), _enough(axes, best, turned, tolerance))


def _along(played: TrialJournal, strong: Trial, stage: str, at: Callable[[float], Sequence[float]], near: Near) -> None:
    """Halve along a way from a violation (1) to a weaker change (0)."""
    weak = played.play(at(0.0), stage)
    if not weak.violated:
        narrowed(lambda t, name: played.play(at(t), name), near, stage, strong, weak)


def _scaled(fractions: Sequence[float], turned: Sequence[bool], t: float) -> tuple[float, ...]:
    return tuple(t * f if turn else f for f, turn in zip(fractions, turned, strict=True))


def _enough(axes: Sequence[Strength], trial: Trial, turned: Sequence[bool], tolerance: float) -> Near:
    """:func:`near` of all axes that are turned, of shares of a trial's fractions."""
    each = [(f, near(a, tolerance)) for a, f, turn in zip(axes, trial.fractions, turned, strict=True) if turn]
    return lambda low, high: all(enough(low * f, high * f) for f, enough in each)
