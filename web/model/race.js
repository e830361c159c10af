/** Several algorithms, one scenario, one clock: the flags of each lane, and the comparison. Pure. */

import { CHANGES } from "./branch.js";
import { ids, list, parseTime, readable, time } from "./words.js";

/** @typedef {import("./run.js").Run} Run @typedef {[string, string][]} Flags */

/** What `#/race` alone shows. */
export const DEFAULT = {
  algorithms: ["bully", "modified-bully", "chang-roberts", "quorum"],
  flags: /** @type {Flags} */ ([["members", "5"], ["leader", "5"], ["crash", "5@10ms"], ["detector", "5ms"], ["mode", "hardened"]]),
};
/** What algorithms of mutual exclusion race with, if the address says nothing. @type {Flags} */
export const REQUESTS = [["members", "7"], ["requests", "1,3,5@2ms"], ["hold", "5ms"]];
export const MOST = 4;

/** @param {Flags} flags @param {string} name */
export const flag = (flags, name) => flags.find(([one]) => one === name)?.[1] ?? null;

/** `flags` with a value set or, if it is empty, taken away. @param {Flags} flags @param {string} name @param {string} value @returns {Flags} */
export function setFlag(flags, name, value) {
  const at = flags.findIndex(([one]) => one === name);
  if (!value) return flags.filter(([one]) => one !== name);
  return at < 0 ? [...flags, [name, value]] : flags.map((pair, place) => (place === at ? [name, value] : pair));
}

/** What one algorithm is run with: a mode only where it has that mode. @param {Flags} flags @param {{ name: string, modes: { name: string }[] }} algorithm @returns {Flags} */
export function laneFlags(flags, algorithm) {
  const fitting = flags.filter(([name, value]) => name !== "mode" || algorithm.modes.some((mode) => mode.name === value));
  return [["algorithm", algorithm.name], ...fitting.filter(([name]) => name !== "algorithm")];
}

/** The ids that `members` stands for: `5`, `0..7` or `17,24,33`. @param {string} members @returns {number[]} */
export function memberIds(members) {
  const range = /^(\d+)\.\.(\d+)$/.exec(members);
  if (members.includes(",")) return members.split(",").map(Number);
  const [first, last] = range ? [Number(range[1]), Number(range[2])] : [1, Number(members)];
  return Number.isFinite(last) && last - first < 1000 ? Array.from({ length: Math.max(0, last - first + 1) }, (_, place) => first + place) : [];
}

/** When the fault of the race happens. @param {Flags} flags */
export function faultTime(flags) {
  const value = flag(flags, "crash") ?? flag(flags, "partition") ?? "";
  return value.slice(value.indexOf("@") + 1) || "2ms";
}

/** The leader with as many others as leave it a minority, separated from the rest. @param {Flags} flags @param {string} [at] */
export function partitionValue(flags, at = faultTime(flags)) {
  const all = memberIds(flag(flags, "members") ?? "5");
  const leader = Number(flag(flags, "leader") ?? all.at(-1));
  const others = all.filter((id) => id !== leader);
  const few = Math.max(0, Math.ceil(all.length / 2) - 2);
  const [rest, side] = [others.slice(0, others.length - few), [...others.slice(others.length - few), leader].sort((a, b) => a - b)];
  return `${rest.join(",")}/${side.join(",")}@${at}`;
}

/** @param {Flags} flags */
export const isPartition = (flags) => flag(flags, "partition") !== null;

/** A partition lasts long enough for every algorithm to elect on both sides, and is watched as long again after it heals. */
const [PARTED, WATCHED] = [44, 74];

/** What makes a scenario of its own, and is left out when the fault is another. */
const OF_SCENARIO = [...CHANGES, "until", "dead", "initiators", "leader"];

