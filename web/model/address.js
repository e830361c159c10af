/** What an address says of a run, and the address of what is on screen. Pure. */

import { changes } from "./branch.js";
import { DEFAULT } from "./race.js";
import { withFlag, withOwn } from "../url.js";

/**
 * @typedef {import("../url.js").Query} Query
 * @typedef {import("./run.js").Run} Run
 * @typedef {import("./run.js").Position} Position
 * @typedef {{ text: string, flag?: string, value?: string, kind?: string }} Word of the scenario's sentence
 */

/** The first thing to see, if the address names nothing. */
export const FIRST = "kordafshari/figure-1";

/** Whether the link was made with another run than the one that is here: then its step may mean something else. @param {Query} query @param {Run} run */
export function staleness(query, run) {
  const { h: made, s = "0" } = query.own;
  const now = run.data.hash.slice(0, 8);
  return made && made !== now ? { made, now, step: Number(s) || 0 } : null;
}

/** Where the address stands in a run; at the beginning if it is of another run. @param {Query} query @param {Run} run @returns {Position} */
export function positionIn(query, run) {
  if (staleness(query, run)) return run.atStep(0);
  const wanted = run.atStep(Number(query.own.s) || 0);
  const t = Number(query.own.t ?? wanted.t);
  return t > wanted.t ? { ...wanted, t } : wanted;
}

/** @param {Query} query @param {Run} run @param {Position} position @returns {Query} */
export function withPosition(query, run, { s, t }) {
  const within = t !== run.atStep(s).t;
  return withOwn(query, { s, t: within ? Math.round(t) : null, h: run.data.hash.slice(0, 8) });
}

/** What is selected, if the run has it. @param {Query} query @param {Run} run */
export function selectionIn(query, run) {
  const { sel } = query.own;
  if (!sel) return null;
  const number = Number(sel.slice(1));
  const found = sel.startsWith("m") ? run.byId.has(number) : sel.startsWith("s") ? number >= 0 && number < run.length : run.members.has(Number(sel));
  return found ? sel : null;
}

/**
 * The scenario with one word of its sentence changed. Faults may come from the scenario's own text, which flags only add to:
 * then they are all taken away, and those that did not change come back.
 * @param {Query} query @param {{ flag: string, value: string, before: string }} edit @param {Word[]} words @returns {Query}
 */
export function edited(query, { flag, value, before }, words) {
  const fresh = withOwn(query, { s: null, t: null, h: null, sel: null, ask: null, vs: null });
  const isFault = changes({ ...query, flags: [[flag, "x"]] }).length > 0;
  if (!isFault) return withFlag(fresh, flag, value);
  const here = query.flags.findIndex(([name, old]) => name === flag && old === before);
  if (here >= 0) {
    const flags = query.flags.flatMap((one, place) => (place !== here ? [one] : value ? [/** @type {[string, string]} */ ([flag, value])] : []));
    return { ...fresh, flags };
  }
  const all = words.filter((word) => word.flag === flag).map((word) => (word.value === before ? value : word.value ?? "")).filter(Boolean);
  const rest = query.flags.filter(([name]) => name !== flag);
  return { ...fresh, flags: [...rest, [flag, ""], ...all.map((one) => /** @type {[string, string]} */ ([flag, one]))] };
}

/** The same scenario as a race of its algorithm against others. A race knows flags alone, so the sentence is written out. @param {Query} query @param {Word[]} words @returns {Query} */
export function raceOf(query, words) {
  const own = words.flatMap(({ flag, value }) => (flag && flag !== "algorithm" && value ? [/** @type {[string, string]} */ ([flag, value])] : []));
  const added = query.flags.filter(([name, value]) => value && name !== "algorithm" && !own.some(([flag, one]) => flag === name && (one === value || !changes({ ...query, flags: [[flag, one]] }).length)));
  const algorithm = words.find(({ flag }) => flag === "algorithm")?.value ?? "bully";
  const others = DEFAULT.algorithms.filter((name) => name !== algorithm);
  return { view: "race", path: "", flags: [...own, ...added], own: { algorithms: [algorithm, ...others].slice(0, 4).join(",") } };
}

/**
 * The scenario's flags for another number of members: who was highest stays highest, others keep their ids. Null where ids are
 * not in a row, or one of them would be gone. @param {Word[]} words @param {number} members @returns {[string, string][] | null}
 */
export function scaledFlags(words, members) {
  const value = words.find((word) => word.flag === "members")?.value ?? "";
  if (!/^\d+(\.\.\d+)?$/.test(value)) return null;
  const first = value.includes("..") ? Number(value.split("..")[0]) : 1;
  const [before, after] = [first + memberCount(words) - 1, first + members - 1];
  const scaled = (/** @type {string} */ text) => text.replace(/^(\d+)/, (id) => (Number(id) === before ? String(after) : id));
  const faults = words.filter((word) => word.flag && changes({ view: "sim", path: "", flags: [[word.flag, "x"]], own: {} }).length);
  if (faults.some((word) => !["crash", "restart", "pause"].includes(word.flag ?? ""))) return null;
  const plain = words.filter((word) => ["dead", "initiators", "leader"].includes(word.flag ?? "") && /^[\d,]+$/.test(word.value ?? ""));
  const ids = plain.map((word) => /** @type {[string, string]} */ ([word.flag, (word.value ?? "").split(",").map(scaled).join(",")]));
  if (ids.some(([, list]) => list.split(",").some((id) => Number(id) > after))) return null;
  return [
    ["members", `${first}..${after}`], ...ids,
    ...[...new Set(faults.map((word) => word.flag))].map((flag) => /** @type {[string, string]} */ ([flag, ""])),
    ...faults.map((word) => /** @type {[string, string]} */ ([word.flag, scaled(word.value ?? "")])),
  ];
}

/** How many members a scenario has, by its sentence: `1000`, `0..7` or `17,24,33`. @param {Word[]} words */
export function memberCount(words) {
  const value = words.find((word) => word.flag === "members")?.value ?? "5";
  const [from, to] = value.split("..").map(Number);
  if (value.includes("..")) return to - from + 1;
  return value.includes(",") ? value.split(",").length : Number(value) || 5;
}

/** What the catalogue says about a choice: an algorithm's summary, a mode's hint, a property. @param {any} catalogue @param {Word[]} words @returns {(flag: string, value: string) => string} */
export function notesOf(catalogue, words) {
  const algorithms = catalogue?.algorithms ?? [];
  const chosen = algorithms.find((/** @type {any} */ one) => one.name === words.find((word) => word.flag === "algorithm")?.value);
  return (flag, value) => {
    if (flag === "algorithm") return algorithms.find((/** @type {any} */ one) => one.name === value)?.summary ?? "";
    if (flag === "mode") return chosen?.modes.find((/** @type {any} */ one) => one.name === value)?.hint ?? "";
    if (flag === "property") return catalogue?.properties?.find((/** @type {any} */ one) => one.id === value)?.text.replace(/^[^:]*: /, "") ?? "";
    return "";
  };
}

/** What a scenario of the gallery asks before it is played. @param {any} catalogue @param {string} name @returns {string} */
export function questionOf(catalogue, name) {
  const scenarios = (catalogue?.gallery ?? []).flatMap((/** @type {any} */ group) => group.scenarios);
  return scenarios.find((/** @type {any} */ one) => one.name === name && one.question)?.question.text ?? "";
}
