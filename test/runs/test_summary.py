# SPDX-License-Identifier: Apache-2.0
"""Relation outcomes, exit codes and the totals of a run, from journal lines made by hand."""

from __future__ import annotations

import gc
import itertools
import json
import tracemalloc
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.base.errors import ExitCode, InfrastructureError
from mt_nodes.data.verdict import Judgement, Outcome, Pair, RelationOutcome, Verdict
from mt_nodes.engine.summary.outcomes import PairTally, RelationEvidence, exit_code, relation_outcome
from mt_nodes.engine.summary.summary import RelationInfo, summarise

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


def evidence(**given: Any) -> RelationEvidence:
    """Thirty frames and nothing violated, unless told; ``p`` alone stands for all three."""
    clean, p = PairTally(30, 0), given.get("p", 1.0)
    base: dict[str, Any] = {
        "kind": "expected",
        "min_decided": 20,
        "frames": given.get("pairs", clean).decided,
        "pairs": clean,
        "control": clean,
        "sham": clean,
        "p_background": p,
        "p": p,
        "p_adjusted": p,
        "test": "exact McNemar test over 30 frames",
    }
    return RelationEvidence(**{**base, **given})


def judged(**given: Any) -> RelationOutcome:
    return relation_outcome(evidence(**given))[0]


U, F, N, P = RelationOutcome.UNSTABLE, RelationOutcome.FAIL, RelationOutcome.INCONCLUSIVE, RelationOutcome.PASS


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        # 1: control or sham violated, not exceeded; goes before everything else
        ({"control": PairTally(30, 1), "pairs": PairTally(30, 1)}, U),
        ({"sham": PairTally(30, 1), "pairs": PairTally(30, 1)}, U),
        ({"control": PairTally(30, 1), "pairs": PairTally(30, 0)}, U),
        ({"control": PairTally(30, 1), "pairs": PairTally(30, 4), "kind": "necessary", "p": 0.06}, U),
        ({"control": PairTally(30, 1), "pairs": PairTally(5, 1), "kind": "necessary"}, U),
        ({"control": PairTally(30, 1), "pairs": PairTally(30, 9), "p": None}, U),
        ({"control": PairTally(30, 1), "pairs": PairTally(30, 2), "tolerated_rate": 0.3, "upper": 0.2}, U),
        # 1 does not apply when the relation exceeds them: on to 3, 4 or 5
        ({"control": PairTally(30, 1), "pairs": PairTally(30, 12), "p": 0.01}, F),
        ({"control": PairTally(9, 1), "pairs": PairTally(9, 9), "p": 0.01, "kind": "necessary"}, N),
        ({"control": PairTally(30, 1), "pairs": PairTally(30, 12), "p": 0.01, "p_adjusted": 0.2}, N),
        (
            {
                "control": PairTally(30, 1),
                "pairs": PairTally(30, 9),
                "p_background": 0.01,
                "p": 0.3,
                "tolerated_rate": 0.4,
            },
            N,
        ),
        # 2: necessary, clean background, even below the minimum
        ({"kind": "necessary", "pairs": PairTally(30, 1)}, F),
        ({"kind": "necessary", "pairs": PairTally(1, 1), "control": PairTally(1, 0), "sham": PairTally(0, 0)}, F),
        ({"kind": "necessary", "pairs": PairTally(30, 1), "control": PairTally(0, 0)}, F),
        # 3: too few; nothing decided is never enough, whatever the minimum, and draws are no further frames
        ({"pairs": PairTally(19, 0)}, N),
        ({"pairs": PairTally(19, 19), "p": 1e-6}, N),
        ({"kind": "necessary", "pairs": PairTally(19, 0)}, N),
        ({"pairs": PairTally(0, 0), "min_decided": 0}, N),
        ({"pairs": PairTally(20, 0), "frames": 1}, N),
        ({"pairs": PairTally(400, 0), "frames": 19}, N),
        ({"pairs": PairTally(20, 0)}, P),
        # violations with nothing at all to compare with are no finding and no pass
        ({"pairs": PairTally(30, 5), "control": PairTally(), "sham": PairTally(), "p": None}, N),
        ({"kind": "necessary", "pairs": PairTally(30, 5), "control": PairTally(), "sham": PairTally(), "p": None}, N),
        # unless the check needs no such thing
        (
            {"kind": "necessary", "pairs": PairTally(30, 1), "control": PairTally(), "sham": PairTally(), "p": None}
            | {"demands_of_itself": True},
            F,
        ),
        # 4: stands out
        ({"pairs": PairTally(30, 6), "p": 0.016}, F),
        # 5: violations that do not, in every way in which they may not
        ({"pairs": PairTally(30, 3), "p": 0.125}, N),
        ({"pairs": PairTally(30, 6), "p": 0.05}, N),
        ({"pairs": PairTally(30, 8), "p": 0.0039, "p_adjusted": 0.066}, N),
        ({"pairs": PairTally(300, 2), "p": 0.25}, N),
        ({"pairs": PairTally(36, 36), "p": 0.5}, N),
        # 6
        ({}, P),
        ({"kind": "necessary"}, P),
        ({"control": PairTally(), "sham": PairTally(), "p": None}, P),
        # a rate that the relation states
        ({"pairs": PairTally(300, 2), "p": 0.25, "tolerated_rate": 0.05, "upper": 0.03}, P),
        ({"pairs": PairTally(300, 2), "p": 0.25, "tolerated_rate": 0.05, "upper": 0.06}, N),
        ({"pairs": PairTally(300, 90), "p": 0.001, "tolerated_rate": 0.05, "upper": 0.4}, F),
        ({"kind": "necessary", "pairs": PairTally(300, 1), "tolerated_rate": 0.05, "upper": 0.03}, F),
        ({"pairs": PairTally(9, 1), "tolerated_rate": 0.9, "upper": 0.5}, N),
    ],
)
def test_relation_outcome_is_the_first_rule_that_applies(given_: dict[str, Any], expected: RelationOutcome) -> None:
    assert judged(**given_) is expected


