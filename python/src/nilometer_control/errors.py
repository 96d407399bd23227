"""Errors of a recorder. Their texts are the service's own sentences."""


class RecorderError(Exception):
    """An error that the recorder reported, or the lack of an answer."""


class InvalidOrder(RecorderError):
    """The service does not understand the request (400, 404, 413)."""


class NotAllowed(RecorderError):
    """The token is missing, wrong, or may only ask (401, 403)."""


class WrongState(RecorderError):
    """The order is not possible in the present state (409)."""


class OrderFailed(RecorderError):
    """The service tried the order and failed (500)."""


class RecorderBusy(RecorderError):
    """The service was busy with another order for the whole time limit (503), or with other dumps (429)."""


class RecorderUnreachable(RecorderError, ConnectionError):
    """The service gave no answer: it does not run, the network is broken, or its certificate is not trusted."""


class RecorderTimeout(RecorderError, TimeoutError):
    """The awaited state did not come in time."""


class RecordingFailed(RecorderError):
    """A recording did not end well, or has fewer frames than requested."""


BY_STATUS: dict[int, type[RecorderError]] = {
    400: InvalidOrder,
    401: NotAllowed,
    403: NotAllowed,
    404: InvalidOrder,
    409: WrongState,
    413: InvalidOrder,
    429: RecorderBusy,
    500: OrderFailed,
    503: RecorderBusy,
}
"""The exception for each HTTP status of an error."""
