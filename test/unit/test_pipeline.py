# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mutations_for_tests import SHADOW, Echo, Nothing, Shuffle
from recordings import bundles

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.seeds import foreseeing, generator
from mt_nodes.data.messages import Bundle
from mt_nodes.engine.message_digests import sha256_of_followup
from mt_nodes.relations import pipeline
from mt_nodes.relations.pipeline import DerivedFollowup, MutationPipeline


def hashes(made: list[DerivedFollowup]) -> list[str]:
    return [sha256_of_followup(d.followup) for d in made]


def test_order_and_company_do_not_change_a_followup() -> None:
    source = bundles(2)
    one, other = (MutationPipeline([Shuffle()], 7, "r") for _ in range(2))
    forward = [one.derive(b) for b in source]
    # The state of the episode begins with its first bundle in both.
    begun = other.derive(source[0]), other.derive(source[1], "1"), other.derive(source[1])
    assert hashes(forward) == hashes([begun[0], begun[2]])
    assert len({*hashes(forward), *hashes(list(begun))}) == 3


def test_what_was_foreseen_changes_no_followup() -> None:
    """Neither of the bundle that came nor of another, nor of the same bundle drawn again."""
    source = bundles(3)
    plain, foreseeing = (MutationPipeline([Shuffle(every_third=False)] * 2, 7, "r") for _ in range(2))
    expected = [plain.derive(b, n) for b in source for n in ("0", "0", "1")]
    made = []
    for bundle, foreseen in zip(source, (0, 2, 2), strict=True):
        foreseeing.foresee(0, foreseen, bundle)
        foreseeing.foresee(0, foreseen, bundle)
        made += [foreseeing.derive(bundle, n) for n in ("0", "0", "1")]
    assert hashes(made) == hashes(expected)


def test_what_was_foreseen_is_used_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[object, ...]] = []
    monkeypatch.setattr(pipeline, "generator", lambda *key: (made.append(key), generator(*key))[1])
    monkeypatch.setattr(pipeline, "foreseeing", lambda key: (made.append(key), foreseeing(key))[1])
    (bundle,) = bundles(1)
    maker = MutationPipeline([Shuffle()], 7, "r")
    maker.derive(bundle)
    made.clear()
    maker.foresee(0, 0, bundle)
    created = len(made)
    maker.derive(bundle)
    assert len(made) == created > 0, "what was foreseen is taken"
    maker.derive(bundle)
    assert len(made) == created + 1, "and cannot be taken twice: a generator goes on"


@pytest.mark.parametrize("change", [{"seed": 8}, {"relation": "s"}, {"episode": 1}, {"index": 1}, {"draw": "1"}])
def test_every_part_of_the_identity_changes_the_draw(change: dict[str, int]) -> None:
    def order(seed: int = 7, relation: str = "r", episode: int = 0, index: int = 0, draw: str = "0") -> list[int]:
        bundle = replace(bundles(1)[0], episode=episode, index=index)
        (made,) = MutationPipeline([Shuffle()], seed, relation).derive(bundle, draw).draws
        return list(made["order"])

    assert order() == order()
    assert order() != order(**change)  # type: ignore[arg-type]


def test_state_lasts_an_episode() -> None:
    pipeline = MutationPipeline([Shuffle()], 7, "r")
    states = [pipeline.derive(replace(bundles(2)[i], episode=e)).draws[0]["of_episode"] for e in (0, 1) for i in (0, 1)]
    assert states[0] == states[1] != states[2] == states[3]


class Renewed(Shuffle):
    """Begins again when the cloud is a whole one at an even bundle."""

    def ended(self, state: int, bundle: Bundle) -> bool:
        return bundle.index % 2 == 0 and len(bundle.cloud()) == len(bundles(1)[0].cloud())


def test_what_is_over_begins_again_in_each_pass_over_an_episode_at_the_same_bundles() -> None:
    source = [replace(bundles(1)[0], index=index) for index in range(6)]
    pipeline, fresh = (MutationPipeline([Renewed(every_third=False)], 7, "r") for _ in range(2))
    first, second = ([pipeline.derive(b, n).draws[0]["of_episode"] for b in source] for n in ("0", "1"))
    assert first == second
    assert first[0] == first[1] != first[2] == first[3] != first[4] == first[5]
    for bundle in source[:4]:
        fresh.meet(bundle)
        if not fresh.begun(bundle):
            fresh.derive(bundle)
    assert fresh.derive(source[4]).draws[0]["of_episode"] == first[4]


def test_whether_it_is_over_is_told_by_the_source_not_by_what_other_mutations_made_of_it() -> None:
    source = [replace(bundles(1)[0], index=index) for index in (0, 2)]
    pipeline = MutationPipeline([Shuffle(drop=1, every_third=False), Renewed(every_third=False)], 7, "r")
    first, second = (pipeline.derive(bundle).draws[1]["of_episode"] for bundle in source)
    assert first != second


def test_mutations_are_applied_to_all_that_the_former_made() -> None:
    (bundle,) = bundles(1)
    made = MutationPipeline([Echo(5), Shuffle(drop=3), Echo(2)], 7, "r").derive(bundle)
    assert [delay for delay, _ in made.followup.bundles] == [0, 2, 5, 7]
    assert [len(b.cloud()) for _, b in made.followup.bundles] == [47] * 4
    assert [sorted(d) for d in made.draws] == [["coin"], *[["gain", "of_episode", "order"]] * 2, *[["coin"]] * 2]
    assert not np.array_equal(made.draws[1]["order"], made.draws[2]["order"])
    assert made.effects.occluded == (SHADOW,)
    assert made.effects.numbers == {"echoes": 1, "dropped": 3}
    assert made.broken is None


def test_a_followup_is_made_again_from_its_draws() -> None:
    (bundle,) = bundles(1)
    pipeline = MutationPipeline([Echo(), Shuffle(drop=1)], 7, "r")
    made = pipeline.derive(bundle)
    again = MutationPipeline([Echo(), Shuffle(drop=1)], 0, "other").rebuild(bundle, made.draws)
    assert sha256_of_followup(again) == sha256_of_followup(made.followup)
    with pytest.raises(ValueError, match="got 2 draws, too few for echo \\+ shuffle"):
        pipeline.rebuild(bundle, made.draws[:2])
    with pytest.raises(ValueError, match="got 4 draws, 1 more than echo \\+ shuffle use"):
        pipeline.rebuild(bundle, [*made.draws, {}])


def test_what_cannot_be_done_is_said() -> None:
    third: Bundle = bundles(3)[2]
    with pytest.raises(NotApplicable, match="a third bundle"):
        MutationPipeline([Echo(), Shuffle()], 7, "r").derive(third)


def test_a_broken_guarantee_is_said_and_ends_the_chain() -> None:
    made = MutationPipeline([Shuffle(lie=True), Echo()], 7, "r").derive(bundles(1)[0])
    assert made.broken == "shuffle: 0 points lost, 0 promised"
    assert len(made.draws) == 1


def test_nothing_and_no_mutation() -> None:
    (bundle,) = bundles(1)
    assert MutationPipeline([Nothing(), Shuffle()], 7, "r").derive(bundle).followup.bundles == ()
    assert MutationPipeline([], 7, "r").derive(bundle).followup.first is bundle
