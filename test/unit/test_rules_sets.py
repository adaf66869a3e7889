# SPDX-License-Identifier: Apache-2.0
"""Rule sets: what ships is whole and says where it is from; users' own files; errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from mt_nodes.base.errors import UsageError
from mt_nodes.rules.rule_sets import load_rule_set, shipped_rule_sets


@pytest.mark.parametrize(("name", "count", "prefix"), [("germany", 38, "DE"), ("california", 72, "CA")])
def test_what_ships_is_whole(name: str, count: int, prefix: str) -> None:
    rules = load_rule_set(name)
    assert list(rules.rules) == [f"{prefix}-{n:02}" for n in range(1, count + 1)]
    assert (rules.region, name in shipped_rule_sets()) == (name, True)
    for rule in rules.rules.values():
        assert rule.section and rule.source in ("checked", "recalled")
        assert (rule.source == "checked") == bool(rule.seen_in)
    assert len({rule.text for rule in rules.rules.values()}) == count


def test_duplicates_are_marked() -> None:
    same = {i: rule.same_as for name in shipped_rule_sets() for i, rule in load_rule_set(name).rules.items()}
    told = {i: other for i, other in same.items() if other}
    assert len(told) == 11
    assert told["DE-21"] == "DE-06" and told["CA-45"] == "CA-10"


def test_every_german_section_was_read() -> None:
    assert {rule.source for rule in load_rule_set("germany").rules.values()} == {"checked"}
    reference = load_rule_set("germany").rules["DE-28"].reference
    assert reference.startswith("§40(1), Annex 1, checked in StVO paragraph 40")


def test_a_text_file_has_one_rule_a_line(tmp_path: Path) -> None:
    path = tmp_path / "My Rules.txt"
    path.write_text("# mine\n\nSlow down for a dog.\r\n  Stop at a red light.  \n", encoding="utf-8")
    rules = load_rule_set(str(path))
    assert (rules.region, list(rules.rules)) == ("my_rules", ["my_rules-1", "my_rules-2"])
    assert [rule.text for rule in rules.rules.values()] == ["Slow down for a dog.", "Stop at a red light."]
    assert rules.rules["my_rules-1"].reference == "own"


def test_a_yaml_file_may_be_short(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("region: atlantis\nrules: {A-1: Slow down for a dog.}\n")
    rules = load_rule_set(str(path))
    assert (rules.region, rules.title, rules.rules["A-1"].text) == ("atlantis", "atlantis", "Slow down for a dog.")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("own.txt", "# nothing\n", "got no rule, expected one a line"),
        ("own.yaml", "region: a\nrules: {}\n", "rules: got none, expected at least one"),
        ("own.yaml", "rules: {A: b}\n", "region: got None, expected a text"),
        ("own.yaml", "region: Mars 3\nrules: {A: b}\n", "region: got 'Mars 3', expected small letters"),
        ("own.yaml", "region: a\nrule: {A: b}\n", "unknown key 'rule'; did you mean 'rules'?"),
        ("own.yaml", "region: a\nrules: {A B: b}\n", "got id 'A B', expected letters"),
        ("own.yaml", "region: a\nrules: {A: {txt: b}}\n", "unknown key 'txt'; did you mean 'text'?"),
        ("own.yaml", "region: a\nrules: {A: ''}\n", "rules.A.text: got '', expected a text"),
        (
            "own.yaml",
            "region: a\nrules: {A: {text: b, source: heard}}\n",
            "got 'heard', expected checked, recalled, own",
        ),
        ("own.yaml", "region: a\nrules: {A: {text: b, source: checked}}\n", "checked needs it, nothing else has it"),
        (
            "own.yaml",
            "region: a\ntexts: {law: x}\nrules: {A: {text: b, source: checked, seen_in: lav}}\n",
            "no text 'lav'; did you mean 'law'?",
        ),
        ("own.yaml", "region: a\nrules: {A: {text: b, same_as: A}}\n", "same_as: no rule 'A'"),
    ],
)
def test_errors_say_file_and_key(name: str, text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        load_rule_set(str(path))
    assert told in str(error.value) and str(path) in str(error.value)


def test_an_unknown_set_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match="no rule 'germny'; did you mean 'germany'"):
        load_rule_set("germny")


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge.txt"
    path.write_text("Slow down for a dog.\n" * 500_000)
    with pytest.raises(UsageError, match=r"got a file of 10\.5 MB"):
        load_rule_set(str(path))
