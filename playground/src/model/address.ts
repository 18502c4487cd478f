/** The state in the address: `#rate=10mbit&flows=3*upload,1*call&q=droptail&q=codel(target=7ms)@12.5s:rate=5mbit`. */

import { HOME, PANES_MAX, SPEEDS, type Change, type FileScenario, type Line, type Pane, type ReturnLink, type State, type Traffic } from "./state";
import type { RecordedLink, RecordedTraffic } from "./recorded";
import { specOf } from "./specs";
import { kindOf } from "./traffic";

/** State, and the time up to which it ran. */
export interface Place {
  readonly state: State;
  readonly nowMs: number;
  readonly playing: boolean;
}

function settings(params: Readonly<Record<string, string>>): string {
  return Object.entries(params).map(([key, value]) => `${key}=${value}`).join(", ");
}

function writePane(of: Pane): string {
  const params = settings(of.params);
  const changes = of.changes.map((change) => {
    const parts = [settings({ ...change.line }), settings(prefixed(change.params))];
    return `@${change.atMs}ms:${parts.filter((part) => part !== "").join(", ")}`;
  });
  return `${of.qdisc}${params === "" ? "" : `(${params})`}${changes.join("")}`;
}

/** Parameters of a discipline with a dot, so that a parameter called rate is not the rate of the line. */
function prefixed(params: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(params).map(([key, value]) => [`.${key}`, value]));
}

function readSettings(text: string): Record<string, string> {
  const items = text.split(", ").filter((item) => item.includes("="));
  return Object.fromEntries(items.map((item) => [item.slice(0, item.indexOf("=")), item.slice(item.indexOf("=") + 1)]));
}

function readPane(text: string): Pane | undefined {
  const [head = "", ...changes] = text.split("@");
  const match = /^([a-z0-9_]+)(?:\((.*)\))?$/.exec(head);
  if (match === null) return undefined;
  return { qdisc: match[1] ?? "", params: readSettings(match[2] ?? ""), changes: changes.flatMap(readChange) };
}

const LINE_KEYS: ReadonlySet<string> = new Set(["rate", "jitter", "loss"] satisfies (keyof Line)[]);

function readChange(text: string): Change[] {
  const match = /^([\d.]+)ms:(.*)$/.exec(text);
  if (match === null) return [];
  const all = Object.entries(readSettings(match[2] ?? ""));
  const line = Object.fromEntries(all.filter(([key]) => LINE_KEYS.has(key)));
  const rest = all.filter(([key]) => !LINE_KEYS.has(key));
  const params = Object.fromEntries(rest.map(([key, value]) => [key.replace(/^\./, ""), value]));
  const some = (table: object): boolean => Object.keys(table).length > 0;
  return [{ atMs: Number(match[1]), ...(some(line) ? { line } : {}), ...(some(params) ? { params } : {}) }];
}

function readTraffic(text: string): Traffic[] {
  return text.split(",").flatMap((item) => {
    const [count, name = ""] = item.split("*");
    const [kind = "", direction] = name.split(".");
    const known = kindOf(kind) !== undefined && Number(count) >= 1 && Number(count) <= 1000;
    return known ? [{ kind, count: Math.floor(Number(count)), ...(direction === "back" ? { back: true } : {}) }] : [];
  });
}

function readReturn(text: string | null): { back?: ReturnLink } {
  const [rate = "", buffer = "", qdisc = ""] = (text ?? "").split(",");
  return specOf(qdisc) === undefined ? {} : { back: { rate, buffer, qdisc } };
}

