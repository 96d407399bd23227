"""The library for Python, by ctypes: sends NumPy arrays to a Nilometer recorder.

    with Sender("tcp://recorder:31001") as sender:
        sender.begin(images.dtype, images.shape[1:], count=len(images))
        for number, image in enumerate(images):
            sender.send(number, image)
        sender.end()

Set NILOMETER_SEND_LIBRARY to the path of the shared library if the system does not find it.
"""
import ctypes
import os

ELEMENTS = {"uint8": 64, "uint16": 69, "uint32": 70, "uint64": 71, "int8": 72, "int16": 77, "int32": 78, "int64": 79,
            "float32": 85, "float64": 86}
PLAIN, BSLZ4, LZ4 = range(3)


class Text(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("text", ctypes.c_char_p)]


class Series(ctypes.Structure):
    _fields_ = [("images", ctypes.c_uint64), ("element", ctypes.c_int), ("rows", ctypes.c_uint64), ("columns", ctypes.c_uint64),
                ("channels", ctypes.POINTER(ctypes.c_char_p)), ("channel_count", ctypes.c_size_t),
                ("texts", ctypes.POINTER(Text)), ("text_count", ctypes.c_size_t),
                ("series_number", ctypes.c_uint64), ("series_name", ctypes.c_char_p)]


class Part(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char_p), ("length", ctypes.c_size_t), ("packing", ctypes.c_int)]


class SendError(Exception):
    """A call failed: `code` is a value of enum nilometer_code."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def load():
    library = ctypes.CDLL(os.environ.get("NILOMETER_SEND_LIBRARY", "libnilometer_send.so.0"))
    handle = ctypes.c_void_p
    library.nilometer_open.argtypes = [ctypes.POINTER(handle), ctypes.c_char_p, ctypes.c_int]
    library.nilometer_begin.argtypes = [handle, ctypes.POINTER(Series)]
    library.nilometer_send.argtypes = [handle, ctypes.c_uint64, ctypes.c_void_p]
    library.nilometer_send_packed.argtypes = [handle, ctypes.c_uint64, ctypes.POINTER(Part)]
    library.nilometer_end.argtypes = [handle]
    library.nilometer_close.argtypes = [handle]
    library.nilometer_message.argtypes = [handle]
    library.nilometer_message.restype = ctypes.c_char_p
    return library


class Sender:
    """A connection to a recorder. The library lets other threads run while it sends."""

    def __init__(self, address, timeout_ms=10000):
        self.library = load()
        self.handle = ctypes.c_void_p()
        try:
            self._check(self.library.nilometer_open(ctypes.byref(self.handle), address.encode(), timeout_ms))
        except SendError:
            self._free()
            raise

    def _check(self, code):
        if code:
            raise SendError(code, self.library.nilometer_message(self.handle).decode())

    def _free(self):
        handle, self.handle = self.handle, None
        return self.library.nilometer_close(handle) if handle else 0

    def begin(self, dtype, shape, count=0, channels=(), texts=None):
        """Begins a series of images of this type. `shape` is (rows, columns), or (channels, rows, columns)."""
        names = (ctypes.c_char_p * len(channels))(*[name.encode() for name in channels])
        pairs = (Text * len(texts or {}))(*[(name.encode(), text.encode()) for name, text in (texts or {}).items()])
        self._check(self.library.nilometer_begin(self.handle, Series(
            count, ELEMENTS[str(dtype)], shape[-2], shape[-1], names, len(channels), pairs, len(pairs), 0, None)))

    def send(self, number, image):
        """Sends an image: a NumPy array of the type and shape of the series."""
        image = image if image.flags.c_contiguous else image.copy(order="C")
        self._check(self.library.nilometer_send(self.handle, number, image.ctypes.data))

    def send_packed(self, number, packing, *chunks):
        """Sends an image that is compressed already: bytes for each channel."""
        parts = (Part * len(chunks))(*[(chunk, len(chunk), packing) for chunk in chunks])
        self._check(self.library.nilometer_send_packed(self.handle, number, parts))

    def end(self):
        self._check(self.library.nilometer_end(self.handle))

    def close(self):
        """Waits until the recorder has taken everything."""
        code = self._free()
        if code:
            raise SendError(code, f"the connection did not end well (code {code})")

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        if kind is None:
            self.close()
        else:
            self._free()
