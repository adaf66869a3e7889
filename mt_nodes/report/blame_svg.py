# SPDX-License-Identifier: Apache-2.0
"""The graph of a stack as `mt blame` found it: its nodes and topics, each topic with its divergence by repeat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from mt_nodes.engine.summary.blame_headline import headline, publishers, read_blames
from mt_nodes.report.svg_parts import data_uri, document, number

#: What a state is called in the picture.
STATES = {
    "same": "same",
    "elsewhere": "differs where it may",
    "differs": "differs",
    "unclear": "differs, perhaps rightly",
    "silent": "silent",
    "untapped": "not recorded",
}
_STYLE = """
.edge{fill:none;stroke:#8a8f96;stroke-width:1.2}.way{stroke:#c2410c;stroke-width:2.4}
.node{fill:#f1f3f5;stroke:#5b6168;stroke-width:1.2}.blamed{fill:#c2410c;stroke:#7c2d12}.node+text{font-weight:600}
.blamed+text{fill:#fff}.topic{fill:#fff;stroke:#b5bac0}.differs{stroke:#c2410c;stroke-width:2}
.elsewhere{stroke:#b7791f;stroke-width:1.5}.unclear{stroke:#6b46c1;stroke-width:1.5;stroke-dasharray:5 3}
.untapped,.silent{stroke-dasharray:2 3}.pair{fill:#c2410c}.control{fill:#4a7fb5}.axis{stroke:#c9cdd2}
.small{font-size:10px}
@media (prefers-color-scheme:dark){.node{fill:#2a2f35}.topic{fill:#1c2126}.blamed{fill:#c2410c}}
"""
_WIDTH, _NODE_H, _TOPIC_W, _TOPIC_H, _GAP = 760.0, 30.0, 330.0, 62.0, 26.0
_LETTER = 6.3
Place = tuple[float, float, float, float]


def blames_html(results_dir: Any) -> list[dict[str, str]]:
    """Return of each pair of a run that was blamed: its name, one sentence, and the graph as the URI of an SVG."""
    return [
        {"pair": result["pair"], "headline": headline(result), "uri": data_uri(blame_svg(result))}
        for result in read_blames(results_dir)
    ]


def blame_svg(result: Mapping[str, Any]) -> str:
    """Return the drawing of what ``blame.json`` holds, from the input at the top down to the outputs."""
    layers = _layers(result)
    places, height = _placed(layers)
    nodes = {node["name"]: node for node in result["graph"]["nodes"]}
    topics = {topic["topic"]: topic for topic in result["graph"]["topics"]}
    parts = [*_edges(nodes, places, frozenset(result.get("way", ())))]
    parts += [_node(name, nodes[name]["blamed"], places["n" + name]) for name in nodes]
    parts += [_topic(topic, publishers(result, name), places["t" + name]) for name, topic in topics.items()]
    parts.append(_legend(height + 14.0))
    return document(_WIDTH, height + 30.0, parts, _STYLE)


def _layers(result: Mapping[str, Any]) -> list[list[str]]:
    """Return keys by row, topics (``t…``) below the nodes (``n…``) that publish them."""
    rows: dict[int, list[str]] = {}
    depth = {node["name"]: node["depth"] for node in result["graph"]["nodes"]}
    for name, own in depth.items():
        rows.setdefault(2 * own + 1, []).append("n" + name)
    for topic in result["graph"]["topics"]:
        said = [depth[n["name"]] for n in result["graph"]["nodes"] if topic["topic"] in n["publishes"]]
        rows.setdefault(2 * max(said) + 2 if said else 0, []).append("t" + topic["topic"])
    return [rows[row] for row in sorted(rows)]


def _placed(layers: Sequence[Sequence[str]]) -> tuple[dict[str, Place], float]:
    """Return x, y, width and height of each key, and the height of all."""
    places: dict[str, Place] = {}
    y = 8.0
    for layer in layers:
        for begin in range(0, len(layer), 2):  # two topics fit side by side
            row = layer[begin : begin + 2]
            high = max(_TOPIC_H if key[0] == "t" else _NODE_H for key in row)
            for i, key in enumerate(row):
                wide = _TOPIC_W if key[0] == "t" else max(90.0, _LETTER * 1.1 * len(key) + 24.0)
                middle = _WIDTH * (2 * i + 1) / (2 * len(row))
                places[key] = (middle - wide / 2.0, y, wide, _TOPIC_H if key[0] == "t" else _NODE_H)
            y += high + _GAP
    return places, y


def _edges(nodes: Mapping[str, Any], places: Mapping[str, Place], way: frozenset[str]) -> Iterator[str]:
    """Yield arrows; those on the way from the violated output back to where it begins are marked."""
    around = _WIDTH - 6.0
    for name, node in nodes.items():
        on_way = not way.isdisjoint(node["publishes"])
        pairs = [("n" + name, "t" + topic, topic in way) for topic in node["publishes"]]
        pairs += [("t" + topic, "n" + name, topic in way and on_way) for topic in node["subscribes"]]
        for start, end, marked in pairs:
            if start in places and end in places:
                yield _edge(places[start], places[end], marked, around)
                around -= 0.0 if _adjacent(places[start], places[end]) else 7.0


def _adjacent(start: Place, end: Place) -> bool:
    return 0.0 <= end[1] - start[1] - start[3] <= _GAP + 1.0


def _edge(start: Place, end: Place, on_way: bool, around: float) -> str:
    """Return an arrow down to the next row, or around what is between, at x ``around``."""
    x0, y0 = start[0] + start[2] / 2.0, start[1] + start[3]
    x1, y1 = end[0] + end[2] / 2.0, end[1]
    css = "edge way" if on_way else "edge"
    if _adjacent(start, end):
        data = f"M{number(x0)} {number(y0)}L{number(x1)} {number(y1)}"
        return f'<path class="{css}" d="{data}"/>{_head(x1, y1, 0)}'
    x0, y0 = start[0] + start[2], start[1] + start[3] / 2.0
    x1, y1 = end[0] + end[2], end[1] + end[3] / 2.0
    # Beside what stands in the middle; where two stand side by side, at the very edge.
    far = max(x0, x1, around if max(x0, x1) > (_WIDTH + _TOPIC_W) / 2.0 else around - 160.0)
    data = f"M{number(x0)} {number(y0)}H{number(far)}V{number(y1)}H{number(x1)}"
    return f'<path class="{css}" d="{data}"/>{_head(x1, y1, 1)}'


def _head(x: float, y: float, sideways: int) -> str:
    """Return the point of an arrow down, or to the left."""
    corners = ((x, y), (x + 6, y - 4), (x + 6, y + 4)) if sideways else ((x, y), (x - 4, y - 6), (x + 4, y - 6))
    return f'<polygon fill="#8a8f96" points="{" ".join(f"{number(a)},{number(b)}" for a, b in corners)}"/>'


def _node(name: str, blamed: bool, place: Place) -> str:
    x, y, wide, high = place
    css = "node blamed" if blamed else "node"
    return (
        f'<rect class="{css}" x="{number(x)}" y="{number(y)}" width="{number(wide)}" height="{number(high)}" rx="6"/>'
        f'<text x="{number(x + wide / 2)}" y="{number(y + 19)}" text-anchor="middle">{escape(name)}</text>'
    )


def _topic(topic: Mapping[str, Any], whose: str, place: Place) -> str:
    x, y, wide, high = place
    state, name = topic["state"], topic["topic"]
    about = f"{whose} publishes {name} ({topic['type']}). {topic.get('words', '')}"
    p = f", p = {topic['p']:.2g}" if "p" in topic and not topic["given"] else ""
    told = ("input, changed" if state == "elsewhere" else "input") if topic["given"] else STATES[state]
    words = escape(_short(topic.get("words", ""), 50))
    return (
        f"<g><title>{escape(about)}</title>"
        f'<rect class="topic {state}" x="{number(x)}" y="{number(y)}" width="{number(wide)}" height="{number(high)}" '
        f'rx="10"/><text x="{number(x + 12)}" y="{number(y + 16)}">{escape(_short(name, 48))}</text>'
        f'<text class="small" x="{number(x + 12)}" y="{number(y + 31)}">'
        f"{escape(told)}{p}</text>"
        f'<text class="small" x="{number(x + 12)}" y="{number(y + 46)}">{words}</text>'
        f"{_dots(topic, x + wide - 128.0, y + 24.0) if 'pair' in topic else ''}</g>"
    )


def _dots(topic: Mapping[str, Any], x: float, y: float) -> str:
    """Return the divergence of each repeat as a dot: control above, the pair below, from 0 to the largest."""
    most = max(*topic["pair"], *topic["control"], 1e-12)
    parts = [f'<path class="axis" d="M{number(x)} {number(y + 4)}h112"/>']
    for row, kind in enumerate(("control", "pair")):
        parts += [
            f'<circle class="{kind}" cx="{number(x + 112.0 * value / most)}" cy="{number(y + 8 * row)}" r="2.6" '
            'fill-opacity=".6"/>'
            for value in topic[kind]
        ]
    return "".join(parts)


def _legend(y: float) -> str:
    entries = (
        (8.0, "control", "source against source"),
        (180.0, "pair", "follow-up against source; one dot a play, from 0 to the largest"),
    )
    return "".join(
        f'<circle class="{kind}" cx="{number(x + 4)}" cy="{number(y - 4)}" r="3"/>'
        f'<text class="small" x="{number(x + 14)}" y="{number(y)}">{text}</text>'
        for x, kind, text in entries
    )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
