/* Uses the library as a program of C does: library ADDRESS TIMEOUT_MS PIXELS IMAGES CHANNELS ROWS COLUMNS SENDERS
 *
 * Sends images of 16 bit from a file, the last one first, by one sender or by two threads with a sender each. Prints the
 * message of the first error, and ends with its code.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "nilometer_send.h"

struct share {
    const char *address;
    int timeout_ms;
    const uint16_t *pixels;
    size_t image_pixels;
    const struct nilometer_series *series;
    uint64_t first, step;
    int code;
};

static const char *const names[] = {"low", "high"};
static const struct nilometer_text texts[] = {{"sample", "lysozyme"}, {"empty", ""}};

/* Reports a result that is not the expected one: no code of the library is 99. */
static void expect(const char *call, int code, int expected) {
    if (code == expected) return;
    fprintf(stderr, "%s: %d instead of %d\n", call, code, expected);
    exit(99);
}

/* Calls that the library refuses before it sends anything. */
static void are_refused(nilometer_sender *sender, const uint16_t *pixels) {
    struct nilometer_series series = {.element = NILOMETER_UINT16, .rows = 1, .columns = 1};
    expect("an image before a series", nilometer_send(sender, 0, pixels), NILOMETER_BAD_ORDER);
    expect("an end before a series", nilometer_end(sender), NILOMETER_BAD_ORDER);
    expect("no series", nilometer_begin(sender, NULL), NILOMETER_BAD_ARGUMENT);
    series.element = 1;
    expect("an unknown element", nilometer_begin(sender, &series), NILOMETER_BAD_ARGUMENT);
    series.element = NILOMETER_UINT16;
    series.rows = 0;
    expect("no rows", nilometer_begin(sender, &series), NILOMETER_BAD_ARGUMENT);
    series.rows = UINT64_MAX;
    series.columns = 3;
    expect("too many rows", nilometer_begin(sender, &series), NILOMETER_BAD_ARGUMENT);
    series.rows = 1;
    series.channel_count = 1;
    expect("no names", nilometer_begin(sender, &series), NILOMETER_BAD_ARGUMENT);
    series.channel_count = 0;
    expect("a series without a name", nilometer_join(sender, &series), NILOMETER_BAD_ARGUMENT);
}

static void images_are_refused(nilometer_sender *sender, const struct nilometer_series *series) {
    struct nilometer_part parts[2] = {{names, 3, NILOMETER_PLAIN}, {names, 3, NILOMETER_PLAIN}};
    expect("a series in a series", nilometer_begin(sender, series), NILOMETER_BAD_ORDER);
    expect("no pixels", nilometer_send(sender, 0, NULL), NILOMETER_BAD_ARGUMENT);
    expect("a wrong length", nilometer_send_packed(sender, 0, parts), NILOMETER_BAD_ARGUMENT);
    parts[0].packing = parts[1].packing = 7;
    expect("an unknown packing", nilometer_send_packed(sender, 0, parts), NILOMETER_BAD_ARGUMENT);
    parts[0].packing = parts[1].packing = NILOMETER_BSLZ4;
    expect("a short chunk", nilometer_send_packed(sender, 0, parts), NILOMETER_BAD_ARGUMENT);
}

static int send_images(nilometer_sender *sender, const struct share *share) {
    int code = NILOMETER_OK;
    for (uint64_t left = share->series->images; !code && left > share->first; left -= share->step) {
        uint64_t number = left - 1 - share->first;
        code = nilometer_send(sender, number, share->pixels + number * share->image_pixels);
        if (left < share->step) break;
    }
    return code;
}

/* The second sender of a series. */
static void *take_part(void *argument) {
    struct share *share = argument;
    nilometer_sender *sender;
    int code = nilometer_open(&sender, share->address, share->timeout_ms);
    if (!code) code = nilometer_join(sender, share->series);
    if (!code) code = send_images(sender, share);
    if (!code) code = nilometer_end(sender);
    if (code) fprintf(stderr, "%s\n", nilometer_message(sender));
    int closed = nilometer_close(sender);
    share->code = code ? code : closed;
    return NULL;
}

static int record(struct share *share, int senders) {
    nilometer_sender *sender;
    pthread_t other;
    struct share rest = *share;
    rest.first = 1;
    rest.step = share->step = (uint64_t)senders;
    int code = nilometer_open(&sender, share->address, share->timeout_ms);
    if (!code) {
        are_refused(sender, share->pixels);
        code = nilometer_begin(sender, share->series);
    }
    if (!code) {
        images_are_refused(sender, share->series);
        if (senders == 2) expect("a thread", pthread_create(&other, NULL, take_part, &rest), 0);
        code = send_images(sender, share);
        if (senders == 2) pthread_join(other, NULL);
        if (!code) code = rest.code;
    }
    if (!code) code = nilometer_end(sender);
    if (code) fprintf(stderr, "%s\n", nilometer_message(sender));
    int closed = nilometer_close(sender);
    return code ? code : closed;
}

int main(int count, char **words) {
    if (count != 9) return 98;
    struct nilometer_series series = {.element = NILOMETER_UINT16, .texts = texts, .text_count = 2, .series_number = 7, .series_name = "seven"};
    series.images = strtoull(words[4], NULL, 10);
    series.channel_count = (size_t)strtoull(words[5], NULL, 10);
    series.channels = names;
    series.rows = strtoull(words[6], NULL, 10);
    series.columns = strtoull(words[7], NULL, 10);
    size_t image_pixels = (size_t)(series.rows * series.columns) * series.channel_count;
    uint16_t *pixels = malloc((size_t)series.images * image_pixels * 2);
    FILE *file = fopen(words[3], "rb");
    if (!pixels || !file || fread(pixels, image_pixels * 2, (size_t)series.images, file) != series.images) return 97;
    fclose(file);
    struct share share = {words[1], atoi(words[2]), pixels, image_pixels, &series, 0, 1, 0};
    int code = record(&share, atoi(words[8]));
    free(pixels);
    return code;
}
