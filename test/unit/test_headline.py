# SPDX-License-Identifier: Apache-2.0
"""The outcome of a run in one sentence: it says what was lost where, and nothing better than the verdict."""

from __future__ import annotations

import datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from mt_nodes.base import plugins
from mt_nodes.base.errors import ExitCode
from mt_nodes.base.jsonl import write_result
from mt_nodes.engine.next_steps import next_steps
from mt_nodes.engine.summary.campaign_headline import campaign_headline
from mt_nodes.engine.summary.headline import Headline, headline
from mt_nodes.engine.summary.shrunk_headline import shrunk_headline
from mt_nodes.engine.summary.summary import RelationInfo, summarise
from mt_nodes.engine.summary.worst_pairs import WorstPairs
from mt_nodes.engine.waivers import Waiver, apply_waivers
from mt_nodes.relations.change_words import PHRASES, describe_change
from mt_nodes.runs.moral.moral_headline import moral_headline

NOISE = {"id": "noise", "kind": "necessary", "mutate": [{"noise_outside_roi": {"points": 1000}}], "check": None}
FOG = {"id": "fog_10", "kind": "expected", "mutate": [{"fog": {"visibility_m": 80.0}}], "check": None}
JUDGED = {"car": [[0, 0, 6], [20, -30, 5]], "cyclist": [[10, 0, 1]]}


def line(bundle: int | str, outcome: str = "HOLDS", pair: str = "noise/0", **more: Any) -> dict[str, Any]:
    relation = pair.split("/")[0]
    return {
        "type": "verdict",
        "pair": f"{more.pop('episode', 0)}/{bundle}/{pair}",
        "relation": relation,
        **{"outcome": outcome, "reason": "", "lost": 0, "gained": 0, "margin": None, "unit": "obstacles"},
        **more,
    }


def lost(bundle: int, *labels: str) -> dict[str, Any]:
    places = [[9.0, 1.0, label] for label in labels]
    detail = {"lost_at": places, "judged_in": JUDGED}
    return line(bundle, "VIOLATED", lost=len(labels), margin=-len(labels), reason="lost", detail=detail)


def flicker(outcome: str = "HOLDS", relation: str = "noise", count: int = 25) -> list[dict[str, Any]]:
    return [line(n, outcome, f"{arm}/0@{relation}") for arm in ("identity", "points_permuted") for n in range(count)]


def told(lines: list[dict[str, Any]], *relations: dict[str, Any], **how: Any) -> Headline:
    return headline(summarise(lines, [RelationInfo.of(relation) for relation in relations or (NOISE,)], **how))


def test_a_fail_says_the_change_what_vanishes_how_often_and_the_own_flicker() -> None:
    worst = lost(7, "car", "car", "car", "car", "cyclist")
    lines = [worst, lost(3, "car"), *(line(n) for n in range(25) if n not in (3, 7)), *flicker()]
    found = told(lines)
    assert found.sentence == (
        "With 1,000 noise points outside the region, the stack loses obstacles in 2 of 25 frames, at worst 4 of 11 "
        "cars and 1 of 1 cyclist at once; the stack's own flicker is 0 (of 50 comparisons without the change)."
    )
    assert (found.verdict, found.relation, found.pair) == ("FAIL", "noise", "0/7/noise/0")


def test_what_is_violated_by_gains_alone_is_not_said_to_be_lost() -> None:
    gained = line(1, "VIOLATED", gained=2, reason="gained car at (1, 2) m", margin=-2)
    lines = [*(line(n) for n in range(4, 26)), *flicker()]
    both = told([lost(3, "car"), gained, *lines])
    assert "the stack loses or gains obstacles in 2 of 24 frames, at worst losing 1 of 11 cars at once" in both.sentence
    alone = told([gained, *lines])
    assert "violates the relation in 1 of 23 frames (the worst: gained car at (1, 2) m)" in alone.sentence


def test_the_worst_pair_is_none_of_control_and_sham_and_the_worst_of_the_relation_that_fails_most() -> None:
    fog = [line(n, "HOLDS", "fog_10/0") for n in range(25)]
    noisy = line(1, "VIOLATED", "identity/0@fog_10", lost=9, margin=-9)
    found = told([lost(3, "car"), *(line(n) for n in range(24) if n != 3), *flicker(), *fog, noisy], NOISE, FOG)
    assert found.pair == "0/3/noise/0"
    assert found.rest == "Of 2 relations: 1 FAIL, 1 UNSTABLE."
    # The control of others may be tested itself.
    worst = WorstPairs()
    assert list(worst.passing([line(5, "VIOLATED", "identity/0@noise", lost=9)])) and worst.of("identity") is None
    assert list(worst.passing([line(2, "VIOLATED", "identity/0", lost=1)]))
    assert (worst.of("identity") or {})["pair"] == "0/2/identity/0"


