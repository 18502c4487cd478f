/** Messages between the page and the worker that runs one pane. */

import type { Json } from "./module";

/** What a worker does; the answer to `id` has its result or the text of the error. */
export type Request =
  | { id: number; kind: "load"; module: WebAssembly.Module; partUrl: string }
  | { id: number; kind: "part"; module: WebAssembly.Module }
  | { id: number; kind: "start"; scenario: string; link: string; steps: Step[]; untilMs: number; frameMs: number }
  | { id: number; kind: "advance"; untilMs: number; frameMs: number; packets: boolean }
  | { id: number; kind: "change"; change: Json }
  | { id: number; kind: "summary" }
  | { id: number; kind: "memory" }
  | { id: number; kind: "tc"; qdisc: Json; rate: string }
  | { id: number; kind: "import"; lines: string }
  | { id: number; kind: "parameters"; qdisc: Json; rate: string };

/** Change at a time, repeated when a simulation is started anew. */
export interface Step {
  readonly atMs: number;
  readonly change: Json;
}

/** Frames, and the packets of the link if they were asked for. */
export interface Progress {
  readonly nowMs: number;
  readonly frames: Float64Array<ArrayBuffer>;
  readonly packets: Uint32Array<ArrayBuffer> | undefined;
}

/** Start of a simulation: columns of its frames, and the frames up to the time that was asked for. */
export interface Started extends Progress {
  readonly layout: string[];
}

export interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: { readonly message: string; readonly input: boolean };
}
