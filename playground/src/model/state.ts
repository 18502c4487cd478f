/** State of the page: everything that the address holds. */

import type { Json } from "../engine/module";
import type { RecordedLink, RecordedTraffic } from "./recorded";

/** What of the line can change in a running simulation. */
export interface Line {
  /** Rate, one-way. */
  readonly rate: string;
  /** Random part of the delay, and loss probability, of both directions that are links. */
  readonly jitter: string;
  readonly loss: string;
}

/** Change of a running simulation. */
export interface Change {
  readonly atMs: number;
  /** New values of the line. */
  readonly line?: Partial<Line>;
  /** New parameters of the discipline. */
  readonly params?: Readonly<Record<string, string>>;
}

export interface Pane {
  readonly qdisc: string;
  /** Parameters from the start on. `limit` is the buffer of the line unless it is set. */
  readonly params: Readonly<Record<string, string>>;
  readonly changes: readonly Change[];
}

export interface Traffic {
  readonly kind: string;
  readonly count: number;
  /** True if the data cross the return link, and the acknowledgements the link that is shown. */
  readonly back?: boolean;
}

/** The other direction of the line: acknowledgements return on it. */
export interface ReturnLink {
  readonly rate: string;
  readonly buffer: string;
  readonly qdisc: string;
}

/** Scenario of a file, of which the page sets the discipline of one link. */
export interface FileScenario {
  readonly name: string;
  readonly link: string;
  readonly scenario: { readonly [key: string]: Json };
}

/** With the line at the start. */
export interface State extends Line {
  readonly rtt: string;
  readonly buffer: string;
  /** Without it acknowledgements return after a delay, without a queue. */
  readonly back?: ReturnLink | undefined;
  readonly traffic: readonly Traffic[];
  readonly panes: readonly Pane[];
  readonly seed: number;
  /** Simulated time per time; Infinity for as fast as possible. */
  readonly speed: number;
  readonly file?: FileScenario | undefined;
  /** Recorded rates or delays of the link that is shown. */
  readonly trace?: RecordedLink | undefined;
  /** Recorded packets. */
  readonly recorded?: RecordedTraffic | undefined;
  readonly story?: string;
  readonly step?: number;
}

export const PANES_MAX = 4;

/** Speeds that the page offers. */
export const SPEEDS = [0.1, 1, 10, Number.POSITIVE_INFINITY] as const;

export function pane(qdisc: string, params: Record<string, string> = {}): Pane {
  return { qdisc, params, changes: [] };
}

/** Three uploads and a call on an uplink with a deep buffer. */
export const HOME: State = {
  rate: "10mbit",
  rtt: "50ms",
  buffer: "300kB",
  jitter: "0ms",
  loss: "0",
  traffic: [
    { kind: "upload", count: 3 },
    { kind: "call", count: 1 },
  ],
  panes: [pane("droptail"), pane("fq_codel")],
  seed: 1,
  speed: 1,
};

/** Return link that the page adds. */
export const RETURN: ReturnLink = { rate: "50mbit", buffer: "300kB", qdisc: "droptail" };

/** Parameters of a pane now, all changes made. */
export function currentParams(of: Pane): Record<string, string> {
  return Object.assign({}, of.params, ...of.changes.map((change) => change.params ?? {})) as Record<string, string>;
}

/** Line of a pane now. */
export function currentLine({ rate, jitter, loss }: State, of: Pane): Line {
  return Object.assign({ rate, jitter, loss }, ...of.changes.map((change) => change.line ?? {})) as Line;
}

/** Changes of the line, which hold for another discipline too. */
export function lineChanges(of: Pane | undefined): Change[] {
  return (of?.changes ?? []).flatMap(({ atMs, line }) => (line === undefined ? [] : [{ atMs, line }]));
}

/** State in which all changes hold from the start on. */
export function folded(state: State): State {
  const first = state.panes[0];
  const line = first === undefined ? {} : currentLine(state, first);
  return { ...state, ...line, panes: state.panes.map((of) => ({ ...of, params: currentParams(of), changes: [] })) };
}

/** State with another pane `i`. */
export function withPane(state: State, i: number, to: Pane): State {
  return { ...state, panes: state.panes.map((of, j) => (i === j ? to : of)) };
}
