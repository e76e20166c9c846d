"""Which instructions the kernels may use: those that Numba compiles for, never those that the host claims.

LLVM aborts the process on an instruction that its target lacks, and Numba's target is not always the
host (``NUMBA_CPU_NAME``, ``NUMBA_CPU_FEATURES``, ``NUMBA_ENABLE_AVX``). What the feature string does
not name is not used: an empty string is the portable path.
"""

from __future__ import annotations

from enum import Enum

from sparkwire.kernels import numba_inside
from sparkwire.kernels.numba_inside import go_without


class Isa(Enum):
    """Ways to compute checksums, best last."""

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
    "arm64": (Isa.PMULL,),  # the same as macOS calls it
}


def isa_of(triple: str, features: str) -> Isa:
    """The best way that an LLVM target allows; ``features`` as in "+aes,-avx,+pclmul"."""
    present = {name[1:] for name in features.split(",") if name.startswith("+")}
    for isa in _ARCHITECTURES.get(triple.partition("-")[0], ()):
        if _NEEDED[isa] <= present:
            return isa
    return Isa.PORTABLE


def compiled_isa() -> Isa:
    """The best way in the code that Numba generates in this process; the portable one if Numba does not report it."""
    try:
        triple, _, features = numba_inside.target()
    except Exception as error:  # noqa: BLE001  # whatever numba has changed
        go_without("checksums come from tables, several times slower", error)
        return Isa.PORTABLE
    return isa_of(triple, features)
