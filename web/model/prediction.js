/**
 * The questions before a run is played. They follow from the scenario and never from the end of the run, which they
 * would reveal. Pure.
 */

import { count, time } from "./words.js";

/**
 * @typedef {import("./run.js").Run} Run
 * @typedef {"leader" | "messages" | "known" | "two" | "ends" | "first" | "together" | "served"} Name
 * @typedef {number | boolean | null} Guess `null`: no agreement
 * @typedef {{ title: string, short: string, kind: "member" | "number" | "choice", unit?: string, truth(run: Run): Guess | undefined, words(run: Run, value: Guess | undefined): string }} Question
 */

const yesOrNo = (/** @type {Run} */ _, /** @type {Guess | undefined} */ value) => (value ? "yes" : "no");

/** @type {Record<Name, Question>} */
export const QUESTIONS = {
  leader: {
    title: "Who will lead at the end?", short: "Leader", kind: "member",
    truth: (run) => run.data.metrics.leader, words: (run, id) => (typeof id === "number" ? run.name(id) : "no agreement"),
  },
  messages: {
    title: "How many messages?", short: "Messages", kind: "number",
    truth: (run) => run.data.metrics.messages, words: (_, value) => count(Number(value)),
  },
  known: {
    title: "When does the last member know?", short: "All know", kind: "number", unit: "ms",
    truth: (run) => (run.data.metrics.informed_ns === null ? undefined : run.data.metrics.informed_ns / 1e6),
    words: (_, ms) => (typeof ms === "number" ? time(ms * 1e6) : "never"),
  },
  two: {
    title: "Will two members lead at the same time?", short: "Two leaders", kind: "choice",
    truth: (run) => run.data.metrics.two_leaders, words: yesOrNo,
  },
  ends: {
    title: "Will the election come to an end?", short: "It ends", kind: "choice",
    truth: (run) => run.data.ended === "quiet", words: yesOrNo,
  },
  first: {
    title: "Who enters first?", short: "First inside", kind: "member",
    truth: (run) => run.data.metrics.exclusion?.order[0] ?? null, words: (run, id) => (typeof id === "number" ? run.name(id) : "no member"),
  },
  together: {
    title: "Will two members be inside at the same time?", short: "Two inside", kind: "choice",
    truth: (run) => run.data.metrics.exclusion?.two_inside, words: yesOrNo,
  },
  served: {
    title: "Will every member that asks enter?", short: "All enter", kind: "choice",
    truth: (run) => run.data.metrics.exclusion?.waiting.length === 0, words: yesOrNo,
  },
};

/** The questions that suit a run. @param {Run} run @returns {Name[]} */
export function questionsFor(run) {
  const { mode, source, leases, intervals = {}, metrics } = run.data;
  const faults = run.steps.some(({ type, at }) => type === "fault" && at > 0) || intervals.partition?.length > 0 || intervals.cuts?.length > 0;
  const slow = run.messages.some(({ sent, arrives }) => arrives !== null && arrives - sent > run.d);
  if (run.excludes) return faults || slow || run.messages.some(({ changed }) => changed !== null) || !metrics.formula ? ["first", "together", "served"] : ["first", "messages"];
  const flawed = source?.gallery?.startsWith("flaws/") || !["textbook", "hardened"].includes(mode);
  if (flawed) return ["leader", "two", "ends"];
  if (faults || slow || leases) return ["leader", "two"];
  return metrics.formula ? ["leader", "messages", "known"] : ["leader", "known"];
}

/** Whether a guess is right; a time may be half a D off. @param {Name} name @param {Run} run @param {Guess} guess */
export function isRight(name, run, guess) {
  const truth = QUESTIONS[name].truth(run);
  if (name !== "known") return guess === truth;
  return typeof truth === "number" && Math.abs(Number(guess) - truth) * 1e6 <= run.d / 2;
}