def test_what_does_not_stand_out_says_what_would_decide() -> None:
    why = relation_outcome(evidence(pairs=PairTally(30, 3), p=0.125, more="30 more frames"))[1]
    assert why == (
        "3 violated pairs do not stand out from control 0 of 30, sham 0 of 30; 30 more frames like these would decide "
        "(p = 0.12, adjusted p = 0.12, exact McNemar test over 30 frames)"
    )
    why = relation_outcome(evidence(pairs=PairTally(30, 8), p=0.004, p_adjusted=0.07, more="1 more drive"))[1]
    assert "stand out from control 0 of 30, sham 0 of 30 by themselves, but not beside the other relations" in why
    nothing = {"pairs": PairTally(30, 8), "p": None, "control": PairTally(), "sham": PairTally()}
    assert "tolerated_rate" in relation_outcome(evidence(**nothing))[1]


def test_a_reason_tells_one_pair_from_several_and_which_test_gave_which_p_value() -> None:
    one = {"pairs": PairTally(30, 1), "p": 0.5}
    assert relation_outcome(evidence(**one))[1].startswith("one violated pair does not stand out from")
    assert "one violated pair stands out from" in relation_outcome(evidence(pairs=PairTally(30, 1), p=0.01))[1]
    noisy = relation_outcome(evidence(**one, control=PairTally(30, 1), test_background="sign-flip test over 6 drives"))[
        1
    ]
    assert noisy == (
        "one violated pair does not exceed control 1 of 30, sham 0 of 30 (p = 0.5, sign-flip test over 6 drives)"
    )
    both = relation_outcome(evidence(pairs=PairTally(30, 3), p=0.25, p_adjusted=1.0, test_alone="test over 3 blocks"))[
        1
    ]
    assert both.endswith("(p = 0.25, test over 3 blocks; adjusted p = 1, exact McNemar test over 30 frames)")


