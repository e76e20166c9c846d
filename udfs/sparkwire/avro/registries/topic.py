"""A registry read from its topic, `_schemas`: each record is a version of a subject, a deletion, or a subject's settings.

Source: ``SchemaKey``, ``SchemaValue``, ``DeleteSubjectKey``, ``ConfigValue`` of Confluent's Schema Registry. The last record of a
key wins, as after compaction. Deleted versions stay known while their records exist, because data with these schemas may exist.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from sparkwire.avro.registered import (
    AVRO,
    DEFAULT_CONTEXT,
    Place,
    Registered,
    SubjectVersion,
    check_contexts,
    context_of,
    in_context,
    with_references,
)
from sparkwire.avro.schema_source import SchemaSource
from sparkwire.errors import RegistryError


class TopicSchemas(SchemaSource):
    """See ``Registry.topic``."""

    def __init__(
        self,
        records: Iterable[tuple[int, bytes | None, bytes | None]],
        subjects: Sequence[str] = (),
        context: str | None = None,
    ) -> None:
        self._subjects = subjects
        self._contexts = {context} if context else {context_of(subject) for subject in subjects}
        """the contexts to look up ids in; empty: the default context, or another one if only that has the id"""
        self._versions: dict[Place, SubjectVersion] = {}
        self._aliases: dict[str, str] = {}
        ordered = sorted(records, key=lambda record: record[0])
        for _, key, value in ordered:
            # Skip records that no registry wrote, as a registry does.
            with contextlib.suppress(AttributeError, KeyError, RecursionError, TypeError, ValueError):
                self._take(_json(key), _json(value))
        if not self._versions:
            raise ValueError(
                f"Registry.topic found no schema in {len(ordered)} records: is this the registry's topic, _schemas?"
            )
        self._by_id: dict[Hashable, list[SubjectVersion]] = {}
        for version in self._versions.values():
            for named in (version.id, version.guid):
                if named is not None:
                    self._by_id.setdefault(named, []).append(version)

    def __repr__(self) -> str:
        return f"Registry.topic of {len(self._versions)} versions of {len({v.subject for v in self._versions.values()})} subjects"

    def versions(self) -> list[SubjectVersion]:
        """Every version of every subject, with the registry's numbers."""
        return sorted(self._versions.values(), key=lambda version: (version.subject, version.version))

    # -- records

    def _take(self, key: Any, value: Any) -> None:
        subject, kind = key.get("subject"), key.get("keytype")
        if kind == "SCHEMA":
            self._take_version((subject, key["version"]), value)
        elif kind == "DELETE_SUBJECT" and value is not None:
            for place, version in self._versions.items():
                if place[0] == subject and place[1] <= int(value["version"]):
                    self._versions[place] = version._replace(deleted=True)
        elif kind == "CONFIG" and subject:
            alias = value and value.get("alias")
            if alias:
                self._aliases[subject] = alias
            else:
                self._aliases.pop(subject, None)

    def _take_version(self, place: Place, value: Any) -> None:
        if value is None:
            if place in self._versions:  # deleted permanently
                self._versions[place] = self._versions[place]._replace(deleted=True)
            return
        references = value.get("references") or ()
        self._versions[str(place[0]), int(place[1])] = SubjectVersion(
            str(place[0]),
            int(place[1]),
            int(value["id"]),
            value.get("guid"),
            value.get("schemaType") or AVRO,
            str(value["schema"]),
            tuple((str(one["name"]), (str(one["subject"]), int(one["version"]))) for one in references),
            bool(value.get("deleted")),
        )

    # -- schemas

    def ids(self) -> Sequence[Hashable] | None:
        if not self._subjects:
            return None
        versions, ids_of_subjects = self.versions(), list[Hashable]()
        for subject in self._subjects:
            matching = [version.id for version in versions if version.subject == self._aliases.get(subject, subject)]
            if not matching:
                raise RegistryError(f"the registry's topic has no subject {subject}")
            ids_of_subjects += matching
        return list(dict.fromkeys(ids_of_subjects))

    def registered(self, ids: Iterable[Hashable]) -> dict[Hashable, Registered]:
        registered_schemas = {}
        for key in ids:
            version = self._with_id(key)
            if version is not None:
                title = f"schema {key} of the registry's topic ({version.title})"
                registered_schemas[key] = with_references(version, title, self._at)
        return registered_schemas

    def _with_id(self, key: Hashable) -> SubjectVersion | None:
        some = self._by_id.get(key, [])
        matching = [version for version in some if context_of(version.subject) in (self._contexts or {DEFAULT_CONTEXT})]
        if not matching and not self._contexts:
            matching = some
        check_contexts(key, matching, "Registry.topic(df, context={!r})")
        return matching[-1] if matching else None

    def _at(self, place: Place, referring: SubjectVersion) -> SubjectVersion | None:
        """A version by its subject or the subject's alias. The context of the referring version has precedence."""
        subject, number = self._aliases.get(place[0], place[0]), place[1]
        within = in_context(subject, context_of(referring.subject))
        return self._versions.get((within, number)) or self._versions.get((subject, number))


def _json(data: bytes | None) -> Any:
    return None if data is None else json.loads(data)
