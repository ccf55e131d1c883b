import { describe, expect, test } from "vitest";
import { newRecord } from "../../src/turn/record.ts";
import { message } from "./events.ts";
import { answerTo } from "./fault-loop/answers.ts";
import { judge, type Remains } from "./fault-loop/verdict.ts";

const NAMES = ["q1n1", "q1n2"] as const;
const [ASKED, ALSO_ASKED] = NAMES.map((name) => ({ ...message(name), id: name, name, person: 0, isTold: true }));
const ANSWER = answerTo(["q1n1"]);
const HALF = ANSWER.slice(0, ANSWER.length / 2);
const INTERRUPTED = "_The answer broke off before it was finished. Press Retry to ask again._";
const DELETED = "_The question was deleted. This answer is not whole._";

/** The texts that people could read one after the other as the answer to the first question, and what of it was taken back. */
function judgeGrowth(states: readonly string[], given: Partial<Remains> = {}): string[] {
  if (ASKED === undefined || ALSO_ASKED === undefined) throw new Error("Both are asked.");
  const record = { ...newRecord([ASKED], [ASKED]), messageIds: [ASKED.id], posted: ["answer"] };
  const shown = { id: "answer", text: "", states: [...states], statesAtMs: [], isGrowing: false, buttons: [] };
  const remains: Remains = {
    questions: [ASKED, ALSO_ASKED],
    removed: new Set(),
    turns: [record],
    shown: [shown],
    heard: new Set(),
    takenAway: new Set(),
    begunAnew: new Set(),
    isDisturbed: true,
    wasKilled: false,
    hadSlowCalls: false,
    breaks: [],
    acts: [],
    asked: () => [],
    ...given,
  };
  return judge(remains).flatMap(({ fault, sentence }) => (fault === "taken back" ? [sentence] : []));
}

describe("the judge of what an answer takes back", () => {
  test("finds text that people could read and then no longer", () => {
    expect(judgeGrowth([HALF, ANSWER])).toEqual([]);
    expect(judgeGrowth([ANSWER, HALF])).toHaveLength(1);
    expect(judgeGrowth([HALF, INTERRUPTED])).toHaveLength(1);
    expect(judgeGrowth([`${HALF}\n\n${INTERRUPTED}`, DELETED])).toHaveLength(1);
  });

  test("lets the sentence under an answer give way to another one, or to the answer", () => {
    expect(judgeGrowth([`${HALF}\n\n${INTERRUPTED}`, `${HALF}\n\n${DELETED}`])).toEqual([]);
    expect(judgeGrowth([INTERRUPTED, ANSWER])).toEqual([]);
  });

  test("lets an answer that ends after a kill lack what came after its first words, but not those", () => {
    const cut = `${HALF}\n\n${INTERRUPTED}`;
    expect(judgeGrowth([HALF, ANSWER, cut])).toHaveLength(1);
    expect(judgeGrowth([HALF, ANSWER, cut], { wasKilled: true })).toEqual([]);
    expect(judgeGrowth([ANSWER, cut], { wasKilled: true })).toHaveLength(1);
    expect(judgeGrowth([HALF, INTERRUPTED], { wasKilled: true })).toHaveLength(1);
  });

  test("lets an answer begin anew whose other question was taken back, and no other", () => {
    const both = answerTo(NAMES);
    expect(judgeGrowth([both, ANSWER])).toHaveLength(1);
    expect(judgeGrowth([both, ANSWER], { removed: new Set(["q1n2"]) })).toEqual([]);
    expect(judgeGrowth([ANSWER, HALF], { removed: new Set(["q1n1"]) })).toHaveLength(1);
    expect(judgeGrowth([ANSWER, HALF], { removed: new Set(["q1n2"]) })).toHaveLength(1);
  });

  test("lets it begin anew also where the name of that question was only half shown", () => {
    const both = answerTo(NAMES);
    const cut = both.slice(0, both.indexOf("q1n2") + 3);
    const removed = new Set(["q1n2"]);
    expect(judgeGrowth([cut, ANSWER], { removed })).toHaveLength(1);
    const request = {
      way: "answer",
      atMs: 0,
      said: "",
      isComplete: true,
      isSecond: false,
      host: "",
      earlier: [],
    } as const;
    const asked = (name: string) => (name === "q1n2" ? [{ ...request, names: [...NAMES] }] : []);
    expect(judgeGrowth([cut, ANSWER], { removed, asked })).toEqual([]);
  });
});
