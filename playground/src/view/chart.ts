/** Charts of the last seconds. Time runs from right to left: now is at the right end. */

import { fit } from "./dom";
import type { Series } from "./series";
import { colourOf, dashOf, theme } from "./theme";

/** Line of a chart. */
export interface Line {
  readonly group: number;
  /** Value in row `i` of the series. */
  value(series: Series, i: number): number;
}

export interface Axis {
  readonly log: boolean;
  readonly low: number;
  readonly high: number;
  /** Values with a line and a text. */
  readonly ticks: readonly (readonly [number, string])[];
}

/** Value with a dotted line, such as a target. */
export interface Threshold {
  readonly name: string;
  readonly value: number;
}

/** Time that a chart shows, seconds. */
export const WINDOW_S = 10;
const LEFT = 42;
const RIGHT = 6;
const TOP = 6;
const BOTTOM = 4;

function scale(axis: Axis, height: number): (value: number) => number {
  const of = (value: number): number => (axis.log ? Math.log(Math.max(value, axis.low)) : value);
  const [low, high] = [of(axis.low), of(axis.high)];
  return (value) => height - BOTTOM - ((of(value) - low) / (high - low)) * (height - TOP - BOTTOM);
}

/** Value at a height of a chart, for dragging. */
export function valueAt(axis: Axis, height: number, y: number): number {
  const share = (height - BOTTOM - y) / (height - TOP - BOTTOM);
  if (!axis.log) return axis.low + share * (axis.high - axis.low);
  return axis.low * (axis.high / axis.low) ** share;
}

/** Height of a value of a chart. */
export function heightOf(axis: Axis, height: number, value: number): number {
  return scale(axis, height)(value);
}

interface Picture {
  readonly series: Series;
  readonly nowS: number;
  readonly axis: Axis;
  readonly lines: readonly Line[];
  readonly thresholds?: readonly Threshold[];
  /** Times of changes, seconds. */
  readonly flags?: readonly number[];
}

export function drawChart(canvas: HTMLCanvasElement, picture: Picture): void {
  const { context: c, width, height } = fit(canvas);
  if (width === 0) return;
  const { series, nowS, axis } = picture;
  const colours = theme();
  const y = scale(axis, height);
  const x = (t: number): number => LEFT + ((t - nowS + WINDOW_S) / WINDOW_S) * (width - LEFT - RIGHT);
  c.clearRect(0, 0, width, height);
  c.font = "10px system-ui, sans-serif";
  c.textAlign = "right";
  c.textBaseline = "middle";
  c.lineWidth = 1;
  for (const [value, text] of axis.ticks) {
    c.strokeStyle = colours.line;
    c.beginPath();
    c.moveTo(LEFT, y(value));
    c.lineTo(width - RIGHT, y(value));
    c.stroke();
    c.fillStyle = colours.soft;
    c.fillText(text, LEFT - 6, y(value));
  }
  c.save();
  c.beginPath();
  c.rect(LEFT, 0, width - LEFT - RIGHT, height);
  c.clip();
  for (const at of picture.flags ?? []) {
    c.fillStyle = colours.soft;
    c.fillRect(x(at), 0, 1, height);
    c.beginPath();
    c.moveTo(x(at), 0);
    c.lineTo(x(at) + 7, 3.5);
    c.lineTo(x(at), 7);
    c.fill();
  }
  const times = series.column("time_s");
  for (const line of picture.lines) {
    c.strokeStyle = colourOf(line.group);
    c.setLineDash(dashOf(line.group));
    c.lineWidth = 1.6;
    c.lineJoin = "round";
    c.beginPath();
    let drawing = false;
    for (let i = 0; i < series.length; i++) {
      const value = line.value(series, i);
      if (!Number.isFinite(value)) continue;
      const [px, py] = [x(series.at(i, times)), Math.max(y(axis.high) - 4, Math.min(height, y(value)))];
      if (drawing) c.lineTo(px, py);
      else c.moveTo(px, py);
      drawing = true;
    }
    c.stroke();
  }
  c.setLineDash([2, 4]);
  c.lineWidth = 1.5;
  c.strokeStyle = colours.ink;
  c.fillStyle = colours.ink;
  for (const { value } of picture.thresholds ?? []) {
    c.beginPath();
    c.moveTo(LEFT, y(value));
    c.lineTo(width - RIGHT, y(value));
    c.stroke();
  }
  c.setLineDash([]);
  c.textAlign = "left";
  c.strokeStyle = colours.card;
  c.lineWidth = 3;
  (picture.thresholds ?? []).forEach(({ name, value }, i) => {
    const at = LEFT + 4 + 56 * i;
    c.strokeText(name, at, y(value) - 7);
    c.fillText(name, at, y(value) - 7);
  });
  c.restore();
}

/** Strip of drops, downwards, and marks, upwards, per frame and group. */
export function drawEvents(canvas: HTMLCanvasElement, series: Series, nowS: number, link: string, groups: readonly string[]): void {
  const { context: c, width, height } = fit(canvas);
  const colours = theme();
  const middle = height / 2;
  c.clearRect(0, 0, width, height);
  c.fillStyle = colours.line;
  c.fillRect(LEFT, middle, width - LEFT - RIGHT, 1);
  c.font = "10px system-ui, sans-serif";
  c.textAlign = "right";
  c.textBaseline = "middle";
  c.fillStyle = colours.soft;
  c.fillText("marks", LEFT - 6, middle - 7);
  c.fillText("drops", LEFT - 6, middle + 7);
  const times = series.column("time_s");
  const x = (t: number): number => LEFT + ((t - nowS + WINDOW_S) / WINDOW_S) * (width - LEFT - RIGHT);
  groups.forEach((group, g) => {
    const dropped = series.column(`links/${link}/${group}/dropped_packets`);
    const marked = series.column(`links/${link}/${group}/marked_packets`);
    c.fillStyle = colourOf(g);
    for (let i = 0; i < series.length; i++) {
      const [drops, marks] = [series.at(i, dropped), series.at(i, marked)];
      const at = x(series.at(i, times));
      if (at < LEFT) continue;
      const size = (n: number): number => Math.min(middle - 2, 3 + 3 * Math.log2(1 + n));
      if (drops > 0) c.fillRect(at, middle + 1, 1.5, size(drops));
      if (marks > 0) c.fillRect(at, middle - size(marks), 1.5, size(marks));
    }
  });
}

/** Line of one variable without axes. */
export function drawSpark(canvas: HTMLCanvasElement, series: Series, column: number | undefined, nowS: number): void {
  const { context: c, width, height } = fit(canvas);
  c.clearRect(0, 0, width, height);
  const times = series.column("time_s");
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (let i = 0; i < series.length; i++) {
    const value = series.at(i, column);
    if (Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
  }
  if (!(high > low)) [low, high] = [low - 1, low + 1];
  c.strokeStyle = theme().ink;
  c.lineWidth = 1.2;
  c.beginPath();
  let drawing = false;
  for (let i = 0; i < series.length; i++) {
    const value = series.at(i, column);
    if (!Number.isFinite(value)) continue;
    const px = ((series.at(i, times) - nowS + WINDOW_S) / WINDOW_S) * width;
    const py = height - 2 - ((value - low) / (high - low)) * (height - 4);
    if (drawing) c.lineTo(px, py);
    else c.moveTo(px, py);
    drawing = true;
  }
  c.stroke();
}
