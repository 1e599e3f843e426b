"""Streams of alerts, and a drop in one of them."""

from __future__ import annotations

from typing import Final

from tests.support.delivery_scenario import Post

STREAMS: Final = ("orders", "refunds", "trades")


def a_drop(post: Post) -> Post:
    """Let every stream lose messages in the minutes 10 to 14; that is over at 20."""
    for stream in STREAMS:
        post.push(0, 9, stream=stream).push(10, 14, lost={"b": 20}, stream=stream).push(15, 45, stream=stream)
    return post
