/* The types of picoquic's simulated link that the adapter uses, with few fields, for its test. */
#ifndef STUB_PICOQUIC_UTILS_H
#define STUB_PICOQUIC_UTILS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

typedef struct st_picoquictest_sim_packet_t {
    struct st_picoquictest_sim_packet_t *next_packet;
    uint64_t arrival_time;
    size_t length;
    struct sockaddr_storage addr_from;
    struct sockaddr_storage addr_to;
    uint8_t ecn_mark;
    uint8_t bytes[1536];
} picoquictest_sim_packet_t;

typedef struct st_picoquictest_sim_link_t picoquictest_sim_link_t;
typedef struct st_picoquictest_aqm_t picoquictest_aqm_t;

struct st_picoquictest_aqm_t {
    void (*submit)(picoquictest_aqm_t *, picoquictest_sim_link_t *, picoquictest_sim_packet_t *, uint64_t);
    void (*reset)(picoquictest_aqm_t *, picoquictest_sim_link_t *, uint64_t);
    void (*release)(picoquictest_aqm_t *, picoquictest_sim_link_t *);
    int (*has_pending)(picoquictest_aqm_t *);
    void (*admit_pending)(picoquictest_aqm_t *, picoquictest_sim_link_t *, uint64_t);
};

struct st_picoquictest_sim_link_t {
    uint64_t queue_time; /* the transmitter is free */
    uint64_t picosec_per_byte;
    uint64_t microsec_latency;
    uint64_t packets_dropped;
    uint64_t packets_sent;
    picoquictest_sim_packet_t *first_packet;
    picoquictest_sim_packet_t *last_packet;
    picoquictest_aqm_t *aqm_state;
};

picoquictest_sim_link_t *picoquictest_sim_link_create(double gbps, uint64_t latency_us, uint64_t *loss_mask,
                                                      uint64_t queue_delay_max, uint64_t now);
void picoquictest_sim_link_delete(picoquictest_sim_link_t *link);
picoquictest_sim_packet_t *picoquictest_sim_link_create_packet(void);
void picoquictest_sim_link_admit_pending(picoquictest_sim_link_t *link, uint64_t now);
uint64_t picoquictest_sim_link_next_admission(picoquictest_sim_link_t *link, uint64_t now, uint64_t next);
uint64_t picoquictest_sim_link_next_arrival(picoquictest_sim_link_t *link, uint64_t now);
picoquictest_sim_packet_t *picoquictest_sim_link_dequeue(picoquictest_sim_link_t *link, uint64_t now);
void picoquictest_sim_link_submit(picoquictest_sim_link_t *link, picoquictest_sim_packet_t *packet, uint64_t now);
void picoquictest_sim_link_enqueue(picoquictest_sim_link_t *link, picoquictest_sim_packet_t *packet,
                                   uint64_t now, int drop);

#endif
