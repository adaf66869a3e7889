# SPDX-License-Identifier: Apache-2.0
"""An exception in a plugin or in a callable ends its pair, by name and line; every other pair is judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bad_bags import typed
from failing_plugins import (
    PLUGINS,
    RELATIONS,
    STACK,
    Lines,
    drive,
    line_of,
    plugins_as_before,
    replay,
    write_relations,
    write_stack,
)
from fake_arms import answered, relation, seen
from made_runs import no_pages
from recordings import bundles

from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.judging import Engine, Offer
from mt_nodes.relations.mutations.stream.identity import Identity
from mt_nodes.relations.relation import Relation

HERE = line_of(PLUGINS, "# fails here")
#: Relation -> its second pair's reason.
REASONS = {
    **{
        where: f"mutation 'failing' failed in {where} (mine.py:{HERE}): KeyError: 'no such key'"
        for where in ("draw", "apply", "guarantee")
    },
    "returns_none": "mutation 'failing' failed in apply: it returned NoneType None, expected Followup",
    "returns_true": "mutation 'failing' failed in guarantee: it returned bool True, expected str or None",
    "judge": f"check 'failing_check' failed in judge (mine.py:{HERE}): KeyError: 'no such key'",
    "judge_returns": "check 'failing_check' failed in judge: it returned bool True, expected Judgement",
    "unmet": f"condition 'failing_condition' failed in unmet (mine.py:{HERE}): KeyError: 'no such key'",
    "unmet_returns": "condition 'failing_condition' failed in unmet: it returned bool False, expected str or None",
}
BEGIN = f"mutation 'failing' failed in begin (mine.py:{line_of(PLUGINS, '# fails in begin')}): RuntimeError: no state"
SERIES = {
    "series": "check 'failing_series' failed in judge_series (mine.py:",
    "series_of_failing": f"bundle 1: {REASONS['apply']}",
    "series_unmet": f"bundle 1: {REASONS['unmet']}",
}
Ran = tuple[int, str, Lines]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    place = tmp_path_factory.mktemp("failing")
    with no_pages():
        stack = write_stack(place, "never_failing", "False")
        return replay(place, drive(place), stack, write_relations(place, tuple(RELATIONS)), "--transport", "inprocess")


def outcomes(lines: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {pair: line["outcome"] for pair, line in lines.items()}


@pytest.mark.parametrize("name", REASONS)
def test_a_plugin_that_fails_ends_its_pair_alone(ran: Ran, name: str) -> None:
    lines = ran[2][name]
    assert outcomes(lines) == {f"0/{i}/{name}/0": "ERROR" if i == 1 else "HOLDS" for i in range(3)}
    assert lines[f"0/1/{name}/0"]["reason"] == REASONS[name]


def test_a_plugin_that_cannot_begin_has_no_pair(ran: Ran) -> None:
    assert [line["outcome"] for line in ran[2]["begin"].values()] == ["ERROR"] * 3
    assert {line["reason"] for line in ran[2]["begin"].values()} == {BEGIN}


@pytest.mark.parametrize("name", SERIES)
def test_a_series_with_a_failure_in_it_is_an_error(ran: Ran, name: str) -> None:
    ((_, line),) = ran[2][name].items()
    assert line["outcome"] == "ERROR" and line["reason"].startswith(SERIES[name])


def test_the_run_ends_with_exit_code_4_and_all_else_holds(ran: Ran) -> None:
    code, said, lines = ran
    assert code == 4 and "pairs ended in ERROR" in said
    assert list(outcomes(lines["holds"]).values()) == ["HOLDS"] * 3
    background = [line for name in ("identity", "points_permuted") for line in lines[name].values()]
    failing = ("judge", "judge_returns", "unmet", "unmet_returns", "series", "series_unmet")
    errors = [line for line in background if line["outcome"] == "ERROR"]
    assert {line["pair"].split("@")[1] for line in errors} == set(failing), "control and sham are judged alike"
    assert {line["outcome"] for line in background} == {"ERROR", "HOLDS"}


def raising(place: Path, when: str, *more: str, count: int = 3, **stack: Any) -> Ran:
    file = write_stack(place, f"raising_{abs(hash((str(place), when)))}", when, **stack)
    with no_pages():
        relation = write_relations(place, ("holds",))
        return replay(place, drive(place, count), file, relation, "--transport", "inprocess", *more)


def test_facts_that_fail_end_the_pair() -> None:
    def knows(offer: Offer, judge: Relation, bundle: Bundle) -> dict[str, float]:
        return {"speed_mps": 1.0 / bundle.index}

    (noise,) = (relation("noise", Identity()),)
    said = answered(seen(1)), answered(seen(1))
    judged = [Engine(True, knows).judge(Offer(noise, (noise,)), bundle, said, Effects()) for bundle in bundles(2)]
    (first,), (second,) = judged
    assert first.outcome is Outcome.ERROR and second.outcome is Outcome.HOLDS
    assert first.judgement.reason == "the facts of bundle 0 failed: ZeroDivisionError: float division by zero"


@pytest.mark.parametrize("words", [("mutate",), ("show",)])
def test_a_command_that_shows_or_writes_a_follow_up_names_the_plugin(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "mine.py").write_text(PLUGINS)
    bag, more = drive(tmp_path), ("--set", "where=apply", "--plugins", tmp_path)
    asked = {
        "mutate": ("mutate", bag, "--mutation", "failing", "--out", tmp_path / "out", *more),
        "show": ("show", "failing", "--bag", bag, "--frame", "1", "--out", tmp_path / "out.png", *more),
    }
    with plugins_as_before():
        code, _, error = typed(*asked[words[0]])
    assert code == 4 and "Traceback" not in error
    assert f"mutation 'failing' failed in apply (mine.py:{HERE}): KeyError: 'no such key'" in error


@pytest.mark.parametrize(
    ("check", "code", "said"),
    [
        ("fails_to_begin", 2, "check 'fails_to_begin' failed in __post_init__ (mine.py:"),
        ("fails_of_stack", 4, "check 'fails_of_stack' failed in of_stack (mine.py:"),
    ],
)
def test_a_plugin_that_cannot_be_set_up_is_named_before_the_run(
    tmp_path: Path, check: str, code: int, said: str
) -> None:
    (tmp_path / "mine.py").write_text(PLUGINS + SET_UP)
    text = "{id: x, kind: expected, because: x, mutate: [failing], check: %s}" % check  # noqa: UP031
    (tmp_path / "x.yaml").write_text(text)
    words = ("--relations", tmp_path / "x.yaml", "--plugins", tmp_path, "--out", tmp_path / "out")
    with plugins_as_before():
        ended, _, error = typed("replay", drive(tmp_path), *words, "--transport", "inprocess")
    assert ended == code and said in error and "KeyError: 'no such key'" in error and "Traceback" not in error


SET_UP = """
@dataclass(frozen=True)
class FailsToBegin(FailingCheck):
    \"\"\"Fails when it is made.\"\"\"

    def __post_init__(self):
        {}["no such key"]


