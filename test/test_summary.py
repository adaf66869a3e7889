# SPDX-License-Identifier: Apache-2.0
"""Relation outcomes, exit codes and the totals of a run, from journal lines made by hand."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.errors import ExitCode, InfrastructureError
from mt_nodes.outcomes import Evidence, Tally, exit_code, relation_outcome
from mt_nodes.summary import RelationInfo, summarise
from mt_nodes.verdict import Judgement, Outcome, Pair, RelationOutcome, Verdict

Line = dict[str, Any]
NOISE = RelationInfo("noise", "necessary")
FOG = RelationInfo("fog", "expected")


def line(
    relation: str,
    bundle: int,
    outcome: Outcome = Outcome.HOLDS,
    *,
    draw: str = "0",
    episode: int = 0,
    lost: int = 0,
    gained: int = 0,
    counts: dict[str, list[int]] | None = None,
) -> Line:
    margin = {Outcome.HOLDS: 0, Outcome.VIOLATED: -1}.get(outcome)
    detail = {"counts": counts} if counts else {}
    judgement = Judgement(outcome, margin=margin, lost=lost, gained=gained, detail=detail)
    return Verdict(Pair(episode, bundle, relation, draw), 10**17 + bundle, judgement).as_plain()


def run(relation: str, count: int, violated: Iterable[int] = (), **arms: Iterable[int]) -> list[Line]:
    """Lines of a relation, its control and its sham on ``count`` bundles; the numbers given are violated."""
    rows = []
    for name, draw, bad in (
        (relation, "0", violated),
        ("identity", f"0@{relation}", arms.get("control", ())),
        ("points_permuted", f"0@{relation}", arms.get("sham", ())),
    ):
        wrong = set(bad)
        for b in range(count):
            outcome = Outcome.VIOLATED if b in wrong else Outcome.HOLDS
            rows.append(line(name, b, outcome, draw=draw, lost=int(b in wrong)))
    return rows


def evidence(**given: Any) -> Evidence:
    clean = Tally(30, 0)
    base: dict[str, Any] = {
        "kind": "expected",
        "min_decided": 20,
        "pairs": clean,
        "control": clean,
        "sham": clean,
        "p_violations": 1.0,
        "p_directions": 1.0,
        "test": "exact McNemar test over 30 frames",
    }
    return Evidence(**{**base, **given})


def judged(**given: Any) -> RelationOutcome:
    return relation_outcome(evidence(**given))[0]


U, F, N, P = RelationOutcome.UNSTABLE, RelationOutcome.FAIL, RelationOutcome.INCONCLUSIVE, RelationOutcome.PASS


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        # 1: control or sham violated, not exceeded; goes before everything else
        ({"control": Tally(30, 1), "pairs": Tally(30, 1)}, U),
        ({"sham": Tally(30, 1), "pairs": Tally(30, 1)}, U),
        ({"control": Tally(30, 1), "pairs": Tally(30, 0)}, U),
        ({"control": Tally(30, 1), "pairs": Tally(30, 4), "kind": "necessary", "p_violations": 0.06}, U),
        ({"control": Tally(30, 1), "pairs": Tally(5, 1), "kind": "necessary"}, U),
        ({"control": Tally(30, 1), "pairs": Tally(30, 9), "p_violations": None}, U),
        # 1 does not apply when the relation exceeds them: on to 3 or 4
        ({"control": Tally(30, 1), "pairs": Tally(30, 12), "p_violations": 0.01}, F),
        ({"control": Tally(9, 1), "pairs": Tally(9, 9), "p_violations": 0.01, "kind": "necessary"}, N),
        # 2: necessary, clean background, even below the minimum
        ({"kind": "necessary", "pairs": Tally(30, 1)}, F),
        ({"kind": "necessary", "pairs": Tally(1, 1), "control": Tally(1, 0), "sham": Tally(0, 0)}, F),
        ({"kind": "necessary", "pairs": Tally(30, 1), "control": Tally(0, 0)}, F),
        # 3: too few; nothing decided is never enough, whatever the minimum
        ({"pairs": Tally(19, 0)}, N),
        ({"pairs": Tally(19, 19), "p_violations": 1e-6}, N),
        ({"kind": "necessary", "pairs": Tally(19, 0)}, N),
        ({"pairs": Tally(0, 0), "min_decided": 0}, N),
        ({"pairs": Tally(20, 0)}, P),
        # violations with nothing at all to compare with are no finding and no pass
        ({"pairs": Tally(30, 5), "control": Tally(), "sham": Tally(), "p_violations": None}, N),
        ({"kind": "necessary", "pairs": Tally(30, 5), "control": Tally(), "sham": Tally(), "p_violations": None}, N),
        # 4: stands out
        ({"pairs": Tally(30, 6), "p_violations": 0.016}, F),
        ({"pairs": Tally(30, 6), "p_violations": 0.016, "p_directions": 0.001}, F),
        # 5: violations, directions alike
        ({"pairs": Tally(30, 3), "p_violations": 0.125, "p_directions": 0.25}, U),
        ({"pairs": Tally(30, 6), "p_violations": 0.05, "p_directions": 0.05}, U),
        # 6
        ({"pairs": Tally(300, 2), "p_violations": 0.25, "p_directions": 0.001}, P),
        ({}, P),
        ({"kind": "necessary"}, P),
        ({"control": Tally(), "sham": Tally(), "p_violations": None}, P),
    ],
)
def test_relation_outcome_is_the_first_rule_that_applies(given_: dict[str, Any], expected: RelationOutcome) -> None:
    assert judged(**given_) is expected


def test_the_reason_is_the_contracts() -> None:
    outcome, why = relation_outcome(evidence(kind="necessary", pairs=Tally(26, 1)))
    assert (outcome, why) == (F, "necessary, one violated pair, control and sham clean")


def test_summary_is_the_contracts_example() -> None:
    info = RelationInfo("noise_outside_roi_1000", "necessary")
    summary = summarise(run(info.id, 26, [17]), [info], latency_ms={"mutator": {"p50": 3.1}})
    relation = summary["relations"][info.id]
    assert {k: summary[k] for k in ("schema", "offered", "outcomes", "exit_code", "latency_ms")} == {
        "schema": 1,
        "offered": 78,
        "outcomes": {"HOLDS": 77, "VIOLATED": 1},
        "exit_code": 1,
        "latency_ms": {"mutator": {"p50": 3.1}},
    }
    assert {k: relation[k] for k in ("outcome", "why", "kind", "decided", "violated", "lost", "gained")} == {
        "outcome": "FAIL",
        "why": "necessary, one violated pair, control and sham clean",
        "kind": "necessary",
        "decided": 26,
        "violated": 1,
        "lost": 1,
        "gained": 0,
    }
    assert relation["rate"] == pytest.approx(0.038, abs=5e-4)
    assert relation["ci95"] == pytest.approx([0.007, 0.189], abs=5e-4)
    assert relation["p_adjusted"] == 0.5
    for arm in ("control", "sham"):
        assert (relation[arm]["decided"], relation[arm]["violated"]) == (26, 0)
    assert (relation["frames"], relation["drives"]) == (26, 1)
    json.dumps(summary, allow_nan=False)


def test_a_clean_run_passes_and_a_flickering_stack_is_unstable() -> None:
    assert summarise(run("noise", 20), [NOISE])["exit_code"] == ExitCode.PASS
    flicker = summarise(run("noise", 30, [1, 5], control=[2], sham=[3]), [NOISE])
    assert flicker["relations"]["noise"]["outcome"] == "UNSTABLE"
    assert flicker["exit_code"] == ExitCode.UNDECIDED


def test_an_expected_relation_fails_only_when_it_stands_out() -> None:
    few = summarise(run("fog", 30, range(3)), [FOG])["relations"]["fog"]
    many = summarise(run("fog", 30, range(9)), [FOG])["relations"]["fog"]
    assert (few["outcome"], many["outcome"]) == ("UNSTABLE", "FAIL")
    assert few["p_adjusted"] == 0.125
    assert "exact McNemar test over 30 frames" in many["why"]


def test_exceeding_control_alone_is_not_enough() -> None:
    result = summarise(run("fog", 30, range(9), sham=range(8)), [FOG])["relations"]["fog"]
    assert result["outcome"] == "UNSTABLE"
    assert result["p_adjusted"] == 0.5


def test_pairing_is_by_episode_and_bundle() -> None:
    """Nine violations on frames where the control is violated too are nobody's finding; elsewhere they are."""
    same = summarise(run("fog", 30, range(9), control=range(9)), [FOG])["relations"]["fog"]
    elsewhere = summarise(run("fog", 30, range(20), control=[25]), [FOG])["relations"]["fog"]
    assert (same["p_adjusted"], same["outcome"]) == (1.0, "UNSTABLE")
    assert elsewhere["outcome"] == "FAIL"


