"""Checksums of ``data[start : start + n]``, uint32, by the fastest method that the compiled code may use.

- ``crc32``: zlib's CRC; the start value is all ones, the result is inverted
- ``crc32_raw``: Databus's CRC; the same polynomial, the start value is 0, the result is not inverted
- ``crc32c``: Castagnoli's CRC, as in Kafka's record batches; the start value is all ones, the result is inverted

Kernels call these functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numba import types
from numba.extending import intrinsic

from sparkwire.kernels.checksums import gf2
from sparkwire.kernels.checksums.crc_tables import table_checksum
from sparkwire.kernels.checksums.fold import checksum_function
from sparkwire.kernels.checksums.gf2 import Checksum
from sparkwire.kernels.instruction_sets import MACHINES, Machine
from sparkwire.kernels.isa import Isa, compiled_isa
from sparkwire.kernels.load import Bytes, Int, address

ONES = 0xFFFFFFFF
CRC32 = Checksum("crc32", gf2.IEEE, ONES, ONES)
CRC32_RAW = Checksum("crc32_raw", gf2.IEEE, 0, 0)
CRC32C = Checksum("crc32c", gf2.CASTAGNOLI, ONES, ONES)


Crc: TypeAlias = Callable[[Bytes, Int, Int], np.uint32]


def _kernel_of(checksum: Checksum) -> Crc:
    isa = compiled_isa()
    return table_checksum(checksum) if isa is Isa.PORTABLE else _folded(checksum, MACHINES[isa])


def _folded(checksum: Checksum, machine: Machine) -> Crc:
    @intrinsic  # type: ignore[untyped-decorator]
    def fold(typing_context: Any, data: Any, start: Any, n: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            at = address(context, builder, signature.args[0], *args)
            return builder.call(checksum_function(builder.module, machine, checksum), [at, args[2]])

        return types.uint32(data, types.int64, types.int64), emit

    return fold  # type: ignore[no-any-return]


crc32: Crc = _kernel_of(CRC32)
crc32_raw: Crc = _kernel_of(CRC32_RAW)
crc32c: Crc = _kernel_of(CRC32C)
