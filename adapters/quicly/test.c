/* Test of the node with the stub: two flows through 1,250,000 bytes/s, at 1.5 times this rate. */
#include "simulator.h"

#include "sojourn_node.h"

#define CHECK(condition)                                                           \
    do {                                                                           \
        if (!(condition)) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);        \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

/* Counts and frees packets: of the first endpoint, and of the second. */
struct sink {
    struct net_node super;
    struct net_endpoint *second;
    unsigned packets[2];
    double delay_max[2];
};

static void sink_forward(struct net_node *node, struct net_packet *packet)
{
    struct sink *self = (struct sink *)node;
    int i = packet->src == self->second;
    double delay = now - packet->enter_at;
    self->packets[i]++;
    self->delay_max[i] = delay > self->delay_max[i] ? delay : self->delay_max[i];
    net_packet_destroy(packet);
}

static struct sink run(const char *discipline)
{
    struct net_endpoint ends[2] = {0};
    struct net_bottleneck node; /* as the simulator declares it */
    struct sink sink = {.super = {.forward_ = sink_forward}, .second = &ends[1]};
    double next = now;
    unsigned n = 0;

    if (discipline != NULL)
        setenv("SOJOURN", discipline, 1);
    else
        unsetenv("SOJOURN");
    net_bottleneck_init(&node, 1250000, 0.1);
    node.next_node = &sink.super;
    ends[0].addr.sin.sin_addr.s_addr = htonl(1);
    ends[1].addr.sin.sin_addr.s_addr = htonl(2);
    CHECK(isinf(node.super.next_run_at(&node.super)));
    while (n < 6000 || !isinf(node.super.next_run_at(&node.super))) {
        double at = node.super.next_run_at(&node.super);
        CHECK(at >= now);
        if (n < 6000 && next <= at) {
            struct net_packet *packet = calloc(1, sizeof(*packet));
            now = next;
            packet->src = &ends[n++ % 20 == 0];
            packet->size = 1250;
            packet->enter_at = now;
            node.super.forward_(&node.super, packet);
            next += 1 / 1500.;
        } else {
            now = at;
            node.super.run(&node.super);
        }
    }
    CHECK(sink.packets[0] + sink.packets[1] + node.dropped == 6000);
    sj_link_free(node.link);
    return sink;
}

int main(void)
{
    struct sink full = run(NULL), fair = run("fq_codel(variant=linux)");

    CHECK(full.packets[0] + full.packets[1] > 4000 && full.packets[0] + full.packets[1] < 4200);
    CHECK(fabs(full.delay_max[0] - 0.101) < 0.0011); /* 100 packets and the one that is sent */
    CHECK(fair.packets[1] == 300 && fair.delay_max[1] < 0.005); /* the thin flow loses nothing */
    CHECK(fair.delay_max[0] > 0.1);
    fprintf(stderr, "passed\n");
    return 0;
}
