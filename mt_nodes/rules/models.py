# SPDX-License-Identifier: Apache-2.0
"""Language models and their servers: from the environment, or from a file for several.

::

    models:
      local: {url: "http://localhost:8000/v1", model: qwen3-8b}
      hosted: {url: "https://…/v1", model: some-model, key_from: SOME_KEY, price_in: 2, price_out: 8, per_minute: 60}

Any server with the OpenAI protocol works (a hosted service, vLLM, llama.cpp, Ollama). Keys are in the environment only,
and each server gets only the key that is named for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mt_nodes.base.errors import UsageError
from mt_nodes.base.yaml_files import read_mapping, refuse_unknown
from mt_nodes.engine.entries import mapping, text
from mt_nodes.rules.store_entry import CLASSIFIER, MANUAL, PARSER

#: Environment variables: the server's base URL, the model's name there (several with commas), the key if needed.
URL, MODEL, KEY = "MT_LLM_URL", "MT_LLM_MODEL", "MT_LLM_KEY"
#: The user's name for the models of :data:`MODEL`.
FROM_ENVIRONMENT = "env"
#: AutoMT's temperature (arXiv 2510.19438, public code), and enough tokens for the steps and a few statements.
DEFAULTS: Mapping[str, Any] = {"temperature": 0.1, "max_tokens": 2000}
_NUMBERS = ("timeout_s", "per_minute", "price_in", "price_out")
_KEYS = ("url", "model", "key_from", "parameters", *_NUMBERS)


@dataclass(frozen=True)
class LanguageModel:
    """One model of one server.

    Attributes:
        name: the user's name, the origin of its statements. url, model: the server's base URL and the name there.
        parameters: of the request, by the server's names. timeout_s: of a request, and of each of its parts.
        per_minute: most requests, 0: unlimited. price_in, price_out: per million tokens; None if unknown.
    """

    name: str
    url: str
    model: str
    key: str = field(default="", repr=False)
    parameters: Mapping[str, Any] = field(default_factory=lambda: DEFAULTS, hash=False)
    timeout_s: float = 120.0
    per_minute: float = 0.0
    price_in: float | None = None
    price_out: float | None = None


def models_of_environment(environ: Mapping[str, str]) -> tuple[LanguageModel, ...]:
    """Return the models of the variables :data:`URL`, :data:`MODEL` and :data:`KEY`. Raises UsageError."""
    names = [name.strip() for name in environ.get(MODEL, "").split(",") if name.strip()]
    if not names or not environ.get(URL):
        missing = MODEL if not names else URL
        raise UsageError(
            f"no language model: {missing} is not set; type such as {URL}=http://localhost:8000/v1 {MODEL}=qwen3-8b "
            f"(and {KEY}=… where a key is needed)"
        )
    url = _url(environ[URL], URL)
    return tuple(LanguageModel(_free(name, MODEL), url, name, environ.get(KEY, "")) for name in dict.fromkeys(names))


def models_named(names: Sequence[str], environ: Mapping[str, str]) -> tuple[LanguageModel, ...]:
    """Return some models of the server in :data:`URL`; :data:`FROM_ENVIRONMENT` stands for those of :data:`MODEL`.

    Raises UsageError: naming the missing or wrong variable, and its form.
    """
    given = (environ.get(MODEL, "") if name == FROM_ENVIRONMENT else name for name in names)
    return models_of_environment({**environ, MODEL: ",".join(given)})


def model_named(name: str, file: str | Path | None, environ: Mapping[str, str]) -> LanguageModel:
    """Return a model of the file of models, else one of the server in :data:`URL`.

    Raises UsageError: the file is wrong, or neither has the model.
    """
    listed = load_models(Path(file), environ) if file else ()
    found = next((model for model in listed if model.name == name), None)
    return found or models_named([name], environ)[0]


def load_models(path: Path, environ: Mapping[str, str]) -> tuple[LanguageModel, ...]:
    """Read a file of models.

    Raises UsageError: naming file and key, what was got and what was expected; or the variable without a key.
    """
    data = read_mapping(path)
    refuse_unknown(data, ("models",), str(path))
    rows = mapping(data.get("models"), f"{path}: models")
    if not rows:
        raise UsageError(f"{path}: models: got none, expected at least one")
    return tuple(_model(str(name), row, f"{path}: models.{name}", environ) for name, row in rows.items())


def _model(name: str, data: Any, where: str, environ: Mapping[str, str]) -> LanguageModel:
    row = mapping(data, where, "{url: …, model: …}")
    refuse_unknown(row, _KEYS, where)
    key_from = text(row, "key_from", where)
    if key_from and not environ.get(key_from):
        raise UsageError(f"{where}.key_from: the environment has no {key_from}; type export {key_from}=…")
    own = mapping(row.get("parameters") or {}, f"{where}.parameters")
    merged = {**DEFAULTS, **own}
    return LanguageModel(
        _free(name, where),
        _url(text(row, "url", where, None), f"{where}.url"),
        text(row, "model", where, name),
        environ.get(key_from, ""),
        {key: value for key, value in merged.items() if value is not None},
        **{key: _number(row[key], f"{where}.{key}", key != "timeout_s") for key in _NUMBERS if key in row},
    )


def _url(url: str, where: str) -> str:
    """Return a base URL; refuses one with a password, which would end up in files and errors."""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
    except ValueError:
        fits = False
    if not fits:
        raise UsageError(f"{where}: got no usable URL, expected such as http://localhost:8000/v1, without a password")
    return url.rstrip("/")


def _free(name: str, where: str) -> str:
    if name in (PARSER, CLASSIFIER, MANUAL):
        raise UsageError(f"{where}: '{name}' means what is read without a model; call the model something else")
    return name


def _number(value: Any, where: str, zero: bool) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not usable or value < 0 or (value == 0 and not zero):
        raise UsageError(f"{where}: got {value!r}, expected a number {'from 0' if zero else 'above 0'}")
    return float(value)