def test_what_is_violated_seldom_enough_but_in_too_few_pairs_says_so() -> None:
    few = {"pairs": PairTally(23, 1), "p": 1.0, "tolerated_rate": 0.2, "upper": 0.21, "more": "23 more frames"}
    assert relation_outcome(evidence(**few)) == (
        N,
        "one violated pair is within the tolerated rate of 0.2, but of so little input the true rate could be as high "
        "as 0.21; 23 more frames like these would decide (p = 1, adjusted p = 1, exact McNemar test over 30 frames)",
    )
    often = relation_outcome(evidence(**{**few, "pairs": PairTally(23, 6)}))[1]
    assert "do not stand out from control 0 of 30, sham 0 of 30 and the tolerated rate of 0.2; 23 more" in often


def test_the_reason_is_the_contracts() -> None:
    outcome, why = relation_outcome(evidence(kind="necessary", pairs=PairTally(26, 1)))
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
    few = summarise(run("fog", 30, range(0, 30, 12)), [FOG])["relations"]["fog"]
    many = summarise(run("fog", 30, range(0, 30, 3)), [FOG])["relations"]["fog"]
    assert (few["outcome"], many["outcome"]) == ("INCONCLUSIVE", "FAIL")
    assert (few["p"], few["p_adjusted"]) == (0.125, 0.125)
    assert "sign-flip test over 3 blocks of 10 frames, each counted 2 times" in many["why"]


def test_exceeding_control_alone_is_not_enough() -> None:
    result = summarise(run("fog", 30, range(9), sham=range(8)), [FOG])["relations"]["fog"]
    assert result["outcome"] == "UNSTABLE"
    assert result["p_adjusted"] == 0.5


def test_pairing_is_by_episode_and_bundle() -> None:
    """Violations on frames where the control is violated too are nobody's finding; elsewhere they are."""
    same = summarise(run("fog", 30, range(9), control=range(9)), [FOG])["relations"]["fog"]
    elsewhere = summarise(run("fog", 30, (b for b in range(30) if b % 3), control=[0]), [FOG])["relations"]["fog"]
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
    lines = run("fog", 30, (b for b in range(30) if b % 10 < 8), control=(b for b in range(30) if b % 10 < 3))
    bad = [(n, b, Outcome.VIOLATED if b % 10 < 3 else Outcome.HOLDS) for n in "12" for b in range(30)]
    lines += [line("identity", b, outcome, draw=f"{n}@fog") for n, b, outcome in bad]
    assert summarise(lines, [FOG])["relations"]["fog"]["outcome"] == "FAIL"


def test_holm_counts_the_relations_and_moves_one_between_fail_and_inconclusive_only() -> None:
    """Forty beside it, then; alone it fails, and the table has both p-values."""
    spread = range(0, 30, 6)
    names = [f"quiet_{i}" for i in range(40)]
    lines = run("fog", 30, spread) + [each for name in names for each in run(name, 30)]
    result = summarise(lines, [FOG, *(RelationInfo(name, "expected") for name in names)])["relations"]
    alone = summarise(run("fog", 30, spread), [FOG])["relations"]["fog"]
    assert (alone["outcome"], alone["p"], alone["p_adjusted"]) == ("FAIL", 1 / 32, 1 / 32)
    assert (result["fog"]["outcome"], result["fog"]["p"]) == ("INCONCLUSIVE", 1 / 32)
    assert result["fog"]["p_adjusted"] == 1.0
    assert {result[n]["outcome"] for n in names} == {"PASS"}


def test_gains_never_make_up_for_losses() -> None:
    """Four of 1,000 pairs lost, and 200 gained or none beside them: before, the gains made a PASS of it."""
    lost = run("fog", 1000, [100, 300, 500, 700])
    gained = [{**each, "gained": 1} if i < 1000 and i % 5 == 1 else each for i, each in enumerate(lost)]
    found = [summarise(lines, [FOG])["relations"]["fog"] for lines in (lost, gained)]
    assert [(one["outcome"], one["lost"], one["gained"]) for one in found] == [
        ("INCONCLUSIVE", 4, 0),
        ("INCONCLUSIVE", 4, 200),
    ]


