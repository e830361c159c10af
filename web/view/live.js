/** Live: the running cluster. It shows what the stream says, animates leases from their deadlines, and breaks things. */

import { button, h, set } from "../dom.js";
import { Matrix } from "../draw/matrix.js";
import { MembersPicture } from "../draw/members.js";
import { WhoLed } from "../draw/timeline.js";
import { isStill } from "../main.js";
import { describe, lanesOf, leaderOf, leadersOf, membersAt, NO_TIMELINE, notesOf, pulsesAt, sayGroups, topologyOf } from "../model/scene.js";
import { stopOf } from "../model/tour.js";
import { list } from "../model/words.js";
import { showMenu } from "../part/commands.js";
import { EventLog } from "../part/eventlog.js";
import { FailoverPanel } from "../part/failover.js";
import { Faults } from "../part/faults.js";
import { Hint } from "../part/hint.js";
import { LinkTools } from "../part/linktools.js";
import { LiveCommands } from "../part/livecommands.js";
import { MemberPanel } from "../part/memberpanel.js";
import { Said } from "../part/said.js";
import { TourStrip } from "../part/tour.js";
import { withOwn } from "../url.js";

/**
 * @typedef {import("../model/scene.js").ClusterState} ClusterState
 * @typedef {import("../model/scene.js").Timeline} Timeline
 */

/** Numbers that run are written ten times a second at most. */
const NUMBERS = 100_000;
/** Where nothing moves, twice a second. */
const STILL = 500;

/** @param {HTMLElement} root @param {import("../main.js").App} app */
export function mount(root, app) {
  const view = new Live(root, app);
  return {
    update: (/** @type {import("../url.js").Query} */ query) => view.update(query),
    commands: () => view.commands.list(),
    leave: () => view.leave(),
  };
}

class Live {
  /** @param {HTMLElement} root @param {import("../main.js").App} app */
  constructor(root, app) {
    this.app = app;
    this.cluster = /** @type {import("../engine/cluster.js").Cluster} */ (app.cluster);
    const lab = app.host === "lab";
    this.hint = new Hint();
    this.faults = lab ? new Faults(app, this.hint) : null;
    this.said = new Said(app, (name) => this.faults?.restart([name]));
    this.picture = new MembersPicture({
      onSelect: (id) => this.press(id),
      onMenu: (id, at) => this.menu(id, at),
      onKey: (event) => this.tools?.tool !== null && event.key === "Enter" && (this.tools?.finish(), true),
      ...(this.faults && {
        onCut: (a, b, oneWay) => void this.faults?.cut(a, b, oneWay),
        onMend: (a, b, both) => void this.faults?.mend(a, b, both),
        onPartition: (groups) => void this.faults?.partition(groups),
        sayGroups: (groups) => sayGroups(this.state(), groups),
        onPreview: (text) => this.tools?.say(text),
      }),
    });
    this.tools = this.faults && new LinkTools({ faults: this.faults, focus: (step) => this.picture.list.go(step), changed: () => this.draw() });
    this.panel = new MemberPanel(this.faults);
    this.matrix = new Matrix(this.faults ? { onCell: (from, to, cut) => void (cut ? this.faults?.mend(from, to, false) : this.faults?.cut(from, to, true)) } : {});
    this.log = new EventLog((at) => this.showTime(at + 5e6));
    this.whoLed = new WhoLed({ onUntil: (until) => this.showTime(until), onFailover: (at) => this.chooseFailover(at) });
    this.failover = new FailoverPanel((at) => this.chooseFailover(at));
    this.commands = new LiveCommands(this);
    /** The end of the timeline where it was dragged back. @type {number | null} */
    this.until = null;
    /** The failover that is taken apart, by its time; null: the last. @type {number | null} */
    this.chosen = null;
    /** When each lease last seen is over. @type {Map<string, number>} */
    this.leases = new Map();
    /** The member in the panel. @type {string | undefined} */
    this.looked = undefined;
    this.announced = "";
    this.footKey = "";
    /** The last stop of the tour is here. */
    this.tour = new TourStrip((query) => app.navigate(query));
    root.replaceChildren(this.layOut());
    // A phone shows the titles of what has no room.
    const phone = matchMedia("(max-width: 640px)");
    const fold = () => root.querySelectorAll("details").forEach((one) => (one.open = !phone.matches));
    fold();
    phone.addEventListener("change", fold);
    this.stop = [() => phone.removeEventListener("change", fold), this.cluster.listen(() => this.take()), listenTo(document, "visibilitychange", () => this.loop())];
    this.frame = this.timer = 0;
    this.take();
    this.loop();
  }

