import { describe, expect, test } from "vitest";
import { findGaps } from "../../chaos/gaps.ts";
import { judge } from "../../chaos/judge.ts";
import { planRun } from "../../chaos/plan.ts";
import type { Disturbance, Record } from "../../chaos/record.ts";
import { newRecord } from "../../src/turn/record.ts";
import { message } from "../support/events.ts";
import { answerTo } from "../support/fault-loop/answers.ts";

const NAME = "q1n1";
const ANSWER = answerTo([NAME]);
const QUESTION = message(NAME);
const REDIS_AWAY: Disturbance = { kind: "redis-kill", slot: undefined, fromMs: 1_000, toMs: 2_000 };

const life = (slot: number, endedAtMs?: number) => ({
  name: `p${slot + 1}.1`,
  slot,
  hosts: [`host${slot}`],
  lines: [],
  startedAtMs: 0,
  endedAtMs,
  crash: undefined,
});

const shownAt = (states: ReadonlyArray<readonly [atMs: number, text: string]>) => ({
  id: "answer",
  text: states.at(-1)?.[1] ?? "",
  states: states.map(([, text]) => text),
  statesAtMs: states.map(([atMs]) => atMs),
  isGrowing: false,
  buttons: [],
});

/** One question that was answered as it should be, but for what is given. */
function toRecord(given: Partial<Record>): Record {
  const turn = { ...newRecord([QUESTION], [QUESTION]), posted: ["answer"], phase: "final" as const };
  const asked = {
    way: "answer" as const,
    atMs: 0,
    said: ANSWER,
    isComplete: true,
    isSecond: false,
    host: "",
    earlier: [],
  };
  return {
    plan: { ...planRun({ seed: 1, turns: 1, platform: "slack", processes: 2 }), pictures: [] },
    notes: [],
    lives: [life(0), life(1)],
    disturbances: [],
    questions: [{ name: NAME, id: QUESTION.messageId, person: 0, isTold: true, place: 0, saidAtMs: 0 }],
    drawn: [],
    removed: new Set(),
    begunAnew: new Set(),
    told: () => ({ toldAtMs: 0, acknowledgedAtMs: 0, isGivenUp: false }),
    asked: () => [{ ...asked, names: [NAME] }],
    shown: [shownAt([[0, ANSWER]])],
    calls: [],
    breaks: [],
    turns: [turn],
    histories: new Map([
      [
        turn.conversationId,
        [
          {
            id: "question",
            at: 0,
            author: { platform: "test", id: "ada", name: "Ada" },
            messages: [{ role: "user", content: NAME }],
          },
          { id: "answer", at: 0, messages: [{ role: "assistant", content: ANSWER }] },
        ],
      ],
    ]),
    open: 0,
    secrets: [],
    ...given,
  };
}

const columnsOf = (given: Partial<Record>) => judge(toRecord(given)).findings.map(({ column }) => column);

describe("the judge of what was recorded", () => {
  test("finds nothing where all is as it should be", () => expect(judge(toRecord({})).findings).toEqual([]));

  test("lets an answer say that Redis was away, where it was", () => {
    const note = "_My memory is out of reach right now: this answer knows nothing of what was said before._";
    const shown = [shownAt([[0, `${ANSWER}\n\n${note}`]])];
    expect(columnsOf({ shown })).toEqual(["wrong text"]);
    expect(columnsOf({ shown, disturbances: [REDIS_AWAY] })).toEqual([]);
  });

  test("takes no word to whoever pressed a button for a second answer", () => {
    const answer = shownAt([[0, ANSWER]]);
    expect(columnsOf({ shown: [answer, { ...answer, id: "x", text: "This answer has ended already." }] })).toEqual([]);
    expect(columnsOf({ shown: [answer, { ...answer, id: "x" }] })).toEqual(["doubled"]);
  });

  test("lets an answer begin anew whose other question was taken back", () => {
    const taken = { name: "q1n2", id: "taken", person: 0, isTold: true, place: 0, saidAtMs: 0 };
    const { questions } = toRecord({});
    const breaks = [{ kind: "stale-edit", sentence: "It brought older text.", messageId: "answer" }];
    const shown = [
      shownAt([
        [0, answerTo([NAME, taken.name])],
        [1, ANSWER],
      ]),
    ];
    expect(columnsOf({ breaks, shown })).toContain("other");
    expect(columnsOf({ breaks, shown, questions: [...questions, taken], removed: new Set([taken.id]) })).toEqual([]);
  });
});

test("the time that an answer stood still when its process was killed is measured", () => {
  const call = {
    atMs: 900,
    endedAtMs: 950,
    host: "host0",
    method: "edit",
    budget: "",
    messageId: "answer",
    status: 200,
  };
  const record = toRecord({
    lives: [life(0, 1_010), life(1)],
    disturbances: [{ kind: "kill", slot: 0, fromMs: 1_000, toMs: 3_000 }],
    calls: [{ ...call, retryAfterMs: undefined, words: "" }],
    shown: [
      shownAt([
        [900, "one two"],
        [4_000, "one two"],
        [4_700, "one two three"],
      ]),
    ],
  });
  expect(findGaps(record)).toEqual([{ ms: 3_700, messageId: "answer" }]);
});
