/** Everything around the panes: title, clock, line, traffic, story, exports. */

import type { App } from "../app";
import { disciplineOf, exported, fromFile, qdiscOf, toPython, toToml, type Table } from "../model/scenario";
import { HOME, pane, PANES_MAX, SPEEDS, type State } from "../model/state";
import { STORIES, storyOf } from "../model/stories";
import { kindOf, TRAFFIC } from "../model/traffic";
import { quantity, type Control } from "./controls";
import { button, h, select, setText } from "./dom";
import { readDropped } from "./dropped";
import { colourOf } from "./theme";

const PRESETS: readonly (readonly [string, string, State])[] = [
  ["home", "bufferbloat at home", HOME],
  ["office", "an office: web, meetings, uploads", { ...HOME, rate: "50mbit", buffer: "1MB", traffic: [{ kind: "web", count: 8 }, { kind: "meeting", count: 3 }, { kind: "upload", count: 2 }], panes: [pane("droptail"), pane("cake")] }],
  ["mix", "CUBIC, BBR and Reno on one link", { ...HOME, rate: "20mbit", traffic: [{ kind: "upload", count: 1 }, { kind: "bbr", count: 1 }, { kind: "reno", count: 1 }], panes: [pane("droptail"), pane("codel"), pane("fq_codel")] }],
  ["l4s", "L4S: Prague and CUBIC", { ...HOME, rate: "40mbit", rtt: "20ms", buffer: "1MB", traffic: [{ kind: "prague", count: 1 }, { kind: "upload", count: 1 }], panes: [pane("dualpi2"), pane("fq_codel")] }],
];

const KEYS: readonly (readonly [string, string])[] = [
  ["space", "pause or play"],
  ["left arrow", "back 5 s"],
  ["r", "restart with the current settings"],
  ["f", "fork the last pane"],
  ["n", "new seed"],
  ["1 2 3 4", "speed 0.1x, 1x, 10x, max"],
  ["escape", "undo"],
  ["?", "this list"],
];

const speedText = (speed: number): string => (Number.isFinite(speed) ? `${speed}×` : "max");

export class Toolbar {
  readonly header = h("header", {});
  readonly controls = h("div", { class: "line" });
  readonly story = h("aside", { class: "story", "aria-live": "polite" });
  readonly footer = h("footer", {});
  private readonly clock = h("output", { class: "clock", "aria-label": "simulated time" });
  private readonly play: HTMLButtonElement;
  private readonly speeds: HTMLButtonElement[];
  private readonly rate: Control;
  private readonly rtt: Control;
  private readonly buffer: Control;
  private readonly traffic = h("div", { class: "traffic", role: "group", "aria-label": "traffic" });
  private readonly stories: HTMLSelectElement;
  private readonly dialog = h("dialog", {});
  private readonly error = h("p", { class: "refused", role: "alert" });
  private readonly fileName = h("p", { class: "file" });
  private readonly addPane: HTMLSelectElement;
  private done = "";

