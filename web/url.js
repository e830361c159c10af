/**
 * The address ⇄ what is on screen. Pure.
 *
 * Everything after `#` is one address: the view, a scenario of the gallery, then keys. Keys that are not the page's own are
 * flags of `doyen sim`, with the same names and values: who can read one can write the other.
 *
 *     #/live?member=n4
 *     #/sim/kordafshari/figure-1?crash=6@3.45ms&s=12&sel=m5&vs=base
 *     #/race?algorithms=bully,quorum&members=5&leader=5&crash=5@2ms
 */

/**
 * @typedef {object} Query
 * @property {"live" | "sim" | "race" | "check" | "gallery" | ""} view
 * @property {string} path a scenario of the gallery, or a group of it
 * @property {[string, string][]} flags flags of `doyen sim`, in order
 * @property {Record<string, string>} own the page's own keys
 */

/** The page's own keys, in the order in which they are written, and what they mean. */
export const OWN = {
  algorithms: "race: which run",
  property: "check: what must hold",
  budget: "check: faults allowed, such as crashes:1,restarts:1",
  vs: "branch: beside which run, `base` or the number of changes kept",
  n: "scale: how many members",
  view: "which panels: split, members, diagram, scale",
  s: "steps done",
  t: "time in nanoseconds, where it is within a step",
  sel: "what is selected: a member `6`, a message `m5`, a step `s7`",
  ask: "predict: the question is open",
  tour: "five minutes: which stop of the tour, from 1",
  member: "live: the selected member",
  find: "gallery: the text searched for",
  z: "a scenario as TOML, deflated, base64url",
  h: "the first 8 digits of the run's hash",
};

const VIEWS = ["live", "sim", "race", "check", "gallery"];

/** @param {string} hash @returns {Query} */
export function parse(hash) {
  const text = hash.replace(/^#/, "");
  const [place, keys = ""] = splitOnce(text, "?");
  const [, view = "", ...path] = place.split("/");
  const query = /** @type {Query} */ ({ view: VIEWS.includes(view) ? view : "", path: path.map(decode).join("/"), flags: [], own: {} });
  for (const pair of keys.split("&").filter(Boolean)) {
    const [key, value = ""] = splitOnce(pair, "=").map(decode);
    if (key in OWN) query.own[key] = value;
    else query.flags.push([key, value]);
  }
  return query;
}

/** @param {Query} query */
export function print(query) {
  const place = ["#", query.view, ...query.path.split("/").filter(Boolean).map(encode)].join("/");
  const own = Object.keys(OWN).filter((key) => query.own[key]).map((key) => [key, query.own[key]]);
  const keys = [...query.flags, ...own].map(([key, value]) => `${encode(key)}=${encode(value)}`);
  return keys.length ? `${place}?${keys.join("&")}` : place;
}

/** `query` with other keys of the page's own; an empty value takes a key away. @param {Query} query @param {Record<string, string | number | null>} own @returns {Query} */
export function withOwn(query, own) {
  const merged = { ...query.own };
  for (const [key, value] of Object.entries(own)) {
    if (value === null || value === "") delete merged[key];
    else merged[key] = String(value);
  }
  return { ...query, own: merged };
}

/** `query` with `flag` set to `value`, in place of a value it had. @param {Query} query @param {string} flag @param {string} value @returns {Query} */
export function withFlag(query, flag, value) {
  const at = query.flags.findIndex(([name]) => name === flag);
  const flags = [...query.flags];
  if (at < 0) flags.push([flag, value]);
  else flags[at] = [flag, value];
  return { ...query, flags };
}

/** Where the scenario of `query` comes from, as the engine takes it. @param {Query} query @param {string | null} toml */
export function source(query, toml) {
  return { gallery: toml === null && query.path ? query.path : null, toml, flags: query.flags };
}

/** @param {string} text @param {string} mark @returns {string[]} */
function splitOnce(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

/** Percent-encodes only what an address cannot hold, so that links stay readable. @param {string} text */
const encode = (text) => encodeURIComponent(text).replace(/%(?:2C|3A|40|2F|3E|2B|7C|5B|5D|3D)/gi, (code) => {
  const plain = decodeURIComponent(code);
  return plain === ">" || plain === "=" ? code : plain;
});

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
