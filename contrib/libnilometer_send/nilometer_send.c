/* See nilometer_send.h. Sources of the protocols: https://rfc.zeromq.org/spec/23 (ZMTP 3.0), RFC 8949 (CBOR), RFC 8746 (typed
 * arrays), github.com/dectris/documentation (stream_v2, dectris-compression-tag.md). */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200112L
#endif
#ifdef _WIN32
#ifndef _WIN32_WINNT
#define _WIN32_WINNT 0x0600
#endif
#include <winsock2.h>
#include <ws2tcpip.h>
typedef SOCKET socket_type;
#define NO_SOCKET INVALID_SOCKET
#define close_socket closesocket
#define SHUT_WR SD_SEND
#else
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
typedef int socket_type;
#define NO_SOCKET (-1)
#define close_socket close
#endif
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nilometer_send.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "nilometer_send: only for little-endian processors"
#endif

/* A peer that is gone is a code, not a signal. */
#ifdef MSG_NOSIGNAL
#define SEND_FLAGS MSG_NOSIGNAL
#else
#define SEND_FLAGS 0
#endif
#define PIECE_MAX ((size_t)1 << 20)
#define CHANNELS_MAX 64
#define TEXTS_MAX 256
#define COMMAND_MAX 255
/* Recorders take messages up to 1 GiB; some of it is for the names in a message. */
#define IMAGE_MAX (((uint64_t)1 << 30) - 65536)
/* As long as nilometer_close waits at the most, if nilometer_open got no limit. */
#define CLOSE_MS 60000

enum { CBOR_UNSIGNED = 0, CBOR_BYTES = 2, CBOR_TEXT = 3, CBOR_ARRAY = 4, CBOR_MAP = 5, CBOR_TAG = 6 };
enum { TAG_ROW_MAJOR = 40, TAG_COMPRESSED = 56500 };
enum direction { READABLE, WRITABLE };

struct nilometer_sender {
    socket_type link;
    int timeout_ms;
    /* The first error after which the connection is of no use; 0 if there was none. */
    int broken;
    int in_series;
    /* 1 if another sender begins and ends the series. */
    int joined;
    uint64_t series_number;
    char series_name[128];
    int element;
    uint64_t rows, columns;
    size_t channel_count;
    char **channels;
    /* The part of a message that is in the making. */
    uint8_t *head;
    size_t used, room;
    int out_of_memory;
    char message[256];
#ifdef _WIN32
    int started;
#endif
};

static int fail(nilometer_sender *sender, int code, const char *format, ...) {
    va_list words;
    va_start(words, format);
    vsnprintf(sender->message, sizeof sender->message, format, words);
    va_end(words);
    return code;
}

/* An error in the middle of a message: nothing can follow. */
static int broken(nilometer_sender *sender, int code, const char *message) {
    sender->broken = code;
    return fail(sender, code, "%s", message);
}

/* ---- Time and sockets */

/* Milliseconds of a clock that never goes back. */
static int64_t now_ms(void) {
#ifdef _WIN32
    return (int64_t)GetTickCount64();
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
#endif
}

/* A moment as an end of waiting: -1 is never. */
static int64_t deadline_in(int timeout_ms) { return timeout_ms < 0 ? -1 : now_ms() + timeout_ms; }

static int left_ms(int64_t deadline) {
    if (deadline < 0) return -1;
    int64_t left = deadline - now_ms();
    return left < 0 ? 0 : left > 1000000 ? 1000000 : (int)left;
}

static void pause_ms(int ms) {
#ifdef _WIN32
    Sleep((DWORD)ms);
#else
    poll(NULL, 0, ms);
#endif
}

static int would_block(void) {
#ifdef _WIN32
    return WSAGetLastError() == WSAEWOULDBLOCK;
#else
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == EINPROGRESS;
#endif
}

static int set_nonblocking(socket_type link) {
#ifdef _WIN32
    u_long yes = 1;
    return ioctlsocket(link, FIONBIO, &yes);
#else
    int flags = fcntl(link, F_GETFL);
    if (flags < 0 || fcntl(link, F_SETFD, FD_CLOEXEC) < 0) return -1;
    return fcntl(link, F_SETFL, flags | O_NONBLOCK) < 0 ? -1 : 0;
#endif
}

