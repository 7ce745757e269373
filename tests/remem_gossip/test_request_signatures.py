"""A request is taken for a node's if that node signed exactly it, just now."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha512
from pathlib import Path
from typing import Any

import pytest
from http_message_signatures import (
    HTTPMessageSigner,
    HTTPMessageVerifier,
    HTTPSignatureKeyResolver,
    MappingKeyResolver,
    algorithms,
)
from hypothesis import given
from hypothesis import strategies as st

from remem.errors import RememError
from remem.protocol import SigningKey
from remem_gossip import rfc9421
from remem_gossip.signatures import (
    COMPONENTS,
    WINDOW_SECONDS,
    BadSignature,
    ContentDigest,
    SignatureComponents,
    SignatureFalse,
    SignatureHeader,
    SignatureMissing,
    SignatureParameters,
    SignatureTime,
    Signed,
    sign,
    verify,
)
from remem_testkit.files import NOW, key

VECTORS = Path(__file__).resolve().parents[1] / "vectors" / "signatures.json"
PATH = "/gossip/fetch"
BODY = b'{"ids":[]}'
SECOND = timedelta(seconds=1)
# RFC 8032, section 5.1: the first encoding of a point of small order.
SMALL_ORDER = "0100000000000000000000000000000000000000000000000000000000000000"


def signed(**changed: str) -> dict[str, str]:
    return {"Host": "node.example", **sign(key(1), "POST", "node.example", PATH, BODY, NOW), **changed}


def check(headers: dict[str, str] | Sequence[tuple[str, str]], **changed: Any) -> Signed:
    lines = list(headers.items()) if isinstance(headers, dict) else headers
    asked = {"method": "POST", "path": PATH, "now": NOW, **changed}
    return verify(asked["method"], asked["path"], lines, asked["now"])


def said(headers: dict[str, str], old: str, new: str) -> dict[str, str]:
    """Say something else in the description of the signature."""
    assert old in headers["Signature-Input"]
    return {**headers, "Signature-Input": headers["Signature-Input"].replace(old, new)}


def test_what_a_node_signs_is_taken_for_its_own() -> None:
    found = check(signed())
    found.check(BODY)
    assert found.key == key(1).public


def test_the_vectors_are_what_is_made_here() -> None:
    from .make_signatures import spell

    assert VECTORS.read_text() == spell()


@pytest.mark.parametrize("vector", json.loads(VECTORS.read_text())["vectors"], ids=lambda vector: vector["name"])
def test_each_vector_gets_its_verdict(vector: dict[str, Any]) -> None:
    now = datetime.fromtimestamp(vector["now"], UTC)
    try:
        found = verify(vector["method"], vector["path"], vector["headers"].items(), now)
        found.check(vector["body"].encode())
        verdict: dict[str, Any] = {"accept": {"key": found.key.hex}}
    except BadSignature as error:
        verdict = {"error": error.code}
    assert verdict == vector["expect"]


def test_the_library_s_own_ed25519_agrees() -> None:
    """What others sign by RFC 9421 is taken here, and the other way round."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.from_private_bytes(key(1).seed)
    keys = MappingKeyResolver(
        public_keys={key(1).public.hex: private.public_key()}, private_keys={key(1).public.hex: private}
    )
    message = rfc9421.Message("POST", "node.example", PATH, {})
    signer = HTTPMessageSigner(signature_algorithm=algorithms.ED25519, key_resolver=keys)
    signer.sign(
        message, key_id=key(1).public.hex, created=NOW, covered_component_ids=COMPONENTS, body=BODY, include_alg=False
    )
    check({"Host": "node.example", **message.headers}).check(BODY)

    now = datetime.now(UTC)
    ours = rfc9421.Message("POST", "node.example", PATH, sign(key(1), "POST", "node.example", PATH, BODY, now))
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=keys)
    (result,) = verifier.verify(ours, body=BODY, require_components=COMPONENTS)
    assert result.parameters["keyid"] == key(1).public.hex


def test_the_vector_of_rfc_9421_b_2_6_is_signed_and_verified() -> None:
    """Its components are others than ours, so it is the algorithm and the base that it shows."""
    headers = {
        "Date": "Tue, 20 Apr 2021 02:07:55 GMT",
        "Content-Type": "application/json",
        "Content-Length": "18",
    }
    signature = "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="
    signer = SigningKey.from_seed(bytes.fromhex("9f8362f87a484a954e6e740c5b4c0e84229139a20aa8ab56ff66586f6a7d29c5"))
    public = base64.b64decode("JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=").hex()
    components = ("date", "@method", "@path", "@authority", "content-type", "content-length")

    class Keys(HTTPSignatureKeyResolver):
        def resolve_private_key(self, key_id: str) -> SigningKey:
            assert key_id == "test-key-ed25519"
            return signer

    message = rfc9421.Message("POST", "example.com", "/foo", headers)
    HTTPMessageSigner(
        signature_algorithm=rfc9421.Ed25519, key_resolver=Keys(), component_resolver_class=rfc9421._Components
    ).sign(
        message,
        key_id="test-key-ed25519",
        created=datetime.fromtimestamp(1618884473, UTC),
        covered_component_ids=components,
        include_alg=False,
        label="sig-b26",
    )
    assert message.headers["Signature"] == f"sig-b26=:{signature}:"
    assert signer.public.hex == public
    # As a request between nodes it covers the wrong things.
    with pytest.raises(SignatureMissing):
        check({"Host": "example.com", **message.headers})
    with pytest.raises(SignatureComponents):
        check({"Host": "example.com", "Content-Digest": "sha-256=:AAAA:", **message.headers})


