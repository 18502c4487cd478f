/** A pane: one discipline under the traffic that all panes have. */

import type { Client } from "../engine/client";
import type { Progress, Started } from "../engine/messages";
import { bufferBytes, linkOf, RETURN_LINK } from "../model/scenario";
import { DISCIPLINES, ordered, specOf } from "../model/specs";
import { currentLine, currentParams, type Pane, type State } from "../model/state";
import { digits, parse, shownDelay, shownRate, unitOfRate } from "../model/units";
import { drawChart, drawEvents, drawSpark, heightOf, valueAt, WINDOW_S, type Axis, type Line } from "./chart";
import { parameter, throttled, type Control } from "./controls";
import { button, h, select, setText } from "./dom";
import { QueuePicture } from "./queue";
import { Series } from "./series";
import { colourOf } from "./theme";
import { handlesOf, type Handle } from "./thresholds";

/** Time between two frames of a simulation, ms. */
export const FRAME_MS = 20;
/** Frames in the numbers: the last second. */
const RECENT = 50;
/** Frames over which rates are averaged in charts. */
const SMOOTH = 5;
/** Variables of a discipline that are drawn. */
const SPARKS_MAX = 6;
const FIRST_PARAMS = 4;

const DELAYS: Axis = {
  log: true,
  low: 0.0001,
  high: 2,
  ticks: [
    [0.001, "1 ms"],
    [0.02, "20 ms"],
    [0.1, "100 ms"],
    [0.4, "400 ms"],
  ],
};

/** What a pane asks of the page. */
export interface Wishes {
  discipline(qdisc: string): void;
  param(name: string, value: string): void;
  fork(): void;
  close(): void;
}

interface Chart {
  readonly box: HTMLElement;
  readonly caption: HTMLElement;
  readonly canvas: HTMLCanvasElement;
}

function chart(label: string, kind: string): Chart {
  const canvas = h("canvas", { class: kind, role: "img", "aria-label": label });
  const caption = h("figcaption", {}, label);
  return { box: h("figure", {}, caption, canvas), caption, canvas };
}

export class PaneView {
  readonly element: HTMLElement;
  private series = new Series(["time_s"], 1);
  private groups: string[] = [];
  private gauges: string[] = [];
  private packets: Uint32Array = new Uint32Array(1);
  private readonly picture: QueuePicture;
  private readonly queueCanvas = h("canvas", { class: "queue", role: "img", "aria-label": "queue" });
  private readonly delay = chart("queueing delay", "delay");
  private readonly rates = chart("rate of each group", "rates");
  private readonly events = chart("marks and drops", "events");
  private readonly windows = chart("congestion window, packets", "windows");
  private readonly inside = h("div", { class: "inside" });
  private readonly numbers = h("dl", { class: "numbers" });
  private readonly hero = h("p", { class: "hero", "aria-live": "off" });
  private readonly heroLabel = h("p", { class: "hero-label" }, "loading the simulator");
  private readonly measured = h("p", { class: "measured" });
  private readonly head = h("div", { class: "pane-head" });
  private readonly params = h("div", { class: "params" });
  private readonly message = h("p", { class: "refused pane-error", role: "alert" });
  private controls = new Map<string, Control>();
  private handles: Handle[] = [];
  private of: Pane | undefined;
  private state: State | undefined;
  private sparks: { canvas: HTMLCanvasElement; value: HTMLElement; name: string }[] = [];
  nowMs = 0;

  constructor(
    readonly client: Client,
    private readonly wishes: Wishes,
  ) {
    this.picture = new QueuePicture(this.queueCanvas);
    const top = h("div", { class: "heroes" }, h("div", {}, this.heroLabel, this.hero), this.numbers);
    this.element = h(
      "section",
      { class: "pane" },
      this.head,
      this.message,
      top,
      this.queueCanvas,
      this.delay.box,
      this.events.box,
      this.rates.box,
      this.windows.box,
      this.inside,
      this.measured,
      this.params,
    );
    this.dragThresholds();
  }

