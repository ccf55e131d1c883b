import { describe, expect, test } from "vitest";
import { action, ben, deleted, edited, message } from "../../lab/support/events.ts";
import { pictureTurn } from "../../lab/support/picture-turn.ts";
import { newRecord } from "../../src/turn/record.ts";
import { createRunningPictures, createRunningTurn, createRunningTurns } from "../../src/turn/running.ts";

function begin(...texts: string[]) {
  const messages = texts.map((text) => message(text));
  const record = newRecord(messages, messages);
  const turn = createRunningTurn(record, messages);
  const [first, second] = messages;
  if (first === undefined) throw new Error("a turn needs a message");
  return { turn, record, first, second: second ?? first };
}

describe("a running turn", () => {
  test("a running turn ignores changes of other messages, echoes and strangers", () => {
    const { turn, record, first } = begin("Hello");
    const { controller } = turn.begin();
    turn.notice(edited(message("another"), "changed"));
    turn.notice(edited(first, "Hello"));
    expect(turn.notice(action("stop", record.id, { author: ben }))).toBe("refused");
    expect(turn.notice(action("stop", "another", { author: ben }))).toBeUndefined();
    expect(turn.notice(action("retry", record.id))).toBeUndefined();
    expect(controller.signal.aborted).toBe(false);
    expect(turn.taken()).toEqual([]);
  });

  test("a turn continues after its end if a change came too late to interrupt it", () => {
    const { turn, first } = begin("Helo");
    turn.begin();
    expect(turn.mustGoOn("ended")).toBe(false);
    turn.notice(edited(first, "Hello"));
    expect(turn.mustGoOn("ended")).toBe(true);
  });

  test("a stopped turn does not continue for an edit, but for the deletion of all its messages", () => {
    const { turn, record, first } = begin("Helo");
    turn.begin();
    turn.notice(action("stop", record.id));
    turn.notice(edited(first, "Hello"));
    expect(turn.mustGoOn("ended")).toBe(false);
    turn.notice(deleted(first));
    expect(turn.mustGoOn("ended")).toBe(true);
  });
});

function start() {
  const running = createRunningPictures("job");
  running.open(pictureTurn());
  return running;
}

describe("a running image turn", () => {
  test("the asker and moderators can stop an image turn", () => {
    const running = start();
    expect(running.notice(action("stop", "job.0", { author: ben }))).toBe("refused");
    expect([running.stop.aborted, running.taken()]).toEqual([false, []]);
    const press = action("stop", "job.0");
    expect(running.notice(press)).toBeUndefined();
    expect([running.stop.reason, running.taken()]).toEqual(["stopped", [press]]);
    const other = start();
    other.notice(action("stop", "job.0", { author: { ...ben, isModerator: true } }));
    expect(other.stop.aborted).toBe(true);
  });

  test("a Stop that a person pressed before an image turn's record was read ends the turn", () => {
    const running = createRunningPictures("job");
    running.notice(action("stop", "job.0"));
    expect(running.stop.aborted).toBe(false);
    running.open(pictureTurn());
    expect(running.stop.reason).toBe("stopped");
  });

  test("further presses of Retry belong to an image turn while it retries, and later ones do not", () => {
    const running = start();
    const [first, second, third] = [action("retry", "job.0"), action("retry", "job.0"), action("retry", "job.0")];
    running.notice(first);
    running.retries(true);
    running.notice(second);
    running.retries(false);
    running.notice(third);
    expect(running.taken()).toEqual([second]);
  });

  test("an image turn ignores events about other turns", () => {
    const running = start();
    for (const event of [action("stop", "other.0"), action("stop", "job"), action("vary", "job.1"), message("stop")]) {
      expect(running.notice(event)).toBeUndefined();
    }
    expect([running.stop.aborted, running.taken()]).toEqual([false, []]);
  });
});

describe("the running turns", () => {
  test("a waiting and a running turn both receive a Stop", async () => {
    const turns = createRunningTurns();
    const running = start();
    turns.wait(running);
    expect(turns.findWaiting("job")).toBe(running);
    expect(turns.interrupt(action("stop", "job.0", { author: ben }))).toContain("Only the person who asked");
    await turns.whileRunning(running, async () => {
      expect([turns.findWaiting("job"), turns.find("job")]).toEqual([undefined, running]);
      expect(turns.interrupt(action("stop", "job.0"))).toBeUndefined();
    });
    expect(running.stop.aborted).toBe(true);
    expect(turns.find("job")).toBeUndefined();
  });

  test("the running turns find an image turn's conversation by its message, and do not count it as an answer", async () => {
    const turns = createRunningTurns();
    const running = createRunningPictures("job");
    running.open(pictureTurn({ posted: ["test:status"] }));
    await turns.whileRunning(running, async () => {
      expect(turns.conversationOf("test:status")).toBe("test:a");
      expect(turns.isAnswering("test:a")).toBe(false);
    });
  });
});
