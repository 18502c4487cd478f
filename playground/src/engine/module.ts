/**
 * Typed border of the WebAssembly module of `crates/wasm`, whose documentation describes each call.
 * `split.mjs` divides the module in two: the second part has what a page seldom needs.
 */

interface Exports {
  readonly memory: WebAssembly.Memory;
  readonly table: WebAssembly.Table;
  input(len: number): number;
  output(): number;
  output_len(): number;
  failure(): number;
  failure_len(): number;
  version(): number;
  run(): number;
  create(): number;
  remove(handle: number): number;
  fork(handle: number): number;
  layout(handle: number): number;
  advance(handle: number, untilMs: number, frameMs: number): number;
  packets(handle: number): number;
  change(handle: number): number;
  inspect(handle: number): number;
  scenario(handle: number): number;
  result(handle: number): number;
  tc_export(): number;
  tc_import(): number;
  parameters(): number;
}

/** JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Column of a result: the NumPy name of its type, and its little-endian bytes. */
export interface Column {
  readonly type: "float64" | "uint64" | "uint32" | "uint8" | "bool";
  readonly bytes: Uint8Array;
}

/** Result of a run. `summary` is the text that `sojourn run --json` prints, without the version. */
export interface Result {
  readonly summary: string;
  readonly columns: ReadonlyMap<string, Column>;
}

/** Refused input; the message starts with the path of the value. */
export class InputError extends Error {
  override readonly name = "InputError";
}

/** Failure of the module itself, which cannot be used any more. */
export class ModuleFailure extends Error {
  override readonly name = "ModuleFailure";
}

/** Exported texts of tc. */
export interface TcText {
  readonly line: string;
  readonly lost: readonly string[];
  readonly differs: string;
}

/** An instance of the module. */
export class Sojourn {
  private readonly exports: Exports;
  private broken = false;

  private constructor(exports: Exports) {
    this.exports = exports;
  }

  /**
   * Starts the compiled module. Its only imports are functions of the second part, which `part`
   * returns when one of them is called for the first time.
   */
  static async start(module: WebAssembly.Module, part: () => WebAssembly.Module): Promise<Sojourn> {
    let complete = false;
    // The second part puts its functions into the table, in the places of these.
    const placeholder = (name: string) => (...values: unknown[]): unknown => {
      if (!complete) new WebAssembly.Instance(part(), { primary: instance.exports });
      complete = true;
      return exports.table.get(Number(name))(...values);
    };
    const imports = WebAssembly.Module.imports(module).map(({ name }) => [name, placeholder(name)] as const);
    const instance = await WebAssembly.instantiate(module, { placeholder: Object.fromEntries(imports) });
    const exports = instance.exports as unknown as Exports;
    return new Sojourn(exports);
  }

  /** Version of the package. */
  version(): string {
    return text(this.call((e) => e.version()));
  }

  /** Size of the memory of the module. */
  memoryBytes(): number {
    return this.exports.memory.buffer.byteLength;
  }

  /** Runs a scenario to its end. */
  run(scenario: string): Result {
    return decode(this.call((e) => e.run(), scenario));
  }

  /** Creates a simulation at time zero. */
  create(scenario: string): Simulation {
    return new Simulation(this, handle(this.call((e) => e.create(), scenario)));
  }

  /** Nearest qdisc of Linux. */
  tcExport(qdisc: Json, rate: string): TcText {
    const request = JSON.stringify({ qdisc, rate });
    return JSON.parse(text(this.call((e) => e.tc_export(), request))) as TcText;
  }

  /** Links that commands of tc describe. */
  tcImport(lines: string): Json {
    return JSON.parse(text(this.call((e) => e.tc_import(), lines))) as Json;
  }

  /** All parameters of a discipline at a rate, defaults included. */
  parameters(qdisc: Json, rate: string): Record<string, Json> {
    const link = JSON.stringify({ qdisc, rate });
    return JSON.parse(text(this.call((e) => e.parameters(), link))) as Record<string, Json>;
  }

  /** Calls the module with a text, and returns a copy of its output. */
  call(work: (exports: Exports) => number, input = ""): Uint8Array<ArrayBuffer> {
    if (this.broken) throw new ModuleFailure("the simulator has failed: reload the page");
    const { exports } = this;
    let done: number;
    try {
      const bytes = new TextEncoder().encode(input);
      const at = exports.input(bytes.length) >>> 0; // may grow the memory, which gets a new buffer
      new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
      done = work(exports);
    } catch (error) {
      this.broken = true;
      const message = text(this.memory(exports.failure(), exports.failure_len()));
      throw new ModuleFailure(message === "" ? String(error) : message);
    }
    const output = this.memory(exports.output(), exports.output_len());
    if (done === 0) throw new InputError(text(output));
    return output;
  }

