"""Arrays of areaDetector (`NTNDArray` of EPICS pvAccess), as images for a recorder.

The structure is that of EPICS Normative Types, "NTNDArray". Dimensions stand there with the fastest first. Compressed
pixels are bytes, and `codec.parameters` has the type of the pixels as a number of pvData's `ScalarType`, as ADCore's
`ntndArrayConverter.cpp` writes it. `NDPluginCodec.cpp` says which bytes a codec makes.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

UNION_TYPES = {
    "byteValue": "int8",
    "shortValue": "int16",
    "intValue": "int32",
    "longValue": "int64",
    "ubyteValue": "uint8",
    "ushortValue": "uint16",
    "uintValue": "uint32",
    "ulongValue": "uint64",
    "floatValue": "float32",
    "doubleValue": "float64",
}
"""Types of pixels by the member of the union `value`."""
SCALAR_TYPES = dict(enumerate(UNION_TYPES.values(), start=1))
"""Types of pixels by their number in pvData's `ScalarType`, which begins with a boolean."""
SIZES = {name: int("".join(filter(str.isdigit, name))) // 8 for name in UNION_TYPES.values()}
"""Bytes of a pixel."""
BITSHUFFLE_BYTES = 8192
"""Size that bitshuffle's default blocks aim at (`bitshuffle_core.c`, `bshuf_default_block_size`)."""
LZ4_MAX = 0x7E000000
"""The most bytes of one block of LZ4 (`lz4.h`, `LZ4_MAX_INPUT_SIZE`)."""


class UnusableArray(ValueError):
    """An array that the recorder cannot take. The text says why."""


@dataclass(frozen=True)
class Image:
    """An array as one image of the stream of DECTRIS, version 2."""

    number: int
    """`uniqueId` of the array."""
    dtype: str
    """Type of a pixel, as NumPy names it."""
    shape: tuple[int, int]
    """Rows and columns."""
    packing: str
    """Empty, `bslz4` or `lz4`, as the stream names it."""
    data: bytes
    """The pixels, packed or not."""
    time: int
    """Time of the array, in nanoseconds of UNIX time. 0 if the detector set none."""

    @property
    def form(self) -> tuple[str, tuple[int, int]]:
        """Type and shape, which all images of a series have in common."""
        return self.dtype, self.shape


def image_of(value: Any) -> Image:
    """Return the image of an `NTNDArray`, which p4p gives as a `Value`. Raises `UnusableArray`."""
    pixels = value.value
    if pixels is None or not len(value.dimension):
        raise UnusableArray("it is empty")
    shape = _shape([int(dimension.size) for dimension in value.dimension])
    codec = value.codec.name
    dtype = _dtype_of(value, pixels, codec)
    size = math.prod(shape) * SIZES[dtype]
    data = pixels.tobytes()[: int(value.compressedSize)] if codec else pixels.tobytes()
    if not codec and len(data) != size:
        raise UnusableArray(f"it has {len(data)} B, and its dimensions and type {size} B")
    packing, data = _packed(codec, data, size, SIZES[dtype])
    stamp = value.dataTimeStamp
    time = int(stamp.secondsPastEpoch) * 10**9 + int(stamp.nanoseconds)
    return Image(int(value.uniqueId), dtype, shape, packing, data, time)


def _shape(sizes: list[int]) -> tuple[int, int]:
    """Return rows and columns of dimensions with the fastest first. Dimensions of size 1 at the end count as none."""
    while len(sizes) > 2 and sizes[-1] == 1:
        sizes.pop()
    if len(sizes) > 2 or min(sizes) < 1:
        raise UnusableArray(f"its dimensions are {sizes}: one or two are wanted, such as those of a monochrome image")
    rows = sizes[1] if len(sizes) == 2 else 1
    return rows, sizes[0]


def _dtype_of(value: Any, pixels: Any, codec: str) -> str:
    if not codec:
        dtype = str(pixels.dtype.name)
        if dtype not in SIZES:
            raise UnusableArray(f"its pixels are of type {dtype}: one of {', '.join(SIZES)} is wanted")
        return dtype
    number = value.codec.parameters
    named = SCALAR_TYPES.get(number) if isinstance(number, int) else None
    if named is None:
        raise UnusableArray(f"codec.parameters is {number!r}: a number from 1 (byte) to 10 (double) is wanted")
    size = math.prod(int(dimension.size) for dimension in value.dimension) * SIZES[named]
    if size != int(value.uncompressedSize):
        raise UnusableArray(f"uncompressedSize is {value.uncompressedSize} B, and its dimensions and type {size} B")
    return named


def _packed(codec: str, data: bytes, size: int, element: int) -> tuple[str, bytes]:
    """Return the packing of the stream and its bytes, which are those of a chunk in HDF5, for the bytes of a codec."""
    match codec:
        case "":
            return "", data
        case "bslz4":
            # The filter's header in front of the blocks: all bytes, and those of a block (bshuf_h5filter.c).
            block = max(BITSHUFFLE_BYTES // element // 8 * 8, 128) * element
            return "bslz4", struct.pack(">QI", size, block) + data
        case "lz4hdf5":
            return "lz4", data
        case "lz4":
            if size > LZ4_MAX or len(data) == size:
                raise UnusableArray("its LZ4 block is too large for a chunk of HDF5, or no smaller than its pixels")
            # One block with all pixels, as the filter of HDF5 stores it (H5Zlz4.c).
            return "lz4", struct.pack(">QII", size, size, len(data)) + data
    raise UnusableArray(f"its codec is {codec!r}: none, lz4, lz4hdf5 or bslz4 are wanted")
