/* Test of the border from C: every function, and wrong calls. Run under valgrind and
 * AddressSanitizer by tests/c.rs. */

#include "sojourn.h"

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
#define BURST 32

/* Layout of version 1 of the binary interface. */
_Static_assert(SJ_ABI_VERSION == 1, "version");
_Static_assert(sizeof(struct sj_packet) == 56, "packet");
_Static_assert(offsetof(struct sj_packet, cookie) == 32, "cookie");
_Static_assert(sizeof(struct sj_impairments) == 40, "impairments");
_Static_assert(sizeof(struct sj_stats) == 96, "stats");

static struct sj_packet packet(uint32_t len, uint32_t hash, uint64_t cookie)
{
    struct sj_packet p;
    memset(&p, 0, sizeof p);
    p.size = sizeof p;
    p.len = len;
    p.hash = hash;
    p.ecn = 2;
    p.cookie = cookie;
    return p;
}

/* Packets whose cookies are allocated memory: what is lost or freed twice is found by valgrind and
 * AddressSanitizer. */
static uint64_t allocated(void)
{
    void *memory = malloc(16);
    CHECK(memory != NULL);
    return (uint64_t)(uintptr_t)memory;
}

static void freed(uint64_t cookie)
{
    free((void *)(uintptr_t)cookie);
}

static void test_tools(void)
{
    char name[64], cut[4];
    uint32_t a = 0, b = 0;
    const uint8_t host[2][4] = {{192, 0, 2, 1}, {192, 0, 2, 2}};
    size_t i;

    CHECK(sj_abi_version() == SJ_ABI_VERSION);
    CHECK(strlen(sj_version()) >= 5);
    CHECK(strcmp(sj_strerror(0), "no error") == 0);
    CHECK(strstr(sj_strerror(SJ_EARLIER), "earlier") != NULL);
    CHECK(strcmp(sj_strerror(-99), "unknown error") == 0);
    CHECK(sj_discipline_count() > 40);
    for (i = 0; i < sj_discipline_count(); i++) {
        CHECK(sj_discipline_name(i, name, sizeof name) == 0 && strlen(name) > 1);
    }
    CHECK(sj_discipline_name(i, name, sizeof name) == SJ_INVALID);
    CHECK(sj_discipline_name(0, NULL, 4) == SJ_NULL);
    CHECK(sj_discipline_name(0, cut, sizeof cut) == 0 && strcmp(cut, "dro") == 0);

    CHECK(sj_flow_hash(7, host[0], host[1], 4, 17, 1, 2, &a) == 0);
    CHECK(sj_flow_hash(7, host[0], host[1], 4, 17, 1, 3, &b) == 0);
    CHECK(a != b);
    CHECK(sj_flow_hash(7, host[0], host[1], 5, 17, 1, 2, &a) == SJ_INVALID);
    CHECK(sj_flow_hash(7, NULL, host[1], 4, 17, 1, 2, &a) == SJ_NULL);
    CHECK(sj_flow_hash(7, host[0], host[1], 4, 17, 1, 2, NULL) == SJ_NULL);
}

static void test_messages(void)
{
    char error[128], cut[8];
    struct sj_qdisc *none;

    none = sj_qdisc_new("codle", 10000000, 1, error, sizeof error);
    CHECK(none == NULL && strstr(error, "did you mean \"codel\"?") != NULL);
    none = sj_qdisc_new("codel(target=5)", 10000000, 1, error, sizeof error);
    CHECK(none == NULL && strncmp(error, "target: ", 8) == 0);
    none = sj_qdisc_new("codel", 0, 1, error, sizeof error);
    CHECK(none == NULL && strncmp(error, "rate: ", 6) == 0);
    none = sj_qdisc_new("\xff", 10000000, 1, error, sizeof error);
    CHECK(none == NULL && strstr(error, "UTF-8") != NULL);
    none = sj_qdisc_new(NULL, 10000000, 1, error, sizeof error);
    CHECK(none == NULL && strstr(error, "null") != NULL);
    CHECK(sj_qdisc_new("codle", 1, 1, NULL, 0) == NULL);
    CHECK(sj_qdisc_new("codle", 1, 1, cut, sizeof cut) == NULL && strlen(cut) == 7);
}

