import { z } from "zod";
import { MAX_SCHEDULE_CHARS } from "../port/events.ts";
import type { Services } from "../services/services.ts";
import { defineTool, type Tool, ToolError } from "../tools/tool.ts";
import type { Planner } from "./planner.ts";
import { TOOL } from "./rights.ts";

const schema = z.object({
  when: z
    .string()
    .max(MAX_SCHEDULE_CHARS.time)
    .describe(
      'in English: "tomorrow 14:00", "in 20 minutes", "weekdays at 9:00", "every Monday 8:30", "every 2 hours", "first of the month at 10:00"; a time zone such as Europe/Berlin only if the user names one',
    ),
  task: z
    .string()
    .max(MAX_SCHEDULE_CHARS.task)
    .describe("what to do then, complete and in the user's language: it is all that you will see at that time"),
});

/** Lets people schedule something in their own words. It only shows a card: people confirm it. */
export function createScheduleTool({ planner, sinkOf }: Services & { planner: Planner }): Tool {
  return defineTool({
    name: TOOL,
    description:
      "Shows the user a card that schedules a request, once or regularly. Use it for reminders, and when the user asks for something later or regularly. Nothing is scheduled until the user presses Create on the card.",
    schema,
    timeoutMs: 30_000,
    async run({ when, task }, { turn, conversationId }, signal) {
      if (turn === undefined) throw new ToolError("There is no conversation to schedule in.");
      if (turn.isScheduled) throw new ToolError("This is a scheduled run, which schedules nothing. Carry it out now.");
      const { id, author, reply } = turn;
      const words = { time: when, task };
      const card = await planner.propose({ key: id, conversationId, author, reply, words });
      if (card.draftId === undefined) throw new ToolError(`Nothing is scheduled. Tell the user: ${card.text}`);
      const nonce = `${id}:card:${card.draftId}`;
      await planner.show(card, { sink: sinkOf(reply), nonce, isPrivate: reply.visibleTo !== undefined }, signal);
      return "The card is shown under the conversation. Tell the user in one short sentence to check it and press Create; do not repeat its contents.";
    },
    describeCall: ({ when }) => `preparing a schedule: ${when}`,
  });
}
