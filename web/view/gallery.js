/** Gallery: every scenario as a small picture of its own run. */

import { button, h, set } from "../dom.js";
import { Pictures, drawCard } from "../part/card.js";
import { forget, store, yours } from "../part/yours.js";
import { told } from "../model/branch.js";
import { headOf } from "../model/question.js";
import { stopAddress } from "../model/tour.js";
import { count } from "../model/words.js";
import { parse, print, withOwn } from "../url.js";

/** What each group is, in a sentence. @type {Record<string, string>} */
const ABOUT = {
  "five-minutes": "Seven questions, from the first election to your own partition. Guess, then play.",
  figures: "Every figure and worked example of the sources, exact to the message.",
  exclusion: "What cs677 and cs425 say of mutual exclusion: what an entry costs, and what lets two members in or blocks all.",
  flaws: "How the textbook versions fail, in as few steps as possible.",
  incidents: "Failures that other systems had, and hard cases, with the quorum algorithm.",
  yours: "Scenarios that you branch or edit appear here. They stay in this browser.",
};

/** The sources by the folders of their scenarios. @type {Record<string, string>} */
const SOURCES = {
  kordafshari: "Kordafshari et al., modified bully",
  cs677: "CS 677, distributed operating systems",
  cs425: "CS 425, lecture 8",
  notes: "Handwritten lecture notes",
  "os-textbook": "A textbook on operating systems",
};

/** @param {HTMLElement} root @param {import("../main.js").App} app */
export function mount(root, app) {
  const view = new Gallery(root, app);
  return { update: (/** @type {any} */ query) => view.update(query), commands: () => view.commands(), leave: () => view.leave() };
}

class Gallery {
  /** @param {HTMLElement} root @param {import("../main.js").App} app */
  constructor(root, app) {
    this.app = app;
    this.root = root;
    this.pictures = new Pictures(app);
    this.field = /** @type {HTMLInputElement} */ (h("input", { type: "search", placeholder: "Find a scenario", "aria-label": "Find a scenario", autocomplete: "off", on: { input: () => this.find() } }));
    this.places = h("nav", { class: "group-links", "aria-label": "Groups" });
    this.groups = h("div", { class: "groups" });
    this.none = h("p", { class: "empty", role: "status", hidden: true });
    root.append(h("div", { class: "gallery-head" }, h("h1", { class: "title" }, "Gallery"), this.places, this.field), this.none, this.groups);
    this.groups.addEventListener("keydown", (event) => this.walk(event));
    /** @type {import("../url.js").Query | null} */
    this.query = null;
    /** @type {string | null} */
    this.path = null;
    this.ready = this.load();
  }

  async load() {
    try {
      const catalogue = await this.app.simulation.catalogue();
      if (this.groups.isConnected) this.draw(catalogue);
    } catch (error) {
      this.groups.replaceChildren(h("p", { class: "problem", role: "alert" }, error instanceof Error ? error.message : String(error)));
    }
  }

  /** @param {any} catalogue */
  draw(catalogue) {
    const properties = new Map(catalogue.properties.map((/** @type {any} */ one) => [one.id, one.text]));
    const names = new Map(catalogue.algorithms.map((/** @type {any} */ one) => [one.name, one.title]));
    const groups = catalogue.gallery.map((/** @type {any} */ { group, title, scenarios }) => ({
      name: group, title,
      cards: scenarios.filter((/** @type {any} */ one) => one.view !== "live" || this.app.host === "lab")
        .map((/** @type {any} */ one, /** @type {number} */ place) => ({ ...cardOf(one, names, properties), ...(group === "five-minutes" ? stopOfTour(one, place + 1, names) : {}), ...(group === "figures" ? ofSource(one) : { source: "" }) })),
    }));
    const own = yours().map(({ title, address }) => ({ address, title, about: told(parse(address)), chips: [], source: "" }));
    groups.push({ name: "yours", title: "Yours", cards: own });
    this.groups.replaceChildren(...groups.map((/** @type {any} */ group) => this.drawGroup(group)));
    this.places.replaceChildren(...groups.map((/** @type {any} */ { name, title, cards }) =>
      h("a", { href: `#/gallery/${name}`, "data-group": name }, title, h("span", { class: "soft" }, ` ${cards.length}`))));
    for (const card of this.groups.querySelectorAll(".tile")) this.pictures.watch(card);
    this.app.shown = { scenarios: groups.flatMap((/** @type {any} */ { cards }) => cards.map((/** @type {any} */ one) => one.address)) };
  }

