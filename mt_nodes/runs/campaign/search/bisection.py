# SPDX-License-Identifier: Apache-2.0
"""The least strength of one parameter that violates, where stronger is worse: halving, with a look at whether it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mt_nodes.runs.campaign.search.trial import Trial

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

    Args:
        play: plays one fraction.
        near: whether two fractions are near enough.
        probes: how many fractions are looked at on either side of the threshold, for contradictions.
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