def test_draws_of_few_frames_do_not_pass() -> None:
    """`--limit 1 --draws 20`: twenty pairs of one frame were taken for enough."""
    lines = [line("fog", 0, draw=str(n)) for n in range(20)]
    lines += [line(arm, 0, draw=f"{n}@fog") for arm in ("identity", "points_permuted") for n in range(20)]
    fog = summarise(lines, [FOG])["relations"]["fog"]
    assert (fog["outcome"], fog["decided"], fog["why"]) == ("INCONCLUSIVE", 20, "1 frame decided, at least 20 needed")


def test_a_relation_with_nothing_to_compare_with_is_held_to_the_rate_that_it_tolerates() -> None:
    """Control and sham have no added object: they decide nothing of whether it is found."""

    def found(missed: int, tolerated: float | None, kind: str = "expected", beside: int = 0) -> Line:
        lines = [line("seen", b, Outcome.VIOLATED if b < missed else Outcome.HOLDS) for b in range(26)]
        for arm, b in itertools.product(("identity", "points_permuted"), range(26)):
            lines.append(line(arm, b, Outcome.HOLDS if b < beside else Outcome.NOT_APPLICABLE, draw="0@seen"))
        info = RelationInfo("seen", kind, tolerated_rate=tolerated, demands_of_itself=True)
        return dict(summarise(lines, [info])["relations"]["seen"])

    assert found(26, 0.2)["outcome"] == "FAIL", "it could never fail before"
    assert found(26, None)["outcome"] == "INCONCLUSIVE"
    assert "the tolerated rate of 0.2 (p" in found(26, 0.2)["why"]
    assert found(1, 0.7)["outcome"] == "PASS" and "0.7 tolerated" in found(1, 0.7)["why"]
    assert found(1, 0.05)["outcome"] == "INCONCLUSIVE"
    assert found(26, 0.2, beside=2)["outcome"] == "FAIL", "control that is clean on two frames is no hindrance"
    assert found(0, None)["outcome"] == "PASS"
    assert found(1, None, "necessary")["outcome"] == "FAIL"


def test_a_long_drive_is_tested_by_blocks() -> None:
    burst = summarise(run("fog", 200, range(10)), [FOG])["relations"]["fog"]
    spread = summarise(run("fog", 200, range(0, 200, 20)), [FOG])["relations"]["fog"]
    assert (burst["violated"], spread["violated"]) == (10, 10)
    assert (burst["outcome"], spread["outcome"]) == ("INCONCLUSIVE", "FAIL")
    assert "20 blocks of 10 frames" in burst["why"]


def test_the_frames_of_one_scene_are_one_observation() -> None:
    """Seven violations in a queue, from one fragment of a box, were told as seven of 26 independent frames."""
    lines = run("fog", 26, range(10, 17))
    queue = [{**row, "scene": 10} if 10 < (Pair.parse(row["pair"]).bundle or 0) < 17 else row for row in lines]
    driving, standing = (summarise(each, [FOG])["relations"]["fog"] for each in (lines, queue))
    assert (standing["violated"], standing["decided"], standing["frames"]) == (7, 26, 26)
    assert (standing["p"], standing["test"]) == (0.5, "exact McNemar test over 20 scenes")
    assert standing["ci95_method"] == "Wilson, cluster-robust over 20 scenes"
    assert driving["p"] < 0.5 and driving["ci95_method"] == "Wilson, 26 frames taken as independent"
    assert standing["ci95"][1] > driving["ci95"][1]


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
    assert few["outcome"] == "INCONCLUSIVE", "three rounds show nothing, and what is violated throughout is no PASS"
    assert "3 more rounds over new frames like these would decide" in few["why"]


