"""Display of an id: in the form that its owners used, as far as the batches tell."""

import hashlib
import uuid
from collections.abc import Iterable

from tests.model.pathway import Pathway
from tests.model.record import Observation

MOST_TEXT_BYTES = 256
KINDS = ("BYTES", "UUID", "INT", "TEXT")


def shown(pathway: Pathway, message_id: bytes, observed: Iterable[tuple[str, Observation]]) -> str:
    """Give an id as the first node gave it that says of which kind it is; a text if any batch has that of this id."""
    own = [(node, seen) for node, seen in observed if seen.message_id == message_id]
    order = list(pathway.nodes)
    said = sorted((order.index(node), KINDS.index(seen.kind)) for node, seen in own if seen.kind)
    kind = KINDS[said[0][1]] if said else ""
    if kind == "UUID":
        return str(uuid.UUID(bytes=message_id))
    if kind == "INT":
        return str(int.from_bytes(message_id, "big"))
    if kind != "TEXT":
        return message_id.hex()
    texts = {seen.text for _, seen in own if seen.text is not None and _is_its_own(message_id, seen.text)}
    return texts.pop().decode() if texts else f"{message_id.hex()} (hash of a text)"


def _is_its_own(message_id: bytes, text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return len(text) <= MOST_TEXT_BYTES and hashlib.blake2b(text, digest_size=16).digest() == message_id