/* Waits until a socket is ready, or has an error. Returns 0 if the time is over. */
static int await_ready(socket_type link, enum direction direction, int64_t deadline) {
    for (;;) {
        int ms = left_ms(deadline);
#ifdef _WIN32
        fd_set ready, failed;
        FD_ZERO(&ready);
        FD_ZERO(&failed);
        FD_SET(link, &ready);
        FD_SET(link, &failed);
        struct timeval time = {ms / 1000, ms % 1000 * 1000};
        fd_set *readable = direction == READABLE ? &ready : NULL, *writable = direction == WRITABLE ? &ready : NULL;
        if (select(0, readable, writable, &failed, ms < 0 ? NULL : &time) != 0) return 1;
#else
        struct pollfd one = {link, direction == READABLE ? POLLIN : POLLOUT, 0};
        int count = poll(&one, 1, ms);
        if (count > 0 || (count < 0 && errno != EINTR)) return 1;
#endif
        if (deadline >= 0 && now_ms() >= deadline) return 0;
    }
}

/* Sends all bytes. The time counts anew with each byte that the other end takes. */
static int put(nilometer_sender *sender, const void *bytes, size_t length) {
    const char *at = bytes;
    int64_t deadline = deadline_in(sender->timeout_ms);
    while (length > 0) {
        long sent = (long)send(sender->link, at, length > PIECE_MAX ? PIECE_MAX : length, SEND_FLAGS);
        if (sent > 0) {
            at += sent;
            length -= (size_t)sent;
            deadline = deadline_in(sender->timeout_ms);
        } else if (sent < 0 && would_block()) {
            if (!await_ready(sender->link, WRITABLE, deadline))
                return broken(sender, NILOMETER_TIMEOUT, "the recorder took nothing for too long: its buffer is full, or it hangs");
        } else {
            return broken(sender, NILOMETER_GONE, "the recorder closed the connection, or the connection broke");
        }
    }
    return NILOMETER_OK;
}

static int get(nilometer_sender *sender, void *bytes, size_t length, int64_t deadline) {
    char *at = bytes;
    while (length > 0) {
        long came = (long)recv(sender->link, at, length, 0);
        if (came > 0) {
            at += came;
            length -= (size_t)came;
        } else if (came < 0 && would_block()) {
            if (!await_ready(sender->link, READABLE, deadline))
                return broken(sender, NILOMETER_TIMEOUT, "the other end did not answer in time: a recorder answers only senders that it allows");
        } else {
            return broken(sender, NILOMETER_GONE, "the other end closed the connection before it said anything of ZeroMQ");
        }
    }
    return NILOMETER_OK;
}

/* ---- Opening */

struct place {
    int listens;
    char host[256];
    char port[8];
};

/* Reads tcp://HOST:PORT, also with an address of IPv6 in brackets, with an asterisk as host, and after `listen:`. */
static int read_place(const char *address, struct place *place) {
    static const char listen_word[] = "listen:", scheme[] = "tcp://";
    memset(place, 0, sizeof *place);
    if (strncmp(address, listen_word, sizeof listen_word - 1) == 0) {
        place->listens = 1;
        address += sizeof listen_word - 1;
    }
    if (strncmp(address, scheme, sizeof scheme - 1) != 0) return 0;
    address += sizeof scheme - 1;
    const char *colon = strrchr(address, ':');
    if (!colon || colon == address) return 0;
    size_t length = (size_t)(colon - address), digits = strlen(colon + 1);
    if (address[0] == '[' && colon[-1] == ']') {
        address += 1;
        length -= 2;
    }
    if (length == 0 || length >= sizeof place->host || digits == 0 || digits > 5) return 0;
    if (strspn(colon + 1, "0123456789") != digits || atoi(colon + 1) > 65535) return 0;
    memcpy(place->host, address, length);
    memcpy(place->port, colon + 1, digits);
    if (strcmp(place->host, "*") == 0) {
        place->listens = 1;
        place->host[0] = 0;
    }
    return place->listens || atoi(place->port) > 0;
}

static int begin_network(nilometer_sender *sender) {
#ifdef _WIN32
    WSADATA data;
    if (WSAStartup(MAKEWORD(2, 2), &data) != 0) return fail(sender, NILOMETER_NO_RESOURCES, "Windows has no network");
    sender->started = 1;
#else
    (void)sender;
#endif
    return NILOMETER_OK;
}

