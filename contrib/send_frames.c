/* Sends images of 16 bit as a DECTRIS stream, version 2, without any library: send_frames HOST PORT IMAGES ROWS COLUMNS
 *
 * Connects to `nilometer record --listen tcp://ADDRESS:PORT`. Builds with `cc send_frames.c` on Linux and with
 * `x86_64-w64-mingw32-gcc send_frames.c -lws2_32` for Windows. It speaks ZMTP 3.0 (https://rfc.zeromq.org/spec/23) and CBOR
 * (RFC 8949, typed arrays by RFC 8746); pixels are sent as this machine has them, which is little-endian.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <winsock2.h>
#include <ws2tcpip.h>
#else
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>
#define closesocket close
#define SD_SEND SHUT_WR
#endif

static int link_to;
static uint8_t head[4096];
static size_t used;

static void fail(const char *what) { fprintf(stderr, "send_frames: %s\n", what); exit(1); }

static void put(const void *bytes, size_t length) {
    for (const char *at = bytes; length > 0;) {
        int sent = send(link_to, at, length > 1 << 20 ? 1 << 20 : (int)length, 0);
        if (sent <= 0) fail("the connection is gone");
        at += sent, length -= (size_t)sent;
    }
}

static void get(void *bytes, size_t length) {
    for (char *at = bytes; length > 0;) {
        int came = recv(link_to, at, (int)length, 0);
        if (came <= 0) fail("the other end said nothing of ZeroMQ");
        at += came, length -= (size_t)came;
    }
}

/* A CBOR item's first bytes: its kind and a number. */
static void item(uint8_t kind, uint64_t number) {
    int bytes = number < 24 ? 0 : 8;
    head[used++] = (uint8_t)(kind << 5 | (bytes ? 27 : number));
    while (bytes--) head[used++] = (uint8_t)(number >> 8 * bytes);
}

static void text(const char *text) { item(3, strlen(text)); memcpy(head + used, text, strlen(text)); used += strlen(text); }
static void number(const char *name, uint64_t value) { text(name); item(0, value); }

/* The first fields of every message. */
static void begin(const char *type, uint64_t fields) {
    used = 0;
    item(5, fields + 3);
    text("type"), text(type);
    number("series_id", 1);
    text("series_unique_id"), text("from C");
}

/* A ZeroMQ message of one frame: what is in `head`, and pixels behind it. */
static void message(const void *pixels, size_t length) {
    uint8_t frame[9] = {2};
    uint64_t all = used + length;
    for (int byte = 0; byte < 8; byte++) frame[1 + byte] = (uint8_t)(all >> 8 * (7 - byte));
    put(frame, 9), put(head, used), put(pixels, length);
}

static void shake_hands(void) {
    uint8_t greeting[64] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    static const uint8_t ready[] = "\x04\x1a\x05READY\x0bSocket-Type\x00\x00\x00\x04PUSH";
    uint8_t theirs[256];
    put(greeting, 64), get(theirs, 64);
    put(ready, sizeof ready - 1);
    get(theirs, 2), get(theirs + 2, theirs[1]);
}

int main(int count, char **words) {
    if (count != 6) fail("write HOST PORT IMAGES ROWS COLUMNS");
#ifdef _WIN32
    WSADATA data;
    if (WSAStartup(MAKEWORD(2, 2), &data)) fail("no network");
#endif
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(words[1], words[2], &hints, &found)) fail("no such host");
    link_to = (int)socket(found->ai_family, SOCK_STREAM, 0);
    if (connect(link_to, found->ai_addr, (int)found->ai_addrlen)) fail("nobody listens there");
    shake_hands();

    uint64_t images = strtoull(words[3], 0, 10), rows = strtoull(words[4], 0, 10), columns = strtoull(words[5], 0, 10);
    size_t pixels = (size_t)(rows * columns);
    uint16_t *image = malloc(2 * pixels);
    if (!image) fail("no memory");
    begin("start", 5);
    number("number_of_images", images), number("image_size_y", rows), number("image_size_x", columns);
    text("image_dtype"), text("uint16");
    text("channels"), item(4, 1), text("image");
    message(image, 0);
    for (uint64_t number_of = 0; number_of < images; number_of++) {
        for (size_t at = 0; at < pixels; at++) image[at] = (uint16_t)(at * 7 + number_of + 1);
        begin("image", 2);
        number("image_id", number_of);
        text("data"), item(5, 1), text("image");
        item(6, 40), item(4, 2), item(4, 2), item(0, rows), item(0, columns);
        item(6, 69), item(2, 2 * pixels);
        message(image, 2 * pixels);
    }
    begin("end", 0);
    message(image, 0);
    /* What is on its way is taken before the connection ends. */
    shutdown(link_to, SD_SEND);
    while (recv(link_to, (char *)head, sizeof head, 0) > 0) {}
    closesocket(link_to);
    return 0;
}