  layOut() {
    this.back = button("Live", () => this.showTime(null), { class: "tiny", hidden: true, title: "Back to now" });
    this.lanesNote = h("p", { class: "note lanes-note" });
    this.buttons = h("div", { class: "buttons fault-buttons" });
    this.foot = h("div", { class: "stage-foot" }, this.buttons, this.tools?.element ?? null, this.hint.element);
    this.stage = h("section", { class: "stage", "aria-label": "Members" }, this.tour.element, this.said.element, this.picture.element, this.faults ? this.foot : null);
    const legend = h("ul", { class: "matrix-legend" }, [["yes", "●", "reachable"], ["no", "✕", "unreachable"], ["unknown", "?", "not known"], ...(this.faults ? [["cut", "∥", "cut"]] : [])].map(([state, sign, text]) =>
      h("li", {}, h("span", { class: `cell is-${state}`, "aria-hidden": "true" }, sign), text)));
    return h("div", { class: "live", "data-host": this.app.host }, this.stage,
      h("aside", { class: "side", "aria-label": "Details" }, this.panel.element,
        h("details", { class: "reachable", open: true }, h("summary", { class: "head" }, h("h2", {}, "Reachable"), h("span", { class: "note" }, "row reaches column")), h("div", { class: "matrix-row" }, this.matrix.element, legend)), this.log.element),
      h("section", { class: "who-led-region", "aria-label": "Who led" }, h("div", { class: "head" }, h("h2", {}, "Who led"), this.lanesNote, this.back), this.whoLed.element),
      this.failover.element);
  }

  /** @param {import("../url.js").Query} query */
  async update(query) {
    this.draw();
    const catalogue = query.own.tour ? await this.app.simulation.catalogue().catch(() => null) : null;
    if (this.app.query !== query) return;
    this.tour.load(stopOf(catalogue, query, this.app.host === "lab"));
    this.tour.tell();
  }

  /** What the cluster is, as far as it is known. @returns {ClusterState} */
  state() {
    return this.cluster.last.cluster;
  }

  /** @returns {Timeline} */
  timeline() {
    return this.cluster.last.timeline ?? NO_TIMELINE;
  }

  /** Something new came. */
  take() {
    const state = this.state();
    if (state) {
      for (const member of state.members) if (member.lease) this.leases.set(member.name, member.lease.until_us);
      this.publish(state);
    }
    this.app.shown.connection = this.cluster.state;
    if (!this.frame && !this.timer) this.draw();
  }

