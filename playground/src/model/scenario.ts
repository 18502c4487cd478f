/** Scenario of a pane, and its texts: TOML, Python. */

import type { Step } from "../engine/messages";
import type { Json } from "../engine/module";
import { recordedFlows } from "./recorded";
import { specOf } from "./specs";
import type { Change, Pane, State, Traffic } from "./state";
import { kindOf } from "./traffic";
import { exactTime, parse } from "./units";

export type Table = { [key: string]: Json };

/** Length of a simulation that nobody stops. */
const DURATION = "3600s";
/** Time that is not measured. */
export const WARMUP_MS = 2000;

export const LINK = "bottleneck";
/** Name of the link of the other direction. */
export const RETURN_LINK = "return";

/** Name of the link whose queue is shown. */
export function linkOf(state: State): string {
  return state.file?.link ?? LINK;
}

/** Discipline of a pane as a table. */
export function qdiscOf(state: State, of: Pane): Table {
  return { ...(state.file === undefined ? buffered(of.qdisc, state.buffer) : { name: of.qdisc }), ...of.params };
}

/** Discipline with a buffer, if it has one. */
function buffered(name: string, limit: string): Table {
  const takesLimit = specOf(name)?.params.some((param) => param.name === "limit") ?? false;
  return { name, ...(takesLimit ? { limit } : {}) };
}

function flows(state: State): Table[] {
  const [there, return_] = state.back === undefined ? [[LINK], {}] : [[LINK], { return_path: [RETURN_LINK] }];
  const reverse = { path: [RETURN_LINK], return_path: [LINK] };
  const paths = (back: boolean): Table => ({ ...(back && state.back !== undefined ? reverse : { path: there, ...return_ }), rtt: state.rtt });
  // Without a return link the packets of the other direction have no place.
  const recorded = state.recorded === undefined ? [] : recordedFlows(state.recorded).filter(({ back }) => !back || state.back !== undefined);
  const replayed = recorded.map(({ name, flow, back }) => ({ name, ...flow, ...paths(back) }));
  const groups = state.traffic.map(({ kind, count, back = false }) => {
    const { count: members = 1, ...flow } = (kindOf(kind)?.flow ?? {}) as Table;
    const all = count * Number(members);
    const sources = kind === "web" ? { ...(flow["source"] as Table), sessions: count } : undefined;
    return {
      name: nameOf({ kind, back }),
      ...(sources === undefined && all > 1 ? { count: all } : {}),
      ...flow,
      ...(sources === undefined ? {} : { source: sources }),
      ...paths(back),
    };
  });
  return [...replayed, ...groups];
}

/** Name of a group of flows. */
export function nameOf({ kind, back = false }: Pick<Traffic, "kind" | "back">): string {
  return back ? `${kind}-back` : kind;
}

/** Delays of the two directions: halves of the round-trip time, whose sum it is. */
function delays(rtt: string): [string, string] {
  const seconds = parse(rtt, "duration")?.value;
  if (seconds === undefined) return [rtt, rtt];
  const ns = Math.round(seconds * 1e9);
  const text = (half: number): string => `${half}ns`.replace(/000ns$/, "us").replace(/000us$/, "ms");
  return [text(Math.ceil(ns / 2)), text(Math.floor(ns / 2))];
}

/** True if the links have a wire from the start on: the engine changes jitter and loss only then. */
export function hasWire(state: State, of: Pane): boolean {
  const impaired = of.changes.some(({ line }) => line?.jitter !== undefined || line?.loss !== undefined);
  return impaired || parse(state.jitter, "duration")?.value !== 0;
}

/** Links of the line: the one that is shown, and the one of the other direction. */
function links(state: State, of: Pane): Table {
  const [there, back] = delays(state.rtt);
  const wire = {
    ...(hasWire(state, of) ? { jitter: state.jitter } : {}),
    ...(Number(state.loss) === 0 ? {} : { loss: lossOf(state.loss) }),
  };
  const shown = { [LINK]: { rate: state.rate, delay: there, qdisc: qdiscOf(state, of), ...wire, ...(state.trace === undefined ? {} : { trace: state.trace.trace }) } };
  if (state.back === undefined) return shown;
  const { rate, buffer, qdisc } = state.back;
  return { ...shown, [RETURN_LINK]: { rate, delay: back, qdisc: buffered(qdisc, buffer), ...wire } };
}