@pytest.mark.parametrize("more", ["fog", "identity"])
def test_unequal_numbers_of_draws_are_weighed(more: str) -> None:
    """Every draw is violated on the same frames, be it three against one: the rates are equal, nothing stands out."""
    lines = run("fog", 30, range(10), control=range(10))
    for n in "12":
        draw = n if more == "fog" else f"{n}@fog"
        lines += [line(more, b, Outcome.VIOLATED if b < 10 else Outcome.HOLDS, draw=draw) for b in range(30)]
    result = summarise(lines, [FOG])["relations"]["fog"]
    assert (result["decided"] + result["control"]["decided"], result["frames"]) == (120, 30)
    assert (result["p_adjusted"], result["outcome"]) == (1.0, "UNSTABLE")


def test_more_draws_of_the_control_do_not_hide_what_stands_out() -> None:
    lines = run("fog", 30, range(22), control=range(10))
    bad = [(n, b, Outcome.VIOLATED if b < 10 else Outcome.HOLDS) for n in "12" for b in range(30)]
    lines += [line("identity", b, outcome, draw=f"{n}@fog") for n, b, outcome in bad]
    assert summarise(lines, [FOG])["relations"]["fog"]["outcome"] == "FAIL"


def test_holm_counts_the_relations() -> None:
    lines = run("fog", 30, range(5)) + run("rain", 30) + run("dust", 30)
    relations = [FOG, RelationInfo("rain", "expected"), RelationInfo("dust", "expected")]
    result = summarise(lines, relations)["relations"]
    assert summarise(run("fog", 30, range(5)), [FOG])["relations"]["fog"]["outcome"] == "FAIL"
    assert result["fog"]["p_adjusted"] == pytest.approx(3 / 32, rel=1e-3)
    assert result["fog"]["outcome"] == "UNSTABLE"
    assert [result[n]["outcome"] for n in ("rain", "dust")] == ["PASS", "PASS"]


