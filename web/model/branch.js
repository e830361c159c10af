/**
 * Branches. A change of history is a flag more in the address: the run without it stays beside it. Pure.
 *
 * `vs` says how many of the changes the run beside it keeps: `base` none, `1` the first.
 */

import { list, readable, time } from "./words.js";

/**
 * @typedef {import("../url.js").Query} Query
 * @typedef {import("./run.js").Run} Run
 * @typedef {import("./run.js").Message} Message
 * @typedef {import("./run.js").Position} Position
 * @typedef {{ place: number, flag: string, value: string, text: string }} Change `place`: its index among the flags
 */

const OF_MESSAGES = ["drop", "late", "twice"];

/** More than this many at once compare nothing that a person can follow. */
export const MOST = 4;

/** The changes in an address, in order. An empty value takes the scenario's own faults away and is no change of a run. @param {Query} query @returns {Change[]} */
export function changes(query) {
  return query.flags.flatMap(([flag, value], place) => (CHANGES.includes(flag) && value ? [{ place, flag, value, text: phrase(flag, value) }] : []));
}

/** What the flags of an address say, in words: "members 5, 6 crashes at 2.5 ms". @param {Query} query */
export const told = ({ flags, own }) => list(flags.map(([flag, value]) => flagWords(flag, value))) || (own.z ? "A scenario of its own." : "As recorded.");

/** One flag in words. An empty value takes the scenario's own faults away. @param {string} flag @param {string} value */
export function flagWords(flag, value) {
  if (CHANGES.includes(flag)) return value ? phrase(flag, value) : `no ${flag} of the scenario's own`;
  const name = flag.replaceAll("-", " ");
  return value === "true" ? name : value ? `${name} ${readable(value).replaceAll(",", ", ").replace("..", " to ")}` : `no ${name}`;
}

/** How many changes the run beside this one keeps; null if there is none beside it. @param {Query} query */
export function kept(query) {
  const { vs } = query.own;
  if (!vs) return null;
  const number = vs === "base" ? 0 : Number(vs);
  const all = changes(query).length;
  return Number.isInteger(number) && number >= 0 && number < all ? number : null;
}

/** The flags of the run beside this one; null if there is none. @param {Query} query */
export function baseFlags(query) {
  const keep = kept(query);
  if (keep === null) return null;
  const gone = new Set(changes(query).slice(keep).map(({ place }) => place));
  return query.flags.filter((_, place) => !gone.has(place));
}

/** The changes by which the run differs from the one beside it. @param {Query} query */
export function branched(query) {
  const keep = kept(query);
  return keep === null ? [] : changes(query).slice(keep);
}

/** @param {number} number */
const written = (number) => (number === 0 ? "base" : String(number));

/** `query` beside the run that keeps the first `keep` changes. @param {Query} query @param {number} keep @returns {Query} */
export const compareWith = (query, keep) => ({ ...query, own: { ...query.own, vs: written(keep) } });

/** `query` with one change more. The first one opens the branch. @param {Query} query @param {string} flag @param {string} value @returns {Query} */
export function amend(query, flag, value) {
  const keep = kept(query) ?? changes(query).length;
  const flags = [...query.flags];
  const same = OF_MESSAGES.includes(flag) ? flags.findIndex(([name, old]) => OF_MESSAGES.includes(name) && ref(old) === ref(value)) : -1;
  const isOfBranch = same >= 0 && branched(query).some(({ place }) => place === same);
  if (same >= 0 && isOfBranch) flags[same] = [flag, value];
  else flags.push([flag, value]);
  return { ...query, flags, own: { ...query.own, vs: written(keep), h: "" } };
}

/** `query` without one of its changes. @param {Query} query @param {Change} change @returns {Query} */
export function without(query, change) {
  const before = changes(query);
  const keep = kept(query);
  const flags = query.flags.filter((_, place) => place !== change.place);
  if (keep === null) return { ...query, flags, own: { ...query.own, h: "" } };
  const still = before.findIndex(({ place }) => place === change.place) < keep ? keep - 1 : keep;
  return { ...query, flags, own: { ...query.own, h: "", vs: still < before.length - 1 ? written(still) : "" } };
}

/** The message that a value names: `6:1:COORDINATOR+2ms` → `6:1:COORDINATOR`. @param {string} value */
export const ref = (value) => value.split("+")[0];

/** @param {string | undefined} when */
const at = (when) => (when ? ` at ${readable(when.split(",")[0])}` : "");

/** What happens to one message, which `value` names: "5's 2nd OK to 1 is lost". @param {string} value @param {string} what */
function ofMessage(value, what) {
  const [from, to, kind, number] = ref(value).split(":");
  return `${from}'s ${number ? `${ordinal(Number(number))} ` : ""}${kind} to ${to} ${what}`;
}

