"""Whether h5py sees the modules of a detector as one image, and prints what it finds.

module_image.py FILE CHIP_ROWS CHIP_COLUMNS [UPSIDE_DOWN...]

Every pixel of `modules` must be at the place in `data` that the module's group states, and every other pixel must be a gap
in both the image and the mask. The rows of a module that is upside down are there from the last to the first.
"""
import json
import sys

import h5py
import hdf5plugin  # noqa: F401  the filters
import numpy


def main(path, chip, upside_down):
    with h5py.File(path) as file:
        data = file["entry/data/data"]
        detector = file["entry/instrument/detector"]
        modules = [detector[f"modules/module_{number}"] for number in range(file["entry/data/modules"].shape[-3])]
        mask = detector["pixel_mask"][()]
        assert (expected(numpy.zeros(file["entry/data/modules"].shape[-3:]), modules, mask.shape, chip, 1, ()) == mask).all()
        right = [number for number in range(len(data)) if is_right(file, number, modules, chip, upside_down)]
        print(json.dumps({
            "definition": file["entry/definition"][()].decode(),
            "shape": data.shape,
            "right": right,
            "missing": file["entry/instrument/nilometer/missing"][()].tolist(),
            "flags": file["entry/instrument/nilometer/flag"][()].tolist(),
            "linked": "data" not in detector or bool(detector["data"] == data),
            "gaps": int(mask.sum()),
            "offsets": [places(module) for module in modules],
            "whole": detector["module/data_size"][()].tolist(),
            "signal": file["entry/data"].attrs["signal"].decode(),
        }))


def is_right(file, number, modules, chip, upside_down):
    data = file["entry/data/data"]
    gap = numpy.iinfo(data.dtype).max
    frame = file["entry/data/modules"][number]
    return bool((expected(frame, modules, data.shape[-2:], chip, gap, upside_down) == data[number]).all() and (frame != 0).any())


def expected(frame, modules, shape, chip, gap, upside_down):
    """A frame put in place, chip by chip."""
    image = numpy.full(shape, gap, dtype=frame.dtype)
    rows, columns = chip
    for number, (pixels, module) in enumerate(zip(frame, modules)):
        if number in upside_down:
            pixels = pixels[::-1]
        top, left = module["data_origin"][()]
        height, width = module["data_size"][()]
        down = numpy.arange(height) if height == pixels.shape[0] else with_gaps(pixels.shape[0], rows, height)
        right = numpy.arange(width) if width == pixels.shape[1] else with_gaps(pixels.shape[1], columns, width)
        image[numpy.ix_(top + down, left + right)] = pixels
    return image


def with_gaps(pixels, chip, size):
    gap = (size - pixels) // (pixels // chip - 1)
    return numpy.arange(pixels) + numpy.arange(pixels) // chip * gap


def places(module):
    """Where the chain puts the module, in pixels from the first one, and its origin."""
    offset = module["module_offset"]
    moved = offset[()] * offset.attrs["vector"]
    pitch = [module[f"{axis}_pixel_direction"] for axis in ("slow", "fast")]
    assert all(axis.attrs["depends_on"].decode() == offset.name for axis in pitch)
    along = [round(float(moved @ axis.attrs["vector"] / axis[()]), 6) for axis in pitch]
    return [along, module["data_origin"][()].tolist()]


if __name__ == "__main__":
    main(sys.argv[1], [int(side) for side in sys.argv[2:4]], [int(number) for number in sys.argv[4:]])
