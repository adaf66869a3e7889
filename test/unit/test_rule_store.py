# SPDX-License-Identifier: Apache-2.0
"""The store of relations: what goes in comes out, searches, two writers, old and new versions, full disks."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_rules import entry, index_by_letters, some

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.rules.migrations import APPLICATION_ID, MIGRATIONS, VERSION
from mt_nodes.rules.nearest_texts import Index, latent_semantics
from mt_nodes.rules.rule_store import Store
from mt_nodes.rules.store_entry import Entry

ELEMENTS = ("cyclist", "pedestrian", "child", "deer", "dog")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rules.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store(path, indexer=index_by_letters) as opened:
        yield opened


def elements(entries: list[Entry]) -> list[str]:
    return [one.statement.element for one in entries]


def test_what_goes_in_comes_out_of_the_closed_and_opened_file(path: Path) -> None:
    given = [*some(), entry("deer", "any_road", "", origin="a-model", prompt_id="p7", answer_id="a9", executions=4)]
    with Store(path) as store:
        assert store.add(given) == [1, 2, 3, 4, 5, 6]
    with Store(path) as store:
        assert store.entries() == [replace(one, index=i) for i, one in enumerate(given, 1)]
        assert store.entries()[0].text == (
            "Given the ego-vehicle approaches to any road, and speed_kmh > 50, when mt replaces rain, "
            "then ego-vehicle should slow down"
        )
        assert elements(store.entries("germany", ["a-model"])) == ["deer"]
        assert elements(store.entries("california")) == ["pedestrian", "cyclist", "child"]


def test_the_same_again_keeps_its_number_and_gets_the_rules_of_both(store: Store) -> None:
    store.add([entry("red_light", "intersection", "", "DE-26")])
    store.count([1])
    assert store.add([entry("red_light", "intersection", "", "DE-34", "DE-26")]) == [1]
    assert store.add([entry("red_light", "intersection", "", "DE-26", origin="a-model")]) == [2]
    first, second = store.entries()
    assert (first.statement.rules, first.executions) == (("DE-26", "DE-34"), 1)
    assert (second.statement.rules, second.executions) == (("DE-26",), 0)


def test_a_word_that_the_ontology_lacks_never_enters(store: Store) -> None:
    made_up = [entry("cyclist"), entry("dragon")]
    with pytest.raises(UsageError, match=r"relation 2 of 2 .*no element 'dragon'"):
        store.add(made_up)
    with pytest.raises(UsageError, match="no behaviour 'panic'"):
        store.add([entry("cyclist", behaviour="panic")])
    with pytest.raises(UsageError, match="no predicate 'mood'"):
        store.add([entry("cyclist", "any_road", "mood > 3")])
    assert store.entries() == []


def test_executions_are_counted_all_or_none(store: Store) -> None:
    store.add(some())
    store.count([2, 2])
    store.count([2, 5])
    with pytest.raises(UsageError, match="no relation 99; nothing was counted"):
        store.count([1, 99])
    assert [one.executions for one in store.entries()] == [0, 3, 0, 0, 1]


def test_words_are_found_in_any_form_and_rules_by_their_ids(store: Store) -> None:
    store.add(some())
    assert elements(store.find("pedestrians")) == ["pedestrian"]
    assert elements(store.find("RED lights")) == ["red_light"]
    assert elements(store.find("DE-34")) == ["red_light"]
    assert (len(store.find("any road")), len(store.find("any road", limit=1))) == (2, 1)
    assert store.find("red pedestrian") == [] == store.find('"; --')
    store.add([entry("red_light", "intersection", "", "DE-99")])
    assert elements(store.find("DE-99")) == ["red_light"]


def test_what_is_nearest_in_meaning_shares_no_word_with_the_query(path: Path) -> None:
    with Store(path) as store:
        store.add(some())
        for query, meant in (
            ("bicycle rider", "cyclist"),
            ("kids, playground", "child"),
            ("wet weather, downpour", "rain"),
            ("walkers, joggers", "pedestrian"),
        ):
            (best, near), (_, next_near) = store.nearest(query, limit=2)
            assert best.statement.element == meant
            assert not set(query.split()) & set(best.text.split())
            assert 1.0 >= near > next_near + 0.1


def test_meanings_are_the_same_each_time_and_nothing_is_near_to_nothing() -> None:
    texts = [one.text for one in some()]
    first, again = (Index(texts, latent_semantics).similarities("red light ahead") for _ in range(2))
    assert np.array_equal(first, again)
    assert not Index(texts).similarities("xyzzy").any()
    assert Index(["", "the"]).nearest("rain", 5) == [(0, 0.0), (1, 0.0)]
    assert Index([]).nearest("rain", 5) == []
    assert Index(["red light", "rain"]).nearest("rain", 1) == [(1, 1.0)]
    plurals = Index(["fox", "pony", "crossing", "rain"])
    assert [plurals.nearest(word, 1) for word in ("Foxes", "ponies", "crossings")] == [[(i, 1.0)] for i in range(3)]


def test_a_second_writer_waits_and_then_says_why(store: Store, path: Path) -> None:
    store.add(some())
    with Store(path, wait_s=0.02) as other:
        with (
            store.transaction(),
            pytest.raises(InfrastructureError, match=r"others have been writing for 0\.02 s; nothing was changed"),
        ):
            other.count([1])
        other.count([1])
    assert store.entries()[0].executions == 1


def test_readers_and_a_writer_do_not_wait_for_each_other(store: Store, path: Path) -> None:
    store.add(some())
    with store.transaction():
        store.count([1])
        with Store(path, wait_s=0.0, write=False) as reader:
            assert reader.entries()[0].executions == 0
    with Store(path, wait_s=0.0) as writer:
        store._db.execute("BEGIN")
        assert store.entries()[0].executions == 1
        writer.count([1])
        store._db.execute("COMMIT")
    assert store.entries()[0].executions == 2


def test_many_writers_lose_nothing_from_the_first_moment_on(path: Path) -> None:
    """Each thread makes the file if it is first, and adds relations of its own."""
    errors: list[Exception] = []

    def write(name: str) -> None:
        try:
            with Store(path, wait_s=60.0) as store:
                for element in ELEMENTS:
                    store.count(store.add([entry(element, origin=name)]))
        except Exception as error:  # noqa: BLE001 - told by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=write, args=(f"writer-{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Store(path) as store:
        assert not errors
        assert sorted((one.origin, one.statement.element) for one in store.entries()) == sorted(
            (f"writer-{i}", element) for i in range(4) for element in ELEMENTS
        )
        assert {one.executions for one in store.entries()} == {1}


def test_a_full_disk_is_said_and_nothing_is_lost(store: Store) -> None:
    store.add(some())
    store._db.execute(f"PRAGMA max_page_count = {store._db.execute('PRAGMA page_count').fetchone()[0]}")
    many = [entry(element, origin="x" * 5000 + str(i)) for element in ELEMENTS for i in range(10)]
    with pytest.raises(InfrastructureError, match=r"full; nothing was changed; make room"):
        store.add(many)
    assert len(store.entries()) == len(some())
    store.count([1])


def test_a_file_that_is_only_read_is_not_written(store: Store, path: Path) -> None:
    store.add(some())
    with Store(path, write=False) as reader:
        assert elements(reader.find("cyclist")) == ["cyclist"]
        with pytest.raises(InfrastructureError, match=r"cannot be written; nothing was changed; copy it"):
            reader.count([1])


def test_an_interrupted_transaction_leaves_the_store_as_it_was(store: Store) -> None:
    store.add(some())
    with pytest.raises(KeyboardInterrupt), store.transaction():
        store.count([1])
        raise KeyboardInterrupt
    assert store.entries()[0].executions == 0
    store.count([1])


def test_an_older_store_is_migrated_with_all_that_it_holds(path: Path) -> None:
    with closing(sqlite3.connect(path)) as old:
        for step in MIGRATIONS[0]:
            old.execute(step)
        old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        old.execute("PRAGMA user_version = 1")
        old.execute(
            "INSERT INTO statements VALUES (7, 'a text with deer', 'any_road', 'adds', 'deer', '', 'slow_down', '', "
            "'[\"X-1\"]', 'mine', 'parser', '', '', 3)"
        )
        old.commit()
    with pytest.raises(UsageError, match=f"version 1; open it for writing once to make it {VERSION}"):
        Store(path, write=False)
    with Store(path) as store:
        (found,) = store.find("deer")
        assert (found.index, found.executions, found.statement.rules) == (7, 3, ("X-1",))
    with Store(path, write=False) as store:
        assert len(store.entries()) == 1


def test_a_store_of_a_newer_version_is_refused_and_left_alone(store: Store, path: Path) -> None:
    store.close()
    with closing(sqlite3.connect(path)) as newer:
        newer.execute(f"PRAGMA user_version = {VERSION + 1}")
        newer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = path.read_bytes()
    for write in (True, False):
        with pytest.raises(UsageError, match=rf"rules\.db: a store of version {VERSION + 1}, .* up to {VERSION}"):
            Store(path, write=write)
    assert path.read_bytes() == before


def test_other_files_are_no_stores(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database, but long enough to be one " * 9)
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE birds (name)")
    for name, why in (
        ("text.db", "not a database"),
        ("other.db", "something else"),
        ("none/x.db", "no such directory"),
    ):
        with pytest.raises(UsageError, match=why):
            Store(tmp_path / name)
    with pytest.raises(UsageError, match="no such store"):
        Store(tmp_path / "missing.db", write=False)
    assert not (tmp_path / "missing.db").exists()


def test_rejected_relations_are_in_no_suite_and_the_latest_reading_of_a_rule_counts(store: Store) -> None:
    def read(rule: str, rejected: bool) -> None:
        store.add([entry("dog", "any_road", "", rule, agreement=0.25 if rejected else 0.75, rejected=rejected)])

    def stored() -> tuple[tuple[str, ...], bool, float | None]:
        (one,) = store.entries(rejected=True)
        assert store.entries() == ([] if one.rejected else [one])
        return one.statement.rules, one.rejected, one.agreement

    read("R-1", True)
    assert stored() == (("R-1",), True, 0.25)
    read("R-2", False)
    assert stored() == (("R-2",), False, 0.75), "accepted for another rule, for that rule only"
    read("R-1", True)
    assert stored() == (("R-2",), False, 0.75)
    read("R-2", True)
    assert stored() == (("R-2",), True, 0.25), "what was accepted before is rejected now"
    assert elements(store.find("dog")) == ["dog"]