/** The same race with the other fault: the leader crashes, or is separated from the majority. @param {Flags} flags @returns {Flags} */
export function swapFault(flags) {
  const dead = (flag(flags, "dead") ?? "").split(",").map(Number);
  const live = memberIds(flag(flags, "members") ?? "5").filter((id) => flag(flags, "dead") === null || !dead.includes(id));
  const leader = flag(flags, "leader") ?? String(live.at(-1) ?? 1);
  const next = flags.filter(([name]) => !OF_SCENARIO.includes(name));
  const at = faultTime(flags);
  const after = (/** @type {number} */ flights) => printTime((parseTime(at) ?? 0) + flights * longestDelay(flags));
  const fault = /** @type {Flags} */ (isPartition(flags)
    ? [["crash", `${leader}@${at}`]]
    : [["partition", partitionValue([...next, ["leader", leader]], at)], ["heal", after(PARTED)], ["until", after(WATCHED)]]);
  const place = next.findIndex(([name]) => name === "members") + 1;
  // Without a failure detector no member would detect the failure.
  const detector = /** @type {Flags} */ (flag(next, "detector") === null ? [["detector", printTime(5 * longestDelay(flags))]] : []);
  return [...next.slice(0, place), ["leader", leader], ...fault, ...next.slice(place), ...detector];
}

/** D: the longest delay of `1ms` or `uniform:1ms..2ms`; ten times the mean of `exp:1ms`. @param {Flags} flags */
function longestDelay(flags) {
  const delay = flag(flags, "bound") ?? flag(flags, "delay") ?? "1ms";
  const last = parseTime(delay.split(/\.\.|:/).at(-1)) ?? 1e6;
  return delay.startsWith("exp") ? 10 * last : last;
}

/** After one word was changed the others still make sense: the member that leads is the one that fails. @param {Flags} flags @param {string} name @param {string} value @returns {Flags} */
export function edit(flags, name, value) {
  let next = name === "at" ? flags : setFlag(flags, name, value);
  const all = memberIds(flag(next, "members") ?? "5");
  if (name === "members" && all.length && !all.includes(Number(flag(next, "leader")))) next = setFlag(next, "leader", String(all.at(-1)));
  const at = name === "at" ? value : faultTime(flags);
  if (isPartition(next)) return setFlag(next, "partition", partitionValue(next).replace(/@.*/, `@${at}`));
  const crash = flag(next, "crash");
  return crash === null ? next : setFlag(next, "crash", `${flag(next, "leader") ?? crash.split("@")[0]}@${at}`);
}

const PLAIN = ["members", "requests", "hold", "leader", "crash", "partition", "heal", "dead", "initiators", "detector", "delay", "mode"];

/** The race as a sentence with words that can be changed. @param {Flags} flags @param {{ name: string, title: string }[]} modes @returns {import("../part/sentence.js").Word[]} */
export function sentence(flags, modes) {
  const of = (/** @type {string} */ name) => flag(flags, name) ?? "";
  const members = memberIds(of("members"));
  return [
    { text: "Members " }, { flag: "members", value: of("members"), kind: "members", text: members.length > 1 ? ids(members) : of("members") || "5" }, { text: ". " },
    ...(flag(flags, "requests") !== null ? requestWords(flags) : isPartition(flags) || flag(flags, "crash") !== null ? faultWords(flags, members) : startWords(flags)),
    ...(of("detector") || of("leader") ? [{ text: "; heartbeats every " }, { flag: "detector", value: of("detector"), kind: "duration", text: readable(of("detector")) || "none" }] : []),
    { text: "; a message takes " }, { flag: "delay", value: of("delay") || "1ms", kind: "time", text: readable(of("delay") || "1ms") },
    { text: "; mode " }, { flag: "mode", value: of("mode") || "textbook", text: of("mode") || "textbook", choices: modes.map(({ name, title }) => ({ value: name, text: title })) },
    ...flags.filter(([name]) => !PLAIN.includes(name)).flatMap(([name, value]) => [{ text: `; ${name} ` }, { flag: name, value, text: readable(value) || "none" }]),
    { text: "." },
  ];
}

