import { describe, expect, test } from "vitest";
import { action, ada, ben, command, message } from "../../lab/support/events.ts";
import { toPictureLane } from "../../src/imagine/lanes.ts";
import type { InboundEvent } from "../../src/port/events.ts";
import { chooseNext, FIRST_ROUND, type Work } from "../../src/queue/admission.ts";
import { toWork } from "../../src/queue/event-lane.ts";

const PLACES = 16;

const question = (person: string, channel = "general"): Work => ({
  kind: "question",
  person,
  channel,
  isSuspect: false,
});
const many = (count: number, make: (index: number) => Work): Work[] =>
  Array.from({ length: count }, (_, index) => make(index));

/** Assigns slots one after another while work can start. Started work never ends. */
function fill(waiting: readonly Work[], running: readonly Work[] = [], places = PLACES): Work[] {
  const [left, begun] = [[...waiting], [...running]];
  let rounds = FIRST_ROUND;
  for (;;) {
    const choice = chooseNext(rounds, left, begun, places);
    if (choice === undefined) return begun;
    rounds = choice.rounds;
    begun.push(...left.splice(choice.index, 1));
  }
}

/** Assigns one slot repeatedly, and returns who gets it each time. */
function takeTurns(waiting: readonly Work[]): string[] {
  const [left, order] = [[...waiting], [] as string[]];
  let rounds = FIRST_ROUND;
  for (;;) {
    const choice = chooseNext(rounds, left, [], 1);
    if (choice === undefined) return order;
    rounds = choice.rounds;
    order.push(...left.splice(choice.index, 1).map(({ person }) => person));
  }
}

describe("slots for questions in the queue", () => {
  test("one person leaves slots to others, however many questions wait", () => {
    const begun = fill(many(40, (index) => question("ada", `channel ${index}`)));
    expect(begun).toHaveLength(8);
    expect(fill([question("ben")], begun)).toHaveLength(9);
  });

  test("each person who floods the queue leaves slots to newcomers", () => {
    let begun: Work[] = [];
    for (const person of ["a", "b", "c", "d"]) {
      begun = fill(
        many(40, (index) => question(person, `channel ${index}`)),
        begun,
      );
      expect(begun.length).toBeLessThan(PLACES);
    }
    expect(fill([question("newcomer", "another")], begun)).toHaveLength(begun.length + 1);
  });

  test("the people of one channel do not take all slots", () => {
    const begun = fill(many(40, (index) => question(`person ${index}`)));
    expect(begun).toHaveLength(14);
    expect(fill([question("ben", "another")], begun)).toHaveLength(15);
  });

  test("people who ask once each take all slots", () => {
    expect(fill(many(40, (index) => question(`person ${index}`, `channel ${index}`)))).toHaveLength(PLACES);
  });

  test("admission never gives out more slots than exist", () => {
    for (const places of [1, 2, 3, 16]) {
      expect(
        fill(
          many(40, (index) => question(`${index}`, `${index}`)),
          [],
          places,
        ),
      ).toHaveLength(places);
    }
  });

  test("one person can use the only slot", () => {
    expect(fill([question("ada"), question("ada")], [], 1)).toHaveLength(1);
  });

  test("quick work waits for a free slot but does not occupy a slot", () => {
    const running = many(8, () => question("ada"));
    expect(fill([{ ...question("ada"), kind: "errand" }], running)).toHaveLength(9);
    expect(fill([{ ...question("ben"), kind: "errand" }], running, 8)).toHaveLength(8);
  });
});

describe("turns between people in the queue", () => {
  test("people take turns, however much one person asks, and each person's questions keep their order", () => {
    const order = takeTurns([...many(4, () => question("ada")), question("ben"), question("ben"), question("cleo")]);
    expect(order).toEqual(["ada", "ben", "cleo", "ada", "ben", "ada", "ada"]);
  });

  test("a newcomer gets a turn before the rest of a flood", () => {
    let rounds = FIRST_ROUND;
    for (let count = 0; count < 5; count++) rounds = chooseNext(rounds, [question("ada")], [], 1)?.rounds ?? rounds;
    const flood = many(35, () => question("ada"));
    expect(chooseNext(rounds, [...flood, question("ben")], [], 1)?.index).toBe(35);
  });

  test("a person who asks nothing saves up no turns", () => {
    let rounds = FIRST_ROUND;
    for (let count = 0; count < 5; count++) rounds = chooseNext(rounds, [question("ada")], [], 1)?.rounds ?? rounds;
    const order: number[] = [];
    const left = [question("ben"), question("ben"), question("ada"), question("ada")].map((work, index) => ({
      work,
      index,
    }));
    while (left.length > 0) {
      const choice = chooseNext(
        rounds,
        left.map(({ work }) => work),
        [],
        1,
      );
      if (choice === undefined) break;
      rounds = choice.rounds;
      order.push(...left.splice(choice.index, 1).map(({ index }) => index));
    }
    expect(order).toEqual([0, 1, 2, 3]);
  });

  test("the turns forget people whose questions are all answered", () => {
    let rounds = FIRST_ROUND;
    for (let index = 0; index < 100; index++) {
      rounds = chooseNext(rounds, [question(`${index}`), question("ada")], [], 1)?.rounds ?? rounds;
      rounds = chooseNext(rounds, [question("ada")], [], 1)?.rounds ?? rounds;
    }
    expect(rounds.next.size).toBeLessThan(3);
  });
});

describe("the admission of work during which a process died", () => {
  test("work during which a process died runs next to ordinary work, but only one such work at a time", () => {
    const suspects = many(3, (index) => ({ ...question(`${index}`), isSuspect: true }));
    expect(fill([...suspects, question("ada")]).filter(({ isSuspect }) => isSuspect)).toHaveLength(1);
    expect(fill([...suspects, question("ada")])).toHaveLength(2);
  });
});

describe("the admission of work that can start", () => {
  const picture = (id: string, channelId = "general") => {
    return { ...command("imagine", "a fox", { author: { id, name: id } }), reply: { platform: "test", channelId } };
  };
  const running =
    (...events: InboundEvent[]) =>
    (event: InboundEvent) =>
      chooseNext(FIRST_ROUND, [workOf(event)], events.map(workOf), 2) !== undefined;
  const workOf = (event: InboundEvent) => {
    const lane = toPictureLane(event);
    return toWork(lane === undefined ? event : { ...event, lane });
  };

  test("image turns do not count against the limit of conversations", () => {
    const mayBegin = running(message("a"), picture("ada"), picture("ben"), action("delete", "job.1"));
    expect(mayBegin(message("b", { author: ben }))).toBe(false);
    expect(running(message("a"), picture("ada"), picture("ben"))(message("b", { author: ben }))).toBe(true);
    expect(running(message("a"), message("b"))(picture(ada.id))).toBe(true);
  });

  test("at most two image turns of a person, four of a channel and eight in all run at a time", () => {
    const two = running(picture(ada.id), picture(ada.id, "other"));
    expect([two(picture(ada.id)), two(picture(ben.id))]).toEqual([false, true]);
    const four = running(...["a", "b", "c", "d"].map((id) => picture(id)));
    expect([four(picture("e")), four(picture("e", "other"))]).toEqual([false, true]);
    const eight = running(...["a", "b", "c", "d", "e", "f", "g", "h"].map((id) => picture(id, id)));
    expect(eight(picture("i", "i"))).toBe(false);
  });
});
