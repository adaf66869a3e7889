# SPDX-License-Identifier: Apache-2.0
"""Which relations the words of ``--relations`` stand for: names, files, ``all``, patterns, tags and suites."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from mt_nodes.base import plugins, resources
from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.wording import counted
from mt_nodes.base.yaml_files import named_items, read_mapping
from mt_nodes.relations.named_suites import BACKGROUND, names_from_suite_file, relation_names, suite_words, suites
from mt_nodes.relations.relation import FOLDER, LOOP_FOLDER, RULE_BORN, Relation, load_relation

#: Every relation that ships, except those of traffic rules.
ALL = "all"
#: Begin words that stand for relations with a tag (see :func:`tags_of`), and for those of a region's traffic rules.
TAG, RULES = "tag:", "rules:"
_YAML = (".yaml", ".yml")
#: Keys of a relation whose plugins are its tags.
_PARTS = ("baseline", "mutate", "given", "scenario", "check")
#: Reasons that differ in what was measured are one.
_NUMBER = re.compile(r"(?<![\w.])\d[\d.,]*")

#: Says why a relation cannot be judged, None where it can.
Misfit = Callable[[Relation], "str | None"]


@dataclass(frozen=True)
class RelationChoice:
    """What words stand for.

    ``relations``: names and files, in the order of the words. ``left_out``: relation -> why it cannot be judged.
    """

    relations: tuple[str, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)


def choose_relations(words: Iterable[str], misfit: Misfit, *, loop: bool = False) -> RelationChoice:
    """Return the relations that words stand for.

    A relation that was named itself is returned as it is: whether it can be judged is for the run to say. Those that
    come of a pattern, a tag or a suite are left out where they cannot be judged.
    ``words``: of ``--relations``, or of a file. ``misfit``: says why a relation cannot be judged. ``loop``: in a closed
    loop.
    Raises UsageError: a word stands for nothing, or for no relation that can be judged.
    """
    chosen: dict[str, None] = {}
    named: list[str] = []
    left_out: dict[str, str] = {}
    for word in _without_files(words, loop):
        members = members_of(word, loop)
        if members is None:
            named += [word] if word in named or word not in chosen else []
            chosen[word] = None
            continue
        why = {name: _misfit(load_relation(name, loop), misfit, loop) for name in members}
        if all(why.values()):
            raise UsageError(_none_fits(word, why))
        chosen |= {name: None for name, reason in why.items() if reason is None}
        left_out |= {name: reason for name, reason in why.items() if reason is not None}
    twice = [name for name in dict.fromkeys(named) for _ in range(named.count(name) - 1)]
    return RelationChoice((*chosen, *twice), left_out)


def loaded_relations(words: Sequence[str], loaded: Sequence[str]) -> tuple[str, ...]:
    """Return those of a run's relations that words stand for: names, patterns, tags, suites or ``all``.

    Raises UsageError: a word stands for none of them.
    """
    chosen: list[str] = []
    for word in words:
        if word in loaded:
            chosen.append(word)
            continue
        found = [name for name in loaded if _stands_for(word, name)]
        if not found:
            what = f"loaded are {', '.join(loaded)}"
            raise UsageError(f"relation '{word}' was not loaded{suggest(word, loaded, what)}")
        chosen += [name for name in found if name not in chosen]
    return tuple(chosen)


def _stands_for(word: str, name: str) -> bool:
    if word == ALL or fnmatchcase(name, word):
        return True
    grouped = word.startswith((TAG, RULES)) or word in suites()
    return grouped and name in (members_of(word, loop=False) or ())


def members_of(word: str, loop: bool) -> tuple[str, ...] | None:
    """Return the relations that a word stands for, in the order of their names; None for the name of one, or a file.

    ``word``: what was typed. ``loop``: in a closed loop.
    Raises UsageError: it stands for nothing; names a similar word.
    """
    if word.endswith(_YAML):
        return None
    if word == ALL:
        return relation_names(LOOP_FOLDER if loop else FOLDER)
    if word.startswith(RULES):
        return _of_rules(word.removeprefix(RULES), loop)
    if word.startswith(TAG):
        return _tagged(word.removeprefix(TAG))
    if set(word) & set("*?["):
        return _matching(word, loop)
    if word in suites():
        return suite_members(word)
    if not word.startswith(RULE_BORN):
        _refuse_unknown_name(word)
    return None


@lru_cache
def suite_members(suite: str) -> tuple[str, ...]:
    """Return the names of all relations of a named suite, of open and closed loop."""
    names = [*relation_names(FOLDER), *relation_names(LOOP_FOLDER)]
    found: dict[str, None] = {}
    for word in suite_words(suite):
        tag = word.removeprefix(TAG) if word.startswith(TAG) else ""
        found |= dict.fromkeys(n for n in names if (tag in _own_tags(n) if tag else fnmatchcase(n, word)))
    return tuple(found)


def suites_with(relation: str) -> tuple[str, ...]:
    """Return the named suites that a relation belongs to."""
    return tuple(suite for suite in suites() if relation in suite_members(suite))


def tags_of(relation: str) -> frozenset[str]:
    """Return the tags of a shipped relation.

    They are its kind, what it requires of the stack, its mutations, conditions and changes of the scenario, its check
    and what that judges (``detections``, ``boxes``, ``control`` …), its suites, and ``drives`` in the closed loop.
    """
    return _own_tags(relation) | set(suites_with(relation))


def left_out_lines(left_out: Mapping[str, str], names: int | None = None) -> list[str]:
    """Return a line for each reason for which relations were left out, with their names, or so many of them."""
    by_reason: dict[str, dict[str, str]] = {}
    for name, why in left_out.items():
        reason = why.removeprefix(f"relation '{name}' ")
        by_reason.setdefault(_NUMBER.sub("0", reason), {})[name] = reason
    return [
        f"left out {counted(len(ids), 'relation')}: {next(iter(ids.values()))}: {_some(list(ids), names)}"
        for ids in by_reason.values()
    ]


def _some(ids: Sequence[str], count: int | None) -> str:
    more = len(ids) - count if count is not None else 0
    return ", ".join(ids) if more <= 0 else f"{', '.join(ids[:count])} and {more} more"


def _misfit(relation: Relation, misfit: Misfit, loop: bool) -> str | None:
    if loop and not relation.loop:
        return "it judges answers to single inputs, as `mt replay` gets them"
    return misfit(relation)


def _without_files(words: Iterable[str], loop: bool) -> Iterator[str]:
    """Yield the words, in place of a suite file those that are in it."""
    for word in words:
        if word.endswith(_YAML) and Path(word).is_file() and "relations" in read_mapping(Path(word)):
            yield from words_of_suite_file(Path(word), loop=loop)
        else:
            yield word


def words_of_suite_file(path: Path, *, loop: bool = False) -> list[str]:
    """Return the words of a suite file, each of which stands for something.

    Raises UsageError: the file is invalid, or a word stands for nothing or stands there twice; names the file.
    """
    words = names_from_suite_file(path)
    try:
        for at, word in enumerate(words):
            if word in words[:at]:
                raise UsageError(f"relations: '{word}' is named twice")
            if members_of(word, loop) is None:
                load_relation(word, loop)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    return words


def _of_rules(region: str, loop: bool) -> tuple[str, ...]:
    from mt_nodes.rules.shipped_rules import in_loop, in_store, readings  # reads all rules

    if region not in readings():
        raise UsageError(f"no rules of '{region}' ship{suggest(region, readings())}")
    return tuple(name for name, one in (in_loop() if loop else in_store()).items() if one.rules.region == region)


def _tagged(tag: str) -> tuple[str, ...]:
    if tag in suites():
        return suite_members(tag)
    names = [*relation_names(FOLDER), *relation_names(LOOP_FOLDER)]
    if found := tuple(name for name in names if tag in _own_tags(name)):
        return found
    known = {one for name in names for one in _own_tags(name)} | {*suites()}
    raise UsageError(f"no relation has the tag '{tag}'{suggest(tag, known, '`mt show RELATION` prints its tags')}")


def _matching(pattern: str, loop: bool) -> tuple[str, ...]:
    folder, elsewhere = (LOOP_FOLDER, FOLDER) if loop else (FOLDER, LOOP_FOLDER)
    names = [*relation_names(folder), *(_rule_names(loop) if pattern.startswith(RULE_BORN) else ())]
    if found := tuple(name for name in names if fnmatchcase(name, pattern)):
        return found
    if other := [name for name in relation_names(elsewhere) if fnmatchcase(name, pattern)]:
        belong = "to replays and live runs" if loop else "to the closed loop, where `mt scenario` judges them"
        raise UsageError(f"'{pattern}' matches no relation here; {', '.join(other)} belong {belong}")
    raise UsageError(f"no relation matches '{pattern}'{_similar_pattern(pattern, names)}")


def _rule_names(loop: bool) -> Iterable[str]:
    from mt_nodes.rules.shipped_rules import in_loop, in_store  # reads all rules

    return in_loop() if loop else in_store()


def _similar_pattern(pattern: str, names: Sequence[str]) -> str:
    """Return a hint: the pattern with a beginning that names have."""
    literal = pattern[: min(pattern.find(sign) for sign in "*?[" if sign in pattern)].rstrip("_")
    beginnings = {"_".join(words[:n]) for words in (name.split("_") for name in names) for n in range(1, len(words))}
    hint = suggest(literal, beginnings, "`mt list relations` lists them")
    return hint.replace("'?", "_*'?")


def _refuse_unknown_name(name: str) -> None:
    known = [*relation_names(FOLDER), *relation_names(LOOP_FOLDER), *BACKGROUND]
    if name not in known:
        hint = suggest(name, [*known, *suites(), ALL], "`mt list relations` shows them, `mt list suites` the suites")
        raise UsageError(f"no relation '{name}'{hint} (or give the path of a .yaml file)")


def _none_fits(word: str, why: Mapping[str, str | None]) -> str:
    reasons = dict.fromkeys(str(reason).removeprefix(f"relation '{name}' ") for name, reason in why.items())
    first, *more = reasons
    others = f"; {counted(len(more), 'other reason')} for some of them" if more else ""
    return f"'{word}' stands for {counted(len(why), 'relation')}, of which none can be judged here: {first}{others}"


@lru_cache(maxsize=1024)
def _own_tags(name: str) -> frozenset[str]:
    """Return the tags of a relation without its suites, by its file alone: mutations are slow to import."""
    born = name.startswith(RULE_BORN)
    data = load_relation(name).as_plain() if born else read_mapping(resources.find(FOLDER, name, also=LOOP_FOLDER))
    parts = [part for key in _PARTS for part, _ in named_items(data.get(key) or [], f"{name}: {key}")]
    checks = [plugins.get("checks", check) for check, _ in named_items(data.get("check") or [], name)]
    needs = {need for check in checks if check is not None for need in check.needs}  # type: ignore[attr-defined]
    requires = {role for need in data.get("requires") or () for role in need.split(" or ")}
    drives = {"drives"} if name in relation_names(LOOP_FOLDER) else set()
    return frozenset({data["kind"], *requires, *parts, *needs, *drives})
