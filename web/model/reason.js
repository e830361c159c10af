/** Why a step happened: the rule that fired, and the chain of causes in words. Pure. */

import { isHolding } from "./run.js";
import { list, time } from "./words.js";

/**
 * @typedef {import("./run.js").Run} Run
 * @typedef {import("./run.js").Step} Step
 * @typedef {import("./run.js").Position} Position
 * @typedef {{ at: number, steps: number[], members: string[], what: string }} Line one action, of one member or of several at one instant
 * @typedef {{ step: number, title: string, when: string, rules: { id: string, title: string }[], words: string, chain: Line[] }} Reason
 */

/** At most this many lines of a chain are shown before it is folded. */
const LINES = 7;

/** Why the selection came about; without one, why the last step done did. Null if nothing has happened yet. @param {Run} run @param {string | null} selection @param {Position} position @returns {Reason | null} */
export function reason(run, selection, position) {
  const last = position.s > 0 ? lastTelling(run, position.s) : null;
  const i = selection === null ? last : run.stepOf(selection, position);
  if (i === null) return null;
  const step = run.steps[i];
  return { step: i, title: title(run, step), when: time(step.at), rules: rulesOf(run, step), words: words(run, step), chain: chain(run, i) };
}

/** The last step done; when a moment is complete, its last step in which a rule fired, and not one that no member noticed. @param {Run} run @param {number} s */
function lastTelling(run, s) {
  const { at } = run.steps[s - 1];
  if (run.steps[s]?.at === at) return s - 1;
  for (let i = s - 1; i >= 0 && run.steps[i].at === at; i--) if (run.steps[i].rules.length) return i;
  return s - 1;
}

/** Who begins to lead in this step, or enters. @param {Step} step */
export function winner(step) {
  const found = step.change.find(([, changes]) => isHolding(changes.role?.[1]));
  return found ? found[0] : null;
}

/** @param {Run} run @param {Step} step */
function title(run, step) {
  const first = winner(step);
  if (first !== null) {
    const { what } = action(run, step);
    return `${run.name(first)} ${run.excludes ? "enters" : "leads"}${what.startsWith(":") ? what : `: ${what}`}`;
  }
  const { member, what } = action(run, step);
  return member === null ? what : join(run.name(member), what);
}

/** A subject and what it did. @param {string} subject @param {string} what */
export const join = (subject, what) => (what.startsWith(":") ? subject + what : `${subject} ${what}`);

/** @param {Run} run @param {Step} step */
function rulesOf(run, step) {
  return step.rules.map((id) => ({ id, title: run.data.rules?.[id]?.title ?? "" }));
}

/** The rule in the words of the algorithm, with this run's names and times. @param {Run} run @param {Step} step */
function words(run, step) {
  if (step.sentence) return step.sentence;
  return step.rules
    .map((id) => run.data.rules?.[id]?.text ?? "")
    .filter(Boolean)
    .join(" ")
    .replaceAll("{m}", run.name(step.member));
}

/** What a message is called, without what it carries. @param {Run} run @param {import("./run.js").Message} message */
export const kindOf = (run, message) => run.kinds[message.kind]?.name ?? message.text;

/** What it carries: "term=1 round=1". @param {Run} run @param {import("./run.js").Message} message */
export const contentOf = (run, message) => message.text.slice(kindOf(run, message).length).trim();

/**
 * What a step did, without its subject: "receives ELECTION from 4, answers OK".
 * @param {Run} run @param {Step} step @returns {{ member: number | null, what: string }}
 */
export function action(run, step) {
  const message = step.message === null ? null : run.byId.get(step.message);
  if (message) {
    const down = message.fate === "receiver down" && message.at === step.i;
    const twice = message.again_at === step.i ? " a second time" : "";
    const [kind, from] = [kindOf(run, message), run.name(message.from)];
    const what = down ? `is down: ${kind} from ${from} is not received` : `receives ${kind} from ${from}${twice}`;
    return { member: step.member, what: what + answers(run, step, message.from) };
  }
  return { member: step.member, what: withoutSubject(run, step) };
}

