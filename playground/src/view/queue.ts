/** The queue itself: packets as bars as long as their bytes, coloured by flow, in lanes. */

import { Packets, type PacketView } from "../engine/module";
import { fit } from "./dom";
import { lanesOf, type Lanes } from "./lanes";
import { colourOf, theme } from "./theme";

/** Bar that has left its place: sent to the right, or dropped downwards. */
interface Leaving {
  readonly packet: PacketView;
  readonly lane: number;
  x: number;
  y: number;
  vy: number;
  age: number;
}

const GAP = 0.5;
const HEAD = 54;
const TAIL = 8;
/** Lanes are drawn up to this number; the last has all other flows. */
const LANES_MAX = 8;
const FADE_MS = 550;
/** Speed of packets that were sent, pixels per ms. */
const SPEED = 0.3;
/** Packets beyond this number are drawn as levels. */
const BARS_MAX = 2500;

export class QueuePicture {
  private places = new Map<string, { x: number; seen: number }>();
  private leaving: Leaving[] = [];
  private lanes: number[] = [];
  private tick = 0;
  private readonly heads = new Map<number, number>();

  constructor(private readonly canvas: HTMLCanvasElement) {}

  /** Forgets what moves, after a restart. */
  clear(): void {
    this.places.clear();
    this.leaving = [];
    this.lanes = [];
  }

  /**
   * Draws packets. `full` is the number of bytes that fills the width, `still` asks for no motion.
   * With `glide`, packets move smoothly to their places: in slow motion, where they move little.
   */
  draw(words: Uint32Array, qdisc: string, full: number, elapsedMs: number, still: boolean, glide: boolean): void {
    const packets = new Packets(words);
    const { context: c, width, height } = fit(this.canvas);
    if (width === 0) return;
    this.tick++;
    const kind = lanesOf(qdisc);
    const queued = Array.from({ length: packets.queued }, (_, i) => packets.at(i));
    this.assign(queued, kind);
    const count = Math.max(1, this.lanes.length);
    const laneHeight = Math.min(44, (height - 14) / count);
    const top = (height - laneHeight * count) / 2;
    const room = width - HEAD - TAIL;
    const perByte = room / full;
    c.clearRect(0, 0, width, height);
    this.drawLanes(c, count, top, laneHeight, width, queued[0] === undefined ? -1 : this.laneOf(queued[0], kind));
    this.drawQueued(c, queued, kind, { top, laneHeight, right: width - HEAD, perByte, glide });
    if (!still) {
      this.collect(packets, kind, elapsedMs, { top, laneHeight, right: width - HEAD, perByte });
      this.drawLeaving(c, elapsedMs, laneHeight, perByte, width);
    }
    for (const [id, place] of this.places) if (place.seen !== this.tick) this.places.delete(id);
    c.fillStyle = theme().soft;
    c.font = "10px system-ui, sans-serif";
    if (packets.queued > BARS_MAX) c.fillText("levels, not packets", TAIL, height - 4);
  }

  private key(packet: PacketView, kind: Lanes): number {
    if (kind === "flow") return packet.flow * 2 + (packet.ack ? 1 : 0);
    if (kind === "l4s") return packet.ecn === 1 || packet.ecn === 3 ? 0 : 1;
    return 0;
  }

  private laneOf(packet: PacketView, kind: Lanes): number {
    const at = this.lanes.indexOf(this.key(packet, kind));
    return at < 0 ? Math.max(0, this.lanes.length - 1) : at;
  }

  /** Gives a lane to each flow with packets; a lane of a flow that is gone stays while it is needed. */
  private assign(queued: readonly PacketView[], kind: Lanes): void {
    if (kind === "l4s") this.lanes = [0, 1];
    else if (kind === "one") this.lanes = [0];
    else {
      for (const packet of queued) {
        const key = this.key(packet, kind);
        if (!this.lanes.includes(key) && this.lanes.length < LANES_MAX) {
          this.lanes.push(key);
          this.lanes.sort((a, b) => a - b);
        }
      }
    }
  }

  private drawLanes(c: CanvasRenderingContext2D, count: number, top: number, laneHeight: number, width: number, lit: number): void {
    const colours = theme();
    for (let lane = 0; lane < count; lane++) {
      const y = top + lane * laneHeight;
      c.fillStyle = colours.ground;
      c.beginPath();
      c.roundRect(TAIL, y + 1.5, width - HEAD - TAIL, laneHeight - 3, 3);
      c.fill();
      if (lane === lit) {
        c.fillStyle = colours.ink;
        c.fillRect(width - HEAD + 2, y + 3, 2, laneHeight - 6);
      }
    }
    // The link: where packets leave at its rate.
    c.strokeStyle = colours.line;
    c.lineWidth = 2;
    c.beginPath();
    c.moveTo(width - HEAD + 8, top + (count * laneHeight) / 2);
    c.lineTo(width, top + (count * laneHeight) / 2);
    c.stroke();
  }

