# SPDX-License-Identifier: Apache-2.0
"""Rating cases blind: what is drawn and shown, what the server gives and refuses, the page in a real browser."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser
from made_runs import NOISE, in_process, made_run, sparse_drive, verdicts

from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import read_result, write_result
from mt_nodes.cli.demo_command import FAULT
from mt_nodes.cli.main import main
from mt_nodes.cli.replay_execution import replay
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.pair_view import PairView, evidence_file, load_view
from mt_nodes.runs.review.case_files import Shower, case_file
from mt_nodes.runs.review.ratings import FILE, Rating, Ratings, read_ratings
from mt_nodes.runs.review.review_page import whole_page
from mt_nodes.runs.review.review_server import MOST_BYTES, ReviewServer
from mt_nodes.runs.review.sample import CHECK, FOLDER, HOLDS, VIOLATED, Sample, SampledCase, draw, shares

RELATION = "noise_outside_roi_1000"
#: What a page must not hold before a case is rated; the reason of a verdict would tell it, too.
TELLING = ("VIOLATED", "HOLDS", "violated", "holds", "identity", "points_permuted", RELATION, "margin", "lost", "0/")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with pairs that hold and pairs that do not, and a sample of them."""
    place = tmp_path_factory.mktemp("review")
    run = in_process(sparse_drive(place / "drive", 4), place / "run", RELATION, faults=(FAULT,))
    assert main(["review", str(run.out), "--cases", "5", "--page", str(place / "page.html")]) == 0
    return run.out


@pytest.fixture
def reviewed(made: Path, tmp_path: Path) -> Path:
    """A copy with no ratings yet."""
    return Path(shutil.copytree(made, tmp_path / "run"))


@pytest.fixture
def server(reviewed: Path) -> Iterator[ReviewServer]:
    sample = Sample.load(reviewed / FOLDER)
    assert sample is not None
    with (
        Ratings(reviewed / FOLDER / FILE, [case.id for case in sample.cases]) as ratings,
        ReviewServer(reviewed, sample, ratings) as opened,
    ):
        thread = threading.Thread(target=opened.serve_forever, args=(0.01,))  # so that it ends at once
        thread.start()
        yield opened
        opened.shutdown()
        thread.join()


def sampled(run: Path) -> Sample:
    sample = Sample.load(run / FOLDER)
    assert sample is not None
    return sample


def asked(
    server: ReviewServer, path: str, body: bytes | None = None, method: str = "", **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    """Ask as anybody may, with the secret put in where ``path`` has TOKEN."""
    to = http.client.HTTPConnection(*server.server_address[:2], timeout=150)  # type: ignore[arg-type]
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    to.request(method or ("POST" if body is not None else "GET"), path.replace("TOKEN", server.token), body, given)
    answer = to.getresponse()
    told = answer.status, answer.read(), dict(answer.getheaders())
    to.close()
    return told


def posted(server: ReviewServer, row: Any, **headers: str) -> tuple[int, Any]:
    body = row if isinstance(row, bytes) else json.dumps(row).encode()
    status, told, _ = asked(server, "/TOKEN/ratings", body, "POST", **{"Content_Type": "application/json", **headers})
    return status, json.loads(told)


# --- what is drawn and shown


def test_cases_of_every_kind_are_shown_and_played_again_where_nothing_was_kept(made: Path) -> None:
    sample = sampled(made)
    assert {case.stratum for case in sample.cases} == {VIOLATED, HOLDS, CHECK} and not sample.left_out
    outcomes = {line["pair"]: line["outcome"] for line in read_journal(made / "result.jsonl") if "pair" in line}
    for case in sample.cases:
        assert (outcomes[case.pair] == VIOLATED.upper()) == (case.stratum == VIOLATED)
        shown = json.loads(case_file(made, case.id).read_text())
        assert shown["because"] and shown["pictures"] and all("obstacle" in arm[0] for arm in shown["answers"])
        (picture,) = shown["pictures"]
        assert picture["before"].startswith("data:image/svg+xml") and picture["before"] != picture["after"]
    assert not any((made / FOLDER / "played").glob("*"))


def test_what_was_concluded_is_not_drawn(reviewed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(case for case in sampled(reviewed).cases if case.stratum == VIOLATED)
    concluded = load_view(evidence_file(reviewed, Pair.parse(case.pair)))
    assert len(concluded.lost_at) and len(concluded.region)
    drawn: list[PairView] = []

    def draw_nothing(view: PairView) -> tuple[str, str]:
        drawn.append(view)
        return "", ""

    monkeypatch.setattr("mt_nodes.runs.review.case_files.birdseye.draw", draw_nothing)
    assert Shower(reviewed, lambda asked, out: pytest.fail("its evidence was kept"))(case) == ""
    (view,) = drawn
    assert not any(len(getattr(view, name)) for name in ("lost_at", "gained_at", "added_xyz", "lost_px", "added_px"))
    assert len(view.source_xyz) and len(view.followup_xyz) and len(view.region)


def test_no_text_of_a_case_gets_out_of_its_element(tmp_path: Path) -> None:
    sample = Sample("r", 0, 1, 1, {}, (SampledCase("a", "0/0/x/0", HOLDS, ""),), {})
    path = case_file(tmp_path, "a")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"because": "</script><script>alert(1)</script>", "pictures": [], "answers": [[], []]}))
    page = whole_page(sample, tmp_path)
    assert page.count("</script>") == 2 and "alert" in page


