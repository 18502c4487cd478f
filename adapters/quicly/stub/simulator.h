/* The types of quicly's simulator that the adapter uses, with few fields, for its test. */
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static double now = 1000;

typedef union {
    struct sockaddr sa;
    struct sockaddr_in sin;
} quicly_address_t;

struct net_node;

struct net_packet {
    struct net_endpoint *src;
    quicly_address_t dest;
    size_t size;
    double enter_at;
};

struct net_node {
    void (*forward_)(struct net_node *node, struct net_packet *packet);
    double (*next_run_at)(struct net_node *node);
    void (*run)(struct net_node *node);
};

struct net_endpoint {
    struct net_node super;
    quicly_address_t addr;
};

static void net_packet_destroy(struct net_packet *packet)
{
    free(packet);
}
