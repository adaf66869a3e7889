# SPDX-License-Identifier: Apache-2.0
"""Further files that people hand over: campaigns, live runs, dilemmas, prompts, rules, scenarios, models, plugins.

The sound one of each kind is what ships, or what the package itself writes; ``fuzz/files.py`` has relations and stacks.
"""

from __future__ import annotations

import copy
import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from hypothesis import strategies as st

from fuzz.cases import Case, Target, edited
from fuzz.files import SNIPPETS, changed
from fuzz.invariant import require, told_well
from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.base.network_file import OnnxFile
from mt_nodes.base.resources import config_dir
from mt_nodes.engine.case_plan import load_cases
from mt_nodes.rules.models import load_models
from mt_nodes.rules.ontology import load_ontology
from mt_nodes.rules.prompts import Prompts, read_examples
from mt_nodes.rules.store_files import Reader, write
from mt_nodes.runs.campaign.file import Campaign
from mt_nodes.runs.live.settings import configured
from mt_nodes.runs.moral.pool import as_plain, load_pool
from mt_nodes.runs.moral.principle import load_principle
from mt_nodes.runs.vehicle.inline import load_inline_config
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.drive.scenario_files import scenarios_of
from mt_nodes.world.scenarios.language import ScenarioError

NAME = "fuzzed"
ROOT = Path(__file__).resolve().parents[1]
PLUGIN = '''
from dataclasses import dataclass
from mt_nodes.base.params import param
from mt_nodes.relations.checks.base import Check


@dataclass(frozen=True)
class FuzzedCheck(Check):
    """Holds always."""

    within_m: float = param(3.0, low=0.0, high=9.0, unit="m", help="how far")

    def judge(self, source, followup, effects):
        raise NotImplementedError
'''


def _campaign(path: Path) -> Any:
    campaign = Campaign.load(path)
    require(bool(campaign.bags and campaign.relations and campaign.stacks), "a campaign of nothing")
    again = Campaign.from_plain(json.loads(json.dumps(campaign.as_plain())), "again")
    require(again == campaign, "a campaign reads otherwise when written again")


def _pool(path: Path) -> Any:
    pool = load_pool(str(path))
    again = path.with_name("again.yaml")
    again.write_text(yaml.safe_dump(as_plain(pool), allow_unicode=True, sort_keys=False), encoding="utf-8")
    require(load_pool(str(again)) == pool, "dilemmas read otherwise when written again")


def _cases(path: Path) -> Any:
    plan = load_cases(path)
    require(bool(plan.cases), "a plan without cases")


def _examples(path: Path) -> Any:
    for example in read_examples(path):
        require(bool(example.rule) and isinstance(json.loads(example.answer), dict), "an example without an answer")


def _prompt(path: Path) -> Any:
    folder = path.parent / "prompts"
    folder.mkdir()
    for shipped in (config_dir() / "prompts").iterdir():
        (folder / shipped.name).write_bytes(shipped.read_bytes())
    (folder / "extract.user.md").write_bytes(path.read_bytes())
    messages = Prompts(load_ontology(), folder).extract("Stop at a red light.")
    require(len(messages) == 2, "a prompt of another number of messages")


def _rules(path: Path) -> Any:
    entries = Reader(load_ontology(), "germany", "fuzzed").read(path)
    again = path.with_name(f"again{path.suffix}")
    write(entries, again)
    require(len(Reader(load_ontology(), "germany", "fuzzed").read(again)) == len(entries), "rules were lost")


def _plugin(path: Path) -> Any:
    before = plugins.directories()
    try:
        plugins.add_directory(path.parent)
        found = plugins.catalogue("checks")
        require("obstacles_kept" in found, "a folder of plugins hides a shipped check")
    finally:
        plugins._directories[:] = before
        plugins.catalogue.cache_clear()
        sys.modules.pop(f"mt_plugins_{NAME}", None)


def _onnx(path: Path) -> Any:
    network = OnnxFile(path)
    given = [np.zeros([size or 1 for size in port.shape], port.dtype) for port in network.inputs]
    if sum(tensor.nbytes for tensor in given) < 1 << 24:
        network(given)


def _scenario(path: Path) -> Any:
    try:
        require(bool(scenarios_of(str(path), 0)), "a file without a scenario was accepted")
    except ScenarioError as error:  # tells all problems, one a line
        for line in str(error).splitlines():
            told_well(UsageError(line), "")
            require(line.isprintable(), f"a problem that is not one line: {line!r}")
        raise UsageError(str(error).splitlines()[0]) from error


def _network(path: Path) -> Any:
    (path.parent / "high.onnx").write_bytes(_SOUND["onnx"]())
    require(bool(load_stack(str(path)).callable), "a stack with a network and without a callable")


#: Kind -> how the file ends, and what reads it.
READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "campaign": (".yaml", _campaign),
    "live": (".yaml", lambda path: configured(path, {})),
    "inline": (".yaml", load_inline_config),
    "dilemmas": (".yaml", _pool),
    "principle": (".yaml", lambda path: load_principle(str(path))),
    "cases": (".yaml", _cases),
    "examples": (".yaml", _examples),
    "language_models": (".yaml", lambda path: load_models(path, {"SOME_KEY": "x"})),
    "ontology": (".yaml", load_ontology),
    "network": (".yaml", _network),
    "rules_yaml": (".yaml", _rules),
    "rules_csv": (".csv", _rules),
    "rules_feature": (".feature", _rules),
    "prompt": (".md", _prompt),
    "scenario": (".scenario", _scenario),
    "open_scenario": (".xosc", _scenario),
    "plugin": (".py", _plugin),
    "onnx": (".onnx", _onnx),
}
#: What is edited as bytes: its parts are no values of YAML.
BYTES = ("rules_csv", "rules_feature", "prompt", "scenario", "open_scenario", "plugin", "onnx")