def test_a_check_of_drives_is_told_by_its_worst_reason_and_counts_drives() -> None:
    hit: dict[str, Any] = {"episode": 2, "reason": "the source hits nobody, the follow-up walker", "unit": "collisions"}
    lines = [line("-", "VIOLATED" if n == 2 else "HOLDS", **{**hit, "episode": n}) for n in range(8)]
    lines += [line("-", "HOLDS", f"{arm}/0@noise", episode=n) for arm in ("identity",) for n in range(8)]
    assert told(lines).sentence == (
        "With 1,000 noise points outside the region, the stack violates the relation in 1 of 8 drives (the worst: the "
        "source hits nobody, the follow-up walker); the stack's own flicker is 0 (of 8 comparisons without the change)."
    )


def test_a_pass_says_what_was_tested_and_how_sure_it_is() -> None:
    lines = [line(n) for n in range(25)]
    found = told(lines + flicker())
    assert found.verdict == "PASS"
    assert found.sentence == "With 1,000 noise points outside the region, no violation in 25 frames."
    assert found.rest == "The true rate of violations may still be up to 13.3 % (95 % confidence)."
    fog = [line(n, "HOLDS", "fog_10/0") for n in range(25)]
    both = told(lines + fog, NOISE, FOG)
    changes = "1,000 noise points outside the region; fog of 80 m visibility"
    assert both.sentence == f"No violation of 2 relations in 25 frames each: {changes}."


def test_a_vague_pass_says_how_many_more_frames_it_needs() -> None:
    found = summarise([line(n) for n in range(8)], [RelationInfo("noise", "necessary", min_decided=5)])
    row = found["relations"]["noise"]
    assert row["outcome"] == "PASS" and row["ci95"][1] > 0.2
    more = int(row["more_until_20_percent"].split()[0])
    assert headline(found).rest.endswith(f"{more} more frames like these would bring this down to 20 %.")
    enough = summarise([line(n) for n in range(8 + more)], [RelationInfo("noise", "necessary", min_decided=5)])
    short = summarise([line(n) for n in range(7 + more)], [RelationInfo("noise", "necessary", min_decided=5)])
    assert enough["relations"]["noise"]["ci95"][1] <= 0.2 < short["relations"]["noise"]["ci95"][1]
    assert "more_until_20_percent" not in enough["relations"]["noise"]


def test_an_inconclusive_run_says_what_is_missing() -> None:
    few = told([line(n) for n in range(12)])
    assert (few.verdict, few.rest) == ("INCONCLUSIVE", "It needs 8 more frames like these.")
    assert few.sentence == "Not enough to decide: 0 of 12 frames violated with 1,000 noise points outside the region."
    never = told([line(n, "NOT_APPLICABLE", reason="no obstacle") for n in range(3)])
    assert never.sentence.startswith("Nothing was decided with 1,000 noise points") and "no obstacle" in never.sentence
    assert told([], NOISE).verdict == "INCONCLUSIVE"
    assert headline(summarise([], [])).sentence == "Nothing was tested: no relation was offered."


def test_an_unstable_stack_is_told_so() -> None:
    lines = [lost(n, "car") for n in range(6)] + [line(n) for n in range(6, 25)] + flicker("VIOLATED", count=6)
    found = told(lines)
    assert found.verdict == "UNSTABLE"
    assert found.sentence.startswith("The stack differs from itself too much to tell: 6 of 25 frames are violated with")


TROUBLES: tuple[dict[str, Any], ...] = (
    {},
    {"infrastructure": "the bag is damaged"},
    {"interrupted": True},
    {"isolation": "a stranger in the domain"},
    {"usage": "no such topic"},
)


