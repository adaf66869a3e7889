# SPDX-License-Identifier: Apache-2.0
"""One run beside a live stack, checked; kept in ``run.json``."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mt_nodes.base import plugins
from mt_nodes.base.directories import write_whole
from mt_nodes.base.environment import user_domain
from mt_nodes.base.errors import UsageError
from mt_nodes.base.message_packages import refuse_missing
from mt_nodes.data.transforms import TransformTree, load_transforms
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.engine.judging import Offer, offers
from mt_nodes.engine.run_record import FILE
from mt_nodes.engine.waivers import load_waivers
from mt_nodes.relations.relation import Relation, load_suite, refuse_baseline, sham_for
from mt_nodes.runs.live.config import NOT_GIVEN, LiveConfig, check_live, live_config
from mt_nodes.runs.relation_choice import choose_relations
from mt_nodes.runs.run_directory import SuiteRun
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.stack import Stack, load_stack

#: Where a running suite says which ROS domains it is in.
DOMAINS_FILE = "live.json"


@dataclass(frozen=True, eq=False)
class LiveRun(SuiteRun[LiveConfig]):
    """Everything a live run needs, checked: what cannot run was refused while making it."""

    COMMAND, KEY, REQUEST = "mt live", "live_domain", LiveConfig

    @classmethod
    def make(cls, config: LiveConfig, out: Path) -> LiveRun:
        """Load and check what the configuration names. Raises UsageError: saying what to write instead."""
        plugins.add_directories(map(Path, config.plugins))
        if config.live_domain == NOT_GIVEN:
            config = dataclasses.replace(config, live_domain=user_domain(os.environ))
        stack = with_faults(load_stack(config.stack), config.faults)
        check_live(config, stack)
        # A check of a configuration (`mt doctor`) makes the run and no directory.
        refuse_missing(stack.message_types, f"stack '{stack.name}'")
        choice = choose_relations(config.relations, partial(_misfit, config=config, stack=stack))
        config = dataclasses.replace(config, relations=choice.relations)
        suite = load_suite(config.relations, sham_for(stack.inputs), stack.traits)
        for relation in suite.relations:
            if reason := _misfit(relation, config, stack):
                raise UsageError(reason)
        for read, name in ((load_waivers, config.waivers), (load_transforms, config.transforms)):
            if name:
                read(Path(name))
        return cls(config, out, stack, suite, left_out=choice.left_out)

    @classmethod
    def read_request(cls, plain: Mapping[str, Any], out: Path) -> LiveConfig:
        """Return the configuration."""
        return live_config(plain, str(out / FILE))

    @property
    def over_topics(self) -> bool:
        """A live stack is reached by ROS alone."""
        return True

    @property
    def topics_of_sources(self) -> dict[str, Any]:
        """Mode -> role -> topic."""
        return {self.request.mode: self.stack.topics}

    @property
    def static_transforms(self) -> TransformTree:
        """Transforms of the user's file."""
        return load_transforms(Path(self.request.transforms)) if self.request.transforms else TransformTree()

    @property
    def offers(self) -> tuple[Offer, ...]:
        """What takes turns: the control first, the sham last, the relations between in their order."""
        control, sham, *relations = offers(self.suite)
        return (control, *relations, sham)

    @property
    def only(self) -> Pair | None:
        """The one pair that is judged: a live run judges whatever comes."""
        return None

    @property
    def input_condition(self) -> dict[str, Any]:
        """Input that comes by itself."""
        return {"pace": "realtime", "transport": "ros", "bags": [], "limit": None}

    def write_domains(self, domains: dict[str, int]) -> None:
        """Write down which ROS domains the run is in: ``live``, ``control``, and those of our arms by their names."""
        write_whole(self.out / DOMAINS_FILE, json.dumps(domains) + "\n")


def _misfit(relation: Relation, config: LiveConfig, stack: Stack) -> str | None:
    """Say why a relation cannot be judged beside a live stack, None if it can."""
    if reason := incompatibility(relation, stack, over_topics=True):
        return reason
    try:
        if config.mode == "shadow" or any(mutation.about_wires for mutation in relation.mutate):
            refuse_baseline(relation, f"mode: {config.mode}")
    except UsageError as error:
        return str(error)
    return None


def read_domains(out: Path) -> dict[str, int]:
    """Return the ROS domains that a run told of. Raises UsageError: it has not told them."""
    path = out / DOMAINS_FILE
    if not path.exists():
        raise UsageError(
            f"no `mt live` runs in {out}; expected the directory of a running `mt live`, or --domain N; "
            "`mt live --config FILE` begins one"
        )
    try:
        return {str(name): int(domain) for name, domain in json.loads(path.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, AttributeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}; expected the directory of a running `mt live`") from error