  /** Shows the settings of a pane; builds its controls anew if it has another discipline. */
  show(state: State, of: Pane): void {
    const rebuilt = this.of?.qdisc !== of.qdisc;
    [this.state, this.of] = [state, of];
    if (rebuilt) this.build(of);
    const current = currentParams(of);
    for (const [name, control] of this.controls) {
      const spec = specOf(of.qdisc)?.params.find((param) => param.name === name);
      control.show(current[name] ?? (name === "limit" && state.file === undefined ? state.buffer : (spec?.value ?? "")));
      control.refuse("");
    }
    setText(this.message, "");
    this.handles = handlesOf(of, parse(currentLine(state, of).rate, "rate")?.value ?? 1e7);
    this.element.setAttribute("aria-label", of.qdisc);
  }

  private build(of: Pane): void {
    const spec = specOf(of.qdisc);
    const options = DISCIPLINES.map((one) => [one.name, one.name] as const);
    const menu = select("discipline", options, of.qdisc, (name) => this.wishes.discipline(name));
    const actions = h(
      "div",
      { class: "pane-actions" },
      button("fork", "Fork: continue this pane in a second one (f)", () => this.wishes.fork(), "quiet"),
      button("×", "Close this pane", () => this.wishes.close(), "quiet"),
    );
    this.head.replaceChildren(menu, h("p", { class: "about" }, (spec?.about ?? "").replace(/`/g, "")), actions);
    this.controls = new Map();
    const params = spec === undefined ? [] : ordered(spec);
    const made = params.map((param) => {
      const value = param.value;
      const control = parameter(param, value, (text) => this.wishes.param(param.name, text));
      this.controls.set(param.name, control);
      return control.element;
    });
    const more = made.slice(FIRST_PARAMS);
    const rest = h("details", {}, h("summary", {}, `all ${made.length} parameters`), ...more);
    this.params.replaceChildren(...made.slice(0, FIRST_PARAMS), ...(more.length > 0 ? [rest] : []));
  }

  /** Shows why a value was refused, at its control if it is on the page. */
  refuse(message: string, name?: string): void {
    const control = name === undefined ? undefined : this.controls.get(name);
    if (control === undefined) setText(this.message, message);
    else control.refuse(message);
  }

  /** Takes a simulation that was started. */
  begin(started: Started, state: State): void {
    this.series = new Series(started.layout, (WINDOW_S * 1000) / FRAME_MS);
    const link = linkOf(state);
    const groups = started.layout.filter((name) => name.startsWith("groups/") && name.endsWith("/delivered_bytes"));
    this.groups = groups.map((name) => name.slice("groups/".length, -"/delivered_bytes".length));
    const prefix = `links/${link}/gauge/`;
    this.gauges = started.layout.filter((name) => name.startsWith(prefix)).slice(0, SPARKS_MAX);
    this.sparks = this.gauges.map((name) => ({
      name,
      canvas: h("canvas", { class: "spark", role: "img", "aria-label": name.slice(prefix.length) }),
      value: h("span", { class: "value" }),
    }));
    const rows = this.sparks.map((spark) =>
      h("div", { class: "spark-row" }, h("code", {}, spark.name.slice(prefix.length)), spark.canvas, spark.value),
    );
    this.inside.replaceChildren(...(rows.length > 0 ? [h("p", { class: "caption" }, "variables of the discipline"), ...rows] : []));
    this.numbers.replaceChildren();
    this.picture.clear();
    this.take(started);
  }

  take(progress: Progress): void {
    this.nowMs = progress.nowMs;
    this.series.append(progress.frames);
    if (progress.packets !== undefined) this.packets = progress.packets;
  }

  /** Draws everything. */
  draw(elapsedMs: number, still: boolean, full: number, glide: boolean): void {
    const [state, of] = [this.state, this.of];
    if (state === undefined || of === undefined) return;
    const link = linkOf(state);
    const nowS = this.nowMs / 1000;
    const flags = of.changes.map((change) => change.atMs / 1000);
    const { series, groups } = this;
    const lines = (value: (s: Series, i: number, group: string) => number): Line[] =>
      groups.map((name, group) => ({ group, value: (s, i) => value(s, i, name) }));
    this.picture.draw(this.packets, of.qdisc, full, elapsedMs, still, glide);
    const delays = lines((s, i, group) => s.at(i, s.column(`links/${link}/${group}/sojourn_s`)));
    const thresholds = this.handles.map(({ name, seconds }) => ({ name, value: seconds }));
    drawChart(this.delay.canvas, { series, nowS, axis: DELAYS, lines: delays, thresholds, flags });
    const rate = parse(currentLine(state, of).rate, "rate")?.value ?? 1e7;
    const [unit, size] = unitOfRate(rate);
    setText(this.rates.caption, `rate of each group, ${unit}`);
    const rates = lines((s, i, group) => smoothRate(s, i, s.column(`links/${link}/${group}/departed_bytes`)));
    drawChart(this.rates.canvas, { series, nowS, axis: linear(rate * 1.08, rate, size), lines: rates, flags });
    drawEvents(this.events.canvas, series, nowS, link, groups);
    const windows = lines((s, i, group) => s.at(i, s.column(`groups/${group}/cwnd_packets`)));
    drawChart(this.windows.canvas, { series, nowS, axis: linear(largest(series, groups)), lines: windows, flags });
    for (const spark of this.sparks) {
      const column = series.column(spark.name);
      drawSpark(spark.canvas, series, column, nowS);
      const value = series.at(series.length - 1, column);
      setText(spark.value, Math.abs(value) < 1e-3 && value !== 0 ? value.toExponential(1) : digits(value));
    }
    this.showNumbers(link, rate);
  }

  private showNumbers(link: string, rate: number): void {
    const { series } = this;
    const call = this.groups.find((group) => /call|game|meeting|probe|voip/.test(group)) ?? this.groups[0] ?? "";
    const delay = series.mean(`links/${link}/${call}/sojourn_s`, RECENT);
    setText(this.heroLabel, `delay of ${call} in the queue`);
    setText(this.hero, shownDelay(delay));
    this.hero.dataset["feel"] = delay < 0.03 ? "good" : delay < 0.15 ? "fair" : "bad";
    const seconds = (Math.min(RECENT, series.length) * FRAME_MS) / 1000;
    const of = (what: string): number => this.groups.reduce((sum, group) => sum + series.sum(`links/${link}/${group}/${what}`, RECENT), 0);
    const rows: [string, string, number][] = [["use", `${digits(Math.min(100, (of("departed_bytes") * 800) / seconds / rate))} %`, -1]];
    rows.push(["drops", `${digits(of("dropped_packets") / seconds, 2)}/s`, -1]);
    rows.push(["marks", `${digits(of("marked_packets") / seconds, 2)}/s`, -1]);
    const queued = series.mean(`links/${RETURN_LINK}/queue_bytes`, RECENT);
    const returnRate = series.mean(`links/${RETURN_LINK}/rate_bps`, RECENT);
    if (Number.isFinite(queued)) rows.push(["return queue", shownDelay((queued * 8) / returnRate), -1]);
    this.groups.slice(0, 7).forEach((group, g) => {
      const bytes = series.sum(`links/${link}/${group}/departed_bytes`, RECENT);
      const wait = series.mean(`links/${link}/${group}/sojourn_s`, RECENT);
      rows.push([group, `${shownRate((bytes * 8) / seconds)} · ${shownDelay(wait)}`, g]);
    });
    if (this.numbers.childElementCount !== rows.length) {
      this.numbers.replaceChildren(
        ...rows.map(([name, , g]) => {
          const swatch = h("i", { class: "swatch" });
          swatch.style.background = g < 0 ? "transparent" : colourOf(g);
          return h("div", {}, h("dt", {}, ...(g < 0 ? [] : [swatch]), name), h("dd", {}));
        }),
      );
    }
    [...this.numbers.children].forEach((row, i) => setText(row.lastElementChild!, rows[i]?.[1] ?? ""));
  }

  /** Shows the numbers of the result so far, with the names of the command. */
  async summarise(): Promise<void> {
    const state = this.state;
    if (state === undefined) return;
    let summary: Summary;
    try {
      summary = JSON.parse(await this.client.summary()) as Summary;
    } catch {
      setText(this.measured, "");
      return;
    }
    const link = summary.links[linkOf(state)];
    if (link === undefined) return;
    const parts = [
      `queueing delay 50 % ${shownDelay(link.sojourn_p50_s ?? Number.NaN)}, 99 % ${shownDelay(link.sojourn_p99_s ?? Number.NaN)}`,
      `utilisation ${digits(100 * (link.utilisation ?? 0))} %`,
      `loss ${digits(100 * (link.loss_rate ?? 0), 2)} %`,
    ];
    for (const flow of summary.flows.filter((one) => one.delay_p99_s !== undefined).slice(0, 2)) {
      parts.push(`${flow.name} one-way delay 99 % ${shownDelay(flow.delay_p99_s ?? Number.NaN)}`);
    }
    setText(this.measured, `whole run: ${parts.join(" · ")}`);
    this.measured.title = "sojourn_p50_s, sojourn_p99_s, utilisation, loss_rate, delay_p99_s of sojourn run --json";
  }

  /** Bytes that fill the width of the picture. */
  fullBytes(): number {
    if (this.state === undefined || this.of === undefined) return 1;
    return bufferBytes(this.state, this.of);
  }

  /** Dragging a dotted line sets its parameter. */
  private dragThresholds(): void {
    const { canvas } = this.delay;
    let held: Handle | undefined;
    const near = (event: PointerEvent): Handle | undefined => {
      const y = event.offsetY;
      const distance = (one: Handle): number => Math.abs(heightOf(DELAYS, canvas.clientHeight, one.seconds) - y);
      const best = [...this.handles].sort((a, b) => distance(a) - distance(b))[0];
      return best !== undefined && distance(best) < 10 ? best : undefined;
    };
    // The last value may be sent after the end of the drag.
    const set = throttled(([name, text]: [string, string]) => this.wishes.param(name, text));
    canvas.addEventListener("pointerdown", (event) => {
      held = near(event);
      if (held !== undefined) canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      canvas.style.cursor = held !== undefined || near(event) !== undefined ? "ns-resize" : "default";
      if (held !== undefined) set([held.name, held.textFor(valueAt(DELAYS, canvas.clientHeight, event.offsetY))]);
    });
    for (const end of ["pointerup", "pointercancel"] as const) canvas.addEventListener(end, () => (held = undefined));
  }
}

interface Summary {
  readonly links: Record<string, { sojourn_p50_s?: number; sojourn_p99_s?: number; utilisation?: number; loss_rate?: number }>;
  readonly flows: { name: string; delay_p99_s?: number }[];
}

function smoothRate(series: Series, i: number, column: number | undefined): number {
  let sum = 0;
  const from = Math.max(0, i - SMOOTH + 1);
  for (let j = from; j <= i; j++) sum += series.at(j, column);
  return (sum * 8000) / ((i - from + 1) * FRAME_MS);
}

function largest(series: Series, groups: readonly string[]): number {
  let high = 10;
  for (const group of groups) {
    const column = series.column(`groups/${group}/cwnd_packets`);
    for (let i = 0; i < series.length; i++) {
      const value = series.at(i, column);
      if (value > high) high = value;
    }
  }
  const power = 10 ** Math.floor(Math.log10(high));
  return Math.ceil(high / power) * power;
}

/** Axis from 0 with lines at `top` and its half, in units of `size`. */
function linear(high: number, top = high, size = 1): Axis {
  const ticks = [0, top / 2, top].map((value) => [value, digits(value / size)] as const);
  return { log: false, low: 0, high, ticks };
}