/* Connects a new socket. Returns 1 if it is connected. */
static int try_connection(nilometer_sender *sender, const struct addrinfo *at, int64_t deadline) {
    socket_type link = socket(at->ai_family, at->ai_socktype, at->ai_protocol);
    if (link == NO_SOCKET) return 0;
    int error = 0;
    socklen_t size = sizeof error;
    if (set_nonblocking(link) == 0) {
        int done = connect(link, at->ai_addr, (socklen_t)at->ai_addrlen) == 0;
        int waits = !done && would_block() && await_ready(link, WRITABLE, deadline);
        if (done || (waits && getsockopt(link, SOL_SOCKET, SO_ERROR, (char *)&error, &size) == 0 && error == 0)) {
            sender->link = link;
            return 1;
        }
    }
    close_socket(link);
    return 0;
}

static int connect_to(nilometer_sender *sender, const struct addrinfo *found, const char *address, int64_t deadline) {
    for (;;) {
        for (const struct addrinfo *at = found; at; at = at->ai_next)
            if (try_connection(sender, at, deadline)) return NILOMETER_OK;
        if (left_ms(deadline) == 0) return fail(sender, NILOMETER_NO_CONNECTION, "nobody listens at %s", address);
        pause_ms(50);
    }
}

static int accept_one(nilometer_sender *sender, const struct addrinfo *found, const char *address, int64_t deadline) {
    socket_type listener = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
    int yes = 1, code = NILOMETER_OK;
    if (listener == NO_SOCKET) return fail(sender, NILOMETER_NO_RESOURCES, "the system gives no socket");
#ifndef _WIN32
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, (char *)&yes, sizeof yes);
#else
    setsockopt(listener, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, (char *)&yes, sizeof yes);
#endif
    if (set_nonblocking(listener) != 0 || bind(listener, found->ai_addr, (socklen_t)found->ai_addrlen) != 0 ||
        listen(listener, 1) != 0)
        code = fail(sender, NILOMETER_NO_CONNECTION, "can't listen at %s: the port is taken, or no address of this machine", address);
    while (code == NILOMETER_OK && sender->link == NO_SOCKET) {
        if (!await_ready(listener, READABLE, deadline)) code = fail(sender, NILOMETER_TIMEOUT, "no recorder connected to %s", address);
        else sender->link = accept(listener, NULL, NULL);
        if (code == NILOMETER_OK && sender->link == NO_SOCKET && !would_block())
            code = fail(sender, NILOMETER_NO_RESOURCES, "the system gives no connection");
    }
    close_socket(listener);
    if (code == NILOMETER_OK && set_nonblocking(sender->link) != 0) code = fail(sender, NILOMETER_NO_RESOURCES, "the socket can't be set");
    return code;
}

static int open_link(nilometer_sender *sender, const char *address, int64_t deadline) {
    struct place place;
    struct addrinfo hints, *found = NULL;
    if (!address || !read_place(address, &place))
        return fail(sender, NILOMETER_BAD_ADDRESS, "%s: write tcp://HOST:PORT, or tcp://*:PORT to wait for a recorder", address ? address : "no address");
    int code = begin_network(sender);
    if (code) return code;
    memset(&hints, 0, sizeof hints);
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_family = place.listens && !place.host[0] ? AF_INET : AF_UNSPEC;
    hints.ai_flags = place.listens ? AI_PASSIVE : 0;
    if (getaddrinfo(place.host[0] ? place.host : NULL, place.port, &hints, &found) != 0)
        return fail(sender, NILOMETER_NO_CONNECTION, "%s: no such host", place.host);
    code = place.listens ? accept_one(sender, found, address, deadline) : connect_to(sender, found, address, deadline);
    freeaddrinfo(found);
    return code;
}

/* Whether a READY command says that the other end is a PULL socket. */
static int is_pull(const uint8_t *body, size_t length) {
    static const char ready[] = "\x05READY", name[] = "Socket-Type";
    size_t at = sizeof ready - 1;
    if (length < at || memcmp(body, ready, at) != 0) return 0;
    while (at < length) {
        size_t name_length = body[at++];
        if (length - at < name_length + 4) return 0;
        const uint8_t *size = body + at + name_length;
        size_t value_length = (size_t)size[0] << 24 | (size_t)size[1] << 16 | (size_t)size[2] << 8 | size[3];
        if (length - at - name_length - 4 < value_length) return 0;
        if (name_length == sizeof name - 1 && memcmp(body + at, name, name_length) == 0)
            return value_length == 4 && memcmp(size + 4, "PULL", 4) == 0;
        at += name_length + 4 + value_length;
    }
    return 0;
}