  /** @param {{ name: string, title: string, cards: any[] }} group */
  drawGroup({ name, title, cards }) {
    const heading = h("div", { class: "head" }, h("h2", { id: `group-${name}` }, title, h("span", { class: "gallery-count" }, ` ${count(cards.length)}`)),
      name === "yours" && cards.length ? button("Forget all", () => this.forgetAll(), { class: "tiny" }) : null);
    /** @type {Map<string, any[]>} */
    const parts = new Map();
    for (const card of cards) parts.set(card.source, [...(parts.get(card.source) ?? []), card]);
    return h("section", { class: "gallery-group", "data-group": name, "aria-labelledby": `group-${name}` }, heading,
      h("p", { class: "small soft" }, ABOUT[name] ?? ""),
      [...parts].map(([source, some]) => h("div", { class: "gallery-part" },
        source ? h("h3", {}, SOURCES[source] ?? source) : null,
        h("ul", { class: "tiles" }, some.map((card) => h("li", { "data-words": `${card.title} ${card.about} ${card.address} ${card.chips.map((/** @type {any} */ chip) => `${chip.text} ${chip.title ?? ""}`).join(" ")}`.toLowerCase() },
          drawCard(card), name === "yours" ? button("✕", () => this.forget(card.address), { class: "tiny plain tile-forget", "aria-label": `Forget ${card.title}` }) : null))))));
  }

  /** @param {string} address */
  async forget(address) {
    const before = yours();
    forget(address);
    await this.load();
    this.filter();
    this.app.toast("Forgotten.", { title: "Undo", run: async () => { store(before); await this.load(); this.filter(); } });
  }

  async forgetAll() {
    const before = yours();
    store([]);
    await this.load();
    this.filter();
    this.app.toast(`${before.length} forgotten.`, { title: "Undo", run: async () => { store(before); await this.load(); this.filter(); } });
  }

  /** @param {import("../url.js").Query} query */
  async update(query) {
    this.query = query;
    await this.ready;
    if (this.query !== query) return;
    const text = query.own.find ?? "";
    if (this.field.value !== text) this.field.value = text;
    this.filter();
    for (const place of this.places.children) set(place, { "aria-current": place.getAttribute("data-group") === query.path ? "true" : null });
    if (this.path !== query.path) {
      this.path = query.path;
      const group = this.groups.querySelector(`[data-group="${CSS.escape(query.path)}"]`);
      if (group && query.path) group.scrollIntoView({ block: "start" });
    }
  }

  find() {
    const query = this.query ?? this.app.query;
    this.app.navigate(withOwn(query, { find: this.field.value }), { replace: true });
  }

  /** Leaves what has all the words. */
  filter() {
    const words = this.field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const group of this.groups.querySelectorAll(".gallery-group")) {
      let within = 0;
      for (const part of group.querySelectorAll(".gallery-part")) {
        let some = 0;
        for (const item of part.querySelectorAll("li")) {
          const fits = words.every((word) => item.getAttribute("data-words")?.includes(word));
          /** @type {HTMLElement} */ (item).hidden = !fits;
          if (fits) some++;
        }
        /** @type {HTMLElement} */ (part).hidden = some === 0;
        within += some;
      }
      /** @type {HTMLElement} */ (group).hidden = words.length > 0 && within === 0;
      found += within;
      this.rove(group);
    }
    const shown = this.groups.querySelector(".gallery-group") !== null;
    set(this.none, { hidden: !shown || words.length === 0 || found > 0, text: `No scenario has all of these words: ${words.join(", ")}.` });
  }

  /** One card of a group is a stop of Tab; arrows go on from there. @param {Element} group */
  rove(group) {
    const cards = /** @type {HTMLElement[]} */ ([...group.querySelectorAll("li:not([hidden]) .tile")]);
    const current = cards.find((card) => card === document.activeElement) ?? cards[0];
    for (const card of cards) card.tabIndex = card === current ? 0 : -1;
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    const here = /** @type {HTMLElement | null} */ (event.target instanceof Element ? event.target.closest(".tile") : null);
    if (!here || event.altKey || event.ctrlKey || event.metaKey) return;
    const cards = /** @type {HTMLElement[]} */ ([...this.groups.querySelectorAll(".gallery-group:not([hidden]) .gallery-part:not([hidden]) li:not([hidden]) .tile")]);
    const next = nextCard(cards, here, event.key);
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    next.focus();
    const group = next.closest(".gallery-group");
    if (group) this.rove(group);
  }

  commands() {
    return [
      { key: "F", title: "Find a scenario", group: "Gallery", run: () => this.field.focus() },
      ...[...this.places.children].map((place) => ({
        title: `Show ${place.firstChild?.textContent}`, group: "Gallery",
        run: () => this.app.navigate({ ...this.app.query, path: place.getAttribute("data-group") ?? "" }),
      })),
    ];
  }

  leave() {
    this.pictures.leave();
  }
}

