/** Client of a worker: each request is a promise. */

import type { Answer, Progress, Request, Started, Step } from "./messages";
import { InputError, type Json, type TcText } from "./module";

type WithoutId<T> = T extends unknown ? Omit<T, "id"> : never;

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** Worker of a module; requests wait until it is loaded. */
export class Client {
  private readonly worker: Worker;
  private readonly waiting = new Map<number, Waiting>();
  private readonly loaded: Promise<unknown>;
  private next = 1;

  constructor(module: Promise<WebAssembly.Module>) {
    this.worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    this.worker.onmessage = (event: MessageEvent<Answer>) => this.settle(event.data);
    this.worker.onerror = (event) => this.fail(new Error(event.message || "the worker has failed"));
    const partUrl = new URL("rest.wasm", document.baseURI).href;
    this.loaded = module.then((compiled) => this.send({ kind: "load", module: compiled, partUrl }));
    // Who asks for something gets the error.
    this.loaded.catch(() => undefined);
  }

  /** Waits until the module is loaded. */
  async load(): Promise<void> {
    await this.loaded;
  }

  /** Passes the second part of the module on, so that the worker never requests it. */
  async complete(part: WebAssembly.Module): Promise<void> {
    await this.ask({ kind: "part", module: part });
  }

  start(scenario: string, link: string, steps: Step[], untilMs: number, frameMs: number): Promise<Started> {
    return this.ask({ kind: "start", scenario, link, steps, untilMs, frameMs }) as Promise<Started>;
  }

  advance(untilMs: number, frameMs: number, packets: boolean): Promise<Progress> {
    return this.ask({ kind: "advance", untilMs, frameMs, packets }) as Promise<Progress>;
  }

  async change(change: Json): Promise<void> {
    await this.ask({ kind: "change", change });
  }

  summary(): Promise<string> {
    return this.ask({ kind: "summary" }) as Promise<string>;
  }

  /** Size of the memory of the module, bytes. */
  memory(): Promise<number> {
    return this.ask({ kind: "memory" }) as Promise<number>;
  }

  tc(qdisc: Json, rate: string): Promise<TcText> {
    return this.ask({ kind: "tc", qdisc, rate }) as Promise<TcText>;
  }

  importTc(lines: string): Promise<Json> {
    return this.ask({ kind: "import", lines }) as Promise<Json>;
  }

  parameters(qdisc: Json, rate: string): Promise<Record<string, Json>> {
    return this.ask({ kind: "parameters", qdisc, rate }) as Promise<Record<string, Json>>;
  }

  private async ask(request: WithoutId<Request>): Promise<unknown> {
    await this.loaded;
    return this.send(request);
  }

  private send(request: WithoutId<Request>): Promise<unknown> {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ ...request, id });
    });
  }

  private settle({ id, value, error }: Answer): void {
    const waiting = this.waiting.get(id);
    this.waiting.delete(id);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(error.input ? new InputError(error.message) : new Error(error.message));
  }

  private fail(error: Error): void {
    for (const waiting of this.waiting.values()) waiting.reject(error);
    this.waiting.clear();
  }
}
