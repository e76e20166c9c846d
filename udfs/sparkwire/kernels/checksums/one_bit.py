"""Find the flipped bit that explains a wrong checksum.

A CRC is linear: flipping a bit changes the CRC by an amount that depends only on the bit's distance from the end. For each bit
further from the end, this amount is multiplied by x, which is one step of the shift register.
"""

from __future__ import annotations

from typing import Final

from sparkwire.kernels.checksums.gf2 import CASTAGNOLI, IEEE, reflect
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.number import int64

REFLECTED_IEEE: Final = reflect(IEEE, 33) >> 1
REFLECTED_CASTAGNOLI: Final = reflect(CASTAGNOLI, 33) >> 1


@kernel
def flipped_bit(polynomial: int, size: int, difference: int) -> int:
    """The distance of the flipped bit from the last bit of ``size`` bytes; -1 if no single bit explains the checksum.

    A byte's highest bit is its last. ``difference`` is the stored xor the computed checksum. ``polynomial`` is reflected and
    without its highest term.
    """
    effect = int64(polynomial)
    for distance in range(8 * size):
        if effect == difference:
            return int64(distance)
        effect = effect >> 1 ^ (polynomial if effect & 1 else 0)
    return int64(-1)