  /**
   * What tests read from `window.lab.shown`, kept current with every event of the stream: `leader` (name or null), `term`,
   * `members` (role or state of each), `pids`, `downtime_us` and `overlap_us` (of the last failover, as the stream gives them; null
   * before the first), `failovers` (how many), `connection` (the state of the stream).
   * @param {ClusterState} state
   */
  publish(state) {
    const leader = leaderOf(state);
    const last = this.timeline().failovers.at(-1);
    const before = JSON.stringify([this.app.shown.members, this.app.shown.failovers]);
    this.app.shown = {
      leader: leader?.name ?? null, term: leader?.term ?? Math.max(0, ...state.members.map(({ term }) => term)),
      members: Object.fromEntries(state.members.map((member) => [member.name, member.state === "up" ? member.role : member.state])),
      pids: Object.fromEntries(state.members.map(({ name, pid }) => [name, pid ?? null])),
      downtime_us: last?.downtime_us ?? null, overlap_us: last?.overlap_us ?? null, failovers: this.timeline().failovers.length, connection: this.cluster.state,
    };
    // Without motion the page is drawn twice a second; what happened is shown at once all the same.
    if (isStill() && before !== JSON.stringify([this.app.shown.members, this.app.shown.failovers])) this.draw();
    const said = leader ? `${leader.name} leads in term ${leader.term}${last && last.to === leader.name && last.downtime_us !== null ? `, downtime ${Math.round(last.downtime_us / 1000)} milliseconds` : ""}` : "No leader";
    if (said !== this.announced && leadersOf(state).length <= 1) {
      this.announced = said;
      this.app.announce(said);
    }
  }

