/**
 * A recorded run. It never changes: what is on screen is a function of the run and a position in it. Pure.
 *
 * A **position** is `{ s, t }`: `s` steps are done, and the time is `t`. Steps of one instant are told apart by `s`; between
 * two steps only `t` moves.
 */

/**
 * @typedef {object} Step
 * @property {number} i @property {number} at @property {number | null} member
 * @property {"message" | "timer" | "campaign" | "section" | "command" | "fault" | "suspect" | "trust" | "lease" | "note"} type
 * @property {number | null} message @property {string | null} timer @property {boolean} background
 * @property {string[]} rules @property {number[]} causes @property {number[]} sends
 * @property {[number, Record<string, [any, any]>][]} change @property {string} text @property {string} sentence
 *
 * @typedef {object} Message
 * @property {number} id @property {number} kind @property {number} from @property {number} to @property {string} text
 * @property {number} sent @property {number} by @property {number | null} arrives @property {number | null} again
 * @property {number | null} at @property {number | null} again_at
 * @property {"received" | "lost" | "receiver down" | "in flight"} fate @property {string} ref
 * @property {null | "dropped" | "delayed" | "doubled"} changed
 *
 * @typedef {object} State what a member holds
 * @property {number} id @property {string} role of an election, or where it is: `outside`, `waiting`, `inside` @property {number | null} leader @property {number} term
 * @property {boolean} up @property {number | null} paused_until @property {number | null} lease
 *
 * @typedef {{ s: number, t: number }} Position
 */

const KEYFRAME = 64;

export class Run {
  /** @param {any} recorded as the engine gives it */
  constructor(recorded) {
    this.data = recorded;
    /** Whether members enter a critical section, and follow no leader. */
    this.excludes = recorded.purpose === "excludes";
    /** @type {Step[]} */
    this.steps = recorded.steps.map((/** @type {any} */ step, /** @type {number} */ i) => ({
      member: null, message: null, timer: null, background: false, rules: [], causes: [], sends: [], sentence: "", ...step, i,
      change: (step.change ?? []).map((/** @type {[number, any]} */ [member, changes]) => [member, this.excludes ? inPlaceOfRole(changes) : changes]),
    }));
    /** @type {Message[]} */
    this.messages = recorded.messages.map((/** @type {any} */ message, /** @type {number} */ id) => ({
      id, text: recorded.kinds[message.kind].name, fate: "received",
      arrives: null, again: null, at: null, again_at: null, changed: null, ...message,
    }));
    /** @type {Map<number, Message>} */
    this.byId = new Map(this.messages.map((message) => [message.id, message]));
    /** @type {number[]} */
    this.order = recorded.order;
    /** @type {Map<number, any>} */
    this.members = new Map(recorded.members.map((/** @type {any} */ member) => [member.id, member]));
    this.kinds = recorded.kinds;
    this.end = recorded.end_ns;
    this.d = recorded.d_ns;
    /** @type {Map<number, State>[]} every `KEYFRAME`th frame */
    this.keyframes = [new Map(recorded.initial.map((/** @type {any} */ state) => [state.id, this.excludes ? { ...state, role: state.section } : state]))];
    /** The consequences of each step; computed at the first request. @type {number[][] | null} */
    this.effects = null;
    /** @type {number[]} how many election messages have been sent before each step */
    this.sentBefore = [0];
    for (const step of this.steps) {
      const counted = step.sends.filter((id) => this.counts(id)).length;
      this.sentBefore.push(this.sentBefore[step.i] + counted);
    }
  }

  /** How many steps there are. */
  get length() {
    return this.steps.length;
  }

  /** Whether the textbooks count this message. @param {number} id */
  counts(id) {
    const message = this.byId.get(id);
    return message !== undefined && !this.kinds[message.kind].background;
  }

  /** What every member holds when `s` steps are done. @param {number} s @returns {Map<number, State>} */
  frame(s) {
    const wanted = Math.floor(s / KEYFRAME);
    for (let k = this.keyframes.length; k <= wanted; k++) {
      this.keyframes.push(this.advance(this.keyframes[k - 1], (k - 1) * KEYFRAME, k * KEYFRAME));
    }
    return this.advance(this.keyframes[wanted], wanted * KEYFRAME, s);
  }

  /** @param {Map<number, State>} frame @param {number} from @param {number} to */
  advance(frame, from, to) {
    const next = new Map(frame);
    for (const step of this.steps.slice(from, to)) {
      for (const [member, changes] of step.change) {
        const state = /** @type {any} */ ({ ...next.get(member) });
        for (const [field, [, value]] of Object.entries(changes)) state[field] = value;
        next.set(member, state);
      }
    }
    return next;
  }

  /** The position after `s` steps. @param {number} s @returns {Position} */
  atStep(s) {
    const done = Math.max(0, Math.min(s, this.length));
    return { s: done, t: done === 0 ? Math.min(0, this.steps[0]?.at ?? 0) : this.steps[done - 1].at };
  }