static void visit(void *context, const char *name, double value)
{
    *(int *)context += strlen(name) > 0 && value == value;
}

/* Bursts into a discipline; every cookie leaves once, by a dequeue or by a drop. */
static void test_qdisc(const char *text)
{
    char error[128];
    struct sj_packet burst[BURST], out[BURST], dropped = packet(0, 0, 0);
    struct sj_qdisc *qdisc = sj_qdisc_new(text, 10000000, 1, error, sizeof error);
    uint64_t packets, bytes, now = 0;
    int i, n, round, gone = 0, gauges = 0;

    CHECK(qdisc != NULL && error[0] == 0);
    for (round = 0; round < 50; round++) {
        now += MS;
        for (i = 0; i < BURST; i++) {
            burst[i] = packet(1250, (uint32_t)i % 5, allocated());
            out[i].size = sizeof out[i];
        }
        CHECK(sj_qdisc_enqueue_burst(qdisc, now, burst, BURST) == BURST);
        n = sj_qdisc_dequeue_burst(qdisc, now, out, BURST / 2);
        CHECK(n >= 0 && n <= BURST / 2);
        for (i = 0; i < n; i++) {
            CHECK(out[i].len == 1250 && out[i].at == now && out[i].reason == 0);
            freed(out[i].cookie);
        }
        gone += n;
        while (sj_qdisc_next_dropped(qdisc, &dropped) == 1) {
            CHECK(dropped.reason >= 1 && dropped.reason <= 3);
            freed(dropped.cookie);
            gone++;
        }
    }
    CHECK(sj_qdisc_backlog(qdisc, &packets, &bytes) == 0);
    CHECK(packets + (uint64_t)gone == 50 * BURST && bytes == packets * 1250);
    CHECK(sj_qdisc_inspect(qdisc, visit, &gauges) == 0);
    CHECK(sj_qdisc_inspect(qdisc, NULL, NULL) == SJ_NULL);

    /* Wrong calls change nothing. */
    burst[0] = packet(1250, 0, 0);
    burst[1] = packet(1u << 30, 0, 0);
    CHECK(sj_qdisc_enqueue(qdisc, now - 1, &burst[0]) == SJ_EARLIER);
    CHECK(sj_qdisc_dequeue(qdisc, now - 1, &out[0]) == SJ_EARLIER);
    CHECK(sj_qdisc_enqueue(qdisc, now, &burst[1]) == SJ_BAD_LENGTH);
    CHECK(sj_qdisc_enqueue_burst(qdisc, now, burst, 2) == SJ_BAD_LENGTH);
    burst[0].size = 8;
    CHECK(sj_qdisc_enqueue(qdisc, now, &burst[0]) == SJ_BAD_SIZE);
    CHECK(sj_qdisc_enqueue(qdisc, now, NULL) == SJ_NULL);
    CHECK(sj_qdisc_enqueue(NULL, now, &burst[0]) == SJ_NULL);
    CHECK(sj_qdisc_reconfigure(qdisc, "codel(target=5)", error, sizeof error) == SJ_INVALID);
    CHECK(strncmp(error, "target: ", 8) == 0);
    CHECK(sj_qdisc_backlog(qdisc, &packets, NULL) == 0);
    CHECK(packets + (uint64_t)gone == 50 * BURST);

    while (packets > 0) {
        uint64_t ready;
        while (sj_qdisc_dequeue(qdisc, now, &out[0]) == 1) {
            freed(out[0].cookie);
        }
        while (sj_qdisc_next_dropped(qdisc, &dropped) == 1) {
            freed(dropped.cookie);
        }
        ready = sj_qdisc_ready_at(qdisc);
        CHECK(sj_qdisc_backlog(qdisc, &packets, NULL) == 0);
        CHECK(packets == 0 || ready != SJ_NEVER);
        now = packets > 0 ? ready : now;
    }
    CHECK(sj_qdisc_dequeue(qdisc, now, &out[0]) == 0);
    sj_qdisc_free(qdisc);
}

