# SPDX-License-Identifier: Apache-2.0
"""What is asked of ``mt experiment automt``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.params import param
from mt_nodes.base.plain_data import PlainData
from mt_nodes.data.datasets.dataset_name import RECORDING_HELP
from mt_nodes.engine.plan import TRANSPORTS
from mt_nodes.rules.prediction_judging import SPREADS
from mt_nodes.rules.published_figures import REGIONS
from mt_nodes.rules.store_entry import CLASSIFIER, LEAST_AGREEMENT, PARSER

COMMAND = "mt experiment automt"
#: Ours, then what it is compared with; those of :data:`ASKING` need a language model.
OURS, MANUAL, ASKING = "automt", "manual", ("without_rules", "with_rules")
COMPARED = (OURS, MANUAL, *ASKING)
#: Ours with one part taken out, see :mod:`mt_nodes.runs.automt.ablations`.
WITHOUT_RETRIEVAL, WITHOUT_SELF_CHECK, WITHOUT_ONTOLOGY = "without_retrieval", "without_self_check", "without_ontology"
ABLATIONS = (WITHOUT_RETRIEVAL, WITHOUT_SELF_CHECK, WITHOUT_ONTOLOGY)
METHODS = (*COMPARED, *ABLATIONS)
CONTROL_BOUND = "control"
BOUNDS = (*SPREADS, CONTROL_BOUND)
MOST_ROUNDS, MOST_FRAMES = 100, 1000


@dataclass(frozen=True)
class AutomtRequest(PlainData):
    """Everything that the experiment depends on, kept in ``run.json``."""

    bags: tuple[str, ...] = param((), help=RECORDING_HELP)
    stacks: tuple[str, ...] = param(
        (), help="shipped stack, or .yaml file, whose commands are judged; may be given again"
    )
    regions: tuple[str, ...] = param(REGIONS, help="regions whose traffic rules are used")
    methods: tuple[str, ...] = param(
        COMPARED, help=f"methods to compare; ours with one part taken out: {', '.join(ABLATIONS)}"
    )
    frames: int = param(10, low=1, high=MOST_FRAMES, help="frames per case")
    rounds: int = param(5, low=1, high=MOST_ROUNDS, help="relations that each method proposes for each case")
    bound: str = param("std", help=f"bound that a change of the command must exceed: {', '.join(BOUNDS)}")
    models: tuple[str, ...] = param(
        (), help="language model of the server in MT_LLM_URL (key: MT_LLM_KEY), for the two methods that use one"
    )
    models_file: str = param("", help="YAML file of language models")
    readers: tuple[str, ...] = param(
        (PARSER,),
        help=f"who reads the rules for our method: {PARSER}, {CLASSIFIER}, or a language model; may be given again",
    )
    judges: tuple[str, ...] = param(
        (),
        help="language model that votes on the readings; may be given again (default: where several read, the models)",
    )
    samples: int = param(3, low=0, high=100, help="votes of each judge on each reading; 0: none is judged")
    least_agreement: float = param(
        LEAST_AGREEMENT, low=0.0, high=1.0, help="share of yes votes below which a reading is left out"
    )
    scene_model: str = param("", help="vision-language model that describes each case")
    scene_samples: int = param(3, low=1, high=100, help="its answers per case; facts in which they differ are unknown")
    detectors: tuple[str, ...] = param(
        (), help="stack that says which elements are present or absent, by its coverage; may be given again"
    )
    embed: str = param("", help="embedding model that compares meanings (default: latent semantic analysis)")
    nearest: int = param(0, low=0, help="consider only the N relations nearest to a scene (default: all)")
    edit_model: str = param(
        "", help="diffusion model, a directory or a name on the hub, that paints all changes into the pictures"
    )
    check_model: str = param(
        "", help="vision-language model that compares source and follow-up: whether the change is to be seen"
    )
    transport: str = param("inprocess", help=", ".join(TRANSPORTS))
    facts: Mapping[str, Any] = param(
        {}, help="known fact of all scenes, such as roads=intersection; may be given again"
    )
    topics: Mapping[str, str] = param({}, help="topic for a role, such as camera=/image, where the bag has several")
    transforms: str = param("", help="YAML file with transforms that the bag lacks")
    limit: int | None = param(None, low=1, help="use at most N bundles per bag")
    seed: int = param(0, help="seed of all random draws")
    plugins: tuple[str, ...] = param((), help="directory with your own plugins")

    @property
    def reference(self) -> int:
        """Which frame of a case its scene is of: the middle one, of ten the fifth from 0, as in the public code."""
        return self.frames // 2


def checked_request(request: AutomtRequest) -> AutomtRequest:
    """Return a request that can run, as far as it alone can tell. Raises UsageError: saying what to type instead."""
    if not request.bags:
        raise UsageError(f"got no bag; type `{COMMAND} BAG --stack NAME`, or `{COMMAND} --resume DIR`")
    if not request.stacks:
        raise UsageError("--stack: got none, expected one or more; `mt list stacks` shows those that ship")
    for option, values, known in (
        ("--region", request.regions, REGIONS),
        ("--methods", request.methods, METHODS),
        ("--bound", (request.bound,), BOUNDS),
        ("--transport", (request.transport,), TRANSPORTS),
    ):
        _refuse_unknown(option, values, known)
    refuse_readers(request.readers, request.judges, request.samples)
    for option, value, most in (("--frames", request.frames, MOST_FRAMES), ("--rounds", request.rounds, MOST_ROUNDS)):
        if not 1 <= value <= most:
            raise UsageError(f"{option}: got {value}, expected 1 to {most:,}")
    if twice := sorted({one for one in request.stacks if request.stacks.count(one) > 1}):
        raise UsageError(f"--stack: got {', '.join(twice)} twice, expected each once")
    return request


def refuse_readers(readers: Sequence[str], judges: Sequence[str], samples: int) -> None:
    """Refuse readers and judges of rules that do not fit together. Raises UsageError: saying what to type instead."""
    if not readers:
        raise UsageError(f"--reader: got none, expected {PARSER}, {CLASSIFIER} or a language model")
    for name in judges:
        if name in (PARSER, CLASSIFIER):
            raise UsageError(f"--judge {name}: it answers no questions; name a language model")
        if name in readers:
            raise UsageError(f"--judge {name}: it is a reader, too, and would vote on its own answers")
    if judges and not samples:
        raise UsageError("--judge: got --samples 0, expected 1 vote or more")


def _refuse_unknown(option: str, values: Sequence[str], known: Collection[str]) -> None:
    if not values:
        raise UsageError(f"{option}: got none, expected some of {', '.join(known)}")
    for value in values:
        if value not in known:
            raise UsageError(f"{option}: there is no '{value}'{suggest(value, known)}")