  private memory(at: number, len: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.exports.memory.buffer, at >>> 0, len >>> 0).slice() as Uint8Array<ArrayBuffer>;
  }
}

/** Packet of a link. */
export interface PacketView {
  /** Number that no other packet on the link has. */
  readonly id: number;
  readonly flow: number;
  readonly bytes: number;
  /** Index of its group of flows. */
  readonly group: number;
  /** IP ECN field: 3 is a mark. */
  readonly ecn: number;
  /** 0, or the reason of the drop: 1 buffer full, 2 at enqueue, 3 later. */
  readonly fate: number;
  readonly ack: boolean;
  /** Time in the queue so far, us. */
  readonly sojourn: number;
}

/** Packets of a link in 32-bit words, as the module writes them. */
export class Packets {
  constructor(private readonly words: Uint32Array) {}

  /** Number of packets in the queue. */
  get queued(): number {
    return this.words[0] ?? 0;
  }

  /** Number of packets in the queue and of those that left it lately. */
  get length(): number {
    return (this.words.length - 1) / 5;
  }

  /** Packet `i`: those in the queue first, in the order in which they would leave. */
  at(i: number): PacketView {
    const [id = 0, flow = 0, bytes = 0, kind = 0, sojourn = 0] = this.words.subarray(1 + 5 * i, 6 + 5 * i);
    return {
      id,
      flow,
      bytes,
      group: kind & 0xffff,
      ecn: (kind >> 16) & 15,
      fate: (kind >> 20) & 15,
      ack: kind >> 24 !== 0,
      sojourn,
    };
  }
}

/** Simulation in progress. */
export class Simulation {
  constructor(
    private readonly module: Sojourn,
    private readonly handle: number,
  ) {}

  /** Names of the columns of a frame. */
  layout(): string[] {
    return JSON.parse(text(this.module.call((e) => e.layout(this.handle)))) as string[];
  }

  /** Simulates up to a time, at most to the end; returns a frame per multiple of `frameMs`. */
  advance(untilMs: number, frameMs: number): Float64Array<ArrayBuffer> {
    return new Float64Array(this.module.call((e) => e.advance(this.handle, untilMs, frameMs)).buffer);
  }

  /** Packets of a link, in words for {@link Packets}. */
  packets(link: string): Uint32Array<ArrayBuffer> {
    return new Uint32Array(this.module.call((e) => e.packets(this.handle), link).buffer);
  }

  /** Applies a change of the scenario, without `at`, at the current time. */
  change(change: Json): void {
    this.module.call((e) => e.change(this.handle), JSON.stringify(change));
  }

  /** State of links and flows. */
  inspect(): Json {
    return JSON.parse(text(this.module.call((e) => e.inspect(this.handle)))) as Json;
  }

  /** Canonical scenario with all changes so far. */
  scenario(): string {
    return text(this.module.call((e) => e.scenario(this.handle)));
  }

  /** Result so far. */
  result(): Result {
    return decode(this.module.call((e) => e.result(this.handle)));
  }

  /** Copy, which continues in the same way. */
  fork(): Simulation {
    return new Simulation(this.module, handle(this.module.call((e) => e.fork(this.handle))));
  }

  /** Frees the memory; the simulation must not be used any more. */
  remove(): void {
    this.module.call((e) => e.remove(this.handle));
  }
}

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

function handle(bytes: Uint8Array<ArrayBuffer>): number {
  return new DataView(bytes.buffer).getUint32(0, true);
}

function decode(bytes: Uint8Array<ArrayBuffer>): Result {
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(text(bytes.subarray(4, 4 + length))) as {
    summary: number;
    columns: [string, Column["type"], number][];
  };
  let at = 4 + length;
  const summary = text(bytes.subarray(at, at + header.summary));
  at += header.summary;
  const columns = new Map<string, Column>();
  for (const [name, type, size] of header.columns) {
    columns.set(name, { type, bytes: bytes.subarray(at, at + size) });
    at += size;
  }
  return { summary, columns };
}
