# SPDX-License-Identifier: Apache-2.0
"""Vectors of a service: what is asked, kept and refused, and FAISS against plain products of matrices."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_rules import scene, some
from model_server import Respond, cut, embeds, needs_openai, refuses, sends, serving, stalls, trickles, vectors

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.cli.main import main
from mt_nodes.rules.embeddings import BATCH, Embeddings, FaissIndex
from mt_nodes.rules.matching import Matcher
from mt_nodes.rules.models import LanguageModel
from mt_nodes.rules.nearest_texts import Index
from mt_nodes.rules.service import NoAnswer, Service
from mt_nodes.rules.shipped_rules import scratch_store
from mt_nodes.rules.vector_file import VectorFile

pytestmark = needs_openai

SECRET = "sk-very-secret"


def drawn(text: str, dimension: int = 8) -> list[float]:
    """A vector of numbers that look random and are the same for the same text."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=dimension).tolist()


def asking(url: str, file: VectorFile, attempts: int = 2, **more: Any) -> Embeddings:
    model = LanguageModel("tester", url, "m", SECRET, **more)
    return Embeddings("tester", file, lambda: Service(model, attempts, sleep=lambda seconds: None))


def never() -> Service:
    raise AssertionError("nothing is asked that is kept")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vectors.jsonl"


def test_vectors_come_in_the_order_of_the_texts_in_batches_and_are_asked_for_once(path: Path) -> None:
    texts = [f"text {n}" for n in range(BATCH + 3)]
    with serving(embeds(drawn)) as server, VectorFile(path) as file:
        made = asking(server.url, file, parameters={"temperature": 0.1, "dimensions": 8}).vectors([*texts, texts[0]])
    assert np.allclose(made, [drawn(text) for text in [*texts, texts[0]]], rtol=1e-6)
    assert [len(body["input"]) for body in server.requests] == [BATCH, 3 + 1], "the last: one that is known"
    assert server.requests[1]["input"][-1] == texts[0]
    body = server.requests[0]
    assert (body["model"], body["encoding_format"], body["dimensions"]) == ("m", "float", 8)
    assert "temperature" not in body and server.keys[0] == f"Bearer {SECRET}"
    assert set(server.paths) == {"/v1/embeddings"}
    with VectorFile(path) as file:
        again = Embeddings("tester", file, never).vectors(texts)
        assert np.array_equal(again, made[:-1]), "to the last bit, without network"
        assert not file.of("another model")
    assert SECRET not in path.read_text()


BAD: list[tuple[str, Respond, str]] = [
    ("fewer", sends(vectors([[1.0, 2.0]])), "got 1 vectors for 2 texts"),
    ("more", sends(vectors([[1.0, 2.0]] * 3)), "got 3 vectors for 2 texts"),
    ("twice the same", sends(vectors([[1.0, 2.0]] * 2).replace(b'"index": 1', b'"index": 0')), "got 2 vectors for 2"),
    ("one twice", sends(vectors([[1.0, 2.0]] * 3).replace(b'"index": 2', b'"index": 1')), "got 3 vectors for 2"),
    ("several lengths", sends(vectors([[1.0, 2.0], [1.0]])), "several lengths"),
    ("none", sends(vectors([[], []])), "expected lists of numbers"),
    ("NaN", sends(vectors([[1.0, float("nan")], [1.0, 2.0]])), "NaN or infinite"),
    ("too large", sends(vectors([[1.0, 1e300], [1.0, 2.0]])), "NaN or infinite"),
    ("zeros", sends(vectors([[0.0, 0.0], [1.0, 2.0]])), "a vector of zeros"),
    ("words", sends(vectors([["a", "b"], [1.0, 2.0]])), "expected lists of numbers"),
    ("null", sends(vectors([[None, 1.0], [1.0, 2.0]])), "expected lists of numbers"),
    ("base64", sends(vectors(["AACAPwAAAEA=", "AACAPwAAAEA="])), "expected lists of numbers"),
    ("flat", sends(vectors([1.0, 2.0])), "expected lists of numbers"),
    ("no JSON", sends(b"<html>", "text/html"), "got no vectors but text/html"),
    ("no data", sends(b'{"data": null}'), "got no vectors but"),
    ("a list", sends(b"[]"), "got no vectors but"),
    ("deep", sends(b"[" * 100_000), "got no vectors but"),
    ("limit", refuses(429), "the server says 429"),
    ("fault", refuses(503), "the server says 503"),
    ("cut", cut, "RemoteProtocolError|APIConnectionError"),
]


