/** The page: state, clock, and the panes with their workers. */

import { Client } from "./engine/client";
import { InputError, type Json } from "./engine/module";
import { read, write, type Place } from "./model/address";
import { changeOf, fromFile, hasWire, linkOf, scenarioOf, stepsOf, type Table } from "./model/scenario";
import { currentLine, folded, HOME, pane, PANES_MAX, lineChanges, withPane, type Change, type Line, type Pane, type State } from "./model/state";
import { parse } from "./model/units";
import { h, wantsStill } from "./view/dom";
import { FRAME_MS, PaneView } from "./view/pane";
import { Toolbar } from "./view/toolbar";

/** The panes start with this time behind them, so that something is to be seen. */
const AHEAD_MS = 4000;
/** Longest time that is simulated again after a change that the engine cannot make while it runs. */
const AGAIN_MS = 60_000;
const BACK_MS = 5000;
const END_MS = 3_600_000;
const UNDO_MAX = 50;

/** Compiles a file while it arrives. The scripts come first: a preload would delay the controls. */
async function load(file: string): Promise<WebAssembly.Module> {
  const response = await fetch(new URL(file, document.baseURI));
  if (!response.ok) throw new Error(`${file}: ${response.status} ${response.statusText}`);
  // A host that does not know the media type gets no streaming compilation.
  if (response.headers.get("Content-Type") === "application/wasm") return WebAssembly.compileStreaming(response);
  return WebAssembly.compile(await response.arrayBuffer());
}

/** Time at which the run of a state ends, ms. */
function endOf({ file }: State): number {
  const seconds = parse(String(file?.scenario["duration"] ?? ""), "duration")?.value;
  return seconds === undefined ? END_MS : Math.min(END_MS, seconds * 1000);
}

export class App {
  state: State = HOME;
  playing = true;
  /** True if the module is there. Before, a change of a setting only changes the state. */
  started = false;
  /** True if the panes have run up to the first time that is shown. */
  ready = false;
  /** True if nothing will be requested any more. */
  loaded = false;
  nowMs = AHEAD_MS;
  views: PaneView[] = [];
  private readonly grid = h("main", { class: "panes" });
  private readonly toolbar: Toolbar;
  private readonly module = load("sojourn.wasm");
  private readonly idle: Client[] = [];
  private readonly undoStack: State[] = [];
  private queue: Promise<void> = Promise.resolve();
  private chunkMs = 100;
  private lastTime = 0;
  private lastSummary = 0;

  /** `figure` is set in a page of the documentation: few controls, and the address stays. */
  constructor(
    private readonly root: HTMLElement,
    private readonly figure?: Place,
  ) {
    this.toolbar = new Toolbar(this);
  }

  /** Shows the page, whose controls work at once; starts the panes when the module is loaded. */
  async start(): Promise<void> {
    const place = this.figure ?? read(location.hash) ?? (await this.served());
    if (place !== undefined) [this.playing, this.nowMs] = [place.playing, place.nowMs];
    const { header, controls, story, footer, strip } = this.toolbar;
    if (this.figure === undefined) this.root.replaceChildren(header, controls, story, this.grid, footer);
    else this.root.replaceChildren(strip(), story, this.grid);
    await this.replace(place?.state ?? HOME);
    this.toolbar.tick();
    if (this.figure === undefined) this.followAddress();
    performance.mark("controls");

    await this.module;
    const state = this.state;
    this.started = true;
    // Bad input until now leads to this state.
    this.state = HOME;
    await this.replace(state);
    this.ready = true;
    performance.mark("panes");
    requestAnimationFrame((time) => void this.frame(time));
    // The workers of panes that are added later, and the rest of the module: nothing is requested then.
    while (this.views.length + this.idle.length < PANES_MAX) this.idle.push(new Client(this.module));
    await Promise.all(this.idle.map((client) => client.load()));
    if (this.figure === undefined) await this.complete();
    this.loaded = true;
  }