/** Loss as the scenario has it: a number, or the text of a share. */
function lossOf(text: string): Json {
  return Number.isFinite(Number(text)) ? Number(text) : text;
}

/** Change of a scenario without its time; jitter and loss hold for both directions. */
export function changeOf(state: State, { line = {}, params }: Omit<Change, "atMs">): Table {
  const { rate, jitter, loss } = line;
  const wire = { ...(jitter === undefined ? {} : { jitter }), ...(loss === undefined ? {} : { loss: lossOf(loss) }) };
  const shown = { ...(rate === undefined ? {} : { rate }), ...wire, ...(params === undefined ? {} : { qdisc: params }) };
  const back = state.back === undefined || Object.keys(wire).length === 0 ? {} : { [RETURN_LINK]: wire };
  return { links: { [linkOf(state)]: shown, ...back } };
}

/** Changes of a pane, to be repeated when it starts anew. */
export function stepsOf(state: State, of: Pane): Step[] {
  return of.changes.map((change) => ({ atMs: change.atMs, change: changeOf(state, change) }));
}

/** Scenario of pane `i` as data, without the changes made by hand. */
export function scenarioOf(state: State, of: Pane): Table {
  if (state.file !== undefined) return fileScenario(state, of);
  return {
    name: "playground",
    duration: DURATION,
    warmup: `${WARMUP_MS / 1000}s`,
    seed: state.seed,
    links: links(state, of),
    flows: flows(state),
  };
}

function fileScenario(state: State, of: Pane): Table {
  const { scenario, link } = state.file!;
  const { sample: _, packet_log: __, ...rest } = scenario;
  const links = rest["links"] as Record<string, Table>;
  const changed = { ...links[link], rate: state.rate, qdisc: qdiscOf(state, of) };
  return { ...rest, seed: state.seed, links: { ...links, [link]: changed } };
}

/** Scenario of a pane up to `nowMs`, with the changes made by hand: what the command runs. */
export function exported(state: State, of: Pane, nowMs: number): Table {
  const scenario = scenarioOf(state, of);
  const end = parse(String(scenario["duration"]), "duration")?.value ?? 0;
  const run = nowMs > 0 && nowMs < end * 1000 ? { duration: exactTime(nowMs) } : {};
  const steps = stepsOf(state, of).filter(({ atMs }) => atMs < nowMs);
  const own = (scenario["changes"] as Table[] | undefined) ?? [];
  const changes = [...own, ...steps.map(({ atMs, change }) => ({ at: exactTime(atMs), ...(change as Table) }))];
  return { ...scenario, ...run, ...(changes.length > 0 ? { changes } : {}) };
}

function inline(value: Json): string {
  if (value === null) return '""';
  if (Array.isArray(value)) return `[${value.map(inline).join(", ")}]`;
  if (typeof value === "object") {
    const items = Object.entries(value).map(([key, item]) => `${bare(key)} = ${inline(item)}`);
    return items.length === 0 ? "{}" : `{ ${items.join(", ")} }`;
  }
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

function bare(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key);
}

function pairs(table: Table): string {
  return Object.entries(table).map(([key, value]) => `${bare(key)} = ${inline(value)}\n`).join("");
}

/** A scenario as TOML. */
export function toToml(scenario: Table): string {
  const { links, flows, changes, ...head } = scenario;
  let text = pairs(head);
  for (const [name, link] of Object.entries((links ?? {}) as Table)) {
    text += `\n[links.${bare(name)}]\n${pairs(link as Table)}`;
  }
  for (const flow of (flows ?? []) as Table[]) text += `\n[[flows]]\n${pairs(flow)}`;
  for (const change of (changes ?? []) as Table[]) text += `\n[[changes]]\n${pairs(change)}`;
  return text;
}

function python(value: Json): string {
  if (value === null) return "None";
  if (value === true || value === false) return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${python(item)}`).join(", ")}}`;
  }
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