static int shake_hands(nilometer_sender *sender, int64_t deadline) {
    static const uint8_t greeting[64] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    static const uint8_t ready[] = "\x04\x1a\x05READY\x0bSocket-Type\x00\x00\x00\x04PUSH";
    uint8_t theirs[COMMAND_MAX];
    int code = put(sender, greeting, sizeof greeting);
    if (!code) code = get(sender, theirs, 64, deadline);
    if (code) return code;
    if (theirs[0] != 0xff || theirs[9] != 0x7f || theirs[10] < 3 || memcmp(theirs + 12, greeting + 12, 20) != 0)
        return broken(sender, NILOMETER_NO_RECORDER, "the other end does not speak ZMTP 3 with the mechanism NULL");
    code = put(sender, ready, sizeof ready - 1);
    if (!code) code = get(sender, theirs, 2, deadline);
    if (code) return code;
    size_t length = theirs[1];
    if (theirs[0] != 4) return broken(sender, NILOMETER_NO_RECORDER, "the other end does not say that it is ready");
    code = get(sender, theirs, length, deadline);
    if (code) return code;
    if (!is_pull(theirs, length)) return broken(sender, NILOMETER_NO_RECORDER, "the other end is no PULL socket");
    return NILOMETER_OK;
}

int nilometer_open(nilometer_sender **opened, const char *address, int timeout_ms) {
    nilometer_sender *sender = calloc(1, sizeof *sender);
    *opened = sender;
    if (!sender) return NILOMETER_NO_RESOURCES;
    sender->link = NO_SOCKET;
    sender->timeout_ms = timeout_ms;
    int64_t deadline = deadline_in(timeout_ms);
    int code = open_link(sender, address, deadline);
    if (!code) {
        int yes = 1;
        setsockopt(sender->link, IPPROTO_TCP, TCP_NODELAY, (char *)&yes, sizeof yes);
#ifdef SO_NOSIGPIPE
        setsockopt(sender->link, SOL_SOCKET, SO_NOSIGPIPE, (char *)&yes, sizeof yes);
#endif
        code = shake_hands(sender, deadline);
    }
    sender->broken = code;
    return code;
}

/* ---- CBOR */

static void add(nilometer_sender *sender, const void *bytes, size_t length) {
    if (sender->room - sender->used < length) {
        size_t room = 2 * (sender->used + length) + 256;
        uint8_t *larger = realloc(sender->head, room);
        if (!larger) {
            sender->out_of_memory = 1;
            return;
        }
        sender->head = larger;
        sender->room = room;
    }
    memcpy(sender->head + sender->used, bytes, length);
    sender->used += length;
}

/* The first bytes of an item: its kind and a number. */
static void item(nilometer_sender *sender, int kind, uint64_t number) {
    uint8_t bytes[9] = {(uint8_t)(kind << 5 | 27)};
    for (int at = 0; at < 8; at++) bytes[1 + at] = (uint8_t)(number >> (56 - 8 * at));
    if (number < 24) bytes[0] = (uint8_t)(kind << 5 | (int)number);
    add(sender, bytes, number < 24 ? 1 : 9);
}

static void text(nilometer_sender *sender, const char *words) {
    size_t length = strlen(words);
    item(sender, CBOR_TEXT, length);
    add(sender, words, length);
}

static void number(nilometer_sender *sender, const char *name, uint64_t value) {
    text(sender, name);
    item(sender, CBOR_UNSIGNED, value);
}

/* The first fields of every message. */
static void begin_message(nilometer_sender *sender, const char *type, uint64_t fields) {
    sender->used = 0;
    sender->out_of_memory = 0;
    item(sender, CBOR_MAP, fields + 3);
    text(sender, "type");
    text(sender, type);
    number(sender, "series_id", sender->series_number);
    text(sender, "series_unique_id");
    text(sender, sender->series_name);
}

