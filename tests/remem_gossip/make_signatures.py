"""Make tests/vectors/signatures.json: signed requests between nodes, good ones and others.

    python -m tests.remem_gossip.make_signatures

Every key comes from a seed that is written down, and no clock is read, so the vectors never change by themselves.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from remem.protocol import SigningKey
from remem_gossip.signatures import sign

FILE: Final = Path(__file__).resolve().parents[1] / "vectors" / "signatures.json"
SEED: Final = sha256(b"remem request vector").digest()
MOMENT: Final = 1_772_366_400
BODY: Final = b'{"ids":["' + b"0f" * 32 + b'"]}'

_KEY: Final = SigningKey.from_seed(SEED)


def vectors() -> list[dict[str, Any]]:
    """Return all of them."""
    good = _signed()
    headers = good["headers"]
    described, signature = headers["Signature-Input"], headers["Signature"]
    proxied = {
        **headers,
        "Signature-Input": f'proxy=("@method" "x-forwarded-for");created=1;keyid="p", {described}',
        "Signature": f"proxy=:AAAA:, {signature}",
    }
    return [
        {"name": "a-request", "comment": "a question for one file", **good},
        {"name": "an-empty-body", "comment": "the digest of no bytes", **_signed(method="GET", body=b"")},
        {"name": "a-port", "comment": "the port is not that of the scheme", **_signed(authority="node.example:8443")},
        {"name": "a-longer-path", "comment": "a commons below a path", **_signed(path="/a/gossip/fetch")},
        {"name": "a-host-in-capitals", "comment": "hosts have no case", **_with(good, {"Host": "Node.Example"})},
        {"name": "behind-a-proxy", "comment": "a proxy has signed it too", **_with(good, proxied)},
        {"name": "the-last-second", "comment": "300 seconds later", **good, "now": MOMENT + 300},
        {"name": "the-first-second", "comment": "by a clock that is 300 seconds behind", **good, "now": MOMENT - 300},
        _bad("too-old", "301 seconds later", "signature_time", {**good, "now": MOMENT + 301}),
        _bad("too-young", "by a clock that is 301 seconds behind", "signature_time", {**good, "now": MOMENT - 301}),
        _bad("another-method", "it was signed as POST", "signature_false", {**good, "method": "PUT"}),
        _bad("another-path", "it was signed for fetch", "signature_false", {**good, "path": "/gossip/offer"}),
        _bad("another-host", "it was signed for another node", "signature_false", _with(good, {"Host": "b.example"})),
        _bad("another-body", "one byte more", "content_digest", {**good, "body": BODY.decode() + " "}),
        _bad(
            "another-digest",
            "the digest of the body, which is not the one that was signed",
            "signature_false",
            _with({**good, "body": ""}, {"Content-Digest": _signed(body=b"")["headers"]["Content-Digest"]}),
        ),
        _bad(
            "less-covered",
            "the path is not covered",
            "signature_components",
            _with(good, {"Signature-Input": described.replace(' "@path"', "")}),
        ),
        _bad(
            "signed-twice",
            "two signatures that would do",
            "signature_components",
            _with(
                good,
                {
                    "Signature-Input": f"{described}, b{described}",
                    "Signature": f"{signature}, b{signature}",
                },
            ),
        ),
        _bad(
            "another-algorithm",
            "one that is not known here",
            "signature_parameters",
            _with(good, {"Signature-Input": described.replace("ed25519", "hmac-sha256")}),
        ),
    ]


def spell() -> str:
    """Return the file's text."""
    what = (
        "Requests between nodes, signed as RFC 9421 says (PROTOCOL.md, section 16). `seed` makes the key that signed; "
        "`now` is the receiver's clock in Unix seconds. `expect` says whose it is, or the code of the refusal."
    )
    return json.dumps({"comment": what, "seed": SEED.hex(), "vectors": vectors()}, indent=1) + "\n"


def _signed(
    *, method: str = "POST", authority: str = "node.example", path: str = "/gossip/fetch", body: bytes = BODY
) -> dict[str, Any]:
    headers = sign(_KEY, method, authority, path, body, datetime.fromtimestamp(MOMENT, UTC))
    return {
        "method": method,
        "path": path,
        "headers": {"Host": authority, **headers},
        "body": body.decode(),
        "now": MOMENT,
        "expect": {"accept": {"key": _KEY.public.hex}},
    }


def _with(vector: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
    return {**vector, "headers": {**vector["headers"], **headers}}


def _bad(name: str, comment: str, code: str, vector: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "comment": comment, **vector, "expect": {"error": code}}


if __name__ == "__main__":
    FILE.write_text(spell())
