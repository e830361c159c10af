/** Scenarios that were branched or edited here. They stay in this browser. */

const KEY = "doyen-yours";
const MOST = 48;

/** @typedef {{ title: string, address: string }} Yours */

/** The latest first. @returns {Yours[]} */
export function yours() {
  try {
    const list = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(list) ? list.filter((one) => typeof one?.title === "string" && String(one.address).startsWith("#/")) : [];
  } catch {
    return []; // damaged by hand, or storage is off
  }
}

/** Keeps a scenario, in place of one with the same address. @param {string} title @param {string} address as `url.print` gives it */
export function remember(title, address) {
  const kept = withoutPlace(address);
  store([{ title, address: kept }, ...yours().filter((one) => one.address !== kept)].slice(0, MOST));
}

/** @param {string} address */
export function forget(address) {
  store(yours().filter((one) => one.address !== address));
}

/** @param {Yours[]} list */
export function store(list) {
  try {
    localStorage.setItem(KEY, JSON.stringify(list));
  } catch {
    // Storage is full or off: what was made stays in the address alone.
  }
}

/** The scenario without where one was in it. @param {string} address */
function withoutPlace(address) {
  const [place, keys = ""] = address.split(/\?(.*)/s);
  const kept = keys.split("&").filter((pair) => pair && !/^(?:s|t|sel|h|ask|tour|view|n)=/.test(pair));
  return kept.length ? `${place}?${kept.join("&")}` : place;
}