def test_a_draw_goes_by_its_seed(made: Path) -> None:
    def pairs(seed: int) -> list[str]:
        sample = draw(made, {}, shares(4), lambda case: "", seed)
        return sorted(case.pair for case in sample.cases)

    assert pairs(1) == pairs(1) and len({tuple(pairs(seed)) for seed in range(6)}) > 1


def test_what_cannot_be_shown_makes_way_and_is_told(made: Path) -> None:
    seen: list[str] = []

    def show(case: SampledCase) -> str:
        seen.append(case.pair)
        return "" if len(seen) > 1 else "its bag is gone"

    sample = draw(made, {}, shares(4), show)
    assert sample.left_out == {seen[0]: "its bag is gone"} and seen[0] not in {case.pair for case in sample.cases}
    with pytest.raises(UsageError, match="no case can be shown: gone"):
        draw(made, {}, shares(4), lambda case: "gone")


def test_where_nothing_is_violated_more_that_hold_are_shown(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", verdicts("noise"), NOISE)
    sample = draw(run, {}, shares(10), lambda case: "")
    assert Counter(case.stratum for case in sample.cases) == {HOLDS: 8, CHECK: 2} and sample.asked == 10


def test_what_is_shown_does_not_tell_whether_it_was_kept(reviewed: Path) -> None:
    """Evidence is kept of violated pairs alone: were those drawn otherwise, one could see which they are."""
    case = next(case for case in sampled(reviewed).cases if case.stratum == VIOLATED)
    before = case_file(reviewed, case.id).read_text()
    arrays = evidence_file(reviewed, Pair.parse(case.pair))
    for gone in ((arrays,), (arrays, arrays.with_suffix(".mcap"))):
        for kept in (case_file(reviewed, case.id), *gone):
            kept.unlink()
        assert Shower(reviewed, lambda asked, out: replay(asked, str(out), quiet=True))(case) == ""
        assert case_file(reviewed, case.id).read_text() == before, gone


def test_a_bag_that_is_gone_leaves_what_was_kept(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(made, tmp_path / "run", ignore=shutil.ignore_patterns(FOLDER)))
    record = read_result(run / "run.json")
    record["request"]["bags"] = ["nowhere"]
    write_result(run / "run.json", record)
    assert main(["review", str(run), "--cases", "5", "--page", str(tmp_path / "page.html")]) == 0
    assert {case.stratum for case in sampled(run).cases} == {VIOLATED}
    assert "the run's bag nowhere is not there" in capsys.readouterr().out


def test_a_review_is_gone_on_with_as_it_was_begun(reviewed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = str(reviewed / "page.html")
    before = sampled(reviewed)
    assert main(["review", str(reviewed), "--cases", "5", "--page", page]) == 0
    assert sampled(reviewed) == before
    assert main(["review", str(reviewed), "--cases", "6", "--page", page]) == 2
    assert "--cases" in capsys.readouterr().err
    (reviewed / FOLDER / "sample.json").unlink()
    assert main(["review", str(reviewed), "--summary"]) == 2
    assert "nothing is rated" in capsys.readouterr().err


def test_the_whole_page_tells_no_verdict(made: Path) -> None:
    told = (made.parent / "page.html").read_text()
    head, _, rest = told.partition('id="given">')
    data = json.loads(rest.partition("</script>")[0])
    # Pictures are checked as text, too: theirs is SVG in base64, and what was concluded is not drawn.
    words = json.dumps({key: {**case, "pictures": [], "because": ""} for key, case in data["cases"].items()})
    for name in TELLING:
        assert name not in words, name
    assert set(data) == {"review", "ids", "cases"} and data["ids"] == sorted(data["cases"])
    assert all(set(case) == {"because", "pictures", "answers"} for case in data["cases"].values())
    assert "connect-src 'none'" in head


# --- the server


def test_the_server_tells_no_verdict(server: ReviewServer) -> None:
    status, page, headers = asked(server, "/TOKEN/")
    assert status == 200 and "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
    given = json.loads(page.decode().partition('id="given">')[2].partition("</script>")[0])
    assert set(given) == {"review", "ids"} and given["ids"] == sorted(server.files)
    for one in given["ids"]:
        status, told, _ = asked(server, f"/TOKEN/case/{one}")
        case = json.loads(told)
        assert status == 200 and set(case) == {"because", "pictures", "answers"}
        assert not any(name in json.dumps(case["answers"]) for name in TELLING)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {}, 404),
        ("/wrong/", {}, 404),
        ("/TOKEN", {}, 404),
        ("/TOKENx/", {}, 404),
        ("/TOKEN/case/none", {}, 404),
        ("/TOKEN/case/../sample.json", {}, 404),
        ("/TOKEN/sample.json", {}, 404),
        ("/TOKEN/", {"Host": "evil.example"}, 403),
        ("/TOKEN/", {"Origin": "http://evil.example"}, 403),
        ("/TOKEN/rated?rater=a&rater=b", {}, 200),
    ],
)
def test_who_has_no_business_gets_nothing(
    server: ReviewServer, path: str, headers: dict[str, str], status: int
) -> None:
    got, body, _ = asked(server, path, None, "", **headers)
    assert got == status and len(body) < 100


