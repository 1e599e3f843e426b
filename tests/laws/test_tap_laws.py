"""Laws of the taps: whatever is done to a file, and whenever the tap is killed, no line is skipped."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.taps.documents import DocumentReader
from hopwatch.probes.taps.followed_file import LINGER_S
from hopwatch.probes.taps.jsonl import JsonLinesTap, open_followed_file
from hopwatch.probes.taps.state import StateFile
from hopwatch.probes.values import IdFormat, TimeUnit
from hopwatch.testing import EPOCH_US
from tests.support.tap_bench import Place

READER: Final = DocumentReader("id", "at", IdFormat.AUTO, TimeUnit.US)
ACTS: Final = st.lists(
    st.sampled_from(["write", "write half", "write late", "rotate", "step", "settle", "restart", "kill", "wait"]),
    max_size=40,
)


class Logged:
    """A log that is written and rotated, and a tap that follows it and is killed at times."""

    def __init__(self, folder: Path) -> None:
        """Start with an empty log."""
        self.log = folder / "app.log"
        self.log.touch()
        self.place = Place()
        self.state = StateFile(folder / "state", self.log)
        self.lines = 0
        self.has_died = False
        self.writer = self.late = self.log.open("ab")
        self.start()
        assert self.tap.settle()

    def start(self) -> None:
        """Start the tap where its state says."""
        self.source = open_followed_file(self.log, self.place.around, self.state, from_start=True)
        self.tap = JsonLinesTap(self.source, READER, self.place.stamping, self.place.around, self.state)

    def act(self, what: str) -> None:
        """Do one thing to the log, or to the tap."""
        match what:
            case "write":
                self.write(b"\n")
            case "write half":
                self.write(b"")
                self.writer.write(b"\n")
                self.writer.flush()
            case "write late":
                self.late.write(self.line() + b"\n")
                self.late.flush()
            case "rotate":
                self.rotate()
            case "step":
                self.tap.step()
            case "settle":
                assert self.tap.settle()
            case "restart":
                self.tap.settle()
                self.source.close()
                self.start()
            case "kill":
                self.has_died = True
                self.source.close()
                self.start()
            case "wait":
                self.place.clock.advance(LINGER_S)

    def line(self) -> bytes:
        """Return the next line."""
        self.lines += 1
        return b'{"id": %d, "at": %d}' % (self.lines, EPOCH_US)

    def write(self, end: bytes) -> None:
        """Write a line in two parts, with a look of the tap between them."""
        line = self.line() + end
        for part in (line[:9], line[9:]):
            self.writer.write(part)
            self.writer.flush()
            self.tap.step()

    def rotate(self) -> None:
        """Rename as logrotate does; the writer may write to the renamed file for a while."""
        for number in range(40, 0, -1):
            numbered = self.log.with_name(f"app.log.{number}")
            if numbered.exists():
                numbered.rename(self.log.with_name(f"app.log.{number + 1}"))
        self.log.rename(self.log.with_name("app.log.1"))
        self.late, self.writer = self.writer, self.log.open("ab")

    def stamped(self) -> Counter[bytes]:
        """Return how often each message was stamped, once the tap has seen all there is."""
        for _ in range(100):
            self.tap.step()
            self.place.clock.advance(LINGER_S)
        assert self.tap.settle()
        return Counter(self.place.ids())


@given(ACTS)
def test_no_line_is_skipped_and_none_is_stamped_twice_without_a_kill(acts: list[str]) -> None:
    """Writing, rotating, late writes, restarts: every line once; after a kill at least once."""
    with tempfile.TemporaryDirectory() as folder:
        logged = Logged(Path(folder))
        has_waited = False
        for act in acts:
            has_waited = act == "wait" or (has_waited and act != "rotate")
            # A writer that holds on to a renamed file for longer than the tap lingers has lost the tap.
            if not (act == "write late" and has_waited):
                logged.act(act)
        stamped = logged.stamped()
        every_line = {id_bytes(number) for number in range(1, logged.lines + 1)}
        assert set(stamped) == every_line
        assert logged.has_died or set(stamped.values()) <= {1}
