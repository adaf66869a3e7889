# SPDX-License-Identifier: Apache-2.0
"""What a person said of one case, and the file that keeps it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import LineFile, read_lines
from mt_nodes.base.yaml_files import refuse_unknown

FILE = "ratings.jsonl"
SCHEMA = 1
#: From "not at all" to "fully"; None: cannot tell.
REALISTIC = (1, 2, 3, 4, 5)
#: Whether the reaction is wrong; None: cannot tell.
WRONG = ("yes", "no")
_LONGEST_NAME, _LONGEST_COMMENT = 60, 2000
#: Half a character, which JSON may tell and no file may hold.
_HALF = re.compile("[\ud800-\udfff]")
_KEYS = ("case", "rater", "realistic", "wrong", "comment")


@dataclass(frozen=True)
class Rating:
    """What one rater said of one case.

    Attributes:
        case: its id in the sample. rater: name that the person chose.
        realistic: one of :data:`REALISTIC`, None where the person could not tell.
        wrong: one of :data:`WRONG`, None where the person could not tell.
        comment: free text.
    """

    case: str
    rater: str
    realistic: int | None
    wrong: str | None
    comment: str = ""

    @classmethod
    def read(cls, row: Any, where: str) -> Rating:
        """Read what a page sent; nothing of it is trusted. Raises UsageError: it is no rating."""
        if not isinstance(row, dict):
            raise UsageError(f"{where}: got {type(row).__name__}, expected a mapping with {', '.join(_KEYS)}")
        refuse_unknown(row, _KEYS, where)
        rater = _text(row.get("rater"), _LONGEST_NAME, f"{where}.rater").strip()
        if not rater or not rater.isprintable():
            raise UsageError(f"{where}.rater: got {rater!r}, expected a name of printable characters")
        realistic, wrong = row.get("realistic"), row.get("wrong")
        if realistic is not None and (isinstance(realistic, bool) or realistic not in REALISTIC):
            raise UsageError(f"{where}.realistic: got {realistic!r}, expected 1 to 5, or null")
        if wrong is not None and wrong not in WRONG:
            raise UsageError(f"{where}.wrong: got {wrong!r}, expected yes, no, or null")
        comment = _text(row.get("comment", ""), _LONGEST_COMMENT, f"{where}.comment").strip()
        case = _text(row.get("case"), _LONGEST_NAME, f"{where}.case")
        return cls(case, rater, None if realistic is None else int(realistic), wrong, comment)

    def as_plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return asdict(self)


class Ratings:
    """The file of a review's ratings, append-only: of one person's ratings of a case the last counts."""

    def __init__(self, path: Path, cases: Iterable[str]) -> None:
        """Open it, for ``cases`` of the review alone.

        Raises MtError: another process writes to it, or it is damaged.
        """
        self._file, self.path = LineFile(path), path
        self._cases = frozenset(cases)
        self.latest = read_ratings(path)

    def __enter__(self) -> Ratings:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, rating: Rating) -> bool:
        """Append a rating; False where it says nothing new. Raises UsageError: the review has no such case."""
        if rating.case not in self._cases:
            raise UsageError(f"got a rating of case '{rating.case}', which is none of this review")
        if self.latest.get((rating.case, rating.rater)) == rating:
            return False
        self._file.append({"schema": SCHEMA, "type": "rating", **rating.as_plain()})
        self.latest[rating.case, rating.rater] = rating
        return True

    def rated_by(self, rater: str) -> list[str]:
        """Return the cases that a person has rated."""
        return [case for case, person in self.latest if person == rater]


def read_ratings(path: Path) -> dict[tuple[str, str], Rating]:
    """Return the last rating of each (case, rater); none where there is no file.

    Raises MtError: a line is damaged, or no rating.
    """
    found: dict[tuple[str, str], Rating] = {}
    for number, line in enumerate(read_lines(path) if path.exists() else (), start=1):
        rating = Rating.read({key: line[key] for key in _KEYS if key in line}, f"{path}:{number}")
        found[rating.case, rating.rater] = rating
    return found


def read_download(path: Path, review: str) -> list[Rating]:
    """Return the ratings of a file that a page without a server made.

    Raises UsageError: it is none, or of another review.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error}; expected a file that a review's page made") from error
    if not isinstance(data, Mapping) or data.get("review") != review or not isinstance(data.get("ratings"), list):
        raise UsageError(f"{path}: got no ratings of this review; expected a file that its own page made")
    return [Rating.read(row, f"{path}: ratings[{i}]") for i, row in enumerate(data["ratings"])]


def _text(value: Any, longest: int, where: str) -> str:
    if isinstance(value, str) and len(value) <= longest and not _HALF.search(value):
        return value
    raise UsageError(f"{where}: got {str(value)[:longest]!r}, expected a text of at most {longest} characters")