/* The head of a ZMTP frame that is a whole message. */
static int put_frame_head(nilometer_sender *sender, uint64_t length) {
    uint8_t bytes[9] = {2};
    for (int at = 0; at < 8; at++) bytes[1 + at] = (uint8_t)(length >> (56 - 8 * at));
    return put(sender, bytes, sizeof bytes);
}

static int put_message(nilometer_sender *sender) {
    if (sender->out_of_memory) return fail(sender, NILOMETER_NO_RESOURCES, "no memory for a message");
    int code = put_frame_head(sender, sender->used);
    return code ? code : put(sender, sender->head, sender->used);
}

/* ---- A series */

static uint64_t bytes_of(int element) {
    switch (element) {
    case NILOMETER_UINT8: case NILOMETER_INT8: return 1;
    case NILOMETER_UINT16: case NILOMETER_INT16: return 2;
    case NILOMETER_UINT32: case NILOMETER_INT32: case NILOMETER_FLOAT32: return 4;
    case NILOMETER_UINT64: case NILOMETER_INT64: case NILOMETER_FLOAT64: return 8;
    default: return 0;
    }
}

static const char *name_of(int element) {
    switch (element) {
    case NILOMETER_UINT8: return "uint8";
    case NILOMETER_UINT16: return "uint16";
    case NILOMETER_UINT32: return "uint32";
    case NILOMETER_UINT64: return "uint64";
    case NILOMETER_INT8: return "int8";
    case NILOMETER_INT16: return "int16";
    case NILOMETER_INT32: return "int32";
    case NILOMETER_INT64: return "int64";
    case NILOMETER_FLOAT32: return "float32";
    default: return "float64";
    }
}

static void forget_channels(nilometer_sender *sender) {
    for (size_t at = 0; at < sender->channel_count; at++) free(sender->channels[at]);
    free(sender->channels);
    sender->channels = NULL;
    sender->channel_count = 0;
}

static int keep_channels(nilometer_sender *sender, const struct nilometer_series *series) {
    static const char *const only[] = {"image"};
    size_t count = series->channel_count ? series->channel_count : 1;
    const char *const *names = series->channel_count ? series->channels : only;
    forget_channels(sender);
    sender->channels = calloc(count, sizeof *sender->channels);
    if (!sender->channels) return fail(sender, NILOMETER_NO_RESOURCES, "no memory for the names of channels");
    for (; sender->channel_count < count; sender->channel_count++) {
        size_t size = strlen(names[sender->channel_count]) + 1;
        char *copy = malloc(size);
        if (!copy) return fail(sender, NILOMETER_NO_RESOURCES, "no memory for the names of channels");
        memcpy(copy, names[sender->channel_count], size);
        sender->channels[sender->channel_count] = copy;
    }
    return NILOMETER_OK;
}

static int check_series(nilometer_sender *sender, const struct nilometer_series *series) {
    if (!series) return fail(sender, NILOMETER_BAD_ARGUMENT, "no series: it is NULL");
    uint64_t bytes = bytes_of(series->element);
    if (!bytes) return fail(sender, NILOMETER_BAD_ARGUMENT, "element %d: write a value of enum nilometer_element", series->element);
    if (!series->rows || !series->columns || series->columns > IMAGE_MAX || series->rows > IMAGE_MAX / bytes / series->columns)
        return fail(sender, NILOMETER_BAD_ARGUMENT, "rows and columns: an image has at least one pixel, and less than 1 GiB");
    if (series->channel_count > CHANNELS_MAX || (series->channel_count && !series->channels))
        return fail(sender, NILOMETER_BAD_ARGUMENT, "channel_count: at most %d names", CHANNELS_MAX);
    if (series->text_count > TEXTS_MAX || (series->text_count && !series->texts))
        return fail(sender, NILOMETER_BAD_ARGUMENT, "text_count: at most %d texts", TEXTS_MAX);
    for (size_t at = 0; at < series->channel_count; at++)
        if (!series->channels[at]) return fail(sender, NILOMETER_BAD_ARGUMENT, "channels: a name is NULL");
    for (size_t at = 0; at < series->text_count; at++)
        if (!series->texts[at].name || !series->texts[at].text) return fail(sender, NILOMETER_BAD_ARGUMENT, "texts: a text is NULL");
    if (series->series_name && strlen(series->series_name) >= sizeof sender->series_name)
        return fail(sender, NILOMETER_BAD_ARGUMENT, "series_name: at most %d bytes", (int)sizeof sender->series_name - 1);
    return NILOMETER_OK;
}