  /** One loop for all that moves. It rests while the page is hidden. */
  loop() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    this.frame = this.timer = 0;
    if (document.hidden || this.left) return;
    this.draw();
    const ended = this.cluster.state === "no key" || this.cluster.state === "ended";
    if (ended || isStill()) this.timer = setTimeout(() => this.loop(), STILL);
    else this.frame = requestAnimationFrame(() => this.loop());
  }

  draw() {
    const state = this.state();
    const timeline = this.timeline();
    const connection = this.cluster.state;
    const now = this.cluster.now();
    this.said.show({ connection, state, timeline, now, lostAt: this.cluster.lostAt });
    const live = /** @type {HTMLElement} */ (this.stage?.parentElement);
    set(live, { "data-connection": connection, "data-known": state ? "yes" : "no" });
    if (!state) return this.drawWaiting(connection);
    const leader = leaderOf(state);
    const coarse = Math.floor(now / NUMBERS) * NUMBERS;
    const selection = this.selection(state);
    const names = state.members.map(({ name }) => name);
    this.picture.show({
      members: membersAt(state, timeline, now, coarse, this.leases), order: names, topology: topologyOf(state), selection,
      cuts: state.cuts, partition: state.partition, notes: notesOf(state, state.partition), pulses: connection === "open" ? pulsesAt(state, now) : [],
      preview: this.tools?.preview() ?? null, describe: describe(state),
    });
    // Without a selection it is the leader, or the last one while there is none.
    this.looked = selection ?? leader?.name ?? this.looked;
    this.panel.show(state.members.find(({ name }) => name === this.looked) ?? null, coarse, { leader: leader?.name ?? null, leases: state.lease_us !== null, stale: connection !== "open" });
    this.matrix.show(state);
    this.log.show(this.cluster.log, names, state.epoch_ms);
    const open = timeline.downtime.findLast(({ to_us: to }) => to === null);
    const since = open && timeline.leader.length ? open.from_us : null;
    const overlap = timeline.overlap.findLast(({ to_us: to }) => to === null)?.from_us ?? null;
    const last = timeline.failovers.find(({ at_us: at }) => at === this.chosen) ?? (since === null && overlap === null ? timeline.failovers.at(-1) : undefined);
    this.failover.show(timeline.failovers, this.chosen, { since, overlap, now, canKill: this.faults !== null, self: state.self });
    const lanes = lanesOf(state, timeline, Math.floor((this.whoLed.size.height - 50) / 14));
    const note = state.self ? `as ${state.self} saw it` : lanes.length < names.length ? `${lanes.length} of ${names.length} members` : "";
    this.whoLed.show({ names: lanes, states: Object.fromEntries(state.members.map((member) => [member.name, member.state])), note, timeline, now: connection === "ended" ? state.now_us : now, known: connection === "open" ? now : state.now_us, until: this.until, self: state.self, leases: state.lease_us !== null && !state.self, epoch_ms: state.epoch_ms, failover: last?.at_us ?? null });
    set(/** @type {Element} */ (this.lanesNote), { text: note });
    set(/** @type {Element} */ (this.back), { hidden: this.until === null });
    this.drawFoot(state);
  }

  /** Outlined members without names, until the stream says who they are. @param {string} connection */
  drawWaiting(connection) {
    const ids = connection === "no key" || connection === "ended" ? [] : ["1", "2", "3", "4", "5"];
    this.picture.show({
      members: ids.map((id) => ({ id, name: "", role: "starting", up: true, labels: [], lease: null })), order: ids, topology: "mesh",
      selection: null, cuts: [], partition: null, describe: "Members are not known yet.",
    });
    this.panel.show(null, 0, { leader: null, leases: false, stale: true });
  }

  /** @param {ClusterState} state */
  drawFoot(state) {
    if (!this.faults || !this.tools) return;
    const down = state.members.filter((member) => member.state === "down" || member.state === "failed").map(({ name }) => name);
    const broken = state.cuts.length > 0 || state.partition !== null;
    this.hint.know({ down: down.length > 0, broken, leader: leaderOf(state) !== null });
    this.tools.draw();
    const active = this.tools.isActive;
    set(/** @type {Element} */ (this.buttons), { hidden: active });
    set(/** @type {Element} */ (this.foot), { "data-tool": active ? "yes" : null });
    const shown = this.commands.buttons(state);
    const key = JSON.stringify([shown.map(({ title, off }) => [title, off]), this.cluster.state]);
    if (key === this.footKey) return;
    this.footKey = key;
    const focused = document.activeElement?.getAttribute("aria-keyshortcuts");
    const within = this.buttons?.contains(document.activeElement);
    this.buttons?.replaceChildren(...shown.map((command) => button(command.title, command.run, { key: command.key, class: command.key === "K" ? "primary" : "", disabled: command.off || this.cluster.state !== "open", title: command.tip })));
    if (within) /** @type {HTMLElement | null} */ (this.buttons?.querySelector(`[aria-keyshortcuts="${focused}"]`))?.focus();
  }

  /** The selected member, if there is one of that name. @param {ClusterState} state */
  selection(state) {
    const { member } = this.app.query.own;
    return state.members.some(({ name }) => name === member) ? member : null;
  }

  /** @param {string | null} id */
  press(id) {
    if (id !== null && this.tools?.press(id)) return;
    this.select(id);
  }

  /** @param {string | null} id */
  select(id) {
    this.app.navigate(withOwn(this.app.query, { member: id }));
    this.draw();
  }

  /** @param {string} id @param {{ x: number, y: number }} at */
  menu(id, at) {
    const member = this.state()?.members.find(({ name }) => name === id);
    if (!member || !this.faults) return this.select(id);
    this.faults.anchor = () => at;
    this.select(id);
    showMenu([...this.faults.of(member), ...(this.state().members.length <= 8 ? this.faults.links(member) : [])], at, `${member.name}, ${list([member.state === "up" ? member.role : member.state])}`);
  }

  /** The picture with its sentence and its buttons alone. */
  fullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.stage?.requestFullscreen?.();
  }

  /** @param {number | null} until */
  showTime(until) {
    this.until = until !== null && until >= this.cluster.now() ? null : until;
    this.draw();
  }

  /** @param {number} at */
  chooseFailover(at) {
    this.chosen = this.timeline().failovers.at(-1)?.at_us === at ? null : at;
    const now = this.cluster.now();
    const end = this.until ?? now;
    if (at < end - 29e6 || at > end) this.until = at + 12e6 >= now ? null : at + 12e6;
    this.draw();
  }

  leave() {
    this.left = true;
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    for (const stop of this.stop) stop();
  }
}

/** @param {EventTarget} target @param {string} event @param {() => void} listener */
function listenTo(target, event, listener) {
  target.addEventListener(event, listener);
  return () => target.removeEventListener(event, listener);
}