  /** Loads the second part of the module for all workers. */
  private async complete(): Promise<void> {
    const rest = await load("rest.wasm");
    const clients = [...this.idle, ...this.views.map((view) => view.client)];
    await Promise.all(clients.map((client) => client.complete(rest)));
  }

  private followAddress(): void {
    window.addEventListener("hashchange", () => {
      const other = read(location.hash);
      if (other === undefined || location.hash === this.hash()) return;
      this.playing = other.playing;
      void this.replace(other.state, other.nowMs);
    });
  }

  /** Scenario that `sojourn playground FILE` serves with the page. */
  private async served(): Promise<{ state: State; nowMs: number; playing: boolean } | undefined> {
    if (!new URLSearchParams(location.search).has("file")) return undefined;
    const answer = await fetch(new URL("scenario.json", document.baseURI));
    if (!answer.ok) return undefined;
    const { name, scenario } = (await answer.json()) as { name: string; scenario: Table };
    return { state: fromFile(HOME, name, scenario), nowMs: AHEAD_MS, playing: true };
  }

  /** Runs `work` after everything that was asked for before. */
  private exclusive<T>(work: () => Promise<T>): Promise<T> {
    const done = this.queue.then(work);
    this.queue = done.then(
      () => undefined,
      () => undefined,
    );
    return done;
  }

  private async frame(time: number): Promise<void> {
    const elapsed = Math.min(100, time - this.lastTime);
    this.lastTime = time;
    try {
      if (this.playing && !document.hidden) await this.exclusive(() => this.advance(elapsed));
    } catch (error) {
      this.fail(error);
      return;
    }
    const still = wantsStill() || this.state.speed > 1 || !this.playing;
    const full = Math.max(...this.views.map((view) => Math.min(view.fullBytes(), 4e6)), 15_000);
    if (!wantsStill() || Math.floor(time / 1000) !== Math.floor((time - elapsed) / 1000) || !this.playing) {
      for (const view of this.views) view.draw(elapsed, still, full, this.state.speed < 1);
    }
    this.toolbar.tick();
    if (time - this.lastSummary > 1000) {
      this.lastSummary = time;
      void this.exclusive(async () => void (await Promise.all(this.views.map((view) => view.summarise()))));
    }
    requestAnimationFrame((next) => void this.frame(next));
  }

  /** Simulates what passes in `elapsed` ms of time. */
  private async advance(elapsed: number): Promise<void> {
    const { speed } = this.state;
    const fast = !Number.isFinite(speed);
    // Whole microseconds: a time in the address or in a file is then the same time.
    const end = endOf(this.state);
    const until = Math.min(end, Math.round((this.nowMs + (fast ? this.chunkMs : elapsed * speed)) * 1000) / 1000);
    const before = performance.now();
    const progress = await Promise.all(
      this.views.map(async (view) => [view, await view.client.advance(until, FRAME_MS, true)] as const),
    );
    for (const [view, one] of progress) view.take(one);
    this.nowMs = until;
    if (fast) {
      const took = performance.now() - before;
      this.chunkMs = Math.max(20, Math.min(5000, this.chunkMs * (took < 10 ? 1.3 : took > 20 ? 0.7 : 1)));
    }
    if (until >= end) this.pause(true);
  }

  /** Starts panes anew for another state, and simulates up to `untilMs`. Keeps the old state on bad input. */
  async replace(next: State, untilMs: number = this.nowMs, only?: number): Promise<boolean> {
    return this.exclusive(async () => {
      const until = Math.max(0, Math.min(untilMs, END_MS));
      this.fitViews(next);
      if (!this.started) {
        [this.state, this.nowMs] = [next, until];
        this.shown();
        return true;
      }
      try {
        const which = next.panes.map((_, i) => i).filter((i) => only === undefined || i === only);
        const started = await Promise.all(
          which.map(async (i) => {
            const of = next.panes[i]!;
            const text = JSON.stringify(scenarioOf(next, of));
            return [i, await this.views[i]!.client.start(text, linkOf(next), stepsOf(next, of), until, FRAME_MS)] as const;
          }),
        );
        this.state = next;
        this.nowMs = until;
        for (const [i, one] of started) {
          this.views[i]!.show(next, next.panes[i]!);
          this.views[i]!.begin(one, next);
        }
      } catch (error) {
        if (!(error instanceof InputError)) throw error;
        this.views[only ?? 0]?.refuse(error.message);
        this.toolbar.refuse(error.message);
        await this.restore(until, only);
        return false;
      }
      this.shown();
      return true;
    });
  }

