"""Instruction sets for checksums: which one the kernels may use, and its instructions as LLVM IR.

LLVM aborts the process on an instruction that its target lacks, and Numba's target is not always the host
(``NUMBA_CPU_NAME``, ``NUMBA_CPU_FEATURES``, ``NUMBA_ENABLE_AVX``). Only features in the target's feature string are used; an
empty string selects the portable code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils

from sparkwire.kernels import numba_inside
from sparkwire.kernels.numba_inside import go_without

BIT, BYTE, WORD, LONG, _LANE = (ir.IntType(bits) for bits in (1, 8, 32, 64, 128))


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


class Machine(NamedTuple):
    """The instructions of one instruction set."""

    lanes: int
    """number of 128-bit lanes in a register"""
    multiply: Callable[[ir.IRBuilder, Any, Any, int, int], Any]
    """(a, b, i, j) -> in each lane, half i of a times half j of b; 0 is the low half"""
    first_block: Callable[[ir.IRBuilder, Any, Any, Any], Any]
    """(data, n, head) -> the first ``head`` of ``n`` bytes, at the end of a register that is otherwise zero"""
    few: tuple[int, ...]
    """[blocks] messages up to these lengths need no loop; requires a ``first_block`` that accepts 0 bytes"""


def _masked_block(b: ir.IRBuilder, data: Any, n: Any, head: Any) -> Any:
    """AVX-512: one masked load. Bytes with a cleared mask bit are zero and not accessed."""
    lanes = ir.VectorType(BYTE, 64)
    signature = ir.FunctionType(lanes, [lanes.as_pointer(), WORD, ir.VectorType(BIT, 64), lanes])
    masked_load = declared(b, "llvm.masked.load.v64i8.p0", signature)
    before = b.sub(LONG(64), head)
    none = b.icmp_unsigned("==", head, LONG(0))  # LLVM does not define a shift by 64
    mask = b.select(none, LONG(0), b.shl(LONG(-1), before))
    at = b.bitcast(b.gep(data, [b.neg(before)]), lanes.as_pointer())
    zeros = ir.Constant(lanes, [0] * 64)
    block = b.call(masked_load, [at, WORD(1), b.bitcast(mask, ir.VectorType(BIT, 64)), zeros])
    return b.bitcast(block, ir.VectorType(LONG, 8))


def _shuffled_block(shuffle: str) -> Callable[[ir.IRBuilder, Any, Any, Any], Any]:
    """128 bits: 16 bytes are loaded and shifted; fewer than 16 need two overlapping loads of 8, 4, 2 or 1."""

    def first_block(b: ir.IRBuilder, data: Any, n: Any, head: Any) -> Any:
        result = cgutils.alloca_once(b, _LANE)
        with b.if_else(b.icmp_unsigned(">=", n, LONG(16)), likely=True) as (whole, short):
            with whole:
                b.store(b.bitcast(_slid(b, shuffle, data, head), _LANE), result)
            with short:
                _store_short(b, data, n, result)
        return b.bitcast(b.load(result), ir.VectorType(LONG, 2))

    return first_block


def _slid(b: ir.IRBuilder, shuffle: str, data: Any, head: Any) -> Any:
    """Load 16 bytes at ``data`` and move the first ``head`` to the end of the register."""
    lanes = ir.VectorType(BYTE, 16)
    none = [0x80] * 16  # this shuffle index gives 0
    window = b.gep(table(b, "sparkwire_slide", BYTE, none + list(range(16))), [head])
    indices = b.load(b.bitcast(window, lanes.as_pointer()), align=1)
    block = b.load(b.bitcast(data, lanes.as_pointer()), align=1)
    return b.call(declared(b, shuffle, ir.FunctionType(lanes, [lanes, lanes])), [block, indices])


def _store_short(b: ir.IRBuilder, data: Any, n: Any, result: Any, widths: tuple[int, ...] = (8, 4, 2, 1)) -> None:
    """Store ``n`` < 16 bytes at the end of a lane: their first and last ``width`` bytes, which overlap."""
    width, *narrower = widths
    if not narrower:
        b.store(_overlapping(b, data, n, width), result)
        return
    with b.if_else(b.icmp_unsigned(">=", n, LONG(width))) as (fits, shorter):
        with fits:
            b.store(_overlapping(b, data, n, width), result)
        with shorter:
            _store_short(b, data, n, result, tuple(narrower))


def _overlapping(b: ir.IRBuilder, data: Any, n: Any, width: int) -> Any:
    """Load ``n`` bytes, ``width`` <= n <= 2 * ``width``, to the end of a lane."""

    def load(pos: Any) -> Any:
        at = b.bitcast(b.gep(data, [pos]), ir.IntType(8 * width).as_pointer())
        return b.zext(b.load(at, align=1), _LANE)

    def up(value: Any, count: Any) -> Any:
        return b.shl(value, b.zext(b.mul(count, LONG(8)), _LANE))

    last = b.sub(n, LONG(width))
    return up(b.or_(load(LONG(0)), up(load(last), last)), b.sub(LONG(16), n))


def _multiply_x86(b: ir.IRBuilder, a: Any, c: Any, i: int, j: int) -> Any:
    name = {2: "llvm.x86.pclmulqdq", 8: "llvm.x86.pclmulqdq.512"}[a.type.count]
    signature = ir.FunctionType(a.type, [a.type, a.type, BYTE])
    return b.call(declared(b, name, signature), [a, c, BYTE(i | j << 4)])


def _multiply_aarch64(b: ir.IRBuilder, a: Any, c: Any, i: int, j: int) -> Any:
    signature = ir.FunctionType(ir.VectorType(BYTE, 16), [LONG, LONG])
    halves = [b.extract_element(a, WORD(i)), b.extract_element(c, WORD(j))]
    return b.bitcast(b.call(declared(b, "llvm.aarch64.neon.pmull64", signature), halves), a.type)


def declared(b: ir.IRBuilder, name: str, signature: ir.FunctionType) -> ir.Function:
    return b.module.globals.get(name) or ir.Function(b.module, signature, name)


def constant(values: list[int], element: ir.IntType = LONG) -> ir.Constant:
    return ir.Constant(ir.VectorType(element, len(values)), values)


def table(b: ir.IRBuilder, name: str, element: ir.IntType, values: Sequence[int]) -> Any:
    """Pointer to the first element of a constant array."""
    table = b.module.globals.get(name)
    if table is None:
        array = ir.ArrayType(element, len(values))
        table = ir.GlobalVariable(b.module, array, name)
        table.linkage = "internal"  # linkonce_odr would go through the global offset table on aarch64
        table.global_constant = True
        table.initializer = ir.Constant(array, values)
    return b.bitcast(table, element.as_pointer())


MACHINES = {
    Isa.VPCLMUL: Machine(4, _multiply_x86, _masked_block, few=(2, 6)),
    Isa.PCLMUL: Machine(1, _multiply_x86, _shuffled_block("llvm.x86.ssse3.pshuf.b.128"), few=()),
    Isa.PMULL: Machine(1, _multiply_aarch64, _shuffled_block("llvm.aarch64.neon.tbl1.v16i8"), few=()),
}
