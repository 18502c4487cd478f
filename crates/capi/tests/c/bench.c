/* Cost of the border: ns of processor time per packet, the best of 100 runs of 50,000 packets in 7
 * flows, 20 packets deep: three calls for each packet, and in bursts of 32. The other side is
 * examples/rust_side.rs. */

#include "sojourn.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define PACKETS 50000u
#define DEPTH 20u

static double ns_per_packet(const char *text, unsigned burst)
{
    double best = 1e9;
    int run;

    for (run = 0; run < 100; run++) {
        struct sj_qdisc *qdisc = sj_qdisc_new(text, 1000000000, 1, NULL, 0);
        struct sj_packet in[32], out[32];
        uint64_t now = 0, sum = 0;
        unsigned i, k;
        clock_t start;
        double ns;

        memset(in, 0, sizeof in);
        for (k = 0; k < 32; k++) {
            in[k].size = out[k].size = sizeof in[k];
            in[k].len = 1250;
        }
        for (i = 0; i < DEPTH; i++) {
            sj_qdisc_enqueue(qdisc, now, &in[0]);
        }
        start = clock();
        for (i = 0; i < PACKETS; i += burst) {
            now += 10000 * burst;
            for (k = 0; k < burst; k++) {
                in[k].hash = in[k].flow = (i + k) % 7;
                in[k].cookie = i + k;
            }
            if (burst == 1) {
                sj_qdisc_enqueue(qdisc, now, in);
                sj_qdisc_dequeue(qdisc, now, out);
            } else {
                sj_qdisc_enqueue_burst(qdisc, now, in, burst);
                sj_qdisc_dequeue_burst(qdisc, now, out, burst);
            }
            while (sj_qdisc_next_dropped(qdisc, &out[0]) == 1) {
            }
            sum += out[0].cookie;
        }
        ns = 1e9 * (double)(clock() - start) / CLOCKS_PER_SEC / PACKETS;
        best = ns < best && sum > 0 ? ns : best;
        sj_qdisc_free(qdisc);
    }
    return best;
}

int main(void)
{
    const char *const texts[] = {"droptail", "codel", "fq_codel", "pie", "dualpi2"};
    size_t i;

    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        printf("%s C %.1f\n", texts[i], ns_per_packet(texts[i], 1));
        printf("%s bursts %.1f\n", texts[i], ns_per_packet(texts[i], 32));
    }
    return 0;
}
