"""Reasons for the tests of the kernel that are not equal, by their identifiers."""

QUEUES = (
    "Linux refuses it on a device with one hardware queue; a script does not say how many there are"
)
BANDS = "multiq has a band for each hardware queue; a script does not say how many there are"
MTU = (
    "Linux takes maxpkt from the MTU of the device and refuses it; a script of tc does not say the "
    "MTU"
)
SCHEDULE = "taprio is known by its name only; its words are not read, so no value is refused"
TEQL = (
    "teql0 joins several devices, which must exist when the qdisc is made; it is refused as unknown"
)
SHOWN_BURST = (
    "tc prints the burst with the overhead and the cells of a packet of that size; ours keeps the "
    "burst of the command"
)
GAINS = (
    "the kernel rounds the gains down once when it stores them and once when tc reads them; ours "
    "rounds once, as for the queue itself"
)
OWN_DEFAULTS = (
    "step, min_qlen_step and classic_protection are defaults of the kernel, which tc does not "
    "send; here they are defaults of the discipline"
)

REASONS = {
    "be0f": QUEUES,
    "45a9": QUEUES,
    "1329": QUEUES,
    "20ba": BANDS,
    "85ee": MTU,
    "ddfa": MTU,
    "0a85": SCHEDULE,
    "6f62": SCHEDULE,
    "831f": SCHEDULE,
    "39b4": SCHEDULE,
    "e8a1": SCHEDULE,
    "84a0": TEQL,
    "7734": TEQL,
    "34a9": TEQL,
    "6289": TEQL,
    "c975": SHOWN_BURST,
    "948c": SHOWN_BURST,
    "2130": GAINS,
    "90c1": GAINS,
    "a4c7": OWN_DEFAULTS,
    "5439": "tc does not print the name of a table of delays, so the pattern has none to compare",
    "6472": "the weight of RED in sfq, which tc computes; an import names RED in sfq as lost",
}
"""Reason of each test."""