@lru_cache
def kinds() -> tuple[str, ...]:
    """Return the kinds whose libraries are there."""
    lacks = {"open_scenario": "scenariogeneration", "onnx": "onnxruntime", "network": "onnxruntime"}
    return tuple(kind for kind in READERS if kind not in lacks or importlib.util.find_spec(lacks[kind]))


def _read(*parts: str) -> Callable[[], bytes]:
    return lambda: (ROOT.joinpath(*parts)).read_bytes()


def _dumped(document: Any) -> Callable[[], bytes]:
    return lambda: yaml.safe_dump(document, sort_keys=False).encode()


def _sound_onnx() -> bytes:
    sys.path.insert(0, str(ROOT / "test"))
    from made_onnx import high_places

    with tempfile.TemporaryDirectory(prefix="mt_fuzz_") as place:
        return high_places(Path(place) / "high.onnx", 4, 4).read_bytes()


def _sound_rules(ending: str) -> bytes:
    row = {
        "road": "any_road",
        "verb": "adds",
        "element": "pedestrian",
        "place": "on the road",
        "behaviour": "slow_down",
    }
    with tempfile.TemporaryDirectory(prefix="mt_fuzz_") as place:
        path = Path(place) / "rules.yaml"
        path.write_text(yaml.safe_dump([row]))
        entries = Reader(load_ontology(), "germany", "fuzzed").read(path)
        write(entries, Path(place) / f"rules_again{ending}")
        return (Path(place) / f"rules_again{ending}").read_bytes()


_CAMPAIGN = {
    "bags": ["drives/*", "a.mcap"],
    "relations": ["fog_monotone", {"id": "noise_outside_roi_10", "set": {"noise_outside_roi.points": [1, 2]}}],
    **{"stacks": ["reference_detector", "mine.yaml"], "seeds": [0, 1], "draws": 2, "workers": 2, "retries": 1},
    **{"budget": {"minutes": 5, "pairs": 100}, "stop_early": {"when": "first_violation"}},
    "topics": {"lidar": "/points"},
}
_PLAN = {
    "schema": 1,
    "made_by": {"ontology": "0"},
    "cases": [{"name": "drive/0", "bag": 0, "first": 0, "last": 9, "relation": "fog", "facts": {"speed_kmh": 31.2}}],
}
_MODELS = {
    "models": {
        "hosted": {"url": "https://host/v1", "model": "m", "key_from": "SOME_KEY", "price_in": 2, "per_minute": 60},
        "local": {"url": "http://localhost:8000/v1", "parameters": {"temperature": 0.2}},
    }
}
_ONTOLOGY = {"roads": {"bridge": {"says": ["bridge", "on a bridge"]}}}
_SOUND: dict[str, Callable[[], bytes]] = {
    "campaign": _dumped(_CAMPAIGN),
    "live": _read("examples", "live", "vehicle.yaml"),
    "inline": _read("examples", "live", "inline.yaml"),
    "dilemmas": _read("config", "dilemmas", "published.yaml"),
    "principle": _read("config", "principles", "humans_before_animals.yaml"),
    "cases": _dumped(_PLAN),
    "examples": _read("config", "prompts", "examples.yaml"),
    "language_models": _dumped(_MODELS),
    "ontology": _dumped(_ONTOLOGY),
    "network": lambda: _read("examples", "stacks", "network.yaml")().replace(b"high_cells", b"high"),
    "rules_yaml": lambda: _sound_rules(".yaml"),
    "rules_csv": lambda: _sound_rules(".csv"),
    "rules_feature": lambda: _sound_rules(".feature"),
    "prompt": _read("config", "prompts", "extract.user.md"),
    "scenario": _read("config", "scenarios", "box_on_the_road.scenario"),
    "open_scenario": _read("test", "scenario_language", "child_crosses.xosc"),
    "plugin": PLUGIN.encode,
    "onnx": _sound_onnx,
}


@lru_cache
def sound(kind: str) -> bytes:
    """Return a file with nothing wrong."""
    return _SOUND[kind]()


_TEXT = st.tuples(st.integers(0, 6000), st.sampled_from((0, 0, 0, 1, 2, 20)), st.sampled_from(SNIPPETS))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a kind; change values and keys of its sound document, or its bytes, and then its text."""
    kind = draw(st.sampled_from(kinds()))
    if kind in BYTES:
        data = draw(edited(sound(kind)))
    else:
        document = yaml.safe_load(sound(kind))
        for _ in range(draw(st.integers(0, 3))):
            document = changed(draw, copy.deepcopy(document))
        data = yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode()
    if kind != "plugin":  # what runs is code: an edit may make it run anything
        for at, gone, new in draw(st.lists(_TEXT, max_size=2)):
            begin = at % (len(data) + 1)
            data = data[:begin] + new + data[begin + gone :]
    return Case(kind, data)


def check(case: Case, place: Path) -> str:
    """Read a file as what it is meant to be."""
    ending, read = READERS[case.kind]
    path = place / f"{NAME}{ending}"
    path.write_bytes(case.data)
    read(path)
    return "read"


TARGET = Target("inputs", kinds(), cases, sound, check, "")