/** A leader, and what happens to it. @param {Flags} flags @param {number[]} members @returns {import("../part/sentence.js").Word[]} */
function faultWords(flags, members) {
  const of = (/** @type {string} */ name) => flag(flags, name) ?? "";
  const leader = of("leader") || of("crash").split("@")[0];
  const side = of("partition").split("@")[0].split("/").at(-1)?.split(",").filter((id) => id !== leader) ?? [];
  const parted = `${side.length ? `, with ${list(side)},` : ""} is separated from the others from `;
  return [
    { text: of("leader") ? "The leader " : "" },
    { flag: "leader", value: leader, kind: "ids", text: leader, choices: members.length < 20 ? members.map((id) => ({ value: String(id), text: String(id) })) : undefined },
    { text: isPartition(flags) ? parted : " crashes at " },
    { flag: "at", value: faultTime(flags), kind: "duration", text: readable(faultTime(flags)) },
    ...(isPartition(flags) ? [{ text: " to " }, { flag: "heal", value: of("heal"), kind: "duration", text: readable(of("heal")) || "the end" }] : []),
  ];
}

/** The members that ask to enter the critical section, and how long they stay inside. @param {Flags} flags @returns {import("../part/sentence.js").Word[]} */
function requestWords(flags) {
  const [requests, hold] = [flag(flags, "requests") ?? "", flag(flags, "hold") ?? "1ms"];
  const who = requests === "all" ? "all members" : list(requests.split(",").map((one) => readable(one.replace("@", " at "))));
  return [
    { flag: "requests", value: requests, kind: "ids", text: who }, { text: requests.includes(",") || requests === "all" ? " ask to enter and stay for " : " asks to enter and stays for " },
    { flag: "hold", value: hold, kind: "time", text: readable(hold) },
  ];
}

/** The members that are down from the beginning, and those that start. @param {Flags} flags @returns {import("../part/sentence.js").Word[]} */
function startWords(flags) {
  const [dead, starters] = [flag(flags, "dead") ?? "", flag(flags, "initiators") ?? ""];
  const several = (/** @type {string} */ text) => text.includes(",") || text === "all";
  return [
    ...(dead ? [{ flag: "dead", value: dead, kind: "ids", text: list(dead.split(",")) }, { text: several(dead) ? " are down, " : " is down, " }] : []),
    { flag: "initiators", value: starters, kind: "ids", text: starters ? list(starters.split(",")) : "the lowest live member" },
    { text: several(starters) ? " start elections" : " starts an election" },
  ];
}

/** When everything worth showing has happened: elections are over, and leaders have settled. @param {Run[]} runs */
export function horizon(runs) {
  let last = 0;
  for (const run of runs) {
    for (const message of run.messages) if (!run.kinds[message.kind].background) last = Math.max(last, message.arrives ?? message.sent + run.d);
    for (const { from, to } of [...run.data.intervals.leader, ...run.data.intervals.inside ?? []]) last = Math.max(last, from, to ?? 0);
    for (const step of run.steps) if (step.type === "fault") last = Math.max(last, step.at);
  }
  return Math.max(1, last + Math.max(0.04 * last, runs[0]?.d ?? 0));
}

/** From when on a race counts: the fault, so that what led to the first leader is no part of it. @param {Run} run @param {Flags} flags */
export function countsFrom(run, flags) {
  if (!isPartition(flags) && flag(flags, "crash") === null) return 0;
  return parseTime(faultTime(flags)) ?? run.steps.find(({ type }) => type === "fault")?.at ?? 0;
}

/** Election messages sent before `t`. @param {Run} run @param {number} t */
function sentBefore(run, t) {
  const first = run.steps.findIndex(({ at }) => at >= t);
  return run.sent(first < 0 ? run.length : first);
}

/** Running totals, from `begin` on. @param {Run} run @param {number} t @param {number} begin */
export function totals(run, t, begin) {
  const messages = Math.max(0, run.sent(run.atTime(t).s) - sentBefore(run, begin));
  let downtime = 0;
  // Around a critical section: how long members have waited, all of them together.
  const lost = run.excludes ? run.data.intervals.waiting.map((/** @type {any} */ { from, to }) => [from, to]) : run.data.intervals.downtime;
  for (const [from, to] of lost) downtime += Math.max(0, Math.min(t, to ?? t) - Math.max(from, begin));
  let overlap = 0;
  for (const { from, to } of run.data.intervals.overlap) overlap += Math.max(0, Math.min(t, to ?? t) - from);
  const leads = run.data.intervals.leader.some((/** @type {any} */ { from, to }) => from <= t && (to === null || to > t));
  return { messages, downtime, overlap, leads };
}

