"""Match a name with one part of a glob: ``*``, ``?``, ``[ab]``, ``[!ab]`` and ``{a,b}``, which may be nested.

A pattern is a nondeterministic state machine that reads a name once and follows all its states at the same time. So the time is
at most the pattern's length times the name's. A regular expression with sixty stars would backtrack practically forever.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

_TOKENS: Final = re.compile(r"\[!?[^\]]+\]|[{},*?]|[^\[{},*?]+|\[")
_ANY: Final = re.compile(r".", re.DOTALL)


class _State(NamedTuple):
    """One state: a character to read, or the states that replace this one without reading."""

    character: re.Pattern[str] | None
    following: tuple[int, ...]


class Glob:
    """A pattern for one name without slashes."""

    def __init__(self, pattern: str) -> None:
        try:
            self._states = _machine(pattern)
        except (re.error, IndexError):  # a reversed range, or a brace that is not closed
            self._states = _literal(pattern)

    def matches(self, name: str) -> bool:
        """Whether the pattern matches the whole name."""
        end = len(self._states)
        now = self._taken_up([0])
        for character in name:
            now = self._taken_up(
                following
                for k in now
                if k < end and (pattern := self._states[k].character) is not None and pattern.match(character)
                for following in self._states[k].following
            )
        return end in now

    def _taken_up(self, states: Iterable[int]) -> set[int]:
        reached: set[int] = set()
        waiting = list(states)
        while waiting:
            k = waiting.pop()
            if k not in reached:
                reached.add(k)
                if k < len(self._states) and self._states[k].character is None:
                    waiting += self._states[k].following
        return reached


def _literal(text: str) -> list[_State]:
    return [_State(re.compile(re.escape(one)), (k + 1,)) for k, one in enumerate(text)]


def _machine(pattern: str) -> list[_State]:
    """The states of a pattern; the index after the last state is the end. Raises IndexError if a brace is not closed."""
    states: list[_State] = []
    braces: list[tuple[int, list[int], list[int]]] = []
    """for each open brace: its state, the starts of its alternatives, and the states at their ends"""
    for token in _TOKENS.findall(pattern):
        at = len(states)
        if token == "{":
            braces.append((at, [at + 1], []))
            states.append(_State(None, ()))
        elif token == "," and braces:
            braces[-1][1].append(at + 1)
            braces[-1][2].append(at)
            states.append(_State(None, ()))
        elif token == "}" and braces:
            opened, begins, ends = braces.pop()
            states[opened] = _State(None, tuple(begins))
            for end in ends:
                states[end] = _State(None, (at,))
        elif token == "*":
            states += [_State(None, (at + 1, at + 2)), _State(_ANY, (at,))]
        elif token == "?":
            states.append(_State(_ANY, (at + 1,)))
        elif token[0] == "[" and token[-1] == "]":
            inside = re.sub(r"([\\^\[])", r"\\\1", token[1:-1])
            characters = re.compile(f"[^{inside[1:]}]" if inside[0] == "!" else f"[{inside}]", re.DOTALL)
            states.append(_State(characters, (at + 1,)))
        else:
            states += [_State(re.compile(re.escape(one)), (at + k + 1,)) for k, one in enumerate(token)]
    if braces:
        raise IndexError(pattern)
    return states