static void test_link(const char *text, const struct sj_impairments *impairments)
{
    char error[128];
    struct sj_link *link = sj_link_new(text, 10000000, 25 * MS, 1, impairments, error, sizeof error);
    struct sj_packet in, out = packet(0, 0, 0);
    struct sj_stats stats;
    uint64_t at, delivered = 0, lost = 0;
    int i, gauges = 0;

    CHECK(link != NULL);
    CHECK(sj_link_next_poll(link) == SJ_NEVER);
    for (i = 0; i < 500; i++) {
        in = packet(1250, (uint32_t)i % 3, allocated());
        CHECK(sj_link_push(link, (uint64_t)i * MS / 2, &in) == 0);
    }
    CHECK(sj_link_push(link, 0, &in) == SJ_EARLIER);
    CHECK(sj_link_poll(link, 0, &out) == SJ_EARLIER);
    CHECK(sj_link_change(link, 0, 1, 1) == SJ_EARLIER);
    while ((at = sj_link_next_poll(link)) != SJ_NEVER) {
        at = at < 250 * MS ? 250 * MS : at;
        while (sj_link_poll(link, at, &out) == 1) {
            CHECK(out.at <= at && out.at >= out.arrived + MS && out.reason == 0);
            freed(out.cookie);
            delivered++;
        }
        while (sj_link_next_undelivered(link, &out) == 1) {
            CHECK(out.reason >= 1 && out.reason <= 4);
            freed(out.cookie);
            lost++;
        }
    }
    CHECK(delivered + lost == 500 && delivered > 100);
    stats.size = sizeof stats;
    CHECK(sj_link_stats(link, &stats) == 0);
    CHECK(stats.arrived_packets == 500 && stats.queued_packets == 0);
    CHECK(stats.dropped_packets + stats.lost_packets == lost);
    CHECK(impairments == NULL || stats.lost_packets > 10);
    stats.size = 4;
    CHECK(sj_link_stats(link, &stats) == SJ_BAD_SIZE);
    CHECK(sj_link_inspect(link, visit, &gauges) == 0);
    CHECK(sj_link_reset_stats(link, 3000 * MS) == 0);
    CHECK(sj_link_change(link, 3000 * MS, 20000000, 5 * MS) == 0);
    in = packet(1250, 0, 7);
    CHECK(sj_link_push(link, 3000 * MS, &in) == 0);
    CHECK(sj_link_reconfigure(link, 3000 * MS, "red(x=1)", error, sizeof error) == SJ_INVALID);
    CHECK(error[0] != 0);
    sj_link_free(link);
}

static void test_a_copy_continues_in_the_same_way(void)
{
    struct sj_link *link = sj_link_new("red", 10000000, MS, 1, NULL, NULL, 0), *copy;
    struct sj_packet burst[BURST], out[2][BURST];
    int i, k;

    for (i = 0; i < BURST; i++) {
        burst[i] = packet(1250, 0, (uint64_t)i);
        out[0][i].size = out[1][i].size = sizeof out[0][i];
    }
    CHECK(sj_link_push_burst(link, 0, burst, BURST) == BURST);
    copy = sj_link_clone(link);
    k = sj_link_poll_burst(link, 20 * MS, out[0], BURST);
    CHECK(k == 19 && sj_link_poll_burst(copy, 20 * MS, out[1], BURST) == k);
    for (i = 0; i < k; i++) {
        CHECK(out[0][i].cookie == (uint64_t)i && out[1][i].cookie == (uint64_t)i);
        CHECK(out[0][i].at == (uint64_t)(i + 2) * MS && out[1][i].at == out[0][i].at);
    }
    sj_link_free(link);
    sj_link_free(copy);
    CHECK(sj_link_clone(NULL) == NULL && sj_qdisc_clone(NULL) == NULL);
    sj_link_free(NULL);
    sj_qdisc_free(NULL);
}

