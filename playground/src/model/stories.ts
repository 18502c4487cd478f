/** Guided stories: presets with a few steps. Each step has something to do and something to notice. */

import { HOME, pane, withPane, type FileScenario, type Pane, type State, type Traffic } from "./state";

export interface StoryStep {
  /** What to look at. */
  readonly say: string;
  /** Text of the button, and what it does. */
  readonly act: string;
  readonly set: (state: State) => State;
  /** What to notice afterwards. */
  readonly notice: string;
}

export interface Story {
  readonly name: string;
  readonly title: string;
  readonly start: State;
  readonly steps: readonly StoryStep[];
}

function setting(traffic: readonly Traffic[], panes: readonly Pane[], line: Partial<State> = {}): State {
  return { ...HOME, traffic, panes, ...line };
}

function flows(...list: readonly (readonly [number, string])[]): Traffic[] {
  return list.map(([count, kind]) => ({ count, kind }));
}

/** Sets parameters of one pane from the start on. */
function params(i: number, values: Record<string, string>): (state: State) => State {
  return (state) => {
    const of = state.panes[i];
    return of === undefined ? state : withPane(state, i, { ...of, params: { ...of.params, ...values } });
  };
}

const line = (values: Partial<State>) => (state: State): State => ({ ...state, ...values });
const traffic = (...list: readonly (readonly [number, string])[]) => line({ traffic: flows(...list) });
const panes = (...list: readonly Pane[]) => line({ panes: list });

/** Link of the paper on HRED: 300 flows, and `count` more from 30 s to 80 s. */
function joining(count: number): FileScenario {
  const tcp = { name: "newreno", profile: "ns2", packet: "500B", receive_window: "10000p" };
  const flow = { path: ["bottleneck"], rtt: "uniform(40ms, 200ms)", tcp };
  const scenario = {
    duration: "130s",
    warmup: "10s",
    links: { bottleneck: { rate: "45mbit", delay: "1ms", qdisc: "hred" } },
    flows: [
      { name: "ftp", count: 300, ...flow, source: { name: "bulk", start: "uniform(0s, 10s)" } },
      { name: "more", count, ...flow, source: { name: "bulk", start: "30s", stop: "80s" } },
    ],
  };
  return { name: "HRED, figure 11", link: "bottleneck", scenario };
}