/** What the sender gets in return. What goes to others shows when it arrives. @param {Run} run @param {Step} step @param {number} asker */
function answers(run, step, asker) {
  const kinds = step.sends.map((id) => run.byId.get(id)).filter((message) => message && message.to === asker && !run.kinds[message.kind].background);
  return kinds.length ? `, answers ${[...new Set(kinds.map((message) => message && kindOf(run, message)))].join(", ")}` : "";
}

/** The engine's line of the step without the member's name, which stands before it: "calls an election", ": no answer in time". @param {Run} run @param {Step} step */
function withoutSubject(run, step) {
  const name = step.member === null ? "" : run.name(step.member);
  if (!name) return step.text;
  for (const mark of [": ", " "]) if (step.text.startsWith(name + mark)) return step.text.slice(name.length + (mark === " " ? 1 : 0));
  return step.text;
}

/** The causal past of a step in words, without the step itself. Equal actions of one instant are one line. @param {Run} run @param {number} i @returns {Line[]} */
function chain(run, i) {
  const past = [...run.past(i)].filter((one) => one !== i).sort((a, b) => a - b);
  /** @type {Line[]} */
  const lines = [];
  for (const at of past) {
    const step = run.steps[at];
    if (step.background) continue;
    const { member, what } = action(run, step);
    const same = lines.find((line) => line.at === step.at && line.what === what);
    if (same) {
      same.steps.push(at);
      if (member !== null) same.members.push(run.name(member));
    } else {
      lines.push({ at: step.at, steps: [at], members: member === null ? [] : [run.name(member)], what });
    }
  }
  return lines;
}

/** One line as a sentence with the verb in the right form. @param {Line} line */
export function sentence({ members, what }) {
  return members.length > 1 ? plural(what) : what;
}

/** "receives" → "receive", for several members. @param {string} what */
function plural(what) {
  const forms = /** @type {[RegExp, string][]} */ ([
    [/^is down/, "are down"], [/^is /, "are "], [/^: has /, ": have "], [/^: is /, ": are "], [/^(\w+)(sh|ch|ss|x)es\b/, "$1$2e"], [/^(\w+[^s])s\b/, "$1"],
    [/, answers /g, ", answer "],
  ]);
  const plain = forms.reduce((text, [singular, form]) => text.replace(singular, form), what);
  return plain.replace(/^(crashe)\b/, "crash");
}

/** The chain as it is shown: folded in the middle if it is long. @param {Line[]} chain @returns {{ first: Line[], hidden: number, last: Line[] }} */
export function folded(chain) {
  if (chain.length <= LINES) return { first: chain, hidden: 0, last: [] };
  return { first: chain.slice(0, 3), hidden: chain.length - 6, last: chain.slice(-3) };
}

/** What became of a message at a position, in words. @param {Run} run @param {number} id @param {Position} position */
export function fate(run, id, { s, t }) {
  const message = run.byId.get(id);
  if (!message) return "";
  const to = run.name(message.to);
  if (message.by >= s) return `Not sent yet: at ${time(message.sent)}.`;
  const sent = `Sent at ${time(message.sent)}`;
  if (message.fate === "lost" || message.arrives === null) return `${sent}, lost on its way${message.changed === "dropped" ? ": you dropped it" : ""}.`;
  const changed = message.changed === "delayed" ? ", later than in the run before" : message.changed === "doubled" ? ", and twice" : "";
  if (message.at === null || message.at >= s) return `${sent}, arrives in ${time(message.arrives - t)}${changed}.`;
  if (message.fate === "receiver down") return `${sent}; it reached ${to} at ${time(message.arrives)}, which was down.`;
  return `${sent}, received at ${time(message.arrives)}${changed}.`;
}

/** The step to which `[` and `]` lead. @param {Run} run @param {number} i @param {1 | -1} way */
export function neighbour(run, i, way) {
  if (way < 0) {
    const { message, causes } = run.steps[i];
    return (message === null ? null : run.byId.get(message)?.by) ?? causes[0] ?? null;
  }
  run.effects ??= run.invert();
  const effects = run.effects[i];
  return effects.find((one) => winner(run.steps[one]) !== null) ?? effects[0] ?? null;
}
