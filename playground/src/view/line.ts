/** Controls of the line: quantities with the texts of the scenario, and the direction of return. */

import { LINE, DISCIPLINES, specOf } from "../model/specs";
import { HOME, RETURN, type Line, type ReturnLink } from "../model/state";
import { kindOfParam, quantity, type Control } from "./controls";
import { h, select } from "./dom";

/** Ends of the sliders, narrower than the ranges of the scenario: what lines of today have. */
const ENDS: Readonly<Record<string, readonly [number, number]>> = {
  rate: [5e5, 1e9],
  rtt: [1e-4, 0.6],
  limit: [3000, 1e7],
  jitter: [0, 0.05],
  loss: [0, 0.05],
};

/** Control of a key of the line; `limit` is the buffer. */
export function lineControl(key: string, label: string, value: string, set: (value: string) => void): Control {
  const spec = LINE.find((one) => one.name === key) ?? specOf("droptail")?.params.find((param) => param.name === key);
  if (spec === undefined) throw new Error(`${key}: no key of the line`);
  const [low, high] = ENDS[key] ?? [0, 1];
  const about = `${spec.about} ${spec.kind}${spec.range === "" ? "" : `, ${spec.range}`}`;
  return quantity({ name: label.toLowerCase().replace(" ", "-"), label, about, kind: kindOfParam(spec) ?? "number", value, low, high, set });
}

/** Jitter and loss, and the link of the other direction. */
export class Direction {
  readonly element = h("details", { class: "direction" }, h("summary", {}, "jitter, loss, return link"));
  private readonly jitter: Control;
  private readonly loss: Control;
  private readonly rate: Control;
  private readonly buffer: Control;
  private readonly qdisc: HTMLSelectElement;
  private back: ReturnLink | undefined;

  constructor(setLine: (line: Partial<Line>) => void, setBack: (back: ReturnLink | undefined) => void) {
    const change = (values: Partial<ReturnLink>): void => setBack({ ...(this.back ?? RETURN), ...values });
    this.jitter = lineControl("jitter", "jitter", HOME.jitter, (jitter) => setLine({ jitter }));
    this.loss = lineControl("loss", "loss", HOME.loss, (loss) => setLine({ loss }));
    this.rate = lineControl("rate", "return rate", RETURN.rate, (rate) => change({ rate }));
    this.buffer = lineControl("limit", "return buffer", RETURN.buffer, (buffer) => change({ buffer }));
    const names = DISCIPLINES.map(({ name }) => [name, name] as const);
    this.qdisc = select("return link", [["", "delay only"], ...names], "", (qdisc) => (qdisc === "" ? setBack(undefined) : change({ qdisc })));
    const about = "Queue of the other direction, in which acknowledgements return; traffic can be turned to it";
    const menu = h("div", { class: "control", "data-name": "return" }, h("span", { class: "label", title: about }, "return"), this.qdisc);
    const controls = [this.jitter.element, this.loss.element, menu, this.rate.element, this.buffer.element];
    this.element.append(h("div", { class: "direction-controls" }, ...controls));
  }

  /** Shows the values now; opens if one of them is not as at home. */
  show({ jitter, loss }: Line, back: ReturnLink | undefined): void {
    this.back = back;
    for (const control of [this.rate, this.buffer]) control.element.hidden = back === undefined;
    this.jitter.show(jitter);
    this.loss.show(loss);
    this.rate.show((back ?? RETURN).rate);
    this.buffer.show((back ?? RETURN).buffer);
    this.qdisc.value = back?.qdisc ?? "";
    if (back !== undefined || jitter !== HOME.jitter || loss !== HOME.loss) this.element.open = true;
  }
}
