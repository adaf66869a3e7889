# SPDX-License-Identifier: Apache-2.0
"""The relations that our method chooses from: readings of the regions' rules by the readers of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.wording import counted
from mt_nodes.rules.extraction import (
    ClassifierReader,
    Extraction,
    ModelReader,
    ParserReader,
    Reader,
    SelfCheck,
    extract,
)
from mt_nodes.rules.model_queries import Asker
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.prompts import Prompts
from mt_nodes.rules.rule_sets import Rule, load_rule_set
from mt_nodes.rules.shipped_rules import scratch_store, shipped_entries
from mt_nodes.rules.store_entry import CLASSIFIER, PARSER, Entry
from mt_nodes.runs.automt.automt_request import AutomtRequest
from mt_nodes.runs.automt.model_pool import ModelPool

Progress = Callable[[str, int], None]
READING, JUDGING = "reading rules", "self-check"


@dataclass(frozen=True)
class RuleReaders:
    """The readers of an experiment and the judge of their readings, None where nothing is judged."""

    readers: Sequence[Reader]
    models: Sequence[Asker]
    check: SelfCheck | None

    @classmethod
    def of(cls, request: AutomtRequest, ontology: Ontology, pool: ModelPool) -> RuleReaders:
        """Return the readers that a request names; the models judge their own readings where no judge is named.

        Raises UsageError: a model is unknown, or a judge is a reader.
        """
        prompts = Prompts(ontology)
        built_in: dict[str, Reader] = {PARSER: ParserReader(ontology), CLASSIFIER: ClassifierReader(ontology)}
        models = [pool.named(name, READING) for name in request.readers if name not in built_in]
        readers = [ModelReader(model, prompts, ontology) for model in models]
        named = [*readers, *(built_in[name] for name in request.readers if name in built_in)]
        names = request.judges or (tuple(model.name for model in models) if len(named) > 1 else ())
        judges = [pool.named(name, JUDGING) for name in names] if request.samples else []
        check = SelfCheck(judges, prompts, request.samples, request.least_agreement) if judges else None
        return cls(named, models, check)

    @property
    def shipped(self) -> bool:
        """Whether the shipped relations are what is read: by the parser alone, and nobody judges."""
        return self.check is None and len(self.readers) == 1 and isinstance(self.readers[0], ParserReader)

    def entries(self, region: str, progress: Progress, *, judged: bool = True) -> list[Entry]:
        """Return the relations of a region's rules, equal ones merged, with numbers.

        ``judged``: leave out what the judge rejects; else the reading of most readers counts.
        Raises InfrastructureError: a model gave no answer to some rules; those so far are stored.
        """
        if self.shipped:
            return _numbered([entry for entry in shipped_entries() if entry.region == region])
        rules = list(load_rule_set(region).rules.values())
        found = list(self._read(rules, region, progress, self.check if judged else None))
        if missing := sum(not one.complete for one in found):
            raise InfrastructureError(
                f"{counted(missing, 'rule')} of {region} got no answer from some model; the other answers are kept: "
                "resume the experiment"
            )
        return _numbered([entry for one in found for entry in one.entries(region) if not entry.rejected])

    def _read(
        self, rules: Sequence[Rule], region: str, progress: Progress, check: SelfCheck | None
    ) -> Iterator[Extraction]:
        for done, one in enumerate(extract(rules, self.readers, check), 1):
            progress(f"reading the rules of {region}", done)
            yield one


def _numbered(entries: list[Entry]) -> list[Entry]:
    with scratch_store(entries) as store:
        return store.entries()
