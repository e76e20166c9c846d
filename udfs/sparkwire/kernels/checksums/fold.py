"""Emit checksums by carry-less multiplication as LLVM IR, for all polynomials and register widths.

A checksum is the message as a polynomial modulo P. Multiplying a block by a power of x modulo P moves it past the blocks that
follow. This is "folding" (Gopal et al., *Fast CRC Computation for Generic Polynomials Using PCLMULQDQ*, Intel 2009). Bits are
reflected: the first bit of a message has the highest power, so bit i of a 128-bit lane, read as a little-endian number, is
x^(127-i).

Four ideas keep short messages short:

- If the register starts with 0, zeros before a message change nothing. So the *first* block is the
  partial one, aligned to the right. All later blocks are complete, and there is no tail.
- A start value of ones instead of 0 adds ``init * x^(8 head)`` to the register after the ``head`` bytes
  of the first block. A table has one word for each size of that block.
- If loads can be masked, messages of up to a few blocks are all treated as the longest of them,
  with zeros before. Folding zeros costs less than an unpredictable branch on the length.
- The reduction to 32 bits is three dependent multiplications: one step reduces all halves of a register to
  96 bits, and Barrett's method does the rest without masks.

Messages are contiguous, so reading a block also prefetches the memory ``AHEAD`` of it. The hardware's prefetcher
detects a sequence of short messages too late.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from sparkwire.kernels.checksums import gf2
from sparkwire.kernels.checksums.gf2 import Checksum
from sparkwire.kernels.checksums.instruction_sets import BIT, BYTE, LONG, WORD, Machine, constant, declared, table
from sparkwire.kernels.load import emit_prefetch

ACCUMULATORS = 8  # independent chains of the wide loop, which hide the latency of a multiplication
WIDE_FROM = 2 * ACCUMULATORS  # [blocks] from which the wide loop is faster
LINE = 64  # [bytes] of a cache line
AHEAD = 8192  # [bytes] distance of the prefetch

_POINTER = BYTE.as_pointer()


def checksum_function(module: ir.Module, machine: Machine, checksum: Checksum) -> ir.Function:
    """``uint32 f(uint8 *data, int64 n)`` in ``module``.

    The function is not inlined, except for a constant length of one block. Inlining would slow down the rest of a kernel,
    and its compilation, by more than a call costs.
    """
    name = f"sparkwire_{checksum.name}"
    function = module.globals.get(name)
    if function is None:
        general = _function(module, f"{name}_general", "noinline")
        _emit_general(general, machine, checksum)
        function = _function(module, name, "alwaysinline")
        _emit_choice(function, machine, checksum, general)
    return function


def _function(module: ir.Module, name: str, inlining: str) -> ir.Function:
    function = ir.Function(module, ir.FunctionType(WORD, [_POINTER, LONG]), name)
    function.linkage = "linkonce_odr"
    function.attributes.add(inlining)
    return function


def _emit_choice(function: ir.Function, machine: Machine, checksum: Checksum, general: ir.Function) -> None:
    b = ir.IRBuilder(function.append_basic_block("entry"))
    data, n = function.args
    if machine.few:
        folder = _Folder(b, machine, checksum)
        one_block = b.icmp_unsigned("<", b.sub(n, LONG(1)), LONG(folder.block_bytes))
        with b.if_then(b.and_(_is_constant(b, n), one_block)):
            folder.return_few(data, n, 1)
    b.ret(b.call(general, [data, n]))


def _emit_general(function: ir.Function, machine: Machine, checksum: Checksum) -> None:
    b = ir.IRBuilder(function.append_basic_block("entry"))
    data, n = function.args
    folder = _Folder(b, machine, checksum)
    with b.if_then(b.icmp_signed("<=", n, LONG(0)), likely=False):
        b.ret(WORD(checksum.init ^ checksum.xorout))
    for count in machine.few:
        with b.if_then(b.icmp_unsigned("<=", n, LONG(count * folder.block_bytes))):
            folder.return_few(data, n, count)
    shift = LONG(folder.block_bytes.bit_length() - 1)
    blocks = b.lshr(b.sub(n, LONG(1)), shift)
    head = b.sub(n, b.shl(blocks, shift))  # 1 ... block_bytes
    first = b.xor(machine.first_block(b, data, n, head), folder.start_block(head))
    state = folder.whole_blocks(b.gep(data, [head]), blocks, first)
    b.ret(b.xor(folder.reduce(state), WORD(checksum.xorout)))


class _Folder:
    """Emits the folds of one checksum on one machine."""

    def __init__(self, builder: ir.IRBuilder, machine: Machine, checksum: Checksum) -> None:
        self.b = builder
        self.machine = machine
        self.checksum = checksum
        self.block_bytes = 16 * machine.lanes
        self.register = ir.VectorType(LONG, 2 * machine.lanes)

    def return_few(self, data: Any, n: Any, count: int) -> None:
        """Emit the return of the checksum of 1 to ``count`` blocks, computed over ``count`` blocks."""
        b = self.b
        state = None
        for distance in reversed(range(0, count * self.block_bytes, self.block_bytes)):
            end = b.sub(n, LONG(distance))
            size = _clamped(b, end, self.block_bytes)
            at = b.gep(data, [b.sub(end, size)])
            self.prefetch(at, LONG(0))
            block = self.machine.first_block(b, at, size, size)
            state = block if state is None else self.fold(state, self.next_block, block)
        register = b.xor(self.reduce(state), self.start_value(n))
        b.ret(b.xor(register, WORD(self.checksum.xorout)))

    def whole_blocks(self, data: Any, blocks: Any, first: Any) -> Any:
        """The state after the state ``first`` and ``blocks`` complete blocks at ``data``."""
        b = self.b
        state = cgutils.alloca_once_value(b, first)
        done = cgutils.alloca_once_value(b, LONG(0))
        with b.if_then(b.icmp_unsigned(">=", blocks, LONG(WIDE_FROM))):
            groups = b.udiv(blocks, LONG(ACCUMULATORS))
            b.store(self._groups(data, groups, b.load(state)), state)
            b.store(b.mul(groups, LONG(ACCUMULATORS)), done)
        with cgutils.for_range_slice(b, b.load(done), blocks, LONG(1)) as (at, _):
            if self.block_bytes == LINE:
                self.prefetch(data, at)
            b.store(self.fold(b.load(state), self.next_block, self.block(data, at)), state)
        return b.load(state)

    def _groups(self, data: Any, groups: Any, first: Any) -> Any:
        """Fold ``groups`` (1 or more) times ACCUMULATORS blocks. Each accumulator processes every n-th block."""
        b = self.b
        next_group = self.distance(8 * self.block_bytes * ACCUMULATORS)
        states = [cgutils.alloca_once_value(b, self.block(data, LONG(k))) for k in range(ACCUMULATORS)]
        b.store(self.fold(first, self.next_block, b.load(states[0])), states[0])
        with cgutils.for_range_slice(b, LONG(1), groups, LONG(1)) as (group, _):
            start = b.mul(group, LONG(ACCUMULATORS))
            for k, state in enumerate(states):
                at = b.add(start, LONG(k))
                if k * self.block_bytes % LINE == 0:
                    self.prefetch(data, at)
                b.store(self.fold(b.load(state), next_group, self.block(data, at)), state)
        result = b.load(states[0])
        for state in states[1:]:
            result = self.fold(result, self.next_block, b.load(state))
        return result

    def _address(self, data: Any, index: Any, beyond: int) -> Any:
        return self.b.gep(data, [self.b.add(self.b.mul(index, LONG(self.block_bytes)), LONG(beyond))])

    def block(self, data: Any, index: Any) -> Any:
        """Load block ``index`` of the complete blocks at ``data``."""
        at = self.b.bitcast(self._address(data, index, 0), self.register.as_pointer())
        return self.b.load(at, align=1)

    def prefetch(self, data: Any, index: Any) -> None:
        emit_prefetch(self.b, self._address(data, index, AHEAD))

    def distance(self, bits: int) -> Any:
        """The constant that moves all lanes up."""
        return constant([*gf2.fold(bits, self.checksum.poly)] * self.machine.lanes)

    @property
    def next_block(self) -> Any:
        return self.distance(8 * self.block_bytes)

    def fold(self, state: Any, distance: Any, block: Any) -> Any:
        """state * x^distance + block."""
        low = self.machine.multiply(self.b, state, distance, 0, 0)
        high = self.machine.multiply(self.b, state, distance, 1, 1)
        return self.b.xor(self.b.xor(low, high), block)

    def start_value(self, n: Any) -> Any:
        """The start value's contribution to the register after ``n`` bytes, from -4 to the size of the few blocks."""
        if not self.checksum.init:
            return WORD(0)
        longest = self.block_bytes * max((1, *self.machine.few))
        sizes = range(-4, longest + 1)
        words = gf2.after_zeros(self.checksum.init, sizes, self.checksum.poly)
        values = table(self.b, f"sparkwire_{self.checksum.name}_start", WORD, words)
        return self.b.load(self.b.gep(values, [self.b.sub(n, LONG(sizes.start))]))

    def start_block(self, head: Any) -> Any:
        """The start value's contribution to the state after the first block; times x^32, it is that to the register."""
        words = ir.VectorType(WORD, self.block_bytes // 4)
        value = self.start_value(self.b.sub(head, LONG(4)))
        last = self.b.insert_element(ir.Constant(words, [0] * words.count), value, WORD(words.count - 1))
        return self.b.bitcast(last, self.register)

    def reduce(self, state: Any) -> Any:
        """Reduce a state to the 32-bit register."""
        b = self.b
        to_end = range(64 * (2 * self.machine.lanes - 1), -1, -64)  # [bits] of each half
        narrow = constant([gf2.narrow(distance, self.checksum.poly) for distance in to_end])
        remainder = self.fold(state, narrow, ir.Constant(self.register, [0] * self.register.count))
        while (lanes := remainder.type.count // 2) > 1:
            halves = [[side * lanes + k for k in range(lanes)] for side in (0, 1)]
            low, high = (b.shuffle_vector(remainder, remainder, constant(half, WORD)) for half in halves)
            remainder = b.xor(low, high)
        mu, p33 = (constant([value, 0]) for value in gf2.barrett(self.checksum.poly))
        quotient = self.machine.multiply(b, remainder, mu, 0, 0)
        remainder = b.xor(remainder, self.machine.multiply(b, quotient, p33, 0, 0))
        return b.extract_element(b.bitcast(remainder, ir.VectorType(WORD, 4)), WORD(2))


def _is_constant(b: ir.IRBuilder, value: Any) -> Any:
    return b.call(declared(b, "llvm.is.constant.i64", ir.FunctionType(BIT, [LONG])), [value])


def _clamped(b: ir.IRBuilder, value: Any, highest: int) -> Any:
    """Clamp ``value`` to 0 ... ``highest``."""
    positive = b.select(b.icmp_signed("<", value, LONG(0)), LONG(0), value)
    return b.select(b.icmp_signed(">", positive, LONG(highest)), LONG(highest), positive)
