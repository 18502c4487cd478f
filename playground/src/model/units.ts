/** Quantities as text with a unit, as in a scenario, and numbers with three digits. */

/** Kind of a quantity: what its text means. */
export type Kind = "rate" | "duration" | "bytes" | "size" | "number" | "integer";

interface Unit {
  readonly names: readonly string[];
  readonly factor: number;
}

/** Units in ascending order. The first name is written. */
const UNITS: Record<"rate" | "duration" | "bytes", readonly Unit[]> = {
  rate: [
    { names: ["bit", "bit/s"], factor: 1 },
    { names: ["kbit", "kbit/s"], factor: 1e3 },
    { names: ["mbit", "mbit/s"], factor: 1e6 },
    { names: ["gbit", "gbit/s"], factor: 1e9 },
  ],
  duration: [
    { names: ["ns"], factor: 1e-9 },
    { names: ["us"], factor: 1e-6 },
    { names: ["ms"], factor: 1e-3 },
    { names: ["s"], factor: 1 },
  ],
  bytes: [
    { names: ["B"], factor: 1 },
    { names: ["kB"], factor: 1e3 },
    { names: ["MB"], factor: 1e6 },
  ],
};

const TEXT = /^([0-9.]+(?:e[+-]?\d+)?)\s*([a-zA-Z/]*)$/;

/** Number and unit of a quantity: SI for rates, seconds and bytes; `p` for packets. */
export function parse(text: string, kind: Kind): { value: number; packets: boolean } | undefined {
  const match = TEXT.exec(text.trim());
  const value = Number(match?.[1]);
  if (match === null || !Number.isFinite(value)) return undefined;
  const unit = (match[2] ?? "").toLowerCase();
  if (kind === "number" || kind === "integer") return unit === "" ? { value, packets: false } : undefined;
  if (kind === "size" && unit === "p") return { value, packets: true };
  const units = UNITS[kind === "size" ? "bytes" : kind];
  const found = units.find(({ names }) => names.some((name) => name.toLowerCase() === unit));
  return found && { value: value * found.factor, packets: false };
}

/** `value` with `digits` significant digits, without an exponent and trailing zeros. */
export function digits(value: number, count = 3): string {
  if (value === 0 || !Number.isFinite(value)) return value === 0 ? "0" : "–";
  const decimals = Math.max(0, count - 1 - Math.floor(Math.log10(Math.abs(value))));
  const rounded = Number(value.toPrecision(count));
  return rounded.toFixed(Math.min(decimals, 12)).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

/** Text of a quantity with its unit and three digits, as a scenario has it. */
export function format(value: number, kind: Kind, packets = false): string {
  if (packets) return `${Math.round(value)}p`;
  if (kind === "integer") return String(Math.round(value));
  if (kind === "number") return value !== 0 && Math.abs(value) < 1e-6 ? value.toExponential(2) : digits(value);
  const units = UNITS[kind === "size" ? "bytes" : kind];
  const rounded = Number(value.toPrecision(3));
  const fits = (unit: Unit): boolean => rounded >= unit.factor * (1 - 1e-9);
  const unit = [...units].reverse().find(fits) ?? units[0]!;
  const inUnit = unit.factor === 1 && kind !== "duration" ? Math.round(rounded) : rounded / unit.factor;
  return `${digits(inUnit)}${unit.names[0]}`;
}

/** Exact text of a time in ms with at most three decimals. */
export function exactTime(ms: number): string {
  return Number.isInteger(ms) ? `${ms}ms` : `${Math.round(ms * 1000)}us`;
}

/** Delay for people: `240 ms`, `1.2 s`. */
export function shownDelay(seconds: number): string {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 1e-3) return `${digits(seconds * 1e6, 2)} µs`;
  return seconds < 1 ? `${digits(seconds * 1e3)} ms` : `${digits(seconds)} s`;
}

/** Unit in which people read a rate, and its bits per second. */
export function unitOfRate(bps: number): readonly [string, number] {
  if (bps < 1e6) return ["kbit/s", 1e3];
  return bps < 1e9 ? ["Mbit/s", 1e6] : ["Gbit/s", 1e9];
}

/** Rate for people: `9.8 Mbit/s`. */
export function shownRate(bps: number): string {
  if (!Number.isFinite(bps)) return "–";
  const [unit, size] = unitOfRate(bps);
  return `${digits(bps / size)} ${unit}`;
}
