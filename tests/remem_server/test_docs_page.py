"""`/` and `/docs`: a page for a person, which needs no other host and no script."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from html.parser import HTMLParser

import httpx
import pytest

from remem_testkit.server import ServedCommons

pytestmark = pytest.mark.any_database

Ask = Callable[..., httpx.Client]
# Where HTML may name something to load or to go to.
ADDRESSES = {"action", "background", "cite", "data", "formaction", "href", "poster", "src", "srcset", "xlink:href"}
VOID = {"br", "link", "meta"}


class Page(HTMLParser):
    """What a page refers to, which ids it has, and the elements it is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name in ADDRESSES:
                self.addresses.append(value or "")
            elif name == "id":
                self.ids.append(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def answer(commons: ServedCommons, ask: Ask) -> httpx.Response:
    return ask(commons).get("/docs")


@pytest.fixture
def page(answer: httpx.Response) -> Page:
    return Page(answer.text)


def test_the_address_of_a_commons_leads_to_the_page(commons: ServedCommons) -> None:
    for method in ("GET", "HEAD"):
        first = httpx.request(method, commons.url)
        # Relative, so that it also holds behind a proxy.
        assert (first.status_code, first.headers["Location"]) == (307, "docs")
    last = httpx.get(commons.url, follow_redirects=True)
    assert (last.status_code, last.url.path) == (200, "/docs")
    assert last.headers["Content-Type"] == "text/html; charset=utf-8"


def test_nothing_of_the_page_is_of_another_host_and_all_of_it_is_there(
    page: Page, commons: ServedCommons, ask: Ask
) -> None:
    beside = [address for address in page.addresses if not address.startswith("#")]
    assert sorted(set(beside)) == ["data:,", "openapi.json"]
    assert ask(commons).get("/openapi.json").status_code == 200
    assert {address[1:] for address in page.addresses if address.startswith("#")} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_no_answer_of_the_documentation_names_another_host(commons: ServedCommons, ask: Ask) -> None:
    for path in ("/docs", "/openapi.json"):
        answer = ask(commons).get(path)
        assert "//" not in answer.text
        assert not [value for value in answer.headers.values() if "//" in value]


def test_the_page_lets_nothing_in_but_its_own_style(answer: httpx.Response, page: Page) -> None:
    policy = dict(part.split(" ", 1) for part in answer.headers["Content-Security-Policy"].split("; "))
    style = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    assert len(style) == 1
    assert policy == {
        "default-src": "'none'",
        "style-src": f"'sha256-{b64encode(sha256(style[0].encode()).digest()).decode()}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert page.elements.isdisjoint({"base", "embed", "form", "iframe", "img", "object", "script"})
    assert not [name for name in page.attributes if name == "style" or name.startswith("on")]


def test_the_page_shows_every_route_every_refusal_and_every_model(
    answer: httpx.Response, page: Page, commons: ServedCommons, ask: Ask
) -> None:
    described = ask(commons).get("/openapi.json").json()
    operations = [
        (f"{method.upper()} {path}", operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    assert {operation["operationId"] for _name, operation in operations} <= set(page.ids)
    assert set(described["components"]["schemas"]) <= set(page.ids)
    for name, operation in operations:
        assert f"<code>{name}</code>" in answer.text
        for status, said in operation["responses"].items():
            assert f"<code>{status}</code>" in answer.text
            assert set(re.findall(r"`(\w+)`", said["description"])) <= set(
                re.findall(r"<code>(\w+)</code>", answer.text)
            )
    # Every element is closed, but for the two that hold the page.
    assert page.open == []
    assert "None" not in answer.text


def test_the_framework_says_nothing_in_its_own_words(commons: ServedCommons, ask: Ask) -> None:
    described = ask(commons).get("/openapi.json").text
    assert "Successful Response" not in described
    assert "Validation Error" not in described
