/* The other side of messages.rs: a detector that sends a series as fast as it is taken, and a bare loop that takes it, both by
 * libzmq.
 *
 * push START IMAGE END OFFSET COUNT  waits for one receiver and prints where; sends the message in the file START, prints
 *                                    `begun`, sends COUNT times that in IMAGE, with its number, from 0, in 8 bytes big-endian
 *                                    at OFFSET, and the message in END
 * pull ENDPOINT COUNT                takes these messages; prints the seconds from the first to the last, the processor
 *                                    seconds of this process meanwhile, and the bytes
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <zmq.h>

/* Images in memory: libzmq reads one from there while the next is made. */
enum { COPIES = 32 };

static atomic_int taken[COPIES];

static void check(int well, const char *what)
{
    if (!well) {
        fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
        exit(1);
    }
}

static char *load(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    check(file != NULL, path);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size);
    check(bytes != NULL && fread(bytes, 1, *size, file) == *size, path);
    fclose(file);
    return bytes;
}

static void free_copy(void *data, void *copy)
{
    (void)data;
    atomic_store((atomic_int *)copy, 0);
}

static void push(void *socket, char **arguments)
{
    size_t start_size, size, end_size, offset = strtoul(arguments[3], NULL, 10);
    char *start = load(arguments[0], &start_size), *image = load(arguments[1], &size), *end = load(arguments[2], &end_size);
    uint64_t count = strtoull(arguments[4], NULL, 10);
    char *copies[COPIES], endpoint[256];
    for (int copy = 0; copy < COPIES; copy++) {
        copies[copy] = malloc(size);
        memcpy(copies[copy], image, size);
    }
    int few = 16;
    zmq_setsockopt(socket, ZMQ_SNDHWM, &few, sizeof few);
    check(zmq_bind(socket, "tcp://127.0.0.1:*") == 0, "bind");
    size_t length = sizeof endpoint;
    zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &length);
    printf("%s\n", endpoint);
    fflush(stdout);
    check(zmq_send(socket, start, start_size, 0) >= 0, "send");
    printf("begun\n");
    fflush(stdout);
    for (uint64_t number = 0; number < count; number++) {
        int copy = (int)(number % COPIES);
        while (atomic_load(&taken[copy]))
            sched_yield();
        atomic_store(&taken[copy], 1);
        for (int byte = 0; byte < 8; byte++)
            copies[copy][offset + byte] = (char)(number >> (56 - 8 * byte));
        zmq_msg_t message;
        zmq_msg_init_data(&message, copies[copy], size, free_copy, &taken[copy]);
        check(zmq_msg_send(&message, socket, 0) >= 0, "send");
    }
    check(zmq_send(socket, end, end_size, 0) >= 0, "send");
}

static double seconds(struct timeval time)
{
    return time.tv_sec + time.tv_usec * 1e-6;
}

static double processor(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void pull(void *socket, char **arguments)
{
    uint64_t count = strtoull(arguments[1], NULL, 10), bytes = 0;
    check(zmq_connect(socket, arguments[0]) == 0, "connect");
    double begun = 0, spent = 0;
    /* The start, the images and the end. */
    for (uint64_t number = 0; number <= count + 1; number++) {
        zmq_msg_t message;
        zmq_msg_init(&message);
        check(zmq_msg_recv(&message, socket, 0) >= 0, "receive");
        bytes += zmq_msg_size(&message);
        zmq_msg_close(&message);
        if (number == 0) {
            begun = now();
            spent = processor();
        }
    }
    printf("%.6f %.6f %llu\n", now() - begun, processor() - spent, (unsigned long long)bytes);
}

int main(int count, char **arguments)
{
    void *context = zmq_ctx_new();
    int is_push = count == 7 && strcmp(arguments[1], "push") == 0;
    check(is_push || count == 4, "push START IMAGE END OFFSET COUNT, or pull ENDPOINT COUNT");
    void *socket = zmq_socket(context, is_push ? ZMQ_PUSH : ZMQ_PULL);
    (is_push ? push : pull)(socket, arguments + 2);
    zmq_close(socket);
    zmq_ctx_term(context);
    return 0;
}
