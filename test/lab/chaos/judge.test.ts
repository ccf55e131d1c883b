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

const toCall = (atMs: number) => ({
  atMs,
  endedAtMs: atMs + 50,
  host: "host0",
  method: "edit",
  budget: "",
  messageId: "answer",
  status: 200,
  retryAfterMs: undefined,
  words: "",
});

/** One question that was answered as it should be, but for what is given. */
function toRecord(given: Partial<Record>): Record {
  const turn = {
    ...newRecord([QUESTION], [QUESTION]),
    posted: ["answer"],
    phase: "final" as const,
    ends: ["complete"],
  };
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
    spent: { counted: 2, held: 0 },
    board: { turns: { complete: 1 }, pictures: {}, tools: {}, failures: 0 },
    acts: [],
    open: 0,
    secrets: [],
    ...given,
  };
}

const columnsOf = (given: Partial<Record>) => judge(toRecord(given)).findings.map(({ column }) => column);

describe("the judge of a recorded run", () => {
  test("finds nothing where all is as it should be", () => expect(judge(toRecord({})).findings).toEqual([]));

  test("lets an answer say that Redis was away, where it was", () => {
    const note = "_My memory is out of reach right now: this answer knows nothing of what was said before._";
    const shown = [shownAt([[0, `${ANSWER}\n\n${note}`]])];
    const long = { ...REDIS_AWAY, fromMs: -60_000, toMs: -50_000 };
    expect(columnsOf({ shown })).toEqual(["wrong text"]);
    expect(columnsOf({ shown, disturbances: [long] })).toEqual(["wrong text"]);
    expect(columnsOf({ shown, disturbances: [{ ...REDIS_AWAY, fromMs: -1_000 }] })).toEqual([]);
  });

  test("finds an answer that begins while the one before it grows, and none where that only gets a note", () => {
    const [name, later] = ["q1n2", message("q1n2")];
    const { turns, questions, asked } = toRecord({});
    const second = { ...newRecord([later], [later]), posted: ["second"], phase: "final" as const, ends: ["complete"] };
    const twoQuestions = (
      states: ReadonlyArray<readonly [atMs: number, text: string]>,
      sessionIds?: [string, string],
    ) =>
      columnsOf({
        turns: [...turns, second],
        questions: [...questions, { ...questions[0]!, name, id: later.messageId, saidAtMs: 100 }],
        asked: () => [...asked(""), { ...asked("")[0]!, names: [name], said: answerTo([name]) }],
        told: ({ id }) => {
          const isLater = id === later.messageId;
          const atMs = isLater ? 100 : 0;
          if (sessionIds === undefined) return { toldAtMs: atMs, acknowledgedAtMs: atMs, isGivenUp: false };
          const heard = new Set([sessionIds[isLater ? 1 : 0]]);
          return { toldAtMs: undefined, acknowledgedAtMs: undefined, isGivenUp: false, sessionIds: heard };
        },
        shown: [shownAt(states), { ...shownAt([[300, answerTo([name])]]), id: "second" }],
      });
    const note = `${ANSWER}\n\n_The question was deleted._`;
    const grown = [
      [0, ANSWER.slice(0, 40)],
      [500, ANSWER],
    ] as const;
    expect(twoQuestions(grown)).toContain("out of order");
    expect(twoQuestions(grown, ["a", "a"])).toContain("out of order");
    // What was said in between two sessions is read when the second one has begun, perhaps after what that one is told.
    expect(twoQuestions(grown, ["a", "b"])).not.toContain("out of order");
    expect(
      twoQuestions([
        [0, ANSWER],
        [500, note],
      ]),
    ).not.toContain("out of order");
  });

  test("takes no word to whoever pressed a button for a second answer", () => {
    const answer = shownAt([[0, ANSWER]]);
    expect(columnsOf({ shown: [answer, { ...answer, id: "x", text: "This answer has ended already." }] })).toEqual([]);
    expect(columnsOf({ shown: [answer, { ...answer, id: "x" }] })).toEqual(["doubled"]);
  });

  const unnoted = {
    shown: [
      shownAt([
        [1_000, ANSWER.slice(0, 20)],
        [1_500, ANSWER],
        [1_590, ANSWER],
        [1_600, ANSWER.slice(0, 30)],
        [1_700, ANSWER],
      ]),
    ],
    calls: [toCall(1_490)],
    lives: [life(0, 1_550), life(1)],
  };

  test("lets an answer show less whose process died while Redis took no note of it, and no other one", () => {
    expect(columnsOf({ ...unnoted, disturbances: [REDIS_AWAY] })).toEqual([]);
    expect(columnsOf(unnoted)).toEqual(["wrong text"]);
    const lives = [life(0), life(1)];
    const goneOn = { ...unnoted, lives, calls: [toCall(1_490), { ...toCall(1_595), host: "host1" }] };
    expect(columnsOf({ ...goneOn, disturbances: [REDIS_AWAY] })).toEqual([]);
    expect(columnsOf({ ...unnoted, lives, disturbances: [REDIS_AWAY] })).toEqual(["wrong text"]);
    expect(columnsOf(goneOn)).toEqual(["wrong text"]);
    expect(columnsOf({ ...unnoted, disturbances: [REDIS_AWAY], lives: [life(0), life(1)] })).toEqual(["wrong text"]);
    expect(columnsOf({ ...unnoted, disturbances: [{ ...REDIS_AWAY, slot: 1 }] })).toEqual(["wrong text"]);
  });

  test("lets the end of a full message move to the next one, and not go away", () => {
    const [half, turn] = [ANSWER.length / 2, toRecord({}).turns[0]];
    const first = shownAt([
      [1_500, ANSWER.slice(0, half + 9)],
      [1_600, ANSWER.slice(0, half)],
    ]);
    const turns = turn === undefined ? [] : [{ ...turn, posted: ["answer", "next"] }];
    const next = { ...shownAt([[1_600, ANSWER.slice(half)]]), id: "next" };
    expect(columnsOf({ shown: [first, next], turns })).toEqual([]);
    const lost = { ...next, text: ANSWER.slice(half + 9) };
    expect(columnsOf({ shown: [first, lost], turns })).toContain("wrong text");
  });

  test("lets a command be heard by nobody while something is broken", () => {
    const plan = planRun({ seed: 1, turns: 25, platform: "slack", processes: 2 });
    const [picture] = plan.pictures;
    const notes = [{ atMs: 1_500, what: `somebody asks for a picture of ${picture?.name}` }];
    expect(columnsOf({ plan, notes })).toEqual(["lost"]);
    expect(columnsOf({ plan, notes, disturbances: [REDIS_AWAY] })).toEqual([]);
    const taken = { plan, notes, drawn: [picture?.name ?? ""], disturbances: [REDIS_AWAY] };
    expect(columnsOf(taken)).toEqual(["lost"]);
    const told = { ...shownAt([[2_000, "I could not store this, so I cannot answer it."]]), id: "told" };
    expect(columnsOf({ ...taken, shown: [shownAt([[0, ANSWER]]), told] })).toEqual([]);
    expect(columnsOf({ ...taken, disturbances: [], shown: [shownAt([[0, ANSWER]]), told] })).toEqual(["lost"]);
  });

  test("lets a command be lost whose process was killed while it could not store it", () => {
    const plan = planRun({ seed: 1, turns: 100, platform: "discord", processes: 2 });
    const pictures = plan.pictures.slice(0, 1);
    const drawn = pictures.map(({ name }) => name);
    const asked = { atMs: 1_000, what: `somebody asks for a picture of ${drawn[0]}` };
    const waits = "My memory is out of reach right now. I will do this as soon as it is back.";
    const promised = { ...shownAt([[2_000, waits]]), id: "promised" };
    const given = { plan: { ...plan, pictures }, drawn, notes: [asked], shown: [shownAt([[0, ANSWER]]), promised] };
    const killedAt = (fromMs: number): Disturbance => ({ kind: "kill", slot: 0, fromMs, toMs: fromMs + 1_000 });
    expect(columnsOf({ ...given, disturbances: [killedAt(3_000)] })).toEqual([]);
    expect(columnsOf({ ...given, disturbances: [killedAt(-30_000)] })).toEqual(["lost"]);
  });

  test("finds requests that were made without a reservation", () => {
    expect(columnsOf({ spent: { counted: 0, held: 0 } })).toEqual(["overspent"]);
    expect(columnsOf({ spent: { counted: 0, held: 1 } })).toEqual([]);
  });

  test("finds what acted twice for one question, and lets an answer say that nobody knows", () => {
    const told = (tools: number) => ({ ...toRecord({}).board, tools: { buy: tools } });
    expect(columnsOf({ acts: [NAME, "q1n2"], board: told(2) })).toEqual([]);
    expect(columnsOf({ acts: [NAME, NAME], board: told(2) })).toEqual(["acted twice"]);
    const unknown = "_It is not known whether `shop__buy` was done: no result came._";
    const record = toRecord({ shown: [shownAt([[0, `${ANSWER}\n\n${unknown}`]])] });
    expect(judge(record).findings).toEqual([]);
    expect([...judge(record).excused.keys()]).toEqual(["an answer says that nobody knows whether its tool acted"]);
  });

  test("finds each number of the dashboard that is not what happened, and an end that people do not see", () => {
    const { board, turns } = toRecord({});
    const tell = (told: Partial<Record["board"]>) => columnsOf({ board: { ...board, ...told } });
    expect(tell({ turns: {} })).toEqual(["dashboard"]);
    expect(tell({ turns: { complete: 2 } })).toEqual(["dashboard"]);
    expect(tell({ turns: { complete: 1, failed: 1 } })).toEqual(["dashboard"]);
    expect(tell({ failures: 1 })).toEqual(["dashboard"]);
    expect(tell({ pictures: { drawn: 1 } })).toEqual(["dashboard"]);
    expect(tell({ tools: { buy: 1 } })).toEqual(["dashboard"]);
    const failed = turns.map((turn) => ({ ...turn, ends: ["failed"] }));
    expect(columnsOf({ turns: failed, board: { ...board, turns: { failed: 1 }, failures: 1 } })).toEqual(["dashboard"]);
  });

  test("lets a call be counted or not whose answer people had begin anew", () => {
    const acts = [NAME];
    expect(columnsOf({ acts })).toEqual(["dashboard"]);
    expect(columnsOf({ acts, begunAnew: new Set([QUESTION.messageId]) })).toEqual([]);
  });

  test("lets a question be acknowledged late while something is broken", () => {
    const breaks = [{ kind: "late-ack", sentence: "It was late.", atMs: 1_500 }];
    expect(columnsOf({ breaks })).toEqual(["other"]);
    expect(columnsOf({ breaks, disturbances: [REDIS_AWAY] })).toEqual([]);
    const over = { fromMs: -4_000, toMs: -2_000 };
    expect(columnsOf({ breaks, disturbances: [{ ...REDIS_AWAY, ...over }] })).toEqual([]);
    expect(columnsOf({ breaks, disturbances: [{ kind: "kill", slot: 0, ...over }] })).toEqual(["other"]);
  });

  test("lets a question be refused whose limits could not be looked up, where Redis was away", () => {
    const note = "_Not answered: I cannot look up the limits, because my memory is out of reach._";
    const board = { turns: { refused: 1 }, pictures: {}, tools: {}, failures: 0 };
    const turns = toRecord({}).turns.map((turn) => ({ ...turn, ends: ["refused"] }));
    const shown = [{ ...shownAt([[9_000, note]]), buttons: [{ label: "Retry", payload: "" }] }];
    const given = { shown, turns, board, asked: () => [], spent: { counted: 0, held: 0 } };
    expect(columnsOf({ ...given, disturbances: [REDIS_AWAY] })).toEqual([]);
    expect(columnsOf(given)).toEqual(["wrong text"]);
  });

  test("lets a call go out that was under way when its process was stopped, and none after that", () => {
    const stopped: Disturbance = { kind: "stop", slot: 0, fromMs: 1_000, toMs: 5_000 };
    const by = (slot: number, atMs: number) => ({ ...toCall(atMs), host: `host${slot}` });
    const calls = (atMs: number) => [by(0, 900), by(1, 4_000), by(0, atMs), by(1, atMs + 500)];
    const dead = (atMs: number) => [{ kind: "dead-stream", sentence: "It is over.", atMs, messageId: "answer" }];
    const disturbances = [stopped];
    expect(columnsOf({ calls: calls(5_020), breaks: dead(5_030), disturbances })).toEqual([]);
    expect(columnsOf({ calls: calls(5_300), breaks: dead(5_310), disturbances })).toEqual(["other", "fenced"]);
    expect(columnsOf({ calls: calls(5_020), breaks: dead(5_030) })).toEqual(["other", "fenced"]);
    const other = [{ ...stopped, slot: 1 }];
    expect(columnsOf({ calls: calls(5_020), breaks: dead(5_030), disturbances: other })).toContain("other");
  });

  test("lets an answer begin anew whose processes knew different things of what had been said before, where Redis was away", () => {
    const [request] = toRecord({}).asked(NAME);
    if (request === undefined) throw new Error("nothing was asked");
    const about = (host: string, atMs: number, ...names: string[]) => ({ ...request, host, atMs, names });
    const more = answerTo(["q1n2", NAME]);
    const shown = [
      shownAt([
        [1_500, ANSWER],
        [2_000, more],
      ]),
    ];
    const asked = () => [about("host0", 1_450, NAME), about("host1", 1_900, "q1n2", NAME)];
    const redis = { ...REDIS_AWAY, fromMs: 100, toMs: 400 };
    const less = () => [about("host0", 1_450, "q1n2", NAME), about("host1", 1_900, NAME)];
    expect(columnsOf({ shown, asked: less, disturbances: [redis] })).not.toContain("wrong text");
    expect(columnsOf({ shown, asked, disturbances: [redis] })).not.toContain("wrong text");
    const beforeSecond = { ...REDIS_AWAY, fromMs: 1_600, toMs: 1_800 };
    expect(columnsOf({ shown, asked: less, disturbances: [beforeSecond] })).not.toContain("wrong text");
    const afterBoth = { ...REDIS_AWAY, fromMs: 1_950, toMs: 1_990 };
    expect(columnsOf({ shown, asked: less, disturbances: [afterBoth] })).toContain("wrong text");
    expect(columnsOf({ shown, asked })).toContain("wrong text");
    const alike = () => [about("host0", 1_450, NAME), about("host1", 1_900, NAME)];
    expect(columnsOf({ shown, asked: alike, disturbances: [redis] })).toContain("wrong text");
  });

  test("lets an answer be given up whose processes died six times, and none of which everything was shown", () => {
    const note = "_I tried several times and couldn't finish this answer. Press Retry to ask again._";
    const kill = (index: number): Disturbance => ({ kind: "kill", slot: 0, fromMs: 1_500 + index * 10, toMs: 1_600 });
    const kills = (count: number) => Array.from({ length: count }, (_, index) => kill(index + 1));
    const button = { label: "Retry", payload: "retry" };
    const given = (text: string) => [{ ...shownAt([[2_000, text]]), buttons: [button] }];
    expect(columnsOf({ shown: given(note), disturbances: kills(6) })).not.toContain("wrong text");
    expect(columnsOf({ shown: given(note), disturbances: kills(5) })).toContain("wrong text");
    expect(columnsOf({ shown: given(`${ANSWER}\n\n${note}`), disturbances: kills(6) })).toContain("wrong text");
  });

  test("lets an answer begin anew whose other question was taken back", () => {
    const taken = { name: "q1n2", id: "taken", person: 0, isTold: true, place: 0, saidAtMs: 0 };
    const { questions } = toRecord({});
    const shown = [
      shownAt([
        [0, answerTo([NAME, taken.name])],
        [1, ANSWER],
      ]),
    ];
    expect(columnsOf({ shown })).toContain("wrong text");
    expect(columnsOf({ shown, questions: [...questions, taken], removed: new Set([taken.id]) })).toEqual([]);
  });
});

test("the time that an answer stood still when its process was killed is measured", () => {
  const kill: Disturbance = { kind: "kill", slot: 0, fromMs: 1_000, toMs: 3_000 };
  const record = toRecord({
    lives: [life(0, 1_010), life(1)],
    disturbances: [kill],
    calls: [toCall(900)],
    shown: [
      shownAt([
        [900, "one two"],
        [4_000, "one two"],
        [4_700, "one two three"],
      ]),
    ],
  });
  const gap = { ms: 3_700, messageId: "answer" };
  expect(findGaps(record)).toEqual([{ ...gap, isAlone: true }]);
  const before = { ...REDIS_AWAY, fromMs: 0, toMs: 900 };
  expect(findGaps({ ...record, disturbances: [kill, before] })).toEqual([{ ...gap, isAlone: true }]);
  const meanwhile = { ...REDIS_AWAY, fromMs: 4_000, toMs: 9_000 };
  expect(findGaps({ ...record, disturbances: [kill, meanwhile] })).toEqual([{ ...gap, isAlone: false }]);
});
