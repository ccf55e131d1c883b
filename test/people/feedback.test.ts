import { expect, test } from "vitest";
import { ben, message } from "../../lab/support/events.ts";
import { fakeServices } from "../../lab/support/services.ts";
import { createRate } from "../../src/people/feedback.ts";
import type { ActionEvent } from "../../src/port/events.ts";
import { newRecord, type TurnRecord } from "../../src/turn/record.ts";

const event: ActionEvent = {
  kind: "action",
  action: "good",
  key: "test:press",
  conversationId: "test:c",
  author: { id: "ada", name: "Ada" },
  reply: { platform: "test", channelId: "c" },
  turnId: "turn",
  at: 0,
};

const question = message("why?", { author: ben, reply: event.reply });
const written = newRecord([question], [question]);

function setUp(record: TurnRecord | undefined = written) {
  const said = new Set<string>();
  const counted: string[] = [];
  const rate = createRate(
    fakeServices<Parameters<typeof createRate>[0]>({
      records: {
        load: async () => record,
        async rate({ id, edition }, authorId, feedback, reason) {
          const words = reason === undefined ? [] : [`${id} ${authorId} ${reason}`];
          const news = [`${id} ${authorId} ${feedback} of ${edition}`, ...words].map(
            (one) => !said.has(one) && said.add(one),
          );
          return { isNew: Boolean(news[0]), hasNewReason: Boolean(news[1]) };
        },
      },
      metrics: {
        feedback: (platform, feedback) => void counted.push(`${platform} ${feedback}`),
        reasonGiven: (platform) => void counted.push(`${platform} reason`),
      },
    }),
  );
  return { rate, counted, said: () => [...said] };
}

test("the bot stores a rating with the turn and counts it", async () => {
  const { rate, counted, said } = setUp();
  await rate(event, "good");
  expect(said()).toEqual(["turn ada good of 1"]);
  expect(counted).toEqual(["test good"]);
});

test("the bot counts a repeated rating once", async () => {
  const { rate, counted } = setUp();
  await rate(event, "good");
  await rate(event, "good");
  await rate(event, "bad");
  expect(counted).toEqual(["test good", "test bad"]);
});

test("the bot stores a reason with the rating, without invisible characters, and counts it once", async () => {
  const { rate, counted, said } = setUp();
  await rate(event, "bad");
  for (let again = 0; again < 2; again++) await rate({ ...event, reason: " wrong\u202e year " }, "bad");
  await rate({ ...event, reason: " \n" }, "bad");
  expect(said()).toEqual(["turn ada bad of 1", "turn ada wrong year"]);
  expect(counted).toEqual(["test bad", "test reason"]);
});

test("the bot ignores a rating by a person who cannot see the answer", async () => {
  const elsewhere = { ...written, reply: { platform: "test", channelId: "elsewhere" } };
  const secret = { ...written, reply: { ...written.reply, visibleTo: "ben" } };
  for (const record of [elsewhere, secret]) {
    const { rate, said, counted } = setUp(record);
    await rate(event, "good");
    expect([said(), counted]).toEqual([[], []]);
  }
});

test("a rating counts for the version of the answer that its button belongs to", async () => {
  const { rate, said } = setUp({ ...written, edition: 3 });
  await rate({ ...event, turnId: "turn.v2" }, "good");
  // A button from an earlier version contains only the turn.
  await rate(event, "bad");
  expect(said()).toEqual(["turn ada good of 2", "turn ada bad of 3"]);
});
