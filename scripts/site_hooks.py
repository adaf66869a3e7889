# SPDX-License-Identifier: Apache-2.0
"""What the site has beside docs/: README, changelog and contributing guide as pages, and no links out of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
#: Page of the site -> file of the repository's root.
PAGES = {"index.md": "README.md", "changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """Add every decision to the navigation."""
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    config.nav.append({"Decisions": [f"decisions/{path.name}" for path in decisions]})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made of files of the root."""
    for page, name in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text.replace("](docs/", "](")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point links at pages of the site; what is not on it (code, configuration) is shown as the name of a file."""
    here = Path(page.file.src_uri).parent
    known = {file.src_uri for file in files}
    roots = {name: page for page, name in PAGES.items()}

    def on_site(match: re.Match[str]) -> str:
        text, target, anchor = match.group(1), match.group(2), match.group(3) or ""
        if "://" in target or target.startswith("mailto:"):
            return match.group(0)
        parts: list[str] = []
        for part in (*here.parts, *Path(target).parts):
            if part == ".." and parts:
                parts.pop()
            elif part != "..":
                parts.append(part)
        name = "/".join(parts)
        if name in known:
            return match.group(0)
        if name in roots:
            return f"[{text}]({'../' * len(here.parts)}{roots[name]}{anchor})"
        return text if "`" in text else f"{text} (`{name}`)"

    return LINK.sub(on_site, markdown)
