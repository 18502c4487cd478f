//! Wrong lines are answered with one line: the word, and what is right.

use sojourn_aqm::tc::parse;

/// A wrong line, and what the answer contains.
const WRONG: &[(&str, &str)] = &[
    ("", "there is no qdisc"),
    ("fq_codle", "unknown qdisc \"fq_codle\", did you mean \"fq_codel\"?"),
    ("tc qdisc add dev eth0 root fq_codle", "did you mean \"fq_codel\"?"),
    ("codell limit 10", "did you mean \"codel\"?"),
    ("FQ_CODEL", "did you mean \"fq_codel\"?"),
    ("droptail limit 10", "in tc it is \"pfifo\""),
    ("pi2", "no qdisc of Linux; write it without \"tc:\""),
    ("wfq", "no qdisc of Linux"),
    ("nonsense", "unknown qdisc \"nonsense\" (known: pfifo, "),
    ("fq_codel targt 5ms", "fq_codel: unknown word \"targt\", did you mean \"target\"?"),
    ("fq_codel lim 100", "\"lim\" is abbreviated, write \"limit\" in full"),
    ("fq_codel limit", "fq_codel.limit: has no value"),
    ("fq_codel limit 1000p", "\"1000p\" is not a whole number: this word takes no unit"),
    ("fq_codel limit 1k", "fq_codel.limit: \"1k\" is not a whole number"),
    ("fq_codel limit -5", "fq_codel.limit: \"-5\" is not a whole number"),
    ("fq_codel limit=1000", "unknown word \"limit=1000\""),
    ("fq_codel target 5mss", "\"5mss\" is not a time; write it like 5ms"),
    ("fq_codel target 5 ms", "fq_codel: unknown word \"ms\""),
    ("fq_codel target fast", "\"fast\" does not start with a number"),
    ("fq_codel target -5ms", "\"-5ms\" is negative"),
    ("fq_codel quantum 1514B/s", "\"1514B/s\" is not a size"),
    ("fq_codel quantum 100", "100 is out of range, allowed: 256 to"),
    ("fq_codel flows 0", "0 is out of range, allowed: 1 to 65536"),
    ("fq_codel flows 100000", "allowed: 1 to 65536"),
    ("fq_codel enc", "unknown word \"enc\", did you mean \"ecn\"?"),
    ("fq_codel ecn true", "unknown word \"true\""),
    ("fq_codel bandwidth 20mbit", "unknown word \"bandwidth\""),
    ("codel flows 10", "codel: unknown word \"flows\""),
    ("codel interval 100min", "\"100min\" is not a time"),
    ("codel target 5ns", "\"5ns\" is not a time"),
    ("pie alpha 0.125", "\"0.125\" is not a whole number"),
    ("pie alpha 40", "40 is out of range, allowed: 1 to 32"),
    ("pie t_update 15ms", "did you mean \"tupdate\"?"),
    ("pie dq_rate", "\"dq_rate\" is abbreviated, write \"dq_rate_estimator\" in full"),
    ("fq_pie ecn_prob 10%", "fq_pie.ecn_prob: \"10%\" is not a whole number"),
    ("red limit 400000", "red.avpkt: is required, like avpkt 1000"),
    ("red avpkt 1000", "red.limit: is required, like limit 400000"),
    ("red limit 400000 avpkt 1000 min 50000 max 40000", "red.max: 40000 is not above min, 50000"),
    ("red limit 400000 avpkt 1000 burst 5", "5 is too small for min: at least 33 packets"),
    ("red limit 400000 avpkt 1000 probability 2%", "\"2%\" is not a probability from 0 to 1"),
    ("red limit 400000 avpkt 1000 probability 2", "is not a probability"),
    ("red limit 400000 avpkt 1000 bandwidth 10k", "\"10k\" is not a rate"),
    ("red limit 400000 avpkt 1000 minimum 3", "unknown word \"minimum\" (known: limit, min,"),
    ("choke limit 1000", "choke.bandwidth: is required, like bandwidth 10mbit"),
    ("choke limit 1000 max 250", "choke.bandwidth: is required, like bandwidth 10mbit"),
    ("choke limit 1000 min 83", "choke.bandwidth: is required, like bandwidth 10mbit"),
    ("red limit 400000 max 90000", "red.avpkt: is required, like avpkt 1000"),
    (
        "red limit 400000 min 30000 avpkt 1000 burst 29",
        "burst: 29 is too small for min: at least 30",
    ),
    ("choke bandwidth 10mbit", "choke.limit: is required"),
    ("sfq divisor 1000", "sfq.divisor: 1000 is not a power of two, like 1024"),
    ("sfq depth 200", "200 is out of range, allowed: 1 to 127"),
    ("sfq perturb 10s", "sfq.perturb: \"10s\" is not a whole number: this word takes no unit"),
    ("sfb rehash 600s", "sfb.rehash: \"600s\" is not a whole number"),
    ("sfb increment 5", "\"5\" is not a probability"),
    ("prio bands 1", "1 is out of range, allowed: 2 to 16"),
    ("prio bands 20", "allowed: 2 to 16"),
    ("prio priomap", "prio.priomap: has no number"),
    ("drr quantum 1514", "drr: unknown word \"quantum\"; it takes none"),
    ("pfifo limit 10mbps", "\"10mbps\" is not a size"),
    ("bfifo limit 100p", "\"100p\" is not a size; write it like 1514 or 32k"),
    ("gred", "gred.vq: is required, like vq 0; the first command is gred setup"),
    ("ets priomap 1 2", "ets.bands: is required, like bands 3"),
    ("htb default 10", "htb: is a property of a link"),
    ("netem delay 10ms", "netem: is a property of a link, not a discipline"),
    ("netem delay 10min", "netem.delay: \"10min\" is not a time"),
    ("netem loss 101%", "netem.loss: \"101%\" is not a percentage"),
    ("netem reorder 25%", "netem.reorder: requires delay"),
    ("tbf rate 10mbit", "tbf.burst: is required, like burst 32k"),
    ("tbf burst 32k latency 50ms", "tbf.rate: is required"),
    ("tbf rate 10mbit burst 32k", "tbf.limit: is required, like limit 100k, or latency 50ms"),
    ("tbf rate 10 mbit burst 32k", "tbf: unknown word \"mbit\""),
    ("tbf rate 10mb burst 32k", "\"10mb\" is not a rate; write it like 20mbit"),
    ("mqprio", "mqprio: is a parent of one qdisc per hardware queue"),
    ("noqueue", "noqueue: has no queue"),
    ("taprio num_tc 3", "taprio: needs a clock that all senders share"),
    ("cake bandwith 20mbit", "cake: unknown word \"bandwith\", did you mean \"bandwidth\"?"),
    ("cake bandwidth 20", "cake"),
    ("cake bandwidth 20mb", "\"20mb\" is not a rate"),
    ("cake diffserv5", "did you mean \"diffserv3\"?"),
    ("dualpi2 coupling 2", "\"coupling\" is abbreviated, write \"coupling_factor\" in full"),
    ("dualpi2 target 15", "dualpi2"),
];

#[test]
fn wrong_lines_are_answered_in_one_line() {
    assert!(WRONG.len() >= 60);
    for (line, answer) in WRONG {
        // A discipline that exists by now accepts lines that are wrong only for its absence.
        let Err(error) = parse(line) else {
            assert!(!answer.contains(' '), "{line:?} is accepted");
            continue;
        };
        let text = error.to_string();
        assert!(text.contains(answer), "{line:?} is answered by {text:?}, not by {answer:?}");
        assert!(!text.contains('\n'));
    }
}