@pytest.mark.parametrize("how", TROUBLES, ids=lambda how: next(iter(how), "none"))
def test_it_never_says_anything_better_than_the_exit_code_and_the_relations(how: dict[str, Any]) -> None:
    arms = {
        "PASS": [line(n) for n in range(25)],
        "FAIL": [lost(3, "car"), *(line(n) for n in range(4, 28)), *flicker()],
        "INCONCLUSIVE": [line(n) for n in range(3)],
        "UNSTABLE": [lost(3, "car"), *(line(n) for n in range(4, 28)), *flicker("VIOLATED")],
        "NONE": [line(n, "ERROR") for n in range(25)],
    }
    for one, other in product(arms.values(), (None, "HOLDS", "NOT_APPLICABLE")):
        fog = [line(n, other, "fog_10/0") for n in range(25)] if other else []
        summary = summarise([*one, *fog], [RelationInfo.of(r) for r in ((NOISE, FOG) if other else (NOISE,))], **how)
        found, outcomes = headline(summary), {r["outcome"] for r in summary["relations"].values()}
        assert (found.verdict == "PASS") == (summary["exit_code"] == 0) == (not how and outcomes == {"PASS"})
        if found.verdict != "PASS":
            assert "no violation" not in str(found).lower() and found.sentence
        if "FAIL" in outcomes:
            assert "the stack loses obstacles in 1 of" in found.sentence
        if summary["exit_code"] == ExitCode.INTERRUPTED:
            assert found.verdict == "INTERRUPTED" and "interrupted before its end" in str(found)


def test_a_campaign_says_that_of_its_worst_cell_and_never_more_than_its_exit_code() -> None:
    fails = summarise([lost(3, "car"), *(line(n) for n in range(4, 28)), *flicker()], [RelationInfo.of(NOISE)])
    passes = summarise([line(n) for n in range(25)], [RelationInfo.of(NOISE)])
    whole = {"cells": {"honest": passes, "faulty": fails}, "exit_code": 1, "exit_why": "x", "interrupted": False}
    told = campaign_headline(whole)
    assert (told.cell, told.found.relation, told.found.pair) == ("faulty", "noise", "0/3/noise/0")
    assert told.found.sentence.startswith("faulty: With 1,000 noise points outside the region, the stack loses")
    assert told.found.rest == "Of 2 relations: 1 FAIL, 1 PASS."
    cut = {"cells": {"honest": passes}, "exit_code": 3, "exit_why": "all pass so far, but time is over"}
    found = campaign_headline({**cut, "interrupted": False}).found
    assert (found.verdict, found.sentence) == ("INCONCLUSIVE", "All pass so far, but time is over.")
    good = campaign_headline({**cut, "exit_code": 0, "interrupted": False}).found
    assert good.verdict == "PASS" and campaign_headline({**cut, "cells": {}, "exit_code": 0}).found.verdict != "PASS"


def test_a_shrinking_says_how_small_it_became_and_never_that_anything_passes() -> None:
    ends = {"noise.points": {"before": "1000", "after": "707"}, "points": {"before": "1000", "after": "12"}}
    ends |= {"fog.visibility_m": {"before": "80", "after": "310.5"}, "frames": {"before": "3", "after": "3"}}
    shrunk = {
        "exit_code": 0,
        "first": {"failed": 5, "plays": 5},
        "before_after": ends,
        "steps": [{}],
        "notes": ["spent"],
    }
    found = shrunk_headline(shrunk)
    assert found.sentence == "1,000 → 707 points, 1,000 → 12 points, visibility m 80 → 310.5: the stack still fails."
    assert found.rest == "The original fails in 5 of 5 replays; 1 smaller form tried. Spent."
    same = shrunk_headline({**shrunk, "before_after": {"frames": ends["frames"]}})
    holds = shrunk_headline({"exit_code": 3, "first": {"failed": 0, "plays": 5}, "before_after": {}})
    assert same.sentence == "No smaller change was found that still fails."
    assert holds.sentence == "Nothing was reduced: the pair failed in 0 of 5 replays."
    assert [one.verdict for one in (found, same, holds)] == ["SHRUNK", "SHRUNK", "INCONCLUSIVE"]


def test_a_moral_campaign_says_its_most_violated_principle_and_passes_only_if_all_do() -> None:
    def principle(title: str, outcome: str, holds: int, violated: int) -> dict[str, Any]:
        return {"title": title, "outcome": outcome, "holds": holds, "violated": violated}

    case = {"principle": "a", "outcome": "VIOLATED", "changed": "1 adult and 1 boar", "reason": "only 1 adult hit"}
    failed = {"a": principle("A", "FAIL", 1, 3), "b": principle("B", "PASS", 4, 0)}
    summary = {"exit_code": 1, "exit_why": "FAIL: a", "principles": failed, "cases": {"a/1": case}, "revealing": []}
    found = moral_headline(summary)
    assert (
        found.sentence == "The stack violates 'A' in 3 of 4 decided cases: with 1 adult and 1 boar, only 1 adult hit."
    )
    assert (found.verdict, found.relation, found.pair, found.rest) == (
        "FAIL",
        "a",
        "a/1",
        "Of 2 principles: 1 FAIL, 1 PASS.",
    )
    good = {**summary, "exit_code": 0, "exit_why": "all pass", "principles": {"b": failed["b"]}}
    assert moral_headline(good).sentence == "'B': no violation in 4 decided cases."
    for code, principles in ((0, failed), (3, good["principles"]), (0, {}), (0, {"b": principle("B", "PASS", 0, 0)})):
        assert moral_headline({**good, "exit_code": code, "principles": principles}).verdict != "PASS"


