/* Random sequences of right and wrong calls, under AddressSanitizer: null pointers, structs of other
 * sizes, times that go back, texts and snapshots with changed bytes, short buffers. No call may
 * panic, and every cookie comes back at most once, from the handle that took it or from the one that
 * a snapshot of it made.
 *
 *   misuse CALLS [SEED] */

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

#define HANDLES 6
#define BURST 32
#define COOKIES 4096

static uint64_t state;

/* SplitMix64. */
static uint64_t draw(uint64_t below)
{
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

static int one_in(uint64_t n)
{
    return draw(n) == 0;
}

/* Packets that a handle has, by the low bits of their cookies. */
struct owner {
    struct sj_qdisc *qdisc;
    struct sj_link *link;
    uint64_t now;
    uint64_t next;
    unsigned char has[COOKIES];
};

static struct owner owners[HANDLES];
static struct sj_sim *sims[2];

/* Snapshots that were loaded, and refused: of links, and of simulations. */
static long loaded[2], refused[2];

static const char *const TEXTS[] = {
    "codel(limit=50p)", "fq_codel(variant=linux)", "droptail(limit=3p)", "cake", "pie(ecn=true)",
    "tc: tbf rate 5mbit burst 20kb limit 100kb", "htb(classes={})", "dualpi2", "sfq", "red(min_th=1p)",
};

static const char *const SCENARIO =
    "duration = \"9s\"\nwarmup = \"0s\"\n[links.up]\nrate = \"2mbit\"\nqdisc = \"codel\"\n"
    "[[flows]]\nname = \"bulk\"\npath = [\"up\"]\nrtt = \"20ms\"\n";

/* A copy of the text, often with bytes that are changed. */
static const char *changed(const char *text)
{
    static char copy[256];
    size_t length = strlen(text);
    int times = one_in(2) ? (int)draw(4) : 0;

    memcpy(copy, text, length + 1);
    while (times-- > 0) {
        copy[draw(length)] = (char)draw(256);
    }
    return one_in(20) ? NULL : copy;
}

static uint32_t size_of(uint32_t right)
{
    const uint32_t sizes[] = {0, 1, 8, right - 8, right - 1, right + 1, right * 16 + 8, UINT32_MAX};
    return one_in(10) ? sizes[draw(8)] : right;
}

static uint64_t time_of(struct owner *owner)
{
    const uint64_t odd[] = {0, owner->now - 1, UINT64_MAX, UINT64_MAX - 1, owner->now};
    return one_in(500) ? odd[draw(5)] : owner->now + draw(3000000);
}

static struct sj_packet packet_of(struct owner *owner)
{
    struct sj_packet p;
    memset(&p, (int)draw(256), sizeof p);
    p.size = size_of(sizeof p);
    p.len = one_in(20) ? (uint32_t)draw(UINT64_C(1) << 32) : (uint32_t)draw(1501);
    p.hash = (uint32_t)draw(7);
    p.flow = (uint32_t)draw(7);
    p.cookie = owner->next | draw(UINT64_C(1) << 40) << 20;
    return p;
}

static void taken(struct owner *owner, const struct sj_packet *p)
{
    size_t i = p->cookie % COOKIES;
    CHECK(owner->has[i] == 1);
    owner->has[i] = 0;
}

static void push(struct owner *owner)
{
    struct sj_packet burst[BURST];
    size_t i, count = one_in(3) ? draw(BURST + 1) : 1, used = 0;
    uint64_t now = time_of(owner);
    int result, is_single = count == 1 && one_in(2), is_null = one_in(50);
    struct sj_packet *p = is_null ? NULL : burst;

    for (i = 0; i < count; i++) {
        while (owner->has[owner->next % COOKIES] && used++ < COOKIES) {
            owner->next = (owner->next + 1) % COOKIES;
        }
        burst[i] = packet_of(owner);
        burst[i].size = burst[0].size; /* the size of the first packet holds for all */
        owner->has[owner->next % COOKIES] = 2;
    }
    if (used >= COOKIES || (count > 1 && burst[0].size > sizeof burst[0])) {
        count = 0; /* everything is queued; or the packets would be longer than the array */
    }
    if (owner->qdisc) {
        result = is_single ? sj_qdisc_enqueue(owner->qdisc, now, p)
                           : sj_qdisc_enqueue_burst(owner->qdisc, now, p, count);
    } else {
        result = is_single ? sj_link_push(owner->link, now, p)
                           : sj_link_push_burst(owner->link, now, p, count);
    }
    CHECK(result != SJ_PANICKED && result <= (int)count);
    CHECK(!is_null || result == SJ_NULL || count == 0);
    for (i = 0; i < COOKIES; i++) {
        if (owner->has[i] == 2) {
            owner->has[i] = result >= 0 && count > 0 && !(is_single && result != 0);
        }
    }
    if (result >= 0 && count > 0) {
        CHECK(now >= owner->now);
        owner->now = now;
    }
}

static void pop(struct owner *owner)
{
    struct sj_packet burst[BURST];
    size_t count = draw(BURST + 1);
    uint64_t now = time_of(owner);
    int i, result;

    for (i = 0; i < BURST; i++) {
        burst[i].size = sizeof burst[i];
    }
    burst[0].size = size_of(sizeof burst[0]);
    if (burst[0].size > sizeof burst[0]) {
        count = 1;
        burst[0].size = sizeof burst[0] + 8;
    }
    result = owner->qdisc ? sj_qdisc_dequeue_burst(owner->qdisc, now, burst, count)
                          : sj_link_poll_burst(owner->link, now, burst, count);
    CHECK(result != SJ_PANICKED && result <= (int)count);
    owner->now = result >= 0 && count > 0 && now > owner->now ? now : owner->now;
    for (i = 0; i < result; i++) {
        taken(owner, &burst[i]);
    }
}

static void drops(struct owner *owner)
{
    struct sj_packet p;
    int result;

    do {
        p.size = size_of(sizeof p);
        result = owner->qdisc ? sj_qdisc_next_dropped(owner->qdisc, &p)
                              : sj_link_next_undelivered(owner->link, &p);
        CHECK(result != SJ_PANICKED);
        if (result == 1) {
            CHECK(p.reason >= 1 && p.reason <= 4);
            taken(owner, &p);
        }
    } while (result == 1);
}

static void visit(void *context, const char *name, double value)
{
    *(size_t *)context += strlen(name) + (value == value);
}

static void look(struct owner *owner)
{
    struct sj_stats stats;
    uint64_t packets, bytes;
    size_t sum = 0;

    stats.size = size_of(sizeof stats);
    if (owner->qdisc) {
        CHECK(sj_qdisc_backlog(owner->qdisc, one_in(3) ? NULL : &packets, &bytes) == 0);
        CHECK(sj_qdisc_inspect(owner->qdisc, one_in(5) ? NULL : visit, &sum) != SJ_PANICKED);
        sj_qdisc_ready_at(owner->qdisc);
    } else {
        CHECK(sj_link_stats(owner->link, one_in(5) ? NULL : &stats) != SJ_PANICKED);
        CHECK(sj_link_inspect(owner->link, one_in(5) ? NULL : visit, &sum) != SJ_PANICKED);
        sj_link_next_poll(owner->link);
    }
}

static void change(struct owner *owner)
{
    char error[40];
    const char *text = changed(TEXTS[draw(sizeof TEXTS / sizeof TEXTS[0])]);
    size_t bytes = draw(sizeof error + 1);
    uint64_t now = time_of(owner);
    int result;

    if (owner->qdisc) {
        result = sj_qdisc_reconfigure(owner->qdisc, text, one_in(9) ? NULL : error, bytes);
        CHECK(result != SJ_PANICKED);
        return;
    }
    result = one_in(2) ? sj_link_reconfigure(owner->link, now, text, error, bytes)
             : one_in(2) ? sj_link_change(owner->link, now, draw(20000000), draw(50000000))
                         : sj_link_reset_stats(owner->link, now);
    CHECK(result != SJ_PANICKED);
    owner->now = result >= 0 && now > owner->now ? now : owner->now;
}

static void renew(struct owner *owner)
{
    struct sj_impairments impairments = {size_of(sizeof impairments), 1, draw(5000000), 0.01, 0.01, 0.01};
    const char *text = changed(TEXTS[draw(sizeof TEXTS / sizeof TEXTS[0])]);
    uint64_t rate = one_in(10) ? draw(3) : UINT64_C(1000000) << draw(10);
    struct owner *other = &owners[draw(HANDLES)];
    char error[40];

    sj_qdisc_free(owner->qdisc);
    sj_link_free(owner->link);
    if (other != owner && one_in(4)) {
        *owner = *other;
        owner->qdisc = sj_qdisc_clone(other->qdisc);
        owner->link = sj_link_clone(other->link);
        return;
    }
    memset(owner, 0, sizeof *owner);
    if (one_in(2)) {
        owner->qdisc = sj_qdisc_new(text, rate, draw(9), error, draw(sizeof error + 1));
    } else {
        impairments.loss = one_in(20) ? (double)draw(9) - 4 : impairments.loss;
        owner->link = sj_link_new(text, rate, draw(50000000), 1, one_in(2) ? NULL : &impairments, error,
                                  draw(sizeof error + 1));
    }
}

/* Saves a link or a simulation, and replaces it by what its bytes give: the same one, or an error if
 * some of them were changed or are missing, or are of the other kind. */
static void reload(struct sj_link **link, struct sj_sim **sim)
{
    char error[100];
    const uint8_t *start = NULL;
    size_t count = 0, times = one_in(2) ? draw(4) : 0, length, i, room = draw(sizeof error + 1);
    struct sj_link *other_link = NULL;
    struct sj_sim *other_sim = NULL;
    int result, is_link = link != NULL ? !one_in(20) : one_in(20), is_null = one_in(20);
    uint8_t *copy;

    if (one_in(20)) {
        result = link != NULL ? sj_link_save(*link, NULL, &count, error, room)
                              : sj_sim_save(*sim, &start, NULL, error, room);
        CHECK(result == SJ_NULL);
        return;
    }
    result = link != NULL ? sj_link_save(*link, &start, &count, error, room)
                          : sj_sim_save(*sim, &start, &count, error, room);
    CHECK(result == 0);
    length = one_in(4) ? draw(count + 1) : count;
    copy = malloc(length + 1); /* AddressSanitizer finds a read beyond it */
    CHECK(copy != NULL);
    memcpy(copy, start, length);
    for (i = 0; length > 0 && i < times; i++) {
        copy[one_in(2) ? draw(length) : draw(length) % 64] = (uint8_t)draw(256);
    }
    result = is_link ? sj_link_load(one_in(20) ? NULL : &other_link, is_null ? NULL : copy, length, error, room)
                     : sj_sim_load(one_in(20) ? NULL : &other_sim, is_null ? NULL : copy, length, error, room);
    CHECK(result == 0 || result == SJ_NULL || result == SJ_BAD_SNAPSHOT);
    if (result != 0) {
        CHECK(other_link == NULL && other_sim == NULL);
        refused[is_link ? 0 : 1]++;
    } else {
        CHECK(is_link == (link != NULL) && length == count && memcmp(copy, start, count) == 0);
        loaded[is_link ? 0 : 1]++;
        if (is_link) {
            CHECK(sj_link_next_poll(other_link) == sj_link_next_poll(*link));
            sj_link_free(*link);
            *link = other_link;
        } else {
            CHECK(sj_sim_now(other_sim) == sj_sim_now(*sim));
            sj_sim_free(*sim);
            *sim = other_sim;
        }
    }
    free(copy);
}

static void simulate(struct sj_sim **sim)
{
    char error[100];

    if (*sim == NULL || one_in(30)) {
        sj_sim_free(*sim);
        *sim = one_in(5) ? sj_sim_clone(sim == sims ? sims[1] : sims[0])
                         : sj_sim_new(changed(SCENARIO), error, draw(sizeof error + 1));
    } else if (one_in(8)) {
        reload(NULL, sim);
    } else if (one_in(8)) {
        const char *json = sj_sim_result(*sim, error, sizeof error);
        CHECK(json != NULL ? json[0] == '{' && json[strlen(json) - 1] == '}' : error[0] != 0);
    } else {
        uint64_t until = sj_sim_now(*sim) + draw(30000000) - (one_in(9) ? 30000000 : 0);
        CHECK(sj_sim_run_until(*sim, until) != SJ_PANICKED);
    }
}

int main(int count, char **words)
{
    long calls = count > 1 ? atol(words[1]) : 40000, pushed = 0;
    size_t i;

    state = count > 2 ? (uint64_t)atoll(words[2]) : 1;
    for (; calls > 0; calls--) {
        struct owner *owner = &owners[draw(HANDLES)];
        uint64_t kind = draw(100);
        if ((owner->qdisc == NULL && owner->link == NULL) || kind < 2) {
            renew(owner);
        } else if (kind < 45) {
            push(owner);
            pushed++;
        } else if (kind < 80) {
            pop(owner);
        } else if (kind < 90) {
            drops(owner);
        } else if (kind < 92) {
            look(owner);
        } else if (kind < 94 && owner->link) {
            reload(&owner->link, NULL);
        } else if (kind < 97) {
            change(owner);
        } else {
            simulate(&sims[draw(2)]);
        }
    }
    CHECK(pushed > 0);
    for (i = 0; i < 2; i++) {
        CHECK(loaded[i] > 0 && refused[i] > 0);
    }
    for (i = 0; i < HANDLES; i++) {
        sj_qdisc_free(owners[i].qdisc);
        sj_link_free(owners[i].link);
    }
    sj_sim_free(sims[0]);
    sj_sim_free(sims[1]);
    puts("passed");
    return 0;
}