def test_the_window_is_open_in_both_directions_and_no_further() -> None:
    for seconds in (-WINDOW_SECONDS, 0, WINDOW_SECONDS):
        check(signed(), now=NOW + seconds * SECOND)
    for seconds in (-WINDOW_SECONDS - 1, WINDOW_SECONDS + 1, 10**8):
        with pytest.raises(SignatureTime):
            check(signed(), now=NOW + seconds * SECOND)


@pytest.mark.parametrize("name", ["Host", "Content-Digest", "Signature-Input", "Signature"])
def test_each_header_is_needed(name: str) -> None:
    headers = signed()
    del headers[name]
    with pytest.raises(SignatureMissing):
        check(headers)


@pytest.mark.parametrize("name", ["Content-Digest", "Signature-Input", "Signature"])
@pytest.mark.parametrize(
    "value",
    ["", "=", "a", "remem", "remem=1", 'remem="a"', "remem=:AAAA", "remem=()", "(", "remem=(1 2)", "é", "a\x00"],
)
def test_a_header_of_another_form_is_refused(name: str, value: str) -> None:
    with pytest.raises(BadSignature):
        check({**signed(), name: value})


@pytest.mark.parametrize("name", ["Host", "Content-Digest", "Signature-Input", "Signature"])
def test_a_long_header_is_refused_before_it_is_read(name: str) -> None:
    with pytest.raises(SignatureHeader):
        check({**signed(), name: "a" * 4_097})
    with pytest.raises(SignatureHeader):
        check([*signed().items(), *((name, "a") for _ in range(5_000))])


def test_two_hosts_are_refused() -> None:
    with pytest.raises(SignatureHeader):
        check([*signed().items(), ("Host", "node.example")])


@pytest.mark.parametrize("label", ["Signature-Input", "Signature"])
def test_a_label_that_comes_twice_is_refused(label: str) -> None:
    headers = signed()
    with pytest.raises(SignatureHeader):
        check([*headers.items(), (label, headers[label])])


def test_a_parameter_that_comes_twice_is_refused() -> None:
    with pytest.raises(SignatureHeader):
        check(said(signed(), ";keyid", f";created={int(NOW.timestamp())};keyid"))


def test_signatures_with_other_labels_and_components_do_not_matter() -> None:
    headers = signed()
    proxy = 'proxy=("@method" "x-forwarded-for";sf);created=1;keyid="proxy";alg="rsa-v1_5-sha256"'
    found = check(
        [
            ("signature-input", proxy),
            ("signature", "proxy=:AAAA:"),
            ("X-Forwarded-Host", "elsewhere.example"),
            *headers.items(),
        ]
    )
    found.check(BODY)
    assert found.key == key(1).public


def test_the_label_may_be_any() -> None:
    headers = signed()
    check({**said(headers, "remem=", "sig1="), "Signature": headers["Signature"].replace("remem=", "sig1=")})


def test_a_description_without_its_signature_is_refused() -> None:
    with pytest.raises(SignatureHeader):
        check(said(signed(), "remem=", "other="))


@pytest.mark.parametrize(
    "components",
    [
        '"@method" "@authority" "@path"',
        '"@method" "@authority" "@path" "content-digest" "host"',
        '"@method" "@authority" "@path" "content-digest" "content-digest"',
        '"@method" "@authority" "@path" "content-digest";sf',
        '"@method" "@authority";req "@path" "content-digest"',
        '"@method" "@authority" "@target-uri" "content-digest"',
        "",
    ],
)
def test_a_signature_covers_exactly_the_four_components(components: str) -> None:
    with pytest.raises(SignatureComponents):
        check(said(signed(), '"@method" "@authority" "@path" "content-digest"', components))


def test_the_components_may_come_in_any_order() -> None:
    message = rfc9421.Message("POST", "node.example", PATH, {})
    rfc9421.sign(message, BODY, key(1), NOW, label="a", components=COMPONENTS[::-1])
    check({"Host": "node.example", **message.headers}).check(BODY)


