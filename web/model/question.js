/** A question to the checker ⇄ its address: which faults may happen, what must hold. Pure. */

import { count, many, time } from "./words.js";

/** @typedef {import("../url.js").Query} Query */

/** Faults that the checker may try, with the words for one and for several. @type {Record<string, [string, string]>} */
export const BUDGETS = {
  crashes: ["crash", "crashes"],
  restarts: ["restart", "restarts"],
  losses: ["lost message", "lost messages"],
  duplications: ["doubled message", "doubled messages"],
  suspicions: ["false suspicion", "false suspicions"],
  campaigns: ["needless election", "needless elections"],
};

const MOST = 5;

/** What is asked if the address names nothing: flaw 3, a stale announcement. @type {Query} */
export const FIRST_QUESTION = {
  view: "check", path: "", flags: [["algorithm", "bully"], ["members", "3"], ["dead", "3"], ["contact-dead", "true"], ["initiators", "2"]],
  own: { budget: "restarts:1", property: "A1" },
};

/** `restarts:1,losses:2` → numbers. @param {string | undefined} text @returns {Record<string, number>} */
export function parseBudget(text = "") {
  const found = Object.fromEntries(text.split(",").map((pair) => pair.split(":")).filter(([name, value]) => name in BUDGETS && Number(value) >= 0).map(([name, value]) => [name, Number(value)]));
  return Object.fromEntries(Object.keys(BUDGETS).map((name) => [name, found[name] ?? 0]));
}

/**
 * The question that the address asks; where it is silent, the one that suits the scenario.
 * @param {Query} query @param {{ property: string, budget: Record<string, number> } | undefined} suggested
 */
export const asked = ({ own }, suggested) => ({
  property: own.property ?? suggested?.property ?? "A1",
  budget: own.budget === undefined ? { ...parseBudget(), ...Object.fromEntries(Object.entries(suggested?.budget ?? {}).filter(([name]) => name in BUDGETS)) } : parseBudget(own.budget),
});

/** @param {Record<string, number>} budget */
export const printBudget = (budget) => Object.entries(budget).filter(([, value]) => value > 0).map(([name, value]) => `${name}:${value}`).join(",");

/** Budgets may also stand in the address as flags of `doyen check`: `restarts=1`. @param {Query} query @returns {Query} */
export function normalized(query) {
  const given = query.flags.filter(([flag]) => flag in BUDGETS);
  if (!given.length) return query;
  const budget = { ...parseBudget(query.own.budget), ...Object.fromEntries(given.map(([flag, value]) => [flag, Number(value) || 0])) };
  return { ...query, flags: query.flags.filter(([flag]) => !(flag in BUDGETS)), own: { ...query.own, budget: printBudget(budget) } };
}

/** The faults that mean something to the algorithm. @param {{ faults?: string[] } | undefined} suggested */
export const faultsOf = (suggested) => Object.entries(BUDGETS).filter(([name]) => suggested?.faults?.includes(name) ?? true);

/**
 * The question as a sentence with words that can be changed.
 * @param {any[]} scenario the scenario's own sentence @param {Record<string, number>} budget @param {string} property @param {{ id: string, text: string }[]} properties
 * @param {[string, [string, string]][]} names the faults to choose from
 */
export function questionWords(scenario, budget, property, properties, names) {
  const faults = names.flatMap(([name, [one, several]], place) => {
    const value = budget[name];
    const choices = Array.from({ length: MOST }, (_, n) => ({ value: String(n), text: `${n} ${n === 1 ? one : several}` }));
    const before = place === 0 ? `${/\s$/.test(scenario.at(-1)?.text ?? " ") ? "" : " "}At most ` : place === names.length - 1 ? " and " : ", ";
    return [{ text: before }, { flag: name, value: String(value), text: `${value} ${value === 1 ? one : several}`, kind: "budget", choices }];
  });
  const chosen = properties.find(({ id }) => id === property);
  return [
    ...scenario, ...faults, { text: ". Does " },
    { flag: "property", value: property, text: chosen ? headOf(chosen.text) : property || "every property", kind: "property", choices: properties.map(({ id, text }) => ({ value: id, text: `${headOf(text)} (${id})` })) },
    { text: " hold?" },
  ];
}

/** "agreement: at the end …" → "agreement". @param {string} text */
export const headOf = (text) => text.split(":")[0];

/** What was explored, in words. @param {{ states: number, steps?: number, depth?: number }} explored @param {number} ms */
export function effort({ states, steps, depth }, ms) {
  return [many(states, "state"), ...(steps ? [many(steps, "transition")] : []), ...(depth ? [`depth ${count(depth)}`] : []), time(Math.max(1, Math.round(ms)) * 1e6)].join(", ");
}