/**
 * Flags that change what happens in a run and not what the run is of, each with its words. A value is a subject, `@` and a time,
 * or the name of a message. A test compares them with the engine's. @type {Record<string, (subject: string, when: string | undefined, value: string) => string>}
 */
const PHRASES = {
  crash: (member, when) => `${member} crashes${at(when)}`,
  restart: (member, when) => `${member} restarts${at(when)}`,
  pause: (member, when = "") => {
    const [begin, length] = when.split("+");
    return `${member} pauses at ${readable(begin)}${length ? ` for ${readable(length)}` : ""}`;
  },
  clock: (subject, when = "") => {
    const [[member, rate], [begin, jump]] = [subject.split("="), when.split("+")];
    return `${member}'s clock runs at rate ${rate} from ${readable(begin)} on${jump ? `, and jumps ahead by ${readable(jump)}` : ""}`;
  },
  cut: (link, when) => `the link ${link.replace(">", " → ")} is cut${at(when)}`,
  partition: (groups, when) => `${groups.split("/").map((group) => `{${group.split(",").join(", ")}}`).join(" and ")} are parted${at(when)}`,
  heal: (when) => `all links heal at ${readable(when)}`,
  drop: (kind, when, value) => (when ? `the next ${kind} after ${readable(when)} is lost` : ofMessage(value, "is lost")),
  late: (_, __, value) => ofMessage(value, `arrives ${readable(value.split("+")[1] ?? "")} later`),
  twice: (_, __, value) => ofMessage(value, "arrives twice"),
  snapshot: (member, when) => `${member} starts a snapshot${at(when)}`,
  tell: (members, when) => `${members.replace(">", " tells ")} something${at(when)}`,
};

/** The names of these flags. */
export const CHANGES = Object.keys(PHRASES);

/** A change in words: "6 crashes at 2.5 ms". @param {string} flag @param {string} value */
export function phrase(flag, value) {
  if (!CHANGES.includes(flag)) throw new Error(`no words for the change ${flag}`);
  const [subject, when] = value.split("@");
  return PHRASES[flag](subject, when, value);
}

/** @param {number} number */
function ordinal(number) {
  const last = number % 100;
  const ending = last > 10 && last < 14 ? "th" : ["th", "st", "nd", "rd"][number % 10] ?? "th";
  return `${number}${ending}`;
}

/** A time as a flag writes it: `3.45ms`, without a digit lost. @param {number} ns */
export function flagTime(ns) {
  if (ns % 1e9 === 0 && ns > 0) return `${ns / 1e9}s`;
  if (ns >= 1e5 || ns === 0) return `${trimmed(ns, 1e6)}ms`;
  if (ns >= 1e2) return `${trimmed(ns, 1e3)}us`;
  return `${ns}ns`;
}

/** `ns / unit` in decimals, exactly. @param {number} ns @param {number} unit */
function trimmed(ns, unit) {
  const digits = String(unit).length - 1;
  const rest = String(ns % unit).padStart(digits, "0").replace(/0+$/, "");
  return `${Math.floor(ns / unit)}${rest ? `.${rest}` : ""}`;
}

/**
 * When a fault "now" happens. A fault at the very instant of a step would come before it and undo what is on screen, so it
 * comes a microsecond later, or at half the time to the next step. @param {Run} run @param {Position} position
 */
export function faultTime(run, { s, t }) {
  const last = s > 0 ? run.steps[s - 1].at : -1;
  const next = run.steps.find((step) => step.at > t)?.at ?? Infinity;
  if (t > last) {
    // Between two steps a hundredth of a flight is exact enough, and can be read. It is not before what is on screen.
    const grain = Math.max(1, 10 ** Math.floor(Math.log10(run.d || 1)) / 100);
    const round = Math.round(Math.ceil(t / grain) * grain);
    return round < next ? round : Math.round(t);
  }
  return Math.round(t + Math.min(1000, Math.max(1, Math.floor((next - t) / 2))));
}

/** What can be done to a message at a position. @param {Run} run @param {Message} message @param {number} delay how much a delay is @returns {{ flag: string, value: string, title: string }[]} */
export function messageChanges(run, message, delay = run.d) {
  const before = message.changed === "delayed" && message.arrives !== null ? message.arrives - message.sent - run.d : 0;
  return [
    { flag: "drop", value: message.ref, title: "Drop" },
    { flag: "late", value: `${message.ref}+${flagTime(Math.max(0, before) + delay)}`, title: `Delay by ${time(delay)}` },
    { flag: "twice", value: message.ref, title: "Duplicate" },
  ];
}

/**
 * Where the run beside stands when this one is at `position`. They share the steps before the first that differs.
 * @param {Run} beside @param {number | null} first @param {Position} position @returns {Position}
 */
export function positionBeside(beside, first, position) {
  if (first !== null && position.s > first) return beside.atTime(position.t);
  return { s: Math.min(position.s, beside.length), t: position.t };
}
