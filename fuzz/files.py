# SPDX-License-Identifier: Apache-2.0
"""Files that people write: every kind of YAML that is read, its values, keys and text changed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from hypothesis import strategies as st

from fuzz.cases import Case, Target
from fuzz.invariant import require
from mt_nodes.base import plugins, yaml_files
from mt_nodes.base.params import describe, plain
from mt_nodes.data.regions import load_region
from mt_nodes.data.transforms import UnknownTransform, dump_transforms, load_transforms
from mt_nodes.engine.waivers import apply_waivers, load_waivers
from mt_nodes.relations.relation import load_relation, load_suite
from mt_nodes.report import published_tables
from mt_nodes.runs.relation_choice import choose_relations, words_of_suite_file
from mt_nodes.stacks.stack import Stack, load_stack

NAME = "fuzzed.yaml"
#: Values that are something else than what stands there.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 3.5, 10**30, 1e308, float("nan"), float("inf"), "", " ", "x", "1e3", "on"),
    *("/", "/a", "a/b", "é\u2028\x85", "a\nb", "\x1b[31m", "{n}", "../x", "x" * 3000, "front_40m", "topic:/roi"),
    *(
        [],
        {},
        [[]],
        [None],
        [1, 2],
        [0, 0, 0, 1],
        {"a": 1},
        {1: 2},
        {"x": [0, 1], "y": [0, 1]},
        [[0, 0], [9, 9], [9, 0]],
    ),
    *(b"\xff", {"identity": {}}, [{"points_permuted": None}]),
)
KEYS: tuple[Any, ...] = ("", "x", "id", "polygon", 1, None, True, 2.5, "a\nb", "check ", "x" * 300)
#: Bits of YAML that mean something.
SNIPPETS = (
    *(
        b"\n",
        b" ",
        b"\t",
        b"- ",
        b": ",
        b"? ",
        b"&a ",
        b"*a",
        b"<<: *a\n",
        b"!!set ",
        b"!!python/name:os.system ",
        b"!x ",
    ),
    *(
        b"---\n",
        b"...\n",
        b"%YAML 9.9\n",
        b"# ",
        b"| ",
        b">-\n",
        b"[",
        b"]",
        b"{",
        b"}",
        b'"',
        b"'",
        b"\\x",
        b"0x_",
        b"1_0",
    ),
    *(
        b"2001-99-99",
        b"12:30:45",
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xc3",
        b"=",
        b"~",
        b"!!binary xx",
        b"!!float x",
    ),
)
CARRIED = ("name", "frame_id", "polygon_m", "box_m", "z_m", "topic")


def _relation(path: Path) -> Any:
    relation = load_relation(str(path))
    once = relation.as_plain()
    again = path.with_name("again.yaml")
    again.write_text(yaml.safe_dump(_plainest(once)), encoding="utf-8")
    require(_same(load_relation(str(again)).as_plain(), once), "a relation reads otherwise when written again")
    require(bool(relation.mutate) and (relation.check is not None or relation.role != "relation"), "nothing to judge")
    return once


def _suite(path: Path) -> Any:
    names = words_of_suite_file(path)
    suite = load_suite(choose_relations(names, lambda relation: None).relations)
    require(bool(suite.relations), "an empty suite was accepted")
    return {"relations": names}


def _stack(path: Path) -> Any:
    stack = load_stack(str(path))
    require(sum((bool(stack.callable), bool(stack.command), stack.external)) == 1, "no way or two ways to start")
    again = path.with_name("again.yaml")
    again.write_text(yaml.safe_dump(plain(stack)), encoding="utf-8")
    require(_same(plain(load_stack(str(again))), plain(stack)), "a stack reads otherwise when written again")
    return plain(stack)


def _region(path: Path) -> Any:
    region = load_region(str(path))
    if not region.topic:
        xy = np.array([[0.0, 0.0], [1e3, -1e3], *[corner for outline in region.polygon_m for corner in outline[:1]]])
        away, inside = region.signed_distance(xy), region.contains(xy)
        require(bool(np.isfinite(away).all()), "a distance that is not finite")
        require(bool((inside == (away <= 0)).all()), "inside and outside contradict each other")
        require(region.geometry.area > 0, "a region without area was accepted")
    return dict.fromkeys(CARRIED)


def _transforms(path: Path) -> Any:
    tree = load_transforms(path)
    for t in tree.transforms:
        try:
            turn = tree.lookup(t.parent, t.child)[:3, :3]
        except UnknownTransform:
            continue  # a loop, which only a look-up can tell
        require(np.allclose(turn @ turn.T, np.eye(3), atol=1e-6), "a transform that is no rigid motion was accepted")
    dump_transforms(tree, path.with_name("again.yaml"))
    again = load_transforms(path.with_name("again.yaml"))
    same = all(np.allclose(a.matrix, b.matrix) for a, b in zip(tree.transforms, again.transforms, strict=True))
    require(same, "transforms read otherwise when written again")
    return None


_SUMMARY: dict[str, Any] = {
    **{"interrupted": False, "infrastructure": None, "usage": None, "isolation": None},
    "outcomes": {"VIOLATED": 1},
    "relations": {"mine": {"outcome": "FAIL", "requirement": ["R1"], "decided": 20, "violated": 1}},
}
_VIOLATED = {"pair": "0/1/mine/0", "relation": "mine", "outcome": "VIOLATED"}


def _waivers(path: Path) -> Any:
    waivers = load_waivers(path)
    after = apply_waivers(_SUMMARY, [_VIOLATED], waivers)
    require(after["relations"]["mine"]["outcome"] == "FAIL", "a waived FAIL is no FAIL any more")
    waived = after["relations"]["mine"]["waived"]
    require(waived is None or bool(waived["reason"] and waived["expires"]), "waived without reason or date")
    return None


def _experiment(path: Path) -> Any:
    for file in published_tables.write_relations(str(path), (3,), path.parent / "relations"):
        load_relation(file)
    return None


def _qos(path: Path) -> Any:
    from mt_nodes.nodes.qos import describe as in_words
    from mt_nodes.nodes.qos import load_overrides

    profiles = load_overrides(path)
    require(all(profile.depth >= 1 and in_words(profile) for profile in profiles.values()), "a profile without depth")
    return profiles


READERS: dict[str, Callable[[Path], Any]] = {
    "relation": _relation,
    "suite": _suite,
    "stack": _stack,
    "region": _region,
    "transforms": _transforms,
    "waivers": _waivers,
    "experiment": _experiment,
    "qos": _qos,
}


def _defaults(cls: type) -> dict[str, Any]:
    return {row["name"]: row["default"] for row in describe(cls)}


@lru_cache
def _documents(kind: str) -> tuple[Any, ...]:
    """Sound documents of a kind, those of plugins with every parameter."""
    if kind in ("relation", "experiment"):
        head = {"id": "mine", "kind": "necessary", "because": "for tests", "min_decided": 5}
        lists = {"requirement": ["R1"], "requires": ["lidar", "stateless"]}
        made, conditions, checks = (
            [{name: _defaults(cls)} for name, cls in plugins.catalogue(k).items()]
            for k in ("mutations", "conditions", "checks")
        )
        rows = [
            {**head, **lists, "given": [c], "mutate": [m], "check": k} for m in made for c in conditions for k in checks
        ]
        if kind == "relation":
            return tuple(rows)
        return tuple({**row, "id": "mine_{n}", "mutate": [{"noise_outside_roi": {"points": 7}}]} for row in rows[:1])
    return {
        "suite": ({"relations": ["noise_outside_roi_10", "noise_near_roi_1000"]},),
        "stack": _stacks(),
        "region": (
            {"name": "r", "frame_id": "base_link", "polygon_m": [[0, -10], [40, -10], [40, 10]], "z_m": [0, 2.5]},
            {"frame_id": "map", "polygon_m": [[[0, 0], [9, 0], [9, 9]], [[20, 0], [29, 0], [29, 9]]]},
            {"frame_id": "base_link", "box_m": {"x": [0, 40], "y": [-10, 10]}},
            {"topic": "/roi"},
        ),
        "transforms": (
            [
                {"parent": "base_link", "child": "lidar", "translation_m": [0, 0, 1.7], "rpy_rad": [0, 0, 0.1]},
                {"parent": "lidar", "child": "cam", "translation_m": [1, 0, 0], "quaternion_xyzw": [0, 0, 0, 1]},
            ],
        ),
        "waivers": (
            [
                {"relation": "mine", "reason": "known", "expires": "2999-01-01", "requirement": "R1"},
                {"relation": "mine", "reason": "known", "expires": "2999-01-01", "pair": "0/1/mine/0"},
            ],
        ),
        "qos": (
            {"/points": {"history": "keep_last", "depth": 5, "reliability": "reliable", "durability": "volatile"}},
        ),
    }[kind]


def _stacks() -> tuple[dict[str, Any], ...]:
    shared = {k: v for k, v in _defaults(Stack).items() if k not in ("callable", "command", "start", "domain")}
    external = {"start": "external", "domain": {"source": 41, "followup": 42}, "nodes": ["/det"], "stateless": True}
    return (
        {**shared, "callable": "my_model:detect", "needs": ["/tf"]},
        {**shared, "command": ["ros2", "run", "{arm}"], "env": {"MODEL": "small"}, "answer": ["detections"]},
        {**shared, **external, "isolation": "remap"},
    )


def sound(kind: str) -> bytes:
    """Return a file with nothing wrong."""
    return _dumped(_documents(kind)[0], kind)


def _dumped(document: Any, kind: str) -> bytes:
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    return (text.replace("points: 7", "points: {n}") if kind == "experiment" else text).encode()


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a kind and a sound document; change values and keys in it, then its text."""
    kind = draw(st.sampled_from(tuple(READERS)))
    document = copy.deepcopy(draw(st.sampled_from(_documents(kind))))
    for _ in range(draw(st.integers(0, 3))):
        document = changed(draw, document)
    text = _dumped(document, kind)
    for at, gone, new in draw(st.lists(_TEXT_EDITS, max_size=2)):
        begin = at % (len(text) + 1)
        text = text[:begin] + new + text[begin + gone :]
    return Case(kind, text)