const PYTHON_CLASS: Record<string, string> = { links: "Link", flows: "Flow", changes: "Change" };

function call(name: string, table: Table, indent: string): string {
  const items = Object.entries(table).map(([key, value]) => `${indent}    ${key}=${python(value)},\n`);
  return `sj.${name}(\n${items.join("")}${indent})`;
}

/** A scenario as Python code that runs it. */
export function toPython(scenario: Table): string {
  const { links, flows, changes, ...head } = scenario;
  let text = "import sojourn as sj\n\nscenario = sj.Scenario(\n";
  for (const [key, value] of Object.entries(head)) text += `    ${key}=${python(value)},\n`;
  text += "    links={\n";
  for (const [name, link] of Object.entries(links as Table)) {
    text += `        ${JSON.stringify(name)}: ${call(PYTHON_CLASS["links"]!, link as Table, "        ")},\n`;
  }
  text += "    },\n";
  for (const [key, list] of [["flows", flows], ["changes", changes]] as const) {
    if (list === undefined) continue;
    text += `    ${key}=[\n`;
    for (const item of list as Table[]) text += `        ${call(PYTHON_CLASS[key]!, item, "        ")},\n`;
    text += "    ],\n";
  }
  return `${text})\nresult = sj.simulate(scenario)\nprint(result)\n`;
}

/** State for a scenario of a file, whose first link on a path is shown. */
export function fromFile(state: State, name: string, scenario: Table): State {
  const links = (scenario["links"] ?? {}) as Record<string, Table>;
  const first = ((scenario["flows"] ?? []) as Table[]).flatMap((flow) => (flow["path"] as string[] | undefined) ?? []);
  const link = LINK in links ? LINK : (first.find((path) => path in links) ?? Object.keys(links)[0]);
  const of = link === undefined ? undefined : links[link];
  if (link === undefined || of === undefined) throw new Error(`${name}: links: there is no link`);
  const qdisc = of["qdisc"] ?? "droptail";
  const rate = String(of["rate"] ?? state.rate);
  const own = { ...disciplineOf(qdisc), changes: [] };
  const other = own.qdisc === "fq_codel" ? "droptail" : "fq_codel";
  const panes = [own, { qdisc: other, params: {}, changes: [] }];
  const { story: _, step: __, trace: ___, recorded: ____, ...rest } = state;
  return { ...rest, rate, panes, seed: Number(scenario["seed"] ?? 1), file: { name, link, scenario } };
}

/** Name and parameters of a discipline, given as a table or as `name(key=value, ...)`. */
export function disciplineOf(qdisc: Json): { qdisc: string; params: Record<string, string> } {
  if (typeof qdisc === "object" && qdisc !== null && !Array.isArray(qdisc)) {
    const { name, ...params } = qdisc;
    return { qdisc: String(name), params: Object.fromEntries(Object.entries(params).map(([key, value]) => [key, textOf(value)])) };
  }
  const [, name = "", inside = ""] = /^\s*([\w-]+)\s*(?:\((.*)\))?\s*$/.exec(String(qdisc)) ?? [];
  const settings = inside.split(",").filter((item) => item.includes("="));
  const params = Object.fromEntries(settings.map((item) => item.split("=", 2).map((part) => part.trim()) as [string, string]));
  return { qdisc: name.toLowerCase().replace(/-/g, "_"), params };
}

function textOf(value: Json): string {
  return Array.isArray(value) ? value.join(" ") : String(value);
}

/** Bytes of the buffer of a line, for the scale of the queue. */
export function bufferBytes(state: State, of: Pane): number {
  const text = currentLimit(of) ?? state.buffer;
  const size = parse(text, "size");
  const rate = parse(state.rate, "rate")?.value ?? 1e7;
  if (size !== undefined) return size.packets ? size.value * 1500 : size.value;
  const time = parse(text, "duration");
  return time === undefined ? 300_000 : (time.value * rate) / 8;
}

function currentLimit(of: Pane): string | undefined {
  return of.changes.reduce<string | undefined>((limit, change) => change.params?.["limit"] ?? limit, of.params["limit"]);
}