def test_another_order_than_was_signed_is_false() -> None:
    with pytest.raises(SignatureFalse):
        check(said(signed(), '"@method" "@authority"', '"@authority" "@method"'))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (";created=", ";expires="),
        (f";created={int(NOW.timestamp())}", ""),
        (f"={int(NOW.timestamp())}", '="now"'),
        (f"={int(NOW.timestamp())}", f"={int(NOW.timestamp())}.5"),
        ("ed25519", "hmac-sha256"),
        (f';keyid="{key(1).public.hex}"', ""),
        (f'"{key(1).public.hex}"', "7"),
        (key(1).public.hex, key(1).public.hex.upper()),
        (key(1).public.hex, key(1).public.origin),
        (key(1).public.hex, SMALL_ORDER),
        (";alg", ';expires="soon";alg'),
    ],
)
def test_a_signature_says_whose_it_is_and_when_it_was_made(old: str, new: str) -> None:
    with pytest.raises(SignatureParameters):
        check(said(signed(), old, new))


def test_a_signature_that_has_expired_is_refused() -> None:
    with pytest.raises(SignatureTime):
        check(said(signed(), ";alg", f";expires={int(NOW.timestamp()) - 1};alg"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (key(1).public.hex, key(2).public.hex),
        (";alg", ';tag="remem";alg'),
        (";alg", ';nonce="1";alg'),
        (";alg", ";odd=1;alg"),
        ('alg="ed25519"', "alg=ed25519"),
        (f"={int(NOW.timestamp())}", f"={int(NOW.timestamp()) + 1}"),
    ],
)
def test_what_a_signature_says_of_itself_is_signed_too(old: str, new: str) -> None:
    with pytest.raises(SignatureFalse):
        check(said(signed(), old, new))


@pytest.mark.parametrize(
    "changed",
    [{"method": "PUT"}, {"path": "/gossip/offer"}, {"path": PATH + "/"}, {"path": "/gossip/%66etch"}],
    ids=str,
)
def test_a_signature_is_of_one_method_and_path(changed: dict[str, str]) -> None:
    with pytest.raises(SignatureFalse):
        check(signed(), **changed)


@pytest.mark.parametrize(
    "path", ["", "gossip", "/gossip/fetch?a", "/gossip#a", "/a b", "/é", "/" + "a" * 4_000, "/a\n"]
)
def test_a_path_that_no_request_has_is_refused(path: str) -> None:
    with pytest.raises(SignatureHeader):
        check(signed(), path=path)


@pytest.mark.parametrize(
    "host", ["other.example", "node.example:443", "node.example.", "a@node.example", "a/b", "[::1"]
)
def test_a_signature_is_for_one_host(host: str) -> None:
    with pytest.raises(BadSignature):
        check(signed(Host=host))


def test_a_host_has_no_case() -> None:
    check(signed(Host="NODE.example"))


def test_the_body_is_the_one_that_was_signed() -> None:
    found = check(signed())
    for body in (b"", BODY + b" ", BODY[:-1]):
        with pytest.raises(ContentDigest):
            found.check(body)


def test_a_digest_of_other_algorithms_alone_is_refused() -> None:
    digest = base64.b64encode(sha512(BODY).digest()).decode()
    message = rfc9421.Message("POST", "node.example", PATH, {"Content-Digest": f"sha-512=:{digest}:"})
    HTTPMessageSigner(signature_algorithm=rfc9421.Ed25519, key_resolver=rfc9421._Keys(key(1))).sign(
        message,
        key_id=key(1).public.hex,
        created=NOW,
        covered_component_ids=COMPONENTS,
        use_existing_digest=True,
    )
    with pytest.raises(ContentDigest):
        check({"Host": "node.example", **message.headers})


@given(
    st.dictionaries(st.sampled_from(["Host", "Content-Digest", "Signature-Input", "Signature"]), st.text(max_size=80))
)
def test_any_headers_are_a_signature_or_a_fault(changed: dict[str, str]) -> None:
    with suppress(BadSignature):
        assert check({**signed(), **changed}).key == key(1).public


@given(st.data())
def test_any_damage_to_the_description_is_a_fault(data: st.DataObject) -> None:
    headers = signed()
    name = data.draw(st.sampled_from(["Content-Digest", "Signature-Input", "Signature"]))
    value = headers[name]
    at = data.draw(st.integers(0, len(value) - 1))
    put = data.draw(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=2))
    damaged = value[:at] + put + value[at + 1 :]
    try:
        found = check({**headers, name: damaged})
    except BadSignature:
        return
    # Some spellings are one: what they say is the same.
    assert found == check(headers)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "http_message_signatures", None)
    for call in (lambda: sign(key(1), "POST", "a.example", PATH, BODY, NOW), lambda: check(signed_before)):
        with pytest.raises(RememError) as caught:
            call()
        assert caught.value.hint == "pip install 'remem[gossip]'"


signed_before = signed()


def test_the_package_is_read_without_the_library() -> None:
    modules = "addresses, dial, signatures, wire"
    code = f"import sys; from remem_gossip import {modules}; print(*(n for n in sys.modules if 'http_' in n))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"http_message_signatures", "http_sf"}.isdisjoint(run.stdout.split())
