/** Colours of canvases, as the style sheet has them. Colours of flows are those of the figures. */

export interface Theme {
  readonly ink: string;
  readonly soft: string;
  readonly line: string;
  readonly ground: string;
  readonly card: string;
  readonly drop: string;
  readonly mark: string;
  readonly flows: readonly string[];
}

let cached: Theme | undefined;

/** Colours of the current scheme. */
export function theme(): Theme {
  if (cached !== undefined) return cached;
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  cached = {
    ink: of("ink"),
    soft: of("soft"),
    line: of("line"),
    ground: of("ground"),
    card: of("card"),
    drop: of("drop"),
    mark: of("mark"),
    flows: [1, 2, 3, 4, 5, 6, 7].map((n) => of(`flow-${n}`)),
  };
  return cached;
}

/** Dashes of lines: a second sign of a flow, besides its colour. */
const DASHES: readonly (readonly number[])[] = [[], [5, 2], [2, 2], [7, 2, 2, 2], [1, 2], [9, 3], [4, 1, 1, 1]];

export function colourOf(group: number): string {
  const { flows } = theme();
  return flows[group % flows.length]!;
}

export function dashOf(group: number): number[] {
  return [...DASHES[group % DASHES.length]!];
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  cached = undefined;
});