def test_a_long_drive_is_tested_by_blocks() -> None:
    burst = summarise(run("fog", 200, range(10)), [FOG])["relations"]["fog"]
    spread = summarise(run("fog", 200, range(0, 200, 20)), [FOG])["relations"]["fog"]
    assert (burst["violated"], spread["violated"]) == (10, 10)
    assert (burst["outcome"], spread["outcome"]) == ("UNSTABLE", "FAIL")
    assert "20 blocks of 10 frames" in spread["why"]


@pytest.mark.parametrize(("bags", "drives"), [(["a", "b", "a/", "./a"], 2), (["a", "b", "c", "d"], 4), ([], 4)])
def test_a_drive_that_is_played_again_is_no_further_drive(bags: list[str], drives: int) -> None:
    condition: Line = {"type": "condition", "bags": bags}
    lines = [line("fog", b, episode=e) for e in range(4) for b in range(5)]
    fog = summarise([condition, *lines], [FOG])["relations"]["fog"]
    assert (fog["drives"], fog["frames"]) == (drives, 5 * drives)


def test_a_run_may_say_itself_which_episodes_are_one_drive() -> None:
    lines = [line("fog", b, episode=e) for e in range(4) for b in range(5)]
    condition: Line = {"type": "condition", "bags": ["a"] * 4, "drives": [0, 1, 1, 2]}
    assert summarise([condition, *lines], [FOG])["relations"]["fog"]["drives"] == 3


def test_draws_of_one_frame_are_no_further_frames() -> None:
    """Ten frames, each drawn ten times: a frame that loses does so in every draw, so there is one loss, not ten."""
    lines = [
        line("fog", b, Outcome.VIOLATED if b == 3 else Outcome.HOLDS, draw=str(d), lost=int(b == 3))
        for b in range(10)
        for d in range(10)
    ]
    lines += [
        line(arm, b, draw=f"{d}@fog") for arm in ("identity", "points_permuted") for b in range(10) for d in range(10)
    ]
    fog = summarise(lines, [FOG])["relations"]["fog"]
    assert (fog["violated"], fog["decided"], fog["p_adjusted"], fog["p_sign"]) == (10, 100, 0.5, 1.0)
    assert fog["ci95_method"] == "Wilson, cluster-robust over 10 frames"
    low, high = fog["ci95"]
    assert low < 0.02 and high > 0.4
    once = summarise([line("fog", b) for b in range(10)], [FOG])["relations"]["fog"]
    assert once["ci95_method"] == "Wilson, 10 frames taken as independent"


