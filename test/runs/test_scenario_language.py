# SPDX-License-Identifier: Apache-2.0
"""The scenario language: what is read and printed, what is told, and what is left to chance."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenario_texts import EGO, FOLDER, SHIPPED, first, only, scene

from mt_nodes.base.errors import UsageError
from mt_nodes.world.scenarios.language import (
    Problem,
    ScenarioError,
    format_script,
    load_scenarios,
    parse,
    problems_of,
    read,
    warnings_of,
)
from mt_nodes.world.scenarios.language.formatting import WIDTH
from mt_nodes.world.scenarios.language.problems import Edit
from mt_nodes.world.scenarios.language.tokenizer import grammar
from mt_nodes.world.scenarios.language.words import LEVELS

GOOD, BAD = (sorted((FOLDER / kind).glob("*.scenario")) for kind in ("good", "bad"))
#: Printed in "Moral Testing of Autonomous Driving Systems", section II-C, with all its oddities.
PRINTED = (FOLDER / "printed_example.scenario").read_text(encoding="utf-8")


def golden(path: Path, text: str) -> None:
    """Hold a text against the one beside a script; UPDATE_SNAPSHOTS=1 makes those anew."""
    kept = path.with_suffix(".txt")
    if os.environ.get("UPDATE_SNAPSHOTS"):
        kept.write_text(text, encoding="utf-8")
    assert kept.read_text(encoding="utf-8") == text


def told(value: object, indent: str = "") -> str:
    """Return plain data as lines, floats to nine digits."""
    if isinstance(value, dict):
        return "".join(f"{indent}{key}:{_inside(part, indent)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return "".join(f"{indent}-{_inside(part, indent)}" for part in value)
    return f"{indent}{value}\n"


def _inside(part: object, indent: str) -> str:
    if isinstance(part, dict | list | tuple) and part:
        return "\n" + told(part, indent + "  ")
    return f" {part:.9g}\n" if isinstance(part, float) else f" {part}\n"


def comments(text: str) -> list[str]:
    """Return the comments of a script in their order."""
    return [token.rstrip() for token in grammar().lex(text, dont_ignore=True) if token.type == "COMMENT"]


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_good_scripts_mean_what_they_should(path: Path) -> None:
    golden(path, "".join(told(asdict(scenario)) for scenario in load_scenarios(path, seed=3)))


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_bad_scripts_are_told_all_that_is_wrong_at_once(path: Path) -> None:
    problems = problems_of(path.read_text(encoding="utf-8"), path.name, path=path)
    golden(path, "".join(f"{problem}\n" for problem in problems))
    with pytest.raises(ScenarioError) as caught:
        load_scenarios(path)
    assert list(caught.value.problems) == problems
    assert all(str(problem) in str(caught.value) for problem in problems[:3])


@pytest.mark.parametrize("path", [*GOOD, *SHIPPED], ids=lambda path: path.stem)
def test_formatting_changes_nothing_but_the_looks(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    printed = format_script(text, path.name, path)
    assert parse(printed, strict=True).statements == parse(text).statements
    assert comments(printed) == comments(text)
    assert format_script(printed, path.name, path) == printed


# The printed example: each oddity, and the line where the repair is told.

ODDITIES = [
    (7, "taken for 1 empty slot"),
    (12, "taken for 4 empty slots, with 'ped1_model' for the type"),
    (17, "taken for 4 empty slots, with 'ped2_model' for the type"),
    (17, "';' at the end of a statement"),
    (18, "'{' around the parts of CreateScenario"),
    (19, "'{};' for each of vehicles"),
    (19, "taken for empty parts"),
]


def test_the_printed_example_is_read() -> None:
    scenario = only(PRINTED)
    assert (scenario.name, scenario.road) == ("scenario0", "san_francisco")
    ego = scenario.ego
    assert (ego.start.x_m, ego.start.y_m, ego.speed_mps, ego.target) == (-228.81, 268.97, 0.0, None)
    assert ego.vehicle.wheelbase_m == 2.8448
    facts = [(a.start.x_m, a.start.y_m, a.speed_mps, a.kind) for a in scenario.actors]
    assert facts == [(-249.22, 250.08, 1.0, "adult"), (-246.10, 247.71, 0.8, "adult")]
    assert [a.person.gender for a in scenario.actors if a.person] == ["male", "female"]


@pytest.mark.parametrize(("line", "what"), ODDITIES)
def test_each_repair_of_the_printed_example_is_told_with_its_line(line: int, what: str) -> None:
    assert [w for w in warnings_of(PRINTED) if w.at.line == line and what in str(w)]
    assert [p for p in problems_of(PRINTED, strict=True) if p.at.line == line and what in str(p)]


def test_the_printed_example_needs_no_other_repairs() -> None:
    assert len(warnings_of(PRINTED)) == len(problems_of(PRINTED, strict=True)) == len(ODDITIES)


def test_the_printed_example_in_strict_form_means_the_same() -> None:
    strict = format_script(PRINTED)
    reading = read(strict, strict=True)
    assert (reading.problems, reading.warnings) == ((), ())
    assert reading.scenarios == read(PRINTED).scenarios
    assert comments(strict) == comments(PRINTED)


def test_the_speed_that_the_printed_example_leaves_out_is_given_from_outside() -> None:
    assert only(PRINTED, parameters={"ego.speed": "27.8"}).ego.speed_mps == 27.8
    for wrong in ("fast", "-1", "nan"):
        with pytest.raises(UsageError, match=r"ego\.speed: got"):
            read(PRINTED, parameters={"ego.speed": wrong})


# Repairs one by one.


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        ("AV(s, ...)", "AV(s)"),
        ("AV(..., s, t)", "AV(s, t)"),
        ("AV(s, ..., t)", "AV(s, t)"),
        ("AV(s, ..., car)", "AV(s, , car)"),
        ("Vehicle(s, ..., car, {after: 1})", "Vehicle(s, , , car, {after: 1})"),
        ("Vehicle(s, ..., t, ...)", None),
        ("Vehicle(s, ..., 3)", None),
        ("AV(...)", None),
    ],
)
def test_dots_are_aligned_from_the_right_by_kind(text: str, strict: str | None) -> None:
    before = 's = ("lane_1" -> 20);\nt = ("lane_1" -> 60);\n'
    script = f"{before}x = {text};\n"
    if strict is None:
        assert problems_of(script)
        return
    assert problems_of(script) == []
    assert format_script(script).splitlines()[-1] == f"x = {strict};"


@pytest.mark.parametrize("brackets", ["()", "(}", "{)", "{}"])
def test_a_scenario_may_stand_in_any_brackets(brackets: str) -> None:
    text = f'{EGO}s = CreateScenario{brackets[0]}load("straight"); ego; {brackets[1]};'
    assert len(warnings_of(text)) == sum(a != b for a, b in zip(brackets, "{}", strict=True))
    assert "CreateScenario {" in format_script(text)
    assert read(format_script(text), strict=True).problems == ()


def test_a_statement_without_an_end_ends_before_the_next_line_that_begins_one() -> None:
    text = EGO + 'a = 1\nState b = ("lane_1" -> 50\n  , ,\n 3)\nc = Vehicle(b)\n' + scene(vehicles="c", ego="")
    assert [w.at.line for w in warnings_of(text) if "';'" in w.got] == [2, 5, 6]
    assert [p.at.line for p in problems_of(text, strict=True)] == [2, 5, 6]


def test_unused_names_are_told_but_no_problem() -> None:
    (warning,) = warnings_of("slip = 3;\n" + scene())
    assert (warning.at.line, "slip" in warning.got) == (1, True)


# Random scripts: parsed, printed, parsed again.

_NAMES = st.sampled_from(["a", "deg", "pi", "range", "to", "import_", "related", "AV", "x1", "_"])
_LEAVES = st.one_of(
    st.integers(0, 10**6).map(str),
    st.floats(0, 1e6, allow_nan=False).map(lambda x: f"{x:.3f}"),
    st.sampled_from(["12:30", '"lane_1"', '"// no comment"', ".5", "1e3"]),
    _NAMES,
)
_GAPS = st.sampled_from(["", "", " ", "  ", "\n", " // remark\n", "/* in\nside */", "\n// alone\n"])


@st.composite
def _values(draw: st.DrawFn, deep: int = 3) -> str:
    if deep == 0:
        return draw(_LEAVES)
    gap = draw(_GAPS)
    part = _values(deep - 1)
    form = draw(st.integers(0, 8))
    if form < 3:
        inner = gap.join(["", ",".join(draw(st.lists(st.one_of(part, st.just("")), max_size=3)))])
        return f"{draw(_NAMES) if form else ''}({inner}{gap})" if form < 2 else f"{{{gap}{draw(part)}, {draw(part)}}}"
    if form == 3:
        return f"{{{draw(_NAMES)}{gap}: {draw(part)}}}"
    if form == 4:
        return f"({draw(part)}) {draw(st.sampled_from('+-*/^'))}{gap} -{draw(_LEAVES)}"
    if form == 5:
        return f"({draw(part)}{gap}) deg related to{gap} EGO"
    if form == 6:
        return f'"lane"{gap} ->{gap} ({draw(part)})'
    if form == 7:
        return f"(1, {draw(_LEAVES)}) range (0, 1){gap} & (2, 3)"
    return f"{draw(_LEAVES)} pi"


_STATEMENTS = st.one_of(
    st.builds("{}={};{}".format, _NAMES, _values(), _GAPS),
    st.builds("Number {} = {};{}".format, _NAMES, _values(), _GAPS),
    st.builds("parameter {} ={} 3;".format, _NAMES, _GAPS),
    st.just("t |= G [0, 3] (x[ego] -> ~y) | z;"),
    st.just('s = CreateScenario{load("m");a; {} ; // c\n {b,c}}\n;'),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(_STATEMENTS, min_size=1, max_size=4).map("\n".join))
def test_random_scripts_survive_being_printed(text: str) -> None:
    try:
        script = parse(text, strict=True)
    except ScenarioError:
        return  # what was put together at random need not be one
    printed = format_script(text)
    assert parse(printed, strict=True) == script
    assert comments(printed) == comments(text)
    assert format_script(printed) == printed


def test_most_random_scripts_are_scripts() -> None:
    counts = {True: 0, False: 0}

    @settings(max_examples=60, deadline=None, database=None)
    @given(_STATEMENTS)
    def count(text: str) -> None:
        try:
            parse(text, strict=True)
        except ScenarioError:
            counts[False] += 1
        else:
            counts[True] += 1

    count()
    assert counts[True] > counts[False]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_scripts_are_refused_or_read_but_nothing_else(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([PRINTED, (FOLDER / "good" / "forms.scenario").read_text(encoding="utf-8")]))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        text = text[:start] + data.draw(st.text('(){};,=."/*a0\n-@é', max_size=3)) + text[end:]
    reading = read(text)
    for problem in (*reading.problems, *reading.warnings):
        assert 1 <= problem.at.line <= text.count("\n") + 1
        assert problem.at.column >= 1


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a=-1+ - 2*( 3 );", "a = -1 + -2 * (3);\n"),
        ("a=( 1,,3 ) ;b={ };", "a = (1, , 3);\nb = {};\n"),
        ("a=Foo ( x,{ k :1 } );", "a = Foo(x, {k: 1});\n"),
        ("a=(1,2)range(0,1)&(2,3);", "a = (1, 2) range (0, 1) & (2, 3);\n"),
        ('a="l"->range (0 , 1);', 'a = "l" -> range(0, 1);\n'),
        ("t|=G[0,3](a[x]->~b);", "t |= G[0, 3] (a[x] -> ~ b);\n"),
        ("a=1; // one\n\n\n\n// two\nb=2;", "a = 1;  // one\n\n// two\nb = 2;\n"),
        ("a=1;/* x */b=2;", "a = 1;  /* x */\nb = 2;\n"),
        ("a=Foo(// one\n1,\n// two\n2);", "a = Foo(  // one\n    1,\n    // two\n    2\n);\n"),
        ("s=CreateScenario{m;{a,b}};", "s = CreateScenario {\n    m;\n    {a, b}\n};\n"),
    ],
)
def test_what_printed_scripts_look_like(text: str, printed: str) -> None:
    assert format_script(text) == printed


def test_long_statements_are_opened_and_short_ones_are_not() -> None:
    short = "a = Foo(" + "1, " * 20 + "1);"
    assert format_script(short) == short + "\n"
    long = "a = Foo(" + "1, " * 40 + "1);"
    lines = format_script(long).splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("a = Foo(", ");", 43)
    assert max(map(len, lines)) <= WIDTH


# What is told.


def test_places_in_messages_are_those_of_the_script() -> None:
    text = scene("Person(((100, -5), , 2), , , , {aeg: 7})", before="// one\n/* two\n three */")
    problem = first(text, name="here.scenario")
    line = text.splitlines()[problem.at.line - 1]
    assert line[problem.at.column - 1 :].startswith("7")
    assert str(problem) == (
        f"here.scenario:{problem.at.line}:{problem.at.column}: got 'aeg', expected an attribute of Person; "
        "did you mean 'age'?"
    )


def test_a_problem_is_told_once_and_not_again_where_its_name_is_used() -> None:
    text = 'a = ("lane_1" -> );\nb = Vehicle(a);\n' + scene(vehicles="b")
    assert [p.at.line for p in read(text).problems] == [1]
    text = "a = 1 / 0;\nb = Vehicle((a, 2));\n" + scene(vehicles="b")
    assert [p.at.line for p in read(text).problems] == [1]


def test_warnings_are_told_to_whoever_wants_them() -> None:
    told: list[Problem] = []
    load_scenarios(FOLDER / "printed_example.scenario", tell=told.append)
    assert told == warnings_of(PRINTED, "printed_example.scenario")


def test_of_very_many_problems_the_text_tells_the_first_and_the_number(tmp_path: Path) -> None:
    path = tmp_path / "many.scenario"
    path.write_text("".join(f"a{k} = ;\n" for k in range(80)), encoding="utf-8")
    with pytest.raises(ScenarioError, match="80 problems") as caught:
        load_scenarios(path)
    assert len(caught.value.problems) == 80
    assert str(caught.value).splitlines()[-1].endswith("and 30 more")
    assert len(str(caught.value).splitlines()) == 52


def test_a_file_without_a_scenario_is_refused() -> None:
    with pytest.raises(UsageError, match="expected at least one: name = CreateScenario"):
        load_scenarios(SHIPPED[0].parent / "parts" / "cars.scenario")


def test_claims_about_traces_are_kept_with_their_scenario() -> None:
    walker = scene("w", before="w = Person((30, -2), , );")
    text = walker + "Trace t = EXE(s);\nt |= G (dis(t[ego], t[truth][w]) > 0.5);\n"
    assert warnings_of(text) == []
    ((claim,),) = (scenario.claims for scenario in read(text).scenarios)
    assert (claim.line, claim.formula) == (5, 'G(dis(t[ego], t[truth]["w"]) > 0.5)')


# Parameters and chance.


DRAWN = FOLDER / "good" / "drawn.scenario"


def test_equal_seeds_draw_equal_scenarios_and_others_do_not() -> None:
    assert load_scenarios(DRAWN, seed=5) == load_scenarios(DRAWN, seed=5)
    assert load_scenarios(DRAWN, seed=5) != load_scenarios(DRAWN, seed=6)


def test_a_draw_depends_on_its_own_statement_only() -> None:
    text = DRAWN.read_text(encoding="utf-8")
    more = "parameter other = uniform(0, 1);\nNumber used = other + range(3, 4);\n" + text
    assert read(more, "drawn.scenario", seed=4).scenarios == read(text, "drawn.scenario", seed=4).scenarios


def test_draws_stay_within_their_bounds_and_use_them() -> None:
    drawn = [load_scenarios(DRAWN, seed=seed)[0] for seed in range(40)]
    gaps = [scenario.actor("lead").start.x_m - 40.0 for scenario in drawn]
    paces = [scenario.actor("walker").speed_mps for scenario in drawn]
    xs = [scenario.actor("walker").start.x_m for scenario in drawn]
    ys = [scenario.actor("walker").start.y_m for scenario in drawn]
    for values, low, high in ((gaps, 20, 40), (paces, 1.0, 1.8), (xs, 149, 151), (ys, -5.2, -4.8)):
        assert low <= min(values) < low + 0.3 * (high - low)
        assert high - 0.3 * (high - low) < max(values) <= high
    assert {scenario.actor("walker").person.gender for scenario in drawn if scenario.actor("walker").person} == {
        "male",
        "female",
    }
    assert {scenario.actor("lead").kind for scenario in drawn} == {"car", "van"}


def test_one_draw_serves_all_scenarios_of_a_script() -> None:
    one, other = load_scenarios(DRAWN, seed=1)
    assert one.actor("walker") == other.actor("walker")


@pytest.mark.parametrize(
    ("given_value", "gender"), [("Pamela", "female"), ('"Presley"', "male"), ('choice("Pamela")', "female")]
)
def test_parameters_are_given_from_outside(given_value: str, gender: str) -> None:
    scenario = load_scenarios(DRAWN, {"gap": "2 * 12.5", "who": given_value})[0]
    assert scenario.actor("lead").start.x_m == 65.0
    person = scenario.actor("walker").person
    assert person is not None
    assert person.gender == gender


def test_unknown_and_wrong_parameters_are_told() -> None:
    with pytest.raises(UsageError, match="unknown parameter 'gapp'; did you mean 'gap'"):
        load_scenarios(DRAWN, {"gapp": "3"})
    with pytest.raises(ScenarioError, match='got the text "wide", expected a number'):
        load_scenarios(DRAWN, {"gap": "wide"})


# Imports.


def test_imports_bring_names_parameters_and_problems_but_no_scenarios(tmp_path: Path) -> None:
    inner = tmp_path / "inner.scenario"
    inner.write_text("parameter far = 50;\n" + scene(before="// first"), encoding="utf-8")
    outer = tmp_path / "outer.scenario"
    outer.write_text(
        'import "inner.scenario";\nv = Vehicle(("lane_1" -> far));\n'
        'mine = CreateScenario { load("straight"); ego; {v}; };',
        encoding="utf-8",
    )
    (scenario,) = load_scenarios(outer, {"far": "70"})
    assert (scenario.name, scenario.actors[0].start.x_m) == ("mine", 70.0)
    inner.write_text(inner.read_text(encoding="utf-8").replace("50", "5o"), encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"inner\.scenario:1:18"):
        load_scenarios(outer)


def test_a_script_may_be_imported_by_two_ways(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "d.scenario").write_text("far = 50;\n", encoding="utf-8")
    (tmp_path / "b.scenario").write_text('import "d.scenario";\n', encoding="utf-8")
    (tmp_path / "deep" / "c.scenario").write_text('import "../d.scenario";\n', encoding="utf-8")
    path = tmp_path / "a.scenario"
    path.write_text('import "b.scenario";\nimport "deep/c.scenario";\n' + scene(), encoding="utf-8")
    assert len(load_scenarios(path)) == 1


def test_chains_are_not_endless() -> None:
    lines = ["w0 = Person(((30, -5)));"]
    lines += [f"w{k} = Person((({30 + k}, -5), 1 deg related to w{k - 1}));" for k in range(1, 300)]
    (problem,) = read("\n".join(lines) + scene("w299")).problems
    assert "more than 50 headings" in problem.got


def test_scripts_that_import_each_other_are_refused(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{name}.scenario").write_text(f'import "{other}.scenario";\n' + scene(), encoding="utf-8")
    with pytest.raises(ScenarioError, match="in a circle"):
        load_scenarios(tmp_path / "a.scenario")


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.scenario"
    with pytest.raises(UsageError, match="cannot be read"):
        load_scenarios(path)
    path.write_bytes(b"a = \xff;")
    with pytest.raises(UsageError, match="UTF-8"):
        load_scenarios(path)


def test_words_for_weather_are_in_order() -> None:
    assert 0.0 < LEVELS["light"] < LEVELS["middle"] < LEVELS["heavy"] < 1.0


def test_edits_do_not_depend_on_each_other() -> None:
    from mt_nodes.world.scenarios.language.formatting import edited

    edits = [Edit(6, 7, "C"), Edit(0, 3, "A"), Edit(1, 2, "lost"), Edit(4, 4, "!")]
    assert edited("abc defg", edits) == "A !deCg"


def test_messages_have_a_form() -> None:
    for path in BAD:
        for problem in problems_of(path.read_text(encoding="utf-8"), path.name, path=path):
            assert re.match(r"^[\w./]+:\d+:\d+: got \S", str(problem))
            assert replace(problem, hint="").hint == ""


def test_a_script_too_long_to_be_one_is_refused_at_once() -> None:
    (problem,) = problems_of("a = 1;\n" * 50_000)
    assert str(problem) == "script:1:1: got 350,000 characters, expected at most 250,000"


def test_problems_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing all pairs took 9 s for 8,000 statements."""
    compared, equal = [0], Problem.__eq__

    def counting(one: Problem, other: object) -> bool:
        compared[0] += 1
        return bool(equal(one, other))

    monkeypatch.setattr(Problem, "__eq__", counting)
    assert len(problems_of("a = 1;\n" * 500)) == 499
    assert compared[0] < 5_000
