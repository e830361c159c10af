/**
 * Starts the page: one view at a time, chosen by the address. A view is a module with `mount(root, app)`, which returns
 * `{ update(query), commands(), leave() }`. It draws itself from the query and changes nothing but the query; the browser's
 * Back is undo.
 */

import { h, set } from "./dom.js";
import { Cluster } from "./engine/cluster.js";
import { HttpTransport, Simulation, WasmTransport } from "./engine/simulation.js";
import { listen } from "./part/commands.js";
import { showHelp } from "./part/help.js";
import { copyLink } from "./part/share.js";
import { parse, print } from "./url.js";

/**
 * @typedef {import("./url.js").Query} Query
 * @typedef {import("./part/commands.js").Command} Command
 * @typedef {{ update(query: Query): void, commands(): Command[], leave?(): void }} View
 */

/** The views, in the order of their tabs, and where each is there: in the lab, on a node's own page, in a static folder. */
const VIEWS = [
  { name: "live", title: "Live", hosts: ["lab", "node"], load: () => import("./view/live.js") },
  { name: "sim", title: "Simulate", hosts: ["lab", "static"], load: () => import("./view/simulate.js") },
  { name: "race", title: "Race", hosts: ["lab", "static"], load: () => import("./view/race.js") },
  { name: "check", title: "Check", hosts: ["lab", "static"], load: () => import("./view/check.js") },
  { name: "gallery", title: "Gallery", hosts: ["lab", "static"], load: () => import("./view/gallery.js") },
];

/** What every view is given. */
export class App {
  constructor() {
    /** @type {"lab" | "node" | "static"} */
    this.host = /** @type {any} */ (document.documentElement.dataset.host ?? "static");
    this.simulation = new Simulation(this.host === "static" ? new WasmTransport() : new HttpTransport());
    /** @type {Cluster | null} */
    this.cluster = this.host === "static" ? null : new Cluster(this.host, takeKey());
    this.views = VIEWS.filter((view) => view.hosts.includes(this.host));
    this.query = parse(location.hash);
    /** @type {View | null} */
    this.view = null;
    /** The name of that view, as the address has it. */
    this.mounted = "";
    /** How many entries of the history before this one are the lab's own. @type {number} */
    this.depth = history.state?.depth ?? 0;
    history.replaceState({ depth: this.depth }, "");
    /** What the visible view has loaded; tests read it through `window.lab`. @type {Record<string, any>} */
    this.shown = {};
  }

  /** Goes to another address. Scrubbing replaces the entry of the history, everything else adds one. @param {Query} query @param {{ replace?: boolean }} [how] */
  navigate(query, { replace = false } = {}) {
    const address = print(query);
    if (address === print(this.query)) return;
    if (replace) history.replaceState({ depth: this.depth }, "", address);
    else history.pushState({ depth: ++this.depth }, "", address);
    this.route();
  }

  /** Back is undo, and never leaves the lab. */
  back() {
    if (this.depth > 0) history.back();
    else this.toast("Nothing to undo: this is where you began.");
  }

  /** The browser has gone to an entry of its history; a link that was clicked has made a new one. */
  moved() {
    const { depth } = history.state ?? {};
    this.depth = depth ?? this.depth + 1;
    if (depth === undefined) history.replaceState({ depth: this.depth }, "");
    this.route();
  }

  /** Shows what the address says. */
  async route() {
    const query = parse(location.hash);
    if (!query.view) query.view = /** @type {any} */ (this.views[0].name);
    this.query = query;
    if (this.view && this.mounted === query.view) return this.view.update(query);
    const found = this.views.find(({ name }) => name === query.view) ?? this.views[0];
    const module = await found.load();
    // While it was loading, the address may have led elsewhere, or another call may have come first.
    if (this.query.view !== query.view) return;
    if (this.mounted !== query.view) this.mount(found, query.view, module);
    this.view?.update(this.query);
  }

  /** @param {{ name: string, title: string }} found @param {string} view as the address calls it @param {{ mount(root: HTMLElement, app: App): View }} module */
  mount({ name, title }, view, module) {
    this.view?.leave?.();
    this.simulation.leave();
    this.shown = {};
    // What was done in the last view cannot be taken back from here.
    /** @type {HTMLElement} */ (document.getElementById("toast")).hidden = true;
    this.drawTabs(name);
    document.title = `${title} · doyen lab`;
    const main = /** @type {HTMLElement} */ (document.getElementById("main"));
    main.className = `view-${name}`;
    main.replaceChildren();
    this.mounted = view;
    this.view = module.mount(main, this);
  }