static int check_state(nilometer_sender *sender, int in_series) {
    if (!sender) return NILOMETER_BAD_ARGUMENT;
    if (sender->broken) return sender->broken;
    if (sender->in_series == in_series) return NILOMETER_OK;
    return fail(sender, NILOMETER_BAD_ORDER, in_series ? "no series has begun: call nilometer_begin" : "a series has begun: call nilometer_end first");
}

/* Keeps everything about a series that its images need. */
static int enter_series(nilometer_sender *sender, const struct nilometer_series *series) {
    int code = check_state(sender, 0);
    if (!code) code = check_series(sender, series);
    if (!code) code = keep_channels(sender, series);
    if (code) return code;
    sender->element = series->element;
    sender->rows = series->rows;
    sender->columns = series->columns;
    sender->series_number = series->series_number ? series->series_number : sender->series_number + 1;
    if (series->series_name) strcpy(sender->series_name, series->series_name);
    else snprintf(sender->series_name, sizeof sender->series_name, "%llx-%p-%llu", (unsigned long long)now_ms(), (void *)sender,
                  (unsigned long long)sender->series_number);
    return NILOMETER_OK;
}

int nilometer_join(nilometer_sender *sender, const struct nilometer_series *series) {
    if (sender && !sender->broken && series && (!series->series_number || !series->series_name))
        return fail(sender, NILOMETER_BAD_ARGUMENT, "series_number and series_name: senders that share a series have to give both");
    int code = enter_series(sender, series);
    if (code) return code;
    sender->in_series = 1;
    sender->joined = 1;
    return NILOMETER_OK;
}

int nilometer_begin(nilometer_sender *sender, const struct nilometer_series *series) {
    int code = enter_series(sender, series);
    if (code) return code;
    sender->joined = 0;
    begin_message(sender, "start", 5 + (series->images ? 1 : 0));
    if (series->images) number(sender, "number_of_images", series->images);
    number(sender, "image_size_y", sender->rows);
    number(sender, "image_size_x", sender->columns);
    text(sender, "image_dtype");
    text(sender, name_of(sender->element));
    text(sender, "channels");
    item(sender, CBOR_ARRAY, sender->channel_count);
    for (size_t at = 0; at < sender->channel_count; at++) text(sender, sender->channels[at]);
    text(sender, "user_data");
    item(sender, CBOR_MAP, series->text_count);
    for (size_t at = 0; at < series->text_count; at++) {
        text(sender, series->texts[at].name);
        text(sender, series->texts[at].text);
    }
    code = put_message(sender);
    if (!code) sender->in_series = 1;
    return code;
}

/* Everything of a channel that stands before its bytes. */
static void channel_head(nilometer_sender *sender, size_t channel, const struct nilometer_part *part) {
    text(sender, sender->channels[channel]);
    item(sender, CBOR_TAG, TAG_ROW_MAJOR);
    item(sender, CBOR_ARRAY, 2);
    item(sender, CBOR_ARRAY, 2);
    item(sender, CBOR_UNSIGNED, sender->rows);
    item(sender, CBOR_UNSIGNED, sender->columns);
    item(sender, CBOR_TAG, (uint64_t)sender->element);
    if (part->packing != NILOMETER_PLAIN) {
        item(sender, CBOR_TAG, TAG_COMPRESSED);
        item(sender, CBOR_ARRAY, 3);
        text(sender, part->packing == NILOMETER_BSLZ4 ? "bslz4" : "lz4");
        item(sender, CBOR_UNSIGNED, bytes_of(sender->element));
    }
    item(sender, CBOR_BYTES, part->length);
}

