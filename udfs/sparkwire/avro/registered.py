"""Schemas as registries store them: versions of subjects, with their references."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from sparkwire.base.printable import printable
from sparkwire.errors import RegistryError

AVRO: Final = "AVRO"
_MAX_DEPTH: Final = 64
"""maximum depth of nested references"""

DEFAULT_CONTEXT: Final = "."

Place = tuple[str, int]
"""a subject and one of its versions"""


def context_of(subject: str) -> str:
    """The context of a subject: ``.name`` of ``:.name:subject``. Schema ids are unique within a context."""
    return subject.split(":")[1] if subject.startswith(":.") else DEFAULT_CONTEXT


def in_context(subject: str, context: str) -> str:
    """The subject's name with the context as its qualifier, unless it has one already."""
    return subject if context == DEFAULT_CONTEXT or subject.startswith(":.") else f":{context}:{subject}"


@contextmanager
def needing_the_extra(what: str) -> Iterator[None]:
    """Add to a ModuleNotFoundError which extra to install."""
    try:
        yield
    except ModuleNotFoundError as missing:
        package = str(missing.name).partition(".")[0]
        raise ModuleNotFoundError(
            f"{printable(what)} needs {printable(package)}, which is not installed: install the extra 'registry' of sparkwire"
        ) from None


class Registered(NamedTuple):
    """A schema as a registry stores it."""

    text: str
    title: str
    """its name in an error message"""
    type: str = AVRO
    """AVRO, JSON or PROTOBUF"""
    references: tuple[tuple[str, str], ...] = ()
    """names and texts of all direct and indirect references; each occurs once, after its own references"""


class SubjectVersion(NamedTuple):
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
        """Its name in an error message."""
        return f"{self.subject}, version {self.version}"


def check_contexts(key: Hashable, versions: Sequence[SubjectVersion], advice: str) -> None:
    """Raise RegistryError if an id has different schemas in several contexts. ``advice`` has a ``{}`` for a context."""
    if len({(version.text, version.references) for version in versions}) > 1:
        contexts = sorted({context_of(version.subject) for version in versions})
        raise RegistryError(
            f"schema {key} is not the same in the contexts {', '.join(contexts)} of the registry: choose one, "
            + advice.format(contexts[0])
        )


def with_references(
    version: SubjectVersion, title: str, at: Callable[[Place, SubjectVersion], SubjectVersion | None]
) -> Registered:
    """Resolve a version's direct and indirect references.

    Parameters
    ----------
    at
        finds the version at a place that another version refers to; None if none exists

    Raises
    ------
    RegistryError
        if a reference is missing, or the references form a cycle.
    """
    by_place: dict[Place, tuple[str, str]] = {}

    def follow(one: SubjectVersion, within: tuple[Place, ...]) -> None:
        for name, place in one.references:
            named = f"{title} refers to {place[0]}, version {place[1]}"
            referred = at(place, one)
            if referred is None:
                raise RegistryError(f"{named}, which does not exist")
            reference = referred.subject, referred.version  # in its context
            if reference in within or len(within) == _MAX_DEPTH:
                raise RegistryError(
                    f"{named}, which leads back to itself" if reference in within else f"{named}, and so on"
                )
            if reference not in by_place:
                follow(referred, (*within, reference))
                by_place[reference] = name, referred.text

    follow(version, ((version.subject, version.version),))
    return Registered(version.text, title, version.type, tuple(by_place.values()))