def test_both_directions_and_the_papers_table() -> None:
    rows = [(2, 1, {"all": [5, 4], "car": [3, 3]}), (0, 1, {"all": [5, 6], "car": [3, 4]}), (1, 1, {"all": [5, 5]})]
    lines = [
        line("fog", b, Outcome.HOLDS, lost=lost, gained=gained, counts=counts)
        for b, (lost, gained, counts) in enumerate(rows)
    ]
    lines.append(line("fog", 3, Outcome.SKIPPED))
    fog = summarise(lines, [FOG])["relations"]["fog"]
    assert (fog["lost"], fog["gained"], fog["pairs_lost"], fog["pairs_gained"], fog["p_sign"]) == (3, 3, 1, 1, 1.0)
    assert fog["counts"] == {"all": {">": 1, "=": 1, "<": 1}, "car": {">": 0, "=": 1, "<": 1}}


def live(rounds: int, violated: Iterable[int], *, each: int = 10) -> list[Line]:
    """Lines of a live run: in every round the control, the relation and the sham had bundles of their own."""
    rows, bad, bundle = [], set(violated), 0
    for turn in range(rounds):
        for name, draw in (("identity", "0@fog"), ("fog", "0"), ("points_permuted", "0@fog")):
            for _ in range(each):
                outcome = Outcome.VIOLATED if name == "fog" and turn in bad else Outcome.HOLDS
                rows.append({**line(name, bundle, outcome, draw=draw), "round": turn})
                bundle += 1
    return rows


def test_live_relations_are_compared_with_control_and_sham_by_rounds_for_they_share_no_bundle() -> None:
    summary = summarise(live(12, range(12)), [FOG])["relations"]["fog"]
    assert summary["outcome"] == "FAIL" and summary["test"] == "sign-flip test over 12 rounds"
    assert summary["p_adjusted"] == pytest.approx(2**-12, rel=1e-3)
    without = summarise([{k: v for k, v in row.items() if k != "round"} for row in live(12, range(12))], [FOG])
    assert without["relations"]["fog"]["test"] == "no frame decided in both"
    few = summarise(live(3, range(3)), [FOG])["relations"]["fog"]
    assert few["outcome"] != "FAIL", "three rounds show nothing"


def test_what_rests_on_arrival_is_counted_apart() -> None:
    rows = run("noise", 30, violated=[3, 7])
    assert "by_arrival" not in summarise(rows, [NOISE])
    marked = [{**row, "paired_by": "arrival"} if i in (3, 4, 5, 35) else row for i, row in enumerate(rows)]
    summary = summarise(marked, [NOISE])
    assert summary["by_arrival"] == 4 and summary["offered"] == 90
    assert summary["relations"]["noise"]["by_arrival"] == {"decided": 3, "violated": 1}
    assert summary["relations"]["noise"]["control"]["by_arrival"] == {"decided": 1, "violated": 0}
    assert "by_arrival" not in summary["relations"]["noise"]["sham"]


def test_nothing_decided_is_not_green() -> None:
    skipped = [line("noise", b, Outcome.NOT_APPLICABLE) for b in range(30)]
    summary = summarise(skipped, [NOISE])
    relation = summary["relations"]["noise"]
    assert (relation["outcome"], summary["exit_code"]) == ("INCONCLUSIVE", ExitCode.UNDECIDED)
    assert (relation["rate"], relation["ci95"], relation["p_adjusted"]) == (None, None, None)
    assert summarise([], [NOISE])["exit_code"] == ExitCode.UNDECIDED
    empty = summarise([], [])
    assert empty["exit_code"] == ExitCode.UNDECIDED and "no relation" in empty["exit_why"]


