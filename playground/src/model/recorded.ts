/** Recorded links and recorded traffic that are dropped on the page. */

import type { Json } from "../engine/module";
import { isCapture, readCapture, type Packets } from "./capture";

/** Recorded link: the key `trace` of a link, and its mean rate in bit/s if it has rates. */
export interface RecordedLink {
  readonly name: string;
  readonly trace: { readonly [key: string]: Json };
  readonly rate_bps: number | undefined;
}

/** Recorded packets: of the link that is shown, and of the return link. */
export interface RecordedTraffic {
  readonly name: string;
  readonly there: Packets;
  readonly back: Packets;
}

const NONE: Packets = { time_s: [], size_bytes: [], flow: [] };
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?$/i;
/** Bytes of a packet that uses exactly one delivery opportunity of mahimahi. */
const FULL_PACKET_BYTES = 1500;

/** Lines of a file with their numbers, without comments and empty lines. */
function linesOf(text: string): [number, string][] {
  const lines = text.split(/\r?\n/).map((line, i) => [i + 1, line.trim()] as [number, string]);
  return lines.filter(([, line]) => line !== "" && !line.startsWith("#"));
}

/** Table of a CSV file: a list of numbers for each column of `names` that it has. */
function table(name: string, text: string, names: readonly string[]): Record<string, number[]> {
  const [[, head] = [0, ""], ...rows] = linesOf(text);
  const header = head.split(",").map((field) => field.trim());
  const columns: Record<string, number[]> = {};
  for (const column of names.filter((one) => header.includes(one))) {
    const at = header.indexOf(column);
    columns[column] = rows.map(([n, row]) => {
      const field = row.split(",")[at]?.trim() ?? "";
      if (!NUMBER.test(field)) throw new Error(`${name}: line ${n}: ${column}: ${JSON.stringify(field)} is not a number`);
      return Number(field);
    });
  }
  return columns;
}

/** True if a text is a recorded link or recorded packets. */
export function isRecorded(text: string): boolean {
  const first = linesOf(text)[0]?.[1] ?? "";
  return NUMBER.test(first) || /^\s*(t_s|time_s|rate_bps|delay_s|size_bytes|flow)\s*(,|$)/.test(first);
}

/** Reads a recorded link or packets; throws an error with a message for the user. */
export function readRecorded(name: string, text: string): RecordedLink | RecordedTraffic {
  const first = linesOf(text)[0]?.[1] ?? "";
  if (NUMBER.test(first)) return mahimahi(name, text);
  const columns = table(name, text, ["t_s", "rate_bps", "delay_s", "time_s", "size_bytes", "flow"]);
  if ("time_s" in columns && "size_bytes" in columns) return packetTable(name, columns);
  if ("t_s" in columns && ("rate_bps" in columns || "delay_s" in columns)) return linkTable(name, columns);
  throw new Error(`${name}: requires columns t_s with rate_bps or delay_s (a link), or time_s and size_bytes (packets)`);
}

/** Reads a packet capture. */
export function readRecordedCapture(name: string, bytes: Uint8Array): RecordedTraffic {
  return { name, ...readCapture(name, bytes) };
}

export { isCapture };

/** Times of delivery opportunities in ms, which repeat after the last one. */
function mahimahi(name: string, text: string): RecordedLink {
  const moments = linesOf(text).map(([n, line]) => {
    if (!/^\d+$/.test(line)) throw new Error(`${name}: line ${n}: ${JSON.stringify(line)}: a trace of Mahimahi has one whole number of milliseconds per line`);
    return Number(line);
  });
  ascending(name, moments);
  const last = moments.at(-1) ?? 0;
  if (last === 0) throw new Error(`${name}: the last opportunity is at 0: the period must not be zero`);
  return { name, trace: { opportunities_ms: moments }, rate_bps: (moments.length * FULL_PACKET_BYTES * 8 * 1000) / last };
}

function ascending(name: string, times: readonly number[]): void {
  if (times.some((time, i) => i > 0 && time < times[i - 1]!)) throw new Error(`${name}: the times are not in order`);
}

/** Rates and delays, repeated; the last row lasts as long as the row before it, a single row 1 s. */
function linkTable(name: string, columns: Record<string, number[]>): RecordedLink {
  const scaled = (of: number[] | undefined, factor: number): number[] | undefined => of?.map((value) => Math.round(value * factor));
  const times = scaled(columns["t_s"], 1e9) ?? [];
  if (times.length === 0) throw new Error(`${name}: has no rows`);
  ascending(name, times);
  const steps = times.slice(1).map((time, i) => time - times[i]!);
  steps.push(steps.at(-1) ?? 1e9);
  const [rates, delays] = [scaled(columns["rate_bps"], 1), scaled(columns["delay_s"], 1e9)];
  const sent = rates?.reduce((sum, rate, i) => sum + rate * steps[i]!, 0);
  const whole = steps.reduce((sum, step) => sum + step, 0);
  const trace = {
    t_ns: times,
    ...(rates === undefined ? {} : { rate_bps: rates }),
    ...(delays === undefined ? {} : { delay_ns: delays }),
    repeat: `${times.at(-1)! + steps.at(-1)!}ns`,
  };
  return { name, trace, rate_bps: sent === undefined ? undefined : sent / whole };
}

function packetTable(name: string, columns: Record<string, number[]>): RecordedTraffic {
  const { time_s = [], size_bytes = [], flow = time_s.map(() => 0) } = columns;
  if (time_s.length === 0) throw new Error(`${name}: has no rows`);
  ascending(name, time_s);
  return { name, there: { time_s, size_bytes, flow }, back: NONE };
}

/** Groups of flows that send recorded packets. */
export function recordedFlows(of: RecordedTraffic): { name: string; flow: { [key: string]: Json }; back: boolean }[] {
  const group = (packets: Packets, name: string, back: boolean) => {
    const count = packets.flow.reduce((most, flow) => Math.max(most, flow + 1), 1);
    const { time_s, size_bytes, flow } = packets;
    const source = { name: "trace", time_s: [...time_s], size_bytes: [...size_bytes], ...(count > 1 ? { flow: [...flow] } : {}) };
    return { name, flow: { ...(count > 1 ? { count } : {}), source }, back };
  };
  return [group(of.there, "recorded", false), ...(of.back.time_s.length > 0 ? [group(of.back, "recorded-back", true)] : [])];
}
