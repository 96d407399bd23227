"""What the package baseband finds in a file of VDIF frames of one thread.

frames.py FILE RATE    reads each header in FILE, and one frame in 64 as a whole, where RATE frames come in a second; prints
                         when the first frame is, how many there are, how many of them are invalid, and after how many the next
                         one is not the next in time
"""
import sys
import warnings

import astropy.units as u
from baseband import vdif

warnings.simplefilter("ignore")


def found(path, rate):
    frames, invalid, gaps, expected, begin = 0, 0, 0, None, None
    with vdif.open(path, "rb") as file:
        while True:
            try:
                header = file.read_header()
            except EOFError:
                break
            if frames % 64 == 0:
                file.seek(-header.nbytes, 1)
                file.read_frame().verify()
            else:
                file.seek(header.payload_nbytes, 1)
            begin = begin or header.get_time(frame_rate=rate * u.Hz)
            number = header["seconds"] * rate + header["frame_nr"]
            gaps += expected is not None and number != expected
            frames, invalid, expected = frames + 1, invalid + int(header["invalid_data"]), number + 1
        assert file.seek(0, 2) == frames * header.frame_nbytes, "it ends within a frame"
    return begin.isot, "frames", frames, "invalid", invalid, "gaps", gaps


print(*found(sys.argv[1], int(sys.argv[2])))