/* A caller with a newer header: its packets have fields that this library does not know. */
static void test_larger_packets(void)
{
    struct {
        struct sj_packet packet;
        uint64_t new_field;
    } burst[4], out[4];
    struct sj_qdisc *qdisc = sj_qdisc_new("droptail", 10000000, 1, NULL, 0);
    int i;

    for (i = 0; i < 4; i++) {
        burst[i].packet = packet(100 + (uint32_t)i, 0, (uint64_t)i);
        burst[i].packet.size = out[i].packet.size = sizeof burst[i];
        out[i].new_field = 42;
    }
    CHECK(sj_qdisc_enqueue_burst(qdisc, 1, &burst[0].packet, 4) == 4);
    CHECK(sj_qdisc_dequeue_burst(qdisc, 1, &out[0].packet, 4) == 4);
    for (i = 0; i < 4; i++) {
        CHECK(out[i].packet.cookie == (uint64_t)i && out[i].packet.len == 100 + (uint32_t)i);
        CHECK(out[i].packet.size == sizeof burst[i] && out[i].new_field == 42);
    }
    sj_qdisc_free(qdisc);
}

static const char *const TOML =
    "duration = \"3s\"\nwarmup = \"1s\"\n"
    "[links.up]\nrate = \"10mbit\"\nqdisc = { name = \"red\", limit = \"100p\" }\n"
    "[[flows]]\nname = \"bulk\"\ncount = 2\npath = [\"up\"]\nrtt = \"20ms\"\n";

static const char *const JSON =
    "{\"duration\": \"3s\", \"warmup\": \"1s\", \"links\": {\"up\": {\"rate\": \"10mbit\","
    " \"qdisc\": {\"name\": \"red\", \"limit\": \"100p\"}}}, \"flows\": [{\"name\": \"bulk\","
    " \"count\": 2, \"path\": [\"up\"], \"rtt\": \"20ms\"}]}";

/* In steps, in one go, in a copy, from TOML and from JSON: the same result. */
static void test_simulation(void)
{
    char error[256];
    struct sj_sim *steps = sj_sim_new(TOML, error, sizeof error), *copy, *whole;
    const char *json;
    uint64_t at;

    CHECK(steps != NULL && error[0] == 0 && sj_sim_now(steps) == 0);
    CHECK(sj_sim_end(steps) == 3000 * MS);
    CHECK(sj_sim_result(steps, error, sizeof error) == NULL);
    CHECK(strstr(error, "nothing is measured yet") == error);
    for (at = 0; at <= 1500 * MS; at += 100 * MS) {
        CHECK(sj_sim_run_until(steps, at) == 0 && sj_sim_now(steps) == at);
    }
    CHECK(sj_sim_run_until(steps, MS) == SJ_EARLIER && sj_sim_now(steps) == 1500 * MS);
    CHECK(sj_sim_result(steps, NULL, 0) != NULL);
    copy = sj_sim_clone(steps);
    whole = sj_sim_new(JSON, error, sizeof error);
    CHECK(sj_sim_run_until(steps, SJ_NEVER) == 0 && sj_sim_run_until(copy, SJ_NEVER) == 0);
    CHECK(sj_sim_run_until(whole, 3000 * MS) == 0);
    json = sj_sim_result(whole, error, sizeof error);
    CHECK(json != NULL && strncmp(json, "{\"flows\":[{", 11) == 0);
    CHECK(strstr(json, "\"utilisation\":") != NULL);
    CHECK(strcmp(json, sj_sim_result(steps, NULL, 0)) == 0);
    CHECK(strcmp(json, sj_sim_result(copy, NULL, 0)) == 0);
    sj_sim_free(steps);
    sj_sim_free(copy);
    sj_sim_free(whole);

    CHECK(sj_sim_new("duration = \"3s\"\n\nrate 3", error, sizeof error) == NULL);
    CHECK(strncmp(error, "line 3: ", 8) == 0);
    CHECK(sj_sim_new("duration = 3", error, sizeof error) == NULL);
    CHECK(strncmp(error, "duration: ", 10) == 0);
    CHECK(sj_sim_new("{", error, sizeof error) == NULL && error[0] != 0);
    CHECK(sj_sim_new(NULL, NULL, 0) == NULL && sj_sim_clone(NULL) == NULL);
    CHECK(sj_sim_run_until(NULL, 0) == SJ_NULL && sj_sim_result(NULL, error, 20) == NULL);
    CHECK(sj_sim_now(NULL) == SJ_NEVER && sj_sim_end(NULL) == SJ_NEVER);
    sj_sim_free(NULL);
}

/* Writes a snapshot to a file, and reads it back: another process continues with the same result
 * and the same bytes. */