def test_part_of_the_secret_is_not_enough(server: ReviewServer) -> None:
    assert asked(server, f"/{server.token[:-1]}/")[0] == 404 and asked(server, f"/{server.token}/")[0] == 200


def test_what_is_posted_is_checked(server: ReviewServer) -> None:
    good = {"case": min(server.files), "rater": "Ada", "realistic": 4, "wrong": "no", "comment": "</script>"}
    assert posted(server, good, Content_Type="text/plain")[0] == 415
    assert posted(server, good, Origin="http://evil.example")[0] == 403
    assert posted(server, b"{" + b" " * MOST_BYTES)[0] == 413
    assert posted(server, b"{")[0] == 400 and posted(server, b"[" * 9000)[0] == 400
    assert posted(server, {**good, "realistic": 9}) == (
        400,
        {"error": "rating.realistic: got 9, expected 1 to 5, or null"},
    )
    assert posted(server, {**good, "case": "strange"})[0] == 400
    assert server.ratings.latest == {}
    assert posted(server, good) == (200, {"kept": True}) and posted(server, good) == (200, {"kept": False})
    assert json.loads(asked(server, "/TOKEN/rated?rater=Ada")[1]) == [good["case"]]
    assert asked(server, "/TOKEN/", method="DELETE")[0] == 501
    assert list(read_ratings(server.ratings.path).values()) == [Rating(**good)]  # type: ignore[arg-type]


