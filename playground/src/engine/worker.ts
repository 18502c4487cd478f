/** Worker of a pane: one instance of the module, one simulation. */

import type { Answer, Progress, Request, Started } from "./messages";
import { InputError, Sojourn, type Simulation } from "./module";

let sojourn: Sojourn | undefined;
let simulation: Simulation | undefined;
let part: WebAssembly.Module | undefined;
let link = "";
let nowMs = 0;

/** Longest pause between two looks at the packets of a link: their log is emptied then, ms. */
const CHUNK_MS = 1000;

/** Second part of the module, when its code is needed before the page has loaded it. */
function requested(url: string): WebAssembly.Module {
  // The module waits for it in the middle of a call.
  const request = new XMLHttpRequest();
  request.open("GET", url, false);
  request.responseType = "arraybuffer";
  request.send();
  if (request.status !== 200) throw new Error(`${url}: ${request.status} ${request.statusText}`);
  return new WebAssembly.Module(request.response as ArrayBuffer);
}

function running(): Simulation {
  if (simulation === undefined) throw new InputError("no simulation is running");
  return simulation;
}

/** Simulates up to `untilMs` and appends the frames. */
function advance(untilMs: number, frameMs: number, frames: Float64Array[]): void {
  while (nowMs < untilMs) {
    nowMs = Math.min(untilMs, nowMs + CHUNK_MS);
    frames.push(running().advance(nowMs, frameMs));
  }
}

function joined(parts: Float64Array[]): Float64Array<ArrayBuffer> {
  const all = new Float64Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function start(request: Extract<Request, { kind: "start" }>, module: Sojourn): Started {
  const fresh = module.create(request.scenario);
  const [before, beforeMs, beforeLink] = [simulation, nowMs, link];
  [simulation, nowMs, link] = [fresh, 0, request.link];
  const frames: Float64Array[] = [];
  try {
    for (const { atMs, change } of request.steps) {
      if (atMs > request.untilMs) break;
      advance(atMs, request.frameMs, frames);
      fresh.change(change);
    }
    advance(request.untilMs, request.frameMs, frames);
  } catch (error) {
    fresh.remove();
    [simulation, nowMs, link] = [before, beforeMs, beforeLink];
    throw error;
  }
  before?.remove();
  return { layout: fresh.layout(), nowMs, frames: joined(frames), packets: fresh.packets(link) };
}

async function answer(request: Request): Promise<unknown> {
  if (request.kind === "load") {
    sojourn = await Sojourn.start(request.module, () => part ?? requested(request.partUrl));
    return sojourn.version();
  }
  if (request.kind === "part") return void (part = request.module);
  if (sojourn === undefined) throw new Error("the simulator is not loaded");
  switch (request.kind) {
    case "start":
      return start(request, sojourn);
    case "advance": {
      const frames: Float64Array[] = [];
      advance(request.untilMs, request.frameMs, frames);
      const packets = request.packets ? running().packets(link) : undefined;
      return { nowMs, frames: joined(frames), packets } satisfies Progress;
    }
    case "change":
      return running().change(request.change);
    case "summary":
      return running().result().summary;
    case "memory":
      return sojourn.memoryBytes();
    case "tc":
      return sojourn.tcExport(request.qdisc, request.rate);
    case "import":
      return sojourn.tcImport(request.lines);
    case "parameters":
      return sojourn.parameters(request.qdisc, request.rate);
  }
}

self.onmessage = async (event: MessageEvent<Request>): Promise<void> => {
  const { id } = event.data;
  let reply: Answer;
  try {
    reply = { id, value: await answer(event.data) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    reply = { id, error: { message, input: error instanceof InputError } };
  }
  self.postMessage(reply);
};
