import { z } from "zod";
import { ACTIONS, type InboundEvent, type PressedAction } from "../port/events.ts";

const base = {
  key: z.string(),
  conversationId: z.string(),
  author: z.looseObject({ id: z.string(), name: z.string() }),
  reply: z.looseObject({ platform: z.string(), channelId: z.string() }),
  at: z.number(),
  lane: z
    .object({ id: z.string(), kind: z.enum(["question", "drawing", "errand"]), workId: z.string() })
    .exactOptional(),
};
const attachments = z.array(
  z.looseObject({ platform: z.string(), id: z.string(), name: z.string(), sizeBytes: z.number() }),
);
const actions: readonly string[] = ACTIONS;
const isPressed = (action: unknown): action is PressedAction =>
  typeof action === "string" && action !== "edit" && actions.includes(action);

/** An event as the queue stores it. Fields that are not listed here are stored unchecked. */
export const storedEvent: z.ZodType<InboundEvent> = z.discriminatedUnion("kind", [
  z.looseObject({
    ...base,
    kind: z.literal("message"),
    messageId: z.string(),
    text: z.string(),
    attachments,
    addressed: z.enum(["bot", "open", "other"]),
  }),
  z.looseObject({ ...base, kind: z.literal("edited"), messageId: z.string(), text: z.string(), attachments }),
  z.looseObject({ ...base, kind: z.literal("deleted"), messageId: z.string() }),
  z.looseObject({ ...base, kind: z.literal("command"), name: z.string(), text: z.string() }),
  z.looseObject({ ...base, kind: z.literal("action"), action: z.custom<PressedAction>(isPressed), turnId: z.string() }),
]);
