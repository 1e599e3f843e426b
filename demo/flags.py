"""Reads the faults as they are written on the command line, ``router=0.02`` or ``norm@40``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Final

from hopwatch.demo.faults import MALFORMED_RATIO, Faults, Kill, NodeFaults
from hopwatch.demo.stream import GATE, NODES
from hopwatch.monitor.errors import ConfigurationError

RATIO_FLAGS: Final = {
    "--drop": "drop_ratio",
    "--filter": "filter_ratio",
    "--reject": "reject_ratio",
    "--duplicate": "duplicate_ratio",
    "--probe-drop": "probe_drop_ratio",
}
SECONDS_FLAGS: Final = {"--delay": "delay_s", "--skew": "skew_s"}
MAX_DELAY_S: Final = 15.0
"""All delays together: they have to leave room in the demo's transit of 20 s."""
MIN_SKEW_S: Final = 1.0
MAX_SKEW_S: Final = 60.0


VERSION_PATTERN: Final = re.compile(r"[A-Za-z0-9._-]{1,32}")


class FaultError(ConfigurationError):
    """A fault that was asked for in words that make no sense, or more than the demo can show."""


def parse_faults(  # noqa: PLR0913 - what is asked for, and of whom
    seed: int,
    wishes: Mapping[str, Iterable[str]],
    kills: Iterable[str],
    *,
    run_s: float | None,
    nodes: Sequence[str] = NODES,
    killable: Sequence[str] = NODES,
) -> Faults:
    """Return what the flags ask for: ``wishes`` is flag to its values, ``run_s`` the length of the run, if it has one.

    Faults are those of ``nodes``, kills those of the processes ``killable``.

    Raises:
        FaultError: a value cannot be read, names no node, or lies outside what the demo can show.
    """
    found: dict[str, NodeFaults] = {}
    for flag, values in wishes.items():
        for value in values:
            node, number = _parse_value(flag, value, "=", nodes)
            name = RATIO_FLAGS.get(flag) or SECONDS_FLAGS[flag]
            if getattr(found.get(node), name, 0.0):
                raise FaultError(f"{flag} {value}: {node} has a {flag} already; give it once a node")
            _check_range(flag, value, number)
            given: dict[str, Any] = {name: number}
            found[node] = replace(found.get(node, NodeFaults()), **given)
    _check_together(found)
    parsed = [_parse_kill(value, run_s, killable) for value in kills]
    return Faults(seed, found, tuple(sorted(parsed, key=lambda kill: kill.at_s)))


def add_healing(faults: Faults, heal_after_s: float | None, rate_per_s: float, *, run_s: float | None) -> Faults:
    """Return the faults with what is done to messages ending so long after the start, if it is to end.

    Raises:
        FaultError: it would end when the run does, or later.
    """
    if heal_after_s is None:
        return faults
    if run_s is not None and heal_after_s >= run_s:
        raise FaultError(f"--heal-after {heal_after_s:g}: faults end before the run does, at {run_s:g} s")
    number = round(heal_after_s * rate_per_s)
    return replace(faults, nodes={node: replace(own, healed_from=number) for node, own in faults.nodes.items()})


def add_deploys(
    faults: Faults, values: Iterable[str], rate_per_s: float, *, run_s: float | None, nodes: Sequence[str] = NODES
) -> Faults:
    """Return the faults with new versions of nodes, each from so long after the start on.

    Raises:
        FaultError: a value cannot be read, names no node or one twice, or its moment is not within the run.
    """
    found = dict(faults.nodes)
    for value in values:
        place, _, version = value.partition("=")
        if not VERSION_PATTERN.fullmatch(version):
            raise FaultError(
                f"--deploy {value}: expected NODE@SECONDS=VERSION, for example --deploy norm@60=1.1, with a version of "
                "1 to 32 letters, digits and . _ -"
            )
        node, at_s = _parse_value("--deploy", place, "@", nodes)
        if found.get(node, NodeFaults()).version:
            raise FaultError(f"--deploy {value}: {node} has a --deploy already; give it once a node")
        if at_s <= 0 or (run_s is not None and at_s >= run_s):
            end = "" if run_s is None else f" and before the end at {run_s:g} s"
            raise FaultError(f"--deploy {value}: a version is deployed after the start{end}, got {at_s:g} s")
        number = max(1, round(at_s * rate_per_s))
        found[node] = replace(found.get(node, NodeFaults()), version=version, deployed_from=number)
    return replace(faults, nodes=found)


def add_malformed(faults: Faults) -> Faults:
    """Return the faults with those of events that the gate is to reject."""
    return replace(faults, nodes={**faults.nodes, GATE: NodeFaults(reject_ratio=MALFORMED_RATIO)})


def _parse_kill(value: str, run_s: float | None, killable: Sequence[str]) -> Kill:
    node, at_s = _parse_value("--kill", value, "@", killable)
    if at_s <= 0 or (run_s is not None and at_s >= run_s):
        end = "" if run_s is None else f" and before the end at {run_s:g} s"
        raise FaultError(f"--kill {value}: a node is killed after the start{end}, got {at_s:g} s")
    return Kill(node, at_s)


def _parse_value(flag: str, value: str, sign: str, nodes: Sequence[str]) -> tuple[str, float]:
    """Split ``NODE=NUMBER`` (or ``NODE@NUMBER``) and check both halves."""
    unit, example = ("RATIO", "0.02") if flag in RATIO_FLAGS else ("SECONDS", "5")
    node, found, text = value.partition(sign)
    if not found:
        raise FaultError(f"{flag} {value}: expected NODE{sign}{unit}, for example {flag} router{sign}{example}")
    if node not in nodes:
        near = get_close_matches(node, nodes, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise FaultError(f"{flag} {value}: no node is called {node!r}{hint}; the nodes are {', '.join(nodes)}")
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FaultError(f"{flag} {value}: {unit} has to be a number, got {text!r}")
    return node, number


def _check_range(flag: str, value: str, number: float) -> None:
    allowed = {
        "--delay": (0 < number <= MAX_DELAY_S, f"a delay is more than 0 and at most {MAX_DELAY_S:g} s"),
        "--skew": (
            MIN_SKEW_S <= abs(number) <= MAX_SKEW_S,
            f"a skew is {MIN_SKEW_S:g} … {MAX_SKEW_S:g} s ahead, or as much behind with a minus",
        ),
    }
    holds, rule = allowed.get(flag, (0 < number <= 1, "a ratio is more than 0 and at most 1"))
    if not holds:
        raise FaultError(f"{flag} {value}: {rule}, got {number:g}")


def _check_together(nodes: Mapping[str, NodeFaults]) -> None:
    for node, faults in nodes.items():
        total = faults.drop_ratio + faults.filter_ratio + faults.reject_ratio + faults.duplicate_ratio
        if total > 1:
            raise FaultError(
                f"drop, filter, reject and duplicate share the messages of {node}: at most 1 in all, got {total:g}"
            )
    delay_s = sum(faults.delay_s for faults in nodes.values())
    if delay_s > MAX_DELAY_S:
        raise FaultError(f"all delays are at most {MAX_DELAY_S:g} s in all, to stay within transit; got {delay_s:g} s")