  private drawQueued(
    c: CanvasRenderingContext2D,
    queued: readonly PacketView[],
    kind: Lanes,
    at: { top: number; laneHeight: number; right: number; perByte: number; glide: boolean },
  ): void {
    const ends = new Array<number>(LANES_MAX).fill(at.right);
    const moving = at.glide && queued.length <= BARS_MAX;
    for (const packet of queued) {
      const lane = this.laneOf(packet, kind);
      const long = packet.bytes * at.perByte;
      const target = ends[lane]! - long;
      ends[lane] = target;
      if (target + long < TAIL) continue;
      let x = target;
      if (moving) {
        const id = `${packet.id}.${packet.flow}`;
        const place = this.places.get(id);
        const before = place === undefined || place.x > target + 1 ? Math.max(TAIL, target - 14) : place.x;
        x = before + (target - before) * 0.4;
        this.places.set(id, { x, seen: this.tick });
      }
      const y = at.top + lane * at.laneHeight;
      this.bar(c, packet, Math.max(TAIL, x), y, Math.max(0.8, long - GAP), at.laneHeight);
    }
    ends.forEach((end, lane) => this.heads.set(lane, end));
  }

  private bar(c: CanvasRenderingContext2D, packet: PacketView, x: number, y: number, long: number, laneHeight: number): void {
    const inset = packet.ack ? laneHeight * 0.4 : 4;
    c.fillStyle = colourOf(packet.group);
    // Members of a group differ in shade.
    c.globalAlpha *= 1 - 0.16 * (packet.flow % 4);
    c.fillRect(x, y + inset, long, laneHeight - 2 * inset);
    c.globalAlpha = 1;
    if (packet.ecn === 3) {
      c.fillStyle = theme().mark;
      c.fillRect(x, y + inset, long, 3);
    }
  }

  private collect(packets: Packets, kind: Lanes, elapsedMs: number, at: { top: number; laneHeight: number; right: number; perByte: number }): void {
    const { top, laneHeight, right, perByte } = at;
    const from = Math.max(packets.queued, packets.length - 60);
    for (let i = from; i < packets.length; i++) {
      const packet = packets.at(i);
      const lane = this.laneOf(packet, kind);
      // Packets that were refused fall at the tail, others where they had arrived: at the head.
      const x = packet.fate === 0 || packet.fate === 3 ? right - packet.bytes * perByte : Math.max(TAIL, (this.heads.get(lane) ?? right) - packet.bytes * perByte);
      const late = (packets.length - 1 - i) / (packets.length - from);
      const place = packet.fate === 0 ? right + 8 + late * Math.min(50, elapsedMs) * SPEED : x;
      this.leaving.push({ packet, lane, x: place, y: top + lane * laneHeight, vy: 0, age: 0 });
    }
    if (this.leaving.length > 240) this.leaving.splice(0, this.leaving.length - 240);
  }

  private drawLeaving(c: CanvasRenderingContext2D, elapsedMs: number, laneHeight: number, perByte: number, width: number): void {
    const dt = Math.min(50, elapsedMs);
    for (const one of this.leaving) {
      one.age += dt;
      const long = Math.max(1.5, one.packet.bytes * perByte - GAP);
      if (one.packet.fate === 0) {
        one.x += dt * SPEED;
        c.globalAlpha = Math.max(0, 1 - (one.x - (width - HEAD)) / HEAD);
        this.bar(c, one.packet, one.x, one.y, long, laneHeight);
      } else {
        one.vy += dt * 0.0006;
        one.y += one.vy * dt;
        c.globalAlpha = Math.max(0, 1 - one.age / FADE_MS);
        c.fillStyle = theme().drop;
        c.fillRect(one.x, one.y + 4, Math.max(3, long), laneHeight - 8);
        c.fillStyle = colourOf(one.packet.group);
        c.fillRect(one.x, one.y + 6, Math.max(3, long), laneHeight - 12);
      }
      c.globalAlpha = 1;
    }
    this.leaving = this.leaving.filter((one) => one.age < FADE_MS && one.x < width);
  }
}