/** @param {any} scenario of the catalogue @param {Map<string, string>} names @param {Map<string, string>} properties */
function cardOf(scenario, names, properties) {
  const { name, title, about, algorithm, mode, tags = [], flags = [] } = scenario;
  return {
    address: print({ view: "sim", path: name ?? "", flags, own: {} }), title, about: sentence(about, title), number: 0,
    chips: [
      { text: names.get(algorithm) ?? algorithm },
      ...broken(tags, properties),
      ...(mode && mode !== "textbook" && algorithm !== "quorum" ? [{ text: mode, tone: "soft" }] : []),
    ],
  };
}

/** A stop of the tour asks: its card tells nothing of how the run ends. @param {any} stop of the catalogue @param {number} number @param {Map<string, string>} names */
function stopOfTour(stop, number, names) {
  const { algorithm, question, about } = stop;
  const chips = [{ text: algorithm ? names.get(algorithm) ?? algorithm : "five real nodes" }];
  return { address: print(stopAddress(stop, number)), about: question?.text ?? about, number, chips };
}

/** What it looks like when a property is broken. @type {Record<string, string>} */
const BROKEN = { A1: "members disagree", A3: "never ends" };

/** What goes wrong, in words; the pointer and the search find the property by its name too. @param {string[]} tags @param {Map<string, string>} properties */
function broken(tags, properties) {
  return tags.map((tag) => {
    const id = tag.replace(/^breaks /, "");
    if (id === tag) return { text: tag, tone: "fault" };
    const property = properties.get(id) ?? id;
    return { text: BROKEN[id] ?? `breaks ${headOf(property)}`, tone: "fault", title: `Breaks ${id}, ${property}` };
  });
}

/** Under the heading of its source a title need not name it. @param {any} scenario */
function ofSource({ name, title }) {
  const [source] = name.split("/");
  const rest = title.toLowerCase().startsWith(source.toLowerCase()) ? title.slice(source.length).replace(/^[,:]?\s+/, "") : title;
  return { source, title: rest.charAt(0).toUpperCase() + rest.slice(1) };
}

/** The first sentence of what a scenario is about, without the name of its source, which its title has. @param {string} about @param {string} title */
function sentence(about, title) {
  const text = about.replace(/\s+/g, " ");
  const colon = text.indexOf(": ");
  const head = text.slice(0, colon);
  // "Kordafshari, figure 1, Bully: …" repeats the title's beginning.
  const begins = colon > 0 && colon < 60 && title.split(/[\s,:]+/)[0].toLowerCase() === head.split(/[\s,:]+/)[0].toLowerCase();
  const rest = begins ? text.slice(colon + 2) : text;
  return rest.charAt(0).toUpperCase() + rest.slice(1);
}

/** Where an arrow key leads in a grid of cards. @param {HTMLElement[]} cards @param {HTMLElement} here @param {string} key */
function nextCard(cards, here, key) {
  const at = cards.indexOf(here);
  if (key === "ArrowRight") return cards[at + 1];
  if (key === "ArrowLeft") return cards[at - 1];
  if (key === "Home") return cards[0];
  if (key === "End") return cards[cards.length - 1];
  if (key !== "ArrowDown" && key !== "ArrowUp") return undefined;
  const from = here.getBoundingClientRect();
  const way = key === "ArrowDown" ? 1 : -1;
  let [best, least] = [/** @type {HTMLElement | undefined} */ (undefined), Infinity];
  for (const card of cards) {
    const { left, top } = card.getBoundingClientRect();
    if ((top - from.top) * way < 8) continue;
    const distance = Math.abs(top - from.top) * 4 + Math.abs(left - from.left);
    if (distance < least) [best, least] = [card, distance];
  }
  return best;
}
