import { expect, test } from "vitest";
import { createRate } from "../../src/people/feedback.ts";
import type { ActionEvent } from "../../src/port/events.ts";
import { newRecord, type TurnRecord } from "../../src/turn/record.ts";
import { ben, message } from "../support/events.ts";

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
  const rate = createRate({
    records: {
      load: async () => record,
      async rate(id, authorId, feedback) {
        const isNews = !said.has(`${id} ${authorId} ${feedback}`);
        said.add(`${id} ${authorId} ${feedback}`);
        return isNews;
      },
    },
    metrics: { feedback: (platform, feedback) => void counted.push(`${platform} ${feedback}`) },
  });
  return { rate, counted, said: () => [...said] };
}

test("a judgement is kept with the turn and counted", async () => {
  const { rate, counted, said } = setUp();
  await rate(event, "good");
  expect(said()).toEqual(["turn ada good"]);
  expect(counted).toEqual(["test good"]);
});

test("a judgement that is given twice is counted once", async () => {
  const { rate, counted } = setUp();
  await rate(event, "good");
  await rate(event, "good");
  await rate(event, "bad");
  expect(counted).toEqual(["test good", "test bad"]);
});

test("a judgement by people who cannot see the answer is ignored", async () => {
  const elsewhere = { ...written, reply: { platform: "test", channelId: "elsewhere" } };
  const secret = { ...written, reply: { ...written.reply, visibleTo: "ben" } };
  for (const record of [elsewhere, secret]) {
    const { rate, said, counted } = setUp(record);
    await rate(event, "good");
    expect([said(), counted]).toEqual([[], []]);
  }
});
