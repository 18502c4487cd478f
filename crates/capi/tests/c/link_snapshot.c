/* Test of snapshots of links, run by tests/c.rs, also under valgrind and AddressSanitizer.
 *
 *   link_snapshot               all tests in one process
 *   link_snapshot save FILE     save a busy link, continue it, and print what comes out
 *   link_snapshot load FILE     continue the link of the file, and print what comes out */

#include "sojourn.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                           \
    do {                                                                           \
        if (!(condition)) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);        \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

#define MS UINT64_C(1000000)
#define HALF 400u

static const char *const TEXTS[] = {
    "droptail(limit=20p)", "codel(limit=50p,target=1ms,interval=10ms)", "red(limit=50p)", "pie",
    "fq_codel(variant=linux,flows=16,limit=60p)", "cake(limit=60kB)", "dualpi2",
    "tc: tbf rate 5mbit burst 20kb limit 60kb",
};

/* A link with everything: losses, jitter, reordering and wrong bits. */
static struct sj_link *created(const char *text)
{
    const struct sj_impairments impairments = {sizeof impairments, 1, 3 * MS, 0.05, 0.05, 0.05};
    char error[128];
    struct sj_link *link =
        sj_link_new(text, 10000000, 15 * MS, 7, &impairments, error, sizeof error);

    CHECK(link != NULL);
    return link;
}

/* Cookie that uses all 64 bits. */
static uint64_t cookie(unsigned i)
{
    return (UINT64_C(0x9e3779b97f4a7c15) * (i + 1)) | UINT64_C(1) << 63;
}

/* Pushes the packets from `first` to before `last`, a third above the rate, and writes what comes
 * out to `log`, which has room for it. */
static void offer(struct sj_link *link, unsigned first, unsigned last, char *log)
{
    struct sj_packet in, out;
    uint64_t now = 0;
    unsigned i;

    memset(&in, 0, sizeof in);
    in.size = sizeof in;
    out.size = sizeof out;
    for (i = first; i < last; i++) {
        now = i * MS * 3 / 4;
        in.len = 1000 + i % 500;
        in.flow = in.hash = i % 5;
        in.ecn = (uint8_t)(i % 4);
        in.cookie = cookie(i);
        CHECK(sj_link_push(link, now, &in) == 0);
        while (sj_link_poll(link, now, &out) == 1) {
            log += sprintf(log, "%016" PRIx64 " at %" PRIu64 ", ECN %d, bit %" PRIu32 "\n", out.cookie,
                           out.at, out.ecn, out.wrong_bit);
        }
        if (i % 16 == 0) { /* some stay, for the snapshot */
            while (sj_link_next_undelivered(link, &out) == 1) {
                log += sprintf(log, "%016" PRIx64 " lost at %" PRIu64 ", reason %d\n", out.cookie,
                               out.at, out.reason);
            }
        }
    }
}

static char log_of[2][1 << 18];

static void test_continues(const char *text)
{
    char error[128];
    struct sj_link *link = created(text), *other = NULL;
    const uint8_t *start[2] = {NULL, NULL};
    size_t count[2] = {0, 0};
    uint8_t *copy;
    uint64_t at;

    offer(link, 0, HALF, log_of[0]);
    CHECK(sj_link_change(link, HALF * MS * 3 / 4, 9000000, 10 * MS) == 0);
    CHECK(sj_link_save(link, &start[0], &count[0], error, sizeof error) == 0 && error[0] == 0);
    copy = malloc(count[0]); /* AddressSanitizer finds a read beyond it */
    CHECK(copy != NULL);
    memcpy(copy, start[0], count[0]);
    CHECK(sj_link_load(&other, copy, count[0], error, sizeof error) == 0 && error[0] == 0);
    free(copy);
    at = sj_link_next_poll(link);
    CHECK(at != SJ_NEVER && sj_link_next_poll(other) == at);
    offer(link, HALF, 2 * HALF, log_of[0]);
    offer(other, HALF, 2 * HALF, log_of[1]);
    CHECK(strcmp(log_of[0], log_of[1]) == 0 && strlen(log_of[0]) > 10000);
    CHECK(strstr(log_of[0], "reason 4") != NULL && strstr(log_of[0], "bit 0") != NULL);
    CHECK(sj_link_save(link, &start[0], &count[0], NULL, 0) == 0);
    CHECK(sj_link_save(other, &start[1], &count[1], NULL, 0) == 0);
    CHECK(count[0] == count[1] && memcmp(start[0], start[1], count[0]) == 0);
    sj_link_free(link);
    sj_link_free(other);
}