function toBase64(text: string): string {
  const bytes = new TextEncoder().encode(text);
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replace(/\+/g, "-").replace(/\//g, "_");
}

function fromBase64(text: string): string {
  const binary = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  return new TextDecoder().decode(Uint8Array.from(binary, (char) => char.charCodeAt(0)));
}

/** Longest recording in an address, characters of JSON. */
const RECORDING_MAX = 60_000;

function fits(value: RecordedLink | RecordedTraffic): boolean {
  return JSON.stringify(value).length <= RECORDING_MAX;
}

/** Name of the recording that is too long for the address. */
export function leftOut({ trace, recorded }: State): string | undefined {
  return [trace, recorded].find((value) => value !== undefined && !fits(value))?.name;
}

/** Writes a place as the fragment of an address, without `#`. */
export function write({ state, nowMs, playing }: Place): string {
  const query = new URLSearchParams();
  if (state.file === undefined) {
    query.set("rtt", state.rtt);
    query.set("buffer", state.buffer);
    if (state.jitter !== HOME.jitter) query.set("jitter", state.jitter);
    if (state.loss !== HOME.loss) query.set("loss", state.loss);
    if (state.back !== undefined) query.set("back", [state.back.rate, state.back.buffer, state.back.qdisc].join(","));
    query.set("flows", state.traffic.map(({ kind, count, back }) => `${count}*${kind}${back ? ".back" : ""}`).join(","));
  }
  query.set("rate", state.rate);
  for (const of of state.panes) query.append("q", writePane(of));
  query.set("seed", String(state.seed));
  query.set("speed", Number.isFinite(state.speed) ? String(state.speed) : "max");
  query.set("t", `${nowMs}ms`);
  if (!playing) query.set("paused", "1");
  if (state.story !== undefined) query.set("story", `${state.story}.${state.step ?? 0}`);
  if (state.file !== undefined) query.set("file", toBase64(JSON.stringify(state.file)));
  for (const [key, value] of [["trace", state.trace], ["packets", state.recorded]] as const) {
    if (value !== undefined && fits(value)) query.set(key, toBase64(JSON.stringify(value)));
  }
  return query.toString().replace(/%2C/g, ",").replace(/%28/g, "(").replace(/%29/g, ")").replace(/%3D/g, "=").replace(/%40/g, "@").replace(/%3A/g, ":").replace(/\*/g, "*");
}

/** Reads the fragment of an address; what it does not say, or says wrongly, is as at home. */
export function read(fragment: string): Place | undefined {
  const query = new URLSearchParams(fragment.replace(/^#/, ""));
  if (!query.has("q")) return undefined;
  const panes = query.getAll("q").flatMap((text) => readPane(text) ?? []).slice(0, PANES_MAX);
  const traffic = readTraffic(query.get("flows") ?? "");
  const recorded = readRecorded(query.get("trace"), query.get("packets"));
  const speedText = query.get("speed") ?? "1";
  const speed = SPEEDS.find((one) => (speedText === "max" ? one === Number.POSITIVE_INFINITY : String(one) === speedText));
  const [story, step] = (query.get("story") ?? "").split(".");
  const seed = Number(query.get("seed") ?? 1);
  const nowMs = Number((query.get("t") ?? "0ms").replace(/ms$/, ""));
  const state: State = {
    rate: query.get("rate") ?? HOME.rate,
    rtt: query.get("rtt") ?? HOME.rtt,
    buffer: query.get("buffer") ?? HOME.buffer,
    jitter: query.get("jitter") ?? HOME.jitter,
    loss: query.get("loss") ?? HOME.loss,
    ...readReturn(query.get("back")),
    traffic: traffic.length > 0 || recorded.recorded !== undefined ? traffic : HOME.traffic,
    panes: panes.length > 0 ? panes : HOME.panes,
    seed: Number.isInteger(seed) && seed >= 0 ? seed : 1,
    speed: speed ?? 1,
    ...(story === undefined || story === "" ? {} : { story, step: Number(step ?? 0) }),
    ...readFile(query.get("file")),
    ...recorded,
  };
  return { state, nowMs: nowMs >= 0 && nowMs <= 3.6e6 ? nowMs : 0, playing: !query.has("paused") };
}

function readFile(text: string | null): { file?: FileScenario } {
  const file = readJson(text) as FileScenario | undefined;
  return typeof file?.link === "string" && typeof file.scenario === "object" ? { file } : {};
}

function readRecorded(trace: string | null, packets: string | null): Pick<State, "trace" | "recorded"> {
  const link = readJson(trace) as RecordedLink | undefined;
  const traffic = readJson(packets) as RecordedTraffic | undefined;
  const whole = Array.isArray(traffic?.there?.flow) && Array.isArray(traffic.back?.flow);
  return { ...(typeof link?.trace === "object" ? { trace: link } : {}), ...(whole ? { recorded: traffic } : {}) };
}

function readJson(text: string | null): unknown {
  try {
    return text === null ? undefined : (JSON.parse(fromBase64(text)) ?? undefined);
  } catch {
    return undefined;
  }
}