_TEXT_EDITS = st.tuples(
    st.integers(0, 4000),
    st.sampled_from((0, 0, 0, 1, 2, 20)),
    st.one_of(st.sampled_from(SNIPPETS), st.binary(max_size=4)),
)


def changed(draw: st.DrawFn, document: Any) -> Any:
    """Change one place of a document: another value, another key, one more, one less."""
    places = list(_places(document))
    if not places:
        return copy.deepcopy(draw(st.sampled_from(VALUES)))
    inside, key = draw(st.sampled_from(places))
    what = draw(st.sampled_from(("value", "value", "value", "key", "drop", "double")))
    if what == "value":
        inside[key] = copy.deepcopy(draw(st.sampled_from(VALUES)))
    elif what == "drop":
        del inside[key]
    elif isinstance(inside, list):
        inside.insert(key, copy.deepcopy(inside[key]))
    else:
        inside[draw(st.sampled_from(KEYS))] = inside.pop(key) if what == "key" else copy.deepcopy(inside[key])
    return document


def _places(value: Any) -> Any:
    """Yield every container below a document with each of its keys."""
    rows = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    for key, below in rows:
        yield value, key
        yield from _places(below)


def check(case: Case, place: Path) -> str:
    """Read a file as what it is meant to be; no key of it may have gone unread."""
    path = place / NAME
    path.write_bytes(case.data)
    read = READERS[case.kind](path)
    if isinstance(read, dict) and case.kind != "qos":
        left = set(yaml_files.parse(case.data.decode("utf-8-sig"), NAME)) - set(read)
        require(not left, f"keys that nobody read: {left}")
    return "read"


def _plainest(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plainest(v) for k, v in value.items()}
    return [_plainest(v) for v in value] if isinstance(value, (list, tuple)) else value


def _same(one: Any, other: Any) -> bool:
    # As text, with sorted keys: NaN is not equal to itself.
    return bool(yaml.safe_dump(_plainest(one)) == yaml.safe_dump(_plainest(other)))


TARGET = Target("files", tuple(READERS), cases, sound, check, NAME)