def test_a_summary_that_contradicts_itself_is_no_pass() -> None:
    summary = summarise([line(n) for n in range(3)], [RelationInfo.of(NOISE)])
    assert headline({**summary, "exit_code": 0}).verdict == "INCONCLUSIVE"
    assert headline({**summarise([], []), "exit_code": 0}).verdict == "INCONCLUSIVE"


def test_what_is_waived_is_said_and_a_run_of_nothing_else_stays_a_fail(tmp_path: Path) -> None:
    violated = [lost(3, "car"), *(line(n) for n in range(4, 28)), *flicker()]
    fog = [line(n, "HOLDS", "fog_10/0") for n in range(25)]
    waiver = Waiver(relation="noise", reason="known", expires=datetime.date(2999, 1, 1))
    for lines, relations, verdict in ((violated + fog, (NOISE, FOG), "PASS"), (violated, (NOISE,), "FAIL")):
        summary = apply_waivers(summarise(lines, [RelationInfo.of(r) for r in relations]), lines, [waiver])
        assert summary["exit_code"] == 0
        found = headline(summary)
        assert found.verdict == verdict and "waived" in str(found).lower()


def test_a_summary_of_an_older_version_has_a_headline_too() -> None:
    summary = summarise([lost(3, "car"), *(line(n) for n in range(4, 28)), *flicker()], [RelationInfo.of(NOISE)])
    for key in ("worst", "change", "unit_of_input"):
        del summary["relations"]["noise"][key]
    assert headline(summary).sentence.startswith("With noise, the stack violates the relation in 1 of 25 frames;")


def test_every_phrase_belongs_to_a_plugin_and_is_filled_in() -> None:
    for name in PHRASES:
        assert plugins.get("mutations", name) or plugins.get("scenario_changes", name), name
    assert describe_change({"mutate": [{"object_added": {"kind": "adult"}}]}) == "an adult added"
    assert describe_change({"scenario": [{"object_added_far": {"count": 30, "kind": "adult"}}]}).startswith("30 adults")
    assert describe_change({"mutate": [{"points_dropped": {"share": 0.1}}]}) == "10 % of the points dropped"
    assert describe_change({"mutate": [{"sun_glare": {"half_angle_rad": 0.1}}]}) == "sun glare (half angle 0.1 rad)"
    assert describe_change({"mutate": [{"fog": {}}, {"of_a_plugin": {"x": 1}}]}) == "fog and of a plugin"


def test_next_steps_are_what_the_run_can_do(tmp_path: Path) -> None:
    failed = Headline("FAIL", "x", pair="0/3/noise/0")

    def steps(found: Headline, **request: Any) -> dict[str, str]:
        record = {"schema": 1, "request": request, "relations": []}
        write_result(tmp_path / "run.json", record)
        return {step.name: step.command for step in next_steps(tmp_path, found)}

    assert steps(failed, bags=["a"]) == {
        name: f"mt {name} {tmp_path} 0/3/noise/0" for name in ("show", "reproduce", "shrink")
    }
    assert list(steps(failed, config="live.yaml")) == ["show", "reproduce"]
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence/0_3_noise_0.mcap").touch()
    assert steps(failed, bags=["a"])["open"].endswith("evidence/0_3_noise_0.mcap")
    assert steps(Headline("INTERRUPTED", "x"), scenarios=["a"]) == {"resume": f"mt scenario --resume {tmp_path}"}
    found = steps(Headline("PASS", "x"), bags=["my bag"], relations=["noise"], stack="s", faults=["f"])
    assert found == {"search": "mt search 'my bag' --relation noise --reach range --stack s --fault f"}
    assert steps(Headline("INCONCLUSIVE", "x"), bags=["a"]) == {}


def test_a_pass_of_which_nothing_was_decided_is_none() -> None:
    """As another version, or a damaged directory, may have it."""
    summary = summarise([line(n) for n in range(25)], [RelationInfo.of(NOISE)])
    assert headline(summary).verdict == "PASS"
    summary["relations"]["noise"]["decided"] = 0
    assert headline(summary).verdict == "INCONCLUSIVE"
