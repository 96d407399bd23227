"""Files in the layout of DECTRIS' file writer, against the rules of the programs that read them.

dectris.py send IMAGES           announces so many images at a free port, whose address it prints. Each line of its input is the
                                 number of images to send in all; at its end comes the end of the series
dectris.py growing MASTER COUNT  while frames come: prints the number of images that the links of the master file show, and the
                                 number of links. The first COUNT images are right
dectris.py closed MASTER COUNT PER_FILE  afterwards: the rules of neggia and durin, the plug-ins for XDS
dectris.py pictures DIRECTORY COUNT  the CBF files of COUNT images, as fabio reads them
"""
import sys

import h5py
import hdf5plugin  # noqa: F401  the filters
import numpy as np

ROWS, COLUMNS = 100, 120


def image(number):
    return np.full((ROWS, COLUMNS), number + 1, "<u2")


def send(images):
    import cbor2
    import zmq
    socket = zmq.Context.instance().socket(zmq.PUSH)
    socket.bind("tcp://127.0.0.1:*")
    print(socket.getsockopt_string(zmq.LAST_ENDPOINT), flush=True)
    name = {"series_id": 7, "series_unique_id": "a series"}

    def array(values):
        tag = {"uint16": 69, "uint32": 70}[values.dtype.name]
        return cbor2.CBORTag(40, [list(values.shape), cbor2.CBORTag(tag, values.tobytes())])

    def message(kind, **fields):
        socket.send(cbor2.dumps({"type": kind, **name, **fields}))

    axis = {"start": 90.0, "increment": 0.1}
    message("start", channels=["t"], image_dtype="uint16", image_size_x=COLUMNS, image_size_y=ROWS,
            number_of_images=images, frame_time=0.01, count_time=0.0099, pixel_size_x=75e-6, pixel_size_y=75e-6,
            pixel_mask={"t": array(np.arange(ROWS * COLUMNS, dtype="<u4").reshape(ROWS, COLUMNS) % 2)},
            detector_translation=[0.0, 0.0, -0.15], goniometer={"omega": axis})
    sent = 0
    for line in sys.stdin:
        for number in range(sent, int(line)):
            message("image", image_id=number, data={"t": array(image(number))})
        sent = max(sent, int(line))
    message("end")


def datasets(data):
    """The frames of each linked file that is there."""
    for link in sorted(name for name in data if name.startswith("data_")):
        try:
            yield data[link]
        except KeyError:
            return


def growing(master, count):
    with h5py.File(master) as file:
        data = file["entry/data"]
        links = [name for name in data if name.startswith("data_")]
        assert links == [f"data_{number + 1:06}" for number in range(len(links))], links
        assert "data" not in data and data.attrs["signal"] == b"data_000001", list(data)
        shown = 0
        for dataset in datasets(data):
            for frame in dataset[:]:
                assert shown >= count or (frame == image(shown)).all(), shown
                shown += 1
        print(shown, len(links))


def fixed_ascii(attribute):
    kind = attribute.get_type()
    return kind.get_class() == h5py.h5t.STRING and not kind.is_variable_str() and kind.get_cset() == h5py.h5t.CSET_ASCII


def closed(master, count, per_file):
    """neggia: src/dectris/neggia/plugin/H5ToXds.cpp; durin: src/file.c."""
    with h5py.File(master) as file:
        detector = file["entry/instrument/detector"]
        specific = detector["detectorSpecific"]
        mask = specific["pixel_mask"]
        assert mask.dtype == "<u4" and mask.shape == (ROWS, COLUMNS) and (mask[:].ravel()[:3] == [0, 1, 0]).all()
        for name in ("nimages", "ntrigger"):
            assert specific[name].dtype.kind in "iu" and specific[name].shape == (), name
        for name in ("x_pixel_size", "y_pixel_size"):
            assert detector[name].dtype.kind == "f" and detector[name].shape == ()
            assert fixed_ascii(h5py.h5a.open(detector[name].id, b"units")) and detector[name].attrs["units"] == b"m"
        for group in (file["entry"], file["entry/data"], detector):
            assert fixed_ascii(h5py.h5a.open(group.id, b"NX_class")), group
        # durin would take them for the frames.
        assert "data" not in detector and "data_000001" not in detector
        data = file["entry/data"]
        found = list(datasets(data))
        assert [len(frames) for frames in found[:-1]] == [per_file] * (len(found) - 1), found
        assert sum(len(frames) for frames in found) == count, found
        for number, frames in enumerate(found):
            assert frames.ndim == 3 and frames.dtype.kind == "u" and frames.chunks == (1, ROWS, COLUMNS), frames
            # An old neggia reads the index of a dataset only if its size has a limit.
            assert frames.maxshape == (per_file, ROWS, COLUMNS), frames.maxshape
            assert frames.attrs["image_nr_low"] == number * per_file + 1
            assert frames.attrs["image_nr_high"] == number * per_file + len(frames)
        for number in range(count):
            frames = data[f"data_{number // per_file + 1:06}"]
            assert (frames[number % per_file] == image(number)).all(), number
        assert data["data"].shape == (count, ROWS, COLUMNS) and data.attrs["signal"] == b"data"
        assert (data["data"][:, 0, 0] == np.arange(count) + 1).all()


def pictures(directory, count):
    import fabio
    for number in range(count):
        picture = fabio.open(f"{directory}/scan_{number + 1:05}.cbf")
        counts = picture.data.ravel()
        # Every second pixel is a gap.
        assert counts.dtype == "int32" and (counts[::2] == number + 1).all() and (counts[1::2] == -1).all(), number
        lines = picture.header["_array_data.header_contents"]
        for line in (f"# Start_angle {90 + 0.1 * number:.4f} deg.", "# Angle_increment 0.1000 deg.",
                     "# Detector_distance 0.15000 m", "# Pixel_size 75e-6 m x 75e-6 m", "# Exposure_time 0.0099000 s",
                     "# Exposure_period 0.0100000 s"):
            assert line in lines, (number, line, lines)


command, *arguments = sys.argv[1:]
{"send": send, "growing": growing, "closed": closed, "pictures": pictures}[command](
    *(int(argument) if argument.isdigit() else argument for argument in arguments))
