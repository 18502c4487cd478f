/* A link like picoquic's, without losses and jitter, for the test of the adapter. */
#include "picoquic_utils.h"

#include <stdlib.h>

picoquictest_sim_link_t *picoquictest_sim_link_create(double gbps, uint64_t latency_us, uint64_t *loss_mask,
                                                      uint64_t queue_delay_max, uint64_t now)
{
    picoquictest_sim_link_t *link = calloc(1, sizeof *link);
    (void)loss_mask, (void)queue_delay_max;
    link->queue_time = now;
    link->picosec_per_byte = (uint64_t)(8000 / gbps * 1.024 * 1.024);
    link->microsec_latency = latency_us;
    return link;
}

void picoquictest_sim_link_delete(picoquictest_sim_link_t *link)
{
    picoquictest_sim_packet_t *packet;
    while ((packet = link->first_packet) != NULL) {
        link->first_packet = packet->next_packet;
        free(packet);
    }
    if (link->aqm_state != NULL) {
        link->aqm_state->release(link->aqm_state, link);
    }
    free(link);
}

picoquictest_sim_packet_t *picoquictest_sim_link_create_packet(void)
{
    return calloc(1, sizeof(picoquictest_sim_packet_t));
}

void picoquictest_sim_link_admit_pending(picoquictest_sim_link_t *link, uint64_t now)
{
    link->aqm_state->admit_pending(link->aqm_state, link, now);
}

uint64_t picoquictest_sim_link_next_admission(picoquictest_sim_link_t *link, uint64_t now, uint64_t next)
{
    uint64_t at = link->first_packet == NULL ? now : link->queue_time;
    return link->aqm_state->has_pending(link->aqm_state) && at < next ? at : next;
}

uint64_t picoquictest_sim_link_next_arrival(picoquictest_sim_link_t *link, uint64_t now)
{
    return link->first_packet != NULL && link->first_packet->arrival_time < now ? link->first_packet->arrival_time
                                                                                : now;
}

picoquictest_sim_packet_t *picoquictest_sim_link_dequeue(picoquictest_sim_link_t *link, uint64_t now)
{
    picoquictest_sim_packet_t *packet = link->first_packet;
    if (packet == NULL || packet->arrival_time > now) {
        return NULL;
    }
    link->first_packet = packet->next_packet;
    link->last_packet = link->first_packet == NULL ? NULL : link->last_packet;
    return packet;
}

void picoquictest_sim_link_submit(picoquictest_sim_link_t *link, picoquictest_sim_packet_t *packet, uint64_t now)
{
    link->aqm_state->submit(link->aqm_state, link, packet, now);
}

void picoquictest_sim_link_enqueue(picoquictest_sim_link_t *link, picoquictest_sim_packet_t *packet,
                                   uint64_t now, int drop)
{
    uint64_t start = now > link->queue_time ? now : link->queue_time;
    if (drop) {
        link->packets_dropped++;
        free(packet);
        return;
    }
    link->queue_time = start + (link->picosec_per_byte * packet->length >> 20);
    link->packets_sent++;
    packet->arrival_time = link->queue_time + link->microsec_latency;
    packet->next_packet = NULL;
    if (link->last_packet == NULL) {
        link->first_packet = packet;
    } else {
        link->last_packet->next_packet = packet;
    }
    link->last_packet = packet;
}
