/** Controls for quantities: a slider, and a text with a unit. */

import type { ParamSpec } from "../model/specs";
import { format, parse, type Kind } from "../model/units";
import { h, select } from "./dom";

export interface Control {
  readonly element: HTMLElement;
  /** Shows another value, unless the user is typing. */
  show(value: string): void;
  /** Shows why a value was refused; an empty text removes the message. */
  refuse(message: string): void;
}

interface Setting {
  readonly name: string;
  readonly label: string;
  readonly about: string;
  readonly kind: Kind;
  readonly value: string;
  readonly low: number;
  readonly high: number;
  set(value: string): void;
}

const STEPS = 1000;
/** Shortest time between two values of a slider that is being moved, ms. */
const PAUSE_MS = 90;

/** Calls `work` with the last value, at most once per {@link PAUSE_MS}. */
export function throttled<T>(work: (value: T) => void): (value: T) => void {
  let [last, timer] = [0, 0];
  return (value) => {
    clearTimeout(timer);
    const wait = last + PAUSE_MS - performance.now();
    const call = (): void => {
      last = performance.now();
      work(value);
    };
    if (wait <= 0) call();
    else timer = window.setTimeout(call, wait);
  };
}

let count = 0;

/** Slider with a text field; logarithmic if its low end is above zero. */
export function quantity(setting: Setting): Control {
  const { kind, low, high } = setting;
  const id = `c${++count}`;
  const log = low > 0;
  const toSlider = (value: number): number => {
    const share = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return Math.round(Math.max(0, Math.min(1, share)) * STEPS);
  };
  const fromSlider = (at: number): number => {
    const share = at / STEPS;
    return log ? low * (high / low) ** share : low + share * (high - low);
  };
  let packets = parse(setting.value, kind)?.packets ?? false;
  const slider = h("input", { type: "range", min: "0", max: String(STEPS), id, "aria-label": setting.label });
  const text = h("input", { type: "text", "aria-label": `${setting.label}, with unit`, spellcheck: "false", autocomplete: "off" });
  const error = h("p", { class: "refused", role: "alert" });
  const show = (value: string): void => {
    const parsed = parse(value, kind);
    if (parsed !== undefined) {
      packets = parsed.packets;
      slider.value = String(toSlider(parsed.value));
    }
    slider.setAttribute("aria-valuetext", value);
    if (document.activeElement !== text) text.value = value;
  };
  const send = throttled((value: string) => setting.set(value));
  slider.addEventListener("input", () => {
    const value = format(fromSlider(Number(slider.value)), kind, packets);
    text.value = value;
    slider.setAttribute("aria-valuetext", value);
    send(value);
  });
  text.addEventListener("change", () => setting.set(text.value.trim()));
  show(setting.value);
  text.value = setting.value;
  const label = h("label", { for: id, title: setting.about }, setting.label);
  const element = h("div", { class: "control", "data-name": setting.name }, label, slider, text, error);
  return { element, show, refuse: (message) => void (error.textContent = message) };
}

/** Ends of a range such as `1us to 10s`. */
function ends(range: string, kind: Kind): [number | undefined, number | undefined] {
  const [low, high] = range.split(/ to | or more/);
  return [parse(low ?? "", kind)?.value, parse(high ?? "", kind)?.value];
}

const KINDS: Record<string, Kind> = {
  duration: "duration",
  rate: "rate",
  bytes: "bytes",
  size: "size",
  number: "number",
  integer: "integer",
};

/** Kind of a parameter that has a slider. */
export function kindOfParam(spec: ParamSpec): Kind | undefined {
  return KINDS[spec.kind.replace(/ or auto$/, "")];
}

/** Control of a parameter of a discipline. */
export function parameter(spec: ParamSpec, value: string, set: (value: string) => void): Control {
  const about = `${spec.about} ${spec.kind}${spec.range === "" ? "" : `, ${spec.range}`}; default ${spec.value}`;
  const kind = kindOfParam(spec);
  const words = /^\w+(\|\w+)+$/.exec(spec.kind)?.[0].split("|") ?? (spec.kind === "flag" ? ["false", "true"] : undefined);
  if (words !== undefined) return choice(spec.name, about, words, value, set);
  const middle = parse(value, kind ?? "number")?.value ?? parse(spec.value, kind ?? "number")?.value;
  if (kind === undefined || middle === undefined) return typed(spec.name, about, value, set);
  const [least, most] = ends(spec.range, kind);
  const positive = middle > 0;
  const low = positive ? Math.max(least ?? 0, middle / 100) : 0;
  const high = positive ? Math.min(most ?? Number.POSITIVE_INFINITY, middle * 100) : Math.min(most ?? 1, 1000);
  return quantity({ name: spec.name, label: spec.name, about, kind, value, low: low > 0 || !positive ? low : middle / 100, high, set });
}

function choice(name: string, about: string, words: readonly string[], value: string, set: (value: string) => void): Control {
  const options = words.map((word) => [word, word] as const);
  const menu = select(name, options, value, set);
  const error = h("p", { class: "refused", role: "alert" });
  const element = h("div", { class: "control", "data-name": name }, h("span", { title: about, class: "label" }, name), menu, error);
  return { element, show: (text) => void (menu.value = text), refuse: (message) => void (error.textContent = message) };
}

function typed(name: string, about: string, value: string, set: (value: string) => void): Control {
  const text = h("input", { type: "text", "aria-label": name, spellcheck: "false", autocomplete: "off", class: "long", value });
  const error = h("p", { class: "refused", role: "alert" });
  text.addEventListener("change", () => set(text.value.trim()));
  const element = h("div", { class: "control", "data-name": name }, h("span", { title: about, class: "label" }, name), text, error);
  const show = (shown: string): void => {
    if (document.activeElement !== text) text.value = shown;
  };
  return { element, show, refuse: (message) => void (error.textContent = message) };
}