/** Election messages sent over time, from `begin` on, as corners of steps. @param {Run} run @param {number} end @param {number} begin @returns {[number, number][]} */
export function sentOverTime(run, end, begin) {
  const before = sentBefore(run, begin);
  /** @type {[number, number][]} */
  const points = [[0, 0]];
  for (const step of run.steps) {
    if (step.at > end) break;
    const sum = Math.max(0, run.sent(step.i + 1) - before);
    const last = points[points.length - 1];
    if (sum === last[1]) continue;
    if (last[0] === step.at) last[1] = sum;
    else points.push([step.at, sum]);
  }
  points.push([end, points[points.length - 1][1]]);
  return points;
}

/** From the fault to the first message of the election: what the time is spent on. @param {Run} run @param {Flags} flags @returns {{ from: number, to: number, text: string } | null} */
export function waiting(run, flags) {
  const fault = run.steps.find(({ type }) => type === "fault")?.at;
  if (fault === undefined) return null;
  const first = run.messages.find(({ sent, kind }) => sent > fault && !run.kinds[kind].background)?.sent;
  if (first === undefined) return null;
  const leader = flag(flags, "leader") ?? "";
  return { from: fault, to: first, text: run.data.leases ? `wait: vote leases to ${leader} still run` : "notice" };
}

/** The lane that sends most and the one that waits longest, and why. @param {{ title: string, run: Run }[]} lanes @param {number} end @param {Flags} flags @returns {{ strong: string, rest: string }[]} */
export function verdict(lanes, end, flags) {
  const of = (/** @type {Run} */ run) => totals(run, end, countsFrom(run, flags));
  const most = best(lanes, ({ run }) => -of(run).messages);
  const longest = best(lanes, ({ run }) => -of(run).downtime);
  if (!most.length || lanes.length < 2) return [];
  const names = (/** @type {typeof lanes} */ some) => list(some.map(({ title }) => title));
  const verb = (/** @type {typeof lanes} */ some, /** @type {string} */ one, /** @type {string} */ several) => (some.length > 1 ? several : one);
  const time = lanes[0].run.excludes ? "wait" : "downtime";
  if (most.length === lanes.length && longest.length === lanes.length) return [{ strong: "All alike:", rest: ` as many messages, as long a ${time}.` }];
  const why = longest.length === 1 && longest[0].run.data.leases ? ", so that two members never lead at once" : "";
  if (most.length === 1 && longest.length === 1 && most[0] === longest[0]) return [{ strong: `${names(most)} sends most`, rest: ` and waits longest${why}.` }];
  return [
    { strong: `${names(most)} ${verb(most, "sends", "send")} most`, rest: `; ` },
    { strong: `${names(longest)} ${verb(longest, "waits", "wait")} longest`, rest: `${why}.` },
  ];
}

/** The lanes with the least value; none if all are alike. @template T @param {T[]} lanes @param {(lane: T) => number} value @returns {T[]} */
export function best(lanes, value) {
  const least = Math.min(...lanes.map(value));
  return lanes.filter((lane) => value(lane) === least);
}

/** "The same crash, four algorithms, one clock". @param {Flags} flags @param {number} count */
export function title(flags, count) {
  const numbers = ["no", "one", "two", "three", "four"];
  const what = isPartition(flags) ? "partition" : flag(flags, "crash") === null ? "scenario" : "crash";
  return `The same ${what}, ${numbers[count] ?? count} ${count === 1 ? "algorithm" : "algorithms"}, one clock`;
}

/** A time for the address, short and exact to a microsecond. @param {number} t */
export const printTime = (t) => `${Number((t / 1e6).toFixed(3))}ms`;

/** For screen readers. @param {number} t @param {{ title: string, run: Run }[]} lanes @param {Flags} flags */
export const tell = (t, lanes, flags) => `${time(Math.round(t))}: ${lanes.map(({ title: name, run }) => `${name} ${totals(run, t, countsFrom(run, flags)).messages} messages`).join(", ")}`;