@pytest.mark.parametrize(("respond", "why"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_bad_answer_is_told_and_nothing_of_it_is_kept(respond: Respond, why: str, path: Path) -> None:
    with serving(respond) as server, VectorFile(path) as file:
        with pytest.raises(NoAnswer, match=f"(?s)model 'tester' at .*no answer in 2 attempts.*({why})"):
            asking(server.url, file).vectors(["a", "b"])
        assert len(server.requests) == 2
    assert not path.exists()


@pytest.mark.parametrize("bad", [stalls, trickles])
def test_a_server_that_never_ends_is_given_up(bad: Respond, path: Path) -> None:
    with serving(bad) as server, VectorFile(path) as file, pytest.raises(NoAnswer, match="no answer in 1 attempts"):
        asking(server.url, file, 1, timeout_s=0.15).vectors(["a"])
    assert not path.exists()


@pytest.mark.parametrize("status", [400, 401, 404])
def test_what_is_refused_is_not_asked_again_and_tells_no_key(status: int, path: Path) -> None:
    why = rf"the server says {status}: .*no \*\*\*"
    with (
        serving(refuses(status, f"no {SECRET}")) as server,
        VectorFile(path) as file,
        pytest.raises(UsageError, match=why) as caught,
    ):
        asking(server.url, file).vectors(["a"])
    assert len(server.requests) == 1 and SECRET not in str(caught.value)


def test_a_bad_answer_is_asked_for_again_and_what_came_before_is_kept(path: Path) -> None:
    texts = [f"text {n}" for n in range(BATCH + 1)]
    bad = serving(sends(b"{}"), embeds(drawn), refuses(429))
    with bad as server, VectorFile(path) as file, pytest.raises(NoAnswer, match="429"):
        asking(server.url, file).vectors(texts)
    with VectorFile(path) as file:
        assert list(file.of("tester")) == texts[:BATCH]
    with serving(embeds(drawn)) as server, VectorFile(path) as file:
        assert asking(server.url, file).vectors(texts).shape == (BATCH + 1, 8)
        assert server.requests[0]["input"] == [texts[-1], texts[0]]


@pytest.mark.parametrize(
    ("respond", "why"),
    [
        (embeds(lambda text: drawn(text, 9)), "its vectors have 9 numbers, before 8"),
        (embeds(drawn, served="m2"), "the server calls it 'm2', before 'm'"),
        (embeds(lambda text: [value + 0.3 for value in drawn(text)]), r"makes another vector \(cosine 0\.[89]\d\)"),
    ],
)
def test_another_model_under_the_same_name_is_noticed(respond: Respond, why: str, path: Path) -> None:
    with serving(embeds(drawn), respond) as server, VectorFile(path) as file:
        asking(server.url, file).vectors(["a"])
        with pytest.raises(UsageError, match=f"{why}: another model than .*vectors.jsonl is of; .*--vectors"):
            asking(server.url, file).vectors(["a", "b"])
    with VectorFile(path) as file:
        assert list(file.of("tester")) == ["a"]


def test_the_rounding_of_half_precision_makes_no_other_model(path: Path) -> None:
    def halved(text: str) -> list[float]:
        return np.float16(drawn(text)).tolist()

    with serving(embeds(drawn), embeds(halved)) as server, VectorFile(path) as file:
        asking(server.url, file).vectors(["a"])
        assert asking(server.url, file).vectors(["a", "b"]).shape == (2, 8)


def test_a_file_that_cannot_be_used_is_said_to_be_so(path: Path) -> None:
    with serving(embeds(drawn)) as server, VectorFile(path) as file:
        asking(server.url, file).vectors(["a", "b"])
        with VectorFile(path) as second, pytest.raises(UsageError, match="another run is writing to it"):
            asking(server.url, second).vectors(["c"])
    text = path.read_text()
    path.write_text(text.replace('"text": "a"', '"text": "z"'))
    with pytest.raises(InfrastructureError, match="damaged or edited"):
        VectorFile(path)
    path.write_text(text[:-20])
    assert list(VectorFile(path).of("tester")) == ["a"], "a torn line is left out"
    path.unlink()
    with VectorFile(path) as file:
        file.add("tester", "m", ["a"], np.ones((1, 3)))
        with pytest.raises(InfrastructureError, match="of several lengths; move the file away"):
            file.add("tester", "m", ["b"], np.ones((1, 4)))
    path.unlink()
    path.mkdir()
    with pytest.raises(InfrastructureError, match="cannot be read"):
        VectorFile(path)


def test_without_faiss_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(UsageError, match=r"pip install 'mt_nodes\[vectors\]'.*without --embed none is needed"):
        FaissIndex(["a"], lambda texts: np.ones((1, 2)))


# --- FAISS


def told(known: dict[str, Floats]) -> Callable[[Any], Floats]:
    return lambda texts: np.array([known[text] for text in texts])


def test_faiss_finds_the_same_as_products_of_matrices() -> None:
    pytest.importorskip("faiss", reason="the extra vectors is not installed")
    draw = np.random.default_rng(3)
    placed = draw.normal(size=(600, 48))
    placed[50:90] = 2.0 * placed[7]  # equally near, whatever their lengths
    placed[300:330] = placed[7] * (1.0 + 1e-9 * draw.normal(size=(30, 48)))  # single precision cannot tell them apart
    texts = [f"t{row}" for row in range(len(placed))]
    known = dict(zip(texts, placed, strict=True)) | {"query": placed[7] + 0.1 * draw.normal(size=48)}
    known |= {f"query {n}": draw.normal(size=48) for n in range(8)}
    by_faiss, by_numpy = FaissIndex(texts, told(known)), Index(texts, lambda corpus: told(known))
    for query in set(known) - set(texts):
        for limit in (0, 1, 5, 60, 600, 1000):
            assert by_faiss.nearest(query, limit) == by_numpy.nearest(query, limit)
    first = by_faiss.nearest("query", 45)
    assert [row for row, _ in first[:41]] == [7, *range(50, 90)] and len({near for _, near in first[:41]}) == 1
    assert by_faiss.nearest(" ", 2) == [(0, 0.0), (1, 0.0)], "no words are near to nothing, and not asked for"
    assert FaissIndex([], told(known)).nearest("query", 3) == []


def test_relations_are_matched_by_the_vectors_of_a_service_and_again_without_it(path: Path) -> None:
    pytest.importorskip("faiss", reason="the extra vectors is not installed")

    def towards(text: str) -> list[float]:
        return [1.0, float("school zone" in text)]

    case = {"a": scene(("school_zone",), time_of_day="night")}
    with serving(embeds(towards)) as server, VectorFile(path) as file:
        embed = asking(server.url, file).vectors
        with scratch_store(some(), indexer=lambda texts: FaissIndex(texts, embed)) as store:
            (choice,) = Matcher().plan(store, case)
    assert choice.candidates[0].index == choice.index == 5 and "adds child" in choice.candidates[0].text
    with VectorFile(path) as file:
        kept = Embeddings("tester", file, never).vectors
        with scratch_store(some(), indexer=lambda texts: FaissIndex(texts, kept)) as store:
            assert Matcher().plan(store, case) == [choice]


def test_the_command_line_finds_what_is_near_and_keeps_the_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("faiss", reason="the extra vectors is not installed")
    file = tmp_path / "mine.vectors.jsonl"
    words = ["rules", "list", "--region", "germany", "--find", "murk", "--embed", "tester", "--vectors", str(file)]

    def towards(text: str) -> list[float]:
        return [1.0, float("fog" in text or text == "murk")]

    with serving(embeds(towards)) as server:
        monkeypatch.setenv("MT_LLM_URL", server.url)
        assert main([*words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 20 and "fog" in rows[0]["text"]
    monkeypatch.delenv("MT_LLM_URL")
    monkeypatch.setenv("MT_LLM_MODEL", "tester")
    for name in ("tester", "env"):
        assert main([*words[:6], "--embed", name, *words[8:], "--json"]) == 0, "from the file, without a server"
        assert json.loads(capsys.readouterr().out) == rows
    assert main([*words[:4], "--embed", "tester"]) == 2
    assert "near in meaning to --find WORDS" in capsys.readouterr().err
    assert main([*words[:5], "a cat", *words[6:]]) == 2
    assert "MT_LLM_URL is not set" in capsys.readouterr().err, "who has to ask needs a server"
