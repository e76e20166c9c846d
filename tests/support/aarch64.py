"""Generate code for aarch64 and run it in an emulator: ``pip install unicorn pyelftools``."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from elftools.elf.elffile import ELFFile
from llvmlite import ir
from unicorn import UC_ARCH_ARM64, UC_MODE_ARM, Uc, arm64_const

from sparkwire.kernels.ready import LEVELS

TRIPLE = "aarch64-unknown-linux-gnu"
FEATURES = ",".join(
    f"+{feature}" for level in LEVELS if level.architecture == "aarch64" for feature in sorted(level.features)
)

_CODE, _DATA, _STACK = 0x100000, 0x4000000, 0x8000000  # addresses in the emulator
_ROOM = 1 << 20  # [bytes]
_PAGE = 4096

# The ELF relocation types for aarch64 that LLVM emits here.
_PAGE_ADDRESS, _CALL, _JUMP = 275, 283, 282
_LOW_BITS = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}  # low bits of the address, in units of 1 << value


def compiled(module: ir.Module) -> bytes:
    """Compile a module to an object file, with Numba's optimizations."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module.triple = TRIPLE
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu="generic", features=FEATURES, opt=3, reloc="pic", codemodel="small"
    )
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(parsed, passes)
    return bytes(machine.emit_object(parsed))


def runnable(obj: bytes, name: str) -> Callable[[bytes], int]:
    """A function ``f(data)`` that runs ``uint32 name(uint8 *data, int64 n)`` of an object file."""
    image, entry = _linked(ELFFile(io.BytesIO(obj)), name)
    emulator = Uc(UC_ARCH_ARM64, UC_MODE_ARM)
    emulator.ctl_set_cpu_model(arm64_const.UC_CPU_ARM64_MAX)
    emulator.mem_map(_CODE, _ROOM)
    emulator.mem_write(_CODE, bytes(image))
    emulator.mem_map(_DATA, _ROOM)
    emulator.mem_map(_STACK, 2 * _PAGE)
    emulator.reg_write(arm64_const.UC_ARM64_REG_CPACR_EL1, 3 << 20)  # allow vector registers

    def call(data: bytes) -> int:
        # The first byte outside the mapped data faults, at each end in turn.
        start = _DATA if len(data) % 2 else _DATA + _ROOM - len(data)
        emulator.mem_write(start, data)
        emulator.reg_write(arm64_const.UC_ARM64_REG_X0, start)
        emulator.reg_write(arm64_const.UC_ARM64_REG_X1, len(data))
        emulator.reg_write(arm64_const.UC_ARM64_REG_X30, _STACK)
        emulator.reg_write(arm64_const.UC_ARM64_REG_SP, _STACK + _PAGE)
        emulator.emu_start(entry, _STACK)
        return int(emulator.reg_read(arm64_const.UC_ARM64_REG_W0))

    return call


def _linked(elf: Any, name: str) -> tuple[bytearray, int]:
    """The loaded sections of an object file, relocated, and the address of a function."""
    image = bytearray(_ROOM)
    addresses: dict[int, int] = {}
    end = 0
    for index, section in enumerate(elf.iter_sections()):
        if section["sh_flags"] & 2 and section["sh_size"] and section.name != ".eh_frame":  # the section needs memory
            start = -(-end // _PAGE) * _PAGE
            end = start + section["sh_size"]
            image[start:end] = section.data()
            addresses[index] = _CODE + start
    symbols = elf.get_section_by_name(".symtab")
    for section in elf.iter_sections():
        if section["sh_type"] == "SHT_RELA" and section["sh_info"] in addresses:
            for relocation in section.iter_relocations():
                symbol = symbols.get_symbol(relocation["r_info_sym"])
                target = addresses[symbol["st_shndx"]] + symbol["st_value"] + relocation["r_addend"]
                place = addresses[section["sh_info"]] + relocation["r_offset"]
                _relocate(image, relocation["r_info_type"], place, target)
    (function,) = (symbol for symbol in symbols.iter_symbols() if symbol.name == name)
    return image, addresses[function["st_shndx"]] + function["st_value"]


def _relocate(image: bytearray, kind: int, place: int, target: int) -> None:
    (word,) = struct.unpack_from("<I", image, place - _CODE)
    if kind == _PAGE_ADDRESS:
        pages = target // _PAGE - place // _PAGE
        word |= (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
    elif kind in _LOW_BITS:
        word |= (target % _PAGE >> _LOW_BITS[kind]) << 10
    elif kind in (_CALL, _JUMP):
        word |= (target - place) >> 2 & 0x3FFFFFF
    else:
        raise NotImplementedError(f"relocation {kind}")
    struct.pack_into("<I", image, place - _CODE, word)
