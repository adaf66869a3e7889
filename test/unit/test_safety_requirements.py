# SPDX-License-Identifier: Apache-2.0
"""Requirements from YAML, CSV and ReqIF; errors name the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mt_nodes.base.errors import UsageError
from mt_nodes.runs.safety_case.preregistration import frames_needed
from mt_nodes.runs.safety_case.requirements import SafetyRequirement, read_requirements

WANTED = SafetyRequirement("R1", "Keep <obstacles> & people.", "Collision", ("fog", "noise"), 0.1)
YAML = """# ours
- id: R1
  text: Keep <obstacles> & people.
  hazard: Collision
  relations: [fog, noise]
  max_rate: 0.1
- id: 2
  text: Two
"""
CSV = 'id,text,hazard,relations,max_rate\nR1,"Keep <obstacles> & people.",Collision,"fog, noise",0.1\n2,Two,,,\n'
ATTRIBUTES = {"id": "ReqIF.ForeignID", "haz": "Hazard", "rel": "Relations", "max": "max_rate"}


def reqif(*objects: str, head: str = "") -> str:
    kinds = "".join(
        f'<ATTRIBUTE-DEFINITION-STRING IDENTIFIER="{short}" LONG-NAME="{name}"><TYPE><DATATYPE-DEFINITION-STRING-REF>d1'
        "</DATATYPE-DEFINITION-STRING-REF></TYPE></ATTRIBUTE-DEFINITION-STRING>"
        for short, name in ATTRIBUTES.items()
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>{head}
<REQ-IF xmlns="http://www.omg.org/spec/ReqIF/20110401/reqif.xsd" xmlns:xhtml="http://www.w3.org/1999/xhtml">
<THE-HEADER><REQ-IF-HEADER IDENTIFIER="h"><CREATION-TIME>2026-01-01T00:00:00Z</CREATION-TIME>
<REQ-IF-TOOL-ID>x</REQ-IF-TOOL-ID><REQ-IF-VERSION>1.0</REQ-IF-VERSION><SOURCE-TOOL-ID>x</SOURCE-TOOL-ID>
<TITLE>t</TITLE></REQ-IF-HEADER></THE-HEADER><CORE-CONTENT><REQ-IF-CONTENT><DATATYPES>
<DATATYPE-DEFINITION-STRING IDENTIFIER="d1" LONG-NAME="s" MAX-LENGTH="99"/>
<DATATYPE-DEFINITION-XHTML IDENTIFIER="d2" LONG-NAME="x"/></DATATYPES>
<SPEC-TYPES><SPEC-OBJECT-TYPE IDENTIFIER="t1" LONG-NAME="R"><SPEC-ATTRIBUTES>{kinds}
<ATTRIBUTE-DEFINITION-XHTML IDENTIFIER="text" LONG-NAME="ReqIF.Text"><TYPE><DATATYPE-DEFINITION-XHTML-REF>d2
</DATATYPE-DEFINITION-XHTML-REF></TYPE></ATTRIBUTE-DEFINITION-XHTML></SPEC-ATTRIBUTES></SPEC-OBJECT-TYPE></SPEC-TYPES>
<SPEC-OBJECTS>{"".join(objects)}</SPEC-OBJECTS><SPECIFICATIONS/></REQ-IF-CONTENT></CORE-CONTENT></REQ-IF>"""


def spec_object(name: str, text: str, **values: str) -> str:
    rows = "".join(
        f'<ATTRIBUTE-VALUE-STRING THE-VALUE="{value}"><DEFINITION><ATTRIBUTE-DEFINITION-STRING-REF>{key}'
        "</ATTRIBUTE-DEFINITION-STRING-REF></DEFINITION></ATTRIBUTE-VALUE-STRING>"
        for key, value in values.items()
    )
    if text:
        rows += (
            "<ATTRIBUTE-VALUE-XHTML><DEFINITION><ATTRIBUTE-DEFINITION-XHTML-REF>text</ATTRIBUTE-DEFINITION-XHTML-REF>"
            f"</DEFINITION><THE-VALUE><xhtml:div>{text}</xhtml:div></THE-VALUE></ATTRIBUTE-VALUE-XHTML>"
        )
    kind = "<TYPE><SPEC-OBJECT-TYPE-REF>t1</SPEC-OBJECT-TYPE-REF></TYPE>"
    return f'<SPEC-OBJECT IDENTIFIER="{name}"><VALUES>{rows}</VALUES>{kind}</SPEC-OBJECT>'


TEXT = "Keep <xhtml:b>&lt;obstacles&gt;</xhtml:b> &amp; people."
FIRST = spec_object("o1", TEXT, id="R1", haz="Collision", rel="fog, noise", max="0.1")
REQIF = reqif(FIRST, spec_object("heading", ""), spec_object("2", "Two"))


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize(
    ("name", "text"),
    [("r.yaml", YAML), ("r.csv", CSV), ("r.csv", CSV.replace(", ", " ").replace(",", ";")), ("r.reqif", REQIF)],
)
def test_the_same_is_read_from_each_format(tmp_path: Path, name: str, text: str) -> None:
    assert read_requirements(written(tmp_path, name, text)) == (WANTED, SafetyRequirement("2", "Two"))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("r.yaml", YAML + "- {id: R1, text: x}\n", "line 9: got id 'R1' twice"),
        ("r.yaml", YAML + "- {id: R3}\n", "line 9: text is empty"),
        ("r.yaml", YAML + "- {id: R3, text: x, max_rate: 2}\n", "line 9.max_rate: got 2, expected 1e-06 to 0.5"),
        ("r.yaml", YAML + "- {id: R3, text: x, hazzard: y}\n", "line 9: unknown parameter 'hazzard'; did you mean"),
        ("r.yaml", YAML + "- {id: R3, text: x, relations: fog}\n", "line 9.relations: got 'fog', expected a list"),
        ("r.yaml", "- [\n", "not valid YAML"),
        ("r.yaml", "[]\n", "holds no requirement"),
        ("r.csv", CSV + "R3,x\n", "line 4: got other columns than 5 columns"),
        ("r.csv", CSV + "R3,x,,,often\n", "line 4: max_rate: got 'often', expected a number"),
        ("r.reqif", "<REQ-IF>", "cannot be read as ReqIF"),
        ("r.reqif", reqif(spec_object("o", "x", max="y")), "line 11, object o: max_rate: got 'y'"),
        ("r.txt", "", "got the suffix '.txt', expected .yaml, .csv or .reqif"),
        ("r.csv", "", "holds no requirement"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, name: str, text: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_requirements(written(tmp_path, name, text))
    assert words in str(refused.value)


def test_entities_of_xml_are_not_expanded(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;"><!ENTITY f SYSTEM "file:///etc/hostname">]>'
    for head in (bomb, bomb.replace("DOCTYPE", "docTYPE")):
        with pytest.raises(UsageError, match="document type"):
            read_requirements(written(tmp_path, "r.reqif", reqif(spec_object("o", "&f;"), head=head)))


def test_so_many_clean_frames_bring_the_interval_to_the_rate() -> None:
    # Wilson's upper end without a hit is z² / (n + z²): n >= z² (1 / rate - 1).
    z2 = 1.959963984540054**2
    for rate in (0.5, 0.15, 0.05, 0.01, 0.001):
        assert z2 * (1 / rate - 1) <= frames_needed(rate) < z2 * (1 / rate - 1) + 1
    assert frames_needed(1.0) == 1
    with pytest.raises(UsageError, match="more than 10,000,000 frames"):
        frames_needed(1e-7)
