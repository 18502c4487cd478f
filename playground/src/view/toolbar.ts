/** Everything around the panes: title, clock, line, traffic, story, exports. */

import type { App } from "../app";
import { disciplineOf, exported, fromFile, qdiscOf, nameOf, toPython, toToml, type Table } from "../model/scenario";
import { leftOut } from "../model/address";
import { recordedFlows } from "../model/recorded";
import { folded, HOME, pane, PANES_MAX, RETURN, SPEEDS, type State } from "../model/state";
import { STORIES, storyOf } from "../model/stories";
import { kindOf, TRAFFIC, turned } from "../model/traffic";
import { digits } from "../model/units";
import type { Control } from "./controls";
import { Direction, lineControl } from "./line";
import { button, h, select, setText } from "./dom";
import { readDropped, readFile, type Dropped } from "./dropped";
import { colourOf } from "./theme";

const PRESETS: readonly (readonly [string, string, State])[] = [
  ["home", "bufferbloat at home", HOME],
  ["office", "an office: web, meetings, uploads", { ...HOME, rate: "50mbit", buffer: "1MB", traffic: [{ kind: "web", count: 8 }, { kind: "meeting", count: 3 }, { kind: "upload", count: 2 }], panes: [pane("droptail"), pane("cake")] }],
  ["mix", "CUBIC, BBR and Reno on one link", { ...HOME, rate: "20mbit", traffic: [{ kind: "upload", count: 1 }, { kind: "bbr", count: 1 }, { kind: "reno", count: 1 }], panes: [pane("droptail"), pane("codel"), pane("fq_codel")] }],
  ["asymmetric", "a download behind an upload: acknowledgements wait", { ...HOME, rate: "2mbit", back: RETURN, traffic: [{ kind: "upload", count: 1 }, { kind: "upload", count: 1, back: true }, { kind: "call", count: 1 }] }],
  ["radio", "a radio link: jitter and loss", { ...HOME, jitter: "5ms", loss: "0.001", traffic: [{ kind: "upload", count: 1 }, { kind: "bbr", count: 1 }], panes: [pane("droptail"), pane("codel")] }],
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
  private readonly direction: Direction;
  private readonly traffic = h("div", { class: "traffic", role: "group", "aria-label": "traffic" });
  private readonly transport: HTMLElement;
  private readonly stories: HTMLSelectElement;
  private readonly dialog = h("dialog", {});
  private readonly error = h("p", { class: "refused", role: "alert" });
  private readonly fileName = h("p", { class: "file" });
  private readonly addPane: HTMLSelectElement;
  private done = "";

  constructor(private readonly app: App) {
    this.play = button("", "Pause or play (space)", () => app.pause(app.playing), "primary");
    this.speeds = SPEEDS.map((speed) => button(speedText(speed), `Speed ${speedText(speed)}`, () => app.setSpeed(speed)));
    this.rate = lineControl("rate", "rate", HOME.rate, (rate) => void app.setLine({ rate }));
    this.rtt = lineControl("rtt", "RTT", HOME.rtt, (rtt) => void app.set({ rtt }));
    this.buffer = lineControl("limit", "buffer", HOME.buffer, (buffer) => void app.set({ buffer }));
    this.direction = new Direction(
      (line) => void app.setLine(line),
      (back) => void app.set({ back }),
    );
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
    this.transport = clockGroup;
    this.header.append(h("h1", {}, "sojourn ", h("span", {}, "playground")), preset, this.stories, this.addPane, clockGroup);
    this.controls.append(this.fileName, this.rate.element, this.rtt.element, this.buffer.element, this.direction.element, this.traffic, this.error);
    this.footer.append(
      button("TOML", "The scenario as a file for the command", () => this.export("TOML")),
      button("Python", "The scenario as Python code", () => this.export("Python")),
      button("tc", "The disciplines as tc commands", () => this.export("tc")),
      button("link to this", "Copy the address, which holds everything", () => this.link()),
      button("new seed", "Other random numbers in all panes (n)", () => this.newSeed()),
      button("keys", "Keyboard (?)", () => this.keys(), "quiet"),
      h("p", { class: "foot-note" }, "Drop a scenario (TOML), a tc line, a trace of a link or a packet capture on the page to run it. Simulated here, byte for byte as the command does."),
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
    const line = this.app.currentLine();
    this.rate.show(line.rate);
    this.rtt.show(state.rtt);
    this.buffer.show(state.buffer);
    const file = state.file;
    this.direction.show(line, state.back);
    for (const control of [this.rtt.element, this.buffer.element, this.direction.element, this.traffic]) control.hidden = file !== undefined;
    setText(this.fileName, file === undefined ? "" : `${file.name}, link ${file.link}`);
    this.fileName.hidden = file === undefined;
    this.addPane.disabled = state.panes.length >= PANES_MAX;
    setText(this.error, "");
    this.showTraffic(state);
    this.showStory(state);
  }

  /** Controls of a figure in the documentation: time, and a link to the whole page in this state. */
  readonly strip = (): HTMLElement => {
    const link = h("a", { href: "index.html", target: "_blank", class: "whole" }, "open in the playground");
    link.addEventListener("click", () => void (link.href = `index.html${this.app.hash()}`));
    return h("header", {}, this.transport, link);
  };

  /** Shows the time. */
  tick(): void {
    setText(this.clock, `${(this.app.nowMs / 1000).toFixed(1)} s`);
  }

  refuse(message: string): void {
    setText(this.error, message);
    const { state } = this.app;
    const line = this.app.currentLine();
    this.rate.show(line.rate);
    this.rtt.show(state.rtt);
    this.buffer.show(state.buffer);
    this.direction.show(line, state.back);
  }

  private showTraffic(state: State): void {
    const set = (traffic: State["traffic"]): void => void ((traffic.length > 0 || state.recorded !== undefined) && this.app.set({ traffic }));
    const recorded = state.recorded === undefined ? 0 : recordedFlows(state.recorded).filter(({ back }) => !back || state.back !== undefined).length;
    const chips = state.traffic.map(({ kind, count, back = false }, i) => {
      const swatch = h("i", { class: "swatch" });
      swatch.style.background = colourOf(recorded + i);
      const to = (n: number): void => set(n < 1 ? state.traffic.filter((_, j) => j !== i) : state.traffic.map((one, j) => (j === i ? { ...one, count: n } : one)));
      const number = h("input", { type: "number", min: "1", max: "1000", value: String(count), "aria-label": `number of ${kind}` });
      number.addEventListener("change", () => to(Math.max(0, Math.min(1000, Math.round(Number(number.value))))));
      return h(
        "span",
        { class: "chip", title: kindOf(kind)?.label, "data-kind": nameOf({ kind, back }) },
        swatch,
        kind,
        ...(state.back === undefined ? [] : [button(back ? "←" : "→", `Direction of ${kind}`, () => set(turned(state.traffic, i)), "quiet")]),
        button("−", `One ${kind} less`, () => to(count - 1), "quiet"),
        number,
        button("+", `One ${kind} more`, () => to(count + 1), "quiet"),
      );
    });
    const absent = TRAFFIC.filter(({ name }) => !state.traffic.some(({ kind, back }) => kind === name && back !== true));
    const menu = select("add traffic", [["", "+ traffic"], ...absent.map(({ name, label }) => [name, label] as const)], "", (kind) => set([...state.traffic, { kind, count: 1 }]));
    this.traffic.replaceChildren(...this.recordings(state), ...chips, menu);
  }

  /** Chips of a recorded link and of recorded packets, which can be removed. */
  private recordings(state: State): HTMLElement[] {
    const { trace, recorded } = state;
    const chip = (kind: string, text: string, about: string, remove: () => void): HTMLElement =>
      h("span", { class: "chip", title: about, "data-kind": kind }, text, button("×", `Remove ${text}`, remove, "quiet"));
    const chips: HTMLElement[] = [];
    if (trace !== undefined) {
      chips.push(chip("trace", trace.name, "Recorded link; it repeats after its end", () => void this.app.set({ trace: undefined })));
    }
    if (recorded !== undefined) {
      const { there, back } = recorded;
      const lost = back.time_s.length > 0 && state.back === undefined ? `; ${back.time_s.length} of the other direction are left out without a return link` : "";
      const about = `${there.time_s.length} recorded packets in ${digits(there.time_s.at(-1) ?? 0)} s${lost}`;
      const traffic = state.traffic.length > 0 ? state.traffic : HOME.traffic;
      chips.push(chip("recorded", recorded.name, about, () => void this.app.set({ recorded: undefined, traffic })));
    }
    return chips;
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
          const { line, lost, differs } = await views[i]!.client.tc({ ...qdiscOf(state, of), ...currentTable(of) }, this.app.currentLine().rate);
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
    const left = leftOut(this.app.state);
    const field = h("textarea", { readonly: true, rows: "4", "aria-label": "address" });
    field.value = location.href;
    const copy = button("copy", "Copy the address", () => void this.copy(field.value, copy));
    this.open("Link to this state", h("p", {}, "The address holds the line, the traffic, the disciplines, every change with its time, and the time now."), ...(left === undefined ? [] : [h("p", { class: "left-out" }, `${left} is too long for an address: send the file, or the TOML, with it.`)]), field, copy);
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
    const text = event.dataTransfer?.getData("text/plain") ?? "";
    if (file === undefined && text === "") return;
    try {
      const name = file?.name ?? "text";
      await this.openDropped(name, file === undefined ? readDropped(name, text) : await readFile(file));
    } catch (error) {
      setText(this.error, error instanceof Error ? error.message : String(error));
    }
  }

  private async openDropped(name: string, dropped: Dropped): Promise<void> {
    const { app } = this;
    const { file: _, ...line } = app.state;
    if (dropped.kind === "packets") return void (await app.openPreset({ ...line, recorded: dropped.packets, traffic: [] }, 0));
    if (dropped.kind === "link") {
      const { rate_bps } = dropped.link;
      const rate = rate_bps === undefined || rate_bps < 1 ? line.rate : `${Math.round(rate_bps)}bit`;
      return void (await app.openPreset(folded({ ...line, rate, trace: dropped.link })));
    }
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
