/* Discipline of sojourn as the AQM of a simulated link of picoquic. */
#ifndef SOJOURN_AQM_H
#define SOJOURN_AQM_H

#include "picoquic_utils.h"

/* Puts a discipline in its text form, like "fq_codel(variant=linux)", in front of the link. Returns
 * 0, or -1 with a message in `error`. The link owns the discipline. Not for shapers (tbf, htb, cake
 * with a bandwidth), since picoquic does not ask when the next packet is ready. */
int sojourn_aqm_configure(picoquictest_sim_link_t *link, const char *discipline, uint64_t seed,
                          char *error, size_t error_bytes);

#endif
