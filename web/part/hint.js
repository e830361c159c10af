/** One sentence about what to try next. It follows what has been tried, and is gone for good after Esc. */

import { h, set } from "../dom.js";

/** In the order in which they are suggested. */
const HINTS = [
  { tried: "kill", text: "Press K, or click the button: kill the leader.", needs: "leader" },
  { tried: "partition", text: "Drag a line across the ring to partition the members." },
  { tried: "heal", text: "Press H to heal all links.", needs: "broken" },
  { tried: "restart", text: "Press R to restart the members that are down.", needs: "down" },
  { tried: "pause", text: "Press Z to pause the leader: it cannot know how long it was away.", needs: "leader" },
  { tried: "cut", text: "Drag from member to member to cut their link; with Shift, one way." },
  { tried: "drain", text: "Press D to drain the leader: a transfer without a failure.", needs: "leader" },
  { tried: "simulate", text: "Now see the textbook version break: Gallery, Flaws.", link: "#/gallery/flaws" },
];

const STORE = "doyen-hints";

export class Hint {
  constructor() {
    this.element = h("p", { class: "hint note" });
    /** @type {Set<string> | null} what has been tried; null: no more hints */
    this.tried = read();
    /** @type {Set<string>} what is the case now */
    this.now = new Set();
    this.draw();
  }

  /** @param {string} what */
  did(what) {
    if (!this.tried || this.tried.has(what)) return;
    this.tried.add(what);
    this.save();
  }

  /** The present situation, for hints that depend on it. @param {Record<string, boolean>} facts */
  know(facts) {
    this.now = new Set(Object.keys(facts).filter((name) => facts[name]));
    this.draw();
  }

  /** No more hints, in this browser. */
  end() {
    this.tried = null;
    this.save();
  }

  get isOn() {
    return this.tried !== null;
  }

  save() {
    localStorage.setItem(STORE, this.tried ? [...this.tried].join(",") : "off");
    this.draw();
  }

  draw() {
    const next = HINTS.find(({ tried, needs }) => this.tried && !this.tried.has(tried) && (!needs || this.now.has(needs)));
    if (this.element.dataset.hint === (next?.tried ?? "")) return;
    this.element.dataset.hint = next?.tried ?? "";
    this.element.replaceChildren(...(next ? [next.link ? h("a", { href: next.link, on: { click: () => this.did(next.tried) } }, next.text) : next.text] : []));
    set(this.element, { hidden: !next, title: next ? "Esc: no more hints" : null });
  }
}

/** @returns {Set<string> | null} */
function read() {
  const kept = localStorage.getItem(STORE);
  return kept === "off" ? null : new Set(kept?.split(",").filter(Boolean));
}
