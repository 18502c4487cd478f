/** Frames of the last seconds of a pane, as a ring of rows. */

export class Series {
  readonly columns: ReadonlyMap<string, number>;
  private readonly width: number;
  private rows: Float64Array;
  private first = 0;
  private count = 0;

  constructor(
    layout: readonly string[],
    private readonly capacity: number,
  ) {
    this.columns = new Map(layout.map((name, i) => [name, i]));
    this.width = layout.length;
    this.rows = new Float64Array(capacity * this.width);
  }

  get length(): number {
    return this.count;
  }

  /** Appends frames; the oldest are forgotten. */
  append(frames: Float64Array): void {
    const added = frames.length / this.width;
    const skipped = Math.max(0, added - this.capacity);
    for (let i = skipped; i < added; i++) {
      const at = (this.first + this.count) % this.capacity;
      this.rows.set(frames.subarray(i * this.width, (i + 1) * this.width), at * this.width);
      if (this.count < this.capacity) this.count++;
      else this.first = (this.first + 1) % this.capacity;
    }
  }

  /** Value of a column in row `i`; NaN if there is none. */
  at(i: number, column: number | undefined): number {
    if (column === undefined || i < 0 || i >= this.count) return Number.NaN;
    return this.rows[((this.first + i) % this.capacity) * this.width + column]!;
  }

  column(name: string): number | undefined {
    return this.columns.get(name);
  }

  /** Mean of the last `rows` values that exist. */
  mean(name: string, rows: number): number {
    const column = this.column(name);
    let [sum, n] = [0, 0];
    for (let i = Math.max(0, this.count - rows); i < this.count; i++) {
      const value = this.at(i, column);
      if (Number.isFinite(value)) [sum, n] = [sum + value, n + 1];
    }
    return n > 0 ? sum / n : Number.NaN;
  }

  /** Sum of the last `rows` values. */
  sum(name: string, rows: number): number {
    const mean = this.mean(name, rows);
    return Number.isFinite(mean) ? mean * Math.min(rows, this.count) : 0;
  }
}
