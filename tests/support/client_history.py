"""Histories of changes in a relay's form, the resulting tables, and the recipes that compute such tables."""

from __future__ import annotations

from random import Random

from tests.support import ROOT
from tests.support.client_streams import end, event, regress

RECIPES = ROOT / "sql" / "recipes"


def statements(recipe: str) -> list[str]:
    """The statements of a recipe."""
    text = "\n".join(line for line in (RECIPES / recipe).read_text("utf-8").split("\n") if not line.startswith("--"))
    return [statement for statement in text.split(";\n") if statement.strip()]


class History:
    """Changes of a few keys in windows, as a relay sends them: truncated, with SCN regressions, and with repeated windows."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.table: dict[tuple[int, int], bytes] = {}
        self.windows: list[tuple[int, list[bytes]]] = []
        for scn in range(10, 10 * self.random.randrange(5, 40), 10):
            self.windows.append((scn, [self.change(scn) for _ in range(self.random.randrange(1, 6))]))

    def change(self, scn: int) -> bytes:
        key = (self.random.choice((40, 41)), self.random.randrange(8))
        if self.random.random() < 0.3:
            self.table.pop(key, None)
            return event(scn, *key, opcode=2)
        self.table[key] = self.random.randbytes(4)
        return event(scn, *key, self.table[key])

    def sent(self) -> bytes:
        """The stream. Its last window is complete, and is the last one of the history."""
        out, at, repeats = [], 0, 20
        while at < len(self.windows):
            scn, changes = self.windows[at]
            if repeats and self.random.random() < 0.2:
                repeats -= 1
                back = self.random.randrange(at + 1)
                out += changes[: self.random.randrange(len(changes) + 1)]
                out.append(regress(self.windows[back][0] - 1))
                at = back
            elif repeats and self.random.random() < 0.1:
                repeats -= 1
                at = self.random.randrange(at + 1)
            else:
                out += [*changes, end(scn)]
                at += 1
        return b"".join(out)
