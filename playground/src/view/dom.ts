/** Elements of the page. */

type Attributes = Readonly<Record<string, string | boolean | undefined>>;

/** Creates an element; children are texts or elements. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** A button with an accessible name. */
export function button(text: string, label: string, press: () => void, kind = ""): HTMLButtonElement {
  const element = h("button", { type: "button", "aria-label": label, title: label, class: kind }, text);
  element.addEventListener("click", press);
  return element;
}

/** A menu of names with their texts. */
export function select(label: string, options: readonly (readonly [string, string])[], value: string, pick: (value: string) => void): HTMLSelectElement {
  const items = options.map(([name, text]) => h("option", { value: name, selected: name === value }, text));
  const element = h("select", { "aria-label": label, title: label }, ...items);
  element.addEventListener("change", () => pick(element.value));
  return element;
}

export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** True if the user asks for little motion. */
export function wantsStill(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Fits a canvas to its place on the screen; returns its context and size in CSS pixels. */
export function fit(canvas: HTMLCanvasElement): { context: CanvasRenderingContext2D; width: number; height: number } {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const [w, t] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== t) [canvas.width, canvas.height] = [w, t];
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, width, height };
}
