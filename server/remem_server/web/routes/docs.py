"""`/` and `/docs`: the routes, for a person to read.

The page says what `/openapi.json` says, and nothing else. It is made here, whole: it loads nothing, from this
commons or from elsewhere, and no script runs in it, which its Content-Security-Policy holds it to.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from html import escape
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from remem_server.web.asking import commons_of

_STYLE: Final = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h2 { margin-top: 3rem; border-bottom: 1px solid #8888 }
h3 { margin-top: 2.5rem }
code { font: 0.9em ui-monospace, monospace; background: #8882; padding: 0.1em 0.3em; border-radius: 3px }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 1rem 0.3rem 0; border-top: 1px solid #8884 }
th { font-weight: 600; white-space: nowrap }
p { margin: 0.5rem 0 }
td p { margin: 0 }
"""
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        f"style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'",
        # The empty icon, without which a browser would ask for one.
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_CODE: Final = re.compile(r"`([^`]+)`")

router: Final = APIRouter(include_in_schema=False)


@router.get("/")
async def root() -> Response:
    """Lead whoever opens the address of the commons to what can be asked there."""
    # Relative, so that it holds behind a proxy that serves the commons under a path of its own.
    return RedirectResponse("docs", 307)


@router.get("/docs")
def docs(request: Request) -> Response:
    """Describe the routes."""
    headers = {"Content-Security-Policy": _POLICY, "Cache-Control": commons_of(request).revalidate}
    return HTMLResponse(page(request.app.openapi()), headers=headers)


def page(schema: Mapping[str, Any]) -> str:
    """Write an OpenAPI description as one HTML page."""
    about, models = schema["info"], schema["components"]["schemas"]
    operations = [
        (f"{method.upper()} {path}", operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    contents = [[_link(of["operationId"], name), escape(of["summary"])] for name, of in operations]
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<title>{escape(about["title"])}</title>\n<link rel="icon" href="data:,">\n<style>{_STYLE}</style>',
            f"<h1>{escape(about['title'])}</h1>",
            _paragraphs(about["description"]),
            f'<p>Release {escape(about["version"])}. For programs: <a href="openapi.json">openapi.json</a>.</p>',
            _table((), contents),
            "<h2>Routes</h2>",
            *(_operation(name, operation) for name, operation in operations),
            "<h2>Models</h2>",
            *(_model(name, model) for name, model in sorted(models.items())),
            "</html>\n",
        )
    )


def _operation(name: str, operation: Mapping[str, Any]) -> str:
    parts = [f'<h3 id="{operation["operationId"]}">{_code(name)}</h3>', _paragraphs(operation["description"])]
    if "security" in operation:
        parts.append("<p>Takes <code>Authorization: Bearer</code> with a token.</p>")
    if parameters := operation.get("parameters"):
        rows = [[_code(one["name"]), one["in"], _form(one["schema"]), _words(one["description"])] for one in parameters]
        parts.append(_table(("parameter", "in", "form", "meaning"), rows))
    if body := operation.get("requestBody"):
        parts.append(_table(("body", "meaning"), [[_content(body), _words(body["description"])]]))
    answers = sorted(operation["responses"].items())
    rows = [[_code(status), _content(one), _paragraphs(one["description"]) + _headers(one)] for status, one in answers]
    parts.append(_table(("answer", "body", "meaning"), rows))
    return "\n".join(parts)


def _model(name: str, model: Mapping[str, Any]) -> str:
    parts = [f'<h3 id="{name}">{_code(name)}</h3>', _paragraphs(model["description"])]
    if fields := model.get("properties"):
        rows = [[_code(field), _form(of), _words(of.get("description", ""))] for field, of in fields.items()]
        parts.append(_table(("field", "form", "meaning"), rows))
    else:
        parts.append(f"<p>{_form(model)}</p>")
    return "\n".join(parts)


def _content(of: Mapping[str, Any]) -> str:
    """Say in which media types a body comes, and of which form where it is no file."""
    said = [
        _code(media_type) + ("" if "format" in one["schema"] else f" {_form(one['schema'])}")
        for media_type, one in of.get("content", {}).items()
    ]
    return "<br>".join(said)


def _headers(of: Mapping[str, Any]) -> str:
    return "".join(f"<p>{_code(name)}: {_words(one['description'])}</p>" for name, one in of.get("headers", {}).items())


def _form(schema: Mapping[str, Any]) -> str:
    """Word a schema."""
    match schema:
        case {"$ref": reference}:
            name = reference.rpartition("/")[2]
            return _link(name, name)
        case {"anyOf": kinds}:
            return " or ".join(map(_form, kinds))
        case {"enum": values}:
            return " or ".join(map(_code, values))
        case {"const": value}:
            return _code(value)
        case {"type": "array", "items": items}:
            return f"list of {_form(items)}"
    told = [escape(schema["type"])]
    if "minimum" in schema:
        told.append(f"{schema['minimum']:,} to {schema['maximum']:,}")
    if "maxLength" in schema:
        told.append(f"at most {schema['maxLength']:,} characters")
    if "pattern" in schema:
        told.append(_code(schema["pattern"]))
    if "format" in schema:
        told.append(escape(schema["format"]))
    if "default" in schema:
        told.append(f"{_code(schema['default'])} if not given")
    return ", ".join(told)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    return "\n".join(("<table>", *(f"<tr>{line}</tr>" for line in ([names] if names else []) + lines), "</table>"))


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{_words(one)}</p>" for one in text.split("\n\n"))


def _words(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _code(value: object) -> str:
    return f"<code>{escape(str(value))}</code>"


def _link(to: str, name: str) -> str:
    return f'<a href="#{escape(to)}">{_code(name)}</a>'
