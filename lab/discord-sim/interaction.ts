import type { Message, Payload, User } from "./world.ts";

export const INTERACTION_TYPES = { command: 2, component: 3, autocomplete: 4, modal: 5 } as const;
export type InteractionKind = keyof typeof INTERACTION_TYPES;

/** The bot must acknowledge an interaction within this time. */
export const ACKNOWLEDGE_MS = 3000;
/** Lifetime of an interaction's token. */
export const TOKEN_MS = 15 * 60_000;

/** A person's command, button press or form, and the bot's reaction. */
export interface Interaction {
  readonly id: string;
  readonly token: string;
  readonly kind: InteractionKind;
  readonly channelId: string;
  readonly guildId: string | undefined;
  readonly user: User;
  readonly createdAtMs: number;
  /** The fields `type`, `data` and others, as the gateway sends them. */
  readonly payload: Payload;
  /** The message whose button was pressed. */
  readonly source?: Message;
  /** The type of the message with which the bot replies. */
  readonly replyType: number;
  /** The type of the bot's acknowledgement; undefined before it. */
  acknowledgedAs?: number;
  acknowledgedAtMs?: number;
  /** The bot's reply, `@original`. If the bot acknowledged a button as an update, this is the button's message. */
  original?: Message;
  /** Messages that the bot wrote with the token. */
  readonly messages: Message[];
  modal?: Payload;
  /** The bot's suggestions for the option that the person was typing. */
  choices?: readonly Payload[];
}

/** Returns what messages store about their interaction. */
export function toOrigin({ id, kind, user }: Interaction): NonNullable<Message["interaction"]> {
  return { id, type: INTERACTION_TYPES[kind], user };
}