/* Snapshots that are cut, changed, of something else, or of another version. */
static void test_refusals(void)
{
    static const char scenario[] = "duration = \"1s\"\n[links.up]\nrate = \"1mbit\"\n"
                                   "[[flows]]\nname = \"f\"\npath = [\"up\"]\n";
    char error[160];
    struct sj_link *link = created("fq_codel"), *other = link;
    struct sj_sim *sim = sj_sim_new(scenario, error, sizeof error), *none = sim;
    const uint8_t *start = NULL;
    uint8_t *copy;
    size_t count = 0, k;

    offer(link, 0, 20, log_of[0]);
    CHECK(sj_link_save(link, &start, &count, error, sizeof error) == 0);
    for (k = 0; k < count; k += 1 + k / 64) {
        copy = malloc(k + 1);
        CHECK(copy != NULL);
        memcpy(copy, start, k);
        other = link;
        CHECK(sj_link_load(&other, copy, k, error, sizeof error) == SJ_BAD_SNAPSHOT);
        CHECK(other == NULL && strncmp(error, "snapshot: is ", 13) == 0);
        free(copy);
    }
    copy = malloc(count + 1);
    CHECK(copy != NULL);
    memcpy(copy, start, count);
    copy[count] = 0;
    CHECK(sj_link_load(&other, copy, count + 1, error, sizeof error) == SJ_BAD_SNAPSHOT);
    for (k = 0; k < count; k += 1 + k / 64) {
        copy[k] ^= 0x10;
        CHECK(sj_link_load(&other, copy, count, error, sizeof error) == SJ_BAD_SNAPSHOT);
        copy[k] ^= 0x10;
    }
    copy[8]++; /* the version of the format */
    CHECK(sj_link_load(&other, copy, count, error, sizeof error) == SJ_BAD_SNAPSHOT);
    CHECK(strstr(error, "format 2; this version reads format 1") != NULL);
    free(copy);

    CHECK(sj_sim_load(&none, start, count, error, sizeof error) == SJ_BAD_SNAPSHOT && none == NULL);
    CHECK(strcmp(error, "snapshot: is of a timed link, not of a simulation") == 0);
    CHECK(sj_sim_save(sim, &start, &count, error, sizeof error) == 0);
    CHECK(sj_link_load(&other, start, count, error, sizeof error) == SJ_BAD_SNAPSHOT);
    CHECK(strcmp(error, "snapshot: is of a simulation, not of a timed link") == 0);

    CHECK(sj_link_save(NULL, &start, &count, error, sizeof error) == SJ_NULL);
    CHECK(sj_link_save(link, NULL, &count, NULL, 0) == SJ_NULL);
    CHECK(sj_link_save(link, &start, NULL, NULL, 0) == SJ_NULL);
    CHECK(sj_link_load(NULL, start, count, NULL, 0) == SJ_NULL);
    CHECK(sj_link_load(&other, NULL, count, error, sizeof error) == SJ_NULL && other == NULL);
    CHECK(strstr(error, "null") != NULL);
    sj_link_free(link);
    sj_sim_free(sim);
}

int main(int count, char **words)
{
    char error[128];
    struct sj_link *link = NULL;
    FILE *file;
    size_t i;

    if (count != 3) {
        for (i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
            test_continues(TEXTS[i]);
        }
        test_refusals();
        puts("passed");
        return 0;
    }
    file = fopen(words[2], strcmp(words[1], "save") == 0 ? "wb" : "rb");
    CHECK(file != NULL);
    for (i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        const uint8_t *start = NULL;
        uint8_t *bytes;
        size_t length = 0;

        if (strcmp(words[1], "save") == 0) {
            link = created(TEXTS[i]);
            offer(link, 0, HALF, log_of[0]);
            CHECK(sj_link_save(link, &start, &length, error, sizeof error) == 0);
            CHECK(fwrite(&length, sizeof length, 1, file) == 1);
            CHECK(fwrite(start, 1, length, file) == length);
        } else {
            CHECK(fread(&length, sizeof length, 1, file) == 1 && length < 1 << 20);
            bytes = malloc(length);
            CHECK(bytes != NULL && fread(bytes, 1, length, file) == length);
            CHECK(sj_link_load(&link, bytes, length, error, sizeof error) == 0);
            free(bytes);
        }
        offer(link, HALF, 2 * HALF, log_of[0]);
        fputs(log_of[0], stdout);
        sj_link_free(link);
    }
    fclose(file);
    return 0;
}
