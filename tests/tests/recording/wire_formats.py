"""The other side of wire_formats.rs: the package baseband reads VDIF and Mark5B.

wire_formats.py samples DIR    writes each sample file of baseband's that is VDIF or Mark5B into DIR, and prints a line for each
                               header in it: NAME OFFSET and what baseband says of it
wire_formats.py written DIR    reads each NAME.vdif and NAME.m5b in DIR, frame by frame, and prints for each NAME and what
                               baseband says of it; times are counted from BEGIN below, with the frame rate in NAME.rate
"""
import pathlib
import shutil
import struct
import sys
import warnings

import astropy.units as u
import baseband.data
from astropy.time import Time
from baseband import mark5b, vdif
from baseband.mark5b.header import Mark5BHeader, crc16
from baseband.vdif.header import VDIFHeader

warnings.simplefilter("ignore")
BEGIN = Time("2026-06-30T23:59:59", scale="utc")


def samples(directory):
    for path in sorted(pathlib.Path(baseband.data.__file__).parent.iterdir()):
        if path.suffix in (".vdif", ".m5b"):
            shutil.copy(path, directory)
            show = vdif_headers if path.suffix == ".vdif" else mark5b_headers
            for offset, fields in show(path.read_bytes()):
                print(path.name, offset, *fields)


def vdif_headers(data):
    offset = 0
    while offset < len(data):
        # Not verified: one of the files is corrupted, and is to be read as far as it goes.
        header = VDIFHeader(struct.unpack_from("<8I", data, offset), verify=False)
        edv = -1 if header.edv is False else header.edv
        rate = round(header.frame_rate.to_value(u.Hz)) if edv in (1, 3) else 0
        yield offset, (edv, int(header["invalid_data"]), header["ref_epoch"], header["seconds"], header["frame_nr"],
                       header["vdif_version"], header.nchan, header["frame_length"] * 8, int(header["complex_data"]),
                       header.bps, header["thread_id"], header.station, rate)
        offset += header["frame_length"] * 8


def mark5b_headers(data):
    for offset in range(0, len(data), 10016):
        header = Mark5BHeader(struct.unpack_from("<4I", data, offset), kday=56000)
        stream = (header["bcd_jday"] << 20 | header["bcd_seconds"]) << 16 | header["bcd_fraction"]
        yield offset, (header["user"], int(header["internal_tvg"]), header["frame_nr"], header.jday, header.seconds,
                       int(f"{header['bcd_fraction']:x}"), int(crc16(stream) == header["crc"]))


def written(directory):
    for path in sorted(directory.iterdir()):
        if path.suffix not in (".vdif", ".m5b"):
            continue
        rate = int(path.with_suffix(".rate").read_text()) * u.Hz
        options = {} if path.suffix == ".vdif" else {"kday": 61000, "bps": 2, "nchan": 1}
        with (vdif if path.suffix == ".vdif" else mark5b).open(str(path), "rb", **options) as file:
            while True:
                try:
                    frame = file.read_frame()
                except EOFError:
                    break
                print(path.name, *frame_fields(frame, rate))


def frame_fields(frame, rate):
    frame.verify()
    header = frame.header
    # In frames from BEGIN on: a whole number, or it is not the time of a frame.
    number = ((header.get_time(frame_rate=rate) - BEGIN).to_value(u.s) * rate.to_value(u.Hz))
    assert abs(number - round(number)) < 1e-3, number
    if isinstance(header, Mark5BHeader) and not hasattr(header, "station"):
        stream = (header["bcd_jday"] << 20 | header["bcd_seconds"]) << 16 | header["bcd_fraction"]
        assert crc16.check(stream << 16 | header["crc"]), "its checksum is wrong"
        # To a tenth of a millisecond, cut off.
        tenths = int(f"{header['bcd_fraction']:x}")
        assert tenths == header["frame_nr"] * 10000 // round(rate.to_value(u.Hz)), tenths
        return round(number), int(frame.valid)
    if header.edv in (1, 3):
        assert header.frame_rate == rate, header.frame_rate
    return round(number), int(frame.valid), header["thread_id"], header.station


{"samples": samples, "written": written}[sys.argv[1]](pathlib.Path(sys.argv[2]))