def in_laps(frames: int, lines: list[Line]) -> list[Line]:
    """The same lines, as if a bag of so many frames had been looped: each lap is an episode and has the same stamps."""
    made = []
    for row in lines:
        lap, frame = divmod(Pair.parse(row["pair"]).bundle or 0, frames)
        pair = replace(Pair.parse(row["pair"]), episode=lap, bundle=frame)
        made.append({**row, "pair": str(pair), "stamp_ns": 10**17 + frame})
    return made


def test_each_lap_of_a_looped_bag_is_the_same_drive_and_the_same_frames() -> None:
    rows = live(12, range(12))
    one = summarise(in_laps(360, rows), [FOG])["relations"]["fog"]
    assert (one["decided"], one["frames"], one["drives"]) == (120, 120, 1)
    laps = summarise(in_laps(45, rows), [FOG])["relations"]["fog"]
    assert (laps["decided"], laps["frames"], laps["drives"]) == (120, 30, 1)
    assert laps["ci95"] != one["ci95"] and "drive" not in laps["ci95_method"]
    apart = summarise([{**row, "pair": row["pair"]} for row in rows], [FOG])["relations"]["fog"]
    assert apart == one, "a run in which no lap ends is as it was"


def test_rounds_over_the_same_frames_of_a_looped_bag_are_one_case() -> None:
    """A bag as long as a round: fog always has the same ten frames, and control others."""
    same = summarise(in_laps(30, live(12, range(12))), [FOG])["relations"]["fog"]
    assert same["outcome"] not in ("FAIL", "PASS") and "1 round" in same["test"], same["test"]
    shifting = summarise(in_laps(45, live(12, range(12))), [FOG])["relations"]["fog"]
    assert "3 rounds" in shifting["test"], shifting["test"]
    wrapped = summarise(in_laps(55, live(12, range(12))), [FOG])["relations"]["fog"]
    assert "5 rounds" in wrapped["test"], "one that begins at frame 50 of 55 is near that at frame 0"
    long = summarise(in_laps(3600, live(120, range(120))), [FOG])["relations"]["fog"]
    assert long["outcome"] == "FAIL" and "120 rounds" in long["test"]


def test_who_joins_a_loop_in_the_middle_or_misses_frames_sees_the_same_drive() -> None:
    def seen(episode: int, stamps: Iterable[int]) -> list[Line]:
        rows = enumerate(stamps)
        return [{**line("fog", i, episode=episode), "stamp_ns": s, "round": 0} for i, s in rows]

    joined = [*seen(0, range(60, 100)), *seen(1, range(100)), *seen(2, range(0, 100, 2)), *seen(3, range(100))]
    fog = summarise(joined, [FOG])["relations"]["fog"]
    assert (fog["decided"], fog["frames"], fog["drives"]) == (290, 100, 1)
    parts = [*seen(0, range(10)), *seen(1, range(500, 510))]
    fog = summarise([*parts, *seen(2, range(10)), *seen(3, range(500, 510))], [FOG])["relations"]["fog"]
    assert (fog["frames"], fog["drives"]) == (20, 2), "stamps that jump ahead to what is new are another drive"
    standing = summarise(seen(0, [7] * 40), [FOG])["relations"]["fog"]
    assert (standing["decided"], standing["frames"]) == (40, 1), "one frame, looped"


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


@pytest.mark.parametrize(
    ("stamps", "noted"), [((0, 0, 0), True), ((0, 5, 6), False), ((5, 0, 0), False), ((0,), False), ((7, 8), False)]
)
def test_inputs_without_any_stamp_are_noted(stamps: tuple[int, ...], noted: bool) -> None:
    lines = [{**row, "stamp_ns": stamps[Pair.parse(row["pair"]).bundle or 0]} for row in run("noise", len(stamps))]
    assert ("unstamped" in summarise(lines, [NOISE])) == noted
