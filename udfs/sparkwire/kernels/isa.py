"""Determine which instructions the kernels may use: those of Numba's target, not those of the host.

LLVM aborts the process on an instruction that its target lacks, and Numba's target is not always the host
(``NUMBA_CPU_NAME``, ``NUMBA_CPU_FEATURES``, ``NUMBA_ENABLE_AVX``). Only features in the feature string are used; an
empty string selects the portable code.
"""

from __future__ import annotations

from enum import Enum

from sparkwire.kernels import numba_inside
from sparkwire.kernels.numba_inside import go_without


class Isa(Enum):
    """Methods to compute checksums, the best one last."""

    PORTABLE = "tables"
    PMULL = "aarch64, 128-bit carry-less multiplication"
    PCLMUL = "x86-64, 128-bit carry-less multiplication"
    VPCLMUL = "x86-64, 512-bit carry-less multiplication"


_NEEDED = {
    Isa.VPCLMUL: {"pclmul", "ssse3", "avx512f", "avx512bw", "avx512vl", "vpclmulqdq"},
    Isa.PCLMUL: {"pclmul", "ssse3"},
    Isa.PMULL: {"neon", "aes"},
}
_ARCHITECTURES = {
    "x86_64": (Isa.VPCLMUL, Isa.PCLMUL),
    "aarch64": (Isa.PMULL,),
    "arm64": (Isa.PMULL,),  # the name on macOS
}


def isa_of(triple: str, features: str) -> Isa:
    """The best method that an LLVM target allows. ``features`` is a text like "+aes,-avx,+pclmul"."""
    present = {name[1:] for name in features.split(",") if name.startswith("+")}
    for isa in _ARCHITECTURES.get(triple.partition("-")[0], ()):
        if _NEEDED[isa] <= present:
            return isa
    return Isa.PORTABLE


def compiled_isa() -> Isa:
    """The best method for code that Numba generates in this process; the portable one if Numba does not report it."""
    try:
        triple, _, features = numba_inside.target()
    except Exception as error:  # noqa: BLE001  # Numba may have changed anything
        go_without("checksums come from tables, several times slower", error)
        return Isa.PORTABLE
    return isa_of(triple, features)
