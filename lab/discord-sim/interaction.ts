import type { Message, Payload, User } from "./world.ts";

export const INTERACTION_TYPES = { command: 2, component: 3, autocomplete: 4, modal: 5 } as const;
export type InteractionKind = keyof typeof INTERACTION_TYPES;

/** Time to acknowledge. */
export const ACKNOWLEDGE_MS = 3000;
/** Time until the token ends. */
export const TOKEN_MS = 15 * 60_000;

/** Something a person asked the bot by a command, a button or a form, and what the bot did with it. */
export interface Interaction {
  readonly id: string;
  readonly token: string;
  readonly kind: InteractionKind;
  readonly channelId: string;
  readonly guildId: string | undefined;
  readonly user: User;
  readonly createdAtMs: number;
  /** `type`, `data` and so on, as the gateway sends them. */
  readonly payload: Payload;
  /** The message whose button was pressed. */
  readonly source?: Message;
  /** The type of message a reply to it becomes. */
  readonly replyType: number;
  /** The callback's type, once the bot has acknowledged. */
  acknowledgedAs?: number;
  acknowledgedAtMs?: number;
  /** The bot's answer, `@original`; the source of a button when it was acknowledged as an update. */
  original?: Message;
  /** Messages the bot wrote with the token. */
  readonly messages: Message[];
  /** The form the bot showed. */
  modal?: Payload;
  /** What the bot proposed while somebody typed. */
  choices?: readonly Payload[];
}

/** The interaction as its messages remember it. */
export function toOrigin({ id, kind, user }: Interaction): NonNullable<Message["interaction"]> {
  return { id, type: INTERACTION_TYPES[kind], user };
}
