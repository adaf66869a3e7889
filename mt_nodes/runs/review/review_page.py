# SPDX-License-Identifier: Apache-2.0
"""The page on which cases are rated: served, or whole in one file. What is in it tells no verdict, relation or pair."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2

from mt_nodes.report.html import environment
from mt_nodes.runs.review.case_files import case_file
from mt_nodes.runs.review.sample import Sample

_TEMPLATES = Path(__file__).parent / "templates"
#: What the script may ask: its own server, or nobody.
SERVED, ALONE = "connect-src 'self'", "connect-src 'none'"


def served_page(sample: Sample) -> str:
    """Return the page that asks its server for cases."""
    return _page(sample, {"review": sample.review, "ids": _ids(sample)}, SERVED)


def whole_page(sample: Sample, results_dir: Path) -> str:
    """Return the page that holds all cases. Raises OSError: what is shown of a case is gone."""
    cases = {one: json.loads(case_file(results_dir, one).read_text(encoding="utf-8")) for one in _ids(sample)}
    return _page(sample, {"review": sample.review, "ids": _ids(sample), "cases": cases}, ALONE)


def policy(connect: str) -> str:
    """Return the content security policy: this script and no other, pictures out of data alone."""
    return (
        f"default-src 'none'; script-src {_script()[1]}; style-src 'unsafe-inline'; img-src data:; {connect}; "
        "base-uri 'none'; form-action 'none'"
    )


def template(name: str) -> jinja2.Template:
    """Return a template of the review; those of the report can be included."""
    shared = environment()
    places = [jinja2.FileSystemLoader(_TEMPLATES), *([shared.loader] if shared.loader else [])]
    return shared.overlay(loader=jinja2.ChoiceLoader(places)).get_template(name)


def _page(sample: Sample, given: dict[str, Any], connect: str) -> str:
    # In a script element nothing ends it but "</": no "<" is in it.
    data = json.dumps(given).replace("<", "\\u003c")
    return template("rate.html.j2").render(
        policy=policy(connect), given=data, script=_script()[0], count=len(sample.cases)
    )


def _ids(sample: Sample) -> list[str]:
    return [case.id for case in sample.cases]


@lru_cache
def _script() -> tuple[str, str]:
    """Return the script, and its source as a policy names it."""
    text = (_TEMPLATES / "rate.js").read_text(encoding="utf-8")
    return text, f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
