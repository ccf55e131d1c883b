import { expect, test } from "vitest";
import type { ActionEvent } from "../../src/adapter.ts";
import { createRate } from "../../src/people/feedback.ts";

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

function setUp() {
  const said = new Set<string>();
  const counted: string[] = [];
  const rate = createRate({
    records: {
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

test("a judgement that is no news is not counted", async () => {
  const { rate, counted } = setUp();
  await rate(event, "good");
  await rate(event, "good");
  await rate(event, "bad");
  expect(counted).toEqual(["test good", "test bad"]);
});
