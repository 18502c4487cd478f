/**
 * What pages do with the module, for `split.mjs`: every discipline, kind of traffic and step of a
 * story is simulated for some seconds, with a change of the line.
 */
import { scenarioOf, type Table } from "./src/model/scenario";
import { DISCIPLINES } from "./src/model/specs";
import { HOME, pane, type State } from "./src/model/state";
import { STORIES } from "./src/model/stories";
import { TRAFFIC } from "./src/model/traffic";

/** Exports of the module that the training uses. */
interface Module {
  readonly memory: WebAssembly.Memory;
  input(len: number): number;
  output(): number;
  output_len(): number;
  version(): number;
  create(): number;
  remove(handle: number): number;
  layout(handle: number): number;
  advance(handle: number, untilMs: number, frameMs: number): number;
  packets(handle: number): number;
  change(handle: number): number;
  result(handle: number): number;
  parameters(): number;
}

/** Time that is simulated, s: the stories of papers measure from 10 s on. */
const SECONDS = 12;

/** States of the page that the training simulates. */
export function states(): State[] {
  const varied = { ...HOME, jitter: "2ms", loss: "0.01", back: { rate: "1mbit", buffer: "100kB", qdisc: "droptail" } };
  const kinds = TRAFFIC.map(({ name }) => ({ ...HOME, panes: [pane("red")], traffic: [{ kind: name, count: 1 }] }));
  const all: State[] = [varied, ...DISCIPLINES.map(({ name }) => ({ ...HOME, panes: [pane(name)] })), ...kinds];
  for (const { start, steps } of STORIES) {
    let state = start;
    all.push(state);
    for (const step of steps) all.push((state = step.set(state)));
  }
  return all;
}

/** Scenarios of the panes of all states, each once. */
export function scenarios(): Table[] {
  const texts = states().flatMap((state) => state.panes.map((of) => JSON.stringify(scenarioOf(state, of))));
  return [...new Set(texts)].map((text) => JSON.parse(text) as Table);
}

/** Uses the module as pages do. */
export function train(module: Module): void {
  const call = (work: () => number, input = ""): Uint8Array<ArrayBuffer> => {
    const bytes = new TextEncoder().encode(input);
    const at = module.input(bytes.length);
    new Uint8Array(module.memory.buffer, at, bytes.length).set(bytes);
    const done = work();
    const output = new Uint8Array(module.memory.buffer, module.output(), module.output_len()).slice() as Uint8Array<ArrayBuffer>;
    if (done !== 1) throw new Error(new TextDecoder().decode(output));
    return output;
  };
  call(() => module.version());
  for (const scenario of scenarios()) {
    const { rate, qdisc, jitter } = (scenario["links"] as Record<string, Table>)["bottleneck"]!;
    const line = { rate: "2mbit", ...(jitter === undefined ? {} : { jitter: "1ms", loss: 0.02 }) };
    call(() => module.parameters(), JSON.stringify({ rate: rate!, qdisc: qdisc! }));
    const created = call(() => module.create(), JSON.stringify(scenario));
    const handle = new DataView(created.buffer).getUint32(0, true);
    call(() => module.layout(handle));
    for (let second = 1; second <= SECONDS; second++) {
      call(() => module.advance(handle, second * 1000, 20));
      call(() => module.packets(handle), "bottleneck");
      if (second === SECONDS - 2) call(() => module.change(handle), JSON.stringify({ links: { bottleneck: line } }));
    }
    call(() => module.result(handle));
    call(() => module.remove(handle));
  }
}