  /** @param {string} current */
  drawTabs(current) {
    const tabs = this.views.map(({ name, title }) =>
      h("a", { href: `#/${name}`, "aria-current": name === current ? "page" : null }, title));
    document.getElementById("tabs")?.replaceChildren(...tabs);
  }

  /** What the chip at the top says. @param {string} text @param {"good" | "bad" | "quiet"} state */
  connection(text, state) {
    const chip = /** @type {HTMLElement} */ (document.getElementById("connection"));
    set(chip, { text, "data-state": state });
  }

  /** Tells screen readers; once a second at most. @param {string} text */
  announce(text) {
    clearTimeout(this.announcing);
    this.announcing = setTimeout(() => {
      const announcer = document.getElementById("announcer");
      announcer?.replaceChildren(h("p", {}, text));
    }, 300);
  }

  /** A short message at the foot of the page, with at most one thing to do. @param {string} text @param {{ title: string, run: () => void }} [action] */
  toast(text, action) {
    const toast = /** @type {HTMLElement} */ (document.getElementById("toast"));
    const run = () => {
      toast.hidden = true;
      action?.run();
    };
    toast.replaceChildren(text, action ? h("button", { type: "button", on: { click: run } }, action.title) : "");
    toast.style.setProperty("--bar", `${barHeight()}px`);
    toast.hidden = false;
    clearTimeout(this.toasting);
    this.toasting = setTimeout(() => (toast.hidden = true), 8000);
  }

  /** The commands that are there everywhere, then those of the view. @returns {Command[]} */
  commands() {
    const tabs = this.views.map(({ name, title }, place) => ({
      key: String(place + 1), title, group: "Everywhere", run: () => void (location.hash = `#/${name}`),
    }));
    return [
      ...tabs,
      { key: "Y", title: "Copy the link", group: "Everywhere", run: () => copyLink(this) },
      { key: "?", title: "Keys and signs", group: "Everywhere", run: () => showHelp(this) },
      { key: "L", title: "Legend of all signs", group: "Everywhere", run: () => showHelp(this, "signs") },
      { key: "Shift+L", title: "Lecture size", group: "Everywhere", run: () => toggle("lecture") },
      { key: "M", title: "Motion on or off", group: "Everywhere", run: () => toggle("still") },
      { key: "U", title: "Undo", group: "Everywhere", run: () => this.back() },
      ...(this.view?.commands() ?? []),
    ];
  }
}

/** Whether things should not move. */
export function isStill() {
  return document.documentElement.classList.contains("still") || matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** How high the bar of controls at the foot of the window is, if there is one. */
function barHeight() {
  const bars = [...document.querySelectorAll(".transport, .fault-buttons, .link-tools")].map((bar) => bar.getBoundingClientRect());
  return Math.max(0, ...bars.filter(({ height, bottom }) => height && Math.abs(bottom - innerHeight) < 24).map(({ top }) => innerHeight - top));
}

/** Turns a choice on or off and remembers it in this browser. @param {string} name */
function toggle(name) {
  const on = document.documentElement.classList.toggle(name);
  localStorage.setItem(`doyen-${name}`, on ? "1" : "");
}

/**
 * The key that the printed address carries in its fragment. It is kept for this tab, and taken off the address so that no
 * copied link holds it.
 */
function takeKey() {
  const found = /[#&]k=([0-9a-f]+)/.exec(location.hash);
  if (found) {
    sessionStorage.setItem("doyen-key", found[1]);
    const rest = location.hash.replace(found[0], "").replace(/^#?&?/, "#");
    history.replaceState(null, "", rest === "#" ? "#/" : rest);
  }
  return sessionStorage.getItem("doyen-key");
}

function start() {
  for (const name of ["lecture", "still"]) {
    document.documentElement.classList.toggle(name, localStorage.getItem(`doyen-${name}`) === "1");
  }
  const app = new App();
  app.query = parse(location.hash);
  if (app.host === "static") app.connection("no server needed", "quiet");
  addEventListener("popstate", () => app.moved());
  listen(app);
  document.getElementById("share")?.addEventListener("click", () => copyLink(app));
  document.getElementById("help")?.addEventListener("click", () => showHelp(app));
  // Tests read what is on screen from here, not from pixels.
  Object.defineProperty(window, "lab", { value: Object.freeze({ get query() { return app.query; }, get shown() { return app.shown; } }) });
  app.cluster?.start(app);
  app.route();
}

start();
