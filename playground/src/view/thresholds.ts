/** Parameters that are drawn as dotted lines in the chart of delays, where they can be dragged. */

import { specOf } from "../model/specs";
import { currentParams, type Pane } from "../model/state";
import { format, parse } from "../model/units";

/** Bytes of a packet, to convert thresholds in packets. */
const PACKET_BYTES = 1500;
const DELAYS = ["target", "step_thresh"];
const SIZES = ["min_th", "max_th", "q_ref"];

export interface Handle {
  readonly name: string;
  readonly seconds: number;
  /** Text of the parameter for a delay. */
  textFor(seconds: number): string;
}

/** Thresholds of a pane on a line of `rate` bit/s. */
export function handlesOf(of: Pane, rate: number): Handle[] {
  const spec = specOf(of.qdisc);
  const params = currentParams(of);
  return (spec?.params ?? []).flatMap((param) => {
    const text = params[param.name] ?? param.value;
    if (DELAYS.includes(param.name)) {
      const value = parse(text, "duration")?.value;
      return value === undefined ? [] : [{ name: param.name, seconds: value, textFor: (s: number) => format(s, "duration") }];
    }
    const size = SIZES.includes(param.name) ? parse(text, "size") : undefined;
    if (size === undefined) return [];
    const perUnit = ((size.packets ? PACKET_BYTES : 1) * 8) / rate;
    const textFor = (s: number): string => format(Math.max(1, s / perUnit), "size", size.packets);
    return [{ name: param.name, seconds: size.value * perUnit, textFor }];
  });
}
