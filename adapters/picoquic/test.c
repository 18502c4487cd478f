/* Test of the adapter, with the stub or with picoquic's own link: offers 1.5 times the rate of a link
 * of 10 Mbit/s for 8 s, and checks what the discipline has decided. */
#include "sojourn_aqm.h"

#include <netinet/in.h>
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

#define PACKETS 12000

struct outcome {
    unsigned delivered, marked, thin;
    uint64_t delay_max, thin_delay_max; /* microseconds in the queue, after 4 s */
};

static uint64_t sent_at[PACKETS + 1];

static void receive(picoquictest_sim_link_t *link, uint64_t now, struct outcome *outcome)
{
    picoquictest_sim_packet_t *packet;
    while ((packet = picoquictest_sim_link_dequeue(link, now)) != NULL) {
        int is_thin = ((const struct sockaddr_in *)(const void *)&packet->addr_from)->sin_port == 1;
        uint64_t n, delay;
        memcpy(&n, packet->bytes, sizeof n);
        delay = packet->arrival_time - sent_at[n];
        outcome->delivered++;
        outcome->marked += packet->ecn_mark == 3;
        outcome->thin += is_thin;
        if (n > PACKETS / 2) {
            uint64_t *worst = is_thin ? &outcome->thin_delay_max : &outcome->delay_max;
            *worst = delay > *worst ? delay : *worst;
        }
        free(packet);
    }
}

/* A packet of 1,250 bytes each 2/3 ms; one in 20 is of a second flow. */
static struct outcome run(const char *discipline, uint8_t ecn)
{
    struct outcome outcome = {0, 0, 0, 0, 0};
    char error[100];
    picoquictest_sim_link_t *link = picoquictest_sim_link_create(0.01, 20000, NULL, 0, 0);
    uint64_t at = 0, now = 0, n = 0, dropped;

    CHECK(sojourn_aqm_configure(link, "codle", 1, error, sizeof error) == -1);
    CHECK(strstr(error, "codel") != NULL && link->aqm_state == NULL);
    CHECK(sojourn_aqm_configure(link, "droptail", 1, error, sizeof error) == 0);
    CHECK(sojourn_aqm_configure(link, discipline, 1, error, sizeof error) == 0); /* replaces it */
    while (n < PACKETS) {
        now = picoquictest_sim_link_next_admission(link, now, at);
        now = picoquictest_sim_link_next_arrival(link, now);
        if (now == at) {
            picoquictest_sim_packet_t *packet = picoquictest_sim_link_create_packet();
            struct sockaddr_in *from = (void *)&packet->addr_from;
            memset(&packet->addr_from, 0, sizeof packet->addr_from);
            memset(&packet->addr_to, 0, sizeof packet->addr_to);
            packet->addr_to.ss_family = from->sin_family = AF_INET;
            from->sin_port = ++n % 20 == 0;
            memcpy(packet->bytes, &n, sizeof n);
            packet->length = 1250;
            packet->ecn_mark = ecn;
            sent_at[n] = now;
            picoquictest_sim_link_submit(link, packet, now);
            at += 667;
        }
        picoquictest_sim_link_admit_pending(link, now);
        receive(link, now, &outcome);
    }
    dropped = link->packets_dropped;
    CHECK(outcome.delivered + dropped <= PACKETS);
    CHECK(ecn == 0 || dropped == 0 || outcome.marked > 0);
    picoquictest_sim_link_delete(link); /* frees the packets in it, as AddressSanitizer checks */
    return outcome;
}

int main(void)
{
    /* 100 packets take 100 ms, and 20 ms to arrive. */
    struct outcome full = run("droptail(limit=100p)", 0);
    struct outcome marking = run("codel(limit=1000p,ecn=true)", 2);
    struct outcome fair = run("fq_codel(variant=linux)", 0);

    CHECK(full.delivered > 7700 && full.delivered < 8010 && full.marked == 0);
    CHECK(full.delay_max > 118000 && full.delay_max < 124000 && full.thin_delay_max > 110000);
    CHECK(marking.delivered > 7700 && marking.marked > 100);
    /* The queue of the thin flow is its own. */
    CHECK(fair.delivered > 7700 && fair.thin > 590 && fair.thin_delay_max < 27000);
    CHECK(fair.delay_max > 100000);
    puts("passed");
    return 0;
}
