import { describe, expect, test } from "vitest";
import { NOT_KEPT } from "../../../adapters/slack/act/acknowledgement.ts";
import { answerTo } from "../../../lab/chaos/answers.ts";
import { findGaps } from "../../../lab/chaos/gaps.ts";
import { judge } from "../../../lab/chaos/judge.ts";
import { planRun } from "../../../lab/chaos/plan.ts";
import type { Disturbance, Record } from "../../../lab/chaos/record.ts";
import { message } from "../../../lab/support/events.ts";
import { newRecord, type Trace, type TurnRecord } from "../../../src/turn/record.ts";

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

/** A record of one correctly answered question, with these changes. */
function toRecord(given: Partial<Record>): Record {
  const turn = {
    ...newRecord([QUESTION], [QUESTION]),
    posted: ["answer"],
    phase: "final" as const,
    ends: ["complete"],
  };
  const request = {
    way: "answer" as const,
    atMs: 0,
    sent: ANSWER,
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
    questions: [{ name: NAME, id: QUESTION.messageId, person: 0, place: 0, askedAtMs: 0 }],
    replies: new Map(),
    removed: new Set(),
    restarted: new Set(),
    deletedAnswers: new Set(),
    cutOff: new Set(),
    deliveryOf: () => ({ deliveredAtMs: 0, acknowledgedAtMs: 0, isGivenUp: false }),
    requestsFor: () => [{ ...request, names: [NAME] }],
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
    counted: 2,
    board: { turns: { complete: 1 }, pictures: {}, tools: {}, failures: 0 },
    acts: [],
    open: { events: 0, runs: [] },
    secrets: [],
    ...given,
  };
}

const columnsOf = (given: Partial<Record>) => judge(toRecord(given)).findings.map(({ column }) => column);