  /** Makes a view for each pane of a state. */
  private fitViews({ panes }: State): void {
    while (this.views.length < panes.length) this.views.push(this.newView());
    while (this.views.length > panes.length) {
      const view = this.views.pop()!;
      view.element.remove();
      this.idle.push(view.client);
    }
  }

  /** Returns to the state before bad input: some panes may have started with it. */
  private async restore(until: number, only: number | undefined): Promise<void> {
    this.fitViews(this.state);
    if (only !== undefined) return;
    for (const [i, of] of this.state.panes.entries()) {
      const view = this.views[i]!;
      const text = JSON.stringify(scenarioOf(this.state, of));
      view.begin(await view.client.start(text, linkOf(this.state), stepsOf(this.state, of), until, FRAME_MS), this.state);
      view.show(this.state, of);
    }
    this.nowMs = until;
  }

  private newView(): PaneView {
    const client = this.idle.pop() ?? new Client(this.module);
    const view: PaneView = new PaneView(client, {
      discipline: (qdisc) => void this.setDiscipline(this.views.indexOf(view), qdisc),
      param: (name, value) => void this.setParam(this.views.indexOf(view), name, value),
      fork: () => void this.fork(this.views.indexOf(view)),
      close: () => void this.close(this.views.indexOf(view)),
    });
    this.grid.append(view.element);
    return view;
  }

  private shown(): void {
    this.state.panes.forEach((of, i) => this.views[i]?.show(this.state, of));
    this.grid.dataset["panes"] = String(this.views.length);
    this.toolbar.show();
    this.remember();
  }

  private note(): void {
    this.undoStack.push(this.state);
    if (this.undoStack.length > UNDO_MAX) this.undoStack.shift();
  }

  /** Returns to the state before the last change of a setting. */
  undo(): void {
    const last = this.undoStack.pop();
    if (last !== undefined) void this.replace(last);
  }

  /** Sets something of the line or the traffic from the start on; the same time is simulated again. */
  async set(values: Partial<State>): Promise<boolean> {
    const untilMs = this.again();
    return this.noted({ ...(untilMs < this.nowMs ? folded(this.state) : this.state), ...values }, untilMs);
  }

  /** Replaces the state, which can be undone. */
  private async noted(next: State, untilMs: number = this.nowMs): Promise<boolean> {
    this.note();
    const done = await this.replace(next, untilMs);
    if (!done) this.undoStack.pop();
    return done;
  }

  /** Time up to which a run is simulated again. */
  private again(): number {
    return this.nowMs > AGAIN_MS ? AHEAD_MS : this.nowMs;
  }

  /** Sets rate, jitter or loss of the line from now on. */
  async setLine(line: Partial<Line>): Promise<boolean> {
    const { panes } = this.state;
    const now = this.currentLine();
    if ((Object.keys(line) as (keyof Line)[]).every((key) => line[key] === now[key])) return true;
    const impairs = line.rate === undefined;
    if (impairs && this.nowMs > 0 && this.nowMs <= AGAIN_MS && !panes.every((of) => hasWire(this.state, of))) {
      // The same run again, with links whose impairments can change from now on.
      const change: Change = { atMs: this.nowMs, line };
      return this.noted({ ...this.state, panes: panes.map((of) => ({ ...of, changes: [...of.changes, change] })) });
    }
    const changed = await this.live(
      panes.map((_, i) => i),
      { line },
    );
    return changed === "" || this.set({ ...folded(this.state), ...line });
  }

