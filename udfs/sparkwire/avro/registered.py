"""Schemas as registries have them: versions of subjects, and what they refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

AVRO: Final = "AVRO"
_MOST_WITHIN: Final = 64
"""references within each other"""

Place = tuple[str, int]
"""a subject and one of its versions"""


class RegistryError(RuntimeError):
    """A registry that does not answer, or has not what its schemas speak of: one sentence, without credentials."""


@contextmanager
def needing_the_extra(what: str) -> Iterator[None]:
    """ModuleNotFoundError that says which extra brings what is missing: one sentence."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            f"{what} needs the extra registry: pip install 'sparkwire[registry]' ({missing.name} is missing)"
        ) from None


class Registered(NamedTuple):
    """A schema as a registry has it."""

    text: str
    title: str
    """what a sentence calls it"""
    type: str = AVRO
    """AVRO, JSON or PROTOBUF"""
    references: tuple[tuple[str, str], ...] = ()
    """names and texts of what it refers to, and what these do: each once, and after all that it needs"""


class Version(NamedTuple):
    """A version of a subject."""

    subject: str
    version: int
    id: int
    guid: str | None
    type: str
    text: str
    references: tuple[tuple[str, Place], ...]
    deleted: bool = False

    @property
    def title(self) -> str:
        """What a sentence calls it."""
        return f"{self.subject}, version {self.version}"


def with_references(version: Version, title: str, at: Callable[[Place, Version], Version | None]) -> Registered:
    """A version and all that it refers to.

    Parameters
    ----------
    at
        the version at a place that another one speaks of; None where there is none

    Raises
    ------
    RegistryError
        where one is not there, or they lead back to each other.
    """
    found: dict[Place, tuple[str, str]] = {}

    def follow(one: Version, within: tuple[Place, ...]) -> None:
        for name, place in one.references:
            named = f"{title} refers to {place[0]}, version {place[1]}"
            if place in within or len(within) == _MOST_WITHIN:
                raise RegistryError(
                    f"{named}, which leads back to itself" if place in within else f"{named}, and so on"
                )
            if place in found:
                continue
            referred = at(place, one)
            if referred is None:
                raise RegistryError(f"{named}, which is not there")
            follow(referred, (*within, place))
            found[place] = name, referred.text

    follow(version, ((version.subject, version.version),))
    return Registered(version.text, title, version.type, tuple(found.values()))
