"""Which flipped bit explains a checksum that is wrong.

A CRC is linear: to flip a bit changes it by something that depends on the bit's distance from the end alone. From the last bit
backwards this something is multiplied by x with each bit, which is a step of the shift register.
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
    """How many bits before the last one of ``size`` bytes, a byte's highest bit the last; -1 where no bit explains it.

    ``difference`` is what is stored xor what is computed, ``polynomial`` a reflected one without its highest term.
    """
    effect = int64(polynomial)
    for distance in range(8 * size):
        if effect == difference:
            return int64(distance)
        effect = effect >> 1 ^ (polynomial if effect & 1 else 0)
    return int64(-1)
