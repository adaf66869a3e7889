# SPDX-License-Identifier: Apache-2.0
"""Trials of several parameters at once, chosen by what former ones came to (TPE, by optuna); seeded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mt_nodes.base.errors import UsageError
from mt_nodes.runs.campaign.search.trial import Trial

#: Plays fractions of all axes, for a stage of the search.
PlayAll = Callable[[Sequence[float], str], Trial]


def sample(play: PlayAll, axes: int, seed: int, trials: int, note: str = "") -> None:
    """Play so many trials, the strong ends of all axes first; the sampler learns of each before it asks for the next.

    Raises UsageError: optuna is not installed.

    Args:
        play: plays fractions of all axes; raises to end it early.
        axes: how many there are.
        seed: of the sampler; with the same answers it asks for the same trials.
        trials: how many.
        note: why the search goes on in this way, where it began in another.
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