@dataclass(frozen=True)
class FailsOfStack(FailingCheck):
    \"\"\"Fails when the stack is known.\"\"\"

    def of_stack(self, traits):
        {}["no such key"]
"""
SECOND = "stamp_ns == 1_700_000_000_100_000_000"


def test_a_callable_that_raises_ends_the_pairs_of_that_input(tmp_path: Path) -> None:
    code, said, lines = raising(tmp_path, SECOND)
    assert code == 4
    for name in ("holds", "identity", "points_permuted"):
        assert list(outcomes(lines[name]).values()) == ["HOLDS", "ERROR", "HOLDS"]
    (reason,) = {line["reason"] for of in lines.values() for line in of.values() if line["outcome"] == "ERROR"}
    assert "raised ValueError: no idea" in reason and reason.endswith(f".py:{line_of(STACK, '# fails here')})")
    assert said.count("the stack failed: ") == 1 and f"the stack failed 3 times: {reason}" in said


def test_the_doctor_names_an_exception_of_the_stack(tmp_path: Path) -> None:
    stack = write_stack(tmp_path, "raises_always", "True")
    code, said, _ = typed("doctor", "--no-probe", "--stack", stack, "--bag", drive(tmp_path), "--json")
    assert code != 0 and "raised ValueError: no idea (raises_always.py:4)" in said


def test_a_relation_whose_followup_made_the_callable_raise_does_not_pass(tmp_path: Path) -> None:
    """Of two relations one adds points, at which the callable raises at one of three inputs."""
    noise = tmp_path / "noise.yaml"
    noise.write_text(
        "{id: noise, kind: expected, because: x, mutate: [{noise_outside_roi: {points: 7}}], check: failing_check, "
        "min_decided: 1}"
    )
    stack = write_stack(tmp_path, "raises_at_noise", f"len(points) > 2000 and {SECOND}")
    with no_pages():
        files = [str(noise), *write_relations(tmp_path, ("holds",))]
        code, said, lines = replay(tmp_path, drive(tmp_path), stack, files, "--transport", "inprocess")
    assert code == 4
    assert list(outcomes(lines["noise"]).values()) == ["HOLDS", "ERROR", "HOLDS"]
    assert set(outcomes(lines["holds"]).values()) == set(outcomes(lines["identity"]).values()) == {"HOLDS"}
    rows = {line.split()[0]: line.split()[1] for line in said.splitlines() if line.startswith((" noise", " holds"))}
    assert rows == {"noise": "INCONCLUSIVE", "holds": "PASS"}


@pytest.mark.parametrize("mode", ["twin", "two_pass"])
def test_a_callable_that_remembers_settles_after_it_raised(tmp_path: Path, mode: str) -> None:
    """Of ten inputs it raises at the second; the next five are not judged: the arms may remember differently."""
    code, _, lines = raising(tmp_path, SECOND, "--mode", mode, count=10, stateless=False)
    assert code == 4
    for name in ("holds", "identity"):
        assert list(outcomes(lines[name]).values()) == ["HOLDS", "ERROR", *["SETTLING"] * 5, *["HOLDS"] * 3]


def test_a_series_during_which_the_callable_raised_is_an_error(tmp_path: Path) -> None:
    stack = write_stack(tmp_path, "raises_in_series", SECOND)
    with no_pages():
        files = write_relations(tmp_path, ("series_that_holds",))
        code, _, lines = replay(tmp_path, drive(tmp_path), stack, files, "--transport", "inprocess")
    assert code == 4
    assert {line["outcome"] for of in lines.values() for line in of.values()} == {"ERROR"}
    assert all("bundle 1: stack" in line["reason"] for of in lines.values() for line in of.values())
