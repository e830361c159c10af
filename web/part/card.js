/** A scenario as a card: its own diagram, its title, a sentence, and what it is about. The diagram is made when it is seen. */

import { h } from "../dom.js";
import { thumbnail } from "../draw/diagram.js";
import { winner } from "../model/reason.js";
import { count } from "../model/words.js";
import { parse, source } from "../url.js";
import { unpack } from "./share.js";

/**
 * @typedef {object} Card
 * @property {string} address @property {string} title @property {string} about
 * @property {{ text: string, title?: string, tone?: "fault" | "soft" }[]} chips
 * @property {number} [number] its place in a sequence
 */

/** The pictures that were made last; going back to the gallery shows them at once. @type {Map<string, SVGElement>} */
const made = new Map();
const KEPT = 48;
const AT_ONCE = 3;

/** @param {string} address @param {SVGElement} drawn */
function keep(address, drawn) {
  made.set(address, drawn);
  for (const oldest of made.keys()) {
    if (made.size <= KEPT) break;
    made.delete(oldest);
  }
}

/** @param {Card} card */
export function drawCard({ address, title, about, chips, number }) {
  return h("a", { class: "tile", href: address, "data-address": address },
    h("span", { class: "tile-picture" }),
    h("span", { class: "tile-words" }, h("strong", {}, number ? h("span", { class: "tile-number" }, String(number)) : null, title), h("span", { class: "tile-about" }, about)),
    h("span", { class: "tile-tags" }, chips.map((chip) => h("span", { class: `tile-tag${chip.tone ? ` ${chip.tone}` : ""}`, title: chip.title }, chip.text))));
}

/** Of a run that is asked about: the steps before it is decided. @param {import("../model/run.js").Run} run @param {number} s where it is entered */
function openingOf(run, s) {
  const decided = run.steps.findIndex((step) => winner(step) !== null);
  return s || Math.max(1, decided < 0 ? run.length : decided);
}

/** Fills cards with their diagrams as they come into sight. */
export class Pictures {
  /** @param {import("../main.js").App} app */
  constructor(app) {
    this.app = app;
    /** @type {Element[]} */
    this.waiting = [];
    this.working = 0;
    this.over = false;
    this.observer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) this.waiting.push(target);
        else this.waiting = this.waiting.filter((one) => one !== target);
      }
      this.work();
    }, { rootMargin: "120px 0px" });
  }

  /** @param {Element} card */
  watch(card) {
    const picture = /** @type {Element} */ (card.querySelector(".tile-picture"));
    const address = card.getAttribute("data-address") ?? "";
    const kept = made.get(address);
    if (kept) picture.replaceChildren(kept);
    else if (address.startsWith("#/live")) picture.classList.add("live");
    else this.observer.observe(card);
  }

  leave() {
    this.over = true;
    this.observer.disconnect();
  }

  /** A few at a time: the engine has other things to do. */
  work() {
    while (this.working < AT_ONCE && this.waiting.length && !this.over) {
      const card = /** @type {Element} */ (this.waiting.shift());
      this.observer.unobserve(card);
      this.working++;
      this.draw(card).finally(() => {
        this.working--;
        this.work();
      });
    }
  }

  /** @param {Element} card */
  async draw(card) {
    const picture = /** @type {Element} */ (card.querySelector(".tile-picture"));
    const address = card.getAttribute("data-address") ?? "";
    try {
      const query = parse(address);
      const toml = query.own.z ? await unpack(query.own.z) : null;
      const run = await this.app.simulation.run(source(query, toml));
      if (run.order.length) {
        const drawn = thumbnail(run, query.own.tour ? openingOf(run, Number(query.own.s) || 0) : run.length);
        keep(address, drawn);
        picture.replaceChildren(drawn);
      } else {
        // Too many members for a diagram: the card shows their number.
        picture.replaceChildren(h("span", { class: "tile-figure" }, h("b", {}, count(run.data.metrics.messages)), " messages"));
      }
    } catch (error) {
      picture.replaceChildren(h("span", { class: "note" }, error instanceof Error ? error.message : "No picture."));
    }
    picture.classList.add("done");
  }
}
