# SPDX-License-Identifier: Apache-2.0
"""The searches for what is smallest, how a difference is parted and put together, k of n: without any stack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recordings import cloud, image, stamp

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.stats.repeats import Confirm, Count, confirmed, counted_out
from mt_nodes.data.messages import Bundle, Cloud, Image, WorldMessage
from mt_nodes.data.outputs import Detections
from mt_nodes.engine.message_digests import sha256_of
from mt_nodes.engine.reduction.difference import BLOCK_PX, Difference
from mt_nodes.engine.reduction.reduction import Reduction
from mt_nodes.engine.reduction.row_matching import RowEdit
from mt_nodes.relations.relation import Relation, load_relation
from mt_nodes.relations.strength import Strength
from mt_nodes.runs.shrink.minimal import TOLERANCE, fewest, shortest, weakest
from mt_nodes.runs.shrink.shrinker import Budget, Shrinker


@given(st.integers(1, 300), st.data())
def test_fewest_comes_to_exactly_what_is_needed(count: int, data: st.DataObject) -> None:
    needed = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=8))
    asked: list[bytes] = []

    def fails(part: np.ndarray) -> bool:
        asked.append(part.tobytes())
        return needed <= set(part.tolist())

    assert set(fewest(np.arange(count), fails).tolist()) == needed
    assert len(asked) == len(set(asked)), "a part was asked about twice"


@given(st.integers(2, 60), st.integers(2, 10))
def test_fewest_of_any_k_comes_to_k(count: int, k: int) -> None:
    k = min(k, count)
    assert len(fewest(np.arange(count), lambda part: len(part) >= k)) == k


def test_fewest_is_quick_when_few_are_needed() -> None:
    tries = 0

    def fails(part: np.ndarray) -> bool:
        nonlocal tries
        tries += 1
        return {17, 60_000, 99_999} <= set(part.tolist())

    assert fewest(np.arange(100_000), fails).tolist() == [17, 60_000, 99_999]
    assert tries < 300


@given(st.integers(0, 400), st.integers(0, 400))
def test_shortest_finds_the_threshold(longest: int, threshold: int) -> None:
    threshold = min(threshold, longest)
    tried: list[int] = []

    def fails(length: int) -> bool:
        tried.append(length)
        return length >= threshold

    assert shortest(longest, fails) == threshold
    assert sum(tried) <= 16 * threshold + 16, "long ones are not tried when short ones do"


@given(st.sets(st.integers(0, 60)), st.integers(1, 60))
def test_shortest_of_islands_holds_one_below(islands: set[int], longest: int) -> None:
    failing = {n for n in islands if n <= longest} | {longest}
    found = shortest(longest, lambda n: n in failing)
    assert found in failing and found - 1 not in failing


@given(st.integers(1, 3000), st.integers(1, 3000), st.booleans())
def test_weakest_whole_number_is_the_threshold(strong: int, threshold: int, downwards: bool) -> None:
    """Whole numbers, to the last one; ``downwards``: what is larger is weaker."""
    weak, strong = (strong + 1, 1) if downwards else (1, strong + 1)
    threshold = min(threshold, max(weak, strong))
    axis = Strength(0, "m", "p", weak, strong, whole=True)
    found = weakest(axis, lambda v: v <= threshold if downwards else v >= threshold)
    assert found == threshold


@given(st.floats(0.001, 0.999), st.floats(0.01, 100.0), st.floats(0.01, 100.0))
def test_weakest_number_is_within_tolerance(at: float, weak: float, strong: float) -> None:
    axis = Strength(0, "m", "p", weak, strong)
    if abs(weak - strong) < 1e-3:
        return
    found = weakest(axis, lambda value: axis.fraction(value) >= at)
    assert at - 1e-9 <= axis.fraction(found) <= at + TOLERANCE + 1e-9


def test_what_fails_at_the_weak_end_is_not_bisected() -> None:
    asked: list[float] = []
    axis = Strength(0, "m", "p", 2.0, 8.0)
    assert weakest(axis, lambda value: asked.append(value) or True) == 2.0 and asked == [2.0]


def outcomes(text: str) -> Iterator[bool]:
    yield from (letter == "f" for letter in text)


@pytest.mark.parametrize(
    ("plays", "ask", "expected"),
    [
        ("fff", Confirm(3, 3), (3, 3, True)),
        ("h", Confirm(3, 3), (0, 1, False)),
        ("fh", Confirm(3, 3), (1, 2, False)),
        ("fhfff", Confirm(4, 5), (4, 5, True)),
        ("ffff", Confirm(4, 5), (4, 4, True)),
        ("fhh", Confirm(4, 5), (1, 3, False)),
    ],
)
def test_no_more_plays_than_are_needed(plays: str, ask: Confirm, expected: tuple[int, int, bool]) -> None:
    left = outcomes(plays)
    count = confirmed(lambda: next(left), ask)
    assert (count.failed, count.plays, count.enough) == expected
    assert not list(left) and count.mixed == (plays.count("f") not in (0, len(plays)))


def test_the_first_plays_are_all_played() -> None:
    left = outcomes("fhhhh")
    assert counted_out(lambda: next(left), 5).failed == 1 and not list(left)


@pytest.mark.parametrize("text", ["", "3", "3/2", "0/3", "a/b", "1/2000", "-1/3", "3/3/3"])
def test_bad_counts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected K/N"):
        Confirm.parse(text)


def raw(*names: int) -> np.ndarray:
    return np.array(names, dtype=np.uint32).view("V4")


rows = st.lists(st.integers(0, 6), max_size=30).map(lambda names: raw(*names))


@given(rows, rows, st.data())
def test_any_edit_can_be_undone_in_parts(before: np.ndarray, after: np.ndarray, data: st.DataObject) -> None:
    edit = RowEdit.matched(before, after)
    both = np.concatenate([before, after])
    assert both[edit.rows(np.ones(edit.atoms, dtype=bool))].tobytes() == after.tobytes()
    nothing = both[edit.rows(np.zeros(edit.atoms, dtype=bool))]
    assert sorted(nothing.view(np.uint32).tolist()) == sorted(before.view(np.uint32).tolist())
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=edit.atoms, max_size=edit.atoms)), dtype=bool)
    assert len(edit.rows(kept)) == len(before) + kept[: len(edit.added)].sum() - kept[len(edit.added) :].sum()


@given(rows, st.data())
def test_rows_that_come_back_stand_where_they_stood(before: np.ndarray, data: st.DataObject) -> None:
    distinct = np.unique(before)
    stays = np.array(data.draw(st.lists(st.booleans(), min_size=len(distinct), max_size=len(distinct))), dtype=bool)
    edit = RowEdit.matched(distinct, distinct[stays])
    back = np.concatenate([distinct, distinct[stays]])[edit.rows(np.zeros(edit.atoms, dtype=bool))]
    assert back.tobytes() == distinct.tobytes()


def of(*messages: Cloud | Image | WorldMessage) -> Bundle:
    kinds = {Cloud: "clouds", Image: "images", WorldMessage: "world_messages"}
    parts = {name: tuple(m for m in messages if type(m) is kind) for kind, name in kinds.items()}
    return Bundle(0, 0, stamp(0), **parts)  # type: ignore[arg-type]


def some(difference: Difference, *atoms: int) -> Bundle:
    kept = np.zeros(len(difference.kinds), dtype=bool)
    kept[list(atoms)] = True
    return difference.reduced(kept)


def test_points_that_were_added_and_removed() -> None:
    old = cloud(0)
    new = old.with_raw(np.concatenate([old.raw[:10], cloud(1, count=3).raw, old.raw[12:]]))
    difference = Difference.between(of(old), of(new))
    assert difference.counts() == {"points added": 3, "points removed": 2}
    assert difference.reduced(np.ones(5, dtype=bool)).clouds[0] is new
    assert some(difference).clouds[0] is old
    one = some(difference, 1).clouds[0]
    assert one.raw.tobytes() == np.insert(old.raw, 12, cloud(1, count=3).raw[1]).tobytes()
    gone = some(difference, 3).clouds[0]
    assert gone.raw.tobytes() == np.delete(old.raw, 10).tobytes()


def test_points_that_were_moved_stay_in_their_rows() -> None:
    old = cloud(0)
    points = old.raw.copy().view(old.points.dtype)
    points["x"][[4, 7]] += 1.0
    difference = Difference.between(of(old), of(replace(old, points=points)))
    assert difference.counts() == {"points changed": 2}
    one = some(difference, 1).clouds[0]
    assert np.flatnonzero(one.raw != old.raw).tolist() == [7] and one.points["x"][7] == points["x"][7]


def test_points_that_kept_their_place_are_changed_not_exchanged() -> None:
    old = cloud(0)
    points = old.raw.copy().view(old.points.dtype)
    points["ring"][5] += 1
    new = old.with_raw(np.delete(replace(old, points=points).raw, 20))
    difference = Difference.between(of(old), of(new))
    assert difference.counts() == {"points changed": 1, "points removed": 1}
    back = some(difference, 1).clouds[0]
    assert back.raw.tobytes() == np.delete(old.raw, 20).tobytes()


def test_an_order_or_a_stamp_cannot_be_divided() -> None:
    old = cloud(0)
    for new in (old.with_raw(old.raw[::-1]), replace(old, stamp_ns=old.stamp_ns + 1)):
        difference = Difference.between(of(old), of(new))
        assert difference.counts() == {"messages changed": 1}
        assert some(difference).clouds == (old,) and some(difference, 0).clouds == (new,)


def test_an_organised_cloud_keeps_its_rows() -> None:
    old = replace(cloud(0, count=40), height=4)
    points = old.raw.copy().view(old.points.dtype)
    points["x"][[0, 1]] = np.nan
    difference = Difference.between(of(old), of(replace(old, points=points)))
    one = some(difference, 0).clouds[0]
    assert difference.counts() == {"points changed": 2} and (one.height, len(one)) == (4, 40)
    fewer = old.with_raw(old.raw[:20], height=2)
    assert Difference.between(of(old), of(fewer)).counts() == {"messages changed": 1}


def test_pictures_go_back_block_by_block() -> None:
    pixels = np.zeros((40, 50, 3), dtype=np.uint8)
    old = replace(image(0), pixels=pixels)
    brighter = pixels.copy()
    brighter[0, 0], brighter[39, 49] = 1, 2
    difference = Difference.between(of(old), of(replace(old, pixels=brighter)))
    assert difference.counts() == {"blocks of pixels changed": 2}
    one = some(difference, 1).images[0].pixels
    assert one[39, 49, 0] == 2 and not one[:BLOCK_PX, :BLOCK_PX].any()


def test_objects_and_messages_that_are_gone() -> None:
    def result(*at: float) -> WorldMessage:
        return WorldMessage(
            "/objects", "objects", stamp(0), "map", Detections.make("map", stamp(0), [[x, 0, 0] for x in at])
        )

    difference = Difference.between(of(result(1.0, 2.0)), of(result(1.0, 2.0, 3.0, 4.0)))
    assert difference.counts() == {"objects added": 2}
    assert some(difference, 1).world_messages[0].data.center_m[:, 0].tolist() == [1.0, 2.0, 4.0]  # type: ignore[union-attr]
    lost = Difference.between(of(cloud(0), image(0)), of(cloud(0)))
    assert lost.counts()["messages changed"] == 1 and some(lost).images


def test_what_is_alike_has_no_atoms() -> None:
    difference = Difference.between(of(cloud(0), image(0)), of(cloud(0), image(0)))
    assert not difference.parts and difference.counts() == {}


@given(st.sampled_from([None, [True, False, True], []]))
def test_a_reduction_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, kept: list[bool] | None
) -> None:
    path = tmp_path_factory.mktemp("reduction") / "reduction.npz"
    Reduction(2, 9, None if kept is None else np.array(kept, dtype=bool)).save(path)
    again = Reduction.load(path)
    assert (again.first, again.end) == (2, 9)
    assert (again.mask is None) == (kept is None) and (kept is None or again.mask.tolist() == kept)  # type: ignore[union-attr]


def test_a_damaged_reduction_is_told(tmp_path: Path) -> None:
    for content in (b"", b"PK no archive"):
        (tmp_path / "reduction.npz").write_bytes(content)
        with pytest.raises(InfrastructureError, match=r"reduction\.npz"):
            Reduction.load(tmp_path / "reduction.npz")


def test_hashes_see_every_reduction() -> None:
    """Each atom counts in the ledger's hash: what was left out is never taken for what was sent."""
    old = cloud(0)
    difference = Difference.between(of(old), of(old.with_raw(old.raw[:45])))
    assert len({sha256_of(some(difference, *range(n))) for n in range(6)}) == 6


@dataclass(frozen=True)
class Sized:
    """A form of which nothing counts but its size."""

    size: int
    relation: Relation = field(default_factory=lambda: load_relation("identity"))


class AlwaysFails:
    """Plays forms, each of which fails."""

    def __init__(self) -> None:
        self.plays, self.whole = 0, Sized(9)

    def play(self, form: Sized) -> Sized:
        self.plays += 1
        return form

    def fails(self, played: Sized) -> bool:
        return True


@pytest.mark.parametrize(("smaller", "begun"), [(9, ["window"]), (4, ["window", "window"])])
def test_a_move_comes_again_where_something_has_become_smaller(smaller: int, begun: list[str]) -> None:
    shrinker: Shrinker[Sized, Sized] = Shrinker(AlwaysFails(), Budget(100, 1.0), None)
    moves: list[str] = []

    def points() -> None:
        if smaller < shrinker.best.size:
            assert shrinker.tries("points", str(smaller), Sized(smaller))

    def window() -> None:
        moves.append("window")

    shrinker.shrink([window, points, window])
    assert moves == begun and shrinker.result.complete and shrinker.best.size == smaller
    assert shrinker.result.first == Count(5, 5, True) and shrinker.result.played == shrinker.best
