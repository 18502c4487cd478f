#include "sojourn_aqm.h"

#include <netinet/in.h>
#include <sojourn.h>
#include <stdlib.h>
#include <string.h>

typedef struct st_sojourn_aqm_t {
    picoquictest_aqm_t super; /* picoquic calls these functions */
    struct sj_qdisc *qdisc;
    uint64_t salt;
    uint64_t now; /* of the last call, microseconds */
} sojourn_aqm_t;

static struct sj_packet empty_packet(void)
{
    struct sj_packet p;
    memset(&p, 0, sizeof p);
    p.size = sizeof p;
    return p;
}

static picoquictest_sim_packet_t *body_of(const struct sj_packet *p)
{
    return (picoquictest_sim_packet_t *)(uintptr_t)p->cookie;
}

static uint32_t hash_of(const sojourn_aqm_t *aqm, const picoquictest_sim_packet_t *packet)
{
    uint32_t hash = 0;
    if (packet->addr_from.ss_family == AF_INET) {
        const struct sockaddr_in *from = (const void *)&packet->addr_from;
        const struct sockaddr_in *to = (const void *)&packet->addr_to;
        sj_flow_hash(aqm->salt, (const uint8_t *)&from->sin_addr, (const uint8_t *)&to->sin_addr, 4, 17,
                     ntohs(from->sin_port), ntohs(to->sin_port), &hash);
    } else if (packet->addr_from.ss_family == AF_INET6) {
        const struct sockaddr_in6 *from = (const void *)&packet->addr_from;
        const struct sockaddr_in6 *to = (const void *)&packet->addr_to;
        sj_flow_hash(aqm->salt, from->sin6_addr.s6_addr, to->sin6_addr.s6_addr, 16, 17,
                     ntohs(from->sin6_port), ntohs(to->sin6_port), &hash);
    }
    return hash;
}

static void take_dropped(sojourn_aqm_t *aqm, picoquictest_sim_link_t *link)
{
    struct sj_packet p = empty_packet();
    while (sj_qdisc_next_dropped(aqm->qdisc, &p) == 1) {
        picoquictest_sim_link_enqueue(link, body_of(&p), aqm->now, 1 /* counts and frees it */);
    }
}

static int has_pending(picoquictest_aqm_t *self)
{
    uint64_t packets = 0;
    sj_qdisc_backlog(((sojourn_aqm_t *)self)->qdisc, &packets, NULL);
    return packets > 0;
}

/* Sends what the transmitter can start to send by now. */
static void admit_pending(picoquictest_aqm_t *self, picoquictest_sim_link_t *link, uint64_t now)
{
    sojourn_aqm_t *aqm = (sojourn_aqm_t *)self;
    struct sj_packet p = empty_packet();
    aqm->now = now > aqm->now ? now : aqm->now;
    while (link->queue_time <= aqm->now && sj_qdisc_dequeue(aqm->qdisc, aqm->now * 1000, &p) == 1) {
        picoquictest_sim_packet_t *packet = body_of(&p);
        packet->ecn_mark = (uint8_t)((packet->ecn_mark & ~3) | p.ecn);
        picoquictest_sim_link_enqueue(link, packet, aqm->now, 0);
    }
    take_dropped(aqm, link);
}

static void submit(picoquictest_aqm_t *self, picoquictest_sim_link_t *link,
                   picoquictest_sim_packet_t *packet, uint64_t now)
{
    sojourn_aqm_t *aqm = (sojourn_aqm_t *)self;
    struct sj_packet p = empty_packet();
    admit_pending(self, link, now); /* what was due before */
    p.len = (uint32_t)packet->length;
    p.ecn = packet->ecn_mark & 3;
    p.hash = hash_of(aqm, packet);
    p.cookie = (uint64_t)(uintptr_t)packet;
    if (sj_qdisc_enqueue(aqm->qdisc, aqm->now * 1000, &p) < 0) {
        picoquictest_sim_link_enqueue(link, packet, aqm->now, 1);
    }
    admit_pending(self, link, now);
}

/* The rate of the link has changed: it is the link's, so there is nothing to do. */
static void reset(picoquictest_aqm_t *self, picoquictest_sim_link_t *link, uint64_t now)
{
    (void)self, (void)link, (void)now;
}

static void release(picoquictest_aqm_t *self, picoquictest_sim_link_t *link)
{
    sojourn_aqm_t *aqm = (sojourn_aqm_t *)self;
    struct sj_packet p = empty_packet();
    while (sj_qdisc_dequeue(aqm->qdisc, aqm->now * 1000, &p) == 1) {
        free(body_of(&p));
    }
    take_dropped(aqm, link);
    sj_qdisc_free(aqm->qdisc);
    free(aqm);
    link->aqm_state = NULL;
}

int sojourn_aqm_configure(picoquictest_sim_link_t *link, const char *discipline, uint64_t seed,
                          char *error, size_t error_bytes)
{
    /* picoquic divides picoseconds by 2^20 to get microseconds. */
    const double ps = link->picosec_per_byte > 0 ? (double)link->picosec_per_byte : 1;
    sojourn_aqm_t *aqm = calloc(1, sizeof *aqm);
    if (aqm == NULL) {
        return -1;
    }
    aqm->qdisc = sj_qdisc_new(discipline, (uint64_t)(8e6 * 1048576 / ps), seed, error, error_bytes);
    if (aqm->qdisc == NULL) {
        free(aqm);
        return -1;
    }
    if (link->aqm_state != NULL) {
        link->aqm_state->release(link->aqm_state, link);
    }
    aqm->salt = seed;
    aqm->super = (picoquictest_aqm_t){submit, reset, release, has_pending, admit_pending};
    link->aqm_state = &aqm->super;
    return 0;
}
