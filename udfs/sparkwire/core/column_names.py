"""Make column names unique for Spark, which treats `id` and `ID` as the same column, as Parquet files also require."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def distinct_names(names: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """Make names unique: a name that is taken, or differs from an earlier one only in case, gets ``_2``, ``_3`` ….

    Examples
    --------
    >>> distinct_names(["id", "ID", "_error_"], taken=["_error_"])
    ['id', 'ID_2', '_error__2']
    """
    used, own = {name.lower() for name in taken}, {name.lower() for name in names}
    distinct: list[str] = []
    for name in names:
        free, k = name, 1
        while free.lower() in used or (k > 1 and free.lower() in own):
            k += 1
            free = f"{name}_{k}"
        used.add(free.lower())
        distinct.append(free)
    return distinct
