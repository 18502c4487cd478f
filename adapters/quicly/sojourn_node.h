/* Link of sojourn as a node of quicly's simulator (t/simulator.c), in place of its bottleneck: any
 * discipline behind a rate. Include it in simulator.c in front of the line
 * `static quicly_cid_plaintext_t next_quic_cid;` and link with libsojourn. The discipline is then the
 * environment variable SOJOURN, like "codel(target=5ms)"; the options -b and -q keep their meaning. */
#ifndef SOJOURN_NODE_H
#define SOJOURN_NODE_H

#include <sojourn.h>

struct net_sojourn {
    struct net_node super;
    struct net_node *next_node;
    struct sj_link *link;
    unsigned dropped; /* packets */
};

/* The simulator has seconds, the library nanoseconds. */
static uint64_t net_sojourn_now(void)
{
    return (uint64_t)llround(now * 1e9);
}

static struct net_packet *net_sojourn_packet(const struct sj_packet *p)
{
    return (struct net_packet *)(uintptr_t)p->cookie;
}

static void net_sojourn_free_dropped(struct net_sojourn *self)
{
    struct sj_packet p = {.size = sizeof p};
    while (sj_link_next_undelivered(self->link, &p) == 1) {
        self->dropped++;
        printf("{\"bottleneck\": \"drop\", \"at\": %f, \"packet-size\": %u}\n", now, (unsigned)p.len);
        net_packet_destroy(net_sojourn_packet(&p));
    }
}

static void net_sojourn_forward(struct net_node *_self, struct net_packet *packet)
{
    struct net_sojourn *self = (struct net_sojourn *)_self;
    const struct sockaddr_in *from = &packet->src->addr.sin, *to = &packet->dest.sin;
    struct sj_packet p = {
        .size = sizeof p,
        .len = (uint32_t)packet->size,
        .cookie = (uint64_t)(uintptr_t)packet,
    };
    sj_flow_hash(1, (const uint8_t *)&from->sin_addr, (const uint8_t *)&to->sin_addr, 4, 17,
                 ntohs(from->sin_port), ntohs(to->sin_port), &p.hash);
    if (sj_link_push(self->link, net_sojourn_now(), &p) < 0)
        net_packet_destroy(packet);
    net_sojourn_free_dropped(self);
}

static double net_sojourn_next_run_at(struct net_node *_self)
{
    struct net_sojourn *self = (struct net_sojourn *)_self;
    uint64_t at = sj_link_next_poll(self->link);
    double seconds = at == SJ_NEVER ? INFINITY : (double)at * 1e-9;
    return seconds > now ? seconds : now;
}

static void net_sojourn_run(struct net_node *_self)
{
    struct net_sojourn *self = (struct net_sojourn *)_self;
    struct sj_packet p = {.size = sizeof p};
    while (sj_link_poll(self->link, net_sojourn_now(), &p) == 1)
        self->next_node->forward_(self->next_node, net_sojourn_packet(&p));
    net_sojourn_free_dropped(self);
}

/* Creates the node; ends the program with a message if the discipline is wrong. */
static void net_sojourn_init(struct net_sojourn *self, const char *discipline, double bytes_per_sec)
{
    char error[256];
    *self = (struct net_sojourn){
        .super = {net_sojourn_forward, net_sojourn_next_run_at, net_sojourn_run},
        .link = sj_link_new(discipline, (uint64_t)(8 * bytes_per_sec), 0, 1, NULL, error, sizeof(error)),
    };
    if (self->link == NULL) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
}

/* As the simulator calls its own bottleneck: without SOJOURN, tail drop of `seconds`. Not inlined: the
 * connections keep a pointer to `flow_ctx` of main(), whose scope has ended, so that main() must not
 * get new variables in its place. */
__attribute__((noinline)) static void net_sojourn_init_bottleneck(struct net_sojourn *self, double bytes_per_sec, double seconds)
{
    char droptail[64];
    const char *discipline = getenv("SOJOURN");
    snprintf(droptail, sizeof(droptail), "droptail(limit=%.0fB)", bytes_per_sec * seconds);
    net_sojourn_init(self, discipline != NULL ? discipline : droptail, bytes_per_sec);
}

#define net_bottleneck net_sojourn
#define net_bottleneck_init net_sojourn_init_bottleneck

#endif