  /** Sets a parameter of a pane: at once if the discipline can change it while it runs. */
  async setParam(i: number, name: string, value: string): Promise<void> {
    const of = this.state.panes[i];
    if (of === undefined) return;
    if ((await this.live([i], { params: { [name]: value } })) === "") return;
    this.note();
    const base = withPane(this.state, i, { ...of, params: { ...of.params, [name]: value } });
    const view = this.views[i];
    if (!(await this.replace(base, this.nowMs, i))) {
      this.undoStack.pop();
      view?.refuse(view.element.querySelector(".pane-error")?.textContent ?? "", name);
      view?.refuse("");
    }
  }

  /** Makes a change in running simulations; returns the message if one of them cannot. */
  private live(which: readonly number[], values: Omit<Change, "atMs">): Promise<string> {
    return this.exclusive(async () => {
      if (!this.started || this.nowMs <= 0) return "at the start";
      const change: Change = { ...values, atMs: this.nowMs };
      const json: Json = changeOf(this.state, change);
      try {
        for (const i of which) await this.views[i]!.client.change(json);
      } catch (error) {
        if (error instanceof InputError) return error.message;
        throw error;
      }
      this.note();
      const panes = this.state.panes.map((of, i) => (which.includes(i) ? { ...of, changes: [...of.changes, change] } : of));
      this.state = { ...this.state, panes };
      this.shown();
      return "";
    });
  }

  private async setDiscipline(i: number, qdisc: string): Promise<void> {
    this.note();
    const changes = lineChanges(this.state.panes[i]);
    await this.replace(withPane(this.state, i, { ...pane(qdisc), changes }), this.nowMs, i);
  }

  /** Adds a pane. */
  async add(of: Pane): Promise<void> {
    if (this.state.panes.length >= PANES_MAX) return;
    this.note();
    const added = of.changes.length > 0 ? of : { ...of, changes: lineChanges(this.state.panes[0]) };
    await this.replace({ ...this.state, panes: [...this.state.panes, added] }, this.nowMs, this.state.panes.length);
  }

  /** Continues pane `i` in a second one, which was the same until now. */
  async fork(i: number): Promise<void> {
    const of = this.state.panes[i];
    if (of !== undefined) await this.add(of);
  }

  private async close(i: number): Promise<void> {
    if (this.state.panes.length <= 1) return;
    this.note();
    await this.replace({ ...this.state, panes: this.state.panes.filter((_, j) => j !== i) }, this.nowMs);
  }

  /** Starts again from time zero with the current settings. */
  restart(): void {
    this.note();
    void this.replace(folded(this.state), 0);
  }

  /** Goes back in time; changes made later are undone. */
  back(): void {
    const untilMs = Math.max(0, Math.round((this.nowMs - BACK_MS) * 1000) / 1000);
    const panes = this.state.panes.map((of) => ({ ...of, changes: of.changes.filter(({ atMs }) => atMs < untilMs) }));
    void this.replace({ ...this.state, panes }, untilMs);
  }

  pause(paused: boolean): void {
    this.playing = !paused;
    this.toolbar.show();
    this.remember();
  }

  setSpeed(speed: number): void {
    this.state = { ...this.state, speed };
    this.toolbar.show();
    this.remember();
  }

  /** Opens a story, at its first step. */
  async openStory(name: string, start: State): Promise<void> {
    this.note();
    this.playing = true;
    await this.replace({ ...start, story: name, step: 0 }, AHEAD_MS);
  }

  /** Opens a state of the menu. */
  async openPreset(state: State, untilMs: number = AHEAD_MS): Promise<void> {
    this.note();
    const { story: _, step: __, ...rest } = state;
    this.playing = true;
    await this.replace(rest, untilMs);
  }

  currentLine(): Line {
    const first = this.state.panes[0];
    return first === undefined ? this.state : currentLine(this.state, first);
  }

  hash(): string {
    return `#${write({ state: this.state, nowMs: this.nowMs, playing: this.playing })}`;
  }

  /** Puts the state into the address. */
  remember(): void {
    if (this.figure === undefined) history.replaceState(null, "", this.hash());
  }

  fail(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.root.prepend(h("p", { class: "failure", role: "alert" }, `The simulator has failed: ${message}. Reload the page.`));
  }
}