describe("the judge of a recorded run", () => {
  test("the judge finds nothing in a correct record", () => expect(judge(toRecord({})).findings).toEqual([]));

  test("the judge accepts a note about a Redis outage only if Redis was away", () => {
    const note = "_My storage is unavailable: I wrote this answer without the earlier conversation._";
    const shown = [shownAt([[0, `${ANSWER}\n\n${note}`]])];
    const long = { ...REDIS_AWAY, fromMs: -60_000, toMs: -50_000 };
    expect(columnsOf({ shown })).toEqual(["wrong text"]);
    expect(columnsOf({ shown, disturbances: [long] })).toEqual(["wrong text"]);
    expect(columnsOf({ shown, disturbances: [{ ...REDIS_AWAY, fromMs: -1_000 }] })).toEqual([]);
  });

  test("the judge finds an answer that starts while the previous answer grows, but ignores a late note under the previous answer", () => {
    const [name, later] = ["q1n2", message("q1n2")];
    const { turns, questions, requestsFor } = toRecord({});
    const second = { ...newRecord([later], [later]), posted: ["second"], phase: "final" as const, ends: ["complete"] };
    const twoQuestions = (
      states: ReadonlyArray<readonly [atMs: number, text: string]>,
      sessionIds?: [string, string],
    ) =>
      columnsOf({
        turns: [...turns, second],
        questions: [...questions, { ...questions[0]!, name, id: later.messageId, askedAtMs: 100 }],
        requestsFor: () => [...requestsFor(""), { ...requestsFor("")[0]!, names: [name], sent: answerTo([name]) }],
        deliveryOf: ({ id }) => {
          const isLater = id === later.messageId;
          const atMs = isLater ? 100 : 0;
          if (sessionIds === undefined) return { deliveredAtMs: atMs, acknowledgedAtMs: atMs, isGivenUp: false };
          const sessions = new Set([sessionIds[isLater ? 1 : 0]]);
          return { deliveredAtMs: undefined, acknowledgedAtMs: undefined, isGivenUp: false, sessionIds: sessions };
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
    // The second session can still read a message from between the sessions after it received a newer message.
    expect(twoQuestions(grown, ["a", "b"])).not.toContain("out of order");
    expect(
      twoQuestions([
        [0, ANSWER],
        [500, note],
      ]),
    ).not.toContain("out of order");
  });

  test("the judge finds a question that no request contained, and questions in the wrong order in the history", () => {
    const [later, { questions, turns, histories, requestsFor }] = [message("q1n2"), toRecord({})];
    const { conversationId } = turns[0]!;
    const answer = histories.get(conversationId)?.slice(1) ?? [];
    const author = { platform: "test", id: "ada", name: "Ada" };
    const toEntry = (name: string) => ({
      id: name,
      at: 0,
      author,
      messages: [{ role: "user" as const, content: name }],
    });
    const together = (kept: string[], names: string[]) =>
      columnsOf({
        questions: [...questions, { ...questions[0]!, name: "q1n2", id: later.messageId, askedAtMs: 100 }],
        turns: [{ ...turns[0]!, messageIds: [QUESTION.messageId, later.messageId] }],
        histories: new Map([[conversationId, [...kept.map(toEntry), ...answer]]]),
        requestsFor: () => [{ ...requestsFor("")[0]!, names }],
        deliveryOf({ id }) {
          const atMs = id === later.messageId ? 100 : 0;
          return { deliveredAtMs: atMs, acknowledgedAtMs: atMs, isGivenUp: false };
        },
      });
    expect(together([NAME, "q1n2"], [NAME, "q1n2"])).toEqual([]);
    expect(together([NAME, "q1n2"], [NAME])).toEqual(["lost"]);
    expect(together(["q1n2", NAME], [NAME, "q1n2"])).toEqual(["history"]);
  });

  test("the judge doesn't count a reply to a pressed button as a second answer", () => {
    const answer = shownAt([[0, ANSWER]]);
    expect(columnsOf({ shown: [answer, { ...answer, id: "x", text: "This answer has already ended." }] })).toEqual([]);
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

  test("the judge excuses a shrunken answer only if its process died while Redis could not store its progress", () => {
    expect(columnsOf({ ...unnoted, disturbances: [REDIS_AWAY] })).toEqual([]);
    expect(columnsOf(unnoted)).toEqual(["wrong text"]);
    const lives = [life(0), life(1)];
    const takenOver = { ...unnoted, lives, calls: [toCall(1_490), { ...toCall(1_595), host: "host1" }] };
    expect(columnsOf({ ...takenOver, disturbances: [REDIS_AWAY] })).toEqual([]);
    expect(columnsOf({ ...unnoted, lives, disturbances: [REDIS_AWAY] })).toEqual(["wrong text"]);
    expect(columnsOf(takenOver)).toEqual(["wrong text"]);
    expect(columnsOf({ ...unnoted, disturbances: [REDIS_AWAY], lives: [life(0), life(1)] })).toEqual(["wrong text"]);
    expect(columnsOf({ ...unnoted, disturbances: [{ ...REDIS_AWAY, slot: 1 }] })).toEqual(["wrong text"]);
  });

  test("the judge accepts that the end of a full message moves to the next message but not that it disappears", () => {
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

  test("the judge excuses a missed command only while something is broken", () => {
    const plan = planRun({ seed: 1, turns: 25, platform: "slack", processes: 2 });
    const [picture] = plan.pictures;
    const notes = [{ atMs: 1_500, what: `a person requests an image of ${picture?.name}` }];
    expect(columnsOf({ plan, notes })).toEqual(["lost"]);
    expect(columnsOf({ plan, notes, disturbances: [REDIS_AWAY] })).toEqual([]);
    const taken = { plan, notes, replies: new Map([[picture?.name ?? "", ""]]), disturbances: [REDIS_AWAY] };
    expect(columnsOf(taken)).toEqual(["lost"]);
    const apology = { ...shownAt([[2_000, "I couldn't save this, so I can't answer it."]]), id: "apology" };
    expect(columnsOf({ ...taken, shown: [shownAt([[0, ANSWER]]), apology] })).toEqual([]);
    expect(columnsOf({ ...taken, disturbances: [], shown: [shownAt([[0, ANSWER]]), apology] })).toEqual(["lost"]);
  });

  test("the judge excuses a command that Slack's acknowledgement refuses, but only while something is broken", () => {
    const plan = planRun({ seed: 1, turns: 25, platform: "slack", processes: 2 });
    const [name = ""] = plan.pictures.map((picture) => picture.name);
    const notes = [{ atMs: 1_500, what: `a person requests an image of ${name}` }];
    const refused = { plan, notes, replies: new Map([[name, NOT_KEPT]]), disturbances: [REDIS_AWAY] };
    expect(columnsOf(refused)).toEqual([]);
    expect(columnsOf({ ...refused, disturbances: [] })).toEqual(["lost"]);
    expect(columnsOf({ ...refused, replies: new Map([[name, "You can't do that."]]) })).toEqual(["lost"]);
  });

  test("the judge excuses a lost command if its process was killed before it could store the command", () => {
    const plan = planRun({ seed: 1, turns: 100, platform: "discord", processes: 2 });
    const pictures = plan.pictures.slice(0, 1);
    const replies = new Map(pictures.map(({ name }) => [name, ""]));
    const requested = { atMs: 1_000, what: `a person requests an image of ${pictures[0]?.name}` };
    const waits = "My storage is unavailable. I'll do this as soon as it's back; no need to ask again.";
    const promised = { ...shownAt([[2_000, waits]]), id: "promised" };
    const given = {
      plan: { ...plan, pictures },
      replies,
      notes: [requested],
      shown: [shownAt([[0, ANSWER]]), promised],
    };
    const killedAt = (fromMs: number): Disturbance => ({ kind: "kill", slot: 0, fromMs, toMs: fromMs + 1_000 });
    expect(columnsOf({ ...given, disturbances: [killedAt(3_000)] })).toEqual([]);
    expect(columnsOf({ ...given, disturbances: [killedAt(-30_000)] })).toEqual(["lost"]);
  });

  test("the judge finds requests without a reservation", () => {
    expect(columnsOf({ counted: 0 })).toEqual(["overspent"]);
    expect(columnsOf({ counted: 1 })).toEqual([]);
  });

  test("the judge finds a tool that acted twice and accepts an answer that says the result is unknown", () => {
    const boardWith = (tools: number) => ({ ...toRecord({}).board, tools: { buy: tools } });
    expect(columnsOf({ acts: [NAME, "q1n2"], board: boardWith(2) })).toEqual([]);
    expect(columnsOf({ acts: [NAME, NAME], board: boardWith(2) })).toEqual(["acted twice"]);
    const unknown = "_I don't know whether `shop__buy` ran: I got no result._";
    const record = toRecord({ shown: [shownAt([[0, `${ANSWER}\n\n${unknown}`]])] });
    expect(judge(record).findings).toEqual([]);
    expect([...judge(record).excused.keys()]).toEqual(["an answer says that it is unknown whether its tool acted"]);
  });

  test("the judge finds wrong numbers on the dashboard and outcomes that differ from the messages", () => {
    const { board, turns } = toRecord({});
    const columnsAt = (numbers: Partial<Record["board"]>) => columnsOf({ board: { ...board, ...numbers } });
    expect(columnsAt({ turns: {} })).toEqual(["dashboard"]);
    expect(columnsAt({ turns: { complete: 2 } })).toEqual(["dashboard"]);
    expect(columnsAt({ turns: { complete: 1, failed: 1 } })).toEqual(["dashboard"]);
    expect(columnsAt({ failures: 1 })).toEqual(["dashboard"]);
    expect(columnsAt({ pictures: { drawn: 1 } })).toEqual(["dashboard"]);
    expect(columnsAt({ tools: { buy: 1 } })).toEqual(["dashboard"]);
    const failed = turns.map((turn) => ({ ...turn, ends: ["failed"] }));
    expect(columnsOf({ turns: failed, board: { ...board, turns: { failed: 1 }, failures: 1 } })).toEqual(["dashboard"]);
  });

  test("the judge accepts an unknown tool call on the dashboard if the bot lost the place of its answer", () => {
    const { board, turns } = toRecord({});
    const lost = message("q1n2");
    const trace = { calls: [{ name: "buy", arguments: "{}", state: "unknown" }] } as unknown as Trace;
    const given = (more: Partial<TurnRecord>) => ({
      cutOff: new Set([lost.messageId]),
      turns: [...turns, { ...newRecord([lost], [lost]), ends: ["complete"], ...more }],
      board: { ...board, turns: { complete: 2 }, tools: { buy: 1 } },
    });
    expect(columnsOf(given({ trace }))).toEqual([]);
    expect(columnsOf(given({}))).toEqual(["dashboard"]);
  });

  test("the judge ignores whether the dashboard counts the tool calls of a restarted answer", () => {
    const acts = [NAME];
    expect(columnsOf({ acts })).toEqual(["dashboard"]);
    expect(columnsOf({ acts, restarted: new Set([QUESTION.messageId]) })).toEqual([]);
  });

  test("the judge excuses a late acknowledgement only while something is broken", () => {
    const breaks = [{ kind: "late-ack", sentence: "It was late.", atMs: 1_500 }];
    expect(columnsOf({ breaks })).toEqual(["other"]);
    expect(columnsOf({ breaks, disturbances: [REDIS_AWAY] })).toEqual([]);
    const over = { fromMs: -4_000, toMs: -2_000 };
    expect(columnsOf({ breaks, disturbances: [{ ...REDIS_AWAY, ...over }] })).toEqual([]);
    expect(columnsOf({ breaks, disturbances: [{ kind: "kill", slot: 0, ...over }] })).toEqual(["other"]);
  });

  test("the judge accepts that the bot can't check the limits only if Redis was away", () => {
    const note = "_I couldn't check your limits, because my storage is unavailable. Please try again in a minute._";
    const board = { turns: { refused: 1 }, pictures: {}, tools: {}, failures: 0 };
    const turns = toRecord({}).turns.map((turn) => ({ ...turn, ends: ["refused"] }));
    const shown = [{ ...shownAt([[9_000, note]]), buttons: [{ label: "Retry", payload: "" }] }];
    const given = { shown, turns, board, requestsFor: () => [], counted: 0 };
    expect(columnsOf({ ...given, disturbances: [REDIS_AWAY] })).toEqual([]);
    expect(columnsOf(given)).toEqual(["wrong text"]);
  });

  test("the judge excuses the call that a paused process had started but no later call", () => {
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

  test("the judge excuses a rewritten answer if Redis was away and its processes read different conversations", () => {
    const [request] = toRecord({}).requestsFor(NAME);
    if (request === undefined) throw new Error("The record has no request.");
    const about = (host: string, atMs: number, ...names: string[]) => ({ ...request, host, atMs, names });
    const more = answerTo(["q1n2", NAME]);
    const shown = [
      shownAt([
        [1_500, ANSWER],
        [2_000, more],
      ]),
    ];
    const requestsFor = () => [about("host0", 1_450, NAME), about("host1", 1_900, "q1n2", NAME)];
    const redis = { ...REDIS_AWAY, fromMs: 100, toMs: 400 };
    const less = () => [about("host0", 1_450, "q1n2", NAME), about("host1", 1_900, NAME)];
    expect(columnsOf({ shown, requestsFor: less, disturbances: [redis] })).not.toContain("wrong text");
    expect(columnsOf({ shown, requestsFor, disturbances: [redis] })).not.toContain("wrong text");
    const beforeSecond = { ...REDIS_AWAY, fromMs: 1_600, toMs: 1_800 };
    expect(columnsOf({ shown, requestsFor: less, disturbances: [beforeSecond] })).not.toContain("wrong text");
    const afterBoth = { ...REDIS_AWAY, fromMs: 1_950, toMs: 1_990 };
    expect(columnsOf({ shown, requestsFor: less, disturbances: [afterBoth] })).toContain("wrong text");
    expect(columnsOf({ shown, requestsFor })).toContain("wrong text");
    const alike = () => [about("host0", 1_450, NAME), about("host1", 1_900, NAME)];
    expect(columnsOf({ shown, requestsFor: alike, disturbances: [redis] })).toContain("wrong text");
  });

  test("the judge accepts that the bot gives up an incomplete answer after six deaths but not after five", () => {
    const note = "_I tried several times and couldn't finish this answer. Press Retry to ask again._";
    const kill = (index: number): Disturbance => ({ kind: "kill", slot: 0, fromMs: 1_500 + index * 10, toMs: 1_600 });
    const kills = (count: number) => Array.from({ length: count }, (_, index) => kill(index + 1));
    const button = { label: "Retry", payload: "retry" };
    const given = (text: string) => [{ ...shownAt([[2_000, text]]), buttons: [button] }];
    expect(columnsOf({ shown: given(note), disturbances: kills(6) })).not.toContain("wrong text");
    expect(columnsOf({ shown: given(note), disturbances: kills(5) })).toContain("wrong text");
    expect(columnsOf({ shown: given(`${ANSWER}\n\n${note}`), disturbances: kills(6) })).toContain("wrong text");
  });

  test("the judge accepts that an answer restarts if another question of its turn was deleted", () => {
    const taken = { name: "q1n2", id: "taken", person: 0, place: 0, askedAtMs: 0 };
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

test("the measured gap of an answer lasts from the death of its process until the answer grows again", () => {
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
