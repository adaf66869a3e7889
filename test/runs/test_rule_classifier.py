# SPDX-License-Identifier: Apache-2.0
"""The classifier of rules: what it learns, what it never says, and that the held-out rules stay out of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.cli.main import main
from mt_nodes.rules.extraction import DefaultReader
from mt_nodes.rules.ontology import load_ontology
from mt_nodes.rules.parser import read_rule
from mt_nodes.rules.rule_classifier import Example, RuleClassifier, Triple, examples_of, trained
from mt_nodes.rules.rule_sets import Rule, RuleSet, load_rule_set
from mt_nodes.rules.statement_binding import bind_all
from mt_nodes.rules.store_entry import LEAST_SURE

ROOT = Path(__file__).parents[2]
ONTOLOGY = load_ontology()
HELD_OUT = ("ten_countries_held_out", "unseen_3", "held_out")


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("Goats wander about; never be quick near them.", "livestock slow_down"),
        ("A continuous centre stripe is no place for your wheels.", "solid_line keep_current"),
        ("Sand whirls over the road and you see nothing: less gas.", "dust_storm slow_down"),
    ],
)
def test_it_reads_what_the_grammar_does_not(text: str, meaning: str) -> None:
    assert not read_rule(text, ONTOLOGY).statements
    (one,) = trained(ONTOLOGY).read(text, "R-1", strict=True).statements
    assert f"{one.element} {one.behaviour}" == meaning and one.rules == ("R-1",)


def test_it_says_nothing_of_rules_that_no_drive_can_show() -> None:
    for text in ("Seat belts must be worn on every seat.", "Your tyres need enough tread.", "", "\u4e00", "x" * 3000):
        reading = trained(ONTOLOGY).read(text)
        assert not reading.statements and reading.why


CLEAR, STRANGE = "Slow down when a deer is on the road.", "A zebra of lorries halts the ball of the tram at its sign."


def test_what_it_is_not_sure_of_it_does_not_read_and_says_what_it_guessed() -> None:
    reader = trained(ONTOLOGY)
    sure = {text: reader.choose(text).sure for text in (CLEAR, STRANGE)}
    assert 0.8 < sure[CLEAR] < 1.0 and 0.0 < sure[STRANGE] < LEAST_SURE
    assert reader.read(CLEAR, least_sure=0.8).statements and reader.read(STRANGE).statements
    unsure = reader.read(STRANGE, least_sure=LEAST_SURE)
    guess = reader.choose(STRANGE)
    assert not unsure.statements
    guessed = f"{guess.road} {guess.element} {guess.behaviour}"
    assert unsure.why == f"the classifier guesses '{guessed}', sure {guess.sure:.2f}, least {LEAST_SURE:g}"


def test_it_is_the_surer_the_more_each_part_leads() -> None:
    sure = [Triple("any_road", "deer", "stop", leads).sure for leads in ((0, 0, 0), (3, 3, 3), (9, 3, 3), (9, 9, 9))]
    assert sure == sorted(sure) and 0.0 < sure[0] < 0.05 and sure[-1] > 0.9


@settings(max_examples=30, deadline=None)
@given(st.text(min_size=1, max_size=120))
def test_whatever_is_written_its_names_are_of_the_ontology_and_its_relation_is_bound(text: str) -> None:
    statements = trained(ONTOLOGY).read(text, "R-1", strict=True).statements
    for one in statements:
        ONTOLOGY.refuse_unknown(one, text)
    bound, unbound = bind_all(statements, ONTOLOGY, RuleSet("my_town", "", {"R-1": Rule("R-1", text)}, Path("x")))
    assert len(bound) + len(unbound) == len(statements) and all(why for _, why in unbound)


def test_it_learns_from_none_of_the_held_out_rules() -> None:
    learned = {one.text for one in examples_of(ONTOLOGY)}
    for name in HELD_OUT:
        rows: Any = yaml.safe_load((ROOT / "test" / "golden" / f"{name}.yaml").read_text(encoding="utf-8"))
        assert rows and learned.isdisjoint(row["text"] for row in rows)


def test_it_learns_what_it_is_taught() -> None:
    rows = [Example(f"Zorbs number {n} want a halt.", "bridge", "deer", "stop") for n in range(20)]
    taught = RuleClassifier([*rows, Example("Wear a hat.")], ONTOLOGY)
    (one,) = taught.read("A zorb wants a halt.", strict=True).statements
    assert (one.road, one.element, one.behaviour) == ("bridge", "deer", "stop")
    assert taught.read("A zorb wants a halt.").statements[0].behaviour == "slow_down", "as the paper reads it"


def test_the_command_names_which_reader_read_a_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "town.txt"
    rules.write_text("Stop at a red light.\nA continuous centre stripe is no place for your wheels.\n")
    assert main(["rules", "extract", str(rules), "--model", "parser"]) == 0
    assert "1 without a relation" in capsys.readouterr().out
    assert main(["rules", "extract", str(rules), "--model", "parser", "--model", "classifier"]) == 0
    out = capsys.readouterr().out
    assert "town-1   parser" in out and "town-2   classifier" in out and "0 without a relation" in out
    assert main(["rules", "extract", str(rules), "--model", "classifier", "--least-sure", "1"]) == 3
    assert "least 1" in capsys.readouterr().out


def test_without_a_name_the_classifier_reads_and_tells_of_what_nobody_is_sure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "town.txt"
    rules.write_text(f"{CLEAR}\n{STRANGE}\nBei Rot ist vor der Ampel zu halten.\n")
    assert main(["rules", "extract", str(rules), "--json"]) == 0
    clear, strange, german = json.loads(capsys.readouterr().out)
    assert clear["read_by"] == "classifier" and clear["relations"][0]["element"] == "deer"
    assert clear["relations"][0]["place"] == "on the road", "a detail of the parser's, who reads the same"
    for row in (strange, german):
        assert row["read_by"] is None and not row["relations"]
    parsed = read_rule(STRANGE, ONTOLOGY).statements
    assert parsed, "the parser reads it"
    assert f"parser: '{parsed[0].road} {parsed[0].element} {parsed[0].behaviour}'" in strange["why"]
    assert "guesses" in strange["why"] and "rules are read in English" in german["why"]
    assert main(["rules", "extract", str(rules)]) == 0
    out = capsys.readouterr().out
    assert "2 without a relation" in out and "--least-sure 0.5 and --model parser read more" in out


def test_without_a_name_the_shipped_rules_are_read_as_people_have_checked() -> None:
    rules, default = load_rule_set("germany").rules.values(), DefaultReader(ONTOLOGY)
    read = {rule.id: default.read(rule) for rule in rules}
    assert {one.origin for one in read.values()} == {"parser"}
    assert all(read[rule.id].reading == read_rule(rule.text, ONTOLOGY, rule.id) for rule in rules)