  /** The position at time `t`, with all steps of that instant done. @param {number} t @returns {Position} */
  atTime(t) {
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.steps[middle].at <= t) low = middle + 1;
      else high = middle;
    }
    return { s: low, t };
  }

  /** After the next moment, or before the last: all steps of one instant. @param {Position} position @param {1 | -1} way @returns {Position} */
  moment({ s }, way) {
    if (way > 0) return s < this.length ? this.atTime(this.steps[s].at) : this.atStep(s);
    if (s === 0) return this.atStep(0);
    const { at } = this.steps[s - 1];
    let first = s - 1;
    while (first > 0 && this.steps[first - 1].at === at) first--;
    return this.atStep(first);
  }

  /**
   * The messages under way, each with how far it has come, from 0 to 1. A lost one gets half way and stays visible until it
   * would have arrived. @param {Position} position
   * @returns {{ message: Message, done: number, copy: boolean, lost: boolean }[]}
   */
  inFlight({ s, t }) {
    const found = [];
    for (const message of this.messages) {
      if (message.by >= s) continue;
      const until = message.arrives ?? message.sent + this.d;
      const arrived = message.at === null ? t >= until : message.at < s;
      if (!arrived) {
        const way = until > message.sent ? (t - message.sent) / (until - message.sent) : 1;
        const lost = message.arrives === null;
        found.push({ message, done: clamp(lost ? Math.min(way, 0.5) : way), copy: false, lost: lost && way >= 0.5 });
      }
      if (message.again !== null && (message.again_at === null ? t < message.again : message.again_at >= s)) {
        found.push({ message, done: clamp((t - message.sent) / (message.again - message.sent)), copy: true, lost: false });
      }
    }
    return found;
  }

  /** Election messages sent when `s` steps are done. @param {number} s */
  sent(s) {
    return this.sentBefore[Math.max(0, Math.min(s, this.length))];
  }

  /** The same by kind, in the order of `kinds`. @param {number} s */
  sentByKind(s) {
    const counts = this.kinds.map(() => 0);
    for (const message of this.messages) if (message.by < s) counts[message.kind]++;
    return counts;
  }

  /** The causal past of a step, itself included: the steps without which it would not be. @param {number} i */
  past(i) {
    return reach(i, (at) => this.steps[at].causes);
  }

  /** The steps that step `i` had a part in, itself included. @param {number} i */
  future(i) {
    this.effects ??= this.invert();
    const effects = this.effects;
    return reach(i, (at) => effects[at]);
  }

  invert() {
    /** @type {number[][]} */
    const effects = this.steps.map(() => []);
    for (const step of this.steps) for (const cause of step.causes) effects[cause].push(step.i);
    return effects;
  }

  /** The messages that carried one step's effect to another among `steps`. @param {Set<number>} steps */
  messagesWithin(steps) {
    const within = new Set();
    for (const i of steps) {
      const { message } = this.steps[i];
      if (message !== null && steps.has(this.byId.get(message)?.by ?? -1)) within.add(message);
    }
    return within;
  }

  /** Who leads or is inside when `s` steps are done. @param {number} s */
  holders(s) {
    return [...this.frame(s).values()].filter((state) => state.up && isHolding(state.role));
  }

  /** "3 leads", "1 and 3 are inside", "no leader". @param {number} s */
  whoHolds(s) {
    const names = this.holders(s).map(({ id }) => this.name(id));
    const [one, several, none] = this.excludes ? ["is inside", "are inside", "no member inside"] : ["leads", "lead", "no leader"];
    return names.length ? `${names.join(" and ")} ${names.length > 1 ? several : one}` : none;
  }

  /** The name of a member. @param {number | null} id */
  name(id) {
    return id === null ? "no member" : this.members.get(id)?.name ?? String(id);
  }

  /** The step that a selection `6`, `m5` or `s7` is about, at a position: a member's last step. @param {string} selection @param {Position} position @returns {number | null} */
  stepOf(selection, { s }) {
    if (selection.startsWith("s")) return inRange(Number(selection.slice(1)), this.length);
    if (selection.startsWith("m")) {
      const message = this.byId.get(Number(selection.slice(1)));
      if (!message) return null;
      return message.at !== null && message.at < s ? message.at : message.by;
    }
    for (let i = s - 1; i >= 0; i--) if (this.steps[i].member === Number(selection)) return i;
    return null;
  }
}

/** Whether a member has what all want: it leads, or is inside. @param {string | undefined} role */
export const isHolding = (role) => role === "leader" || role === "inside";

/** Around a critical section, where a member is takes the place of its role. @param {Record<string, [any, any]>} changes */
function inPlaceOfRole({ section, ...others }) {
  return section ? { ...others, role: section } : others;
}

/** The first step in which two runs differ; their lengths if one is the beginning of the other, null if they are equal. @param {Run} a @param {Run} b @returns {number | null} */
export function divergence(a, b) {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) if (identity(a, i) !== identity(b, i)) return i;
  return a.length === b.length ? null : shared;
}

/** What a step is, apart from its number. @param {Run} run @param {number} i */
function identity(run, i) {
  const step = run.steps[i];
  const sends = step.sends.map((id) => {
    const message = run.byId.get(id);
    return message && [message.to, message.text, message.arrives, message.again];
  });
  const received = step.message === null ? null : run.byId.get(step.message)?.text;
  return JSON.stringify([step.at, step.member, step.type, step.timer, received, step.change, sends, step.text]);
}

/** @param {number} start @param {(i: number) => number[]} next @returns {Set<number>} */
function reach(start, next) {
  const found = new Set([start]);
  const waiting = [start];
  while (waiting.length) {
    for (const i of next(/** @type {number} */ (waiting.pop()))) {
      if (!found.has(i)) {
        found.add(i);
        waiting.push(i);
      }
    }
  }
  return found;
}

/** @param {number} value */
const clamp = (value) => Math.max(0, Math.min(1, value));

/** @param {number} value @param {number} length */
const inRange = (value, length) => (Number.isInteger(value) && value >= 0 && value < length ? value : null);
