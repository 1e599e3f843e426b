"""Tests against real servers, which they start themselves on 127.0.0.1, in folders that go with them."""