def test_a_port_that_is_taken_is_a_usage_error(server: ReviewServer, reviewed: Path) -> None:
    with pytest.raises(UsageError, match="cannot be listened on"):
        ReviewServer(reviewed, sampled(reviewed), server.ratings, server.server_port)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_interrupted(number: int, reviewed: Path) -> None:
    # As a shell starts what it puts into the background: without the keyboard's signal.
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    mt = [sys.executable, "-m", "mt_nodes.cli.main", "review", str(reviewed)]
    command = [sys.executable, "-c", ignoring, *mt]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        host, _, token = url.removeprefix("http://").rstrip("/").partition("/")
        to = http.client.HTTPConnection(host, timeout=150)
        row = {"case": sampled(reviewed).cases[0].id, "rater": "Ada", "realistic": None, "wrong": None}
        to.request("POST", f"/{token}/ratings", json.dumps(row), {"Content-Type": "application/json"})
        assert to.getresponse().status == 200
        process.send_signal(number)
        rest, _ = process.communicate(timeout=150)
    assert process.returncode == 0 and "1 ratings are stored" in rest
    assert len(read_ratings(reviewed / FOLDER / FILE)) == 1


# --- in a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def until(page: Browser, true: str) -> None:
    """Wait as many frames as it takes."""
    page.value(
        "new Promise((done, fail) => { const begun = performance.now(), look = () => "
        f"({true}) ? done(1) : performance.now() - begun > 60000 ? fail(Error({json.dumps(true)}))"
        " : requestAnimationFrame(look); look(); })"
    )


def begun(page: Browser, name: str) -> None:
    page.value(f"document.querySelector('#rater').value = {json.dumps(name)}")
    page.value("document.querySelector('#who button').click()")
    until(page, "document.querySelector('#case').dataset.case || !document.querySelector('#done').hidden")


def rated(page: Browser, realistic: int, wrong: str, comment: str = "") -> str:
    """Rate the case that is shown, wait for what comes after it, and return which it was."""
    case = str(page.value("document.querySelector('#case').dataset.case"))
    page.value(f"document.querySelector('[name=realistic][value=\"{realistic}\"]').click()")
    page.value(f"document.querySelector('[name=wrong][value={wrong}]').click()")
    page.value(f"document.querySelector('[name=comment]').value = {json.dumps(comment)}")
    page.value("document.querySelector('#form button').click()")
    shown = "document.querySelector('#case')"
    until(page, f"{shown}.dataset.case !== '{case}' || !document.querySelector('#done').hidden")
    return case


def test_a_person_rates_cases_in_the_browser(browser: Browser, server: ReviewServer) -> None:
    browser.open(server.url)
    begun(browser, "Ada <b>")
    browser.value("document.querySelector('style').remove()")  # which styles words of the report, too
    source = str(browser.value("document.documentElement.outerHTML.replace(/data:[^\"]*/g, '')"))
    assert not any(name in source for name in ("VIOLATED", "HOLDS", "identity", "permuted", RELATION))
    until(browser, "[...document.images].length === 2 && [...document.images].every((i) => i.complete)")
    assert all(width > 100 for width in browser.value("[...document.images].map((i) => i.naturalWidth)"))
    first, second = rated(browser, 5, "no"), rated(browser, 0, "unknown", "dark")
    assert first != second
    found = {rating.case: rating for rating in read_ratings(server.ratings.path).values()}
    assert found[first] == Rating(first, "Ada <b>", 5, "no") and found[second].comment == "dark"
    assert (found[second].realistic, found[second].wrong) == (None, None)
    # Who comes again goes on where they were; another person has another order.
    browser.open(server.url)
    begun(browser, "Ada <b>")
    assert browser.value("document.querySelector('#count').textContent") == "Case 3 of 5"
    assert browser.value("document.querySelector('#case').dataset.case") not in (first, second)
    orders = browser.value("['a', 'b', 'c', 'd', 'a'].map((name) => inOrder(given.ids, name).join())")
    assert orders[0] == orders[4] and len(set(orders)) > 1
    assert sorted(orders[0].split(",")) == sorted(server.files)
    assert browser.troubles == []


