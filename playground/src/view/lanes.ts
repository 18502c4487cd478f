/** How the queue of a discipline is drawn. */

/** One queue, a queue per flow, or the two queues of L4S. */
export type Lanes = "one" | "flow" | "l4s";

const PER_FLOW = /^(drr|wfq|wf2q|scfq|stfq|sfq|fq|ewfq|cake|hhf)(_|$)/;

export function lanesOf(qdisc: string): Lanes {
  if (qdisc === "dualpi2" || qdisc === "curvy_red") return "l4s";
  return PER_FLOW.test(qdisc) ? "flow" : "one";
}