static void test_snapshot(void)
{
    char error[256];
    struct sj_sim *sim = sj_sim_new(TOML, error, sizeof error), *other = NULL;
    const uint8_t *start = NULL, *end = NULL;
    uint8_t *copy;
    size_t count = 0, length = 0, k;
    FILE *file = tmpfile();

    CHECK(sj_sim_run_until(sim, 1500 * MS) == 0);
    CHECK(sj_sim_save(sim, &start, &count, error, sizeof error) == 0 && error[0] == 0);
    CHECK(file != NULL && fwrite(start, 1, count, file) == count);
    rewind(file);
    copy = malloc(count);
    CHECK(copy != NULL && fread(copy, 1, count, file) == count);
    fclose(file);
    CHECK(sj_sim_load(&other, copy, count, error, sizeof error) == 0 && error[0] == 0);
    CHECK(sj_sim_now(other) == 1500 * MS && sj_sim_end(other) == 3000 * MS);
    CHECK(sj_sim_run_until(sim, SJ_NEVER) == 0 && sj_sim_run_until(other, SJ_NEVER) == 0);
    CHECK(strcmp(sj_sim_result(sim, NULL, 0), sj_sim_result(other, NULL, 0)) == 0);
    CHECK(sj_sim_save(sim, &start, &count, NULL, 0) == 0);
    CHECK(sj_sim_save(other, &end, &length, NULL, 0) == 0);
    CHECK(length == count && memcmp(start, end, count) == 0);
    sj_sim_free(other);

    /* Every shorter beginning, and a change of any byte. */
    CHECK(sj_sim_load(&other, start, count, NULL, 0) == 0);
    sj_sim_free(other);
    free(copy);
    copy = malloc(count);
    CHECK(copy != NULL);
    memcpy(copy, start, count);
    for (k = 0; k < count; k += 1 + k / 64) {
        CHECK(sj_sim_load(&other, copy, k, error, sizeof error) == SJ_BAD_SNAPSHOT);
        CHECK(other == NULL && strncmp(error, "snapshot: ", 10) == 0);
        copy[k] ^= 0x10;
        CHECK(sj_sim_load(&other, copy, count, error, sizeof error) == SJ_BAD_SNAPSHOT);
        copy[k] ^= 0x10;
    }
    copy[8]++; /* the version of the format */
    CHECK(sj_sim_load(&other, copy, count, error, sizeof error) == SJ_BAD_SNAPSHOT);
    CHECK(strstr(error, "format 2; this version reads format 1") != NULL);
    free(copy);

    CHECK(sj_sim_save(NULL, &start, &count, error, sizeof error) == SJ_NULL);
    CHECK(sj_sim_save(sim, NULL, &count, NULL, 0) == SJ_NULL);
    CHECK(sj_sim_save(sim, &start, NULL, NULL, 0) == SJ_NULL);
    CHECK(sj_sim_load(NULL, start, count, NULL, 0) == SJ_NULL);
    CHECK(sj_sim_load(&other, NULL, count, error, sizeof error) == SJ_NULL && other == NULL);
    CHECK(strstr(error, "null") != NULL);
    sj_sim_free(sim);
}

int main(void)
{
    struct sj_impairments bad = {sizeof bad, 1, 5 * MS, 0.2, 0.05, 0.1};
    struct sj_impairments wrong = bad;
    char error[128];
    struct sj_link *link;

    test_tools();
    test_messages();
    test_qdisc("codel(limit=100p)");
    test_qdisc("fq_codel(variant=linux, limit=200p)");
    test_qdisc("tc: tbf rate 5mbit burst 20kb limit 100kb");
    test_qdisc("cake(limit=100p)");
    test_link("fq_codel(variant=linux)", NULL);
    test_link("droptail", &bad);
    test_a_copy_continues_in_the_same_way();
    test_larger_packets();
    test_simulation();
    test_snapshot();

    wrong.loss = 1.5;
    link = sj_link_new("codel", 10000000, 0, 1, &wrong, error, sizeof error);
    CHECK(link == NULL && strstr(error, "impairments.loss.probability") == error);
    wrong.size = 4;
    CHECK(sj_link_new("codel", 10000000, 0, 1, &wrong, NULL, 0) == NULL);
    puts("passed");
    return 0;
}