def test_what_the_server_refuses_is_told_and_nothing_is_lost(browser: Browser, server: ReviewServer) -> None:
    browser.open(server.url)
    begun(browser, "Ada")
    case = browser.value("document.querySelector('#case').dataset.case")
    browser.value("rater = 'x'.repeat(99)")
    for name in ("realistic", "wrong"):
        browser.value(f"document.querySelector('[name={name}]').click()")
    browser.value("document.querySelector('#form button').click()")
    until(browser, "document.querySelector('#trouble').textContent.includes('at most 60')")
    assert browser.value("document.querySelector('#case').dataset.case") == case
    assert browser.value("document.querySelector('[name=realistic]').checked") and server.ratings.latest == {}


def test_a_server_that_is_gone_is_told_and_the_form_keeps_what_it_holds(browser: Browser, server: ReviewServer) -> None:
    browser.open(server.url)
    begun(browser, "Ada")
    for name in ("realistic", "wrong"):
        browser.value(f"document.querySelector('[name={name}]').click()")
    server.shutdown()
    server.server_close()
    browser.value("document.querySelector('#form button').click()")
    until(browser, "document.querySelector('#trouble').textContent.includes('the server does not respond')")
    assert browser.value("document.querySelector('[name=realistic]').checked")
    browser.value("scrollTo(0, document.documentElement.scrollHeight)")
    # Who has scrolled down to the button sees it, too.
    top = browser.value("document.querySelector('#trouble').getBoundingClientRect().top")
    assert 0 <= top < 100 < browser.value("scrollY")


def test_the_page_without_a_server_gives_ratings_that_are_taken_in(
    browser: Browser, reviewed: Path, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    browser.open("about:blank")
    browser.open((made.parent / "page.html").as_uri())
    begun(browser, "Grace")
    for _ in sampled(reviewed).cases:
        rated(browser, 4, "no", "fine")
    assert browser.value("document.querySelector('#count').textContent") == "All 5 cases are rated."
    # What the link would save, without the dialogue of a download.
    browser.value("HTMLAnchorElement.prototype.click = function () { globalThis.saved = this.href; }")
    browser.value("document.querySelector('#download').click()")
    text = str(browser.value("fetch(saved).then((a) => a.text()).catch(() => JSON.stringify({made, given}))"))
    told = json.loads(text)
    if "made" in told:  # the policy lets the page fetch nothing, not even its own file
        told = {"schema": 1, "review": told["given"]["review"], "ratings": told["made"]}
    file = tmp_path / "ratings_Grace.json"
    file.write_text(json.dumps(told))
    words = ["review", str(reviewed), "--import", str(file)]
    assert main(words) == 0 and "5 of 5 ratings are new" in capsys.readouterr().out
    assert main([*words, "--summary", "--json"]) == 0
    out = capsys.readouterr().out
    assert "0 of 5 ratings are new" in out
    found = json.loads(out[out.index("{") :])
    assert found["raters"] == ["Grace"] and found["confusion"]["fp"] == 2 and found["confusion"]["tn"] == 2
    assert json.loads((reviewed / FOLDER / "review.json").read_text()) == found
    report = (reviewed / FOLDER / "review.html").read_text()
    assert all(row["pair"] in report for row in found["triage"]["false_alarms"]) and "expires:" in report
    assert main(["review", str(reviewed), "--summary"]) == 0
    assert "waivers for the false alarms" in capsys.readouterr().out
