# SPDX-License-Identifier: Apache-2.0
"""The page of a bundle of evidence: verdict, gaps, the argument, requirements, and sections of the standards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mt_nodes.base.wording import first_sentence
from mt_nodes.report.html import environment
from mt_nodes.report.safety_argument import safety_argument
from mt_nodes.report.safety_argument_svg import argument_svg
from mt_nodes.report.safety_sections import standards
from mt_nodes.report.svg_parts import data_uri


def safety_page(found: Mapping[str, Any]) -> str:
    """Return the page as HTML that loads nothing; equal results give equal bytes.

    ``found``: what the bundle comes to.
    """
    badge = {0: "PASS", 3: "INCONCLUSIVE"}.get(found["exit_code"], "FAIL")
    drawing = data_uri(argument_svg(safety_argument(found)))
    template = environment().get_template("safety.html.j2")
    return template.render(found=found, badge=badge, drawing=drawing, standards=standards(found), brief=first_sentence)