export const STORIES: readonly Story[] = [
  {
    name: "bufferbloat",
    title: "Bufferbloat",
    start: setting(flows([3, "upload"], [1, "call"]), [pane("droptail")]),
    steps: [
      {
        say: "Three uploads fill the buffer, and the call waits behind them.",
        act: "Halve the buffer",
        set: line({ buffer: "150kB" }),
        notice: "The delay halves. The use of the link stays near 100 %.",
      },
      {
        say: "The buffer has a fixed number of bytes, so its delay depends on the rate.",
        act: "Double the buffer",
        set: line({ buffer: "600kB" }),
        notice: "Half a second of delay, and not a bit more throughput.",
      },
      {
        say: "A discipline decides earlier than the buffer does.",
        act: "Compare with FQ-CoDel",
        set: (state) => ({ ...state, buffer: "300kB", panes: [pane("droptail"), pane("fq_codel")] }),
        notice: "Same senders, same seed: the call no longer waits for the uploads.",
      },
    ],
  },
  {
    name: "red",
    title: "RED is hard to tune",
    start: setting(
      flows([2, "reno"]),
      [pane("red", { min_th: "20p", max_th: "60p", max_p: "0.1", w_q: "0.002" })],
      { buffer: "200kB" },
    ),
    steps: [
      {
        say: "Two flows. RED drops early, between its two thresholds.",
        act: "Forty flows",
        set: traffic([40, "reno"]),
        notice: "The same max_p is too small now: the queue sits above max_th.",
      },
      {
        say: "Drag max_p until forty flows have a queue between the thresholds.",
        act: "max_p = 0.4",
        set: params(0, { max_p: "0.4" }),
        notice: "Forty flows are well.",
      },
      {
        say: "Now go back to two flows with that value.",
        act: "Two flows again",
        set: traffic([2, "reno"]),
        notice: "The link runs empty. One value does not fit both loads; adaptive RED exists for this reason.",
      },
      {
        say: "Adaptive RED moves max_p by itself.",
        act: "Compare with ARED",
        set: (state) => ({ ...state, traffic: flows([40, "reno"]), panes: [...state.panes.slice(0, 1), pane("ared")] }),
        notice: "Watch its variable max_p find its value.",
      },
    ],
  },
  {
    name: "codel",
    title: "CoDel's square root",
    start: setting(flows([1, "upload"]), [pane("codel")]),
    steps: [
      {
        say: "One CUBIC flow. CoDel drops when the delay has been above target for a whole interval.",
        act: "Eight flows",
        set: traffic([8, "upload"]),
        notice: "While the delay stays too long, the n-th drop comes interval / sqrt(n) after the one before it.",
      },
      {
        say: "The dotted line is target. Drag it, or press the button.",
        act: "target = 20 ms",
        set: params(0, { target: "20ms" }),
        notice: "The queue follows. The link is busier and the delay is longer.",
      },
      {
        say: "A short interval reacts before a sender can answer.",
        act: "interval = 20 ms",
        set: params(0, { target: "5ms", interval: "20ms" }),
        notice: "More drops, less use of the link: interval must be at least a round-trip time.",
      },
    ],
  },
  {
    name: "sparse",
    title: "Sparse flows",
    start: setting(flows([10, "upload"], [1, "call"]), [pane("codel")]),
    steps: [
      {
        say: "A call beside ten uploads. CoDel keeps one queue short for all of them.",
        act: "A queue per flow",
        set: panes(pane("codel"), pane("fq_codel")),
        notice: "The call's queue is nearly always empty, so its packets go first.",
      },
      {
        say: "What if a call sends more? A video call adapts to the share that it gets.",
        act: "A video call",
        set: traffic([10, "upload"], [1, "meeting"]),
        notice: "It is not sparse any more: it has a queue of its own, and the same share as an upload.",
      },
    ],
  },
  {
    name: "codel-drr",
    title: "CoDel against DRR",
    start: setting(flows([4, "reno"], [2, "short"], [1, "call"]), [pane("codel"), pane("drr")], { buffer: "200kB" }),
    steps: [
      {
        say: "CoDel shortens one queue. DRR gives each flow a turn and leaves the length to the buffer.",
        act: "2 Mbit/s",
        set: line({ rate: "2mbit" }),
        notice: "CoDel drops more on a slow line; DRR protects the call and lets each upload wait for itself.",
      },
      {
        say: "The same traffic on a fast line.",
        act: "100 Mbit/s",
        set: line({ rate: "100mbit", buffer: "1MB" }),
        notice: "The differences shrink: who delays, who drops.",
      },
      {
        say: "Both ideas together: CoDel in each queue of DRR.",
        act: "Add drr_codel",
        set: (state) => ({ ...state, rate: "10mbit", buffer: "200kB", panes: [pane("codel"), pane("drr"), pane("drr_codel")] }),
        notice: "Short queues, and no flow waits for another.",
      },
    ],
  },
  {
    name: "ewfq",
    title: "EWFQ's match and hit",
    start: setting(flows([4, "reno"], [1, "burst"]), [pane("ewfq", { limit: "120kB" }), pane("droptail")], { buffer: "120kB" }),
    steps: [
      {
        say: "EWFQ compares an arriving packet with a cache of earlier arrivals. A flow that sends too much matches often.",
        act: "Bursts that do not slow down",
        set: traffic([4, "reno"], [3, "burst"]),
        notice: "The drops of the bursts, not of the well-behaved flows.",
      },
      {
        say: "It needs little memory.",
        act: "A tenth of the buffer",
        set: (state) => params(0, { limit: "12kB" })({ ...state, buffer: "12kB" }),
        notice: "Tail drop now hits everybody; EWFQ still finds the bursts.",
      },
    ],
  },
  {
    name: "hred",
    title: "HRED's control loop",
    start: setting(
      [],
      [
        pane("hred", { limit: "300kB", min_th: "75kB", max_th: "150kB", packet: "500B" }),
        pane("pi", { limit: "300kB", q_ref: "112500B", flows: "100", rtt: "200ms", w: "160", packet: "500B", byte_mode: "true" }),
        pane("blue", { limit: "300kB", d1: "0.0002", d2: "0.00002", freeze: "10ms" }),
      ],
      { rate: "45mbit", buffer: "300kB", speed: 10, file: joining(90) },
    ),
    steps: [
      {
        say: "300 flows; 90 more join at 30 s, as in the paper. HRED moves slope and intercept of its map.",
        act: "Half as many more: 150",
        set: line({ file: joining(150) }),
        notice: "HRED's queue is back in its band within seconds. This is figure 11.",
      },
      {
        say: "PI steers towards one length, BLUE reacts to a full or an empty queue.",
        act: "A tenth more: 30",
        set: line({ file: joining(30) }),
        notice: "Compare how long each takes, and how far it overshoots.",
      },
    ],
  },
  {
    name: "incast",
    title: "Incast",
    start: setting(
      flows([1, "incast"]),
      [pane("droptail"), pane("codel", { target: "500us", interval: "10ms" })],
      { rate: "1gbit", rtt: "200us", buffer: "128kB", speed: 0.1 },
    ),
    steps: [
      {
        say: "Forty servers answer at once. The buffer overflows, and whole flights of packets are lost.",
        act: "A buffer of 1 MB",
        set: line({ buffer: "1MB" }),
        notice: "No drop, no timeout: the answers queue instead.",
      },
      {
        say: "Mark instead of drop, with senders that listen.",
        act: "DCTCP and RED with ECN",
        set: (state) => ({
          ...state,
          traffic: flows([4, "dctcp"]),
          panes: [pane("droptail"), pane("red", { ecn: "true", min_th: "30kB", max_th: "31kB", w_q: "1", max_p: "1" })],
        }),
        notice: "The queue stays at the threshold, and nothing is lost.",
      },
    ],
  },
  {
    name: "pie",
    title: "PIE's burst allowance",
    start: setting(flows([2, "upload"], [1, "burst"]), [pane("pie", { max_burst: "150ms" }), pane("pie", { max_burst: "0s" })]),
    steps: [
      {
        say: "Left, PIE lets the first 150 ms of a burst pass; right, it does not.",
        act: "Only bursts",
        set: traffic([1, "burst"]),
        notice: "Compare the drops of the bursts when the queue was empty before.",
      },
      {
        say: "With uploads the queue is never empty for long, so the allowance is not renewed.",
        act: "Five uploads and bursts",
        set: traffic([5, "upload"], [1, "burst"]),
        notice: "Both panes drop alike.",
      },
    ],
  },
  {
    name: "l4s",
    title: "L4S: two lanes, one link",
    start: setting(flows([1, "prague"], [1, "upload"]), [pane("dualpi2")], { rate: "40mbit", buffer: "1MB", rtt: "20ms" }),
    steps: [
      {
        say: "Prague in the upper lane, CUBIC in the lower one. The mark probabilities are coupled by k = 2.",
        act: "k = 1",
        set: params(0, { coupling_factor: "1" }),
        notice: "Prague is marked less and takes more of the link.",
      },
      {
        say: "The other direction.",
        act: "k = 4",
        set: params(0, { coupling_factor: "4" }),
        notice: "Prague is marked more, and CUBIC takes more.",
      },
      {
        say: "Without a second lane, the slower queue decides the delay of both.",
        act: "Compare with PI2",
        set: (state) => ({ ...state, panes: [pane("dualpi2"), pane("pi2")] }),
        notice: "Prague waits in CUBIC's queue.",
      },
    ],
  },
  {
    name: "cake",
    title: "CAKE's shaper",
    start: setting(flows([8, "upload"], [1, "call"], [1, "web"]), [pane("droptail"), pane("cake")]),
    steps: [
      {
        say: "CAKE has a queue per flow and a shaper of its own.",
        act: "Shape to 9 Mbit/s",
        set: params(1, { bandwidth: "9mbit" }),
        notice: "The link is never quite full, so no queue can form behind CAKE, in a modem.",
      },
      {
        say: "A DSL line carries packets in ATM cells of 53 bytes.",
        act: "Count ATM cells",
        set: params(1, { overhead: "atm 44", bandwidth: "9mbit" }),
        notice: "CAKE sends less, since it counts what the modem adds.",
      },
    ],
  },
  {
    name: "your-line",
    title: "Your line",
    start: setting(flows([2, "upload"], [1, "call"], [2, "web"]), [pane("droptail"), pane("fq_codel"), pane("cake")], { rate: "20mbit" }),
    steps: [
      {
        say: "Type your upload rate and your ping at the top, and pick your traffic.",
        act: "A slow line: 2 Mbit/s",
        set: line({ rate: "2mbit", buffer: "150kB" }),
        notice: "The slower the line, the more a discipline matters.",
      },
      {
        say: "Then take the tc line of the pane that you like, below. The command `sojourn recommend` searches for parameters.",
        act: "A fast line: 100 Mbit/s",
        set: line({ rate: "100mbit", buffer: "1MB" }),
        notice: "sojourn recommend --down 100mbit --up 100mbit --rtt 50ms --traffic home",
      },
    ],
  },
];

export function storyOf(name: string | undefined): Story | undefined {
  return STORIES.find((story) => story.name === name);
}
