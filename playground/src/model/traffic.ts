/** Kinds of traffic that the page offers: groups of flows of a scenario. */

import type { Json } from "../engine/module";
import type { Traffic } from "./state";

export interface TrafficKind {
  readonly name: string;
  /** Words for the menu. */
  readonly label: string;
  /** Flow of a scenario without name, count, path and rtt. */
  readonly flow: { readonly [key: string]: Json };
}

const START = "uniform(0s, 1s)";
const bulk = (tcp: Json): { [key: string]: Json } => ({ source: { name: "bulk", start: START }, tcp });

export const TRAFFIC: readonly TrafficKind[] = [
  { name: "call", label: "voice call (UDP, 64 kbit/s)", flow: { source: { name: "cbr", rate: "64kbit", packet: "200B" } } },
  { name: "upload", label: "upload (CUBIC)", flow: bulk("cubic") },
  { name: "reno", label: "upload (Reno)", flow: bulk("reno") },
  { name: "bbr", label: "upload (BBR)", flow: bulk("bbr") },
  { name: "bbr3", label: "upload (BBRv3)", flow: bulk("bbr3") },
  { name: "prague", label: "upload (Prague, L4S)", flow: bulk("prague") },
  { name: "dctcp", label: "upload (DCTCP)", flow: bulk("dctcp") },
  {
    name: "short",
    label: "photos of 100 kB, one after the other",
    flow: { source: { name: "transfers", size: "100kB", gap: "exponential(1s)", start: START }, tcp: "cubic" },
  },
  {
    name: "web",
    label: "web users",
    flow: { source: { name: "web", sessions: 1, objects: 10, page_gap: "exponential(3s)" }, tcp: "cubic" },
  },
  { name: "video", label: "video (adaptive)", flow: { source: { name: "video", start: START }, tcp: "cubic" } },
  { name: "meeting", label: "video call (adapts by GCC)", flow: { source: { name: "call" } } },
  {
    name: "game",
    label: "game (UDP, 60 small packets a second)",
    flow: { source: { name: "cbr", rate: "58kbit", packet: "120B", jitter: 0.3 } },
  },
  {
    name: "burst",
    label: "bursts (UDP, on and off)",
    flow: { source: { name: "onoff", rate: "5mbit", packet: "1000B", on: "100ms", off: "900ms" } },
  },
  {
    name: "incast",
    label: "40 answers at once, once a second",
    flow: { count: 40, source: { name: "incast", size: "20kB", gap: "1s" }, tcp: "cubic" },
  },
];

export function kindOf(name: string): TrafficKind | undefined {
  return TRAFFIC.find((kind) => kind.name === name);
}

/** Traffic with group `i` in the other direction; a group that is there already gets its flows. */
export function turned(traffic: readonly Traffic[], i: number): readonly Traffic[] {
  const { kind, count, back = false } = traffic[i]!;
  const there = traffic.findIndex((one) => one.kind === kind && (one.back ?? false) !== back);
  if (there < 0) return traffic.map((one, j) => (j === i ? { kind, count, ...(back ? {} : { back: true }) } : one));
  return traffic.map((one, j) => (j === there ? { ...one, count: one.count + count } : one)).filter((_, j) => j !== i);
}
