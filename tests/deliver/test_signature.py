"""Tests of the signatures: the published vector, the library of the scheme, and ids that break no header."""

from __future__ import annotations

import base64
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook

from hopwatch.deliver import signature

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 - of the published vector
OTHER = "whsec_" + base64.b64encode(bytes(range(32))).decode()


def test_the_published_vector_is_met() -> None:
    """The vector of the scheme's reference libraries."""
    headers = signature.sign_request(
        [signature.parse_secret(SECRET)], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@pytest.mark.parametrize("secret", [SECRET, OTHER])
def test_the_library_of_the_scheme_verifies_each_secret(secret: str) -> None:
    """While a secret is changed, receivers with the old one and with the new one take the request."""
    keys = [signature.parse_secret(one) for one in (SECRET, OTHER)]
    headers = signature.sign_request(keys, "m1", int(time.time()), '{"ü": 1}'.encode())
    Webhook(secret).verify('{"ü": 1}'.encode(), headers)


@pytest.mark.parametrize(
    ("secret", "told"),
    [
        ("hunter2-hunter2-hunter2", "begins with 'whsec_' and goes on in base64, got another beginning"),
        ("whsec_no base64!", "got something after it that is no base64"),
        ("whsec_c2hvcnQ=", "24 to 64 bytes in base64 after 'whsec_', got 5"),
        ("whsec_" + base64.b64encode(bytes(65)).decode(), "got 65"),
    ],
)
def test_a_bad_secret_is_refused(secret: str, told: str) -> None:
    """The text says what is wrong, and does not repeat the secret."""
    with pytest.raises(ValueError, match=told) as refused:
        signature.parse_secret(secret)
    assert secret.removeprefix("whsec_") not in str(refused.value)


@given(st.lists(st.text(max_size=300), min_size=1, max_size=5))
def test_a_request_id_fits_a_header(ids: list[str]) -> None:
    """The id of a request is short, visible ASCII without a full stop, and the same for the same ids."""
    found = signature.build_request_id(ids)
    assert 0 < len(found) <= signature.MAX_ID_CHARS
    assert found.isascii()
    assert found.isprintable()
    assert not set(found) & set(". ")
    assert found == signature.build_request_id(iter(ids))


@given(st.lists(st.text(max_size=9), min_size=1, max_size=4), st.lists(st.text(max_size=9), min_size=1, max_size=4))
def test_other_messages_have_another_request_id(ids: list[str], others: list[str]) -> None:
    """Two requests share an id only if they carry the same messages, in the same order."""
    assert (signature.build_request_id(ids) == signature.build_request_id(others)) == (ids == others)


def test_a_plain_id_stays_as_it_is() -> None:
    """A UUID is the same in the header."""
    assert signature.build_request_id(["0192d5a0-0000-7000-8000-000000000001"]).startswith("0192d5a0-0000-7000-")
    assert signature.build_request_id(["a.b\r\nX: 1"]) == "a%2Eb%0D%0AX%3A%201"
