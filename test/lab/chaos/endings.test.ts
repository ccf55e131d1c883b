import { describe, expect, test } from "vitest";
import { answerTo } from "../../../lab/chaos/answers.ts";
import { findLosses, isRestarted } from "../../../lab/chaos/endings.ts";
import { message } from "../../../lab/support/events.ts";
import { newRecord } from "../../../src/turn/record.ts";

const NAMES = ["q1n1", "q1n2"] as const;
const [ASKED, ALSO_ASKED] = NAMES.map((name) => ({ ...message(name), id: name, name, person: 0 }));
const ANSWER = answerTo(["q1n1"]);
const HALF = ANSWER.slice(0, ANSWER.length / 2);
const INTERRUPTED = "_The answer broke off before it was finished. Press Retry to ask again._";
const DELETED = "_The question was deleted. This answer is incomplete._";

type Remains = Parameters<typeof isRestarted>[0];

/** Finds lost text in the successive states of the first question's answer. */
function judgeGrowth(states: readonly string[], given: Partial<Remains> = {}): string[] {
  if (ASKED === undefined || ALSO_ASKED === undefined) throw new Error("Both questions must exist.");
  const record = { ...newRecord([ASKED], [ASKED]), messageIds: [ASKED.id], posted: ["answer"] };
  const shown = { id: "answer", text: "", states: [...states], statesAtMs: [], isGrowing: false, buttons: [] };
  const remains: Remains = {
    questions: [ASKED, ALSO_ASKED],
    removed: new Set(),
    shown: [shown],
    restarted: new Set(),
    requestsFor: () => [],
    ...given,
  };
  return isRestarted(remains, record) ? [] : findLosses(shown);
}

describe("the check for lost text in an answer", () => {
  test("the check finds text that people could read until it disappeared", () => {
    expect(judgeGrowth([HALF, ANSWER])).toEqual([]);
    expect(judgeGrowth([ANSWER, HALF])).toHaveLength(1);
    expect(judgeGrowth([HALF, INTERRUPTED])).toHaveLength(1);
    expect(judgeGrowth([`${HALF}\n\n${INTERRUPTED}`, DELETED])).toHaveLength(1);
  });

  test("the check accepts that another note or the answer replaces the note under an answer", () => {
    expect(judgeGrowth([`${HALF}\n\n${INTERRUPTED}`, `${HALF}\n\n${DELETED}`])).toEqual([]);
    expect(judgeGrowth([INTERRUPTED, ANSWER])).toEqual([]);
  });

  test("the check accepts that an answer restarts only if another question of its turn was deleted", () => {
    const both = answerTo(NAMES);
    expect(judgeGrowth([both, ANSWER])).toHaveLength(1);
    expect(judgeGrowth([both, ANSWER], { removed: new Set(["q1n2"]) })).toEqual([]);
    expect(judgeGrowth([ANSWER, HALF], { removed: new Set(["q1n1"]) })).toHaveLength(1);
    expect(judgeGrowth([ANSWER, HALF], { removed: new Set(["q1n2"]) })).toHaveLength(1);
  });

  test("the check accepts that an answer restarts after it showed half of the deleted question's name", () => {
    const both = answerTo(NAMES);
    const truncated = both.slice(0, both.indexOf("q1n2") + 3);
    const removed = new Set(["q1n2"]);
    expect(judgeGrowth([truncated, ANSWER], { removed })).toHaveLength(1);
    const request = {
      way: "answer",
      atMs: 0,
      sent: "",
      isComplete: true,
      isSecond: false,
      host: "",
      earlier: [],
    } as const;
    const requestsFor = (name: string) => (name === "q1n2" ? [{ ...request, names: [...NAMES] }] : []);
    expect(judgeGrowth([truncated, ANSWER], { removed, requestsFor })).toEqual([]);
  });
});
