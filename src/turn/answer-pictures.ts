import type { Author, MessageEvent, ReplyAddress } from "../port/events.ts";
import { truncate } from "../text/truncate.ts";
import type { Ending } from "./endings.ts";
import type { Pieces } from "./pieces.ts";
import type { TurnRecord } from "./record.ts";

/** Pictures of one answer of the model; further ones are left out. */
const MAX_PICTURES = 8;
/** Longest part of a question that is kept as the prompt of a picture. */
const MAX_PROMPT_CHARS = 4_000;

/** A picture of the model's answer, and its place in the conversation. The same id is the same picture. */
export interface AnswerPicture {
  id: string;
  conversationId: string;
  /** The entry of the history that it follows. */
  after: string | undefined;
  reply: ReplyAddress;
  author: Author;
  /** The question. */
  prompt: string;
  /** The model that answered. */
  model: string;
  dataUrl: string;
}

/** Why a picture is missing, as a sentence of Markdown, and whether asking again may help. */
export interface MissingPicture {
  reason: string;
  canRetry: boolean;
}

/** Posts a picture and keeps it. Resolves to why it could not. Rejects with the signal's reason, or if permissions cannot be read. */
export type ShowPicture = (picture: AnswerPicture, signal: AbortSignal) => Promise<MissingPicture | undefined>;

/** The pictures of one attempt's answers. */
export interface AnswerPictures {
  /** Shows the pictures of an answer: that of the `round`, from 1 on. */
  show(dataUrls: readonly string[], round: number, signal: AbortSignal): Promise<void>;
  /** Adapts the end of the answer to its pictures. `isEmpty`: the answer has no text. */
  toEnding(ending: Ending, isEmpty: boolean): Ending;
  readonly hasAny: boolean;
}

/** The turn that pictures are of. */
export interface PicturedTurn {
  record: Pick<TurnRecord, "conversationId" | "reply" | "author">;
  /** The question. */
  messages: readonly Pick<MessageEvent, "text">[];
  begin: Pieces["begin"];
  /** The model that answers at the moment. */
  answering(): string;
}

export function createAnswerPictures(
  showPicture: ShowPicture,
  { record: { conversationId, reply, author }, messages, begin, answering }: PicturedTurn,
): AnswerPictures {
  const words = messages.map(({ text }) => text).join("\n");
  const prompt = truncate(words.trim(), MAX_PROMPT_CHARS) || "a picture";
  let shown = 0;
  let missing: MissingPicture | undefined;

  return {
    async show(dataUrls, round, signal) {
      const different = [...new Set(dataUrls)].slice(0, MAX_PICTURES);
      for (const [index, dataUrl] of different.entries()) {
        const place = { ...begin(`answer:${round}:${index}`), conversationId, reply, author };
        const failure = await showPicture({ ...place, prompt, model: answering(), dataUrl }, signal);
        if (failure === undefined) shown += 1;
        else missing ??= failure;
      }
    },
    toEnding(ending, isEmpty) {
      if (ending.outcome !== "complete") return ending;
      if (missing !== undefined) {
        const { reason, canRetry } = missing;
        const note = `_A picture of this answer is missing. ${reason}_`;
        return { outcome: canRetry ? "interrupted" : "complete", note, retry: canRetry };
      }
      // Its buttons need a message.
      return isEmpty && shown > 0 ? { ...ending, note: "_The answer is a picture._" } : ending;
    },
    get hasAny() {
      return shown > 0;
    },
  };
}
