"""Access rules for logged-in users: addresses and domains that are allowed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

MAX_SHOWN: Final = 80


def explain_refusal(user: Mapping[str, object], allowed: Collection[str]) -> str:
    """Return why a user has no access; empty where they have.

    ``user`` holds the provider's claims about the user, ``allowed`` holds addresses and domains, such as
    ``@host.example``, in small letters. Without ``allowed`` the provider alone decides. An address that the provider
    has not verified, by its own claim, does not count.
    """
    if not allowed:
        return ""
    email = user.get("email")
    if not isinstance(email, str) or "@" not in email:
        return "The provider gives no e-mail address of yours, and only some addresses have access."
    if user.get("email_verified") in (False, "false"):
        return f"The provider has not verified the address {email:.{MAX_SHOWN}}."
    address = email.lower()
    if address in allowed or f"@{address.rpartition('@')[2]}" in allowed:
        return ""
    return f"{email:.{MAX_SHOWN}} is not among the addresses that have access."