  constructor(private readonly app: App) {
    this.play = button("", "Pause or play (space)", () => app.pause(app.playing), "primary");
    this.speeds = SPEEDS.map((speed) => button(speedText(speed), `Speed ${speedText(speed)}`, () => app.setSpeed(speed)));
    const line = (name: string, label: string, about: string, kind: "rate" | "duration" | "size", ends: [number, number], set: (value: string) => void): Control =>
      quantity({ name, label, about, kind, value: HOME[name as "rate"], low: ends[0], high: ends[1], set });
    this.rate = line("rate", "rate", "Rate of the link, one-way", "rate", [5e5, 1e9], (value) => void app.setRate(value));
    this.rtt = line("rtt", "RTT", "Round-trip time without queues", "duration", [1e-4, 0.6], (rtt) => void app.set({ rtt }));
    this.buffer = line("buffer", "buffer", "Largest size of the queue", "size", [3000, 1e7], (buffer) => void app.set({ buffer }));
    this.stories = select("story", [["", "stories"], ...STORIES.map((story, i) => [story.name, `${i + 1}. ${story.title}`] as const)], "", (name) => {
      const story = storyOf(name);
      if (story !== undefined) void app.openStory(name, story.start);
    });
    const preset = select("preset", [["", "presets"], ...PRESETS.map(([name, text]) => [name, text] as const)], "", (name) => {
      const found = PRESETS.find(([one]) => one === name);
      if (found !== undefined) void app.openPreset(found[2]);
      preset.value = "";
    });
    this.addPane = select("add a pane", [["", "+ pane"], ...["droptail", "codel", "fq_codel", "cake", "pie", "red", "dualpi2", "hred", "ewfq"].map((name) => [name, name] as const)], "", (name) => {
      if (name !== "") void app.add(pane(name));
      this.addPane.value = "";
    });
    const clockGroup = h(
      "div",
      { class: "transport", role: "group", "aria-label": "time" },
      this.clock,
      button("↺", "Restart with the current settings (r)", () => app.restart()),
      button("−5 s", "Back five seconds (left arrow)", () => app.back()),
      this.play,
      h("span", { class: "speeds", role: "group", "aria-label": "speed" }, ...this.speeds),
    );
    this.header.append(h("h1", {}, "sojourn ", h("span", {}, "playground")), preset, this.stories, this.addPane, clockGroup);
    this.controls.append(this.fileName, this.rate.element, this.rtt.element, this.buffer.element, this.traffic, this.error);
    this.footer.append(
      button("TOML", "The scenario as a file for the command", () => this.export("TOML")),
      button("Python", "The scenario as Python code", () => this.export("Python")),
      button("tc", "The disciplines as tc commands", () => this.export("tc")),
      button("link to this", "Copy the address, which holds everything", () => this.link()),
      button("new seed", "Other random numbers in all panes (n)", () => this.newSeed()),
      button("keys", "Keyboard (?)", () => this.keys(), "quiet"),
      h("p", { class: "foot-note" }, "Drop a scenario (TOML) or a tc line on the page to run it. Simulated here, byte for byte as the command does."),
      this.dialog,
    );
    document.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => void this.drop(event));
  }

  /** Shows the state. */
  show(): void {
    const { state, playing } = this.app;
    setText(this.play, playing ? "❚❚" : "▶");
    this.play.setAttribute("aria-pressed", String(playing));
    SPEEDS.forEach((speed, i) => this.speeds[i]!.setAttribute("aria-pressed", String(speed === state.speed)));
    this.rate.show(this.app.currentRate());
    this.rtt.show(state.rtt);
    this.buffer.show(state.buffer);
    const file = state.file;
    for (const control of [this.rtt.element, this.buffer.element, this.traffic]) control.hidden = file !== undefined;
    setText(this.fileName, file === undefined ? "" : `${file.name}, link ${file.link}`);
    this.fileName.hidden = file === undefined;
    this.addPane.disabled = state.panes.length >= PANES_MAX;
    setText(this.error, "");
    this.showTraffic(state);
    this.showStory(state);
  }

  /** Shows the time. */
  tick(): void {
    setText(this.clock, `${(this.app.nowMs / 1000).toFixed(1)} s`);
  }

  refuse(message: string): void {
    setText(this.error, message);
    this.rate.show(this.app.currentRate());
    this.rtt.show(this.app.state.rtt);
    this.buffer.show(this.app.state.buffer);
  }

  private showTraffic(state: State): void {
    const set = (traffic: State["traffic"]): void => void (traffic.length > 0 && this.app.set({ traffic }));
    const chips = state.traffic.map(({ kind, count }, i) => {
      const swatch = h("i", { class: "swatch" });
      swatch.style.background = colourOf(i);
      const to = (n: number): void => set(n < 1 ? state.traffic.filter((_, j) => j !== i) : state.traffic.map((one, j) => (j === i ? { ...one, count: n } : one)));
      const number = h("input", { type: "number", min: "1", max: "1000", value: String(count), "aria-label": `number of ${kind}` });
      number.addEventListener("change", () => to(Math.max(0, Math.min(1000, Math.round(Number(number.value))))));
      return h(
        "span",
        { class: "chip", title: kindOf(kind)?.label, "data-kind": kind },
        swatch,
        kind,
        button("−", `One ${kind} less`, () => to(count - 1), "quiet"),
        number,
        button("+", `One ${kind} more`, () => to(count + 1), "quiet"),
      );
    });
    const absent = TRAFFIC.filter(({ name }) => !state.traffic.some(({ kind }) => kind === name));
    const menu = select("add traffic", [["", "+ traffic"], ...absent.map(({ name, label }) => [name, label] as const)], "", (kind) => set([...state.traffic, { kind, count: 1 }]));
    this.traffic.replaceChildren(...chips, menu);
  }

  private showStory(state: State): void {
    this.stories.value = state.story ?? "";
    const story = storyOf(state.story);
    this.story.hidden = story === undefined;
    if (story === undefined) return;
    const at = Math.min(state.step ?? 0, story.steps.length - 1);
    const step = story.steps[at]!;
    const key = `${story.name}.${at}`;
    const acted = this.done === key;
    const go = (to: number): void => {
      this.done = "";
      this.app.state = { ...this.app.state, step: to };
      this.app.remember();
      this.show();
    };
    const act = button(step.act, step.act, () => {
      this.done = key;
      void this.app.set(step.set({ ...this.app.state }));
    }, acted ? "" : "primary");
    const last = at + 1 >= story.steps.length;
    const next = button(last ? "close" : "next ›", last ? "Close the story" : "Next step", () => {
      if (!last) return go(at + 1);
      const { story: _, step: __, ...rest } = this.app.state;
      this.app.state = rest;
      this.app.remember();
      this.show();
    });
    this.story.replaceChildren(
      h("p", { class: "step" }, `${story.title} · ${at + 1} of ${story.steps.length}`),
      h("p", { class: "say" }, acted ? step.notice : step.say),
      h("div", { class: "step-actions" }, ...(at > 0 ? [button("‹", "Previous step", () => go(at - 1), "quiet")] : []), act, next),
    );
  }

  private async export(kind: "TOML" | "Python" | "tc"): Promise<void> {
    const { state, nowMs, views } = this.app;
    const texts = await Promise.all(
      state.panes.map(async (of, i) => {
        const scenario = exported(state, of, nowMs);
        if (kind === "TOML") return toToml({ ...scenario, name: `playground-${of.qdisc}` });
        if (kind === "Python") return toPython(scenario);
        try {
          const { line, lost, differs } = await views[i]!.client.tc({ ...qdiscOf(state, of), ...currentTable(of) }, this.app.currentRate());
          const notes = [...lost.map((word) => `# not in Linux: ${word}`), ...(differs === "" ? [] : [`# ${differs}`])];
          return [`tc qdisc replace dev eth0 root ${line}`, ...notes].join("\n");
        } catch (error) {
          return `# ${of.qdisc}: ${error instanceof Error ? error.message : String(error)}`;
        }
      }),
    );
    const panes = state.panes.map((of, i) => {
      const area = h("textarea", { readonly: true, rows: kind === "tc" ? "4" : "14", "aria-label": `${kind} of ${of.qdisc}`, spellcheck: "false" });
      area.value = texts[i] ?? "";
      const copy = button("copy", `Copy the ${kind} of ${of.qdisc}`, () => void this.copy(area.value, copy));
      return h("section", {}, h("h3", {}, of.qdisc, " ", copy), area);
    });
    const hint = { TOML: "sojourn run FILE.toml gives the numbers of this page.", Python: "Run it with Python, where sojourn is installed.", tc: "eth0 stands for your device." }[kind];
    this.open(kind, h("p", {}, hint), ...panes);
  }

  private async copy(text: string, from: HTMLButtonElement): Promise<void> {
    const before = from.textContent ?? "";
    try {
      await navigator.clipboard.writeText(text);
      setText(from, "copied");
    } catch {
      setText(from, "select the text and copy it");
    }
    setTimeout(() => setText(from, before), 1500);
  }

  private link(): void {
    this.app.remember();
    const field = h("textarea", { readonly: true, rows: "4", "aria-label": "address" });
    field.value = location.href;
    const copy = button("copy", "Copy the address", () => void this.copy(field.value, copy));
    this.open("Link to this state", h("p", {}, "The address holds the line, the traffic, the disciplines, every change with its time, and the time now."), field, copy);
  }

  private newSeed(): void {
    void this.app.set({ seed: this.app.state.seed + 1 });
  }

  private keys(): void {
    const rows = KEYS.map(([key, what]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)));
    this.open("Keys", h("dl", { class: "keys" }, ...rows));
  }

  private open(title: string, ...content: Node[]): void {
    const close = button("close", "Close", () => this.dialog.close());
    this.dialog.replaceChildren(h("h2", {}, title), ...content, close);
    this.dialog.setAttribute("aria-label", title);
    if (!this.dialog.open) this.dialog.showModal();
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    const typing = target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
    if (event.ctrlKey || event.metaKey || event.altKey || this.dialog.open) return;
    if (typing && event.key !== "Escape") return;
    if (target instanceof HTMLButtonElement && event.key === " ") return;
    const { app } = this;
    const actions: Record<string, () => void> = {
      " ": () => app.pause(app.playing),
      ArrowLeft: () => app.back(),
      r: () => app.restart(),
      f: () => void app.fork(app.state.panes.length - 1),
      n: () => this.newSeed(),
      "1": () => app.setSpeed(SPEEDS[0]),
      "2": () => app.setSpeed(SPEEDS[1]),
      "3": () => app.setSpeed(SPEEDS[2]),
      "4": () => app.setSpeed(SPEEDS[3]),
      Escape: () => (typing ? target.blur() : app.undo()),
      "?": () => this.keys(),
    };
    const action = actions[event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
  }

  private async drop(event: DragEvent): Promise<void> {
    event.preventDefault();
    const file = event.dataTransfer?.files[0];
    const text = file === undefined ? event.dataTransfer?.getData("text/plain") : await file.text();
    if (text === undefined || text === "") return;
    try {
      await this.openText(file?.name ?? "text", text);
    } catch (error) {
      setText(this.error, error instanceof Error ? error.message : String(error));
    }
  }

  private async openText(name: string, text: string): Promise<void> {
    const dropped = readDropped(name, text);
    const { app } = this;
    if (dropped.kind === "scenario") return void (await app.openPreset(fromFile(app.state, name, dropped.scenario)));
    const links = (await app.views[0]!.client.importTc(dropped.lines)) as Table[];
    const qdisc = links[0]?.["qdisc"];
    if (qdisc === undefined || qdisc === null) throw new Error(`${name}: no discipline of a device`);
    const read = disciplineOf(qdisc);
    await app.add(pane(read.qdisc, read.params));
  }
}

function currentTable(of: State["panes"][number]): Table {
  return Object.assign({}, of.params, ...of.changes.map((change) => change.params ?? {})) as Table;
}
