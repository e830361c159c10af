/** The tour "Five minutes": its stops, in order, and their addresses. Pure. */

/**
 * @typedef {import("../url.js").Query} Query
 * @typedef {object} Stop
 * @property {number} number from 1 @property {number} of how many there are @property {string} tour the title of the tour
 * @property {string} title @property {string} question @property {string} about what to see, in two sentences
 * @property {Query} back @property {Query} next
 */

const GROUP = "five-minutes";

/** @type {Query} */
const START = { view: "gallery", path: GROUP, flags: [], own: {} };

/** The address of a stop. What asks about a whole run begins with it; others begin where they look. @param {any} stop of the catalogue @param {number} number @returns {Query} */
export function stopAddress({ name, flags = [], step = 0, question, view }, number) {
  if (view === "live") return { view: "live", path: "", flags: [], own: { tour: String(number) } };
  const whole = /\b(?:Who will lead|How many messages)\b/.test(question?.text ?? "");
  return { view: "sim", path: name, flags, own: { ...(whole || !step ? {} : { s: String(step) }), ask: "1", tour: String(number) } };
}

/** The stop that an address names, if it names one. @param {any} catalogue @param {Query} query @param {boolean} live whether there is a cluster, for the last stop @returns {Stop | null} */
export function stopOf(catalogue, query, live) {
  const group = catalogue?.gallery.find((/** @type {any} */ one) => one.group === GROUP);
  const stops = (group?.scenarios ?? []).filter((/** @type {any} */ one) => live || one.view !== "live");
  const number = Number(query.own.tour);
  const stop = stops[number - 1];
  if (!stop) return null;
  const at = (/** @type {number} */ other) => (stops[other - 1] ? stopAddress(stops[other - 1], other) : START);
  return { number, of: stops.length, tour: group.title, title: stop.title, question: stop.question?.text ?? "", about: stop.about, back: at(number - 1), next: at(number + 1) };
}