@pytest.mark.parametrize(
    ("given_", "code"),
    [
        ({"interrupted": True, "isolation": "x", "infrastructure": "x", "errors": 1, "ended": F}, 130),
        ({"isolation": "x", "infrastructure": "x", "errors": 1, "ended": F}, 5),
        ({"infrastructure": "x", "errors": 1, "ended": F}, 4),
        ({"errors": 1, "ended": F}, 4),
        ({"infrastructure": ""}, 4),
        ({"ended": F}, 1),
        ({"ended": N}, 3),
        ({"ended": U}, 3),
        ({"ended": P}, 0),
    ],
)
def test_exit_code_is_the_first_that_applies(given_: dict[str, Any], code: int) -> None:
    outcomes = {"HOLDS": 20, "ERROR": given_.pop("errors", 0)}
    ended = {"a": P, "b": given_.pop("ended", P)}
    assert exit_code(outcomes, ended, **given_)[0] == code


def test_fail_goes_before_unstable_and_names_the_relation() -> None:
    assert exit_code({}, {"a": U, "b": F}) == (ExitCode.FAIL, "FAIL: b")


def test_an_error_pair_of_the_control_counts() -> None:
    lines = [*run("noise", 20), line("identity", 20, Outcome.ERROR, draw="0@noise")]
    assert summarise(lines, [NOISE])["exit_code"] == ExitCode.INFRASTRUCTURE


def test_a_pair_of_no_relation_is_refused() -> None:
    with pytest.raises(InfrastructureError, match=r"0/3/rain/0.*'rain' is none of the run's relations: noise"):
        summarise([line("rain", 3)], [NOISE])
    with pytest.raises(InfrastructureError, match=r"expected identity or points_permuted"):
        summarise([line("rain", 3, draw="0@noise")], [NOISE])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(list(Outcome)),
            st.sampled_from(["noise", "fog"]),
            st.sampled_from(["own", "identity", "points_permuted"]),
        ),
        max_size=60,
    )
)
def test_totals_reconcile_whatever_happened(rows: list[tuple[Outcome, str, str]]) -> None:
    lines: list[Line] = [{"schema": 1, "type": "condition"}]
    for bundle, (outcome, judge, arm) in enumerate(rows):
        own = arm == "own"
        lines.append(line(judge if own else arm, bundle, outcome, draw="0" if own else f"0@{judge}"))
    summary = summarise(lines, [NOISE, FOG])
    shares = [arm["outcomes"] for r in summary["relations"].values() for arm in (r, r["control"], r["sham"])]
    assert summary["offered"] == len(rows) == sum(summary["outcomes"].values())
    assert summary["offered"] == sum(sum(share.values()) for share in shares)
    green = summary["exit_code"] == 0
    assert not green or all(r["outcome"] == "PASS" and r["decided"] >= 20 for r in summary["relations"].values())


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(list(Outcome)), st.integers(0, 2), st.integers(0, 30)), max_size=12),
        max_size=14,
    )
)
def test_drive_by_drive_comes_to_the_same(drives: list[list[tuple[Outcome, int, int]]]) -> None:
    lines: list[Line] = [{"schema": 1, "type": "condition", "bags": [f"drive_{i}" for i in range(len(drives))]}]
    for episode, rows in enumerate(drives):
        for number, (outcome, lost, bundle) in enumerate(rows):
            for arm, draw in (("fog", ""), ("identity", "@fog"), ("points_permuted", "@fog")):
                each = outcome if lost or arm == "fog" else Outcome.HOLDS
                counts = {"all": [3, 3 - lost]}
                lines.append(line(arm, bundle, each, draw=f"{number}{draw}", episode=episode, lost=lost, counts=counts))
    assert summarise(lines, [FOG], drive_by_drive=True) == summarise(lines, [FOG])


def test_drive_by_drive_takes_the_memory_of_one_drive() -> None:
    def peak_bytes(drives: int) -> int:
        def lines() -> Iterator[Line]:
            for episode in range(drives):
                for bundle in range(30):
                    yield line("fog", bundle, episode=episode, counts={"all": [3, 3]})
                    yield line("identity", bundle, episode=episode, draw="0@fog")

        gc.collect()
        tracemalloc.start()
        try:
            summarise(lines(), [FOG], drive_by_drive=True)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak_bytes(10)  # what is imported late is there from now on
    few, many = peak_bytes(10), peak_bytes(60)
    assert many - few < 50 * 1000, "for each of 50 drives more a dozen sums, whose 60 pairs would take 40 kB"