static int check_parts(nilometer_sender *sender, const struct nilometer_part *parts) {
    if (!parts) return fail(sender, NILOMETER_BAD_ARGUMENT, "no pixels: they are NULL");
    uint64_t whole = sender->rows * sender->columns * bytes_of(sender->element), all = 0;
    for (size_t at = 0; at < sender->channel_count; at++) {
        const struct nilometer_part *part = parts + at;
        if (!part->bytes) return fail(sender, NILOMETER_BAD_ARGUMENT, "channel %u: no pixels, they are NULL", (unsigned)at);
        if (part->packing < NILOMETER_PLAIN || part->packing > NILOMETER_LZ4)
            return fail(sender, NILOMETER_BAD_ARGUMENT, "packing %d: write a value of enum nilometer_packing", part->packing);
        if (part->packing == NILOMETER_PLAIN && part->length != whole)
            return fail(sender, NILOMETER_BAD_ARGUMENT, "length %llu: an image of this series has %llu bytes", (unsigned long long)part->length,
                        (unsigned long long)whole);
        if (part->packing != NILOMETER_PLAIN && (part->length < 12 || part->length > IMAGE_MAX))
            return fail(sender, NILOMETER_BAD_ARGUMENT, "length %llu: a chunk begins with 12 bytes of sizes, and has less than 1 GiB",
                        (unsigned long long)part->length);
        all += part->length;
    }
    if (all > IMAGE_MAX) return fail(sender, NILOMETER_BAD_ARGUMENT, "all channels of an image have less than 1 GiB");
    return NILOMETER_OK;
}

int nilometer_send_packed(nilometer_sender *sender, uint64_t image, const struct nilometer_part *parts) {
    int code = check_state(sender, 1);
    if (!code) code = check_parts(sender, parts);
    if (code) return code;
    begin_message(sender, "image", 2);
    number(sender, "image_id", image);
    text(sender, "data");
    item(sender, CBOR_MAP, sender->channel_count);
    size_t first = sender->used;
    uint64_t length = 0;
    for (size_t at = 0; at < sender->channel_count; at++) {
        channel_head(sender, at, parts + at);
        length += parts[at].length;
    }
    if (sender->out_of_memory) return fail(sender, NILOMETER_NO_RESOURCES, "no memory for a message");
    code = put_frame_head(sender, sender->used + length);
    if (!code) code = put(sender, sender->head, first);
    for (size_t at = 0; !code && at < sender->channel_count; at++) {
        sender->used = 0;
        channel_head(sender, at, parts + at);
        code = put(sender, sender->head, sender->used);
        if (!code) code = put(sender, parts[at].bytes, parts[at].length);
    }
    return code;
}

int nilometer_send(nilometer_sender *sender, uint64_t image, const void *pixels) {
    struct nilometer_part parts[CHANNELS_MAX];
    int code = check_state(sender, 1);
    if (code) return code;
    if (!pixels) return fail(sender, NILOMETER_BAD_ARGUMENT, "no pixels: they are NULL");
    size_t bytes = (size_t)(sender->rows * sender->columns * bytes_of(sender->element));
    for (size_t at = 0; at < sender->channel_count; at++) {
        parts[at].bytes = (const char *)pixels + at * bytes;
        parts[at].length = bytes;
        parts[at].packing = NILOMETER_PLAIN;
    }
    return nilometer_send_packed(sender, image, parts);
}

int nilometer_end(nilometer_sender *sender) {
    int code = check_state(sender, 1);
    if (code) return code;
    if (!sender->joined) {
        begin_message(sender, "end", 0);
        code = put_message(sender);
    }
    if (!code) sender->in_series = 0;
    return code;
}

/* ---- Closing */

/* Waits until the other end has taken everything and closes its side too. */
static int drain(nilometer_sender *sender) {
    char bytes[512];
    int64_t deadline = deadline_in(sender->timeout_ms < 0 ? CLOSE_MS : sender->timeout_ms);
    if (shutdown(sender->link, SHUT_WR) != 0) return NILOMETER_GONE;
    for (;;) {
        long came = (long)recv(sender->link, bytes, sizeof bytes, 0);
        if (came == 0) return NILOMETER_OK;
        if (came < 0 && !would_block()) return NILOMETER_GONE;
        if (came < 0 && !await_ready(sender->link, READABLE, deadline)) return NILOMETER_TIMEOUT;
    }
}

int nilometer_close(nilometer_sender *sender) {
    if (!sender) return NILOMETER_OK;
    int code = sender->broken;
    if (sender->link != NO_SOCKET) {
        if (!code) code = drain(sender);
        close_socket(sender->link);
    }
#ifdef _WIN32
    if (sender->started) WSACleanup();
#endif
    forget_channels(sender);
    free(sender->head);
    free(sender);
    return code;
}

const char *nilometer_message(const nilometer_sender *sender) {
    return sender ? sender->message : "no memory for a sender";
}
