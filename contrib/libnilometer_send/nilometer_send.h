/* Sends frames to a Nilometer recorder over TCP: `nilometer record --from` or `--listen`, `nilometer serve`.
 *
 *     nilometer_sender *sender;
 *     int code = nilometer_open(&sender, "tcp://recorder:31001", 10000);
 *     struct nilometer_series series = {.images = 100, .element = NILOMETER_UINT16, .rows = 512, .columns = 1024};
 *     if (!code) code = nilometer_begin(sender, &series);
 *     for (uint64_t number = 0; !code && number < 100; number++) code = nilometer_send(sender, number, pixels);
 *     if (!code) code = nilometer_end(sender);
 *     if (code) fprintf(stderr, "%s\n", nilometer_message(sender));
 *     int closed = nilometer_close(sender);
 *
 * The library speaks ZMTP 3.0 as a PUSH socket, and version 2 of the DECTRIS stream (CBOR). It needs no other library, on
 * Linux, other systems with POSIX sockets, and Windows. Processors must be little-endian.
 *
 * Threads: one thread at a time may use a sender. Several threads may use several senders at the same time, also for one
 * series (nilometer_join). The library has no state of its own, and starts no thread.
 *
 * Every function that returns int returns 0 (NILOMETER_OK) or a code of enum nilometer_code.
 */
#ifndef NILOMETER_SEND_H
#define NILOMETER_SEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32) && defined(NILOMETER_BUILD_DLL)
#define NILOMETER_API __declspec(dllexport)
#elif defined(__GNUC__) && !defined(_WIN32)
#define NILOMETER_API __attribute__((visibility("default")))
#else
#define NILOMETER_API
#endif

#define NILOMETER_SEND_VERSION "0.1.0"

/* A connection to one recorder. */
typedef struct nilometer_sender nilometer_sender;

/* Results of functions. */
enum nilometer_code {
    NILOMETER_OK = 0,
    /* The address has another form than nilometer_open reads. */
    NILOMETER_BAD_ADDRESS = 1,
    /* A parameter is out of range; nothing was sent. */
    NILOMETER_BAD_ARGUMENT = 2,
    /* The call is not possible now, such as an image before a series; nothing was sent. */
    NILOMETER_BAD_ORDER = 3,
    /* No memory, or no network. */
    NILOMETER_NO_RESOURCES = 4,
    /* The host is unknown, refuses connections, or the port is taken. */
    NILOMETER_NO_CONNECTION = 5,
    /* The other end did not answer, or took nothing, for the time that nilometer_open got. */
    NILOMETER_TIMEOUT = 6,
    /* The other end is no recorder: it does not speak ZMTP as a PULL socket. */
    NILOMETER_NO_RECORDER = 7,
    /* The recorder closed the connection, or the connection broke. */
    NILOMETER_GONE = 8
};

/* The type of a pixel. */
enum nilometer_element {
    NILOMETER_UINT8 = 64,
    NILOMETER_UINT16 = 69,
    NILOMETER_UINT32 = 70,
    NILOMETER_UINT64 = 71,
    NILOMETER_INT8 = 72,
    NILOMETER_INT16 = 77,
    NILOMETER_INT32 = 78,
    NILOMETER_INT64 = 79,
    NILOMETER_FLOAT32 = 85,
    NILOMETER_FLOAT64 = 86
};

/* The form of the pixels of nilometer_send_packed. */
enum nilometer_packing {
    /* The pixels themselves. */
    NILOMETER_PLAIN = 0,
    /* Bitshuffle and LZ4, as a chunk of the HDF5 filter 32008. */
    NILOMETER_BSLZ4 = 1,
    /* LZ4, as a chunk of the HDF5 filter 32004. */
    NILOMETER_LZ4 = 2
};

/* A text about the series, for /entry/metadata/user_data. */
struct nilometer_text {
    const char *name;
    const char *text;
};

/* A series of images. Set the fields that you do not use to 0. */
struct nilometer_series {
    /* Number of images; 0 if you do not know it. */
    uint64_t images;
    /* enum nilometer_element */
    int element;
    /* The size of an image in pixels; each at least 1. */
    uint64_t rows, columns;
    /* Names of channels, such as thresholds, and their number. 0: one channel with the name "image". */
    const char *const *channels;
    size_t channel_count;
    /* Texts about the series, and their number. */
    const struct nilometer_text *texts;
    size_t text_count;
    /* Number and name of the series. 0: the next number of this sender, and a name that is made. Senders that share a series
     * have to give both. */
    uint64_t series_number;
    const char *series_name;
};

/* The pixels of one channel of an image. */
struct nilometer_part {
    const void *bytes;
    size_t length;
    /* enum nilometer_packing */
    int packing;
};

/* Connects to a recorder at "tcp://HOST:PORT", and tries again until it listens. If the host is an asterisk, waits until a
 * recorder connects, at all addresses of this machine. "listen:tcp://ADDRESS:PORT" waits at one address.
 *
 * timeout_ms limits this call, and later each time for which the recorder takes no byte; -1 waits for ever. A recorder
 * whose buffer is full takes nothing.
 *
 * Sets *sender also if it fails: nilometer_message then has the reason. Only if there is no memory, *sender is NULL.
 * Always call nilometer_close. */
NILOMETER_API int nilometer_open(nilometer_sender **sender, const char *address, int timeout_ms);

/* Begins a series. */
NILOMETER_API int nilometer_begin(nilometer_sender *sender, const struct nilometer_series *series);

/* Takes part in a series that another sender begins and ends: call it after that sender's nilometer_begin, with the same
 * series. It needs series_number and series_name. It sends nothing, and nor does nilometer_end of this sender. */
NILOMETER_API int nilometer_join(nilometer_sender *sender, const struct nilometer_series *series);

/* Sends an image: rows of pixels as they are in memory; of several channels one after the other. Numbers begin at 0, and
 * images may come in any order. Returns when the system has taken all bytes; you may then use the memory again. */
NILOMETER_API int nilometer_send(nilometer_sender *sender, uint64_t number, const void *pixels);

/* Sends an image with one part for each channel, which you may have compressed. */
NILOMETER_API int nilometer_send_packed(nilometer_sender *sender, uint64_t number, const struct nilometer_part *parts);

/* Ends the series. You may begin another one. */
NILOMETER_API int nilometer_end(nilometer_sender *sender);

/* Closes the connection, waits until the recorder has taken everything, and frees the sender. NULL is allowed. */
NILOMETER_API int nilometer_close(nilometer_sender *sender);

/* The reason of the last error in words. The text belongs to the sender, and the next call may change it. */
NILOMETER_API const char *nilometer_message(const nilometer_sender *sender);

#ifdef __cplusplus
}
#endif
#endif
